"""Device arrays: copies, conversions, reshapes, elements as Python numbers, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
FEW = "bool int8 uint16 int64 uint64 float16 float64 complex64".split()
"""One of each kind and width."""
KEYS = [
    np.s_[:],
    np.s_[::2, ::-1],
    np.s_[:, 1:],
    np.s_[1],
    np.s_[1, 2],
    np.s_[:0],
    np.s_[::-1, :, ::-2],
    np.s_[:, :1, 1:2],
]


def arrays(dtype="f8"):
    """Device arrays and NumPy arrays with the same elements and strides."""
    for base in (
        np.arange(60).reshape(3, 4, 5).astype(dtype),
        np.asfortranarray(np.arange(60).reshape(3, 4, 5), dtype),
    ):
        device = cuda.to_device(base)
        for key in KEYS:
            view = device[key]
            if not isinstance(view, cuda.DeviceNDArray):
                view = device[(*key, Ellipsis)]
            yield view, np.asarray(base[key])
            yield view.T, np.asarray(base[key]).T


def check(found, expected) -> None:
    assert isinstance(found, cuda.DeviceNDArray)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.copy_to_host(), expected)


@pytest.mark.parametrize("order", "CFAK")
def test_copy_and_flatten(order) -> None:
    for device, host in arrays():
        copy = device.copy(order)
        expected = host.copy(order)
        check(copy, expected)
        if copy.size and 1 not in copy.shape:
            assert copy.strides == expected.strides
        assert not copy.size or copy.address != device.address
        check(device.flatten(order), host.flatten(order))
    with pytest.raises(ValueError, match="order must be 'C', 'F', 'A' or 'K', not 'X'"):
        device.copy("X")
    with pytest.raises(ValueError, match="order must be 'C', 'F', 'A' or 'K', not 'X'"):
        device.flatten("X")


@pytest.mark.filterwarnings("ignore:Casting complex", "ignore:invalid value")
@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("of", FEW)
def test_astype(of, to) -> None:
    for device, host in (pair for number, pair in enumerate(arrays(of)) if number % 3 == 0):
        check(device.astype(to), host.astype(to))
    low, high = ((-5, 5) if of[0] in "ifc" else (0, 5)) if to[0] in "ifcb" else (0, 5)
    host = np.linspace(low, high, 33).astype(of)
    check(cuda.to_device(host).astype(to), host.astype(to))


def test_astype_copies_only_what_it_must() -> None:
    device = cuda.to_device(np.arange(6).reshape(2, 3))
    assert device.astype(np.int64, copy=False) is device
    assert device.astype(np.int64).address != device.address
    assert device.astype(np.int64, order="F", copy=False).is_f_contiguous()
    assert device.astype("f4", order="F").strides == (4, 8)
    assert device.T.astype("f4").is_f_contiguous()
    with pytest.raises(TypeError, match="according to the rule 'safe'"):
        device.astype("i4", casting="safe")
    with pytest.raises(ValueError, match="casting must be one of"):
        device.astype("i4", casting="anything")
    with pytest.raises(TypeError, match="cannot be converted to float64: copy them to the host first"):
        cuda.to_device(np.array(["1.5"])).astype(float)
    with pytest.warns(np.exceptions.ComplexWarning):
        check(cuda.to_device(np.array([1 + 2j])).astype("f4"), np.array([1], "f4"))


@pytest.mark.parametrize("dtype", [*DTYPES, "S3", "M8[D]"])
def test_fill(dtype) -> None:
    value = {"S3": b"abc", "M8[D]": np.datetime64("2020-02-02")}.get(dtype, 1)
    for key in (*KEYS, np.s_[..., 0], np.s_[1, 2, 3, ...]):
        host = np.zeros((3, 4, 5), dtype)
        device = cuda.to_device(host)
        device[key].fill(value) if np.ndim(host[key]) or Ellipsis in np.atleast_1d(key) else device[(*key, ...)].fill(
            value
        )
        host[key] = value
        np.testing.assert_array_equal(device.copy_to_host(), host)


def test_what_fill_does_not_take() -> None:
    device = cuda.to_device(np.zeros(3, "u1"))
    with pytest.raises(ValueError, match=r"fill\(\) takes a number, not an array of 1 dimensions"):
        device.fill([1, 2, 3])
    with pytest.raises(OverflowError):
        device.fill(256)
    with pytest.raises(TypeError, match="complex"):
        cuda.to_device(np.zeros(3)).fill(1j)


def test_views_of_other_shapes_where_numpy_makes_one() -> None:
    shapes = [
        (60,),
        (-1,),
        (15, 4),
        (5, 12),
        (3, 2, 2, 5),
        (3, 1, 4, 5),
        (1, 60),
        (12, 5),
        (2, 30),
        (3, -1),
        (4, 15),
        (6,),
    ]
    views = 0
    for device, host in arrays():
        for shape in [
            *shapes,
            (host.size,),
            (2, -1),
            (*host.shape, 1),
            (1, *host.shape[::-1]),
            (-1, 2, 3),
            (2, 2, 5),
            (2, 4),
        ]:
            for order in "CF":
                try:
                    expected = host.reshape(shape, order=order)
                except ValueError:
                    with pytest.raises(ValueError, match="changes the size"):
                        device.reshape(shape, order=order)
                    continue
                if np.shares_memory(expected, host) or not host.size:
                    check(device.reshape(shape, order=order), expected)
                    views += 1
                else:
                    with pytest.raises(NotImplementedError, match="reshape would require copy"):
                        device.reshape(shape, order=order)
    assert views > 100


def test_swapped_axes() -> None:
    for device, host in arrays():
        for one in range(-host.ndim, host.ndim):
            for other in range(-host.ndim, host.ndim):
                check(device.swapaxes(one, other), host.swapaxes(one, other))
    with pytest.raises(np.exceptions.AxisError, match="axis 3 is out of bounds for array of dimension 3"):
        cuda.device_array((2, 3, 4)).swapaxes(0, 3)


@pytest.mark.parametrize("dtype", [*DTYPES, "S3", "M8[s]"])
def test_items_and_lists(dtype) -> None:
    for device, host in arrays(dtype):
        assert device.tolist() == host.tolist()
        assert type(device.tolist()) is type(host.tolist())
        if host.size == 1:
            assert device.item() == host.item()
            assert type(device.item()) is type(host.item())
        elif host.size:
            for number in (0, -1, host.size // 2):
                assert device.item(number) == host.item(number)
            assert device.item(*[0] * host.ndim) == host.item(*[0] * host.ndim)
            assert device.item((-1,) * host.ndim) == host.item((-1,) * host.ndim)


def test_items_that_there_are_not() -> None:
    device = cuda.to_device(np.arange(6).reshape(2, 3))
    with pytest.raises(ValueError, match="can only convert an array of size 1"):
        device.item()
    for index in (6, -7):
        with pytest.raises(IndexError, match=f"index {index} is out of bounds for size 6"):
            device.item(index)
    with pytest.raises(ValueError, match="incorrect number of indices"):
        device.item(0, 0, 0)


def test_arrays_as_numbers() -> None:
    for host in (np.array(3), np.array(True), np.array(-2.5), np.array(0), np.float32(0)):
        device = cuda.to_device(host)
        assert bool(device) == bool(host)
        assert (int(device), float(device), complex(device)) == (int(host), float(host), complex(host))
    assert complex(cuda.to_device(np.array(1j))) == 1j
    assert list(range(5))[cuda.to_device(np.array(3))] == 3
    with pytest.raises(TypeError, match="only integer scalar arrays"):
        [1, 2][cuda.to_device(np.array(1.0))]
    with pytest.raises(TypeError, match="only 0-dimensional arrays"):
        float(cuda.to_device(np.array([1.0])))
    with pytest.raises(ValueError, match=r"ambiguous. Use a.any\(\) or a.all\(\)"):
        bool(cuda.to_device(np.zeros(2)))
    with pytest.raises(ValueError, match="empty array is ambiguous"):
        bool(cuda.to_device(np.zeros(0)))
    with pytest.raises(TypeError, match="unhashable"):
        hash(cuda.to_device(np.zeros(2)))


def test_parts_of_complex_numbers() -> None:
    for dtype in ("c8", "c16"):
        for device, host in arrays(dtype):
            device[...] = host * (1 + 2j)
            check(device.real, (host * (1 + 2j)).real)
            check(device.imag, (host * (1 + 2j)).imag)
    device.imag[...] = 7
    assert set(np.ravel(device.copy_to_host().imag).tolist()) == {7}
    real = cuda.to_device(np.arange(3.0))
    assert real.real is real
    check(real.imag, np.zeros(3))


def test_records() -> None:
    dtype = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2", (2,))])
    host = np.zeros(3, dtype)
    device = cuda.to_device(host)
    device[1] = (1, 2.5, (3, 4))
    device[[0, 2]] = [(5, 6, (7, 8)), (9, 10, (11, 12))]
    host[1] = (1, 2.5, (3, 4))
    host[[0, 2]] = np.array([(5, 6, (7, 8)), (9, 10, (11, 12))], dtype)
    np.testing.assert_array_equal(device.copy_to_host(), host)
    np.testing.assert_array_equal(device[::-1].copy().copy_to_host(), host[::-1])
    copy = device[1].copy()
    assert isinstance(copy, cuda.DeviceRecord)
    copy["b"] = 7
    assert (device[1]["b"], copy["b"], copy["c"].tolist()) == (2.5, 7, [3, 4])
    assert device[1].item()[:2] == host[1].item()[:2] == (1, 2.5)
    assert device["c"].sum(axis=1).tolist() == host["c"].sum(axis=1).tolist()
    device[...] = (1, 1, (1, 1))
    assert (device["a"].tolist(), device["c"].tolist()) == ([1] * 3, [[1, 1]] * 3)


def test_numpy_copies() -> None:
    device = cuda.to_device(np.arange(3))
    assert np.array(device, copy=True).tolist() == [0, 1, 2]
    assert np.asarray(device, dtype="f4").dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(device, copy=False)


def test_copies_are_in_the_streams_of_arrays() -> None:
    stream = cuda.stream()
    device = cuda.to_device(np.arange(6.0).reshape(2, 3), stream=stream)
    for made in (
        device.copy(), device.astype("f4"), device.flatten(), device.T, device.reshape(6), device.swapaxes(0, 1),
        device[[0]], device + 1, device.sum(), device.mean(axis=0), device.argmax(), device @ device.T, abs(device),
        device == device,
    ):  # fmt: skip
        assert made.stream is stream
    other = cuda.stream()
    assert device.copy(stream=other).stream is other
    both = device + cuda.to_device(np.ones(3), stream=other)
    assert both.stream is stream
    np.testing.assert_array_equal(both.copy_to_host(), np.arange(6.0).reshape(2, 3) + 1)
    target = cuda.device_array((2, 3), stream=other)
    assert np.add(device, 1, out=target) is target
    assert target.copy_to_host().tolist() == [[1, 2, 3], [4, 5, 6]]
