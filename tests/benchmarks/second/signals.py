"""An FFT of 256 points in shared memory, and a histogram of points in the plane."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, random, sized

POINTS, LOG2 = 256, 8
SIDE = 32


def make_fft(cuda):
    @cuda.jit
    def fft(real, imaginary, cosines, sines, out_real, out_imaginary):
        re = cuda.shared.array(POINTS, np.float32)
        im = cuda.shared.array(POINTS, np.float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        for i in range(tid, POINTS, POINTS // 2):
            reversed_bits = 0
            for bit in range(LOG2):
                reversed_bits |= ((i >> bit) & 1) << (LOG2 - 1 - bit)
            re[reversed_bits] = real[row, i]
            im[reversed_bits] = imaginary[row, i]
        cuda.syncthreads()
        half = 1
        while half < POINTS:
            k = tid % half
            top = (tid // half) * 2 * half + k
            bottom = top + half
            w = k * (POINTS // (2 * half))
            c = cosines[w]
            s = sines[w]
            r = re[bottom] * c + im[bottom] * s
            t = im[bottom] * c - re[bottom] * s
            re[bottom] = re[top] - r
            im[bottom] = im[top] - t
            re[top] += r
            im[top] += t
            cuda.syncthreads()
            half *= 2
        for i in range(tid, POINTS, POINTS // 2):
            out_real[row, i] = re[i]
            out_imaginary[row, i] = im[i]

    return fft


FFT_CPP = """
#define POINTS 256
#define LOG2 8
extern "C" __global__ void peer(const float* real, const float* imaginary, const float* cosines, const float* sines,
                                float* out_real, float* out_imaginary) {
    __shared__ float re[POINTS], im[POINTS];
    int tid = threadIdx.x, row = blockIdx.x;
    for (int i = tid; i < POINTS; i += POINTS / 2) {
        int reversed_bits = 0;
        for (int bit = 0; bit < LOG2; ++bit) reversed_bits |= ((i >> bit) & 1) << (LOG2 - 1 - bit);
        re[reversed_bits] = real[row * POINTS + i];
        im[reversed_bits] = imaginary[row * POINTS + i];
    }
    __syncthreads();
    for (int half = 1; half < POINTS; half *= 2) {
        int k = tid % half, top = (tid / half) * 2 * half + k, bottom = top + half, w = k * (POINTS / (2 * half));
        float c = cosines[w], s = sines[w];
        float r = re[bottom] * c + im[bottom] * s, t = im[bottom] * c - re[bottom] * s;
        re[bottom] = re[top] - r;
        im[bottom] = im[top] - t;
        re[top] += r;
        im[top] += t;
        __syncthreads();
    }
    for (int i = tid; i < POINTS; i += POINTS / 2) {
        out_real[row * POINTS + i] = re[i];
        out_imaginary[row * POINTS + i] = im[i];
    }
}
"""


def fft_work(size: str) -> Work:
    rows = sized(size, 1 << 15, 3, cpu=1 << 13)
    angles = 2 * np.pi * np.arange(POINTS // 2) / POINTS
    return Work(
        grid=(rows,),
        block=(POINTS // 2,),
        args=(
            random(90, rows, POINTS), random(91, rows, POINTS),
            np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32),
            np.empty((rows, POINTS), np.float32), np.empty((rows, POINTS), np.float32),
        ),
        outputs=(4, 5),
        extents=(),
        n_bytes=16 * rows * POINTS,
        flops=5 * rows * POINTS * LOG2,
    )  # fmt: skip


def fft_reference(xp, args):
    transformed = xp.fft.fft(args[0].astype(xp.float64) + 1j * args[1].astype(xp.float64), axis=1)
    return transformed.real, transformed.imag


def make_histogram(cuda):
    @cuda.jit
    def histogram2d(x, y, scale, bins):
        counts = cuda.shared.array((SIDE, SIDE), np.int32)
        tid = cuda.threadIdx.x
        for i in range(tid, SIDE * SIDE, cuda.blockDim.x):
            counts[i // SIDE, i % SIDE] = 0
        cuda.syncthreads()
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            column = min(max(int(x[i] * scale), 0), SIDE - 1)
            row = min(max(int(y[i] * scale), 0), SIDE - 1)
            cuda.atomic.add(counts, (row, column), 1)
        cuda.syncthreads()
        for i in range(tid, SIDE * SIDE, cuda.blockDim.x):
            cuda.atomic.add(bins, (i // SIDE, i % SIDE), counts[i // SIDE, i % SIDE])

    return histogram2d


HISTOGRAM_CPP = """
#define SIDE 32
extern "C" __global__ void peer(const float* x, const float* y, float scale, int* bins, int n) {
    __shared__ int counts[SIDE][SIDE];
    int tid = threadIdx.x;
    for (int i = tid; i < SIDE * SIDE; i += blockDim.x) counts[i / SIDE][i % SIDE] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) {
        int column = min(max((int)(x[i] * scale), 0), SIDE - 1);
        int row = min(max((int)(y[i] * scale), 0), SIDE - 1);
        atomicAdd(&counts[row][column], 1);
    }
    __syncthreads();
    for (int i = tid; i < SIDE * SIDE; i += blockDim.x) atomicAdd(&bins[i], counts[i / SIDE][i % SIDE]);
}
"""


def histogram_work(size: str) -> Work:
    n, n_blocks = sized(size, (1 << 24, 132 * 4), (3000, 3), cpu=(1 << 23, 132 * 4))
    return Work(
        grid=(n_blocks,),
        block=(256,),
        args=(random(92, n), random(93, n), np.float32(SIDE * 0.9), np.zeros((SIDE, SIDE), np.int32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=8 * n,
        flops=2 * n,
    )


def histogram_reference(xp, args):
    x, y, scale, bins = args
    column, row = (xp.clip((each * scale).astype(xp.int64), 0, SIDE - 1) for each in (x, y))
    return (xp.bincount(row * SIDE + column, minlength=SIDE * SIDE).reshape(bins.shape),)


CASES = (
    Case(
        "FFT of 256 points in a block",
        make_fft,
        "void(float32[:, ::1], float32[:, ::1], float32[::1], float32[::1], float32[:, ::1], float32[:, ::1])",
        FFT_CPP,
        fft_work,
        fft_reference,
    ),
    Case(
        "histogram of the plane, 32x32",
        make_histogram,
        "void(float32[::1], float32[::1], float32, int32[:, ::1])",
        HISTOGRAM_CPP,
        histogram_work,
        histogram_reference,
        tolerance=0.0,
        accumulates=True,
    ),
)
