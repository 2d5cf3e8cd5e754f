"""Row A6.24: a course's Monte Carlo kernels, with one random state per thread."""

import math

import numpy as np
from weft import cuda
from weft.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.jit
def monte_carlo_mean(rng_states, iterations, out):
    thread_id = cuda.grid(1)
    total = 0
    for _ in range(iterations):
        total += xoroshiro128p_uniform_float32(rng_states, thread_id)
    out[thread_id] = total / iterations


def test_a6_24_the_mean_of_many_numbers(device):
    threads_per_block, blocks = 64, 24
    rng_states = create_xoroshiro128p_states(threads_per_block * blocks, seed=1)
    out = np.zeros(threads_per_block * blocks, dtype=np.float32)
    monte_carlo_mean[blocks, threads_per_block](rng_states, size(device, 10_000, 1000), out)
    assert abs(out.mean() - 0.5) < 1e-3
    assert len(np.unique(out)) > 1000


@cuda.jit
def monte_carlo_pi(rng_states, n, inside):
    idx = cuda.grid(1)
    stride = cuda.gridsize(1)
    count = 0
    for _ in range(idx, n, stride):
        x = xoroshiro128p_uniform_float32(rng_states, idx)
        y = xoroshiro128p_uniform_float32(rng_states, idx)
        if x * x + y * y <= 1.0:
            count += 1
    inside[idx] = count


def test_a6_24_pi_by_counting_points(device):
    n, blocks, threads = size(device, 10_000_000, 1_000_000), 32, 128
    rng_states = create_xoroshiro128p_states(blocks * threads, seed=1)
    inside = np.zeros(blocks * threads, np.int64)
    monte_carlo_pi[blocks, threads](rng_states, n, inside)
    estimate = 4 * inside.sum() / n
    # The same points in NumPy: all numbers of each thread's sequence.
    words = np.zeros((blocks * threads, -(-n // (blocks * threads)), 2))
    states = create_xoroshiro128p_states(blocks * threads, seed=1).copy_to_host()
    s0, s1 = states["s0"].copy(), states["s1"].copy()
    for turn in range(words.shape[1]):
        for axis in range(2):
            words[:, turn, axis] = (((s0 + s1) >> np.uint64(11)) * 2.0**-53).astype(np.float32)
            mixed = s0 ^ s1
            s0 = (s0 << np.uint64(55) | s0 >> np.uint64(9)) ^ mixed ^ mixed << np.uint64(14)
            s1 = mixed << np.uint64(36) | mixed >> np.uint64(28)
    drawn = np.arange(words.shape[1])[None] * (blocks * threads) + np.arange(blocks * threads)[:, None] < n
    square = (words.astype(np.float32) ** 2).sum(2, dtype=np.float32)
    # A fused multiply-add may move a point on the circle to the other side.
    assert abs(int((drawn & (square <= 1)).sum()) - int(inside.sum())) <= n // 200_000
    assert abs(estimate - math.pi) < 0.01
