"""Device functions that call themselves, directly and through others."""

from __future__ import annotations

import numpy as np
import pytest
from harness import launch, like_python, run
from weft import CompileError, cuda


@cuda.jit(device=True)
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@cuda.jit("i8(i8)", device=True)
def fib_declared(n):
    if n < 2:
        return n
    return fib_declared(n - 1) + fib_declared(n - 2)


@cuda.jit
def fibs(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = fib(x[i])


@cuda.jit
def fibs_declared(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = fib_declared(x[i])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("kernel", [fibs, fibs_declared])
def test_a_function_calls_itself(kernel, dtype):
    # Each thread has another recursion depth.
    x = np.arange(13, dtype=dtype)
    _, out = run(kernel, 2, 8, x, np.zeros(13, np.int64))
    assert out[12] == 144


@cuda.jit(device=True)
def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


@cuda.jit(device=True)
def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


@cuda.jit
def parities(out):
    i = cuda.grid(1)
    out[i, 0] = is_even(i)
    out[i, 1] = is_odd(i)


def test_two_functions_call_each_other():
    (out,) = run(parities, 1, 40, np.zeros((40, 2), np.bool_))
    assert out[:, 0].tolist() == [True, False] * 20


@cuda.jit(device=True)
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@cuda.jit
def ackermanns(out):
    i = cuda.threadIdx.x
    out[i] = ackermann(i // 4, i % 4)


def test_the_argument_is_a_call_of_the_function_itself():
    (out,) = run(ackermanns, 1, 12, np.zeros(12, np.int64))
    assert out[11] == 9


@cuda.jit(device=True)
def power(x, n):
    if n == 0:
        return 1
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


@cuda.jit
def powers(x, out):
    i = cuda.threadIdx.x
    out[i] = power(x[i], i)


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64, np.complex128])
def test_the_type_of_the_result_is_that_of_all_returns(dtype):
    x = np.linspace(-2, 2, 9).astype(dtype)
    run(powers, 1, 9, x, np.zeros(9, np.result_type(dtype, np.float64)))


@cuda.jit(device=True)
def widened(n, x):
    # 1 is an int64, the product a float64: the return type unifies both.
    return 1 if n == 0 else x * widened(n - 1, x)


@cuda.jit
def widening(out):
    i = cuda.threadIdx.x
    out[i] = widened(i, 1.5) / 2


def test_an_int_widens_through_the_recursion():
    run(widening, 1, 6, np.zeros(6))


@cuda.jit(device=True)
def bezout(a, b):
    if b == 0:
        return a, 1, 0
    g, x, y = bezout(b, a % b)
    return g, y, x - a // b * y


@cuda.jit
def bezouts(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i, 0], out[i, 1], out[i, 2] = bezout(a[i], b[i])


def test_tuples_are_results():
    rng = np.random.default_rng(1)
    a, b = rng.integers(1, 10**9, (2, 64))
    _, _, out = run(bezouts, 4, 16, a, b, np.zeros((64, 3), np.int64))
    assert np.array_equal(out[:, 1] * a + out[:, 2] * b, np.gcd(a, b))


@cuda.jit(device=True)
def swap(a, i, j):
    a[i], a[j] = a[j], a[i]


@cuda.jit(device=True)
def quicksort(a, low, high):
    if low >= high:
        return
    pivot = a[(low + high) // 2]
    i, j = low, high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            swap(a, i, j)
            i += 1
            j -= 1
    quicksort(a, low, j)
    quicksort(a, i, high)


@cuda.jit
def sort_rows(a):
    row = cuda.grid(1)
    if row < a.shape[0]:
        quicksort(a[row], 0, a.shape[1] - 1)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_arguments(order):
    rows = np.asarray(np.random.default_rng(2).integers(0, 99, (9, 50)), order=order)
    (out,) = run(sort_rows, 3, 4, rows)
    assert np.array_equal(out, np.sort(rows, axis=1))


@cuda.jit(device=True)
def tree_sum(left, right, value, node):
    if node < 0:
        return 0.0
    return value[node] + tree_sum(left, right, value, left[node]) + tree_sum(left, right, value, right[node])


@cuda.jit
def tree_sums(left, right, value, out):
    node = cuda.grid(1)
    if node < out.size:
        out[node] = tree_sum(left, right, value, node)


def test_a_walk_of_a_tree():
    n = 63
    nodes = np.arange(n)
    left = np.where(2 * nodes + 1 < n, 2 * nodes + 1, -1)
    right = np.where(2 * nodes + 2 < n, 2 * nodes + 2, -1)
    value = np.random.default_rng(3).random(n)
    run(tree_sums, 2, 32, left, right, value, np.zeros(n))


@cuda.jit(device=True)
def hanoi(n, source, target, spare, moves, at):
    if n == 0:
        return at
    at = hanoi(n - 1, source, spare, target, moves, at)
    moves[at, 0], moves[at, 1] = source, target
    return hanoi(n - 1, spare, target, source, moves, at + 1)


@cuda.jit
def towers(moves, count):
    i = cuda.threadIdx.x
    count[i] = hanoi(i, 0, 2, 1, moves[i], 0)


def test_hanoi():
    _, count = run(towers, 1, 8, np.zeros((8, 128, 2), np.int8), np.zeros(8, np.int64))
    assert count.tolist() == [2**n - 1 for n in range(8)]


@cuda.jit(device=True)
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1) * 1


@cuda.jit
def depths(x, out):
    i = cuda.grid(1)
    for turn in range(3):
        out[i] += depth(x[i] + turn)


def test_calls_in_a_loop_go_to_different_depths():
    x = np.arange(32) ** 2 % 37
    run(depths, 1, 32, x, np.zeros(32, np.int64))


@cuda.jit(device=True)
def product_below(x, n):
    # Not a sum of ones, which LLVM would convert to a loop.
    if n <= 0:
        return 1
    return (product_below(x, n - 1) ^ x[n % x.size]) * 3 + n


@cuda.jit
def deep(x, depth, out):
    i = cuda.grid(1)
    out[i] = product_below(x, depth)


@pytest.mark.cpu
def test_a_thousand_calls_deep():
    x = np.arange(7)
    out = launch(deep, 1, 4, x, 1000, np.zeros(4, np.int64))[-1]
    expected = 1
    for n in range(1, 1001):
        expected = (expected ^ int(x[n % 7])) * 3 + n
    assert out.tolist() == [(expected + 2**63) % 2**64 - 2**63] * 4


@cuda.jit(device=True)
def in_local(n):
    own = cuda.local.array(4, np.int64)
    for i in range(4):
        own[i] = n * 10 + i
    below = in_local(n - 1) if n > 0 else 0
    # Each call has its own array.
    return below + own[n % 4]


@cuda.jit
def locals_of_calls(out):
    i = cuda.threadIdx.x
    out[i] = in_local(i)


def test_each_call_has_arrays_of_its_own():
    (out,) = launch(locals_of_calls, 1, 6, np.zeros(6, np.int64))
    assert out.tolist() == np.cumsum([0, 11, 22, 33, 40, 51]).tolist()


@cuda.jit
def sums_of_fibs(x, out):
    tile = cuda.shared.array(32, np.int64)
    i = cuda.threadIdx.x
    tile[i] = fib(x[i])
    cuda.syncthreads()
    out[i] = tile[31 - i] + fib(tile[i] % 7)
    cuda.syncthreads()
    tile[i] = out[i]
    cuda.syncthreads()
    out[i] += tile[(i + 1) % 32]


@pytest.mark.parametrize("opt", [True, False])
def test_barriers_between_calls(opt):
    kernel = sums_of_fibs if opt else cuda.jit(opt=False)(sums_of_fibs.py_func)
    run(kernel, 1, 32, np.arange(32) % 9, np.zeros(32, np.int64))


@cuda.jit
def sums_of_branches(x, out):
    tile = cuda.shared.array(64, np.int64)
    i = cuda.threadIdx.x
    tile[i] = -1
    cuda.syncthreads()
    tile[i] = fib_of_two(x[i])
    cuda.syncthreads()
    total = tile[63 - i]
    cuda.syncthreads()
    if i % 32 < 20:
        tile[i] = fib_of_two(total % 6) + i
        cuda.syncwarp(0xFFFFF)
        total += tile[i // 32 * 32 + (i + 1) % 20]
    out[i] = total + 1000 * cuda.syncthreads_count(fib_of_two(x[i] % 5) > 2)


@cuda.jit(device=True)
def fib_of_two(n):
    # The depth of calls is the same as in Python: no optimization converts a call to a loop.
    if n < 2:
        return n
    return (fib_of_two(n - 1) ^ 1) + (fib_of_two(n - 2) ^ 1)


@pytest.mark.parametrize("opt", [True, False])
def test_barriers_behind_calls_of_different_depths(opt):
    kernel = sums_of_branches if opt else cuda.jit(opt=False)(sums_of_branches.py_func)
    run(kernel, 1, 64, np.arange(64) % 9, np.zeros(64, np.int64))


@cuda.jit(device=True)
def halve(tile, step):
    if step == 0:
        return tile[0]
    i = cuda.threadIdx.x
    if i < step:
        tile[i] += tile[i + step]
    cuda.syncthreads()
    return halve(tile, step // 2)


@cuda.jit
def reduced(x, out):
    tile = cuda.shared.array(64, np.int64)
    i = cuda.threadIdx.x
    tile[i] = x[cuda.grid(1)]
    cuda.syncthreads()
    total = halve(tile, 32)
    if i == 0:
        out[cuda.blockIdx.x] = total


def test_a_barrier_in_a_function_that_calls_itself():
    x = np.arange(192)
    _, out = run(reduced, 3, 64, x, np.zeros(3, np.int64))
    assert out.tolist() == x.reshape(3, 64).sum(axis=1).tolist()


@cuda.jit(device=True)
def wait_for(flag, value):
    if cuda.atomic.add(flag, 0, 0) < value:
        wait_for(flag, value)


@cuda.jit
def in_turn(flag, out):
    # The last thread runs first.
    i = cuda.threadIdx.x
    mine = cuda.blockDim.x - 1 - i
    wait_for(flag, mine)
    out[i] = flag[0]
    cuda.atomic.add(flag, 0, 1)


@pytest.mark.cpu
def test_a_function_that_waits_by_calling_itself():
    _, out = launch(in_turn, 1, 8, np.zeros(1, np.int32), np.zeros(8, np.int32))
    assert out.tolist() == list(range(7, -1, -1))


@cuda.jit(device=True)
def fill_none(x, n):
    if n > 0:
        fill_none(x, n - 1)
        x[n - 1] += n


@cuda.jit
def filled(x):
    fill_none(x, x.size)


def test_a_function_that_returns_nothing():
    run(filled, 1, 1, np.zeros(9))


@cuda.jit(device=True)
def total(*values):
    if len(values) == 0:
        return 0
    return values[0] + total(*values[1:])


@cuda.jit(device=True)
def nested(t, n):
    if n == 3:
        return t[0]
    return nested((t, n), 3) if n == 0 else nested((1.0,), 3)


@cuda.jit
def other_types(x, out):
    out[0] = total(1, 2.5, x[0], x[1])
    out[1] = total()


def test_each_call_may_have_other_types():
    _, out = run(other_types, 1, 1, np.array([3, 4], np.int8), np.zeros(2))
    assert out.tolist() == [10.5, 0]


@cuda.jit(device=True)
def checked(n):
    assert n != 3
    return 0 if n <= 0 else 1 + checked(n - 2)


@cuda.jit
def asserting(out):
    i = cuda.threadIdx.x
    out[i] = checked(i) + 1


def test_an_assertion_ends_the_thread_from_within():
    (out,) = launch(asserting, 1, 8, np.zeros(8, np.int64))
    assert out.tolist() == [1, 2, 2, 0, 3, 0, 4, 0]


@cuda.jit
def inner_functions(out):
    scale = 2
    i = out.shape[0] - 1

    def factorial(n, base=1):
        if n < 2:
            return base
        return n * factorial(n - 1) * scale

    gcd = lambda a, b: a if b == 0 else gcd(b, a % b)  # noqa: E731
    out[i, 0] = factorial(i)
    out[i, 1] = gcd(i + 1, 12)


def test_inner_functions_call_themselves():
    for n in range(1, 9):
        like_python(inner_functions, np.zeros((n, 2), np.int64))


@cuda.jit
def counting(out):
    turns = 0

    def count(n):
        nonlocal turns
        turns += 1
        return n if n <= 1 else count(n - 1) + count(n - 2)

    out[0] = count(out.size)
    out[1] = turns


def test_an_inner_function_that_calls_itself_assigns_outside():
    for n in range(2, 9):
        like_python(counting, np.zeros(n, np.int64))


@cuda.jit(device=True)
def apply(f, n):
    return f(n)


@cuda.jit
def handed_on(out):
    i = cuda.threadIdx.x

    def down(n):
        return 0 if n <= 0 else 1 + apply(down, n - 3)

    out[i] = apply(down, i)


def test_an_inner_function_that_calls_itself_is_handed_on():
    (out,) = launch(handed_on, 1, 10, np.zeros(10, np.int64))
    assert out.tolist() == [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


@cuda.jit(device=True)
def for_ever(n):
    return for_ever(n - 1)


@cuda.jit(device=True)
def ping(n):
    return pong(n) + 1


@cuda.jit(device=True)
def pong(n):
    return ping(n) - 1


@cuda.jit(device=True)
def growing(t):
    return growing((t, 1)) if t[0] else 0


@cuda.jit(device=True)
def doubling(t, n):
    return doubling((t, 1), n) + doubling((t, 1.5), n) if n else 0


@cuda.jit
def itself(out):
    if out.size > 1:
        itself(out[1:])


@cuda.jit
def each_other(out):
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    out[0] = even(3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: for_ever, "`for_ever` calls itself on every path"),
        (lambda: ping, "`ping` calls itself on every path"),
    ],
)
def test_a_recursion_without_end(function, message):
    called = function()

    @cuda.jit
    def kernel(out):
        out[0] = called(3)

    with pytest.raises(CompileError, match=message):
        kernel[1, 1](np.zeros(1))


def test_types_without_end():
    @cuda.jit
    def grows(out):
        out[0] = growing((1, 1))

    @cuda.jit
    def doubles(out):
        out[0] = doubling((1, 1), 4)

    with pytest.raises(CompileError, match="`growing` calls itself with new argument types each time") as error:
        grows[1, 1](np.zeros(1))
    assert "Tuple(Tuple(int64, int64), int64)" in str(error.value)
    with pytest.raises(CompileError, match="`doubling` calls itself with new argument types each time"):
        doubles[1, 1](np.zeros(1))


def test_a_kernel_that_calls_itself():
    with pytest.raises(CompileError, match="the kernel `itself` calls itself"):
        itself[1, 1](np.zeros(2))


def test_inner_functions_that_call_each_other():
    with pytest.raises(CompileError, match="call each other"):
        each_other[1, 1](np.zeros(2))
