"""Array features that programs for numba.cuda rely on: indices, chained subscripts, slices, tuples and records."""

import math

import numpy as np
import weft
from harness import run
from weft import cuda


@cuda.jit
def ring_average(field, out):
    i, j, k = cuda.grid(3)
    if i < field.shape[0] and j < field.shape[1] and k < field.shape[2]:
        # The neighbor before the first element is the last one, because index -1 counts from the end.
        out[i, j, k] = (field[i - 1, j, k] + field[i, j - 1, k] + field[i, j, k - 1] + field[i - 1][j - 1][k - 1]) / 4


def test_negative_indices_count_from_the_end_in_every_dimension():
    field = np.random.default_rng(1).integers(0, 100, (5, 6, 7)).astype(np.float64)
    out = np.zeros_like(field)
    ring_average[(2, 2, 2), (4, 4, 4)](field, out)
    rolled = [np.roll(field, 1, axis) for axis in (0, 1, 2)] + [np.roll(field, (1, 1, 1), (0, 1, 2))]
    np.testing.assert_array_equal(out, sum(rolled) / 4)


@cuda.jit
def last_of_rows(a, ends, back):
    i = cuda.grid(1)
    if i < a.shape[0]:
        row = a[i]
        ends[i] = row[-1] + a[i, 1:][-1] * 100 + a[i][:-1][-1] * 10_000
        back[i] = a[-1 - i, -a.shape[1]]


def test_negative_indices_on_slices_of_rows():
    a = np.arange(24).reshape(6, 4)
    ends, back = np.zeros(6, np.int64), np.zeros(6, np.int64)
    last_of_rows[1, 8](a, ends, back)
    np.testing.assert_array_equal(ends, a[:, -1] * 101 + a[:, -2] * 10_000)
    np.testing.assert_array_equal(back, a[::-1, 0])


@cuda.jit
def double_each(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * 2


def test_threads_past_the_end_are_not_stopped():
    # Both arrays are views of longer ones, so that accesses of the threads without an element are valid.
    whole, result = cuda.to_device(np.arange(256.0)), cuda.to_device(np.full(256, -1.0))
    double_each[2, 128](whole[:200], result[:200])
    np.testing.assert_array_equal(result.copy_to_host()[:200], np.arange(200.0) * 2)


@cuda.jit
def chained(cube, table):
    i, j = cuda.grid(2)
    if i < table.shape[0] and j < table.shape[1]:
        table[i][j] = cube[i][j][0] + cube[i][j][-1]
        table[i][j] += 3
        cube[i][j][1] *= table[i][j]
        cube[i][j][2] -= cube[i][j][1] // 2


def test_row_of_a_row_reads_writes_and_updates():
    cube, table = np.arange(4 * 5 * 3).reshape(4, 5, 3), np.zeros((4, 5), np.int32)
    run(chained, (2, 2), (3, 3), cube, table)
    cube, table = cube.copy(), table.copy()
    chained[(2, 2), (3, 3)](cube, table)
    before = np.arange(4 * 5 * 3).reshape(4, 5, 3)
    np.testing.assert_array_equal(table, before[..., 0] + before[..., 2] + 3)
    np.testing.assert_array_equal(cube[..., 1], before[..., 1] * table)
    np.testing.assert_array_equal(cube[..., 2], before[..., 2] - cube[..., 1] // 2)


@cuda.jit
def relax(first, second, rounds):
    i = cuda.threadIdx.x
    n = first.size
    source, target = first, second
    for turn in range(rounds):
        even = turn % 2 == 0
        a = first if even else second
        target[i] = (a[i - 1] + 2 * a[i] + source[(i + 1) % n]) / 4
        cuda.syncthreads()
        source, target = target, source


def test_arrays_bound_by_a_condition_and_swapped_in_a_loop():
    start = np.random.default_rng(2).random(64)
    first, second = start.copy(), np.zeros(64)
    relax[1, 64](first, second, 5)
    expected = start
    for _ in range(5):
        expected = (np.roll(expected, 1) + 2 * expected + np.roll(expected, -1)) / 4
    np.testing.assert_allclose(second, expected, rtol=1e-13)


@cuda.jit
def longer_sum(p, q, out):
    i = cuda.grid(1)
    # A row of a matrix and a vector of another length and layout.
    chosen = p[:, i] if i % 2 == 0 else q
    total = 0.0
    for k in range(chosen.shape[0]):
        total += chosen[k]
    rest = chosen
    while rest.shape[0] > 1:
        rest = rest[: rest.shape[0] // 2] if total > 0 else rest[1:]
    out[i, 0], out[i, 1] = total, rest[0]


def test_a_condition_between_arrays_of_different_extents():
    p, q = np.arange(20.0).reshape(5, 4), np.array([-1.0, -2.0, -4.0])
    out = np.zeros((4, 2))
    longer_sum[1, 4](p, q, out)
    np.testing.assert_array_equal(out, [[40, 0], [-7, -4], [50, 2], [-7, -4]])


@cuda.jit(device=True)
def smooth(window, weights):
    total = np.float32(0)
    for i in range(window.shape[0]):
        for j in range(window.shape[1]):
            total += window[i, j] * weights[i, j]
    return total


@cuda.jit(device=True)
def clear_tail(v, start):
    v[start:] = 0.0


@cuda.jit
def filtered(image, weights, out, rows):
    y, x = cuda.grid(2)
    r = weights.shape[0]
    if y + r <= image.shape[0] and x + r <= image.shape[1]:
        out[y, x] = smooth(image[y : y + r, x : x + r], weights[:r, :r])
    if x == 0 and y < rows.shape[0]:
        clear_tail(rows[y, 1:], y)


def test_windows_are_passed_to_device_functions():
    rng = np.random.default_rng(3)
    image, weights = rng.random((20, 17), np.float32), rng.random((3, 3), np.float32)
    out, rows = np.zeros((18, 15), np.float32), np.ones((4, 6))
    filtered[(3, 3), (8, 8)](image, weights, out, rows)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    np.testing.assert_allclose(out, (windows * weights).sum(axis=(2, 3)), rtol=1e-5)
    np.testing.assert_array_equal(rows.sum(axis=1), [1, 2, 3, 4])


@cuda.jit("float32(float32[:], int32)", device=True)
def power_sum(v, exponent):
    total = np.float32(0.0)
    for x in v:
        total += x**exponent
    return total


@cuda.jit("int32(int32, int32)", device=True)
def saturating(a, limit):
    return min(a, limit)


@cuda.jit
def declared(m, out, counts):
    i = cuda.grid(1)
    if i < m.shape[0]:
        # A row in C order becomes an array of any layout, int64 becomes int32, and a column needs no change.
        out[i] = power_sum(m[i], 2) + power_sum(m[:, 0], i)
        counts[i] = saturating(i * 1000, 1500)


def test_arguments_are_converted_to_declared_types():
    m = np.arange(12, dtype=np.float32).reshape(4, 3)
    out, counts = np.zeros(4, np.float32), np.zeros(4, np.int64)
    declared[1, 32](m, out, counts)
    expected = (m**2).sum(axis=1) + [(m[:, 0] ** i).sum() for i in range(4)]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    np.testing.assert_array_equal(counts, [0, 1000, 1500, 1500])


@cuda.jit(device=True)
def affine(x, scale=2.0, offset=1):
    return scale * x + offset


@cuda.jit
def with_defaults(x, out, factor=3.0, shift=0):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = affine(x[i]) + affine(x[i], factor) + affine(x[i], offset=shift)


def test_defaults_of_kernels_and_device_functions():
    x = np.arange(10.0)
    out = np.zeros(10)
    with_defaults[1, 32](x, out)
    np.testing.assert_array_equal(out, (2 * x + 1) + (3 * x + 1) + 2 * x)
    with_defaults[1, 32](x, out, 5.0, 7)
    np.testing.assert_array_equal(out, (2 * x + 1) + (5 * x + 1) + (2 * x + 7))


@cuda.jit
def of_a_model(model, steps):
    (weights, bias), (scale, inputs), out = model
    i = cuda.grid(1)
    if i < out.shape[0]:
        total = bias
        for k in range(weights.shape[0]):
            total += weights[k] * inputs[i, k]
        first, *others = steps
        out[i] = scale * total + first + len(others) + steps[-1][1]


def test_nested_tuples_of_arrays_and_numbers():
    rng = np.random.default_rng(4)
    weights, inputs, out = rng.random(3), rng.random((8, 3)), np.zeros(8)
    of_a_model[1, 32](((weights, 0.5), (2, inputs), out), (1, (2.5, 3)))
    np.testing.assert_allclose(out, 2 * (inputs @ weights + 0.5) + 1 + 1 + 3, rtol=1e-14)


POINT = np.dtype("f,f,f")


@cuda.jit
def path_lengths(points, out, last):
    i = cuda.grid(1)
    if i < points.shape[0]:
        x, y, z = points[i]
        px, py, pz = points[i - 1]
        out[i] = math.sqrt((x - px) ** 2 + (y - py) ** 2 + (z - pz) ** 2)
        if i == 0:
            end = points[-1]
            last[0] = end[0] + end["f1"] + end.f2
            points[-1] = (0.0, 1.0, 2.0)


def test_arrays_of_unnamed_records():
    values = np.random.default_rng(5).random((9, 3), np.float32)
    points = np.array([tuple(row) for row in values], POINT)
    out, last = np.zeros(9, np.float32), np.zeros(1, np.float32)
    device_points = cuda.to_device(points)
    path_lengths[1, 1](device_points[:1], np.zeros(1, np.float32), last)  # one record: it is its own neighbor
    np.testing.assert_allclose(last[0], values[0].sum(), rtol=1e-6)
    lengths = np.linalg.norm(values - np.roll(values, 1, axis=0), axis=1)
    device_points = cuda.to_device(points)
    path_lengths[1, 1](device_points, out, last)
    np.testing.assert_allclose(out[0], lengths[0], rtol=1e-6)
    np.testing.assert_allclose(last[0], values[8].sum(), rtol=1e-6)
    assert device_points.copy_to_host()[8].tolist() == (0.0, 1.0, 2.0)


@cuda.jit
def scratch(x, out):
    i = cuda.grid(1)
    buffer = cuda.local.array(8, dtype=weft.float32)
    buffer[:] = 0.0
    buffer[2:5] = x[i]
    tail = buffer[4:]
    tail[1:] = -1.0
    total = 0.0
    for value in buffer:
        total += value
    out[i] = total


def test_slices_are_filled():
    x = np.arange(5, dtype=np.float32)
    out = np.zeros(5)
    scratch[1, 5](x, out)
    np.testing.assert_array_equal(out, x * 3 - 3)
