"""Layers of networks: Rodinia's backprop, pooling, im2col, embeddings, normalization, statistics, attention."""

from __future__ import annotations

import math

import numpy as np
from suite.case import blocks, random, sized

from third.forms import given, on_cpu

ZERO, ONE = np.float32(0), np.float32(1)
LOWEST, MASKED = np.float32(-3.0e38), np.float32(-1e4)
ETA, MOMENTUM = np.float32(0.3), np.float32(0.3)
HIDDEN = 16
EPSILON = np.float32(1e-5)


def make_layerforward(cuda):
    @cuda.jit
    def layerforward(units, hidden, partial):
        by = cuda.blockIdx.y
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        node = cuda.shared.array(16, np.float32)
        weights = cuda.shared.array((16, 16), np.float32)
        row = 16 * by + ty + 1
        if tx == 0:
            node[ty] = units[row]
        cuda.syncthreads()
        weights[ty, tx] = hidden[row, tx + 1]
        cuda.syncthreads()
        weights[ty, tx] = weights[ty, tx] * node[ty]
        cuda.syncthreads()
        power = 2
        while power <= 16:
            if ty % power == 0:
                weights[ty, tx] = weights[ty, tx] + weights[ty + power // 2, tx]
            cuda.syncthreads()
            power *= 2
        hidden[row, tx + 1] = weights[ty, tx]
        cuda.syncthreads()
        if tx == 0:
            partial[by, ty] = weights[0, ty]

    return layerforward


def layerforward_work(size: str):
    n = sized(size, 1 << 19, 160)
    args = (random(210, n + 1), random(211, n + 1, HIDDEN + 1), np.empty((n // 16, HIDDEN), np.float32))
    return given((1, n // 16), (16, 16), args, (1, 2), (n,), in_place=(1,))


def layerforward_reference(xp, args):
    units, hidden, _ = args
    sums = (hidden[1:, 1:].astype(xp.float64) * units[1:, None]).reshape(-1, 16, HIDDEN)
    for power in (2, 4, 8, 16):
        sums[:, ::power] = sums[:, ::power] + sums[:, power // 2 :: power]
    left = hidden.astype(xp.float64)
    left[1:, 1:] = sums.reshape(-1, HIDDEN)
    return left, sums[:, 0]


def make_adjust(cuda):
    @cuda.jit
    def adjust_weights(delta, units, weights, old):
        by = cuda.blockIdx.y
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = 16 * by + ty + 1
        column = tx + 1
        weights[row, column] += ETA * delta[column] * units[row] + MOMENTUM * old[row, column]
        old[row, column] = ETA * delta[column] * units[row] + MOMENTUM * old[row, column]
        cuda.syncthreads()
        if ty == 0 and by == 0:
            weights[0, column] += ETA * delta[column] + MOMENTUM * old[0, column]
            old[0, column] = ETA * delta[column] + MOMENTUM * old[0, column]

    return adjust_weights


def adjust_work(size: str):
    n = sized(size, 1 << 18, 160)
    shape = n + 1, HIDDEN + 1
    args = (random(212, HIDDEN + 1), random(213, n + 1), random(214, *shape), random(215, *shape))
    return given((1, n // 16), (16, 16), args, (2, 3), (n,), in_place=(2, 3))


def adjust_reference(xp, args):
    delta, units, weights, old = (each.astype(xp.float64) for each in args)
    units[0] = 1
    change = 0.3 * delta[1:] * units[:, None] + 0.3 * old[:, 1:]
    weights[:, 1:] += change
    old[:, 1:] = change
    return weights, old


def make_max_pool(cuda):
    @cuda.jit
    def max_pool(images, out):
        x, y, plane = cuda.grid(3)
        if plane < out.shape[0] and y < out.shape[1] and x < out.shape[2]:
            best = LOWEST
            for j in range(2):
                for i in range(2):
                    best = max(best, images[plane, 2 * y + j, 2 * x + i])
            out[plane, y, x] = best

    return max_pool


def max_pool_work(size: str):
    planes, height, width = sized(size, (64, 256, 256), (3, 11, 19))
    args = (random(216, planes, 2 * height, 2 * width), np.empty((planes, height, width), np.float32))
    return given((blocks(width, 16), blocks(height, 16), planes), (16, 16, 1), args, (1,), (planes, height, width))


def max_pool_reference(xp, args):
    planes, height, width = args[1].shape
    return (args[0].reshape(planes, height, 2, width, 2).max(axis=(2, 4)),)


def make_im2col(cuda):
    @cuda.jit
    def im2col(image, kernel_size, pad, columns):
        index = cuda.grid(1)
        channels, height, width = image.shape
        if index < channels * height * width:
            w = index % width
            h = index // width % height
            c = index // (width * height)
            for i in range(kernel_size):
                for j in range(kernel_size):
                    y = h - pad + i
                    x = w - pad + j
                    value = ZERO
                    if y >= 0 and x >= 0 and y < height and x < width:
                        value = image[c, y, x]
                    columns[(c * kernel_size + i) * kernel_size + j, h * width + w] = value

    return im2col


def im2col_work(size: str):
    channels, height, width = sized(size, (32, 224, 224), (2, 9, 13))
    args = (random(217, channels, height, width), np.int32(3), np.int32(1),
            np.empty((channels * 9, height * width), np.float32))  # fmt: skip
    return given((blocks(channels * height * width, 256),), (256,), args, (3,), (channels, height, width))


def im2col_reference(xp, args):
    channels, height, width = args[0].shape
    padded = xp.pad(args[0], ((0, 0), (1, 1), (1, 1)))
    taps = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return (xp.stack(taps, axis=1).reshape(channels * 9, height * width),)


def make_embedding(cuda):
    @cuda.jit
    def embedding(table, words, positions, out):
        token = cuda.blockIdx.x
        length = positions.shape[0]
        for i in range(cuda.threadIdx.x, table.shape[1], cuda.blockDim.x):
            out[token, i] = table[words[token], i] + positions[token % length, i]

    return embedding


def embedding_work(size: str):
    tokens, words, length, width = sized(size, (32768, 20000, 512, 256), (70, 100, 32, 200))
    args = (random(218, words, width), np.random.default_rng(219).integers(0, words, tokens, dtype=np.int32),
            random(220, length, width), np.empty((tokens, width), np.float32))  # fmt: skip
    return given((tokens,), (128,), args, (3,), (tokens, length, width))


def embedding_reference(xp, args):
    table, words, positions, out = args
    return (table[words].astype(xp.float64) + positions[xp.arange(out.shape[0]) % positions.shape[0]],)


def make_layer_norm(cuda):
    @cuda.jit
    def layer_norm(x, gamma, beta, out):
        row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
        lane = cuda.threadIdx.x
        n = x.shape[1]
        if row < x.shape[0]:
            total = ZERO
            for i in range(lane, n, 32):
                total += x[row, i]
            offset = 16
            while offset > 0:
                total += cuda.shfl_xor_sync(0xFFFFFFFF, total, offset)
                offset //= 2
            mean = total / np.float32(n)
            squares = ZERO
            for i in range(lane, n, 32):
                difference = x[row, i] - mean
                squares += difference * difference
            offset = 16
            while offset > 0:
                squares += cuda.shfl_xor_sync(0xFFFFFFFF, squares, offset)
                offset //= 2
            scale = ONE / math.sqrt(squares / np.float32(n) + EPSILON)
            for i in range(lane, n, 32):
                out[row, i] = (x[row, i] - mean) * scale * gamma[i] + beta[i]

    return layer_norm


def layer_norm_work(size: str):
    rows, width = sized(size, (12288, 768), (13, 100))
    args = (random(221, rows, width), random(222, width), random(223, width), np.empty((rows, width), np.float32))
    return given((blocks(rows, 4),), (32, 4), args, (3,), (rows, width))


def layer_norm_reference(xp, args):
    x, gamma, beta = (each.astype(xp.float64) for each in args[:3])
    centered = x - x.mean(axis=1, keepdims=True)
    return (centered / xp.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta,)


def make_batch_statistics(cuda):
    @cuda.jit
    def batch_statistics(x, mean, variance):
        channel = cuda.blockIdx.x
        tid = cuda.threadIdx.x
        sums = cuda.shared.array(256, np.float32)
        squares = cuda.shared.array(256, np.float32)
        total = ZERO
        square = ZERO
        for image in range(x.shape[0]):
            for i in range(tid, x.shape[2], 256):
                value = x[image, channel, i]
                total += value
                square += value * value
        sums[tid] = total
        squares[tid] = square
        cuda.syncthreads()
        stride = 128
        while stride > 0:
            if tid < stride:
                sums[tid] += sums[tid + stride]
                squares[tid] += squares[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            count = np.float32(x.shape[0] * x.shape[2])
            mean[channel] = sums[0] / count
            variance[channel] = squares[0] / count - mean[channel] * mean[channel]

    return batch_statistics


def batch_statistics_work(size: str):
    images, channels, pixels = sized(size, (64, 64, 56 * 56), (3, 5, 300))
    args = (random(224, images, channels, pixels), np.empty(channels, np.float32), np.empty(channels, np.float32))
    return given((channels,), (256,), args, (1, 2), (images, channels, pixels))


def batch_statistics_reference(xp, args):
    x = args[0].astype(xp.float64)
    return x.mean(axis=(0, 2)), x.var(axis=(0, 2))


def make_scores(cuda):
    @cuda.jit
    def scores(q, k, scale, out):
        column, row = cuda.grid(2)
        head = cuda.blockIdx.z
        n = q.shape[1]
        if row < n and column < n:
            if column <= row:
                total = ZERO
                for d in range(q.shape[2]):
                    total += q[head, row, d] * k[head, column, d]
                out[head, row, column] = total * scale
            else:
                out[head, row, column] = MASKED

    return scores


def scores_work(size: str):
    heads, n, width = sized(size, (4, 512, 64), (2, 35, 20))
    args = (random(225, heads, n, width), random(226, heads, n, width), np.float32(0.125),
            np.empty((heads, n, n), np.float32))  # fmt: skip
    return given((blocks(n, 16), blocks(n, 16), heads), (16, 16, 1), args, (3,), (heads, n, width))


def scores_reference(xp, args):
    q, k = args[0].astype(xp.float64), args[1].astype(xp.float64)
    n = q.shape[1]
    products = xp.matmul(q, k.transpose(0, 2, 1)) * float(args[2])
    return (xp.where(xp.tril(xp.ones((n, n), bool)), products, -1e4),)


CASES = (
    on_cpu("backprop, layer forward", make_layerforward, layerforward_work, layerforward_reference),
    on_cpu("backprop, adjust weights", make_adjust, adjust_work, adjust_reference),
    on_cpu("max pooling, 2x2", make_max_pool, max_pool_work, max_pool_reference, tolerance=0.0),
    on_cpu("im2col, 3x3", make_im2col, im2col_work, im2col_reference, tolerance=0.0),
    on_cpu("embedding, a block a token", make_embedding, embedding_work, embedding_reference),
    on_cpu("layer norm, a warp a row", make_layer_norm, layer_norm_work, layer_norm_reference),
    on_cpu("batch statistics, a block a channel", make_batch_statistics, batch_statistics_work,
           batch_statistics_reference),
    on_cpu("attention's scores, causal", make_scores, scores_work, scores_reference, tolerance=1e-9),
)  # fmt: skip
