"""Device arrays: sums, extremes, means and other reductions along axes, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
FEW = "bool int8 uint16 int64 uint64 float16 float64 complex64".split()
"""One of each kind and width."""
NAMES = "sum prod min max mean any all var std argmin argmax".split()
SHAPES = [(7,), (1,), (4, 1, 5), (2, 3, 4), (5, 600), (2500,)]

pytestmark = pytest.mark.filterwarnings(
    "ignore:invalid value", "ignore:Mean of empty", "ignore:Degrees of", "ignore:overflow"
)


def sample(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.7
    low = -4 if np.dtype(dtype).kind in "ifc" else 0
    values = rng.integers(low, 5, shape)
    if np.dtype(dtype).kind in "fc":
        values = values / 2
    if np.dtype(dtype).kind == "c":
        values = values + rng.integers(low, 5, shape) * 0.5j
    return values.astype(dtype)


def layouts(host):
    """Device arrays and NumPy arrays with the same elements, in several layouts."""
    yield cuda.to_device(host), host
    yield cuda.to_device(np.asfortranarray(host)), host
    key = (*[slice(None)] * (host.ndim - 1), slice(None, None, -1))
    yield cuda.to_device(host)[key], host[key]
    wide = np.repeat(host, 2, axis=0)
    yield cuda.to_device(wide)[::2], host


def axes_of(name, ndim):
    yield from (None, *range(-1, ndim))
    if ndim > 1 and not name.startswith("arg"):
        yield from ((0, 1), (0, -1), (), tuple(range(ndim)))


def check(found, expected, dtype, note="") -> None:
    assert isinstance(found, cuda.DeviceNDArray), note
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), note
    if expected.dtype.kind in "fc":
        tolerance = {"float16": 5e-3, "float32": 2e-5, "complex64": 2e-5}.get(dtype, 1e-12)
        np.testing.assert_allclose(
            found.copy_to_host(),
            expected,
            rtol=tolerance,
            atol=tolerance * max(1, np.sqrt(expected.size)),
            err_msg=note,
        )
    else:
        np.testing.assert_array_equal(found.copy_to_host(), expected, err_msg=note)


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("name", NAMES)
def test_reductions(name, dtype) -> None:
    for shape in SHAPES:
        host = sample(dtype, shape)
        if name == "prod" and host.dtype.kind in "fc":
            host = (host / (4 if host.size > 20 else 1)).astype(dtype)
        for number, (device, view) in enumerate(layouts(host)):
            for axis in axes_of(name, len(shape)):
                for keepdims in (False, True)[: 2 if number == 1 else 1]:
                    expected = getattr(view, name)(axis=axis, keepdims=keepdims)
                    found = getattr(device, name)(axis=axis, keepdims=keepdims)
                    if dtype == "float16" and name in ("var", "std", "prod", "sum", "mean"):
                        # NumPy rounds each partial sum to float16 here.
                        wide = getattr(view.astype("f4"), name)(axis=axis, keepdims=keepdims)
                        expected = np.asarray(wide).astype("f2")
                    check(found, expected, dtype, f"{name} {dtype} {shape} {axis}")


@pytest.mark.parametrize("name", [*NAMES, "cumsum"])
def test_functions_of_numpy_give_device_arrays(name) -> None:
    if name == "cumsum":
        assert isinstance(np.add.accumulate(cuda.to_device(np.arange(3))), cuda.DeviceNDArray)
        return
    host = sample("float32", (3, 4))
    function = getattr(np, name)
    check(function(cuda.to_device(host)), function(host), "float32")
    check(function(cuda.to_device(host), axis=1), function(host, axis=1), "float32")


@pytest.mark.parametrize("name", NAMES)
def test_of_nothing_and_of_one(name) -> None:
    one = np.array(2.5)
    check(getattr(cuda.to_device(one), name)(), getattr(one, name)(), "float64")
    for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), None), ((3, 0), 0)):
        host = np.zeros(shape)
        try:
            with np.errstate(all="ignore"):
                expected = getattr(host, name)(axis=axis)
        except ValueError:
            with pytest.raises(ValueError, match=r"empty|zero-size"):
                getattr(cuda.to_device(host), name)(axis=axis)
            continue
        check(getattr(cuda.to_device(host), name)(axis=axis), expected, "float64", f"{name} {shape} {axis}")


def test_nan_is_smallest_and_largest() -> None:
    for dtype in ("f2", "f4", "f8", "c8", "c16"):
        host = sample(dtype, (4, 50))
        host[1, 7] = np.nan
        host[1, 20] = np.nan
        host[2, 0] = np.inf
        device = cuda.to_device(host)
        for name in ("min", "max", "argmin", "argmax", "sum", "any"):
            for axis in (None, 0, 1):
                check(getattr(device, name)(axis=axis), getattr(host, name)(axis=axis), np.dtype(dtype).name, name)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "mean", "any", "all", "var", "std"])
def test_where_and_initial(name) -> None:
    host = sample("float64", (6, 5))
    device = cuda.to_device(host)
    for mask in (host > 0, np.arange(5) > 1, np.ones((6, 1), bool), np.zeros(5, bool)):
        if name in ("min", "max"):
            for axis in (None, 0, 1):
                check(
                    getattr(device, name)(axis=axis, where=cuda.to_device(mask), initial=1.0),
                    getattr(host, name)(axis=axis, where=mask, initial=1.0), "float64", name,
                )  # fmt: skip
            with pytest.raises(ValueError, match="does not have an identity"):
                getattr(device, name)(where=mask)
            continue
        for axis in (None, 0, 1, (0, 1)):
            for given in (mask, cuda.to_device(mask)):
                with np.errstate(all="ignore"):
                    expected = getattr(host, name)(axis=axis, where=mask)
                check(getattr(device, name)(axis=axis, where=given), expected, "float64", name)
    if name in ("sum", "prod", "min", "max"):
        for axis in (None, 0, 1, ()):
            check(
                getattr(device, name)(axis=axis, initial=2), getattr(host, name)(axis=axis, initial=2), "float64", name
            )


def test_dtype_and_out() -> None:
    host = sample("int8", (6, 5))
    device = cuda.to_device(host)
    for dtype in ("i1", "f4", "c16", "i4"):
        check(device.sum(dtype=dtype), host.sum(dtype=dtype), "float32")
        check(device.sum(axis=1, dtype=dtype), host.sum(axis=1, dtype=dtype), "float32")
    check(device.mean(axis=1, dtype="f4"), host.mean(axis=1, dtype="f4"), "float32")
    check(device.var(axis=0, dtype="f4"), host.var(axis=0, dtype="f4"), "float32")
    check(device.std(ddof=1), host.std(ddof=1), "float64")
    for name in NAMES:
        expected = getattr(host, name)(axis=1)
        out = cuda.device_array(6, expected.dtype)
        assert getattr(device, name)(axis=1, out=out) is out
        check(out, expected, "float64")
        total = cuda.device_array((), expected.dtype)
        assert getattr(device, name)(out=total) is total
        check(total, getattr(host, name)(), "float64")
        on_host = np.zeros(6, expected.dtype)
        assert getattr(device, name)(axis=1, out=on_host) is on_host
        np.testing.assert_allclose(on_host, expected)
        with pytest.raises(ValueError, match="has shape"):
            getattr(device, name)(axis=0, out=out)
    for of, to in (("f8", "i4"), ("c16", "f8"), ("i4", "?")):
        for name in ("sum", "prod", "mean"):
            with pytest.raises(TypeError, match=r"Cannot cast|a mean needs numbers"):
                getattr(cuda.to_device(np.ones(3, of)), name)(dtype=to)
    big = np.full(1000, 60000, "f2")
    check(cuda.to_device(big).mean(), big.mean(), "float16")
    check(cuda.to_device(np.full(70_000, 255, "u1")).sum(), np.uint64(255 * 70_000), "u8")
    check(cuda.to_device(np.full((3, 70_000), -128, "i1")).sum(axis=1), np.full(3, -128 * 70_000), "i8")
    with pytest.raises(TypeError, match="cannot hold"):
        cuda.to_device(np.ones(3)).sum(out=cuda.device_array((), "i4"))


def test_axes_that_there_are_not() -> None:
    device = cuda.to_device(np.zeros((3, 4)))
    for name in NAMES:
        for axis in (2, -3):
            with pytest.raises(np.exceptions.AxisError, match=f"axis {axis} is out of bounds for array of dimension 2"):
                getattr(device, name)(axis=axis)
    with pytest.raises(ValueError, match="duplicate value in 'axis'"):
        device.sum(axis=(0, -2))
    with pytest.raises(TypeError):
        device.sum(axis=1.5)


def test_ufuncs_reduce() -> None:
    host = sample("int32", (6, 5)) + 5
    device = cuda.to_device(host)
    for ufunc in (np.add, np.multiply, np.maximum, np.fmin, np.bitwise_or, np.bitwise_and, np.logical_xor, np.gcd):
        check(ufunc.reduce(device), ufunc.reduce(host), "float64", str(ufunc))
        check(ufunc.reduce(device, axis=None), ufunc.reduce(host, axis=None), "float64", str(ufunc))
        check(ufunc.reduce(device, axis=1, keepdims=True), ufunc.reduce(host, axis=1, keepdims=True), "float64")
    check(np.logaddexp.reduce(device.astype("f8")), np.logaddexp.reduce(host.astype("f8")), "float64")


def test_long_arrays() -> None:
    rng = np.random.default_rng(3)
    for dtype in ("i1", "f4", "u8", "?"):
        host = (rng.random(300_001) * 100 - (50 if dtype in ("i1", "f4") else 0)).astype(dtype)
        device = cuda.to_device(host)
        for name in ("sum", "min", "max", "any", "argmin", "argmax", "mean", "var"):
            wide = host.astype("f8") if dtype == "f4" and name in ("sum", "mean", "var") else host
            expected = np.asarray(getattr(wide, name)())
            found = getattr(device, name)().copy_to_host()
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1)
            else:
                assert found == expected, (dtype, name)


def test_results_are_used_without_waiting() -> None:
    host = np.arange(12.0).reshape(3, 4)
    device = cuda.to_device(host)
    check((device - device.mean()) / device.std(), (host - host.mean()) / host.std(), "float64")
    check(device / device.sum(axis=1, keepdims=True), host / host.sum(axis=1, keepdims=True), "float64")
    assert float(device.max()) == 11
    assert bool((device == device).all())
    assert f"{device.sum().item()}" == "66.0"
    device[device > device.mean()] = 0
    host[host > host.mean()] = 0
    check(device, host, "float64")
