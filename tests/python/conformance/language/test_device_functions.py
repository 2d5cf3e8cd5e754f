"""Functions that kernels call: arguments, defaults, results, specialisation."""

import math

import numpy as np
import pytest
import weft
from harness import launch, run
from weft import cuda


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit
def add(x, y=10, *, z=100):
    return x + y + z


@cuda.jit
def store(array, index, item):
    array[index] = item


@cuda.jit
def hypotenuse(x, y):
    return math.sqrt(square(x) + square(y))


@cuda.jit
def calls(x, out):
    i = cuda.grid(1)
    out[i, 0] = square(x[i])
    out[i, 1] = square(x[i] + 0.5)
    out[i, 2] = add(x[i])
    out[i, 3] = add(x[i], 1)
    out[i, 4] = add(x[i], y=2, z=3)
    out[i, 5] = add(z=x[i], x=1)
    out[i, 6] = hypotenuse(x[i], square(2))
    store(out, (i, 7), x[i] * 3)
    store(index=3, array=out[i, 5:], item=square(square(x[i])))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_calls(dtype):
    run(calls, 2, 4, np.arange(8).astype(dtype), np.zeros((8, 9)))


@cuda.jit
def clamp(x, low, high):
    """Several returns, and an argument that is assigned to."""
    if x < low:
        return low
    if x > high:
        x = high
    return x


@cuda.jit
def uses_clamp(x, out):
    i = cuda.grid(1)
    out[i, 0] = clamp(x[i], -2, 2)
    out[i, 1] = clamp(x[i], -1.5, 3)
    out[i, 2] = x[i]


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_several_returns_and_assigned_parameters(dtype):
    run(uses_clamp, 1, 11, np.arange(-5, 6).astype(dtype), np.zeros((11, 3)))


@cuda.jit
def digits(x):
    count = 0
    while x:
        x //= 10
        count += 1
        if count > 5:
            return -1
    return count


@cuda.jit
def uses_digits(x, out):
    i = cuda.grid(1)
    out[i] = digits(x[i]) * 2


def test_a_loop_with_a_return():
    out = run(uses_digits, 1, 6, np.array([0, 7, 42, 999, 12345, 1234567]), np.zeros(6, np.int64))[1]
    assert out.tolist() == [0, 2, 4, 6, 10, -2]


@cuda.jit
def divide(a, b):
    quotient = a // b
    return quotient, a - quotient * b


@cuda.jit
def rotate(x, y, angle=(0.6, 0.8)):
    c, s = angle
    return (c * x - s * y, s * x + c * y), 1


@cuda.jit
def uses_tuples(x, out):
    i = cuda.grid(1)
    q, r = divide(x[i], 3)
    out[i, 0], out[i, 1] = r, q
    (a, b), one = rotate(x[i], 2.0)
    out[i, 2] = a + one
    out[i, 3] = b
    out[i, 4] = rotate(x[i], 1, (0, 1))[0][1]


def test_tuple_results_and_defaults():
    run(uses_tuples, 1, 8, np.arange(-4, 4), np.zeros((8, 5)))


@cuda.jit
def window_sum(window):
    total = 0.0
    for k in range(window.size):
        total += window[k]
    return total


@cuda.jit
def block_sum(block):
    total = 0
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            total += block[i, j]
    return total


@cuda.jit
def uses_windows(x, out):
    i = cuda.grid(1)
    out[i, 0] = window_sum(x[i])
    out[i, 1] = window_sum(x[:, i])
    out[i, 2] = window_sum(x[i, i : i + 2])
    out[i, 3] = block_sum(x[i:, :i])
    out[i, 4] = block_sum(x[::2, ::-1])


def test_slices_are_arguments():
    run(uses_windows, 1, 5, np.arange(25.0).reshape(5, 5), np.zeros((5, 5)))


@cuda.jit
def nothing(out, i):
    out[i] += 1
    if i > 2:
        return
    out[i] += 1


@cuda.jit
def uses_nothing(out):
    i = cuda.grid(1)
    nothing(out, i)


def test_functions_without_a_result():
    out = run(uses_nothing, 1, 5, np.zeros(5, np.int64))[0]
    assert out.tolist() == [2, 2, 2, 1, 1]


@cuda.jit
def where_am_i():
    return cuda.grid(1) * 10 + cuda.threadIdx.x


@cuda.jit
def asks(out):
    out[cuda.grid(1)] = where_am_i()


def test_functions_see_the_thread():
    out = run(asks, 2, 3, np.zeros(6, np.int64))[0]
    assert out.tolist() == [0, 11, 22, 30, 41, 52]


@cuda.jit
def apply_scale(x, scale=np.float32(0.5)):  # noqa: B008
    return x * scale


@cuda.jit
def uses_default(x, out):
    i = cuda.grid(1)
    out[i] = apply_scale(x[i])


def test_a_numpy_scalar_is_a_default():
    x = np.array([1, 3, 0.1, 1e-40], np.float32)
    out = run(uses_default, 1, 4, x, np.zeros(4, np.float32))[1]
    np.testing.assert_array_equal(out, x * np.float32(0.5))


def test_a_kernel_is_also_a_device_function():
    @cuda.jit
    def one(x, i):
        x[i] = i * 2

    @cuda.jit
    def outer(x):
        one(x, cuda.grid(1))

    run(outer, 1, 4, np.zeros(4, np.int64))


def test_a_function_in_a_closure():
    def make(function):
        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            out[i] = function(x[i])

        return kernel

    @cuda.jit
    def double(x):
        return x * 2

    x = np.arange(4.0)
    assert run(make(square), 1, 4, x, np.zeros(4))[1].tolist() == [0, 1, 4, 9]
    assert run(make(double), 1, 4, x, np.zeros(4))[1].tolist() == [0, 2, 4, 6]


@cuda.jit
def mixed_results(x):
    if x > 0:
        return 1
    return 0.5


@cuda.jit
def uses_mixed(x, out):
    i = cuda.grid(1)
    out[i] = mixed_results(x[i]) / 2


def test_results_of_two_types_are_joined():
    out = run(uses_mixed, 1, 2, np.array([-1, 1]), np.zeros(2))[1]
    assert out.tolist() == [0.25, 0.5]


@cuda.jit(device=True)
def bump(a, k):
    a[k] += 1
    return a[k]


@cuda.jit
def effects_in_order(a, out):
    out[0] = a[0] + bump(a, 0) + a[0]
    out[bump(a, 1) % 4] += bump(a, 1)
    out[5], out[4 + bump(a, 2) % 2] = bump(a, 2), a[2]
    out[6] = a[1] < bump(a, 1) < bump(a, 1) > a[1]
    t = (a[0], bump(a, 0), a[0])
    out[7] = t[bump(a, 3) % 3]
    out[8:][bump(a, 3) % 2] = a[3 : bump(a, 3) + 5 : 1][0] * bump(a, 3)
    out[10] = max(a[0], bump(a, 0), a[0]) * 100 + cuda.atomic.add(a, bump(a, 1) % 3, bump(a, 2)) + a[1]
    for k in range(bump(a, 0) % 3, bump(a, 0) % 5 + 3, bump(a, 1) % 2 + 1):
        out[11] += k + bump(a, 0)
    x = y = bump(a, 0)
    out[12] = x * y
    out[13] = bump(k=bump(a, 1) % 3, a=a)
    b = a[1:]
    b[0], b[1] = bump(b, 1), bump(b, 0)
    out[14] = (bump(a, 0) or bump(a, 1)) + (not bump(a, 2)) + (0 and bump(a, 0))
    out[15] = bump(a, 0) if bump(a, 1) > bump(a, 1) else bump(a, 2)
    z = complex(bump(a, 0), bump(a, 0)) * bump(a, 0)
    out[16] = z.real
    out[17] = z.imag
    out[18] = -(bump(a, 0) ** bump(a, 0)) % 1000
    a[bump(a, 0) % 4] //= bump(a, bump(a, 0) % 4)


def test_functions_with_effects_run_in_order():
    run(effects_in_order, 1, 1, np.arange(5) + 1, np.zeros(20, np.int64))


@cuda.jit(["int32(int32)", "float64(float64)"], device=True)
def half(x):
    return x / 2


@cuda.jit(["int64(int64, float64)", "float64(float32, int64)", "float64(float64, float64)"], device=True)
def second(x, y):
    return y + x * 0


@cuda.jit
def chooses(x, out):
    out[0] = half(x[0])
    out[1] = half(np.int32(7))
    out[2] = half(np.uint16(7))
    out[3] = second(x[0], 2.5)
    out[4] = second(np.int16(0), 2.5)


def test_the_best_of_several_signatures_is_called():
    # Numba's ranking: float32 is promoted to float64 rather than truncated to int32; uint16 fits int32 and float64
    # without loss, so the first is chosen; (float32, float64) fits the last, (int16, float64) the first.
    out = launch(chooses, 1, 1, np.array([7.5], np.float32), np.zeros(5))[1]
    assert out.tolist() == [3.75, 3.0, 3.0, 2.5, 2.0]


@cuda.jit(device=True)
def lanes():
    return 8


@cuda.jit(device=True)
def lanes_or(n):
    if n > 3:
        return lanes()
    return 8


@cuda.jit(device=True)
def lanes_by(n):
    if n > 3:
        return lanes()
    return 9


@cuda.jit(device=True)
def described():
    return lanes(), 2.5, True, (1, lanes() + 1)


@cuda.jit(device=True)
def counted(n):
    return 0 if n == 0 else counted(n - 1) + 1


@cuda.jit(device=True)
def down(n):
    if n <= 0:
        return 7
    return down(n - 1)


@cuda.jit
def with_known_results(out, where):
    i = cuda.threadIdx.x
    memory = cuda.local.array((lanes_or(i), described()[3][1]), np.int64)
    memory[lanes() - 1, lanes()] = i * lanes_or(i)
    first, scale, flag, (one, nine) = described()
    n = lanes()
    for _ in range(i):
        n += one
    if flag:
        where[i] = nine * scale
    else:
        where[i] = "not typed"
    out[i, 0] = memory[lanes() - 1, lanes()] + first
    out[i, 1] = n - lanes_by(i)
    out[i, 2] = counted(i) * 100 + down(i)
    out[i, 3] = lanes() / 3 + lanes() // 3 + 2 ** lanes()


def test_what_every_return_gives_is_known_to_the_caller():
    out, where = np.zeros((8, 4)), np.zeros(8)
    with_known_results[1, 8](out, where)
    i = np.arange(8)
    np.testing.assert_array_equal(out[:, 0], i * 8 + 8)
    np.testing.assert_array_equal(out[:, 1], 8 + i - np.where(i > 3, 8, 9))
    np.testing.assert_array_equal(out[:, 2], i * 100 + 7)
    np.testing.assert_array_equal(out[:, 3], 8 / 3 + 2 + 256)
    np.testing.assert_array_equal(where, 22.5)


def test_a_result_that_paths_differ_in_is_no_shape():
    @cuda.jit
    def kernel(out):
        memory = cuda.local.array(lanes_by(cuda.threadIdx.x), np.int64)
        out[0] = memory.size

    with pytest.raises(weft.CompileError, match="run-time int64"):
        kernel[1, 1](np.zeros(1))
