"""The kernels of `derivatives.py`, and adjoint kernels written by hand for some of them."""

from __future__ import annotations

import math

import numpy as np
from weft import cuda

f32 = np.float32
TAPS = 9  # of the convolution
ROW = 128  # threads of a row of softmax
LENGTH = 32  # of the sequences of soft-DTW: a lane for each row
TILE = 16


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[0] * x[i] + y[i]


@cuda.jit
def filtered(u, w, out):
    i = cuda.grid(1)
    if 0 < i < u.size - 1:
        out[i] = w[0] * u[i - 1] + w[1] * u[i] + w[2] * u[i + 1]


@cuda.jit
def convolved(u, w, out):
    i = cuda.grid(1)
    if i < out.size:
        s = f32(0)
        for k in range(w.size):
            s += w[k] * u[i + k]
        out[i] = s


@cuda.jit
def stencil(u, c, out):
    x, y = cuda.grid(2)
    if 0 < x < u.shape[1] - 1 and 0 < y < u.shape[0] - 1:
        around = u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - f32(4) * u[y, x]
        out[y, x] = u[y, x] + c[y, x] * around


@cuda.jit
def sines(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(5):
            v = math.sin(v) * x[i] + v
        out[i] = v


@cuda.jit
def branches(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        if v > f32(0.5):
            v = math.exp(-v * v)
        elif v > f32(0.2):
            v = math.sqrt(v) * v
        out[i] = v


@cuda.jit
def softmax(x, out):
    """A block for each row."""
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    most = f32(-1e30)
    for k in range(thread, x.shape[1], ROW):
        most = max(most, cuda.stop_gradient(x[row, k]))
    most = cuda.coop.block.max(most)
    total = f32(0)
    for k in range(thread, x.shape[1], ROW):
        total += math.exp(x[row, k] - most)
    total = cuda.coop.block.sum(total)
    for k in range(thread, x.shape[1], ROW):
        out[row, k] = math.exp(x[row, k] - most) / total


@cuda.jit
def forces(p, m, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        x = y = z = f32(0)
        for j in range(p.shape[0]):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            r = dx * dx + dy * dy + dz * dz + f32(0.01)
            f = m[j] / (r * math.sqrt(r))
            x, y, z = x + f * dx, y + f * dy, z + f * dz
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


@cuda.jit
def product(a, b, out):
    """Of square matrices, by tiles in shared memory."""
    left, right = cuda.shared.array((TILE, TILE), np.float32), cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    s = f32(0)
    for first in range(0, a.shape[1], TILE):
        left[ty, tx] = a[row, first + tx]
        right[ty, tx] = b[first + ty, column]
        cuda.syncthreads()
        for k in range(TILE):
            s += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = s


@cuda.jit
def projected(image, angles, out):
    """Parallel rays through an image: samples along each ray, interpolated linearly between the columns."""
    bin_, view = cuda.grid(2)
    if bin_ < out.shape[1] and view < out.shape[0]:
        n = image.shape[0]
        c, s = math.cos(angles[view]), math.sin(angles[view])
        middle = f32(0.5) * f32(n)
        across = f32(bin_) - f32(0.5) * f32(out.shape[1])
        total = f32(0)
        for k in range(n):
            along = f32(k) - middle
            x = across * c - along * s + middle
            y = across * s + along * c + middle
            column, line = np.int32(math.floor(x)), np.int32(math.floor(y))
            if 0 <= column < n - 1 and 0 <= line < n - 1:
                fx, fy = x - f32(column), y - f32(line)
                upper = image[line, column] * (f32(1) - fx) + image[line, column + 1] * fx
                lower = image[line + 1, column] * (f32(1) - fx) + image[line + 1, column + 1] * fx
                total += upper * (f32(1) - fy) + lower * fy
        out[view, bin_] = total


@cuda.jit(device=True)
def softmin(a, b, c):
    least = cuda.stop_gradient(min(a, min(b, c)))
    return least - math.log(math.exp(least - a) + math.exp(least - b) + math.exp(least - c))


@cuda.jit
def soft_dtw(d, out):
    """A warp for each pair of sequences: a lane has a row of the matrix, and diagonals follow each other."""
    pair, lane = cuda.blockIdx.x, cuda.threadIdx.x
    own = above = f32(1e8)
    for diagonal in range(2 * LENGTH - 1):
        column = diagonal - lane
        before = f32(0) if lane == 0 and column == 0 else (f32(1e8) if lane == 0 else above)
        arrived = cuda.shfl_up_sync(0xFFFFFFFF, own, 1)
        above = f32(1e8) if lane == 0 else arrived
        if 0 <= column < LENGTH:
            own = d[pair, lane, column] + softmin(own, above, before)
    if lane == LENGTH - 1:
        out[pair] = own


# Adjoint kernels by hand. Gradients by the arrays are added, as those of `cuda.vjp` are.


@cuda.jit
def convolved_backward(u, w, dout, du, dw):
    """Gather form for `u`, in place of atomic operations; sums of the block for `w`."""
    i = cuda.grid(1)
    part = cuda.shared.array(TAPS, np.float32)
    if cuda.threadIdx.x < TAPS:
        part[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    if i < u.size:
        s = f32(0)
        for k in range(w.size):
            if 0 <= i - k < dout.size:
                s += w[k] * dout[i - k]
        du[i] += s
    g = dout[i] if i < dout.size else f32(0)
    for k in range(w.size):
        t = g * u[i + k] if i < dout.size else f32(0)
        for step in (16, 8, 4, 2, 1):
            t += cuda.shfl_down_sync(0xFFFFFFFF, t, step)
        if cuda.laneid == 0:
            cuda.atomic.add(part, k, t)
    cuda.syncthreads()
    if cuda.threadIdx.x < w.size:
        cuda.atomic.add(dw, cuda.threadIdx.x, part[cuda.threadIdx.x])


@cuda.jit
def softmax_backward(x, dout, dx):
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    most = f32(-1e30)
    for k in range(thread, x.shape[1], ROW):
        most = max(most, x[row, k])
    most = cuda.coop.block.max(most)
    total = dot = f32(0)
    for k in range(thread, x.shape[1], ROW):
        e = math.exp(x[row, k] - most)
        total += e
        dot += e * dout[row, k]
    total = cuda.coop.block.sum(total)
    dot = cuda.coop.block.sum(dot) / total
    for k in range(thread, x.shape[1], ROW):
        dx[row, k] += math.exp(x[row, k] - most) / total * (dout[row, k] - dot)


@cuda.jit
def forces_backward(p, m, dout, dp, dm):
    """Each thread gathers what it contributes to all, and all to it: no atomic operations."""
    i = cuda.grid(1)
    if i < dout.shape[0]:
        x = y = z = w = f32(0)
        gx, gy, gz = dout[i, 0], dout[i, 1], dout[i, 2]
        for j in range(p.shape[0]):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            r = dx * dx + dy * dy + dz * dz + f32(0.01)
            inverse = f32(1) / (r * math.sqrt(r))
            hx, hy, hz = dout[j, 0], dout[j, 1], dout[j, 2]
            mine, other = gx * dx + gy * dy + gz * dz, hx * dx + hy * dy + hz * dz
            factor = f32(3) * inverse / r * (m[j] * mine - m[i] * other)
            x += factor * dx - inverse * (m[j] * gx - m[i] * hx)
            y += factor * dy - inverse * (m[j] * gy - m[i] * hy)
            z += factor * dz - inverse * (m[j] * gz - m[i] * hz)
            w -= other * inverse
        dp[i, 0] += x
        dp[i, 1] += y
        dp[i, 2] += z
        dm[i] += w


@cuda.jit
def projected_backward(image, angles, dout, dimage):
    bin_, view = cuda.grid(2)
    if bin_ < dout.shape[1] and view < dout.shape[0]:
        n = image.shape[0]
        g = dout[view, bin_]
        c, s = math.cos(angles[view]), math.sin(angles[view])
        middle = f32(0.5) * f32(n)
        across = f32(bin_) - f32(0.5) * f32(dout.shape[1])
        for k in range(n):
            along = f32(k) - middle
            x = across * c - along * s + middle
            y = across * s + along * c + middle
            column, line = np.int32(math.floor(x)), np.int32(math.floor(y))
            if 0 <= column < n - 1 and 0 <= line < n - 1:
                fx, fy = x - f32(column), y - f32(line)
                upper, lower = g * (f32(1) - fy), g * fy
                cuda.atomic.add(dimage, (line, column), upper * (f32(1) - fx))
                cuda.atomic.add(dimage, (line, column + 1), upper * fx)
                cuda.atomic.add(dimage, (line + 1, column), lower * (f32(1) - fx))
                cuda.atomic.add(dimage, (line + 1, column + 1), lower * fx)


@cuda.jit
def soft_dtw_backward(d, dout, dd):
    """The recursion of Cuturi and Blondel: the values of a row are in a local array."""
    pair, lane = cuda.blockIdx.x, cuda.threadIdx.x
    row = cuda.local.array(LENGTH, np.float32)
    own = above = f32(1e8)
    for diagonal in range(2 * LENGTH - 1):
        column = diagonal - lane
        before = f32(0) if lane == 0 and column == 0 else (f32(1e8) if lane == 0 else above)
        arrived = cuda.shfl_up_sync(0xFFFFFFFF, own, 1)
        above = f32(1e8) if lane == 0 else arrived
        if 0 <= column < LENGTH:
            own = d[pair, lane, column] + softmin(own, above, before)
            row[column] = own
    right = f32(0)  # the adjoint of the element to the right
    below_r = below_d = below_e = f32(0)  # the value, distance and adjoint of the element below
    mine_r = mine_d = mine_e = f32(0)
    for step in range(2 * LENGTH - 1):
        column = 2 * LENGTH - 2 - step - lane
        next_r, next_d, next_e = below_r, below_d, below_e
        below_r = cuda.shfl_down_sync(0xFFFFFFFF, mine_r, 1)
        below_d = cuda.shfl_down_sync(0xFFFFFFFF, mine_d, 1)
        below_e = cuda.shfl_down_sync(0xFFFFFFFF, mine_e, 1)
        if 0 <= column < LENGTH:
            value = row[column]
            e = dout[pair] if lane == LENGTH - 1 and column == LENGTH - 1 else f32(0)
            if column < LENGTH - 1:
                e += right * math.exp(mine_r - value - mine_d)
            if lane < LENGTH - 1:
                e += below_e * math.exp(below_r - value - below_d)
                if column < LENGTH - 1:
                    e += next_e * math.exp(next_r - value - next_d)
            dd[pair, lane, column] += e
            mine_r, mine_d, mine_e = value, d[pair, lane, column], e
            right = e
