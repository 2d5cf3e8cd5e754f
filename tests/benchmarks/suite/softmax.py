"""Softmax of each row: one block a row, three passes, two reductions in shared memory."""

from __future__ import annotations

import math

import numpy as np

from suite.case import Case, Work, random, sized

LOWEST = np.float32(-np.inf)
ZERO = np.float32(0)


def make(cuda):
    @cuda.jit
    def softmax(a, out):
        shared = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        columns = a.shape[1]

        largest = LOWEST
        for i in range(tid, columns, 256):
            largest = max(largest, a[row, i])
        shared[tid] = largest
        cuda.syncthreads()
        half = 128
        while half > 0:
            if tid < half:
                shared[tid] = max(shared[tid], shared[tid + half])
            cuda.syncthreads()
            half >>= 1
        largest = shared[0]
        cuda.syncthreads()

        total = ZERO
        for i in range(tid, columns, 256):
            total += math.exp(a[row, i] - largest)
        shared[tid] = total
        cuda.syncthreads()
        half = 128
        while half > 0:
            if tid < half:
                shared[tid] += shared[tid + half]
            cuda.syncthreads()
            half >>= 1
        total = shared[0]

        for i in range(tid, columns, 256):
            out[row, i] = math.exp(a[row, i] - largest) / total

    return softmax


CPP = """
extern "C" __global__ void peer(const float* __restrict__ a, float* __restrict__ out, int columns) {
    __shared__ float shared[256];
    int tid = threadIdx.x;
    a += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;

    float largest = __int_as_float(0xff800000);  // minus infinity; NVRTC has no headers
    for (int i = tid; i < columns; i += 256) largest = fmaxf(largest, a[i]);
    shared[tid] = largest;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (tid < half) shared[tid] = fmaxf(shared[tid], shared[tid + half]);
        __syncthreads();
    }
    largest = shared[0];
    __syncthreads();

    float total = 0.0f;
    for (int i = tid; i < columns; i += 256) total += expf(a[i] - largest);
    shared[tid] = total;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (tid < half) shared[tid] += shared[tid + half];
        __syncthreads();
    }
    total = shared[0];

    for (int i = tid; i < columns; i += 256) out[i] = expf(a[i] - largest) / total;
}
"""


def work(size: str) -> Work:
    rows, columns = sized(size, (8192, 8192), (7, 600), cpu=(2048, 4096))
    return Work(
        grid=(rows,),
        block=(256,),
        args=(np.float32(8) * random(20, rows, columns), np.empty((rows, columns), np.float32)),
        outputs=(1,),
        extents=(columns,),
        n_bytes=8 * rows * columns,
    )


def reference(xp, args):
    a = args[0].astype(xp.float64)
    powers = xp.exp(a - a.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True),)


CASES = (Case("softmax of rows", make, "void(float32[:, ::1], float32[:, ::1])", CPP, work, reference),)
