"""Pipelines of asynchronous copies that wait as they must."""

import numpy as np
from cases import clean, f32
from weft import cuda


@clean(1, 64, lambda: (f32(64), f32(64)))
def reversed_after_a_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)
    cuda.copy_commit()
    cuda.copy_wait()
    cuda.syncthreads()
    out[i] = s[63 - i]


@clean(1, 64, lambda: (f32(64), f32(64)))
def own_element_without_a_barrier(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)
    cuda.copy_commit()
    cuda.copy_wait()
    out[i] = s[i]


@clean(2, 32, lambda: (f32(8, 128), f32(8, 128)))
def three_stages(a, out):
    s = cuda.shared.array((3, 128), np.float32)
    to, source = s.view(cuda.float32x4), a.view(cuda.float32x4)
    i = cuda.threadIdx.x
    for n in range(2):
        cuda.copy_async(to, (n, i), source, (n, i))
        cuda.copy_commit()
    for n in range(8):
        cuda.copy_wait(1)
        cuda.syncthreads()
        if n < 6:
            cuda.copy_async(to, ((n + 2) % 3, i), source, (n + 2, i))
        cuda.copy_commit()
        if cuda.blockIdx.x == 0:
            for k in range(4):
                out[n, i + 32 * k] = s[n % 3, 127 - i - 32 * k]


@clean(1, 64, lambda: (f32(64), f32(64)))
def other_elements_while_copies_are_in_flight(a, out):
    s = cuda.shared.array(128, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)
    cuda.copy_commit()
    s[64 + i] = a[i]
    cuda.syncthreads()
    out[i] = s[127 - i]
    cuda.copy_wait()
