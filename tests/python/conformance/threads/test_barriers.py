"""Barriers: in straight code, loops, branches, device functions and after early returns."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def block_sum(x, out):
    tile = cuda.shared.array(64, np.int64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            tile[t] += tile[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = tile[0]


@pytest.mark.parametrize("size", [256, 250, 1])
def test_reduction(size):
    x = np.arange(size) + 1
    out = run(block_sum, 4, 64, x, np.zeros(4, np.int64))[1]
    assert out.sum() == x.sum()


@cuda.jit
def early_return(x, out):
    tile = cuda.shared.array(32, np.float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = -1.0
    if i >= x.size:
        return
    tile[t] = x[i]
    cuda.syncthreads()
    last = min(x.size - cuda.blockIdx.x * cuda.blockDim.x, cuda.blockDim.x) - 1
    out[i] = tile[last - t]


@pytest.mark.parametrize("size", [64, 50, 33, 3])
def test_threads_that_returned_do_not_count(size):
    run(early_return, 2, 32, np.arange(float(size)), np.zeros(size))


@cuda.jit
def rounds(x, n, out):
    a = cuda.shared.array(16, np.int64)
    t = cuda.threadIdx.x
    a[t] = x[t]
    for k in range(n):
        cuda.syncthreads()
        left = a[t - 1]
        cuda.syncthreads()
        a[t] = a[t] + left * (k + 1)
    out[t] = a[t]


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_barriers_in_a_loop(n):
    run(rounds, 1, 16, np.arange(16), n, np.zeros(16, np.int64))


@cuda.jit
def rounds_with_exits(x, out):
    a = cuda.shared.array(16, np.int64)
    t = cuda.threadIdx.x
    a[t] = x[t]
    turn = 0
    while True:
        cuda.syncthreads()
        if a[0] > 500:  # uniform
            break
        mine = a[(t + 5) % 16] + 1
        turn += 1
        cuda.syncthreads()
        if turn % 3 == 0:
            continue
        a[t] += mine
    out[t] = a[t] * 100 + turn


def test_break_and_continue_around_barriers():
    run(rounds_with_exits, 1, 16, np.arange(16), np.zeros(16, np.int64))


@cuda.jit
def uniform_branch(x, flag, out):
    a = cuda.shared.array(16, np.int64)
    t = cuda.threadIdx.x
    a[t] = x[t]
    if flag > 0:
        cuda.syncthreads()
        mine = a[15 - t]
        cuda.syncthreads()
        a[t] = mine * flag
    else:
        mine = -1
        if flag == 0:
            cuda.syncthreads()
            mine = a[(t + 1) % 16]
    out[t] = a[t] * 1000 + mine


@pytest.mark.parametrize("flag", [-1, 0, 1, 2])
def test_barriers_in_a_branch_that_all_threads_take(flag):
    run(uniform_branch, 2, 16, np.arange(16), flag, np.zeros(16, np.int64))


@cuda.jit
def exchange(tile, mine):
    t = cuda.threadIdx.x
    cuda.syncthreads()
    tile[t] = mine
    cuda.syncthreads()
    return tile[cuda.blockDim.x - 1 - t]


@cuda.jit
def exchanges(x, out):
    tile = cuda.shared.array(16, np.int64)
    i = cuda.grid(1)
    once = exchange(tile, x[i])
    twice = exchange(tile, once * 10 + 1)
    out[i] = once * 1000 + twice
    for k in range(3):
        out[i] += exchange(tile, k * out[i])


def test_barriers_in_a_device_function():
    run(exchanges, 2, 16, np.arange(32), np.zeros(32, np.int64))


@cuda.jit
def prefix_sum(x, out):
    a = cuda.shared.array((2, 32), np.float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    a[0, t] = x[i]
    source = 0
    offset = 1
    while offset < 32:
        cuda.syncthreads()
        target = 1 - source
        a[target, t] = a[source, t] + (a[source, t - offset] if t >= offset else 0.0)
        source = target
        offset *= 2
    out[i] = a[source, t]


def test_prefix_sum():
    x = np.arange(64.0)
    out = run(prefix_sum, 2, 32, x, np.zeros(64))[1]
    np.testing.assert_array_equal(out.reshape(2, 32), np.cumsum(x.reshape(2, 32), axis=1))


@cuda.jit
def locals_survive(x, out):
    tile = cuda.shared.array(32, np.float32)
    mine = cuda.local.array(4, np.float32)
    t = cuda.threadIdx.x
    a, b, c = x[t], x[t] * 2, t
    flag = x[t] > 10
    for k in range(4):
        mine[k] = x[t] * k
    tile[t] = a
    cuda.syncthreads()
    d = tile[31 - t]
    pair = (a + d, b - d)
    cuda.syncthreads()
    tile[t] = pair[1]
    cuda.syncthreads()
    total = mine[0] + mine[1] + mine[2] + mine[3]
    out[t] = tile[(t + 1) % 32] + pair[0] + b + c + total + (100 if flag else 0)


def test_variables_survive_a_barrier():
    run(locals_survive, 1, 32, np.arange(32, dtype=np.float32), np.zeros(32))


@pytest.mark.parametrize("block", [(8, 4), (4, 4, 2), (2, 2, 8), (1, 32)])
def test_blocks_of_several_dimensions(block):
    @cuda.jit
    def kernel(out):
        tile = cuda.shared.array(32, np.int64)
        d, t = cuda.blockDim, cuda.threadIdx
        linear = t.x + d.x * (t.y + d.y * t.z)
        tile[linear] = linear * linear
        cuda.syncthreads()
        out[linear] = tile[31 - linear]

    out = run(kernel, 1, block, np.zeros(32, np.int64))[0]
    assert out.tolist() == [(31 - k) ** 2 for k in range(32)]


def test_a_block_of_1024_threads():
    @cuda.jit
    def kernel(out):
        tile = cuda.shared.array(1024, np.int32)
        t = cuda.threadIdx.x
        tile[t] = t
        cuda.syncthreads()
        out[cuda.grid(1)] = tile[1023 - t]

    out = run(kernel, 2, 1024, np.zeros(2048, np.int32))[0]
    assert out.tolist() == list(range(1023, -1, -1)) * 2


@cuda.jit
def warp_rotate(x, out):
    tile = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    first = t // 32 * 32
    tile[t] = x[t]
    cuda.syncwarp()
    mine = tile[first + (t + 1) % 32]
    cuda.syncwarp(0xFFFFFFFF)
    tile[t] = mine * 2
    cuda.syncwarp()
    out[t] = tile[first + (t + 31) % 32]


def test_syncwarp():
    run(warp_rotate, 1, 64, np.arange(64, dtype=np.int32), np.zeros(64, np.int32))


@cuda.jit
def divergent_values(x, out):
    tile = cuda.shared.array(16, np.int64)
    t = cuda.threadIdx.x
    if x[t] % 2:
        v = x[t] * 3
    else:
        v = -x[t]
        for k in range(x[t]):
            v += k
    tile[t] = v
    cuda.syncthreads()
    w = tile[15 - t]
    if w < 0:
        out[t] = -1
        return
    out[t] = w


def test_divergence_between_barriers():
    run(divergent_values, 1, 16, np.arange(16), np.zeros(16, np.int64))


@cuda.jit(device=True)
def from_the_left(s, t, item):
    s[t] = item
    cuda.syncthreads()
    left = s[t - 1]
    cuda.syncthreads()
    return left


@cuda.jit(device=True)
def returns_apart_from_loops(s, t, item, turns):
    if turns > 3:
        return from_the_left(s, t, item) + 1
    for k in range(turns):
        item += from_the_left(s, t, item)
        if k == 1:
            return item
    return from_the_left(s, t, item * 2)


@cuda.jit
def barriers_in_expressions(x, n, out):
    s = cuda.shared.array(8, np.int64)
    t = cuda.threadIdx.x
    v = x[t]
    out[t, 0] = from_the_left(s, t, v) + from_the_left(s, t, v * 2) * 10
    out[t, 1] = from_the_left(s, t, from_the_left(s, t, v))
    out[t, 2] = from_the_left(s, t, v) if n > 2 else 7
    out[t, 3] = n > 2 and from_the_left(s, t, v) > 3
    out[t, from_the_left(s, t, 4)] = returns_apart_from_loops(s, t, v, n)
    k = 0
    while from_the_left(s, t, k) < n:
        k += 1
        v += from_the_left(s, t, v)
    else:
        v += 100
    out[t, 5] = min(from_the_left(s, t, v), from_the_left(s, t, 1), v)
    for _ in range(from_the_left(s, t, n)):
        v += s[t - 1]
    cuda.syncthreads()
    out[t, 6] = v
    w = 1
    w += from_the_left(s, t, (w := 5)) + w
    out[t, 7] = w
    if (n > 1 and from_the_left(s, t, n) > 1) or from_the_left(s, t, 3) == 3:
        out[t, 8] = from_the_left(s, t, t)


@pytest.mark.parametrize("n", range(6))
def test_a_call_with_barriers_is_an_operand(n):
    run(barriers_in_expressions, 1, 8, np.arange(8) * 3, n, np.zeros((8, 9), np.int64))


@cuda.jit
def reductions(x, out):
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    value = x[i] if i < x.size else 0
    out[i, 0] = cuda.syncthreads_count(value)
    out[i, 1] = cuda.syncthreads_and(value > 0)
    out[i, 2] = cuda.syncthreads_or(value > 8.5)
    out[i, 3] = cuda.syncthreads_count(t % 3 == 0) + cuda.syncthreads_count(True)
    cuda.syncthreads_or(value)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float32])
@pytest.mark.parametrize("size", [0, 7, 40, 66])
def test_barriers_that_count(size, dtype):
    x = (np.arange(size) % 10).astype(dtype)
    run(reductions, 2, 33, x, np.zeros((66, 4), np.int64))


def test_a_count_is_the_same_for_all_threads_of_a_block():
    out = run(reductions, 2, 33, np.arange(66), np.zeros((66, 4), np.int64))[1]
    assert out[0].tolist() == [32, 0, 1, 44]
    assert out[33].tolist() == [33, 1, 1, 44]


@cuda.jit
def counted_in_loops(x, out):
    t = cuda.threadIdx.x
    rounds = 0
    left = x[t]
    while cuda.syncthreads_or(left > 0):
        left -= 1
        rounds += cuda.syncthreads_count(left > 0)
    out[t] = rounds


def test_a_loop_until_no_thread_has_work_left():
    run(counted_in_loops, 1, 48, np.arange(48) % 7, np.zeros(48, np.int64))


@cuda.jit
def counted_after_returns(x, out):
    t = cuda.threadIdx.x
    if t >= x.size:
        return
    out[t] = cuda.syncthreads_count(x[t]) * 10
    if x[t] == 3:
        return
    out[t] += cuda.syncthreads_and(x[t] != 3) + cuda.syncthreads_count(x[t])


@pytest.mark.parametrize("size", [32, 31, 5, 1])
def test_threads_that_returned_are_not_counted(size):
    run(counted_after_returns, 1, 32, np.arange(size) % 4, np.zeros(32, np.int64))


@cuda.jit(device=True)
def how_many(value):
    return cuda.syncthreads_count(value > 2)


@cuda.jit
def counted_by_blocks(x, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x % 2 == 0:
        out[cuda.grid(1)] = how_many(x[t]) + 100 * how_many(x[t] + t)
    else:
        for k in range(3):
            out[cuda.grid(1)] += how_many(x[t] + k)


def test_counts_in_device_functions_and_branches():
    run(counted_by_blocks, 3, 40, np.arange(40) % 5, np.zeros(120, np.int64))
