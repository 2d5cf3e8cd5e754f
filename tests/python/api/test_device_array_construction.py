"""Device arrays that are constructed by their class, as in numba: any layout, in new or existing memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from weft import cuda

BASE = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
RECORDS = np.dtype([("a", np.int32), ("b", np.float64)], align=True)

VIEWS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[1:, ::2, 1:4],
    lambda x: x[::-1, :, ::-1],
    lambda x: x[:, 2, ::-2],
    lambda x: x[2, 3, 4:],
    lambda x: x[1:1],
    lambda x: x[..., None],
]


@cuda.jit
def twice(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] *= 2


@pytest.mark.parametrize("view", VIEWS)
def test_an_array_is_made_again_of_what_it_tells(view) -> None:
    host = BASE.copy()
    array = view(cuda.to_device(host))
    again = [
        cuda.DeviceNDArray(shape=array.shape, strides=array.strides, dtype=array.dtype, gpu_data=array.gpu_data),
        cuda.DeviceNDArray(array.shape, array.strides, array.dtype, 0, array.gpu_data),
        cuda.DeviceNDArray(array.shape, array.strides, array.dtype.str, gpu_data=array),
    ]
    for other in again:
        np.testing.assert_array_equal(other.copy_to_host(), view(host))
        assert (other.shape, other.strides, other.dtype) == (array.shape, array.strides, array.dtype)
        other[...] = 7
        view(host)[...] = 7
        np.testing.assert_array_equal(array.copy_to_host(), view(host))
        array[...] = 3
        view(host)[...] = 3


def test_memory_is_read_as_other_elements() -> None:
    x = cuda.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    flat = cuda.DeviceNDArray(shape=(x.nbytes,), strides=(1,), dtype=np.dtype("u1"), gpu_data=x.gpu_data)
    assert flat.copy_to_host().tobytes() == np.arange(6, dtype=np.float32).tobytes()
    again = cuda.DeviceNDArray((2, 3), (12, 4), np.float32, gpu_data=flat.gpu_data)
    twice[1, 1](again)
    np.testing.assert_array_equal(x.copy_to_host(), 2 * np.arange(6, dtype=np.float32).reshape(2, 3))
    column = cuda.DeviceNDArray(2, 12, np.float32, gpu_data=x.gpu_data)
    assert column.copy_to_host().tolist() == [0, 6]


def test_the_memory_lives_as_long_as_the_array() -> None:
    def made(gpu_data):
        return cuda.DeviceNDArray((1000,), (8,), np.int64, gpu_data=gpu_data)

    def of_an_array():
        return made(cuda.to_device(np.arange(1000)).gpu_data)

    def of_a_context():
        pointer = cuda.current_context().memalloc(8000)
        pointer.memset(1)
        return made(pointer)

    arrays = [of_an_array() for _ in range(5)] + [of_a_context() for _ in range(5)]
    gc.collect()
    others = [cuda.to_device(np.full(1000, -1)) for _ in range(20)]
    for array in arrays[:5]:
        np.testing.assert_array_equal(array.copy_to_host(), np.arange(1000))
    for array in arrays[5:]:
        assert (array.copy_to_host() == 0x0101010101010101).all()
    assert len(others) == 20


def test_new_memory() -> None:
    array = cuda.DeviceNDArray((3, 4), (8, 24), np.float64)
    array[...] = 5
    assert array.is_f_contiguous()
    assert (array.copy_to_host() == 5).all()
    stream = cuda.stream()
    assert cuda.DeviceNDArray(shape=3, strides=4, dtype="i4", stream=stream).stream == stream


def test_a_record_over_memory() -> None:
    host = np.array([(1, 2.0), (3, 4.0)], RECORDS)
    array = cuda.to_device(host)
    record = cuda.DeviceRecord(RECORDS, gpu_data=array.gpu_data.view(RECORDS.itemsize))
    record["b"] = 9
    assert array.copy_to_host()["b"].tolist() == [2, 9]
    with pytest.raises(ValueError, match="spans 16 bytes, and `gpu_data` has 8"):
        cuda.DeviceRecord(RECORDS, gpu_data=array.gpu_data.view(24))


def test_read_only_memory_stays_so() -> None:
    host = np.arange(4)
    locked = cuda.to_device(host)
    view = cuda.DeviceNDArray((4,), (8,), host.dtype, gpu_data=locked)
    assert view.flags.writeable
    with cuda.mapped(np.arange(4)) as mapped:
        assert cuda.DeviceNDArray((4,), (8,), np.int64, gpu_data=mapped).flags.writeable


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (((4,), (8,), "i8"), ValueError, "spans 32 bytes, and `gpu_data` has 24"),
        (((2,), (-24,), "i8"), ValueError, "spans 32 bytes"),
        (((1 << 40, 1 << 40), (1 << 40, 1), "i1"), ValueError, "spans"),
        (((-1,), (8,), "i8"), ValueError, r"cannot be negative, got shape \(-1,\)"),
        (((3,), (8, 8), "i8"), ValueError, "strides and shape differ in length"),
        (((3.0,), (8,), "i8"), TypeError, "shape must be an integer or integers"),
        (((3,), ("8",), "i8"), TypeError, "strides must be an integer or integers"),
        (((3,), None, "i8"), TypeError, "strides must be an integer or integers"),
        (((3,), (8,), "O"), TypeError, "object"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, words) -> None:
    memory = cuda.to_device(np.arange(3)).gpu_data
    with pytest.raises(error, match=words):
        cuda.DeviceNDArray(*arguments, gpu_data=memory)


def test_what_is_no_memory_is_refused() -> None:
    for given in (np.arange(3), 4096, b"bytes"):
        with pytest.raises(TypeError, match="`gpu_data` must be device memory"):
            cuda.DeviceNDArray((1,), (8,), np.int64, gpu_data=given)
    with pytest.raises(TypeError, match="strides"):
        cuda.DeviceNDArray((1,))
    freed = cuda.current_context().memalloc(8)
    freed.free()
    with pytest.raises(RuntimeError, match="was freed"):
        cuda.DeviceNDArray((1,), (8,), np.int64, gpu_data=freed)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (3, 4), (3, 1), (1, 3), (1, 1), (0, 3), (3, 0), (2, 3, 4)])
def test_flags_are_numpys(shape, order) -> None:
    host = np.zeros(shape, order=order)
    device = cuda.device_array(shape, order=order)
    views = [lambda x: x] if not shape else [lambda x: x, lambda x: x.T, lambda x: x[::2], lambda x: x[..., :2]]
    for view in views:
        ours, theirs = view(device).flags, view(host).flags
        for name in ("c_contiguous", "f_contiguous", "contiguous", "fnc", "forc", "writeable"):
            assert getattr(ours, name) is getattr(theirs, name), (name, shape, order)
        for name in (
            "C_CONTIGUOUS",
            "CONTIGUOUS",
            "C",
            "F_CONTIGUOUS",
            "FORTRAN",
            "F",
            "WRITEABLE",
            "W",
            "FNC",
            "FORC",
        ):
            assert ours[name] is theirs[name], (name, shape, order)
        # numba has a dictionary with two items.
        assert ours == {"C_CONTIGUOUS": ours.c_contiguous, "F_CONTIGUOUS": ours.f_contiguous}
    with pytest.raises(KeyError, match="device arrays have no flag 'NOTHING'"):
        device.flags["NOTHING"]


@pytest.mark.parametrize("value", [3, -2.5, 1e300, True, 1 + 2j, np.float32(0.1), np.int8(-3), np.nan])
def test_an_array_without_axes_is_shown_as_its_number(value) -> None:
    host = np.array(value)
    device = cuda.to_device(host)
    assert str(device) == str(host)
    assert f"{device}" == f"{host}"
    if not isinstance(value, complex):
        assert f"{device:8.3f}" == f"{host:8.3f}"
    assert repr(device).startswith("<weft.cuda.DeviceNDArray shape=()")


def test_other_arrays_are_shown_as_they_are() -> None:
    array = cuda.to_device(np.arange(2))
    assert (
        str(array)
        == repr(array)
        == f"{array}"
        == f"<weft.cuda.DeviceNDArray shape=(2,) dtype=int64 device={array.device}>"
    )
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{array:.2f}"
    record = cuda.to_device(np.array([(1, 2.0)], RECORDS)[0])
    assert str(record) == repr(record)


def test_a_total_is_shown_as_a_number() -> None:
    x = cuda.to_device(np.arange(5.0))
    assert f"{x.sum()} {x.mean():.2f} {x.argmax()}" == "10.0 2.00 4"
    assert isinstance(x.sum(), cuda.DeviceNDArray)
