"""A thread reads its own earlier writes, even if its accesses are vectorized with those of adjacent threads."""

import numpy as np
from harness import run
from weft import cuda

N = 64
AT = (np.arange(N) * 7 % 5).astype(np.int32)
X = np.arange(N, dtype=np.float32)


@cuda.jit
def local_element(x, at, out):
    t = cuda.threadIdx.x
    m = cuda.local.array(4, np.float32)
    for k in range(4):
        m[k] = x[t] + k
    cuda.syncthreads()
    a = m[1]
    m[at[t] % 4] = a + np.float32(100)
    out[t] = m[3] + a
    cuda.syncthreads()


def test_a_load_behind_a_store_to_a_local_array():
    run(local_element, 1, N, X, AT, np.zeros(N, np.float32))


@cuda.jit
def local_stores(x, at, out):
    t = cuda.threadIdx.x
    m = cuda.local.array(2, np.float32)
    m[0] = m[1] = x[t]
    cuda.syncthreads()
    m[0] = x[t] + np.float32(1)
    m[at[t] % 2] = np.float32(-1)
    m[1] = m[1] + np.float32(2)
    cuda.syncthreads()
    out[t] = m[0] * np.float32(256) + m[1]


def test_a_store_behind_a_store_to_a_local_array():
    run(local_stores, 1, N, X, AT, np.zeros(N, np.float32))


@cuda.jit
def pairs(x, at, out):
    t = cuda.threadIdx.x
    a = x[2 * t]
    x[2 * t + at[t] % 2] = a + np.float32(100)
    out[t] = x[2 * t + 1] + a


def test_a_load_behind_a_store_to_a_pair():
    run(pairs, 1, N, np.arange(2 * N, dtype=np.float32), AT, np.zeros(N, np.float32))


@cuda.jit
def in_place(x, y, at, out):
    t = cuda.threadIdx.x
    a = x[2 * t]
    y[2 * t + at[t] % 2] = a + np.float32(100)
    out[t] = x[2 * t + 1] + a


def test_a_load_behind_a_store_by_another_name():
    x, out = np.arange(2 * N, dtype=np.float32), np.zeros(N, np.float32)
    memory = cuda.to_device(x)
    in_place[1, N](memory, memory, AT, out)
    a = x[::2]
    assert out.tolist() == (np.where(AT % 2 == 1, a + 100, x[1::2]) + a).tolist()


@cuda.jit
def parts(z, at, out):
    t = cuda.threadIdx.x
    a = z[t].real
    z[t - at[t] % 2 + at[t] % 2] = complex(a, np.float32(-1))
    out[t] = z[t].imag + a


def test_a_part_of_a_complex_number_behind_a_store():
    run(parts, 1, N, (X + 1j * X).astype(np.complex64), AT, np.zeros(N, np.float32))


@cuda.jit(device=True)
def put(row, at):
    row[at] = np.float32(100)


@cuda.jit
def by_a_function(x, at, out):
    t = cuda.threadIdx.x
    m = cuda.local.array(4, np.float32)
    for k in range(4):
        m[k] = x[t] + k
    cuda.syncthreads()
    a = m[1]
    put(m, at[t] % 4)
    out[t] = m[3] + a
    cuda.syncthreads()


def test_a_load_behind_a_store_in_a_function():
    run(by_a_function, 1, N, X, AT, np.zeros(N, np.float32))
