"""Values that are the same for all lanes of a warp: results of butterflies, votes, reductions and shuffles from one
lane, and what a kernel computes from them. Where each warp is a block, they are computed once for the warp."""

import math

import numpy as np
import pytest
from harness import launch, run
from weft import cuda

FULL = 0xFFFFFFFF


def values(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def test_a_recurrence_of_totals():
    @cuda.jit
    def attend(queries, keys, out):
        row = cuda.grid(1) // 32
        lane = cuda.laneid
        highest = np.float32(-1000)
        norm = np.float32(0)
        total = np.float32(0)
        for key in range(keys.shape[0]):
            score = queries[row, lane] * keys[key, lane]
            d = 16
            while d > 0:
                score += cuda.shfl_xor_sync(FULL, score, d)
                d //= 2
            if score > 40:
                score = np.float32(40)
            above = max(highest, score)
            norm = norm * math.exp(highest - above) + math.exp(score - above)
            total = total * math.exp(highest - above) + lane * math.exp(score - above)
            highest = above
        out[row, lane] = total / norm + score

    run(attend, 3, 64, values(1, 6, 32), values(2, 5, 32), np.zeros((6, 32), np.float32), rtol=1e-5)


def test_a_local_before_and_after_its_butterfly():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        v = x[i]
        out[0, i] = v
        for k in range(3):
            v += k * x[i]
            out[1, i] += v
            for d in (16, 8, 4, 2, 1):
                v = max(v, cuda.shfl_xor_sync(FULL, v, d))
            out[2, i] += v
            if cuda.laneid % 2 == 0:
                v -= x[i]
        out[3, i] = v

    run(kernel, 2, 96, values(3, 192), np.zeros((4, 192), np.float32))


@pytest.mark.parametrize("same", [True, False])
def test_the_value_of_one_lane(same):
    @cuda.jit
    def kernel(x, lanes, out):
        row = cuda.grid(1) // 32
        own = cuda.laneid
        total = np.float32(0)
        last = x[row, own]
        for k in range(4):
            lane = lanes[k] if same else (lanes[k] + own) % 32
            v = cuda.shfl_sync(FULL, x[row, own] + k, lane)
            w = cuda.shfl_sync(FULL, last, (lane + 1) % 32)
            total = total * 3 + v + w
            last = v - last
        out[row, own] = total

    run(kernel, 2, 64, values(4, 4, 32), np.array([0, 31, 7, 40]), np.zeros((4, 32), np.float32))


def test_the_value_of_one_lane_of_a_tile():
    @cuda.jit
    def kernel(x, out):
        row = cuda.grid(1) // 32
        lane = cuda.laneid
        total = np.float32(0)
        for k in range(5):
            total = total * 2 + cuda.shfl_sync(FULL, x[row, lane] + k, 3 * k, 16)
        out[row, lane] = total

    x = values(5, 4, 32)
    expected = np.zeros((8, 1), np.float32)
    for k in range(5):
        expected = expected * 2 + x.reshape(8, 16)[:, 3 * k, None] + np.float32(k)
    _, out = launch(kernel, 2, 64, x, np.zeros((4, 32), np.float32))
    np.testing.assert_array_equal(out.reshape(8, 16), np.repeat(expected, 16, axis=1))


def test_votes_that_end_a_loop():
    @cuda.jit
    def kernel(x, out, rounds):
        row = cuda.grid(1) // 32
        lane = cuda.laneid
        v = x[row, lane]
        n = 0
        while cuda.any_sync(FULL, v > 0):
            bits = cuda.ballot_sync(FULL, v > 3)
            if bits == 0:
                v -= 2
            v -= 1 + cuda.popc(bits) % 2
            n += 1
            if cuda.all_sync(FULL, v < 2):
                break
        out[row, lane] = v
        rounds[row, lane] = n

    run(kernel, 3, 64, values(6, 6, 32), np.zeros((6, 32), np.float32), np.zeros((6, 32), np.int32))


def test_votes_of_the_lanes_that_are_left():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        if i >= n:
            return
        bits = cuda.ballot_sync(cuda.activemask(), x[i] > 0)
        out[i] = cuda.popc(bits) * 100 + cuda.popc(bits & ((1 << cuda.laneid) - 1))

    run(kernel, 3, 64, values(7, 192), 150, np.zeros(192, np.int64))


def test_votes_of_some_lanes():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        lane = cuda.laneid
        mask = 0xFFFF if lane < 16 else 0xFFFF0000
        out[i] = cuda.popc(cuda.ballot_sync(mask, x[i] > 0))
        if lane < 8:
            out[i] += 100 * cuda.popc(cuda.ballot_sync(0xFF, x[i] > 2))

    run(kernel, 2, 64, values(8, 128), np.zeros(128, np.int32))


def test_integer_reductions():
    @cuda.jit
    def kernel(x, out):
        row = cuda.grid(1) // 32
        lane = cuda.laneid
        total = 0
        for k in range(3):
            mine = x[row, lane]
            total = total * 2 + cuda.reduce_add_sync(FULL, mine + k) - cuda.reduce_min_sync(FULL, mine * k)
        out[row, lane] = total + lane

    run(kernel, 2, 64, values(9, 4, 32).astype(np.int32), np.zeros((4, 32), np.int32))


def test_a_branch_that_only_some_warps_take():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        v = x[i]
        if x[i // 32 * 32] > 0:
            for d in (16, 8, 4, 2, 1):
                v += cuda.shfl_xor_sync(FULL, v, d)
            out[i] = v / 2
        else:
            out[i] = v

    x = values(10, 192)
    x[::32] = 1, -1, 2, -3, 4, 0
    run(kernel, 3, 64, x, np.zeros(192, np.float32))
