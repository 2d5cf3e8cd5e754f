"""`numba.cuda.testing`: what tests of programs take from it. weft is no simulator, on the CPU neither."""

from __future__ import annotations

import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class CUDATestCase(unittest.TestCase):
    """A test of kernels: afterwards the device has done what it was given."""

    def tearDown(self) -> None:
        """Wait for the device."""
        from weft import cuda

        cuda.synchronize()
        super().tearDown()


def skip_on_cudasim(reason: str) -> Callable[[Any], Any]:
    """Mark a test that a simulator cannot run: it runs."""
    return unittest.skipIf(False, reason)


def skip_unless_cudasim(reason: str) -> Callable[[Any], Any]:
    """Mark a test that only a simulator can run: it is skipped."""
    return unittest.skipIf(True, reason)


def skip_unless_cuda_python(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs NVIDIA's Python bindings: it is skipped, for weft does not use them."""
    return unittest.skipIf(True, reason)


def skip_if_external_memmgr(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs weft's own memory manager."""
    from weft import _weft

    return unittest.skipIf(_weft.memory_managers()[1] is not None, reason)


def cc_X_or_above(major: int, minor: int) -> bool:
    """Whether the device has this compute capability, or a later one."""
    from weft import cuda

    return bool(cuda.get_current_device().compute_capability >= (major, minor))


__all__ = [
    "CUDATestCase",
    "cc_X_or_above",
    "skip_if_external_memmgr",
    "skip_on_cudasim",
    "skip_unless_cuda_python",
    "skip_unless_cudasim",
]
