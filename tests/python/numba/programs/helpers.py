"""The helpers for tests that numba-cuda has."""

import sys
import unittest

from numba.cuda import config
from numba.cuda.testing import (
    CUDATestCase,
    skip_if_cudadevrt_missing,
    skip_on_cudasim,
    skip_unless_cc_60,
    skip_unless_cudasim,
    xfail_unless_cudasim,
)
from numba.cuda.tests import load_testsuite
from numba.cuda.tests.support import captured_stderr, captured_stdout, override_config, skip_unless_cffi


class Case(CUDATestCase):
    def test_warnings_are_off(self):
        assert (config.CUDA_LOW_OCCUPANCY_WARNINGS, config.CUDA_WARN_ON_IMPLICIT_COPY) == (0, 0)

    @skip_if_cudadevrt_missing
    @skip_unless_cc_60
    @skip_on_cudasim("it is no simulator")
    def test_runs(self):
        with captured_stdout() as out, captured_stderr() as err:
            print("a word")
            print("another", file=sys.stderr)
        assert (out.getvalue(), err.getvalue()) == ("a word\n", "another\n")

    @skip_unless_cudasim("it is no simulator")
    def test_is_skipped(self):
        raise AssertionError

    @xfail_unless_cudasim
    def test_fails(self):
        raise AssertionError

    def test_a_setting(self):
        with override_config("CUDA_WARN_ON_IMPLICIT_COPY", 1):
            assert config.CUDA_WARN_ON_IMPLICIT_COPY == 1
        assert config.CUDA_WARN_ON_IMPLICIT_COPY == 0


if __name__ == "__main__":
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(Case)
    found = unittest.TextTestRunner(stream=sys.stderr).run(tests)
    print(found.testsRun, len(found.skipped), len(found.expectedFailures), found.failures + found.errors)
    print(config.CUDA_LOW_OCCUPANCY_WARNINGS, callable(load_testsuite), callable(skip_unless_cffi))
