"""`numba.cuda.testing`: what tests of programs take from it. weft is no simulator, on the CPU neither."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import unittest

from weft.numba import _support

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class CUDATestCase(unittest.TestCase):
    """A test of kernels: no warnings of performance, and afterwards the device has done what it was given."""

    def setUp(self) -> None:
        """Disable the warnings."""
        super().setUp()
        config = importlib.import_module("numba.cuda.config")
        for name in ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY"):
            self.addCleanup(setattr, config, name, getattr(config, name))
            setattr(config, name, 0)

    def tearDown(self) -> None:
        """Wait for the device."""
        from weft import cuda

        cuda.synchronize()
        super().tearDown()


class ForeignArray:
    """A device array as another library's: with nothing but ``__cuda_array_interface__``."""

    def __init__(self, arr: Any) -> None:
        self._arr = arr
        self.__cuda_array_interface__ = arr.__cuda_array_interface__


def skip_on_cudasim(reason: str) -> Callable[[Any], Any]:
    """Mark a test that a simulator cannot run: it runs."""
    return unittest.skipIf(False, reason)


def skip_unless_cudasim(reason: str) -> Callable[[Any], Any]:
    """Mark a test that only a simulator can run: it is skipped."""
    return unittest.skipIf(True, reason)


def xfail_unless_cudasim(fn: Any) -> Any:
    """Mark a test that only a simulator passes: it must fail."""
    return unittest.expectedFailure(fn)


def skip_unless_cuda_python(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs NVIDIA's Python bindings: it is skipped, for weft does not use them."""
    return unittest.skipIf(True, reason)


def skip_unless_conda_cudatoolkit(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs Conda's CUDA toolkit: it is skipped, for weft does not look for that."""
    return unittest.skipIf(True, reason)


def skip_if_external_memmgr(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs weft's own memory manager."""
    from weft import _weft

    return unittest.skipIf(_weft.memory_managers()[1] is not None, reason)


def skip_under_cuda_memcheck(reason: str) -> Callable[[Any], Any]:
    """Mark a test that cannot run under cuda-memcheck, which sets ``CUDA_MEMCHECK``."""
    return unittest.skipIf("CUDA_MEMCHECK" in os.environ, reason)


def skip_without_nvdisasm(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs nvdisasm."""
    return unittest.skipIf(shutil.which("nvdisasm") is None, reason)


def skip_with_nvdisasm(reason: str) -> Callable[[Any], Any]:
    """Mark a test that needs nvdisasm to be missing."""
    return unittest.skipIf(shutil.which("nvdisasm") is not None, reason)


def skip_on_arm(reason: str) -> Callable[[Any], Any]:
    """Mark a test that cannot run on an ARM processor."""
    return unittest.skipIf(platform.machine().lower().startswith(("arm", "aarch")), reason)


def skip_on_wsl2(reason: str) -> Callable[[Any], Any]:
    """Mark a test that cannot run on the Windows Subsystem for Linux."""
    return unittest.skipIf("wsl2" in platform.release().lower(), reason)


def skip_on_nvjitlink_13_1_sm_120(reason: str) -> Callable[[Any], Any]:
    """Mark a test that a fault of nvJitLink's makes fail: it runs, for weft compiles kernels without it."""
    return unittest.skipIf(False, reason)


def cudadevrt_missing() -> bool:
    """Whether kernels lack the device runtime: never, for weft's need none."""
    return False


def skip_if_cudadevrt_missing(fn: Any) -> Any:
    """Mark a test that needs the device runtime, as grid synchronization does in numba-cuda: it runs."""
    return unittest.skipIf(cudadevrt_missing(), "cudadevrt missing")(fn)


def cc_X_or_above(major: int, minor: int) -> bool:
    """Whether the device has this compute capability, or a later one."""
    from weft import cuda

    return bool(cuda.get_current_device().compute_capability >= (major, minor))


def _since(major: int, minor: int) -> Callable[[Any], Any]:
    def mark(fn: Any) -> Any:
        return unittest.skipUnless(cc_X_or_above(major, minor), f"requires cc >= {major}.{minor}")(fn)

    return mark


skip_unless_cc_50 = _since(5, 0)
skip_unless_cc_53 = _since(5, 3)
skip_unless_cc_60 = _since(6, 0)
skip_unless_cc_75 = _since(7, 5)
skip_unless_cc_90 = _since(9, 0)


skip_on_standalone_numba_cuda = unittest.skipUnless(_support.HAS_NUMBA, "requires base numba install")


__all__ = [
    "CUDATestCase",
    "ForeignArray",
    "cc_X_or_above",
    "cudadevrt_missing",
    "skip_if_cudadevrt_missing",
    "skip_if_external_memmgr",
    "skip_on_arm",
    "skip_on_cudasim",
    "skip_on_nvjitlink_13_1_sm_120",
    "skip_on_standalone_numba_cuda",
    "skip_on_wsl2",
    "skip_under_cuda_memcheck",
    "skip_unless_cc_50",
    "skip_unless_cc_53",
    "skip_unless_cc_60",
    "skip_unless_cc_75",
    "skip_unless_cc_90",
    "skip_unless_conda_cudatoolkit",
    "skip_unless_cuda_python",
    "skip_unless_cudasim",
    "skip_with_nvdisasm",
    "skip_without_nvdisasm",
    "unittest",
    "xfail_unless_cudasim",
]
