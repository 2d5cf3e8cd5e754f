"""Views of arrays: newaxis, ellipsis, reshape, ravel, view, transpose, parts of complex numbers, slices."""

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda


@cuda.jit
def new_dimensions(a, out):
    b = a[np.newaxis, :]
    c = a[:, None]
    out[0] = b.shape[0] * 100 + b.shape[1]
    out[1] = c.shape[0] * 100 + c.shape[1]
    out[2] = b[0, 1] + c[1, 0]
    c[0, 0] = 77
    d = a[None, 1:, None]
    out[3] = d.ndim * 100 + d.shape[1]
    d[0, 0, 0] += 5
    out[4] = b[..., 2][0]


@pytest.mark.parametrize("a", [np.arange(4.0), np.arange(8.0)[::2], np.arange(4.0)[::-1]])
def test_newaxis(a):
    like_python(new_dimensions, a, np.zeros(5))


@cuda.jit
def ellipses(a, out):
    out[0] = a[..., 0].shape[0] * 10 + a[..., 0].ndim
    out[1] = a[1, ...][0, 1]
    out[2] = a[..., 1:, ::2][0, 1, 1]
    out[3] = a[0, ..., 1][2]
    a[..., -1] = 5
    a[1, ..., 0][1] += a[0, ..., 0][0]
    out[4] = a[...].size
    row = a[0, 0]
    row[...] = 3


@pytest.mark.parametrize("order", ["C", "F"])
def test_ellipsis(order):
    like_python(ellipses, np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order), np.zeros(5))


@cuda.jit
def reshaped(a, n, out):
    b = a.reshape(3, n)
    c = a.reshape((-1, 2))
    d = b.reshape(-1)
    e = c.reshape((2, 3, -1))
    f = e.ravel()
    out[0] = b.shape[1] * 10 + c.shape[0]
    out[1] = d.size * 10 + e.shape[2]
    b[1, 2] = -1
    c[0, 1] = -2
    e[1, 0, 1] = -3
    out[2] = d[6] + f[1] + f[7]
    out[3] = a.reshape(2, 2, 3)[1, 1, 2]
    f[0] = 9
    out[4] = np.ravel(b)[0] + np.reshape(a, (6, 2))[0, 1]


def test_reshape_and_ravel():
    like_python(reshaped, np.arange(12.0), 4, np.zeros(5))
    like_python(reshaped, np.arange(12).reshape(4, 3), 4, np.zeros(5))


@cuda.jit
def reshaped_at_run_time(a, n, shape, out):
    flat = a.reshape(n)
    out[0] = flat.shape[0]
    out[1] = flat[-1]
    b = a.reshape(shape)
    out[2] = b.shape[0] * 10000 + b.shape[1] * 100 + b.ndim
    out[3] = b[1, -1]
    c = a.reshape(4, 2, shape[1] * 0 - 1)
    out[4] = c.shape[0] * 10000 + c.shape[2]


@pytest.mark.parametrize("n", [-1, 24, np.int8(-1), np.uint8(24), np.int32(24)])
@pytest.mark.parametrize("shape", [(4, 6), (4, -1), (-1, 6)])
def test_an_extent_that_the_launch_makes_minus_one(n, shape):
    out, expected = np.zeros(5, np.int64), np.zeros(5, np.int64)
    a = np.arange(24)
    reshaped_at_run_time[1, 1](a, n, shape, out)
    reshaped_at_run_time.py_func(a, int(n), shape, expected)
    assert out.tolist() == expected.tolist()


def test_reshape_needs_the_order_of_c():
    @cuda.jit
    def strided(a, out):
        out[0] = a.reshape(2, 2)[1, 1]

    @cuda.jit
    def too_many(out):
        out[0] = cuda.local.array(6, np.float64).reshape(2, 4)[0, 0]

    with pytest.raises(weft.CompileError, match="C order"):
        strided[1, 1](np.zeros(8)[::2], np.zeros(1))
    with pytest.raises(weft.CompileError, match="6 elements"):
        too_many[1, 1](np.zeros(1))


@cuda.jit
def shared_bytes(x, out):
    memory = cuda.shared.array(256, dtype=np.uint8)
    floats = memory[:128].view(np.float32)
    numbers = memory[128:].view(np.int32)
    t = cuda.threadIdx.x
    floats[t] = x[t] / 2
    numbers[t] = t * 3
    cuda.syncthreads()
    grid = floats.reshape(4, 8)
    out[t] = grid[t // 8, 7 - t % 8] + numbers[31 - t]


def test_a_view_of_shared_memory_as_other_types():
    x, out = np.arange(32.0), np.zeros(32)
    shared_bytes[1, 32](x, out)
    halves = (np.arange(32.0) / 2).reshape(4, 8)[:, ::-1].ravel()
    np.testing.assert_array_equal(out, halves + np.arange(31, -1, -1) * 3)


@cuda.jit
def dynamic(out):
    floats = cuda.shared.array(0, dtype=np.float32)
    numbers = cuda.shared.array(0, dtype=np.int32)[32:]
    t = cuda.threadIdx.x
    floats[t] = t / 4
    numbers[t] = t
    cuda.syncthreads()
    out[t] = floats[31 - t] * 4 + numbers[t]


def test_parts_of_dynamic_shared_memory():
    out = np.zeros(32)
    dynamic[1, 32, 0, 256](out)
    assert out.tolist() == [31] * 32


@cuda.jit
def reinterpreted(a, out):
    b = a.view(np.int64)
    out[0] = b[0]
    b[1] ^= -(2**63)
    c = a.view(np.uint8)
    out[1] = c.shape[0]
    out[2] = c[7]
    d = a.view(np.float32)[::2]
    out[3] = d.size


def test_view():
    like_python(reinterpreted, np.array([1.0, 2.5, -3]), np.zeros(4, np.int64))


@cuda.jit
def axes(a, out):
    t = a.transpose(2, 0, 1)
    u = a.transpose((1, 0, 2))
    v = a.transpose()
    w = np.transpose(a)
    out[0] = t.shape[0] * 100 + t.shape[1] * 10 + t.shape[2]
    out[1] = u.shape[0] * 100 + u.shape[1] * 10 + u.shape[2]
    out[2] = t[3, 1, 2] + u[2, 1, 3] * 2 + v[3, 2, 1] * 3 + w[1, 2, 0]
    t[0, 1, 1] = 100
    u[0, 0, 1] = 200
    a.T[3, 0, 0] = 300
    out[3] = a.T.T[1, 1, 1]
    out[4] = a.transpose(-1, 1, 0)[2, 1, 1]


@pytest.mark.parametrize("order", ["C", "F"])
def test_transpose(order):
    like_python(axes, np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order), np.zeros(5))


@cuda.jit
def parts(z, out):
    re = z.real
    im = z.imag
    for i in range(re.shape[0]):
        for j in range(re.shape[1]):
            out[i, j] = re[i, j] * 10 + im[i, j]
            im[i, j] = -im[i, j]
    re[0, 1] = 50
    z.imag[1, :] = 7
    z[0].real[0] += 1


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("order", ["C", "F"])
def test_parts_of_complex_arrays_are_views(dtype, order):
    z = np.asarray((np.arange(6) * (1 + 2j)).reshape(2, 3), dtype, order=order)
    like_python(parts, z, np.zeros((2, 3)))
    like_python(parts, np.repeat(z, 2, axis=1)[:, ::2], np.zeros((2, 3)))


@cuda.jit
def slice_objects(a, n, out):
    s = slice(1, n)
    out[0] = a[s].size
    out[1] = a[s][0]
    t = slice(None, None, -2)
    out[2] = a[t][0]
    a[slice(2)] = 5
    both = (slice(n), None)
    out[3] = a[both].ndim
    out[4] = a[slice(n, None, 1)].size


def test_slices_as_values():
    like_python(slice_objects, np.arange(10.0), 6, np.zeros(5))


@cuda.jit
def assigned(a, row, n):
    a[0] = row
    a[1:] = row[0]
    a[2, 1:] = row[:-1]
    a[:, 0] = 7
    a[3:5] = row
    a[5:, 1:3] = row[1:3]
    a[n] = a[0]
    a[1, ::2] = (8, 9)


def test_slices_are_assigned_arrays_of_fewer_dimensions():
    like_python(assigned, np.zeros((7, 4)), np.arange(1.0, 5), 6)


@cuda.jit(device=True)
def halves(a):
    middle = a.shape[0] // 2
    return a[:middle], a[middle:]


@cuda.jit(device=True)
def fill(view, value):
    view[:] = value


@cuda.jit
def through_functions(a):
    low, high = halves(a)
    fill(low, 1)
    fill(high[::2], 2)
    fill(halves(high)[1], 3)


def test_views_go_through_device_functions():
    like = np.zeros(8)
    through_functions[1, 1](like)
    assert like.tolist() == [1, 1, 1, 1, 2, 0, 3, 3]


@cuda.jit
def seven(a, out):
    out[0] = a[1, 0, 1, 0, 1, 0, 2]
    a[0, 1, 0, 1, 0, 1] = 9
    out[1] = a.ndim + a[..., 0].ndim


def test_seven_dimensions_and_none():
    like_python(seven, np.arange(192.0).reshape(2, 2, 2, 2, 2, 2, 3), np.zeros(2))

    @cuda.jit
    def scalar(a, out):
        out[0] = a[()] + a.ndim
        a[()] = 4
        a[...] = a[()] * 2

    a, out = np.array(3.5), np.zeros(1)
    scalar[1, 1](a, out)
    assert (a[()], out[0]) == (8, 3.5)
