"""Handwritten random numbers: pi by Monte Carlo with a 32-bit xorshift, and random walks by a linear congruence."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, sized

ONE = np.float32(1)
SCALE = np.float32(2.0**-24)


def random_states(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 1 << 32, n, dtype=np.uint32)


def make_pi(cuda):
    @cuda.jit
    def pi(seeds, samples, hits):
        i = cuda.grid(1)
        if i < seeds.size:
            state = seeds[i]
            count = 0
            for _ in range(samples):
                state = np.uint32(state ^ (state << 13))
                state = np.uint32(state ^ (state >> 17))
                state = np.uint32(state ^ (state << 5))
                x = np.float32(state >> 8) * SCALE
                state = np.uint32(state ^ (state << 13))
                state = np.uint32(state ^ (state >> 17))
                state = np.uint32(state ^ (state << 5))
                y = np.float32(state >> 8) * SCALE
                if x * x + y * y <= ONE:
                    count += 1
            hits[i] = count

    return pi


PI_CPP = """
extern "C" __global__ void peer(const unsigned int* seeds, int samples, int* hits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int state = seeds[i];
        int count = 0;
        for (int k = 0; k < samples; ++k) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            float x = (state >> 8) * 0x1p-24f;
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            float y = (state >> 8) * 0x1p-24f;
            if (x * x + y * y <= 1.0f) ++count;
        }
        hits[i] = count;
    }
}
"""


def pi_work(size: str) -> Work:
    n, samples = sized(size, (1 << 18, 512), (300, 40), cpu=(1 << 16, 512))
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(random_states(70, n), np.int32(samples), np.empty(n, np.int32)),
        outputs=(2,),
        extents=(n,),
        n_bytes=8 * n,
        flops=16 * n * samples,
    )


def pi_reference(xp, args):
    state, hits = args[0].copy(), xp.zeros(args[0].shape, xp.int32)
    for _ in range(int(args[1])):
        point = []
        for _ in range(2):
            state ^= state << 13
            state ^= state >> 17
            state ^= state << 5
            point.append((state >> 8).astype(xp.float64) * 2.0**-24)
        hits += point[0] ** 2 + point[1] ** 2 <= 1
    return (hits,)


def make_walk(cuda):
    @cuda.jit
    def walk(seeds, steps, out):
        i = cuda.grid(1)
        if i < seeds.size:
            state = seeds[i]
            x = 0
            y = 0
            for _ in range(steps):
                state = (1664525 * state + 1013904223) & 0xFFFFFFFF
                direction = state >> 30
                if direction == 0:
                    x += 1
                elif direction == 1:
                    x -= 1
                elif direction == 2:
                    y += 1
                else:
                    y -= 1
            out[i] = x * x + y * y

    return walk


WALK_CPP = """
extern "C" __global__ void peer(const unsigned int* seeds, int steps, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int state = seeds[i];
        int x = 0, y = 0;
        for (int k = 0; k < steps; ++k) {
            state = 1664525u * state + 1013904223u;
            unsigned int direction = state >> 30;
            if (direction == 0)
                ++x;
            else if (direction == 1)
                --x;
            else if (direction == 2)
                ++y;
            else
                --y;
        }
        out[i] = x * x + y * y;
    }
}
"""


def walk_work(size: str) -> Work:
    n, steps = sized(size, (1 << 18, 512), (300, 60), cpu=(1 << 16, 512))
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(random_states(71, n), np.int32(steps), np.empty(n, np.int32)),
        outputs=(2,),
        extents=(n,),
        n_bytes=8 * n,
        flops=6 * n * steps,
    )


def walk_reference(xp, args):
    state = args[0].astype(xp.uint64)
    x, y = xp.zeros(state.shape, xp.int64), xp.zeros(state.shape, xp.int64)
    for _ in range(int(args[1])):
        state = (state * xp.uint64(1664525) + xp.uint64(1013904223)) & xp.uint64(0xFFFFFFFF)
        direction = state >> xp.uint64(30)
        x += (direction == 0).astype(xp.int64) - (direction == 1)
        y += (direction == 2).astype(xp.int64) - (direction == 3)
    return (x * x + y * y,)


CASES = (
    Case(
        "pi by a xorshift",
        make_pi,
        "void(uint32[::1], int32, int32[::1])",
        PI_CPP,
        pi_work,
        pi_reference,
        # With a fused product, x * x + y * y is rounded once less, which moves points on the circle.
        tolerance=1e-2,
    ),
    Case(
        "random walks by a linear congruence",
        make_walk,
        "void(uint32[::1], int32, int32[::1])",
        WALK_CPP,
        walk_work,
        walk_reference,
        tolerance=0.0,
        wider=True,
    ),
)
