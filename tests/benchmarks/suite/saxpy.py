"""saxpy: one element a thread, and a grid-stride loop."""

from __future__ import annotations

import numpy as np

from suite.case import Case, Work, blocks, random, sized


def make_elementwise(cuda):
    @cuda.jit
    def saxpy(a, x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

    return saxpy


ELEMENTWISE_CPP = """
extern "C" __global__ void peer(float a, const float* __restrict__ x, const float* __restrict__ y,
                                float* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}
"""


def make_strided(cuda):
    @cuda.jit
    def saxpy_strided(a, x, y, out):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = a * x[i] + y[i]

    return saxpy_strided


STRIDED_CPP = """
extern "C" __global__ void peer(float a, const float* __restrict__ x, const float* __restrict__ y,
                                float* __restrict__ out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = a * x[i] + y[i];
}
"""


def work(size: str, n_blocks: int | None) -> Work:
    n = sized(size, 1 << 26, 1000, cpu=1 << 24)
    return Work(
        grid=(n_blocks or blocks(n, 256),),
        block=(256,),
        args=(np.float32(2.5), random(1, n), random(2, n), np.empty(n, np.float32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=12 * n,
        flops=2 * n,
    )


def reference(xp, args):
    a, x, y, _ = args
    return (float(a) * x.astype(xp.float64) + y,)


SIGNATURE = "void(float32, float32[::1], float32[::1], float32[::1])"
CASES = (
    Case(
        "saxpy, one element a thread",
        make_elementwise,
        SIGNATURE,
        ELEMENTWISE_CPP,
        lambda size: work(size, None),
        reference,
    ),
    Case(
        "saxpy, grid-stride",
        make_strided,
        SIGNATURE,
        STRIDED_CPP,
        lambda size: work(size, sized(size, 132 * 8, 2)),
        reference,
    ),
)
