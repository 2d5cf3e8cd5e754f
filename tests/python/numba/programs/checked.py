"""Tests of a program, for `-m pytest`."""

import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError
from numba.cuda.testing import CUDATestCase, skip_on_cudasim


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@pytest.mark.parametrize("n", [1, 33])
def test_add(n):
    out = cuda.device_array(n)
    add[2, 32](cuda.to_device(np.ones(n)), cuda.to_device(np.arange(n)), out)
    np.testing.assert_array_equal(out.copy_to_host(), 1 + np.arange(n))
    assert type(add).__module__.startswith("weft")


def test_wrong():
    with pytest.raises(TypingError):
        add[1, 1](np.ones(1), "text", np.ones(1))


class TestClass(CUDATestCase):
    @skip_on_cudasim("a simulator has none")
    def test_none(self):
        assert cuda.is_available() in (True, False)
