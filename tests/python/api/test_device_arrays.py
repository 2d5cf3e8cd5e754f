"""Device arrays: allocation, round trips of dtypes, orders and strides, attributes, protocols."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import weft
from host_memory import has_driver
from weft import cuda
from weft.cuda._memory.device_array import array_at

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 complex64 complex128".split()


BASE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype):
    host = np.arange(24).reshape(4, 6).astype(dtype)
    device = cuda.to_device(host)
    assert (device.shape, device.dtype, device.ndim, device.size) == ((4, 6), host.dtype, 2, 24)
    assert (device.strides, device.nbytes, len(device)) == (host.strides, host.nbytes, 4)
    back = device.copy_to_host()
    assert back.dtype == host.dtype
    assert back is not host
    np.testing.assert_array_equal(back, host)
    host[0, 0] = 1 - host[0, 0].astype(host.dtype)
    assert device.copy_to_host()[0, 0] == back[0, 0], "the device array is a copy"


@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (1,), (1, 1, 1), (2, 3, 4, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shapes_and_orders(shape, order):
    host = np.asarray(np.arange(np.prod(shape)).reshape(shape), order=order)
    device = cuda.to_device(host)
    assert device.shape == shape
    assert device.strides == host.strides or 0 in shape or max(shape, default=1) == 1
    back = device.copy_to_host()
    assert back.shape == shape
    np.testing.assert_array_equal(back, host)
    if host.ndim > 1 and 0 not in shape:
        assert back.flags.f_contiguous == host.flags.f_contiguous


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
        with pytest.raises(ValueError, match="dimensions of an array cannot be negative"):
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
    with pytest.raises(TypeError, match=r"longdouble|float128"):
        cuda.device_array(3, np.longdouble)


@pytest.mark.parametrize("dtype", [None, np.float32, "int16", np.dtype("complex64")])
def test_device_arrays_of_dtypes(dtype):
    device = cuda.device_array((3, 4)) if dtype is None else cuda.device_array((3, 4), dtype=dtype)
    assert device.dtype == np.dtype(dtype or np.float64)
    assert device.shape == (3, 4)
    assert cuda.device_array(5, np.int8).shape == (5,)
    assert cuda.device_array((3, 4), np.int8, order="F").strides == (1, 3)


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


@pytest.mark.parametrize("dtype", ["i1", "f4", "c16", "S5"])
def test_columns_of_large_arrays_come_to_the_host(dtype) -> None:
    host = np.arange(300 * 500).reshape(300, 500).astype(dtype)
    device = cuda.to_device(host)
    for key in (np.s_[:, 7], np.s_[::-7, ::50], np.s_[:, ::-100], np.s_[::40, :450]):
        for view, expected in ((device[key], host[key]), (device[key].T, host[key].T)):
            found = view.copy_to_host()
            np.testing.assert_array_equal(found, expected)
            assert found.strides == expected.copy(order="K").strides
            into = np.zeros_like(expected)
            np.testing.assert_array_equal(view.copy_to_host(into), expected)


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
        device.copy_to_device(BASE[0, :2])
    with pytest.raises(TypeError, match="`ary`, the array to copy, must be an array, not list"):
        device.copy_to_device([1, 2])


@pytest.mark.parametrize(
    ("of", "to"), [((3,), (1, 3)), ((1, 3), (3,)), ((3, 1, 1), (1, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((), (2, 2))]
)
def test_copies_between_shapes_that_fit(of, to) -> None:
    host = np.arange(1.0, 1 + np.prod(of, dtype=int)).reshape(of)
    expected = np.broadcast_to(host, to) if host.size != np.prod(to, dtype=int) else host.reshape(to)
    target = np.zeros(to)
    assert cuda.to_device(host).copy_to_host(target) is target
    np.testing.assert_array_equal(target, expected)
    strided = np.zeros((*to, 2))[..., 0]
    cuda.to_device(host).copy_to_host(strided)
    np.testing.assert_array_equal(strided, expected)
    for source in (host, cuda.to_device(host)):
        device = cuda.to_device(np.zeros(to))
        device.copy_to_device(source)
        np.testing.assert_array_equal(device.copy_to_host(), expected)


def test_protocols() -> None:
    device = cuda.to_device(BASE)
    assert len(device) == 2
    assert device[1, 2, 3].dtype == BASE.dtype
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


def test_pinned_arrays_are_arrays() -> None:
    assert cuda.pinned_array((2, 3), np.int8, order="F").flags.f_contiguous
    assert cuda.pinned_array_like(BASE).shape == BASE.shape


def test_too_big_an_array_is_an_error_with_its_shape_and_size() -> None:
    for shape, size in (
        ((2**40, 2**40), 8 << 80),
        (2**70, 8 << 70),
        ((2**31, 2**31), 8 << 62),
        ((0, 2**70), 8 << 70),
    ):
        with pytest.raises(ValueError, match="is too large") as caught:
            cuda.device_array(shape)
        assert str(caught.value) == f"a device array of shape {shape!r} and dtype float64 is too large: {size} bytes"
    for strides in (2**70, 2**61):
        with pytest.raises(ValueError, match="is too large"):
            cuda.device_array(9, strides=strides)
    with pytest.raises(ValueError, match="is too large"):
        cuda.device_array((2**40, 2**40), strides=(0, 0))
    with pytest.raises(MemoryError, match=r"cannot allocate 8\.0 TiB \(8796093022208 bytes\)"):
        cuda.device_array(2**40)
    # More elements than there are addresses, all at one address.
    one = cuda.device_array(1)
    with pytest.raises(
        ValueError, match=r"an array of shape \(1099511627776, 1099511627776\) and dtype float64 is too"
    ):
        array_at(one.owner, one.address, (2**40, 2**40), (0, 0), "f8", 0)


def test_an_extent_is_below_2_48() -> None:
    one = cuda.device_array(1)
    with pytest.raises(ValueError, match=r"an array with 281474976710656 elements along an axis is too large"):
        array_at(one.owner, one.address, (2**48,), (0,), "f8", 0)
    assert array_at(one.owner, one.address, (2**48 - 1,), (0,), "f8", 0).shape == (2**48 - 1,)

    @cuda.jit
    def extent(a, r):
        r[0] = a.shape[a.ndim - 1]

    r = np.zeros(1, np.int64)
    for shape in ((2**50,), (0, 2**50)):
        with pytest.raises(ValueError, match=r"1125899906842624 elements along an axis is too large"):
            extent[1, 1](np.broadcast_to(np.float32(1), shape), r)
    extent[1, 1](np.broadcast_to(np.float32(1), (0, 2**47)), r)
    assert r[0] == 2**47


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


class Foreign:
    """An array of another library."""

    def __init__(self, interface) -> None:
        self.__cuda_array_interface__ = interface


def test_cuda_array_interface() -> None:
    @cuda.jit
    def touch(x):
        x[0] = 1

    device = cuda.to_device(np.arange(3.0))
    if cuda.get_current_device().kind == "cpu" and has_driver():
        assert not hasattr(device, "__cuda_array_interface__")
        foreign = Foreign({"shape": (3,), "typestr": "<f8", "data": (16, False), "version": 3})
        with pytest.raises(weft.LaunchError, match="GPU memory, but kernels run on the CPU"):
            cuda.as_cuda_array(foreign)
        with pytest.raises(weft.LaunchError, match=r"argument 1 \(`x`\) .*Foreign is in GPU memory"):
            touch[1, 1](foreign)
        assert cuda.is_cuda_array(foreign)
        return
    interface = device.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"]) == ((3,), "<f8")
    assert cuda.as_cuda_array(device) is device
    foreign = Foreign(interface)
    assert cuda.as_cuda_array(foreign).address == device.address
    same = cuda.to_device(foreign)
    assert same.address == device.address
    touch[1, 1](foreign)
    assert device.copy_to_host().tolist() == [1, 1, 2]


def test_cuda_array_interface_of_elements_that_have_no_typestr() -> None:
    if cuda.get_current_device().kind == "cpu" and has_driver():
        pytest.skip("the arrays are in CPU memory, beside a GPU")

    @cuda.jit
    def record(x):
        x[1].b = x[0].b + x[1].a

    dtype = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 16], "itemsize": 32})
    host = np.zeros(2, dtype)
    host[0]["b"], host[1]["a"] = 2.5, 3
    device = cuda.to_device(host)
    interface = device.__cuda_array_interface__
    assert interface["typestr"] == "|V32"
    # By the interface's type string, and by the array's dtype, as for CuPy.
    foreign = Foreign(interface)
    assert cuda.as_cuda_array(foreign).dtype == dtype
    record[1, 1](foreign)
    assert device.copy_to_host()[1]["b"] == 5.5
    del interface["descr"]
    record[1, 1](device)
    with pytest.raises(TypeError, match=r"dtype \|V32 are not supported"):
        record[1, 1](Foreign(interface))
    foreign = Foreign(interface)
    foreign.dtype = dtype
    assert cuda.as_cuda_array(foreign).dtype == dtype
    overlapping = cuda.to_device(np.zeros(1, {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2]}))
    assert "descr" not in overlapping.__cuda_array_interface__


def test_cuda_array_interface_of_bfloat16() -> None:
    if cuda.get_current_device().kind == "cpu" and has_driver():
        pytest.skip("the arrays are in CPU memory, beside a GPU")

    @cuda.jit
    def double(x):
        x[0] = x[0] * x.dtype.type(2)

    class Named:
        def __str__(self) -> str:
            return "torch.bfloat16"

    bits = cuda.to_device(np.array([0x3FC0], np.uint16))  # 1.5
    foreign = Foreign(dict(bits.__cuda_array_interface__, typestr="<V2"))
    with pytest.raises(TypeError, match=r"dtype \|V2 are not supported"):
        double[1, 1](foreign)
    foreign.dtype = Named()
    double[1, 1](foreign)
    assert bits.copy_to_host()[0] == 0x4040
    ml_dtypes = pytest.importorskip("ml_dtypes")
    foreign.dtype = np.dtype(ml_dtypes.bfloat16)
    assert cuda.as_cuda_array(foreign).dtype == foreign.dtype
    double[1, 1](foreign)
    assert bits.copy_to_host()[0] == 0x40C0


def test_as_cuda_array_needs_the_interface() -> None:
    with pytest.raises(TypeError, match="doesn't implement the cuda array interface"):
        cuda.as_cuda_array(np.zeros(3))
    assert not cuda.is_cuda_array(np.zeros(3))
    device = cuda.device_array(3)
    assert cuda.as_cuda_array(device) is device


def test_names_of_numbas_inner_modules() -> None:
    from weft.cuda.cudadrv.error import CudaSupportError

    array = cuda.to_device(np.zeros(3))
    assert isinstance(array, cuda.cudadrv.devicearray.DeviceNDArray)
    assert cuda.cudadrv.devicearray.is_cuda_ndarray(array)
    assert isinstance(cuda.stream(), cuda.cudadrv.driver.Stream)
    assert CudaSupportError is cuda.CudaSupportError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cuda.nothing


@pytest.mark.parametrize("shape", [0, 5, (), (3,), [2, 3], (2, 0, 4), (1,) * 7, np.int64(4), (np.int8(2), 3)])
@pytest.mark.parametrize("dtype", [None, float, "i2", np.float32, np.dtype("c16"), "S3", [("x", "f4"), ("n", "i1")]])
@pytest.mark.parametrize("order", ["C", "F"])
def test_new_arrays_are_like_numpys(shape, dtype, order):
    made = cuda.device_array(shape, dtype, order=order)
    expected = np.empty(shape, np.float64 if dtype is None else dtype, order)
    assert (made.shape, made.dtype, made.nbytes) == (expected.shape, expected.dtype, expected.nbytes)
    if made.size:
        assert made.strides == expected.strides
    assert made.is_c_contiguous() == expected.flags.c_contiguous
    assert (made.stream, made.readonly, made.device) == (0, False, cuda.get_current_device().id)
    assert made.copy_to_host().shape == expected.shape


@pytest.mark.parametrize("shape", [-1, (2, -1), 2.5, "3", (1 << 40, 1 << 40), None, [[2]]])
def test_shapes_of_new_arrays_that_make_no_sense(shape):
    with pytest.raises((TypeError, ValueError)):
        cuda.device_array(shape)
