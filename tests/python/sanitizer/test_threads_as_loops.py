"""Kernels in which all threads reach each barrier converged: checks at barriers, and atomic operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import weft.errors
from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.cpu

TILE = 16
N = 256


def found(launch: Callable[[], None]) -> list[str]:
    """The kinds of the findings of a launch."""
    try:
        launch()
        cuda.synchronize()
    except weft.errors.SanitizerError as error:
        return sorted({finding.kind for finding in error.findings})
    return []


def is_race(kinds: list[str]) -> bool:
    return bool(kinds) and all(kind.startswith("race within") for kind in kinds)


@cuda.jit(sanitize="all")
def product(a, b, out, first, last):
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[row, start + tx]
        tile_b[ty, tx] = b[start + ty, column]
        if first:
            cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        if last:
            cuda.syncthreads()
    out[row, column] = total


def test_tiles_are_settled_between_barriers() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.random((48, 48), np.float32) for _ in range(2))
    given = cuda.to_device(a), cuda.to_device(b)
    out = cuda.to_device(np.zeros_like(a))
    for _ in range(2):
        assert found(lambda: product[(3, 3), (TILE, TILE)](*given, out, True, True)) == []
        np.testing.assert_allclose(out.copy_to_host(), a @ b, rtol=1e-4)
        assert is_race(found(lambda: product[(3, 3), (TILE, TILE)](*given, out, False, True)))
        assert is_race(found(lambda: product[(3, 3), (TILE, TILE)](*given, out, True, False)))
    unwritten = cuda.device_array((48, 48), np.float32)
    assert found(lambda: product[(3, 3), (TILE, TILE)](unwritten, given[1], out, True, True)) == ["uninitialized"]


def test_a_tile_that_is_partly_written() -> None:
    @cuda.jit(sanitize="all")
    def partly(out, n):
        s = cuda.shared.array(N, np.float32)
        i = cuda.threadIdx.x
        if i < n:
            s[i] = i
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(i, N):
            total += s[k]
        out[cuda.grid(1)] = total

    out = cuda.to_device(np.zeros(3 * N, np.float32))
    assert found(lambda: partly[1, N](out, N)) == []
    np.testing.assert_array_equal(out.copy_to_host()[:N], np.arange(N)[::-1].cumsum()[::-1])
    assert found(lambda: partly[1, N](out, N - 1)) == ["uninitialized"]
    # Each block's tile is uninitialized at first.
    assert found(lambda: partly[3, N](out, N - 1)) == ["uninitialized"]


def test_a_settled_read_beyond_the_end() -> None:
    @cuda.jit(sanitize="all")
    def beyond(a, out, by):
        s = cuda.shared.array(N, np.float32)
        i = cuda.threadIdx.x
        s[i] = a[i]
        cuda.syncthreads()
        out[i] = s[i + by] + a[i + by]

    a = cuda.to_device(np.ones(N, np.float32))
    out = cuda.to_device(np.zeros(N, np.float32))
    assert found(lambda: beyond[1, N](a, out, 0)) == []
    for by in (1, -1, 1 << 40, -(1 << 40)):
        kinds = found(lambda by=by: beyond[1, N](a, out, by))
        assert kinds == ([] if by == -1 else ["out of bounds"]), by


def test_a_row_that_is_out_of_bounds() -> None:
    @cuda.jit(sanitize="all")
    def rows(a, out, by):
        s = cuda.shared.array((N, 2), np.float32)
        i = cuda.threadIdx.x
        s[i, 0] = s[i, 1] = a[i][1]
        cuda.syncthreads()
        row = s[i + by]
        given = a[i + by]
        out[i] = row[1] + given[0]

    a = cuda.to_device(np.ones((N, 2), np.float32))
    out = cuda.to_device(np.zeros(N, np.float32))
    assert found(lambda: rows[1, N](a, out, 0)) == []
    assert found(lambda: rows[1, N](a, out, 1)) == ["out of bounds"]


@pytest.mark.parametrize("writes", [True, False])
def test_who_writes_on_another_way_to_the_same_barrier(writes: bool) -> None:
    @cuda.jit(sanitize="all")
    def either(out, writes):
        s = cuda.shared.array(N, np.float32)
        i = cuda.threadIdx.x
        s[i] = i
        cuda.syncthreads()
        if writes:
            s[(i + 1) % N] = 1
            for _ in range(2):
                out[i] = i
        else:
            cuda.syncthreads()
        out[i] = s[i]

    kinds = found(lambda: either[1, N](cuda.to_device(np.zeros(N, np.float32)), writes))
    assert is_race(kinds) if writes else kinds == []


@cuda.jit(sanitize="all")
def counted(data, bins, clears, waits, looks):
    counts = cuda.shared.array(32, np.int32)
    i = cuda.threadIdx.x
    if clears and i < 32:
        counts[i] = 0
    if waits:
        cuda.syncthreads()
    cuda.atomic.add(counts, data[i] % 32, 1)
    cuda.atomic.add(counts, data[i] % 32, 0)
    if looks and i == 40:
        bins[0] = counts[3]
    cuda.syncthreads()
    if i < 32:
        cuda.atomic.add(bins, i, counts[i])


@pytest.mark.parametrize("blocks", [1, 3])
def test_atomic_steps(blocks: int) -> None:
    data = np.arange(N, dtype=np.int32) * 7
    given, bins = cuda.to_device(data), cuda.to_device(np.zeros(32, np.int32))
    assert found(lambda: counted[blocks, N](given, bins, True, True, False)) == []
    np.testing.assert_array_equal(bins.copy_to_host(), blocks * np.bincount(data % 32, minlength=32))
    assert is_race(found(lambda: counted[blocks, N](given, bins, True, False, False)))
    assert "uninitialized" in found(lambda: counted[blocks, N](given, bins, False, True, False))


def test_a_plain_read_between_atomic_steps_and_a_barrier() -> None:
    given, bins = cuda.to_device(np.arange(N, dtype=np.int32)), cuda.to_device(np.zeros(32, np.int32))
    assert is_race(found(lambda: counted[1, N](given, bins, True, True, True)))


@pytest.mark.parametrize("reader", [0, 1, 33, 200])
def test_a_plain_access_beside_atomic_steps_of_all_warps(reader: int) -> None:
    @cuda.jit(sanitize="all")
    def beside(x, out, reader, before, writes):
        i = cuda.threadIdx.x
        if before and i == reader:
            if writes:
                x[0] = 1
            else:
                out[0] = x[0]
        cuda.atomic.add(x, 0, 1)
        if not before and i == reader:
            if writes:
                x[0] = 1
            else:
                out[0] = x[0]

    x, out = (cuda.to_device(np.zeros(1, np.int32)) for _ in range(2))
    assert found(lambda: beside[1, N](x, out, N, True, True)) == []
    assert found(lambda: beside[2, N](x, out, N, True, True)) == []
    for when in ((True, True), (True, False), (False, True), (False, False)):
        assert is_race(found(lambda when=when: beside[1, N](x, out, reader, *when))), when
        assert found(lambda when=when: beside[3, N](x, out, reader, *when)) != [], when
    assert found(lambda: beside[1, 1](x, out, 0, False, True)) == []


def test_steps_of_two_scopes() -> None:
    @cuda.jit(sanitize="all")
    def steps(x):
        cuda.atomic.add(x, 0, 1)

    x = cuda.to_device(np.zeros(1, np.float32))
    assert found(lambda: steps[64, 64](x)) == []
    assert x.copy_to_host()[0] == 64 * 64
