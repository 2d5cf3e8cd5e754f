"""On the CPU, a kernel reads large read-only host arrays in place; arrays that it writes are copied."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import host_memory
import numpy as np
import pytest
from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Iterator

N = 1 << 17  # 1 MiB


def where(x: Any, place: Any, out: Any) -> None:
    place[0] = 7
    cuda.threadfence()
    out[0] = x[0]


def is_in_place(x: Any, of: Any = None) -> bool:
    """Whether a kernel's writes to the start of the memory of `x`, or of its base, are visible through `x`."""
    array = x if of is None else of
    layout = "::1" if array.flags.c_contiguous else ":"
    kernel = cuda.jit(f"void(float64[{layout}], CPointer(float64), float64[::1])")(where)
    before, out = array[0], np.zeros(1)
    assert before != 7
    kernel[1, 1](x, array.ctypes.data, out)
    array[0] = before
    return out[0] == 7


@cuda.jit
def add_one(x: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


@pytest.fixture(autouse=True)
def on_the_cpu() -> None:
    if cuda.get_current_device().kind == "cuda":
        pytest.skip("a GPU does not reach arrays of the host")


@pytest.fixture
def at_an_end() -> Iterator[tuple[Any, Any]]:
    """An array, and a function that protects or unmaps the memory after it."""
    with host_memory.at_an_end(N) as (x, change):
        x[:] = np.arange(N)
        yield x, change


def test_what_is_only_read_is_read_where_it_is(at_an_end) -> None:
    x, _ = at_an_end  # at other addresses, a stack's guard page may follow an array
    assert is_in_place(x)
    assert is_in_place(x[100:])
    assert is_in_place(x[::3])
    assert not is_in_place(cuda.In(x), x)
    assert not is_in_place(cuda.InOut(x), x)
    assert not is_in_place(x[:100])


def test_what_is_written_comes_back() -> None:
    x = np.arange(N, dtype=np.float64)
    add_one[N // 128, 128](x)
    np.testing.assert_array_equal(x, np.arange(N) + 1.0)


@cuda.jit
def total(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.shape[0]:
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        y[i] = s


def test_arrays_with_gaps_and_backwards() -> None:
    base = np.random.default_rng(3).integers(-1000, 1000, (600, 700)).astype(np.float64)
    aligned = np.zeros(600, [("a", "i1"), ("b", "f8", 700)])
    aligned["b"] = base
    for x in (base, base[::2, ::3], base[::-1, 5:], base.T, np.broadcast_to(base[0], (300, 700)), aligned["b"]):
        y = np.zeros(x.shape[0])
        total[11, 64](x, y)
        np.testing.assert_array_equal(y, x.sum(axis=1))


@cuda.jit
def shifted(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i] + 1


def test_parts_of_one_array_that_are_read_and_written() -> None:
    base = np.arange(2.0 * N)
    shifted[N // 128, 128](base[::2], base[1::2])
    np.testing.assert_array_equal(base[1::2], np.arange(0, 2.0 * N, 2) + 1)
    np.testing.assert_array_equal(base[::2], np.arange(0, 2.0 * N, 2))
    shifted[N // 128, 128](base[: N + 5], base[5:N])
    assert base[5] == 1


@cuda.jit
def without_a_guard(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    y[i] = x[i]


def test_threads_beyond_the_end_read_what_can_be_read() -> None:
    for extent in (N, N + 1, N + 509, 2 * N - 3):
        x, y = np.arange(float(extent)), np.zeros(extent)
        without_a_guard[-(-extent // 1024), 1024](x, y)
        np.testing.assert_array_equal(y, x)


def is_mapped(address: int) -> bool:
    lines = Path("/proc/self/maps").read_text().splitlines()
    spans = [[int(end, 16) for end in line.split()[0].split("-")] for line in lines]
    return any(first <= address < end for first, end in spans)


def test_where_nothing_is_behind_there_are_zeros_meanwhile(at_an_end) -> None:
    x, change = at_an_end
    change(protect=False)
    end = x.ctypes.data + N * 8
    assert not is_mapped(end)
    assert is_in_place(x)
    y = np.full(N + 1024, 5.0)
    without_a_guard[N // 1024 + 1, 1024](x, y)
    np.testing.assert_array_equal(y, np.concatenate([x, np.zeros(1024)]))
    assert not is_mapped(end)

    def launches(_: int) -> None:
        for _ in range(30):
            y = np.zeros(N + 1024)
            without_a_guard[N // 1024 + 1, 1024](x, y)
            np.testing.assert_array_equal(y[:N], x)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(launches, range(4)))
    assert not is_mapped(end)


def test_where_nothing_can_be_read_behind_there_is_a_copy(at_an_end) -> None:
    x, change = at_an_end
    change(protect=True)
    assert not is_in_place(x)
    y = np.zeros(N)
    without_a_guard[N // 1024 + 1, 1024](x, y)
    np.testing.assert_array_equal(y, x)
