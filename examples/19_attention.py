"""Attention on tensor cores: softmax(q @ k.T) @ v without the matrix of scores, for heads of 128 elements."""

import math

import numpy as np
from weft import cuda

HEAD, ROWS, KEYS, WARPS = 128, 128, 64, 8  # a block computes ROWS queries, in steps of KEYS keys
THREADS = WARPS * 32
PADDED = HEAD + 8  # no bank conflicts
STAGE = KEYS * PADDED
SIZE = ROWS * PADDED + 4 * STAGE  # the queries, and two stages of keys and values
PART = cuda.uint32x4  # 16 bytes: 8 float16
LEAST = np.float32(-1e30)
QK = cuda.mma.tile(16, KEYS, 16, a=np.float16, b=np.float16, c=np.float32)  # a warp computes 16 queries
PV = cuda.mma.tile(16, HEAD, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit
def fetch(tile, source, row, rows):
    for n in range(rows * HEAD // 8 // THREADS):
        at = n * THREADS + cuda.threadIdx.x
        cuda.copy_async(tile, (at // 16, at % 16), source, (row + at // 16, at % 16))


@cuda.jit
def exp(x):
    return cuda.libdevice.fast_expf(x)


@cuda.jit
def largest(x):  # of the four lanes that share a row
    x = max(x, cuda.shfl_xor_sync(0xFFFFFFFF, x, 1))
    return max(x, cuda.shfl_xor_sync(0xFFFFFFFF, x, 2))


@cuda.jit
def total(x):
    x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 1)
    return x + cuda.shfl_xor_sync(0xFFFFFFFF, x, 2)


@cuda.jit(launch_bounds=THREADS)
def attention(q, k, v, out, scale, causal):
    memory = cuda.shared.array(0, np.float16)
    queries = memory[: ROWS * PADDED].reshape((ROWS, PADDED))
    tiles = memory[ROWS * PADDED : SIZE].reshape((4, KEYS, PADDED))
    head, first, row = cuda.blockIdx.y, cuda.blockIdx.x * ROWS, cuda.threadIdx.x // 32 * 16
    k_from, v_from = k[head].view(PART), v[head].view(PART)
    steps = (first + ROWS) // KEYS if causal else k.shape[1] // KEYS
    fetch(queries.view(PART), q[head].view(PART), first, ROWS)
    fetch(tiles[0].view(PART), k_from, 0, KEYS)
    cuda.copy_commit()
    fetch(tiles[2].view(PART), v_from, 0, KEYS)
    cuda.copy_commit()
    acc = PV.zeros()
    top0, top1, sum0, sum1 = LEAST, LEAST, np.float32(0), np.float32(0)
    for step in range(steps):
        stage = step % 2
        cuda.copy_wait(1)  # the keys have arrived
        cuda.syncthreads()
        if step + 1 < steps:
            fetch(tiles[1 - stage].view(PART), k_from, (step + 1) * KEYS, KEYS)
        cuda.copy_commit()
        s = QK.zeros()
        for d in range(0, HEAD, 16):
            s = QK.mma(QK.a(queries, row, d), QK.b(tiles[stage].T, d, 0), s)
        s = tuple(x * scale for x in s)
        if causal and (step + 1) * KEYS > first:
            below = first + row - step * KEYS
            s = tuple(s[r] if QK.coord(r)[1] <= below + QK.coord(r)[0] else LEAST for r in range(len(s)))
        new0, new1 = top0, top1
        for r in range(0, len(s), 4):
            new0, new1 = max(new0, max(s[r], s[r + 1])), max(new1, max(s[r + 2], s[r + 3]))
        new0, new1 = largest(new0), largest(new1)
        keep0, keep1 = exp(top0 - new0), exp(top1 - new1)
        top0, top1 = new0, new1
        p = tuple(exp(s[r] - (new0 if r % 4 < 2 else new1)) for r in range(len(s)))
        sum0, sum1 = sum0 * keep0, sum1 * keep1
        for r in range(0, len(p), 4):
            sum0, sum1 = sum0 + p[r] + p[r + 1], sum1 + p[r + 2] + p[r + 3]
        acc = tuple(acc[r] * (keep0 if r % 4 < 2 else keep1) for r in range(len(acc)))
        cuda.copy_wait(1)  # the values have arrived
        cuda.syncthreads()
        if step + 1 < steps:
            fetch(tiles[3 - stage].view(PART), v_from, (step + 1) * KEYS, KEYS)
        cuda.copy_commit()
        for n in range(KEYS // 16):
            weights = PV.a(tuple(p[8 * n + r] for r in range(8)))  # the lane has these elements already
            acc = PV.mma(weights, PV.b(tiles[2 + stage], 16 * n, 0), acc)
    keep0, keep1 = 1 / total(sum0), 1 / total(sum1)
    acc = tuple(acc[r] * (keep0 if r % 4 < 2 else keep1) for r in range(len(acc)))
    PV.store(out[head], first + row, 0, acc)


def main():
    rng = np.random.default_rng(0)
    heads, n = 2, 256
    q, k, v = rng.standard_normal((3, heads, n, HEAD)).astype(np.float16)
    scale = np.float32(1 / math.sqrt(HEAD))
    for causal in (False, True):  # whether a query sees only the keys up to its own
        out = np.zeros((heads, n, HEAD), np.float32)
        attention[(n // ROWS, heads), THREADS, 0, 2 * SIZE](q, k, v, out, scale, causal)
        scores = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) * scale
        if causal:
            scores[:, np.triu_indices(n, 1)[0], np.triu_indices(n, 1)[1]] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32)
        np.testing.assert_allclose(out, expected, rtol=1e-2, atol=2e-3)
    print(f"19_attention: {heads} heads of {n} queries: ok")


if __name__ == "__main__":
    main()
