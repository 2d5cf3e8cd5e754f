"""Findings do not depend on the element size, although shadow memory differs for elements of one and two bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import weft.errors
from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.cpu

N = 1024
SIZES = [np.uint8, np.int16, np.float32, np.float64]


@cuda.jit(sanitize="all")
def neighbors(a, misses):
    i = cuda.threadIdx.x
    for turn in range(20):
        v = a[i] + a[(i + 1) % a.shape[0]] + a[(i + 40) % a.shape[0]]
        if not misses or turn != 13:
            cuda.syncthreads()
        a[i] = v
        cuda.syncthreads()


@cuda.jit(sanitize="all")
def transposed(a, misses):
    """Bytes of a word are written by four warps."""
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    a[x * 32 + y] = x
    if not misses:
        cuda.syncthreads()
    a[y * 32 + x] += y


@cuda.jit(sanitize="all")
def pixels(a, misses):
    """Bytes of a word are written by one thread at four source positions."""
    i = cuda.threadIdx.x * 4
    a[i] = 1
    a[i + 1] = a[i] + 2
    a[i + 2] = a[i + 1] + 3
    if misses and i > 0:
        i -= 4
    a[i + 3] = a[i] + 4


@cuda.jit(sanitize="all")
def blocks_of_a_thread(a, misses):
    """More threads of different blocks than a shadow page can represent in its compact form."""
    i = cuda.blockIdx.x
    a[i] = i
    if misses and i == 700:
        a[i - 1] = 3
    a[i] += 1


@cuda.jit(sanitize="all")
def lanes(a, misses):
    i = cuda.threadIdx.x
    first = i - i % 32
    for turn in range(3):
        total = a[first] + a[first + 1] + a[first + (i + turn) % 32]
        if not misses or turn < 2:
            cuda.syncwarp()
        a[i] = total
        cuda.syncwarp()


@cuda.jit(sanitize="all")
def halves_of_a_warp(a, misses):
    """The writing thread has synchronized with half of the threads that have read."""
    i = cuda.threadIdx.x
    v = a[0]
    if i < 16:
        cuda.syncwarp(0xFFFF)
    elif misses:
        v += a[1]
    if i == 3:
        a[1] = v


@cuda.jit(sanitize="all")
def tiles(a, misses):
    s = cuda.shared.array(256, np.uint8)
    i = cuda.threadIdx.x
    for turn in range(40):
        s[i % 256] = a[i % 256] + turn if i < 256 else s[i % 256] if misses else 0
        cuda.syncthreads()
        total = s[(i * 7) % 256] + s[(i + turn) % 256]
        cuda.syncthreads()
        a[i] += total


@cuda.jit(sanitize="all")
def first_and_last(a, misses):
    """A write is ordered after the reads of one warp, and not after those of another one."""
    i = cuda.threadIdx.x
    v = a[5]
    if misses or i < 32:
        v += a[7]
    cuda.syncwarp()
    if i == 1:
        a[7] = v


KERNELS = [
    (neighbors, (1, N)),
    (transposed, (1, (32, 32))),
    (pixels, (1, N // 4)),
    (blocks_of_a_thread, (N, 1)),
    (lanes, (2, N // 2)),
    (halves_of_a_warp, (1, 32)),
    (first_and_last, (1, 96)),
]


def lines(launch: Callable[[], Any]) -> list[tuple[str, list[int]]]:
    """The kinds and lines of the findings of a launch."""
    try:
        launch()
        cuda.synchronize()
    except weft.errors.SanitizerError as error:
        return sorted((found.kind, sorted(access.line for access in found.accesses)) for found in error.findings)
    return []


@pytest.mark.parametrize(("kernel", "config"), KERNELS, ids=lambda value: getattr(value, "__name__", ""))
def test_small_elements_race_like_large_ones(kernel: Any, config: tuple[Any, Any]) -> None:
    def found(dtype: type, misses: bool) -> list[tuple[str, list[int]]]:
        a = cuda.to_device(np.ones(N, dtype))
        return lines(lambda: kernel[config](a, misses))

    if kernel is lanes:  # Two blocks would race on the array.
        config = (1, N)
    expected = found(np.float64, True)
    assert [kind for kind, _ in expected if kind.startswith("race")], expected
    for dtype in SIZES:
        assert found(dtype, False) == []
        assert found(dtype, True) == expected
        assert found(dtype, False) == []


def test_bytes_of_shared_memory_that_are_used_again_and_again() -> None:
    a = cuda.to_device(np.ones(N, np.uint8))
    before = lines(lambda: tiles[1, 256](a, False))
    assert before == []
    found = lines(lambda: tiles[1, N](a, True))
    assert [kind for kind, _ in found if kind == "race within a block"], found


@pytest.mark.parametrize("align", [False, True])
def test_fields_of_records_are_apart(align: bool) -> None:
    dtype = np.dtype([("d", np.float64), ("n", np.int32), ("h", np.int16), ("b", np.int8)], align=align)

    @cuda.jit(sanitize="all")
    def fields(a, misses):
        i = cuda.threadIdx.x
        k = i // 4
        if i % 4 == 0:
            a[k]["d"] = 1.0
        elif i % 4 == 1:
            a[k]["n"] = 2
        elif i % 4 == 2:
            a[k]["h"] = 3
        else:
            a[k]["b"] = 4
        cuda.syncthreads()
        if i % 4 == 0:
            a[k]["d"] += a[k]["n"] + a[k]["b"]
        if i % 4 == 2:
            a[k]["h"] += 1
        if misses and i == 7:
            a[2]["h"] = 1

    a = cuda.to_device(np.zeros(N // 4, dtype))
    assert lines(lambda: fields[1, N](a, False)) == []
    assert [kind for kind, _ in lines(lambda: fields[1, N](a, True))] == ["race within a warp"]
    assert lines(lambda: fields[1, N](a, False)) == []


@pytest.mark.parametrize("word", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("part", [np.uint8, np.int16, np.int32])
def test_elements_of_two_sizes_at_one_place(word: type, part: type) -> None:
    @cuda.jit(sanitize="all")
    def both(words, parts, misses):
        i = cuda.threadIdx.x
        words[i] = i
        if not misses:
            cuda.syncthreads()
        k = i * 5
        if k < parts.shape[0]:
            parts[k] = 3
        cuda.syncthreads()
        words[i] += 1

    words = cuda.to_device(np.ones(256, word))
    parts = words.view(part)
    assert lines(lambda: both[1, 256](words, parts, False)) == []
    found = lines(lambda: both[1, 256](words, parts, True))
    assert [kind for kind, _ in found if kind.startswith("race")], found
    assert lines(lambda: both[1, 256](words, parts, False)) == []
