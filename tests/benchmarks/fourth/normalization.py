"""Layers of networks: RMS norm of float16 rows, a depthwise convolution of NHWC images, and top-k by insertion."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)
SIX = np.float32(6)
INFINITY = np.float32(np.inf)
TOP = 8
# NVRTC has no header of float16 without a CUDA toolkit; these are __half2float and __float2half.
HALVES_CPP = """
typedef unsigned short half_bits;
__device__ float to_float(half_bits bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ half_bits to_half(float value) {
    half_bits bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
"""


def random_halves(seed: int, *shape: int) -> np.ndarray:
    """Random float16 in [-1, 1)."""
    return (2 * random(seed, *shape) - 1).astype(np.float16)


def make_rms_norm(cuda):
    @cuda.jit
    def add_rms_norm(x, residual, weight, epsilon, total, out):
        squares = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        n = x.shape[1]
        mine = ZERO
        for k in range(tid, n, 256):
            value = np.float32(x[row, k]) + np.float32(residual[row, k])
            total[row, k] = np.float16(value)
            mine += value * value
        squares[tid] = mine
        cuda.syncthreads()
        half = 128
        while half > 0:
            if tid < half:
                squares[tid] += squares[tid + half]
            cuda.syncthreads()
            half //= 2
        scale = ONE / math.sqrt(squares[0] / np.float32(n) + epsilon)
        for k in range(tid, n, 256):
            out[row, k] = np.float16(np.float32(total[row, k]) * scale * np.float32(weight[k]))

    return add_rms_norm


RMS_NORM_CPP = f"""{HALVES_CPP}
extern "C" __global__ void peer(const half_bits* x, const half_bits* residual, const half_bits* weight,
                                float epsilon, half_bits* total, half_bits* out, int n) {{
    __shared__ float squares[256];
    int tid = threadIdx.x, row = blockIdx.x;
    float mine = 0.0f;
    for (int k = tid; k < n; k += 256) {{
        float value = to_float(x[row * n + k]) + to_float(residual[row * n + k]);
        total[row * n + k] = to_half(value);
        mine += value * value;
    }}
    squares[tid] = mine;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {{
        if (tid < half) squares[tid] += squares[tid + half];
        __syncthreads();
    }}
    float scale = 1.0f / sqrtf(squares[0] / n + epsilon);
    for (int k = tid; k < n; k += 256)
        out[row * n + k] = to_half(to_float(total[row * n + k]) * scale * to_float(weight[k]));
}}
"""


def rms_norm_work(size: str) -> Work:
    rows, n = sized(size, (8192, 4096), (5, 700), cpu=(2048, 4096))
    return Work(
        grid=(rows,),
        block=(256,),
        args=(
            random_halves(410, rows, n), random_halves(411, rows, n), random_halves(412, n), np.float32(1e-5),
            np.empty((rows, n), np.float16), np.empty((rows, n), np.float16),
        ),
        outputs=(4, 5),
        extents=(n,),
        n_bytes=8 * rows * n + 2 * n,
        flops=6 * rows * n,
    )  # fmt: skip


def rms_norm_reference(xp, args):
    x, residual, weight = (each.astype(xp.float64) for each in args[:3])
    total = x + residual
    scale = 1 / xp.sqrt((total**2).mean(axis=1, keepdims=True) + float(args[3]))
    return total, total * scale * weight


def make_depthwise(cuda):
    @cuda.jit
    def depthwise(images, weights, bias, stride, padding, out):
        c, column, z = cuda.grid(3)
        _, height, width, channels = images.shape
        n, out_height, out_width, _ = out.shape
        image = z // out_height
        row = z % out_height
        if c < channels and column < out_width and image < n:
            total = bias[c]
            for j in range(weights.shape[0]):
                y = row * stride - padding + j
                if y >= 0 and y < height:
                    for i in range(weights.shape[1]):
                        x = column * stride - padding + i
                        if x >= 0 and x < width:
                            total += weights[j, i, c] * images[image, y, x, c]
            out[image, row, column, c] = min(max(total, ZERO), SIX)

    return depthwise


DEPTHWISE_CPP = """
extern "C" __global__ void peer(const float* images, const float* weights, const float* bias, int stride, int padding,
                                float* out, int height, int width, int channels, int kernel_height, int kernel_width,
                                int n, int out_height, int out_width) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z, image = z / out_height, row = z % out_height;
    if (c < channels && column < out_width && image < n) {
        float total = bias[c];
        for (int j = 0; j < kernel_height; ++j) {
            int y = row * stride - padding + j;
            if (y >= 0 && y < height)
                for (int i = 0; i < kernel_width; ++i) {
                    int x = column * stride - padding + i;
                    if (x >= 0 && x < width)
                        total += weights[(j * kernel_width + i) * channels + c]
                            * images[((image * height + y) * width + x) * channels + c];
                }
        }
        out[((image * out_height + row) * out_width + column) * channels + c] = fminf(fmaxf(total, 0.0f), 6.0f);
    }
}
"""


def depthwise_work(size: str) -> Work:
    n, height, width, channels = sized(size, (32, 112, 112, 96), (2, 15, 20, 40), cpu=(16, 112, 112, 96))
    stride, padding, extent = 2, 1, 3
    out_height, out_width = ((each + 2 * padding - extent) // stride + 1 for each in (height, width))
    return Work(
        grid=(blocks(channels, 32), blocks(out_width, 8), n * out_height),
        block=(32, 8, 1),
        args=(
            random(413, n, height, width, channels), random(414, extent, extent, channels) - np.float32(0.4),
            random(415, channels), np.int32(stride), np.int32(padding),
            np.empty((n, out_height, out_width, channels), np.float32),
        ),
        outputs=(5,),
        extents=(height, width, channels, extent, extent, n, out_height, out_width),
        n_bytes=4 * n * channels * (height * width + out_height * out_width),
        flops=18 * n * channels * out_height * out_width,
    )  # fmt: skip


def depthwise_reference(xp, args):
    images, weights, bias = (each.astype(xp.float64) for each in args[:3])
    stride, padding, out = int(args[3]), int(args[4]), args[5]
    _, out_height, out_width, _ = out.shape
    padded = xp.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    total = xp.zeros(out.shape) + bias
    for j in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            rows, columns = padded[:, j::stride], slice(i, i + stride * (out_width - 1) + 1, stride)
            total += weights[j, i] * rows[:, :out_height, columns]
    return (xp.clip(total, 0, 6),)


def make_top(cuda):
    @cuda.jit
    def nearest(distances, values, indices):
        query = cuda.grid(1)
        n, queries = distances.shape
        if query < queries:
            best = cuda.local.array(TOP, np.float32)
            index = cuda.local.array(TOP, np.int32)
            for k in range(TOP):
                best[k] = INFINITY
                index[k] = -1
            for i in range(n):
                value = distances[i, query]
                if value < best[TOP - 1]:
                    j = TOP - 1
                    while j > 0 and best[j - 1] > value:
                        best[j] = best[j - 1]
                        index[j] = index[j - 1]
                        j -= 1
                    best[j] = value
                    index[j] = i
            for k in range(TOP):
                values[k, query] = best[k]
                indices[k, query] = index[k]

    return nearest


TOP_CPP = f"""
#define TOP {TOP}
extern "C" __global__ void peer(const float* distances, float* values, int* indices, int n, int queries) {{
    int query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query < queries) {{
        float best[TOP];
        int index[TOP];
        for (int k = 0; k < TOP; ++k) {{
            best[k] = __int_as_float(0x7f800000);
            index[k] = -1;
        }}
        for (int i = 0; i < n; ++i) {{
            float value = distances[i * queries + query];
            if (value < best[TOP - 1]) {{
                int j = TOP - 1;
                while (j > 0 && best[j - 1] > value) {{
                    best[j] = best[j - 1];
                    index[j] = index[j - 1];
                    --j;
                }}
                best[j] = value;
                index[j] = i;
            }}
        }}
        for (int k = 0; k < TOP; ++k) {{
            values[k * queries + query] = best[k];
            indices[k * queries + query] = index[k];
        }}
    }}
}}
"""


def top_work(size: str) -> Work:
    n, queries = sized(size, (512, 1 << 16), (30, 300), cpu=(512, 1 << 14))
    # Unique in each column, so that the order of equal values does not matter.
    unique = np.random.default_rng(416).integers(0, 1 << 14, (n, queries)) * n + np.arange(n)[:, None]
    return Work(
        grid=(blocks(queries, 128),),
        block=(128,),
        args=(
            unique.astype(np.float32) / np.float32(1 << 20), np.empty((TOP, queries), np.float32),
            np.empty((TOP, queries), np.int32),
        ),
        outputs=(1, 2),
        extents=(n, queries),
        n_bytes=4 * queries * (n + 2 * TOP),
        flops=n * queries,
    )  # fmt: skip


def top_reference(xp, args):
    indices = xp.argsort(args[0], axis=0)[:TOP]
    return xp.take_along_axis(args[0], indices, axis=0), indices


CASES = (
    Case(
        "residual and RMS norm of float16",
        make_rms_norm,
        "void(float16[:, ::1], float16[:, ::1], float16[::1], float32, float16[:, ::1], float16[:, ::1])",
        RMS_NORM_CPP,
        rms_norm_work,
        rms_norm_reference,
        tolerance=2e-3,  # float16 has 11 bits
    ),
    Case(
        "depthwise convolution, NHWC",
        make_depthwise,
        "void(float32[:, :, :, ::1], float32[:, :, ::1], float32[::1], int32, int32, float32[:, :, :, ::1])",
        DEPTHWISE_CPP,
        depthwise_work,
        depthwise_reference,
    ),
    Case(
        "nearest 8 by insertion, a thread a query",
        make_top,
        "void(float32[:, ::1], float32[:, ::1], int32[:, ::1])",
        TOP_CPP,
        top_work,
        top_reference,
        tolerance=0.0,
    ),
)
