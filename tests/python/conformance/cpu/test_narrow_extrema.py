"""Minima and maxima of 8 and 16 bits that are compared with their operands."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest
from harness import module
from weft import cuda

SOURCE = """
from weft import cuda
import numpy as np

@cuda.jit{options}
def kernel(x, y, out, flags):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], {other}
        most = x.dtype.type({name}(a, b))
        out[i] = most
        flags[i, 0] = most == b
        flags[i, 1] = most == a
        flags[i, 2] = most != b
        flags[i, 3] = most != a
        flags[i, 4] = most > b
        flags[i, 5] = most < a
"""

COMPARED = [(operator.eq, 1), (operator.eq, 0), (operator.ne, 1), (operator.ne, 0), (operator.gt, 1), (operator.lt, 0)]


@pytest.mark.parametrize("options", ["", "(opt=False)"])
@pytest.mark.parametrize("other", ["y[i]", "1", "200", "-3"])
@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_comparisons_with_the_operands(dtype, name, other, options):
    """From sm_90, ptxas uses one instruction for both operations, with the predicate of the wrong register half."""
    if other != "y[i]" and not np.iinfo(dtype).min <= int(other) <= np.iinfo(dtype).max:
        pytest.skip("not a number of this type")
    text = "y[i]" if other == "y[i]" else f"x.dtype.type({other})"
    kernel = module(SOURCE.format(other=text, name=name, options=options)).kernel
    rng = np.random.default_rng(5)
    bounds = np.iinfo(dtype)
    x = np.concatenate([rng.integers(bounds.min, bounds.max + 1, 500), np.arange(100)]).astype(dtype)
    y = np.where(rng.random(600) < 0.3, x, rng.permutation(x)).astype(dtype)
    out, flags = cuda.to_device(np.zeros_like(x)), cuda.to_device(np.zeros((600, 6), np.int32))
    kernel[5, 128](cuda.to_device(x), cuda.to_device(y), out, flags)
    b = y if other == "y[i]" else np.full_like(x, int(other))
    expected = np.minimum(x, b) if name == "min" else np.maximum(x, b)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    np.testing.assert_array_equal(
        flags.copy_to_host(), np.stack([compare(expected, (x, b)[at]) for compare, at in COMPARED], axis=1)
    )
    spelled = np.dtype(dtype).name
    signature = f"void({spelled}[::1], {spelled}[::1], {spelled}[::1], int32[:, ::1])"
    assert not re.search(r"(min|max)\.[su]16", kernel.inspect_asm(signature, target="sm_90"))
