"""Vectors: constructors, lanes, arithmetic by lane, and arrays of them."""

import numpy as np
import pytest
import weft
from weft import cuda


@cuda.jit
def constructed(out, n):
    a = cuda.float32x4(1, 2.5, n, True)
    b = cuda.float32x4(n)
    c = cuda.float32x4(cuda.float32x2(3, 4), 5, 6)
    d = cuda.float32x3(7, cuda.float32x2(8, 9))
    e = cuda.float4((10, 11, 12, 13))
    f = cuda.float32x4(d, 14)
    g = cuda.int32x2(1.75, -1.75)
    h = cuda.float32x1(15)
    row = 0
    for v in (a, b, c, e, f):
        out[row, 0] = v.x
        out[row, 1] = v.y
        out[row, 2] = v.z
        out[row, 3] = v.w
        row += 1
    out[5, 0] = d.x
    out[5, 1] = d.y
    out[5, 2] = d.z
    out[5, 3] = h.x
    out[6, 0] = g.x
    out[6, 1] = g.y


def test_constructors():
    out = np.zeros((7, 4))
    constructed[1, 1](out, 6)
    assert out.tolist() == [
        [1, 2.5, 6, 1],
        [6, 6, 6, 6],
        [3, 4, 5, 6],
        [10, 11, 12, 13],
        [7, 8, 9, 14],
        [7, 8, 9, 15],
        [1, -1, 0, 0],
    ]


@cuda.jit
def computed(x, y, out):
    a = cuda.float64x2(x, y)
    b = cuda.float64x2(0.5, -3)
    row = 0
    for v in (a + b, a - b, a * b, a / b, a * 2, 2 - a, a // b, a % b, a**2):
        out[row, 0] = v.x
        out[row, 1] = v.y
        row += 1
    a += b
    a *= 3
    out[row, 0] = a.x
    out[row, 1] = a.y


def test_arithmetic_is_by_lane():
    out = np.zeros((10, 2))
    computed[1, 1](7.25, -2.5, out)
    a, b = np.array([7.25, -2.5]), np.array([0.5, -3])
    expected = [a + b, a - b, a * b, a / b, a * 2, 2 - a, a // b, a % b, a**2, (a + b) * 3]
    np.testing.assert_allclose(out, expected, rtol=1e-15)


@cuda.jit
def wraps(out, x):
    v = cuda.uint8x4(250, 1, 2, 255) + x
    out[0], out[1], out[2], out[3] = v.x, v.y, v.z, v.w
    w = cuda.int16x2(1, -1) * 3
    w = cuda.int16x2(w.x + 32767, w.y)
    out[4], out[5] = w.x, w.y
    u = cuda.int32x3(7, -7, 9) // 2 << 1 | 1
    out[6], out[7], out[8] = u.x, u.y, u.z


def test_lanes_keep_their_type():
    out = np.zeros(9, np.int64)
    wraps[1, 1](out, 10)
    assert out.tolist() == [4, 11, 12, 9, -32766, -3, 7, -7, 9]


@cuda.jit
def reversed_by_lanes(x, out):
    shared = cuda.shared.array(32, dtype=cuda.float32x4)
    local = cuda.local.array(2, dtype=cuda.float32x4)
    t = cuda.threadIdx.x
    shared[t] = cuda.float32x4(x[t, 0], x[t, 1], x[t, 2], x[t, 3])
    cuda.syncthreads()
    local[0] = shared[31 - t]
    local[1] = local[0] * 2
    local[0] += local[1]
    v = local[0]
    out[t, 0] = v.w
    out[t, 1] = v.z
    out[t, 2] = v.y
    out[t, 3] = v.x


def test_arrays_of_vectors_in_a_block_and_a_thread():
    x, out = np.arange(128, dtype=np.float32).reshape(32, 4), np.zeros((32, 4), np.float32)
    reversed_by_lanes[1, 32](x, out)
    np.testing.assert_array_equal(out, 3 * x[::-1, ::-1])


@cuda.jit
def seen_as_vectors(x, out):
    i = cuda.grid(1)
    source = x.view(cuda.float32x4)
    target = out.view(cuda.float32x4)
    if i < target.size:
        target[i] = source[i] * 2 + 1


def test_numbers_are_seen_as_vectors():
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    seen_as_vectors[1, 32](x, out)
    np.testing.assert_array_equal(out, x * 2 + 1)


@cuda.jit(device=True)
def scaled(v, by):
    return v * by, v.x + v.y


@cuda.jit
def passed(out, n):
    best = cuda.float32x2(0, 0)
    for k in range(n):
        v, total = scaled(cuda.float32x2(k, 1), 0.5)
        if total > 2:
            best = v
    out[0] = best.x
    out[1] = best.y
    x, y = best
    out[2] = x + y


def test_vectors_pass_through_functions_and_loops():
    out = np.zeros(3)
    passed[1, 1](out, 5)
    assert out.tolist() == [2, 0.5, 2.5]


def test_wrong_numbers_of_lanes():
    @cuda.jit
    def too_few(out):
        out[0] = cuda.float32x3(1, 2).x

    @cuda.jit
    def other_length(out):
        out[0] = (cuda.float32x3(1) + cuda.float32x2(2)).x

    @cuda.jit
    def no_lane(out):
        out[0] = cuda.float32x2(1).z

    out = np.zeros(1)
    with pytest.raises(weft.CompileError, match="3 numbers"):
        too_few[1, 1](out)
    with pytest.raises(weft.CompileError, match="float32x3"):
        other_length[1, 1](out)
    with pytest.raises(weft.CompileError, match="`z`"):
        no_lane[1, 1](out)
