"""for over range, while, else, break and continue."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


@cuda.jit
def ranges(n, out):
    i = cuda.grid(1)
    for k in range(n[i]):
        out[i, 0] += k
    for k in range(2, n[i]):
        out[i, 1] += k * k
    for k in range(-3, n[i], 2):
        out[i, 2] += 10 * k
    for k in range(n[i], -4, -1):
        out[i, 3] = out[i, 3] * 3 + k
    for k in range(n[i], 0, -3):
        out[i, 4] = out[i, 4] * 3 + k
    for k in range(10, n[i]):
        out[i, 5] = k
    for _ in range(3):
        out[i, 6] += 1


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8, np.uint16])
def test_ranges(dtype):
    n = np.arange(0, 12).astype(dtype)
    run(ranges, 3, 4, n, np.zeros((12, 7), np.int64))


def test_ranges_with_negative_bounds():
    run(ranges, 1, 8, np.arange(-8, 0, dtype=np.int64), np.zeros((8, 7), np.int64))


@cuda.jit
def runtime_step(bounds, out):
    i = cuda.grid(1)
    count = 0
    for k in range(bounds[i, 0], bounds[i, 1], bounds[i, 2]):
        out[i, 0] += k
        count += 1
    out[i, 1] = count


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_steps_known_at_run_time(dtype):
    cases = [
        (0, 10, 3),
        (10, 0, -3),
        (0, 10, -1),
        (10, 0, 1),
        (-5, 5, 5),
        (5, -5, -5),
        (3, 3, 1),
        (7, 8, 100),
        (8, 7, -100),
    ]
    bounds = np.array(cases, dtype)
    out = run(runtime_step, 1, len(cases), bounds, np.zeros((len(cases), 2), np.int64))[1]
    assert out[:, 1].tolist() == [len(range(*case)) for case in cases]


@cuda.jit
def strided_reads(x, cases, out):
    i = cuda.grid(1)
    total = 0
    last = -1
    for k in range(cases[i, 0], x.size, cases[i, 1]):
        # The sum depends on the order of the iterations.
        total = total * 3 + x[k]
        last = k
    out[i, 0] = total
    out[i, 1] = last
    total = 0
    for k in range(i, x.size, 5):
        if x[k] % 2:
            total = total * 3 + x[k]
    out[i, 2] = total


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 31, 64, 101])
def test_strided_loops_take_every_turn_once_and_in_order(size):
    """These loops are unrolled by four on a GPU: all trip counts up to a multiple of that, and huge strides."""
    x = np.random.default_rng(size).integers(-100, 100, size)
    starts = [0, 1, 2, 3, 5, size, size + 1]
    steps = [1, 2, 3, 4, 5, 7, 8, 25, 10**6, 2**60, 2**61, 2**62, -1, -(2**62)]
    # A descending range that starts past the end would read out of bounds.
    cases = np.array([(start, step) for start in starts for step in steps if step > 0 or start <= size], np.int64)
    out = launch(strided_reads, 1, len(cases), x, cases, np.zeros((len(cases), 3), np.int64))[2]
    for row, (start, step) in zip(out, cases.tolist(), strict=True):
        turns = range(start, size, step)
        total = 0
        for k in turns:
            total = (total * 3 + int(x[k])) & (2**64 - 1)
        assert (int(row[0]) & (2**64 - 1), row[1]) == (total, turns[-1] if turns else -1), (start, step)


@cuda.jit
def near_the_end(out):
    count = 0
    for k in range(2**63 - 8, 2**63 - 3, 3):
        out[count] = k
        count += 1
    for k in range(-(2**63) + 5, -(2**63) + 1, -2):
        out[count] = k
        count += 1


def test_ranges_near_the_ends_of_int64():
    out = run(near_the_end, 1, 1, np.zeros(5, np.int64))[0]
    assert out.tolist() == [2**63 - 8, 2**63 - 5, -(2**63) + 5, -(2**63) + 3, 0]


@cuda.jit
def at_the_end(out):
    for k in range(2**63 - 5, 2**63 - 1, 3):
        out[0] += 1
        out[1] = k


def test_a_counter_never_wraps():
    # A range ends before a step would exceed the largest int64, and may omit its last value there.
    out = launch(at_the_end, 1, 1, np.zeros(2, np.int64))[0]
    assert out.tolist() in ([1, 2**63 - 5], [2, 2**63 - 2])


@cuda.jit
def breaks(x, limit, out):
    i = cuda.grid(1)
    total = 0
    for k in range(x.size):
        if x[k] == limit[i]:
            break
        if x[k] % 2:
            continue
        total += x[k]
    else:
        total += 1000
    out[i, 0] = total
    k = 0
    while k < x.size:
        k += 1
        if x[k - 1] == limit[i]:
            break
        if k % 3 == 0:
            continue
        out[i, 1] += k
    else:
        out[i, 1] += 1000
    out[i, 2] = k


def test_break_continue_and_else():
    run(breaks, 1, 12, np.arange(10), np.arange(12), np.zeros((12, 3), np.int64))


@cuda.jit
def nested(n, out):
    i = cuda.grid(1)
    for a in range(n[i]):
        for b in range(a, n[i]):
            if (a + b) % 4 == 3:
                continue
            if b - a > 3:
                break
            c = b
            while c > 0:
                c -= 2
                if c == 2:
                    break
                out[i] += 1
        else:
            out[i] += 100
        if a == 6:
            break


def test_nested_loops():
    run(nested, 1, 10, np.arange(10), np.zeros(10, np.int64))


@cuda.jit
def collatz(x, out):
    i = cuda.grid(1)
    n = x[i]
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    out[i] = steps


def test_while():
    out = run(collatz, 4, 8, np.arange(1, 33), np.zeros(32, np.int64))[1]
    assert out[26] == 111


@cuda.jit
def until_break(x, out):
    i = cuda.grid(1)
    n = x[i]
    while True:
        if n > 100:
            break
        n = n * 2 + 1
    out[i] = n


def test_while_true():
    run(until_break, 1, 8, np.arange(8), np.zeros(8, np.int64))


@cuda.jit
def returns_from_a_loop(x, what, out):
    i = cuda.grid(1)
    for k in range(x.size):
        if x[k] == what[i]:
            out[i] = k
            return
    out[i] = -1


def test_return_from_a_loop():
    out = run(returns_from_a_loop, 1, 4, np.array([5, 3, 9]), np.array([3, 9, 4, 5]), np.zeros(4, np.int64))[2]
    assert out.tolist() == [1, 2, -1, 0]


@cuda.jit
def loop_variable(n, out):
    i = cuda.grid(1)
    last = -1
    for k in range(n[i]):
        last = k
        k = k * 100
        out[i, 1] += k
    out[i, 0] = last
    for j in range(1, 4):  # noqa: B007
        pass
    out[i, 2] = j


def test_loop_variable():
    out = run(loop_variable, 1, 4, np.arange(4), np.zeros((4, 3), np.int64))[1]
    assert out.tolist() == [[-1, 0, 3], [0, 0, 3], [1, 100, 3], [2, 300, 3]]


@cuda.jit
def grid_stride(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i] * 2


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (3, 7), (16, 32)])
def test_grid_stride_loop(grid, block):
    x = np.arange(100, dtype=np.float32)
    out = run(grid_stride, grid, block, x, np.zeros(100, np.float32))[1]
    np.testing.assert_array_equal(out, x * 2)


@cuda.jit
def changes_bound(out):
    n = 4
    for k in range(n):
        n = 10
        out[k] = n + k


def test_range_is_evaluated_once():
    out = run(changes_bound, 1, 1, np.zeros(12, np.int64))[0]
    assert out.tolist() == [10, 11, 12, 13, *[0] * 8]


@cuda.jit
def else_types(x, out):
    i = cuda.grid(1)
    v = 0.5
    for k in range(3):
        v += k
    else:
        v = 1  # no break before: v is an int64 from here
    out[i, 0] = 7 ^ v
    n = 1
    w = 1
    while n < 4:
        n += 1
        if n == x[i]:
            w = 0.5
            break
    else:
        w = w << n  # an int64 here: no break reaches this
    out[i, 1] = w * 4
    while True:
        n += 1
        if n > 6:
            break
    else:
        n = (n, n)  # never reached
    out[i, 2] = n


def test_the_else_of_a_loop_has_the_types_of_its_end():
    out = run(else_types, 1, 5, np.arange(5), np.zeros((5, 3)))[1]
    assert out[:, 0].tolist() == [6] * 5
    assert out[:, 1].tolist() == [64, 64, 2, 2, 2]
    assert out[:, 2].tolist() == [7] * 5
