"""Attention by warpgroups: softmax(q @ k.T) @ v without the matrix of scores, for heads of 128 elements."""

import math

import numpy as np
from weft import cuda

HEAD, ROWS, KEYS, STAGES = 128, 128, 128, 2  # a block computes ROWS queries, in steps of KEYS keys
GROUP = 128  # threads of a warpgroup, which computes 64 queries
WIDTH = 64  # elements in 128 bytes: the width of the swizzle
Q, KV = (ROWS // 64, HEAD // WIDTH, 64, WIDTH), (STAGES, HEAD // WIDTH, KEYS, WIDTH)  # matrices in panels
Q_SIZE, KV_SIZE = ROWS * HEAD, STAGES * KEYS * HEAD
SIZE = Q_SIZE + 2 * KV_SIZE
LEAST = np.float32(-1e30)
QK = cuda.mma.tile(64, KEYS, WIDTH, a=np.float16, b=np.float16, c=np.float32, threads=GROUP)
PV = cuda.mma.tile(64, HEAD, KEYS, a=np.float16, b=np.float16, c=np.float32, threads=GROUP)


@cuda.jit
def largest(x):  # of the four lanes that share a row
    x = max(x, cuda.shfl_xor_sync(0xFFFFFFFF, x, 1))
    return max(x, cuda.shfl_xor_sync(0xFFFFFFFF, x, 2))


@cuda.jit
def total(x):
    x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 1)
    return x + cuda.shfl_xor_sync(0xFFFFFFFF, x, 2)


@cuda.jit
def softmax(s, top0, top1, sum0, sum1, scale):
    """Give the weights of a step, the largest scores and the sums so far, and the factors of the earlier weights."""
    new0, new1 = top0, top1
    for r in range(0, len(s), 4):
        new0, new1 = max(new0, max(s[r], s[r + 1])), max(new1, max(s[r + 2], s[r + 3]))
    new0, new1 = largest(new0), largest(new1)
    keep0, keep1 = cuda.libdevice.exp2f((top0 - new0) * scale), cuda.libdevice.exp2f((top1 - new1) * scale)
    of0, of1 = new0 * scale, new1 * scale
    p = tuple(cuda.libdevice.exp2f(s[r] * scale - (of0 if r % 4 < 2 else of1)) for r in range(len(s)))
    sum0, sum1 = sum0 * keep0, sum1 * keep1
    for r in range(0, len(p), 4):
        sum0, sum1 = sum0 + (p[r] + p[r + 1]), sum1 + (p[r + 2] + p[r + 3])
    return p, new0, new1, sum0, sum1, keep0, keep1


@cuda.jit
def masked(scores, below):  # without the scores of later keys than the query
    seen = tuple(QK.coord(r)[1] <= below + QK.coord(r)[0] for r in range(len(scores)))
    return tuple(scores[r] if seen[r] else LEAST for r in range(len(scores)))


@cuda.jit(launch_bounds=3 * GROUP, fastmath=True)
def attention(q, k, v, out, keys, scale, causal):
    memory = cuda.shared.array(0, np.float16)
    queries = cuda.shared.swizzled(memory[:Q_SIZE].reshape(Q), 128)
    k_tiles = cuda.shared.swizzled(memory[Q_SIZE : Q_SIZE + KV_SIZE].reshape(KV), 128)
    v_tiles = cuda.shared.swizzled(memory[Q_SIZE + KV_SIZE : SIZE].reshape(KV), 128)
    loaded = cuda.barrier(1)
    k_full, k_empty = cuda.barrier(1, STAGES), cuda.barrier(2, STAGES)
    v_full, v_empty = cuda.barrier(1, STAGES), cuda.barrier(2, STAGES)
    block = cuda.gridDim.x - 1 - cuda.blockIdx.x  # the blocks with most keys first
    head, first = cuda.blockIdx.y, block * ROWS
    group, thread = divmod(cuda.threadIdx.x, GROUP)
    steps = (first + ROWS) // KEYS if causal else keys // KEYS
    if group == 2:
        cuda.set_registers(24)
        if thread == 0:
            loaded.expect(2 * Q_SIZE)
            for part in range(ROWS // 64):
                for panel in range(HEAD // WIDTH):
                    cuda.copy_async(queries[part][panel], q[head, first + part * 64, panel * WIDTH], loaded)
            for step in range(steps):
                s, phase = step % STAGES, step // STAGES
                k_empty[s].wait(phase + 1)
                k_full[s].expect(2 * KEYS * HEAD)
                for panel in range(HEAD // WIDTH):
                    cuda.copy_async(k_tiles[s][panel], k[head, step * KEYS, panel * WIDTH], k_full[s])
                v_empty[s].wait(phase + 1)
                v_full[s].expect(2 * KEYS * HEAD)
                for panel in range(HEAD // WIDTH):
                    cuda.copy_async(v_tiles[s][panel], v[head, step * KEYS, panel * WIDTH], v_full[s])
    else:
        cuda.set_registers(240)
        loaded.wait(0)
        row = first + group * 64
        mine = queries[group]
        top0, top1, sum0, sum1 = LEAST, LEAST, np.float32(0), np.float32(0)
        k_full[0].wait(0)
        scores = QK.zeros()
        for panel in range(HEAD // WIDTH):
            scores = QK.mma(QK.a(mine[panel], 0, 0), QK.b(k_tiles[0][panel].T, 0, 0), scores)
        if thread == 0:
            k_empty[0].arrive()
        if causal and KEYS > row:
            scores = masked(scores, row)
        p, top0, top1, sum0, sum1, _, _ = softmax(scores, top0, top1, sum0, sum1, scale)
        acc, weights = PV.zeros(), PV.a(p)
        for step in range(1, steps):
            s, before = step % STAGES, (step - 1) % STAGES
            k_full[s].wait(step // STAGES)
            v_full[before].wait((step - 1) // STAGES)
            begun = QK.mma(QK.a(mine[0], 0, 0), QK.b(k_tiles[s][0].T, 0, 0), QK.zeros(), wait=False)
            begun = QK.mma(QK.a(mine[1], 0, 0), QK.b(k_tiles[s][1].T, 0, 0), begun, wait=False)
            # The product with the values of the step before goes on while the weights of this one are computed.
            product = PV.mma(weights, PV.b(v_tiles[before], 0, 0), acc, wait=False)
            scores = cuda.mma.wait(1, begun)
            if thread == 0:
                k_empty[s].arrive()
            if causal and (step + 1) * KEYS > row:
                scores = masked(scores, row - step * KEYS)
            p, top0, top1, sum0, sum1, keep0, keep1 = softmax(scores, top0, top1, sum0, sum1, scale)
            acc = cuda.mma.wait(0, product)
            if thread == 0:
                v_empty[before].arrive()
            acc = tuple(acc[r] * (keep0 if r % 4 < 2 else keep1) for r in range(len(acc)))
            weights = PV.a(p)
        last = (steps - 1) % STAGES
        v_full[last].wait((steps - 1) // STAGES)
        acc = PV.mma(weights, PV.b(v_tiles[last], 0, 0), acc)
        keep0, keep1 = np.float32(1) / total(sum0), np.float32(1) / total(sum1)
        PV.store(out[head], row, 0, tuple(acc[r] * (keep0 if r % 4 < 2 else keep1) for r in range(len(acc))))


def attend(q, k, v, out, causal):
    """Compute attention for device arrays of heads, of queries or keys, and of HEAD elements."""
    maps = [cuda.tensor_map(x, (1, rows, WIDTH), swizzle=128) for x, rows in ((q, 64), (k, KEYS), (v, KEYS))]
    scale = np.float32(math.log2(math.e) / math.sqrt(HEAD))
    heads, n, _ = q.shape
    attention[(n // ROWS, heads), 3 * GROUP, 0, 2 * SIZE](*maps, out, k.shape[1], scale, causal)


def main():
    rng = np.random.default_rng(0)
    heads, n = 2, 384
    q, k, v = rng.standard_normal((3, heads, n, HEAD)).astype(np.float16)
    for causal in (False, True):  # whether a query sees only the keys up to its own
        out = cuda.device_array((heads, n, HEAD), np.float32)
        attend(*map(cuda.to_device, (q, k, v)), out, causal)
        scores = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) / np.float32(math.sqrt(HEAD))
        if causal:
            scores[:, np.triu_indices(n, 1)[0], np.triu_indices(n, 1)[1]] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32)
        np.testing.assert_allclose(out.copy_to_host(), expected, rtol=1e-2, atol=2e-3)
    print(f"23_warpgroup_attention: {heads} heads of {n} queries: ok")


if __name__ == "__main__":
    main()
