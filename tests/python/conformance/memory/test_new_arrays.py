"""Arrays that kernels create with NumPy's functions: `np.zeros`, `np.full`, …, copies, and the result of `@`.

Each execution of a call returns a new array: a thread has the same results as the Python function.
"""

from __future__ import annotations

import numpy as np
import pytest
import weft.errors
from weft import cuda


def same(kernel, *args, threads=1) -> None:
    """A launch and a call of the Python function with NumPy arrays must have the same effect on all arrays."""
    mine, theirs = ([arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args] for _ in range(2))
    kernel[1, threads](*mine)
    kernel.py_func(*theirs)
    for got, expected in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(got, expected)


SIZE = 4


@cuda.jit
def made(out):
    a = np.zeros(3)
    b = np.ones((2, 3), dtype=np.int32)
    c = np.full((SIZE,), 7)
    d = np.full((2, 2), 1.5, np.float32)
    e = np.empty((2, 2), order="F")
    f = np.zeros((2, 3), np.complex64)
    g = np.ones(2, dtype=bool)
    h = np.zeros(0)
    i = np.zeros((3, 2), dtype="int16", order="F")
    j = np.zeros(())
    e[0, 1] = 5
    e[1, 0] = 6
    f[1, 2] = 3 + 4j
    j[()] = 2
    i[2, 1] = 9
    out[0] = a.sum() + b.sum() + c.sum()
    out[1] = d.sum()
    out[2] = e[0, 1] * 10 + e[1, 0]
    out[3] = abs(f[1, 2]) + abs(f[0, 0])
    out[4] = g.sum() + h.size + j[()]
    out[5] = i[2, 1] + i[0, 0] + i.strides[0]
    out[6] = a.itemsize + b.itemsize + c.itemsize + d.itemsize + f.itemsize + g.itemsize
    out[7] = b.strides[0] + e.strides[0]


def test_what_is_made() -> None:
    same(made, np.zeros(8))


@cuda.jit
def like(x, out):
    a = np.zeros_like(x)
    b = np.ones_like(x, dtype=np.int64)
    c = np.full_like(x, 3)
    d = np.empty_like(x)
    d[:] = 4
    e = np.copy(x)
    f = x.copy()
    x[0, 0] = 100
    e[1, 1] = 50
    out[0] = a.sum()
    out[1] = b.sum()
    out[2] = c.sum()
    out[3] = d.sum()
    out[4] = e.sum()
    out[5] = f.sum()
    out[6] = x.sum()
    out[7] = f.strides[0] + 1000 * e.strides[0]


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4)),
        np.arange(48.0).reshape(6, 8)[::2, 1::2],
    ],
)
def test_copies_of_shapes_of_run_time(x) -> None:
    mine, out = [x.copy(order="K") for _ in range(2)], [np.zeros(8) for _ in range(2)]
    like[1, 1](mine[0], out[0])
    like.py_func(mine[1], out[1])
    np.testing.assert_array_equal(mine[0], mine[1])
    np.testing.assert_array_equal(out[0][:7], out[1][:7])
    assert out[0][7] % 1000 == out[1][7] % 1000


@cuda.jit
def each_iteration(out):
    for k in range(4):
        counts = np.zeros(3, np.int64)
        for j in range(k):
            counts[j % 3] += j + 1
        out[k] = counts.sum()
        pair = np.ones(2, np.int64)
        other = np.ones(2, np.int64)
        pair[0] = k
        other[0] = pair[0] + pair[1]
        out[k] += 100 * other[0] + 1000 * pair[0]


@cuda.jit
def last_one(out):
    kept = np.zeros(2)
    for k in range(5):
        row = np.full(2, k * 1.0)
        if k == 3:
            kept[:] = row
            break
    out[0] = row[0]
    out[1] = kept[1]
    for k in range(3):
        sums = np.zeros(1)
        for i in range(3):
            sums[0] += i * k
    out[2] = sums[0]
    both = (np.zeros(1), np.ones(1).copy())
    both[0][0] = 5
    out[3] = both[0][0] + both[1][0]


def test_each_execution_gives_new_contents() -> None:
    same(each_iteration, np.zeros(4, np.int64))
    same(last_one, np.zeros(4))


@cuda.jit(device=True)
def histogram(x, bins):
    counts = np.zeros(bins, np.int32)
    for k in range(x.size):
        counts[x[k] % bins] += 1
    best = 0
    for k in range(bins):
        best = max(best, counts[k])
    return best


@cuda.jit
def in_functions(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = histogram(x[i:], 3) * 10 + histogram(x[:i], 4)


def test_device_functions_and_threads() -> None:
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], np.int64)
    out = np.zeros(12, np.int64)
    in_functions[2, 8](x, out)

    def most(values, bins):
        return max(np.bincount(values % bins, minlength=bins).tolist())

    np.testing.assert_array_equal(out, [most(x[i:], 3) * 10 + most(x[:i], 4) for i in range(12)])


@cuda.jit
def shared_with_barriers(x, out):
    i = cuda.threadIdx.x
    own = np.zeros(2)
    tile = cuda.shared.array(8, np.float64)
    for k in range(3):
        step = np.full(2, x[i] + k)
        tile[i] = step[0]
        cuda.syncthreads()
        own[0] += tile[7 - i]
        own[1] += step[1]
        cuda.syncthreads()
    out[i] = own[0] * 100 + own[1]


def test_live_across_barriers() -> None:
    x, out = np.arange(8.0), np.zeros(8)
    shared_with_barriers[1, 8](x, out)
    np.testing.assert_array_equal(out, (3 * x[::-1] + 3) * 100 + 3 * x + 3)


POINT = np.dtype([("x", "f4"), ("n", "i8")])


@cuda.jit
def compound(points, dates, out):
    made = np.zeros(3, POINT)
    made[1].n = 5
    copy = points.copy()
    points[0].x = 9
    days = dates.copy()
    dates[0] = dates[1]
    out[0] = made[0].n + made[1].n + made[2].x
    out[1] = copy[0].x + copy[1].n
    out[2] = np.int64(days[0])


def test_records_and_dates() -> None:
    points = np.array([(1.5, 2), (3.5, 4)], POINT)
    dates = np.array([17, 4], "M8[D]")
    out = np.zeros(3)
    compound[1, 1](points, dates, out)
    np.testing.assert_array_equal(out, [5, 5.5, 17])


@cuda.jit
def powers(out):
    matrix = np.zeros((2, 2))
    matrix[0, 0] = matrix[0, 1] = matrix[1, 0] = 1
    vector = np.ones(2)
    for k in range(out.shape[0]):
        vector = matrix @ vector
        out[k, 0] = vector[0]
        out[k, 1] = vector[1]


@cuda.jit
def turned_around(out):
    row = np.zeros(4)
    for k in range(4):
        row[k] = k
    for k in range(3):
        row = row[::-1].copy()
        out[k] = row[0] * 1000 + row[1] * 100 + row[2] * 10 + row[3]


def test_what_reads_the_array_before() -> None:
    same(powers, np.zeros((8, 2)))
    same(turned_around, np.zeros(3))


HELD = {
    "before = now\n        now = np.zeros(2)\n        out[k] = before[0]": "`before` is an array",
    "before, now = now, np.zeros(2)\n        out[k] = before[0]": "made in an earlier iteration",
    "now += last\n        last = np.zeros(2)": None,
    "for x in last:\n            last = np.ones(2)\n            out[k] += x": "made in an earlier iteration",
    "before = now[1:]\n        now = np.zeros(2)\n        out[k] = (before, k)[0][0]": "`before` is an array",
    "before = same_one(now)\n        now = np.zeros(2)\n        out[k] = before[0]": "`before` is an array",
    "last += (last := np.ones(2))": "made in an earlier iteration",
}


@pytest.mark.parametrize("body", HELD)
def test_an_array_of_an_earlier_iteration(body, tmp_path) -> None:
    text = (
        "from weft import cuda\nimport numpy as np\n\n@cuda.jit(device=True)\ndef same_one(a):\n    return a\n\n"
        "@cuda.jit\ndef kernel(out):\n    before = np.zeros(2)\n    now = np.ones(2)\n    last = np.ones(2)\n"
        f"    for k in range(out.size):\n        {body}\n"
    )
    file = tmp_path / "held.py"
    file.write_text(text)
    found = {}
    exec(compile(text, str(file), "exec"), found)
    expected = HELD[body]
    if expected is None:
        same(found["kernel"], np.zeros(3))
        return
    with pytest.raises(weft.errors.CompileError, match=expected) as error:
        found["kernel"][1, 1](np.zeros(3))
    assert "before[:] = now" in str(error.value)


@cuda.jit
def copy_of_any(x, out):
    i = cuda.grid(1)
    if i < out.size:
        mine = x.copy()
        out[i] = mine[i] + mine.size


def finished(kernel, *args) -> None:
    kernel[1, 3](*args)
    cuda.synchronize()


def test_what_is_too_large_ends_the_thread() -> None:
    x, out = np.arange(512.0), np.zeros(3)
    finished(copy_of_any, x, out)
    np.testing.assert_array_equal(out, [512, 513, 514])
    out[:] = -1
    with pytest.raises(MemoryError, match=r"more than 512 elements of 8 bytes: use `cuda\.local\.array"):
        finished(copy_of_any, np.arange(513.0), out)
    np.testing.assert_array_equal(out, [-1, -1, -1])


@cuda.jit(device=True)
def gives_it():
    return np.zeros(3)


@cuda.jit(device=True)
def gives_a_copy(a):
    b = a.copy()
    return b[1:]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.zeros(x.size), "the shape of `numpy.zeros` must be a compile-time constant"),
        (lambda x: np.zeros(3000), "makes an array of 24000 bytes in each thread; the limit is 16384"),
        (lambda x: np.zeros(-1), "an array cannot have the size -1"),
        (lambda x: np.full(2, 1j, np.float32), "no overload of `numpy.full` takes"),
        (lambda x: np.zeros(2, "float33"), "takes a type as its dtype"),
        (lambda x: np.zeros(2, order="X"), 'takes "C", "F", "A" or "K" as its order'),
        (lambda x: gives_it(), "returns an array in its own local memory"),
        (lambda x: gives_a_copy(x), "returns an array in its own local memory"),
    ],
)
def test_what_is_refused(function, message) -> None:
    device = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(x, out):
        out[0] = device(x)[0]

    with pytest.raises(weft.errors.CompileError, match=message):
        kernel[1, 1](np.ones(4), np.zeros(1))
