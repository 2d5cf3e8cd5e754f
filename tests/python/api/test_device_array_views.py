"""Device arrays: indices, views, assignments, reshapes without a copy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from weft import cuda

BASE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[0], np.s_[-1], np.s_[1, 2, 3], np.s_[:], np.s_[...], np.s_[..., 1], np.s_[0, ...], np.s_[:, ::-1],
        np.s_[1, :, ::2], np.s_[:, 1:2], np.s_[::-1, ::-2, ::-3], np.s_[5:], np.s_[:, -2, ..., 1], np.s_[np.int8(1)],
        np.s_[0, 0, 0, ...],
    ],
)  # fmt: skip
def test_views_and_elements(key) -> None:
    device = cuda.to_device(BASE)
    found = device[key]
    expected = BASE[key]
    assert np.array_equal(np.asarray(found), expected)
    if expected.ndim:
        assert isinstance(found, cuda.DeviceNDArray)
        assert found.shape == expected.shape
        assert not found.size or found.strides == expected.strides


@pytest.mark.parametrize("key", [np.s_[2], np.s_[0, 3], np.s_[0, 0, 0, 0], np.s_[..., ...]])
def test_wrong_indices(key) -> None:
    with pytest.raises(IndexError):
        cuda.to_device(BASE)[key]


@pytest.mark.parametrize("key", [1.5, "a", True, [0.5, 1], ["a"], np.array([True, False, True]), [0, 2]])
def test_keys_that_are_no_indices(key) -> None:
    with pytest.raises((TypeError, IndexError)):
        cuda.to_device(BASE)[key]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (np.s_[:], 5), (np.s_[0, 1, 2], 9.7), (np.s_[:, 1], np.arange(4)), (np.s_[..., 1], 3),
        (np.s_[::-1, ::2], BASE[:, ::2]),
        (np.s_[0], np.ones((1, 1, 4))), (np.s_[:, :, ::2], np.arange(3)[:, None]), (np.s_[1:1], 3),
    ],
)  # fmt: skip
def test_assignment(key, value) -> None:
    device, host = cuda.to_device(BASE), BASE.copy()
    device[key] = value
    host[key] = value
    assert np.array_equal(device, host)
    device, host = cuda.to_device(BASE), BASE.copy()
    if isinstance(value, np.ndarray):
        device[key] = cuda.to_device(value)
        host[key] = value
        assert np.array_equal(device, host)


@pytest.mark.parametrize(
    "shape",
    [
        *(6, np.int32(6), np.array(6), np.array(6, np.uint8), [6], (np.int64(6),), np.array([6]), np.array([2, 3])),
        *([np.int16(2), 3], (np.uint64(1), np.int8(2), 3), np.array([], int), np.array([3, 2], np.uint8)),
    ],
)
def test_shapes_are_integers_of_numpys_too(shape) -> None:
    expected = np.empty(shape).shape
    for make in (cuda.device_array, cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
        assert make(shape).shape == expected
        assert make(shape, np.int8, order="F").shape == expected
    if expected:
        assert cuda.to_device(np.arange(6)).reshape(shape).shape == expected


@pytest.mark.parametrize("shape", [1.5, np.float64(2), np.array(2.0), np.array([2.0]), [1.5], "3", None, [[1, 2]]])
def test_other_shapes_are_refused(shape) -> None:
    for make in (cuda.device_array, cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
        with pytest.raises(TypeError, match="shape must be an integer or integers"):
            make(shape)
    with pytest.raises(TypeError, match="the dimensions of a shape must be integers"):
        cuda.to_device(np.arange(6)).reshape(shape)


@pytest.mark.parametrize("shape", [-4, (3, -1), np.int64(-2), np.array([2, -1])])
def test_shapes_are_not_negative(shape) -> None:
    for make in (cuda.device_array, cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
        with pytest.raises(ValueError, match="cannot be negative"):
            make(shape)


def test_wrong_assignments() -> None:
    device = cuda.to_device(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Can't assign 2-D array to 1-D self"):
        device[0] = np.zeros((2, 3))
    with pytest.raises(ValueError, match="Can't copy sequence with size 2 to array axis 1 with dimension 3"):
        device[:] = np.zeros(2)


def test_reshape_ravel_transpose() -> None:
    device = cuda.to_device(BASE)
    assert np.array_equal(device.reshape(6, 4), BASE.reshape(6, 4))
    assert np.array_equal(device.reshape((4, -1)), BASE.reshape(4, -1))
    assert np.array_equal(device.T.reshape(6, 4, order="F"), BASE.T.reshape((6, 4), order="F"))
    assert np.array_equal(device.ravel(), BASE.ravel())
    assert np.array_equal(device.T.ravel(order="F"), BASE.T.ravel(order="F"))
    assert np.array_equal(device.T, BASE.T)
    assert np.array_equal(device.transpose((1, -1, 0)), BASE.transpose(1, 2, 0))
    assert np.array_equal(device[:1].squeeze(), BASE[:1].squeeze())
    assert device[:1, :1].squeeze(axis=0).shape == (1, 4)
    assert [part.copy_to_host().tolist() for part in device.ravel().split(10)] == [
        list(range(10)), list(range(10, 20)), list(range(20, 24))
    ]  # fmt: skip
    with pytest.raises(ValueError, match="reshape changes the size of the array"):
        device.reshape(5, 5)
    with pytest.raises(NotImplementedError, match="copy"):
        device.T.reshape(24)
    with pytest.raises(NotImplementedError, match="copy"):
        device[:, ::2].ravel()
    with pytest.raises(ValueError, match="not equal to one"):
        device.squeeze(axis=1)


def test_view_with_another_dtype() -> None:
    device = cuda.to_device(BASE)
    assert np.array_equal(device.view(np.int32), BASE.view(np.int32))
    assert np.array_equal(device.view("u1").view("i8"), BASE)
    with pytest.raises(ValueError, match="divisor"):
        cuda.to_device(np.zeros(3, np.int8)).view(np.int16)


def test_views_keep_the_memory_alive() -> None:
    view = cuda.to_device(np.arange(1000))[500:]
    for _ in range(10):
        cuda.to_device(np.zeros(1000, int))
    assert view.copy_to_host().tolist() == list(range(500, 1000))


def test_huge_slices_are_clipped() -> None:
    host = np.arange(10)
    device = cuda.to_device(host)
    for huge in (2**63 - 1, 2**63, 2**64, 2**70):
        for key in (
            np.s_[huge:],
            np.s_[:huge],
            np.s_[-huge:],
            np.s_[:-huge],
            np.s_[::huge],
            np.s_[::-huge],
            np.s_[5:-huge:-huge],
            np.s_[-huge:huge:3],
        ):
            assert device[key].copy_to_host().tolist() == host.tolist()[key], key
            assert device[key].shape == (len(host.tolist()[key]),)
        for index in (huge, -huge):
            with pytest.raises(IndexError, match="out of bounds for axis 0 with size 10"):
                device[index]


def test_writing_into_gaps() -> None:
    rng = np.random.default_rng(0)
    base = rng.random((3, 4, 5, 6))
    for order in ("C", "F"):
        host = np.array(base, order=order)
        device = cuda.to_device(host)
        for key in (
            np.s_[1],
            np.s_[:, 1],
            np.s_[..., 1],
            np.s_[::2, ::-1, 1:3],
            np.s_[::-1, ::-1, ::-1, ::-1],
            np.s_[:, 2:1:-1, ::4, ::3],
            np.s_[2, 3, 4, ::2],
            np.s_[:, :0],
            np.s_[1:2, :, 4:3:-1],
        ):
            value = rng.random(host[key].shape)
            host[key] = value
            device[key] = value
            np.testing.assert_array_equal(device.copy_to_host(), host)
            host.T[...] = device.T.copy_to_host() + 1
            device[key].T.copy_to_device(host[key].T)
            device.copy_to_device(host)


def assign(array, key, value):
    """The result of an assignment: the array's elements, or the error or warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array[key] = value
    except Exception as error:
        return type(error), str(error)
    return np.asarray(array).tolist()


@pytest.mark.parametrize(
    ("dtype", "key", "value"),
    [
        ("f8", 0, 1j),
        ("f4", slice(None), 1 + 0j),
        ("i4", slice(0, 2), [1, 2j]),
        ("f8", slice(None), np.array([1j, 2, 3])),
        ("f8", 1, np.complex64(2 + 1j)),
        ("c8", 1, 2 + 1j),
        ("u1", 0, 300),
        ("u1", 0, -1),
        ("u1", slice(None), np.array([256, 257, 258])),
        ("i2", 0, 1.9),
        ("?", slice(None), [0, 5, 0.0]),
        ("f8", 0, "no number"),
        ("f8", 0, None),
        ("f8", 2, np.float32(0.1)),
    ],
)
def test_an_assignment_takes_what_numpy_takes(dtype, key, value) -> None:
    host = np.zeros(3, dtype)
    device = cuda.to_device(host)
    expected = assign(host, key, value)
    np.testing.assert_equal(assign(device, key, value), expected)
    # An assignment that fails changes no element (NumPy may change some).
    np.testing.assert_equal(device.copy_to_host().tolist(), expected if isinstance(expected, list) else [0, 0, 0])


def test_a_complex_number_is_no_real_one() -> None:
    device = cuda.to_device(np.zeros(3))
    with pytest.raises(TypeError, match="complex"):
        device[0] = 1j


@cuda.jit
def bump(x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] += 1


@pytest.mark.parametrize("key", [np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[:, 1:3]], ids=str)
def test_kernels_write_through_views(key):
    host = np.arange(20).reshape(4, 5)
    device = cuda.to_device(host)
    bump[(1, 1), (8, 8)](device[key])
    host[key] += 1
    np.testing.assert_array_equal(device.copy_to_host(), host)
