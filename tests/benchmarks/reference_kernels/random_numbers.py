"""Handwritten random numbers as loops for Numba: pi by a 32-bit xorshift, and random walks by a linear congruence."""

import numpy as np
from second.random_numbers import ONE, SCALE

from reference_kernels.jit import alone, loops, prange


@alone
def shifted(state):
    state = np.uint32(state ^ (state << np.uint32(13)))
    state = np.uint32(state ^ (state >> np.uint32(17)))
    return np.uint32(state ^ (state << np.uint32(5)))


@loops
def pi(seeds, samples, hits):
    for i in prange(seeds.size):
        state = seeds[i]
        count = 0
        for _ in range(samples):
            state = shifted(state)
            x = np.float32(state >> np.uint32(8)) * SCALE
            state = shifted(state)
            y = np.float32(state >> np.uint32(8)) * SCALE
            if x * x + y * y <= ONE:
                count += 1
        hits[i] = count


@loops
def walk(seeds, steps, out):
    for i in prange(seeds.size):
        state = seeds[i]
        x = 0
        y = 0
        for _ in range(steps):
            state = np.uint32(np.uint32(1664525) * state + np.uint32(1013904223))
            direction = state >> np.uint32(30)
            if direction == 0:
                x += 1
            elif direction == 1:
                x -= 1
            elif direction == 2:
                y += 1
            else:
                y -= 1
        out[i] = x * x + y * y
