"""An advanced tutorial after the course: complex numbers, generalized ufuncs, streams, registers, foreign memory."""

import ctypes
import math

import numpy as np
import pytest
from weft import cuda, guvectorize, int32, uint8, vectorize
from weft.errors import LaunchError


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.jit(device=True)
def mandel(x, y, max_iters):
    c = complex(x, y)
    z = 0.0j
    for i in range(max_iters):
        z = z * z + c
        if (z.real * z.real + z.imag * z.imag) >= 4:
            return i
    return max_iters


@cuda.jit((uint8[:, :], int32))
def create_fractal(image, iters):
    height, width = image.shape
    start_x, start_y = cuda.grid(2)
    grid_x, grid_y = cuda.gridDim.x * cuda.blockDim.x, cuda.gridDim.y * cuda.blockDim.y
    for x in range(start_x, width, grid_x):
        real = -2.0 + x * (3.0 / width)
        for y in range(start_y, height, grid_y):
            imag = -1.0 + y * (2.0 / height)
            image[y, x] = mandel(real, imag, iters)


def test_a_fractal_of_complex_numbers(device):
    height, width = size(device, (10_000, 15_000), (100, 150))
    image = np.zeros((height, width), np.uint8)
    create_fractal[(32, 16), (32, 8)](image, 20)
    rows = np.unique(np.linspace(0, height - 1, 50).astype(int))
    c = (-2 + np.arange(width) * (3 / width)) + 1j * (-1 + rows * (2 / height))[:, None]
    z, expected = np.zeros_like(c), np.full(c.shape, 20)
    for step in range(20):
        z = np.where(expected == 20, z * z + c, z)
        gone = (expected == 20) & (z.real**2 + z.imag**2 >= 4)
        expected[gone] = step
    # A fused multiply-add may move a point on the limit to the other side.
    assert (image[rows] != expected).mean() < 1e-3


@guvectorize(["void(float64[:], int64[:], float64[:])"], "(n),()->(n)", target="cuda")
def move_mean(a, window, out):
    window_width = window[0]
    asum = 0.0
    for i in range(window_width):
        asum += a[i]
        out[i] = asum / (i + 1)
    for i in range(window_width, len(a)):
        asum += a[i] - a[i - window_width]
        out[i] = asum / window_width


def test_a_moving_mean_of_each_row():
    a = np.arange(20, dtype=np.float64).reshape(2, 10)
    got = move_mean(a, 3)
    np.testing.assert_allclose(got[0], [0, 0.5, 1, 2, 3, 4, 5, 6, 7, 8])
    np.testing.assert_allclose(got[1], [10, 10.5, 11, 12, 13, 14, 15, 16, 17, 18])
    rows = np.random.default_rng(61).standard_normal((300, 200))
    sums = np.concatenate([np.zeros((300, 1)), rows.cumsum(axis=1)], axis=1)
    counts = np.minimum(np.arange(1, 201), 7)
    expected = (sums[:, 1:] - sums[:, np.arange(1, 201) - counts]) / counts
    np.testing.assert_allclose(move_mean(rows, np.int64(7)), expected, atol=1e-12)


@cuda.jit("void(float32[:], float32)")
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor


def test_copies_and_launches_in_a_stream_between_events():
    n = 100_000
    host, back = cuda.pinned_array(n, np.float32), cuda.pinned_array(n, np.float32)
    host[:] = np.arange(n)
    stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
    begin.record(stream)
    with stream.auto_synchronize():
        on_device = cuda.to_device(host, stream=stream)
        for _ in range(5):
            scale[math.ceil(n / 256), 256, stream](on_device, 2)
        on_device.copy_to_host(back, stream=stream)
        end.record(stream)
    end.synchronize()
    assert end.query()
    assert cuda.event_elapsed_time(begin, end) == begin.elapsed_time(end) >= 0
    np.testing.assert_array_equal(back, host * 32)


def test_a_declared_signature_converts_and_refuses():
    # The only specialization: integers are converted, arrays of other types are not.
    x = np.ones(10, np.float32)
    scale[1, 32](x, 3)
    assert (x == 3).all()
    with pytest.raises(TypeError):
        scale[1, 32](np.ones(10, np.float64), 3)
    assert len(scale.signatures) == 1


@pytest.mark.parametrize("registers", [None, 24])
def test_registers_of_a_kernel_can_be_limited(device, registers):
    @cuda.jit(max_registers=registers)
    def polynomial(x, out):
        i = cuda.grid(1)
        if i < out.size:
            v = x[i]
            out[i] = ((((v + 1) * v + 2) * v + 3) * v + 4) / (math.sin(v) + 2) + math.exp(v)

    x = np.linspace(-1, 1, 1000)
    out = np.zeros_like(x)
    polynomial[8, 128](x, out)
    expected = ((((x + 1) * x + 2) * x + 3) * x + 4) / (np.sin(x) + 2) + np.exp(x)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    if device == "cuda" and registers:
        (used,) = polynomial.get_regs_per_thread().values()
        assert used <= registers


def make_add(bias):
    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            value = x[i]
            if y is not None:
                value += y[i]
            if bias is not None:
                value += bias
            out[i] = value

    return add


def test_branches_of_none_are_pruned():
    x, y, out = np.arange(5.0), np.full(5, 0.5), np.zeros(5)
    for second, bias in ((None, None), (y, None), (None, 2), (y, 2)):
        make_add(bias)[1, 32](x, second, out)
        np.testing.assert_array_equal(out, x + (0 if second is None else second) + (bias or 0))


class Owned:
    """Memory from a CUDA allocation function: an address and the layout."""

    def __init__(self, address, shape, typestr):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (address, False), "strides": None, "version": 3,
        }  # fmt: skip


@pytest.mark.cuda
def test_memory_of_the_driver_is_an_array_by_its_interface():
    scale[1, 32](np.ones(1, np.float32), 1)
    driver = ctypes.CDLL("libcuda.so.1")
    address, n = ctypes.c_uint64(0), 1000
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * n)) == 0
    try:
        array = cuda.as_cuda_array(Owned(address.value, (n,), "<f4"))
        array.copy_to_device(np.arange(n, dtype=np.float32))
        scale[math.ceil(n / 256), 256](array, 3)
        scale[math.ceil(n / 256), 256](Owned(address.value, (n,), "<f4"), 2)
        cuda.synchronize()
        back = np.zeros(n, np.float32)
        assert driver.cuMemcpyDtoH_v2(back.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(4 * n)) == 0
        np.testing.assert_array_equal(back, np.arange(n, dtype=np.float32) * 6)
    finally:
        assert driver.cuMemFree_v2(address) == 0


@vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def rel_diff(x, y):
    return 2 * (x - y) / (x + y)


def test_a_ufunc_of_two_types_takes_the_one_that_fits():
    a, b = np.arange(1, 1001, dtype=np.float32), np.arange(1, 1001, dtype=np.float32) * 2
    assert rel_diff(a, b).dtype == np.float32
    wide = rel_diff(a.astype(np.float64), b)
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, 2 * (a.astype("f8") - b) / (a.astype("f8") + b))


def test_what_was_compiled_can_be_read(device):
    (asm,) = scale.inspect_asm().values()
    (llvm,) = scale.inspect_llvm().values()
    assert "scale" in llvm
    assert "scale" in asm
    if device == "cuda":
        assert ".entry" in asm


def test_too_much_shared_memory_is_an_error_of_the_launch():
    with pytest.raises(LaunchError):
        scale[1, 32, 0, 1 << 24](np.ones(10, np.float32), 1)
