"""A sum and a histogram: shared memory within a block, atomics between blocks."""

from __future__ import annotations

import numpy as np

from suite.case import Case, Work, random, random_bytes, sized

ZERO = np.float32(0)
NONE = np.uint32(0)
ONE = np.uint32(1)


def make_sum(cuda):
    @cuda.jit
    def block_sum(x, out):
        partial = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        total = ZERO
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            total += x[i]
        partial[tid] = total
        cuda.syncthreads()
        half = 128
        while half > 0:
            if tid < half:
                partial[tid] += partial[tid + half]
            cuda.syncthreads()
            half >>= 1
        if tid == 0:
            cuda.atomic.add(out, 0, partial[0])

    return block_sum


SUM_CPP = """
extern "C" __global__ void peer(const float* __restrict__ x, float* __restrict__ out, int n) {
    __shared__ float partial[256];
    int tid = threadIdx.x;
    float total = 0.0f;
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) total += x[i];
    partial[tid] = total;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (tid < half) partial[tid] += partial[tid + half];
        __syncthreads();
    }
    if (tid == 0) atomicAdd(out, partial[0]);
}
"""


def sum_work(size: str) -> Work:
    n, n_blocks = sized(size, (1 << 26, 132 * 8), (3000, 3), cpu=(1 << 25, 132 * 8))
    return Work(
        grid=(n_blocks,),
        block=(256,),
        args=(random(7, n), np.zeros(1, np.float32)),
        outputs=(1,),
        extents=(n,),
        n_bytes=4 * n,
        flops=n,
    )


def make_histogram(cuda):
    @cuda.jit
    def histogram(data, bins):
        counts = cuda.shared.array(256, np.uint32)
        tid = cuda.threadIdx.x
        counts[tid] = NONE
        cuda.syncthreads()
        for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
            cuda.atomic.add(counts, data[i], ONE)
        cuda.syncthreads()
        cuda.atomic.add(bins, tid, counts[tid])

    return histogram


HISTOGRAM_CPP = """
extern "C" __global__ void peer(const unsigned char* __restrict__ data, unsigned int* __restrict__ bins, int n) {
    __shared__ unsigned int counts[256];
    int tid = threadIdx.x;
    counts[tid] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[data[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[tid], counts[tid]);
}
"""


def histogram_work(size: str) -> Work:
    n, n_blocks = sized(size, (1 << 26, 132 * 8), (5000, 3), cpu=(1 << 24, 132 * 8))
    return Work(
        grid=(n_blocks,),
        block=(256,),
        args=(random_bytes(8, n), np.zeros(256, np.uint32)),
        outputs=(1,),
        extents=(n,),
        n_bytes=n,
    )


CASES = (
    Case(
        "sum",
        make_sum,
        "void(float32[::1], float32[::1])",
        SUM_CPP,
        sum_work,
        lambda xp, args: (args[0].sum(dtype=xp.float64).reshape(1),),
        accumulates=True,
    ),
    Case(
        "histogram, 256 bins",
        make_histogram,
        "void(uint8[::1], uint32[::1])",
        HISTOGRAM_CPP,
        histogram_work,
        lambda xp, args: (xp.bincount(args[0], minlength=256).astype(xp.float64),),
        tolerance=0.0,
        accumulates=True,
    ),
)
