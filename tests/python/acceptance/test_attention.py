"""Attention: with a row of scores in dynamic shared memory, and in blocks, in shared memory and in registers.

The blocked version is known as flash attention: the softmax is never stored as a whole; its sum and largest score are
carried from block to block.
"""

import math

import numpy as np
import pytest
import weft as numba
from weft import cuda

D = 128
B_C = 16
B_R = 32


def operands(queries, keys):
    rng = np.random.default_rng(21)
    return [rng.standard_normal((n, D)).astype(np.float32) for n in (queries, keys, keys)]


def reference(q, k, v, scale):
    """The result, and the logarithm of the sum of each row of exponentials, in float64."""
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * scale
    largest = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=1, keepdims=True)
    return weights @ v.astype(np.float64) / total, (largest + np.log(total))[:, 0]


# Columns of keys first, rows of queries second: one block of 32 x 16 threads computes everything.
@numba.cuda.jit
def all_shared(K, Q, V, scaling: numba.float32, L, Out):
    inp_dtype = K.dtype
    tid_x = numba.cuda.threadIdx.x
    tid_y = numba.cuda.threadIdx.y
    d = 128
    B_c = 16
    Q_i = numba.cuda.shared.array((B_R, d), inp_dtype)
    K_j = numba.cuda.shared.array((B_c, d), inp_dtype)
    O_i = numba.cuda.shared.array((B_R, d), inp_dtype)
    S = numba.cuda.shared.array((B_R, B_c), inp_dtype)
    l_i = numba.cuda.shared.array((B_R,), inp_dtype)
    m_i = numba.cuda.shared.array(B_R, inp_dtype)
    shrink = numba.cuda.shared.array((B_R,), inp_dtype)
    for i in range((Q.shape[0] + B_R - 1) // B_R):
        for ii in range(tid_y, B_R, numba.cuda.blockDim.y):
            for dd in range(tid_x, d, numba.cuda.blockDim.x):
                Q_i[ii, dd] = Q[ii + i * B_R, dd]
                O_i[ii, dd] = 0
            if tid_x == 0:
                l_i[ii] = 0
                m_i[ii] = -math.inf
        numba.cuda.syncthreads()
        for j in range((K.shape[0] + B_c - 1) // B_c):
            for jj in range(tid_y, B_c, numba.cuda.blockDim.y):
                for dd in range(tid_x, d, numba.cuda.blockDim.x):
                    K_j[jj, dd] = K[jj + j * B_c, dd]
            numba.cuda.syncthreads()
            for ii in range(tid_x, B_R, numba.cuda.blockDim.x):
                for jj in range(tid_y, B_c, numba.cuda.blockDim.y):
                    S_ij = 0
                    for dd in range(d):
                        S_ij += Q_i[ii][dd] * K_j[jj][dd]
                    S[ii][jj] = S_ij * scaling
            numba.cuda.syncthreads()
            if tid_y == 0:
                for ii in range(tid_x, B_R, numba.cuda.blockDim.x):
                    m = m_i[ii]
                    last_m = m
                    for jj in range(B_c):
                        m = max(m, S[ii][jj])
                    m_i[ii] = m
                    shrink[ii] = math.exp(last_m - m)
                    new_l = shrink[ii] * l_i[ii]
                    for jj in range(B_c):
                        S[ii][jj] = math.exp(S[ii][jj] - m)
                        new_l += S[ii][jj]
                    l_i[ii] = new_l
            numba.cuda.syncthreads()
            for ii in range(tid_y, B_R, numba.cuda.blockDim.y):
                for dd in range(tid_x, d, numba.cuda.blockDim.x):
                    O_i[ii][dd] *= shrink[ii]
                    for jj in range(B_c):
                        O_i[ii][dd] += S[ii][jj] * V[jj + j * B_c, dd]
            numba.cuda.syncthreads()
        for ii in range(tid_y, B_R, numba.cuda.blockDim.y):
            for dd in range(tid_x, d, numba.cuda.blockDim.x):
                Out[ii + i * B_R, dd] = O_i[ii, dd] / l_i[ii]
            if tid_x == 0:
                L[ii + i * B_R] = m_i[ii] + math.log(l_i[ii])
        numba.cuda.syncthreads()


SIZES = {"cuda": [(32, 32), (128, 64), (512, 512), (1024, 512)], "cpu": [(32, 32), (64, 128)]}


def sizes_of(device, number):
    if number >= len(SIZES[device]):
        pytest.skip("too large for the CPU executor on a small machine")
    return SIZES[device][number]


@pytest.mark.parametrize("number", range(4))
def test_flash_attention_in_shared_memory(device, number):
    q, k, v = operands(*sizes_of(device, number))
    scaling = 1 / math.sqrt(D)
    logs, out = np.zeros(len(q), np.float32), np.zeros_like(q)
    # Seven shared arrays, which take 43,392 bytes of a block's 48 KiB.
    all_shared[(1,), (32, 16)](k, q, v, scaling, logs, out)
    expected, expected_logs = reference(q, k, v, scaling)
    np.testing.assert_allclose(out, expected, atol=5e-6)
    np.testing.assert_allclose(logs, expected_logs, atol=5e-6)


def make_in_registers(dim, columns, rows):
    o_per_thread_x = 1
    o_per_thread_y = dim // columns

    @cuda.jit
    def in_registers(K, Q, V, scaling: numba.float32, L, Out):
        inp_dtype = K.dtype
        tid_x = cuda.threadIdx.x
        tid_y = cuda.threadIdx.y
        block_id_x = cuda.blockIdx.x
        Q_i = cuda.shared.array((rows, dim), inp_dtype)
        K_j = cuda.shared.array((columns, dim), inp_dtype)
        S = cuda.shared.array((rows, columns), inp_dtype)
        l_i = cuda.local.array((o_per_thread_x,), inp_dtype)
        m_i = cuda.local.array(o_per_thread_x, inp_dtype)
        O_i = cuda.local.array((o_per_thread_x, o_per_thread_y), inp_dtype)
        for i in range(block_id_x, block_id_x + 1):
            # x counts the rows here, and y the columns.
            for dd in range(tid_y, dim, cuda.blockDim.y):
                Q_i[tid_x, dd] = Q[tid_x + i * rows, dd]
            for jj in range(o_per_thread_y):
                O_i[0, jj] = numba.float32(0)
            l_i[0] = numba.float32(0.0)
            m_i[0] = -math.inf
            for j in range(K.shape[0] // columns):
                cuda.syncthreads()
                for jj in range(tid_x, columns, cuda.blockDim.x):
                    for dd in range(tid_y, dim, cuda.blockDim.y):
                        K_j[jj, dd] = K[jj + j * columns, dd]
                cuda.syncthreads()
                for jj in range(tid_y, columns, cuda.blockDim.y):
                    total = numba.float32(0)
                    for dd in range(dim):
                        total += numba.float32(Q_i[tid_x, dd] * K_j[jj, dd])
                    S[tid_x, jj] = numba.float32(total * scaling)
                cuda.syncthreads()
                m = m_i[0]
                last_m = m
                for jj in range(columns):
                    m = max(m, S[tid_x, jj])
                m_i[0] = m
                new_l = numba.float32(math.exp(last_m - m)) * l_i[0]
                for dd in range(o_per_thread_y):
                    O_i[0, dd] *= math.exp(last_m - m)
                for jj in range(columns):
                    weight = math.exp(S[tid_x, jj] - m)
                    new_l += weight
                    for dd in range(o_per_thread_y):
                        O_i[0, dd] += weight * V[jj + j * columns, dd * cuda.blockDim.y + tid_y]
                l_i[0] = new_l
            for dd in range(o_per_thread_y):
                Out[tid_x + i * rows, dd * cuda.blockDim.y + tid_y] = O_i[0, dd] / l_i[0]
            if tid_y == 0:
                L[tid_x + i * rows] = m_i[0] + math.log(l_i[0])

    return in_registers


def launched_in_registers(k, q, v, logs, out):
    make_in_registers(D, 8, 32)[(len(q) // 32,), (32, 8)](k, q, v, 1 / math.sqrt(D), logs, out)


@pytest.mark.parametrize("number", range(4))
def test_flash_attention_in_registers(device, number):
    q, k, v = operands(*sizes_of(device, number))
    logs, out = np.zeros(len(q), np.float32), np.zeros_like(q)
    launched_in_registers(k, q, v, logs, out)
    expected, expected_logs = reference(q, k, v, 1 / math.sqrt(D))
    np.testing.assert_allclose(out, expected, atol=5e-6)
    np.testing.assert_allclose(logs, expected_logs, atol=5e-6)


@pytest.mark.cuda
def test_flash_attention_on_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    q, k, v = (torch.as_tensor(array, device="cuda") for array in operands(512, 512))
    logs, out = torch.zeros(512, device="cuda"), torch.zeros_like(q)
    torch.cuda.synchronize()
    launched_in_registers(k, q, v, logs, out)
    cuda.synchronize()
    expected = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    assert (out - expected).abs().max() < 5e-5


@cuda.jit
def attention_row(q, k, v, out):
    # A block for each query; its scores are in dynamic shared memory.
    scores = cuda.shared.array(0, dtype=cuda.float32)
    partial = cuda.shared.array(1, dtype=cuda.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    scale = 1.0 / math.sqrt(q.shape[1])
    for j in range(t, k.shape[0], cuda.blockDim.x):
        score = cuda.float32(0.0)
        for e in range(q.shape[1]):
            score += q[row, e] * k[j, e]
        scores[j] = score * scale
    cuda.syncthreads()
    largest = scores[0]
    for j in range(1, k.shape[0]):
        largest = max(largest, scores[j])
    cuda.syncthreads()
    for j in range(t, k.shape[0], cuda.blockDim.x):
        scores[j] = math.exp(scores[j] - largest)
    cuda.syncthreads()
    if t == 0:
        total = cuda.float32(0)
        for j in range(k.shape[0]):
            total += scores[j]
        partial[0] = total
    cuda.syncthreads()
    for e in range(t, v.shape[1], cuda.blockDim.x):
        acc = cuda.float32(0.0)
        for j in range(k.shape[0]):
            acc += scores[j] * v[j, e]
        out[row, e] = acc / partial[0]


@pytest.mark.parametrize("one_thread", [True, False])
def test_attention_with_scores_in_dynamic_shared_memory(device, one_thread):
    length, width = (1024 if device == "cuda" else 48), 64
    rng = np.random.default_rng(22)
    q, k, v = (rng.standard_normal((length, width)).astype(np.float32) for _ in range(3))
    out = np.zeros_like(q)
    # The dynamic array comes after the static one.
    attention_row[length, 1 if one_thread else 64, 0, length * 4](q, k, v, out)
    expected, _ = reference(q, k, v, 1 / 8)
    np.testing.assert_allclose(out, expected, atol=2e-6)
