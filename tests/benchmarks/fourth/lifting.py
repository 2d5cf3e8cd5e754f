"""The 5/3 wavelet of JPEG 2000 by lifting, on lines of int16 in shared memory."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, sized

LINE, LEAST = 1024, 32
HALF_LINE = LINE // 2


def make_lifting(cuda):
    @cuda.jit
    def lift(samples, out):
        line = cuda.shared.array(LINE, np.int32)
        low = cuda.shared.array(HALF_LINE, np.int32)
        high = cuda.shared.array(HALF_LINE, np.int32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        for i in range(tid, LINE, cuda.blockDim.x):
            line[i] = samples[row, i]
        cuda.syncthreads()
        length = LINE
        while length > LEAST:
            half = length // 2
            for i in range(tid, half, cuda.blockDim.x):
                left = line[2 * i]
                right = line[2 * i + 2] if 2 * i + 2 < length else left
                high[i] = line[2 * i + 1] - ((left + right) >> 1)
            cuda.syncthreads()
            for i in range(tid, half, cuda.blockDim.x):
                before = high[i - 1] if i > 0 else high[0]
                low[i] = line[2 * i] + ((before + high[i] + 2) >> 2)
                out[row, half + i] = high[i]
            cuda.syncthreads()
            for i in range(tid, half, cuda.blockDim.x):
                line[i] = low[i]
            cuda.syncthreads()
            length = half
        for i in range(tid, length, cuda.blockDim.x):
            out[row, i] = line[i]

    return lift


LIFTING_CPP = f"""
#define LINE {LINE}
#define LEAST {LEAST}
extern "C" __global__ void peer(const short* samples, int* out) {{
    __shared__ int line[LINE], low[LINE / 2], high[LINE / 2];
    int tid = threadIdx.x, row = blockIdx.x;
    for (int i = tid; i < LINE; i += blockDim.x) line[i] = samples[row * LINE + i];
    __syncthreads();
    int length = LINE;
    while (length > LEAST) {{
        int half = length / 2;
        for (int i = tid; i < half; i += blockDim.x) {{
            int left = line[2 * i], right = 2 * i + 2 < length ? line[2 * i + 2] : left;
            high[i] = line[2 * i + 1] - ((left + right) >> 1);
        }}
        __syncthreads();
        for (int i = tid; i < half; i += blockDim.x) {{
            int before = i > 0 ? high[i - 1] : high[0];
            low[i] = line[2 * i] + ((before + high[i] + 2) >> 2);
            out[row * LINE + half + i] = high[i];
        }}
        __syncthreads();
        for (int i = tid; i < half; i += blockDim.x) line[i] = low[i];
        __syncthreads();
        length = half;
    }}
    for (int i = tid; i < length; i += blockDim.x) out[row * LINE + i] = line[i];
}}
"""


def lifting_work(size: str) -> Work:
    rows, threads = sized(size, (1 << 15, 256), (5, 192), cpu=(1 << 14, 256))
    samples = np.random.default_rng(440).integers(-2048, 2048, (rows, LINE), dtype=np.int16)
    return Work(
        grid=(rows,),
        block=(threads,),
        args=(samples, np.empty((rows, LINE), np.int32)),
        outputs=(1,),
        extents=(),
        n_bytes=6 * rows * LINE,
        flops=16 * rows * LINE,
    )


def lifting_reference(xp, args):
    line, details = args[0].astype(xp.int64), []
    while line.shape[1] > LEAST:
        even, odd = line[:, ::2], line[:, 1::2]
        high = odd - ((even + xp.concatenate([even[:, 1:], even[:, -1:]], axis=1)) >> 1)
        line = even + ((xp.concatenate([high[:, :1], high[:, :-1]], axis=1) + high + 2) >> 2)
        details.insert(0, high)
    return (xp.concatenate([line, *details], axis=1),)


CASES = (
    Case(
        "5/3 wavelet by lifting, a block a line",
        make_lifting,
        "void(int16[:, ::1], int32[:, ::1])",
        LIFTING_CPP,
        lifting_work,
        lifting_reference,
        tolerance=0.0,
        wider=True,
    ),
)
