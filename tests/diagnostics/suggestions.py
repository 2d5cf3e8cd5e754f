# weft: sig = "void(float32[::1], int64)"
"""Beginners' mistakes, and what each message says to write instead."""

import random
import time

import numpy as np
from weft import cuda, float32


@cuda.jit
def other(x):
    x[0] = 1.0


@cuda.jit
def suggestions(x, n):
    i = cuda.threadIdx[0]  # error: [E0209] "cuda.threadIdx"
    other[1, 1](x)  # error: [E0209] "function other"
    x[1] = np.linalg.norm(x)  # error: [E0207] "linalg"
    x[2] = np.random.rand()  # error: [E0207] "random"
    x[3] = random.random()  # error: [E0202] "`random` is a module"
    x[4] = time.time()  # error: [E0202] "`time` is a module"
    print("n is " + n)  # error: [E0211] "str and int64"
    if x > 0:  # error: [E0211] "compare"
        x[5] = n.astype(np.float32)  # error: [E0207] "astype"
    mine = cuda.local.array(n, float32)  # error: [E0210] "cuda.local.array"
    tile = cuda.shared.array(8, 8, dtype=float32)  # error: [E0206] "multiple values"
    sizes = cuda.local.array(8, float)  # error: [E0205] "float"
    cuda.atomic.add(x, 1.0)  # error: [E0206] "3 arguments"
    x[i] = mine[0] + tile[0] + sizes[0]
