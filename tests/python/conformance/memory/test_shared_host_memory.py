"""Host arrays of one launch that share memory: writes through one are visible through the others, as in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from weft import cuda


class Pair(NamedTuple):
    one: np.ndarray
    other: np.ndarray


@dataclass
class Holder:
    array: np.ndarray
    number: int


@cuda.jit
def even_odd(even, odd):
    i = cuda.grid(1)
    even[2 * i] = 1
    odd[2 * i + 1] = 5


@cuda.jit
def in_turns(a, b):
    for i in range(a.size):
        a[i] += 1
    for i in range(b.size):
        b[i] = b[i] * 2 + a[i % a.size]
    for i in range(a.size):
        a[i] += b[(i * 5) % b.size]


@cuda.jit
def in_turns_2d(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += 1
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] = b[i, j] * 2 + a[i % a.shape[0], j % a.shape[1]]


@cuda.jit
def read_and_write(read, write):
    for i in range(write.size):
        write[i] += 10 * read[i % read.size] + 1


def like_numpy(kernel, base, choose) -> None:
    """Run a kernel on views of an array, and the Python function on the same views of another array."""
    expected = base.copy(order="K")
    with np.errstate(over="ignore"):
        kernel.py_func(*choose(expected))
    kernel[1, 1](*choose(base))
    assert np.array_equal(base, expected)


@pytest.mark.parametrize(
    "choose",
    [
        lambda x: (x, x),
        lambda x: (x, x[:]),
        lambda x: (x[1:], x[:-1]),
        lambda x: (x[::2], x),
        lambda x: (x, x[::-1]),
        lambda x: (x[::-2], x[::-3]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x[::3], x[4:5]),
        lambda x: (x[2:6], x[8:]),
    ],
)
def test_views(choose) -> None:
    like_numpy(in_turns, np.arange(24), choose)
    like_numpy(in_turns, np.arange(24, dtype=np.int8), choose)


@pytest.mark.parametrize(
    "choose",
    [
        lambda x: (x, x.T),
        lambda x: (x[1:], x[:, 2:]),
        lambda x: (x[:3].T, x[::2, ::-1]),
        lambda x: (x.reshape(3, -1), x),
        lambda x: (x[:, :1], x[:, 1:2]),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_two_dimensions(choose, order) -> None:
    like_numpy(in_turns_2d, np.array(np.arange(42).reshape(6, 7), order=order), choose)


def test_threads_of_several_blocks() -> None:
    want = np.array([1.0, 5.0] * 64)
    for views in (lambda x: (x, x), lambda x: (x, x[:]), lambda x: (x[:127], x[:]), lambda x: (x[:127], x)):
        x = np.zeros(128)
        even_odd[4, 16](*views(x))
        assert np.array_equal(x, want)


def test_another_type_of_the_same_bytes() -> None:
    @cuda.jit
    def kernel(bits, floats):
        for i in range(floats.size):
            floats[i] += 1
            bits[2 * i] ^= 7

    like_numpy(kernel, np.arange(8.0), lambda x: (x.view(np.uint32), x))


def test_a_read_only_view() -> None:
    def choose(x):
        view = x[2:]
        view.flags.writeable = False
        return view, x

    like_numpy(read_and_write, np.arange(10), choose)
    like_numpy(read_and_write, np.arange(10), lambda x: (x, x[6:6]))
    like_numpy(read_and_write, np.arange(10), lambda x: choose(x[::-1]))


def test_fields_and_records() -> None:
    dtype = np.dtype([("x", "f8"), ("y", "i8"), ("pad", "i4"), ("z", "i8")], align=True)
    records = np.zeros(6, dtype)
    records["y"] = range(6)
    records["z"] = range(10, 16)
    records["pad"] = 77
    for names in ("yz", "yy", "zy"):
        like_numpy(in_turns, records, lambda r, names=names: tuple(r[name] for name in names))

    @cuda.jit
    def of_records(records, ys):
        for i in range(ys.size):
            ys[i] += 3
            records[i]["x"] += ys[i]

    like_numpy(of_records, records, lambda r: (r, r["y"]))

    @cuda.jit
    def of_one(records, one):
        one["y"] += 100
        for i in range(records.size):
            records[i]["x"] += records[2]["y"]

    like_numpy(of_one, records, lambda r: (r, r[2]))


def test_inside_of_tuples_and_objects() -> None:
    @cuda.jit
    def of_pair(pair, more):
        for i in range(more[1].size):
            pair.one[i] += 1
            pair.other[2 * i] += pair.one[i]
            more[1][i] *= 2

    like_numpy(of_pair, np.arange(12), lambda x: (Pair(x[:6], x), (3, x[3:6])))

    @cuda.jit
    def of_object(holder, array):
        for i in range(array.size):
            holder.array[i] += holder.number
            array[i] += holder.array[0]

    like_numpy(of_object, np.arange(12), lambda x: (Holder(x, 4), x[::2]))

    @cuda.jit
    def of_tuple(arrays):
        arrays[0][0] = 1
        arrays[1][1] = 2
        arrays[2][2] = 3

    like_numpy(of_tuple, np.zeros(8), lambda x: ((x, x, x[::2]),))


def test_random_views() -> None:
    random = np.random.default_rng(5)

    def view():
        start, stop = (int(bound) for bound in random.integers(-30, 30, 2))
        step = int(random.choice([-3, -2, -1, 1, 1, 1, 2, 5]))
        return slice(start, stop, step)

    for _ in range(60):
        one, other = view(), view()
        base = random.integers(0, 9, 29)
        if base[one].size and base[other].size:
            like_numpy(in_turns, base, lambda x, one=one, other=other: (x[one], x[other]))


def test_what_is_asked_for_as_a_copy_is_one() -> None:
    """An image is both input and output by `cuda.In` and `cuda.Out`: the kernel reads the original values."""

    @cuda.jit
    def shift(source, target):
        i = cuda.grid(1)
        target[i] = source[(i + 1) % source.size]

    x = np.arange(128)
    shift[4, 32](cuda.In(x), cuda.Out(x))
    assert x.tolist() == [*range(1, 128), 0]
    even_odd[1, 64](cuda.InOut(x), x)
    assert x.tolist() == [1, 5] * 64


def test_elements_that_lie_askew_everywhere() -> None:
    memory = np.zeros(100, np.uint8)
    x = memory[3:83].view(np.int64)
    in_turns[1, 1](x, x[2:])
    expected = np.zeros(10, np.int64)
    in_turns.py_func(expected, expected[2:])
    assert np.array_equal(x, expected)


def test_what_cannot_be_one_copy_is_an_error() -> None:
    packed = np.zeros(6, [("x", "i8"), ("flag", "i1")])
    with pytest.raises(ValueError, match=r"argument 1 \(`a`\).* and argument 2 \(`b`\).*share memory.*aligned"):
        in_turns[1, 1](packed["x"], packed["x"][::-1])
    mapped = cuda.mapped_array(8, np.int64)
    mapped[:] = 0
    plain = np.asarray(mapped).view(np.ndarray)
    with pytest.raises(ValueError, match=r"argument 1 \(`a`\).* and argument 2 \(`b`\).*share memory.*used in place"):
        in_turns[1, 1](plain, mapped)
    assert mapped.tolist() == [0] * 8
    # Disjoint, or only read.
    read_and_write[1, 1](plain[:4], mapped[4:])
    cuda.synchronize()
    assert mapped.tolist() == [0] * 4 + [1] * 4

    @cuda.jit
    def sum_of(out, a, b):
        out[0] = a[4] + b[5]

    out = np.zeros(1, np.int64)
    sum_of[1, 1](out, plain, mapped)
    assert out[0] == 2
