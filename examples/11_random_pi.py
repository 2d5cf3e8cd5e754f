"""Estimate π from random points: random numbers without states, a ufunc, and a reduction."""

import math

import numpy as np
from weft import cuda, vectorize

POINTS = 1_000_000
SEED = 2024


@cuda.jit
def draw(x, y):
    """Draw the point i: the same on every device, and in whatever order."""
    i = cuda.grid(1)
    if i < x.size:
        x[i] = cuda.random.philox_uniform_float32(SEED, i, 0)
        y[i] = cuda.random.philox_uniform_float32(SEED, i, 1)


@vectorize(["int64(float32, float32)"])
def is_inside(x, y):
    return x * x + y * y <= 1


@cuda.reduce
def total(a, b):
    return a + b


x = cuda.device_array(POINTS, np.float32)
y = cuda.device_array(POINTS, np.float32)
draw[(POINTS + 255) // 256, 256](x, y)
pi = 4 * total(is_inside(x, y)) / POINTS

# Four standard deviations of the estimate.
error = 4 * 4 * math.sqrt(math.pi / 4 * (1 - math.pi / 4) / POINTS)
print(f"{pi:.4f} is {'near pi' if abs(pi - math.pi) < error else 'wrong'}")
