"""A copy of uninitialized memory is not reported until the host reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import weft.errors
from host_memory import has_driver
from weft import cuda

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(has_driver(), reason="the arrays are in CPU memory, beside a GPU")]


@cuda.jit(sanitize="all")
def from_shared(out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    if t < 60:
        s[t] = t
    cuda.syncthreads()
    out[t] = s[t]


@cuda.jit(sanitize="all")
def from_local(out):
    v = cuda.local.array(4, np.int32)
    v[0] = 1
    out[cuda.threadIdx.x] = v[cuda.threadIdx.x % 4]


@cuda.jit(sanitize="all")
def copy(a, out):
    t = cuda.threadIdx.x
    out[t] = a[t]


@cuda.jit(sanitize="all")
def through_shared(a, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    cuda.syncthreads()
    out[t] = s[63 - t]


def findings(of: Any) -> list[Any]:
    with pytest.raises(weft.errors.SanitizerError) as caught:
        of()
    return list(caught.value.findings)


@pytest.mark.parametrize(("kernel", "array", "line", "count"), [(from_shared, "s", 6, 4), (from_local, "v", 3, 48)])
def test_a_copy_into_an_array_of_the_host_is_found(kernel: Any, array: str, line: int, count: int) -> None:
    (finding,) = findings(lambda: kernel[1, 64](np.zeros(64, np.float32 if array == "s" else np.int32)))
    assert (finding.tool, finding.kind, finding.count) == ("initcheck", "uninitialized", count)
    to, source = finding.accesses
    first = kernel.py_func.__code__.co_firstlineno
    assert (to.line, to.what, to.array) == (first + line + 1, "write", "out")
    assert (source.line, source.what, source.array) == (first + line + 1, "read", array)
    assert finding.message.startswith("the host reads `out[")
    assert f", a copy of `{array}[" in finding.message or f", a copy of an element of `{array}`" in finding.message
    assert finding.message.endswith(", which was never written")
    assert finding.help.startswith("write the element before it is copied")


def test_a_copy_into_pinned_memory_is_found() -> None:
    out = cuda.pinned_array(64, np.float32)
    (finding,) = findings(lambda: from_shared[1, 64](out))
    assert finding.count == 4


def test_device_memory_is_found_when_the_host_reads_it() -> None:
    out = cuda.device_array(64, np.float32)
    from_shared[1, 64](out)
    (finding,) = findings(out.copy_to_host)
    assert (finding.tool, finding.kernel, finding.count) == ("initcheck", "from_shared", 4)
    assert [access.array for access in finding.accesses] == ["out", "s"]
    # It is reported only once.
    out.copy_to_host()


def test_only_what_the_host_reads_is_found() -> None:
    out = cuda.device_array(64, np.float32)
    from_shared[1, 64](out)
    out[:60].copy_to_host()
    (finding,) = findings(out[56:62].copy_to_host)
    assert finding.count == 2


def test_what_is_written_before_the_host_reads_it_is_not_found() -> None:
    out = cuda.device_array(64, np.float32)
    from_shared[1, 64](out)
    copy[1, 64](np.ones(64, np.float32), out)
    assert out.copy_to_host().sum() == 64
    from_shared[1, 64](out)
    out[:] = 2
    assert out.copy_to_host().sum() == 128


def test_copies_of_copies_are_found() -> None:
    start = cuda.device_array(64, np.float32)
    start[:62].copy_to_device(np.ones(62, np.float32))
    middle, end, other = (
        cuda.device_array(64, np.float32),
        cuda.device_array(64, np.float32),
        cuda.device_array(64, np.float32),
    )
    copy[1, 64](start, middle)
    through_shared[1, 64](middle, end)
    other.copy_to_device(end)
    (finding,) = findings(other.copy_to_host)
    assert (finding.kernel, finding.count) == ("through_shared", 2)
    (finding,) = findings(lambda: copy[1, 64](middle, np.zeros(64, np.float32)))
    assert finding.count == 2


def test_what_a_race_explains_is_not_found_again() -> None:
    @cuda.jit(sanitize="all")
    def racy(a, out):
        s = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        s[t] = a[t]
        out[t] = s[63 - t]

    out = cuda.device_array(64, np.float32)
    assert {finding.tool for finding in findings(lambda: racy[1, 64](np.ones(64, np.float32), out))} == {"racecheck"}
    out.copy_to_host()


def test_kernels_that_are_not_checked_may_write_what_they_are_given() -> None:
    @cuda.jit
    def ones(x):
        x[cuda.threadIdx.x] = 1

    x = cuda.device_array(64, np.float32)
    ones[1, 64](x)
    out = np.zeros(64, np.float32)
    copy[1, 64](x, out)
    assert out.sum() == 64


def test_memory_that_no_kernel_has_stored_to_may_be_read() -> None:
    """Programs may copy a whole array and use only a part of it."""
    out = cuda.device_array(128, np.float32)
    copy[1, 64](np.ones(64, np.float32), out)
    assert out.copy_to_host()[:64].sum() == 64
    copy[1, 32](cuda.device_array(64, np.float32), cuda.device_array(64, np.float32))
