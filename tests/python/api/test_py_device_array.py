"""Device arrays: allocation, copies, views, element access."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import weft
from weft import cuda

BASE = np.arange(24).reshape(2, 3, 4)


def test_to_device_and_back() -> None:
    for host in (BASE, BASE.T, np.asfortranarray(BASE), BASE[0, 0, 0], np.zeros((0, 3)), [1, 2.5], 7, True, 1j):
        device = cuda.to_device(host)
        array = np.asarray(host)
        assert device.shape == array.shape
        assert device.dtype == array.dtype
        assert device.strides == array.strides or not array.size
        back = device.copy_to_host()
        assert np.array_equal(back, array)
        assert back.dtype == array.dtype
        assert device.nbytes == array.nbytes
        np.testing.assert_array_equal(device, array)


def test_gaps_of_host_arrays_are_left_out() -> None:
    view = BASE[:, ::2, 1:3]
    device = cuda.to_device(view)
    assert np.array_equal(device.copy_to_host(), view)
    assert device.is_c_contiguous()
    transposed = cuda.device_array_like(BASE.transpose(1, 0, 2)[:, :, ::2])
    assert transposed.shape == (3, 2, 2)
    assert transposed.strides == (16, 48, 8)


def test_to_device_into_and_without_copy() -> None:
    target = cuda.device_array(BASE.shape, BASE.dtype)
    assert cuda.to_device(BASE, to=target) is target
    assert np.array_equal(target, BASE)
    assert cuda.to_device(target) is target
    assert cuda.to_device(BASE, copy=False).shape == BASE.shape


def test_shapes_and_orders_that_no_array_has() -> None:
    for shape in (-1, (2, -3)):
        with pytest.raises(ValueError, match="extents of an array cannot be negative"):
            cuda.device_array(shape)
    with pytest.raises(TypeError, match=r"shape must be an integer or integers, got 3\.0"):
        cuda.device_array(3.0)
    for make in (cuda.device_array, cuda.pinned_array):
        with pytest.raises(ValueError, match="order must be 'C' or 'F', not 'K'"):
            make(3, order="K")


def test_device_array() -> None:
    array = cuda.device_array(3)
    assert (array.shape, array.dtype, array.ndim, array.size, array.nbytes, array.itemsize) == (
        (3,),
        np.float64,
        1,
        3,
        24,
        8,
    )
    assert cuda.device_array((2, 3), np.int8, order="F").strides == (1, 2)
    assert cuda.device_array((2, 3), weft.float32).dtype == np.float32
    assert cuda.device_array((2, 3), "f4", strides=(16, 4)).alloc_size == 28
    assert cuda.device_array((), np.int8).size == 1
    with pytest.raises(TypeError, match="shape must be an integer"):
        cuda.device_array((2, 1.5))
    with pytest.raises(ValueError, match="differ in length"):
        cuda.device_array((2, 3), strides=(8,))
    with pytest.raises(TypeError, match="float16"):
        cuda.device_array(3, np.float16)


def test_copy_to_host_into() -> None:
    device = cuda.to_device(BASE)
    out = np.zeros_like(BASE)
    assert device.copy_to_host(out) is out
    assert np.array_equal(out, BASE)
    strided = np.zeros((2, 3, 8), BASE.dtype)[:, :, ::2]
    device.copy_to_host(strided)
    assert np.array_equal(strided, BASE)
    device[:, 1].copy_to_host(strided[:, 0])
    assert np.array_equal(strided[:, 0], BASE[:, 1])
    with pytest.raises(TypeError, match=r"incompatible dtype: float64 vs\. int64"):
        device.copy_to_host(np.zeros(BASE.shape))
    with pytest.raises(ValueError, match="incompatible shape"):
        device.copy_to_host(np.zeros((3, 2, 4), int))
    locked = np.zeros_like(BASE)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        device.copy_to_host(locked)


def test_copy_to_device() -> None:
    device = cuda.device_array_like(BASE)
    device.copy_to_device(BASE)
    assert np.array_equal(device, BASE)
    device.copy_to_device(cuda.to_device(BASE + 1))
    assert np.array_equal(device, BASE + 1)
    device.T.copy_to_device(BASE.T)
    assert np.array_equal(device, BASE)
    device[:, :, 1].copy_to_device(cuda.to_device(BASE)[:, :, 2])
    assert np.array_equal(device[:, :, 1].copy_to_host(), BASE[:, :, 2])
    with pytest.raises(ValueError, match="incompatible shape"):
        device.copy_to_device(BASE[0])


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


@pytest.mark.parametrize("key", [1.5, "a", None, True, [0, 1], np.array([True, False])])
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


def test_protocols() -> None:
    device = cuda.to_device(BASE)
    assert len(device) == 2
    assert [part.shape for part in device] == [(3, 4)] * 2
    assert device.flags == {"C_CONTIGUOUS": True, "F_CONTIGUOUS": False}
    assert np.asarray(device, dtype=np.float32).dtype == np.float32
    assert np.zeros_like(device).shape == BASE.shape
    assert np.array_equal(pickle.loads(pickle.dumps(device)), BASE)
    assert bool(cuda.to_device(np.ones(1)))
    assert "shape=(2, 3, 4) dtype=int64" in repr(device)
    assert device.device_ctypes_pointer.value == device.address
    with pytest.raises(ValueError, match="without a copy"):
        device.__array__(copy=False)
    with pytest.raises(TypeError):
        len(cuda.to_device(3))


def test_views_keep_the_memory_alive() -> None:
    view = cuda.to_device(np.arange(1000))[500:]
    for _ in range(10):
        cuda.to_device(np.zeros(1000, int))
    assert view.copy_to_host().tolist() == list(range(500, 1000))


class Foreign:
    """An array of another library."""

    def __init__(self, interface) -> None:
        self.__cuda_array_interface__ = interface


def test_cuda_array_interface() -> None:
    @cuda.jit
    def touch(x):
        x[0] = 1

    device = cuda.to_device(np.arange(3.0))
    if cuda.get_current_device().kind == "cpu":
        assert not hasattr(device, "__cuda_array_interface__")
        foreign = Foreign({"shape": (3,), "typestr": "<f8", "data": (16, False), "version": 3})
        with pytest.raises(weft.LaunchError, match="GPU memory, but kernels run on the CPU"):
            cuda.as_cuda_array(foreign)
        with pytest.raises(weft.LaunchError, match=r"argument 1 \(`x`\) .*Foreign is in GPU memory"):
            touch[1, 1](foreign)
        assert cuda.is_cuda_array(foreign)
        return
    foreign = Foreign(device.__cuda_array_interface__)
    same = cuda.to_device(foreign)
    assert same.address == device.address
    touch[1, 1](foreign)
    assert device.copy_to_host().tolist() == [1, 1, 2]


def test_as_cuda_array_needs_the_interface() -> None:
    with pytest.raises(TypeError, match="doesn't implement the cuda array interface"):
        cuda.as_cuda_array(np.zeros(3))
    assert not cuda.is_cuda_array(np.zeros(3))
    device = cuda.device_array(3)
    assert cuda.as_cuda_array(device) is device


def test_pinned_arrays_are_arrays() -> None:
    assert cuda.pinned_array((2, 3), np.int8, order="F").flags.f_contiguous
    assert cuda.pinned_array_like(BASE).shape == BASE.shape


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


def test_too_big_an_array_is_an_error_with_its_shape_and_size() -> None:
    for shape, size in (
        ((2**40, 2**40), 8 << 80),
        (2**70, 8 << 70),
        ((2**31, 2**31), 8 << 62),
        ((0, 2**70), 8 << 70),
    ):
        with pytest.raises(ValueError, match="is too big") as caught:
            cuda.device_array(shape)
        assert str(caught.value) == f"a device array of shape {shape!r} and dtype float64 is too big: {size} bytes"
    for strides in (2**70, 2**61):
        with pytest.raises(ValueError, match="is too big"):
            cuda.device_array(9, strides=strides)
    with pytest.raises(ValueError, match="is too big"):
        cuda.device_array((2**40, 2**40), strides=(0, 0))
    with pytest.raises(MemoryError, match=r"cannot allocate 8\.0 TiB \(8796093022208 bytes\)"):
        cuda.device_array(2**40)
    # More elements than there are addresses, all of them the same one.
    one = cuda.device_array(1)
    with pytest.raises(
        ValueError, match=r"an array of shape \(1099511627776, 1099511627776\) and float64 elements is too"
    ):
        type(one)(one.owner, one.address, (2**40, 2**40), (0, 0), "f8", 0)


def test_an_extent_is_below_2_48() -> None:
    one = cuda.device_array(1)
    with pytest.raises(ValueError, match=r"an array with 281474976710656 elements along an axis is too big"):
        type(one)(one.owner, one.address, (2**48,), (0,), "f8", 0)
    assert type(one)(one.owner, one.address, (2**48 - 1,), (0,), "f8", 0).shape == (2**48 - 1,)

    @cuda.jit
    def extent(a, r):
        r[0] = a.shape[a.ndim - 1]

    r = np.zeros(1, np.int64)
    for shape in ((2**50,), (0, 2**50)):
        with pytest.raises(ValueError, match=r"1125899906842624 elements along an axis is too big"):
            extent[1, 1](np.broadcast_to(np.float32(1), shape), r)
    extent[1, 1](np.broadcast_to(np.float32(1), (0, 2**47)), r)
    assert r[0] == 2**47


def test_masks_and_lists_are_no_indices() -> None:
    device = cuda.to_device(BASE)
    mask = BASE > 3
    for key in (mask, mask[0], np.array([0, 1]), device):
        with pytest.raises(
            TypeError, match="not indexed with an array of indices or a mask: copy the array to the host"
        ):
            device[key]
        with pytest.raises(TypeError, match="not indexed with an array"):
            device[key] = 1
    with pytest.raises(TypeError, match="not indexed with a list of indices or a mask"):
        device[[0, 1]]
    assert device[np.array(1), 2, 3] == BASE[1, 2, 3]


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


def test_host_arrays_of_any_layout_go_through_a_launch_once() -> None:
    @cuda.jit
    def negate(a):
        i, j = cuda.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            a[i, j] = -a[i, j]

    for view in (np.s_[::2, ::3], np.s_[::-1], np.s_[:, ::-2]):
        host = np.arange(48.0).reshape(6, 8)
        expected = host.copy()
        expected[view] *= -1
        negate[(1, 1), (8, 8)](host[view])
        np.testing.assert_array_equal(host, expected)


def assign(array, key, value):
    """What an assignment makes of an array: its elements, or the error or warning."""
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
    # Nothing is assigned beside an error (NumPy stops in the middle).
    np.testing.assert_equal(device.copy_to_host().tolist(), expected if isinstance(expected, list) else [0, 0, 0])


def test_a_complex_number_is_no_real_one() -> None:
    device = cuda.to_device(np.zeros(3))
    with pytest.raises(TypeError, match="complex"):
        device[0] = 1j


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_an_array_like_another_has_its_order(axes) -> None:
    host = np.zeros((2, 3, 4), "i2").transpose(axes)
    for like in (cuda.to_device(host), host):
        pinned = cuda.pinned_array_like(like)
        assert (pinned.shape, pinned.dtype, pinned.strides) == (host.shape, host.dtype, host.strides)
        device = cuda.device_array_like(like)
        assert (device.shape, device.dtype, device.strides) == (host.shape, host.dtype, host.strides)
    gaps = cuda.pinned_array_like(cuda.to_device(np.zeros((4, 6), order="F"))[::2, ::3])
    assert (gaps.shape, gaps.strides) == ((2, 2), (8, 16))
    assert cuda.pinned_array_like([1.0, 2.0]).shape == (2,)
