"""Kernels that access bytes which an asynchronous copy has not written yet."""

import numpy as np
from cases import f32, planted
from weft import cuda


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def read_without_a_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)  # fault
    cuda.copy_commit()
    out[i] = s[i]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def barrier_without_a_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)  # fault
    cuda.copy_commit()
    cuda.syncthreads()
    out[i] = s[63 - i]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def wait_without_a_barrier(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)  # fault
    cuda.copy_commit()
    cuda.copy_wait()
    out[i] = s[63 - i]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def wait_without_a_group(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)  # fault
    cuda.copy_wait()
    cuda.syncthreads()
    out[i] = s[63 - i]  # fault


@planted("racecheck", 1, 32, lambda: (f32(4, 128), f32(4, 128)))
def wait_for_one_group_too_few(a, out):
    s = cuda.shared.array((2, 128), np.float32)
    to, source = s.view(cuda.float32x4), a.view(cuda.float32x4)
    i = cuda.threadIdx.x
    cuda.copy_async(to, (0, i), source, (0, i))  # fault
    cuda.copy_commit()
    for n in range(4):
        if n < 3:
            cuda.copy_async(to, ((n + 1) % 2, i), source, (n + 1, i))  # fault
        cuda.copy_commit()
        cuda.copy_wait(2)
        cuda.syncthreads()
        out[n, i] = s[n % 2, 127 - i]  # fault
        cuda.syncthreads()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def write_to_bytes_in_flight(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)  # fault
    s[i] = np.float32(1)  # fault
    cuda.copy_commit()
    cuda.copy_wait()
    out[i] = s[i]


@planted("racecheck", 1, 64, lambda: (f32(2, 64), f32(64)))
def copies_to_the_same_element(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, (0, i))  # fault
    cuda.copy_async(s, i, a, (1, i))  # fault
    cuda.copy_commit()
    cuda.copy_wait()
    out[i] = s[i]


@planted("racecheck", 1, 64, lambda: (f32(4, 64), f32(4, 64)))
def stage_is_filled_while_it_is_read(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    for n in range(4):
        cuda.copy_async(s, i, a, (n, i))  # fault
        cuda.copy_commit()
        cuda.copy_wait()
        cuda.syncthreads()
        out[n, i] = s[63 - i]  # fault


@planted("memcheck", 1, 64, lambda: (f32(60), f32(64)))
def source_out_of_bounds(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.copy_async(s, i, a, i)  # fault
    cuda.copy_commit()
    cuda.copy_wait()
    out[i] = s[i]
