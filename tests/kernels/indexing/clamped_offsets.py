# weft: sig = "void(float32[:, ::1], float32[::1])", assume = ["disjoint", "small"], show = ["ptx"]
"""Clamped indices of 64 bits: the offset is computed in 32 bits, and extended with its address by one instruction."""

import math

import numpy as np

from weft import cuda


@cuda.jit
def clamped_offsets(image, out):
    i = cuda.grid(1)
    position = np.float32(0.25) * np.float32(i)
    first = int(math.floor(position))
    total = np.float32(0)
    for k in range(-1, 3):
        column = min(max(first + k, 0), image.shape[1] - 1)
        total += image[cuda.blockIdx.y, column]
    out[i] = total
