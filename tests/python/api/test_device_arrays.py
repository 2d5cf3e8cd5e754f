"""Device arrays: round trips of dtypes, orders and strides; attributes; views; conversions."""

import numpy as np
import pytest
from harness import launch
from weft import cuda

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 complex64 complex128".split()


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


def test_copy_to_host_into_an_array():
    host = np.arange(6.0)
    device = cuda.to_device(host)
    target = np.zeros(6)
    assert device.copy_to_host(target) is target
    np.testing.assert_array_equal(target, host)
    with pytest.raises(TypeError, match="dtype"):
        device.copy_to_host(np.zeros(6, np.float32))
    with pytest.raises(ValueError, match="shape"):
        device.copy_to_host(np.zeros(5))


def test_copy_to_device():
    device = cuda.to_device(np.zeros(4))
    device.copy_to_device(np.arange(4.0))
    assert device.copy_to_host().tolist() == [0, 1, 2, 3]
    device.copy_to_device(cuda.to_device(np.full(4, 7.0)))
    assert device.copy_to_host().tolist() == [7] * 4


@pytest.mark.parametrize("dtype", [None, np.float32, "int16", np.dtype("complex64")])
def test_device_array(dtype):
    device = cuda.device_array((3, 4)) if dtype is None else cuda.device_array((3, 4), dtype=dtype)
    assert device.dtype == np.dtype(dtype or np.float64)
    assert device.shape == (3, 4)
    assert cuda.device_array(5, np.int8).shape == (5,)
    assert cuda.device_array((3, 4), np.int8, order="F").strides == (1, 3)


def test_device_array_like():
    for host in (np.zeros((3, 4), np.int16), np.zeros((3, 4), order="F"), np.zeros(7, np.complex64)):
        for source in (host, cuda.to_device(host)):
            like = cuda.device_array_like(source)
            assert (like.shape, like.dtype, like.strides) == (host.shape, host.dtype, host.strides)


def test_python_values_become_arrays():
    assert cuda.to_device([1.5, 2.5]).copy_to_host().tolist() == [1.5, 2.5]
    device = cuda.to_device(np.arange(3))
    assert cuda.to_device(device) is device


def test_array_protocol_and_elements():
    host = np.arange(12).reshape(3, 4)
    device = cuda.to_device(host)
    np.testing.assert_array_equal(np.asarray(device), host)
    np.testing.assert_equal(device[1, 2], host[1, 2])
    np.testing.assert_array_equal(device[1].copy_to_host(), host[1])
    np.testing.assert_array_equal(device[:, 1:3].copy_to_host(), host[:, 1:3])
    np.testing.assert_array_equal(device[::2, ::-1].copy_to_host(), host[::2, ::-1])
    with pytest.raises(IndexError):
        device[3, 0]


def test_assignment():
    host = np.arange(12.0).reshape(3, 4)
    device = cuda.to_device(host)
    for target in (host, device):
        target[1] = 5
        target[:, 0] = np.array([7.0, 8.0, 9.0])
        target[2, 3] = -1
    np.testing.assert_array_equal(device.copy_to_host(), host)


def test_reshape_and_ravel():
    device = cuda.to_device(np.arange(12))
    assert device.reshape(3, 4).shape == (3, 4)
    assert device.reshape((2, -1)).shape == (2, 6)
    np.testing.assert_array_equal(device.reshape(3, 4)[1].copy_to_host(), [4, 5, 6, 7])
    assert device.reshape(3, 4).ravel().shape == (12,)
    with pytest.raises(ValueError, match="size"):
        device.reshape(5, 5)


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


def test_a_view_keeps_its_memory_alive():
    view = cuda.to_device(np.arange(1000))[10:20]
    for _ in range(10):
        cuda.device_array(1000, np.int64)
    assert view.copy_to_host().tolist() == list(range(10, 20))


def test_host_arrays_are_written_back():
    for order in "CF":
        host = np.zeros((3, 4), order=order)
        bump[(1, 1), (8, 8)](host)
        assert (host == 1).all()
    part = np.zeros((6, 8))
    bump[(1, 1), (8, 8)](part[::2, ::2])
    assert part.sum() == part[::2, ::2].size
    assert (part[::2, ::2] == 1).all()


@cuda.jit
def copies(source, target):
    i = cuda.grid(1)
    if i < target.size:
        target[i] = source[i]


def test_readonly_host_arrays_are_read():
    source = np.arange(4.0)
    source.flags.writeable = False
    assert launch(copies, 1, 4, source, np.zeros(4))[1].tolist() == [0, 1, 2, 3]


def test_readonly_host_arrays_are_not_written():
    target = np.zeros(4)
    target.flags.writeable = False
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        copies[1, 4](np.ones(4), target)
    assert not target.any()


@pytest.mark.parametrize("dtype", [">f4", ">i8", "f2", "U3", "M8[s]", object])
def test_dtypes_that_kernels_do_not_have(dtype):
    host = np.zeros(4, dtype)
    with pytest.raises(TypeError):
        copies[1, 4](host, np.zeros(4))


def test_out_and_in():
    source, target = np.arange(4.0), np.zeros(4)
    copies[1, 4](cuda.In(source), cuda.Out(target))
    assert target.tolist() == [0, 1, 2, 3]


def test_cuda_array_interface(device):
    array = cuda.to_device(np.arange(6.0).reshape(2, 3))
    if device == "cpu":
        assert not hasattr(array, "__cuda_array_interface__")
        return
    interface = array.__cuda_array_interface__
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == "<f8"
    view = cuda.as_cuda_array(array)
    bump[(1, 1), (4, 4)](view)
    assert array.copy_to_host()[0, 0] == 1
