"""Rows A2.1, A4.1 to A4.5, A5.1 and A5.2: introductions to GPU programming in Python."""

import math

import numpy as np
from weft import cuda


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.jit
def square(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] ** 2


def test_a2_1_square_of_a_matrix():
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    d_x = cuda.to_device(x)
    d_out = cuda.device_array(x.shape, dtype=x.dtype)
    threads = (16, 16)
    blocks = (int(np.ceil(x.shape[0] / threads[0])), int(np.ceil(x.shape[1] / threads[1])))
    square[blocks, threads](d_x, d_out)
    out = d_out.copy_to_host()
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, x * x)


@cuda.jit
def foo(input_array, output_array):
    thread_id = cuda.threadIdx.x
    block_id = cuda.blockIdx.x
    block_size = cuda.blockDim.x
    i = thread_id + block_id * block_size
    output_array[i] = input_array[i]


copy_kernel = foo


def test_a4_1_copy_with_implicit_transfers():
    source = np.arange(10)
    target = np.zeros(len(source))
    copy_kernel[1, len(source)](source, target)
    np.testing.assert_array_equal(target, source)


@cuda.jit
def foo(input_array, output_array):
    i = cuda.grid(1)
    output_array[i] = input_array[i] * 2


def test_a4_2_double_without_a_guard(device):
    n = size(device, 30_000_000, 300_000) // 128 * 128  # whole blocks: the kernel has no guard
    source = np.arange(n, dtype=np.float64)
    target = np.zeros(n)
    threads = 128
    blocks = math.ceil(n / threads)
    foo[blocks, threads](source, target)
    np.testing.assert_array_equal(target, source * 2)
    d_source, d_target = cuda.to_device(source), cuda.to_device(np.zeros(n))
    assert "0x" in repr(d_source) or "DeviceNDArray" in repr(d_source)
    for _ in range(3):
        foo[blocks, threads](d_source, d_target)
    np.testing.assert_array_equal(d_target.copy_to_host(), source * 2)


@cuda.jit
def fizz_buzz(input_array, output_array):
    i = cuda.grid(1)
    item = input_array[i]
    if item % 3 == 0 and item % 5 == 0:
        output_array[i] = 15
    elif item % 5 == 0:
        output_array[i] = 5
    elif item % 3 == 0:
        output_array[i] = 3


def test_a4_3_fizz_buzz_with_one_thread_too_many(device):
    # The notebook has no guard, and one thread of the last block is out of bounds. The arrays here are views of longer
    # ones, so that the store is allowed and the test can check it.
    n = size(device, 50_000_000, 500_000)
    whole = cuda.to_device(np.arange(1, n + 1))
    result = cuda.to_device(np.zeros(n, np.int64))
    threads = 128
    source, target = whole[: n - 1], result[: n - 1]
    fizz_buzz[math.ceil((n - 1) / threads), threads](source, target)
    out = target.copy_to_host()
    expected = np.zeros(n - 1, np.int64)
    expected[2::3] = 3
    expected[4::5] = 5
    expected[14::15] = 15
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def gauss_blur(input_image, output_image):
    x, y, c = cuda.grid(3)
    if x < input_image.shape[0] - 1 and y < input_image.shape[1] - 1 and c < input_image.shape[2]:
        output_image[x, y, c] = input_image[x, y, c] * 0.25 \
            + (input_image[x - 1, y, c] + input_image[x + 1, y, c] \
            + input_image[x, y - 1, c] + input_image[x, y + 1, c]) * 0.125 \
            + (input_image[x - 1, y - 1, c] + input_image[x - 1, y + 1, c] \
            + input_image[x + 1, y - 1, c] + input_image[x + 1, y + 1, c]) * 0.0625  # fmt: skip


def blur_into(image, out):
    wide = image.astype(np.float64)
    total = wide * 0.25
    for axis in (0, 1):
        total += (np.roll(wide, 1, axis) + np.roll(wide, -1, axis)) * 0.125
    for dx in (1, -1):
        for dy in (1, -1):
            total += np.roll(wide, (dx, dy), (0, 1)) * 0.0625
    out[:-1, :-1] = total[:-1, :-1]


def test_a4_4_blur_with_ping_pong(device):
    shape = size(device, (116, 434, 4), (58, 109, 4))
    image = np.random.default_rng(17).random(shape, np.float32)
    source = cuda.to_device(image)
    target = cuda.to_device(np.zeros_like(image))
    threads = (2, 16, 4)
    blocks = tuple(math.ceil(extent / count) for extent, count in zip(source.shape, threads, strict=True))
    expected, other = image.copy(), np.zeros_like(image)
    for _ in range(5):
        gauss_blur[blocks, threads](source, target)
        source, target = target, source
        blur_into(expected, other)
        expected, other = other, expected
    np.testing.assert_allclose(source.copy_to_host(), expected, rtol=1e-5, atol=1e-6)


@cuda.jit
def black_white(input_image, output_image):
    x, y = cuda.grid(2)
    if x < input_image.shape[0] and y < input_image.shape[1]:
        level = (input_image[x, y, 0] + input_image[x, y, 1] + input_image[x, y, 2]) / 3
        output_image[x, y, 0] = level
        output_image[x, y, 1] = level
        output_image[x, y, 2] = level
        output_image[x, y, 3] = input_image[x, y, 3]


def test_a4_5_black_and_white(device):
    image = np.random.default_rng(18).random((116, 434, 4), np.float32)
    out = np.zeros_like(image)
    black_white[(8, 28), (16, 16)](image, out)
    level = image[..., :3].mean(axis=2, dtype=np.float64)
    np.testing.assert_allclose(out[..., :3], np.repeat(level[..., None], 3, axis=2), rtol=1e-6)
    np.testing.assert_array_equal(out[..., 3], image[..., 3])


@cuda.jit
def add_arrays_gpu(a, b, result):
    idx = cuda.grid(1)
    if idx < a.size:
        result[idx] = a[idx] + b[idx]


def test_a5_1_add_arrays(capsys):
    n = 1024
    a = np.arange(n, dtype=np.float32)
    b = np.arange(n, dtype=np.float32)
    result = np.zeros(n, dtype=np.float32)
    threads_per_block = 64
    blocks_per_grid = (n + threads_per_block - 1) // threads_per_block
    add_arrays_gpu[blocks_per_grid, threads_per_block](a, b, result)
    print(result[:10])
    assert capsys.readouterr().out.strip() == "[ 0.  2.  4.  6.  8. 10. 12. 14. 16. 18.]"
    np.testing.assert_array_equal(result, a + b)


@cuda.jit
def matmul(a, b, c):
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        tmp = 0.0
        for k in range(a.shape[1]):
            tmp += a[i, k] * b[k, j]
        c[i, j] = tmp


def test_a5_2_matrix_multiplication_one_element_a_thread(device):
    side = size(device, 1024, 100)
    rng = np.random.default_rng(19)
    a, b = rng.random((side, side // 2), np.float32), rng.random((side // 2, side), np.float32)
    c = np.zeros((side, side), np.float32)
    blocks = math.ceil(side / 16)
    matmul[(blocks, blocks), (16, 16)](a, b, c)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=1e-5)
