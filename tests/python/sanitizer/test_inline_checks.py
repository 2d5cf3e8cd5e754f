"""Inline checks of sanitized code: read-only arrays, memory that was written before, and pages that change state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import weft.errors
from host_memory import has_driver
from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.cpu

N = 256


@cuda.jit(sanitize="all")
def copied(a, b):
    i = cuda.grid(1)
    if i < b.shape[0]:
        b[i] = a[i]


@cuda.jit(sanitize="all")
def from_neighbors(a, b):
    i = cuda.grid(1)
    if i < b.shape[0]:
        b[i] = a[(i + 1) % a.shape[0]]


@cuda.jit(sanitize="all")
def beyond(a, b):
    i = cuda.grid(1)
    if i < b.shape[0]:
        b[i] = a[i + 1]


def kinds(launch: Callable[[], None]) -> list[str]:
    """The findings of a launch."""
    try:
        launch()
        cuda.synchronize()
    except weft.errors.SanitizerError as error:
        return sorted({finding.kind for finding in error.findings})
    return []


def ones(n: int = N) -> cuda.DeviceNDArray:
    return cuda.to_device(np.ones(n, np.float32))


@pytest.mark.parametrize("blocks", [1, 4])
def test_an_array_that_is_only_read_by_one_name_is_written_by_another(blocks: int) -> None:
    a, b = ones(), ones()
    threads = N // blocks
    assert kinds(lambda: from_neighbors[blocks, threads](a, b)) == []
    found = kinds(lambda: from_neighbors[blocks, threads](a, a))
    assert [kind for kind in found if kind.startswith("race")], found
    assert kinds(lambda: copied[blocks, threads](a, a)) == []


def test_views_that_share_memory() -> None:
    both = ones(N + 1)
    assert kinds(lambda: copied[1, N](both[:N], both[:N])) == []
    found = kinds(lambda: copied[1, N](both[1:], both[:N]))
    assert [kind for kind in found if kind.startswith("race")], found
    # The views do not overlap.
    two = ones(2 * N)
    assert kinds(lambda: from_neighbors[1, N](two[:N], two[N:])) == []
    assert kinds(lambda: copied[1, N](two[::2], two[1::2])) == []
    assert kinds(lambda: from_neighbors[1, N](two[::2], two[1::2])) == []
    backwards = kinds(lambda: copied[1, N](two[:N][::-1], two[:N]))
    assert [kind for kind in backwards if kind.startswith("race")], backwards


def test_an_array_that_is_only_read_and_partly_written() -> None:
    @cuda.jit(sanitize="all")
    def used(a, b):
        i = cuda.grid(1)
        if i < b.shape[0]:
            b[i] = a[i] + 1

    a = cuda.device_array(N, np.float32)
    assert kinds(lambda: used[1, N](a, ones())) == ["uninitialized"]
    a[: N // 2].copy_to_device(np.ones(N // 2, np.float32))
    assert kinds(lambda: used[1, N // 2](a, ones(N // 2))) == []
    assert kinds(lambda: used[1, N](a, ones())) == ["uninitialized"]
    a.copy_to_device(np.ones(N, np.float32))
    assert kinds(lambda: used[1, N](a, ones())) == []


def test_an_array_that_is_only_read_has_an_end() -> None:
    a = ones()
    assert kinds(lambda: beyond[1, N - 1](a, ones(N - 1))) == []
    assert kinds(lambda: beyond[1, N](a, ones())) == ["out of bounds"]


@pytest.mark.skipif(has_driver(), reason="the arrays are in CPU memory, beside a GPU")
def test_freed_memory_that_is_only_read() -> None:
    a, b = ones(), ones()
    view = cuda.as_cuda_array(type("View", (), {"__cuda_array_interface__": a.__cuda_array_interface__})())
    assert kinds(lambda: copied[1, N](view, b)) == []
    del a
    assert kinds(lambda: copied[1, N](view, b)) == ["use after free"]


def test_what_is_written_for_the_first_time_is_written() -> None:
    @cuda.jit(sanitize="all")
    def there_and_back(b):
        i = cuda.threadIdx.x
        b[i] = i
        cuda.syncthreads()
        b[i] = b[b.shape[0] - 1 - i] + b[i]

    @cuda.jit(sanitize="all")
    def used(b, out):
        i = cuda.threadIdx.x
        out[i] = b[i] + 1

    b = cuda.device_array(N, np.float32)
    assert [kind for kind in kinds(lambda: there_and_back[1, N](b)) if kind == "uninitialized"] == []
    b = cuda.device_array(N, np.float32)
    assert kinds(lambda: copied[1, N](ones(), b)) == []
    assert kinds(lambda: used[1, N](b, ones())) == []


@pytest.mark.parametrize("shared", [True, False])
def test_unwritten_bytes_that_were_copied_are_used_later(shared: bool) -> None:
    @cuda.jit(sanitize="all")
    def through_shared(a, out, again):
        s = cuda.shared.array(N, np.float32)
        i = cuda.threadIdx.x
        s[i] = 0
        cuda.syncthreads()
        out[i] = s[i] + 1
        s[i] = a[i]
        cuda.syncthreads()
        again[i] = s[N - 1 - i] + 1

    @cuda.jit(sanitize="all")
    def through_global(a, out, again):
        i = cuda.threadIdx.x
        out[i] = 1
        cuda.syncthreads()
        out[i] = a[i]
        cuda.syncthreads()
        again[i] = out[N - 1 - i] + 1

    kernel = through_shared if shared else through_global
    assert kinds(lambda: kernel[1, N](ones(), ones(), ones())) == []
    assert kinds(lambda: kernel[1, N](cuda.device_array(N, np.float32), ones(), ones())) == ["uninitialized"]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_elements_of_each_size_that_all_threads_read(dtype: type) -> None:
    @cuda.jit(sanitize="all")
    def sums(out, misses):
        s = cuda.shared.array(N, dtype)
        i = cuda.threadIdx.x
        s[i] = i
        if not misses:
            cuda.syncthreads()
        total = 0
        for k in range(N):
            total += s[k]
        cuda.syncthreads()
        s[i] = total
        cuda.syncthreads()
        out[cuda.grid(1)] = s[N - 1 - i]

    out = cuda.to_device(np.zeros(3 * N, dtype))
    for _ in range(2):
        assert kinds(lambda: sums[3, N](out, False)) == []
        found = kinds(lambda: sums[3, N](out, True))
        assert found, found
        assert all(kind.startswith("race within") for kind in found), found


def test_a_write_behind_reads_of_all_warps_is_a_race() -> None:
    @cuda.jit(sanitize="all")
    def late(a, out, last):
        i = cuda.threadIdx.x
        out[i] = a[0] + a[1]
        if i == last:
            a[1] = 7

    assert kinds(lambda: late[1, N](ones(), ones(), N - 1)) == ["race within a block"]
    assert kinds(lambda: late[1, N](ones(), ones(), N)) == []
