"""Too many or too deeply nested captured values are errors, not crashes."""

import gc

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda


def test_a_chain_of_a_thousand_functions():
    text = "from weft import cuda\n@cuda.jit(device=True)\ndef f0(x):\n    return x\n"
    for i in range(1, 1000):
        text += f"@cuda.jit(device=True)\ndef f{i}(x):\n    return f{i - 1}(x) + 1\n"
    for last in (150, 999):
        text += f"@cuda.jit\ndef kernel_{last}(out):\n    out[0] = f{last}(out[0])\n"
    loaded = module(text)
    out = np.zeros(1, np.int64)
    loaded.kernel_150[1, 1](out)
    assert out[0] == 150
    with pytest.raises(weft.CompileError, match="a call chain of more than 200 levels"):
        loaded.kernel_999[1, 1](out)


def test_garbage_is_collected_while_kernels_are_made():
    text = "from weft import cuda\n" + "".join(f"@cuda.jit\ndef k{i}(x):\n    x[0] = {i}\n" for i in range(50))
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        loaded = module(text)
    finally:
        gc.set_threshold(*thresholds)
    out = np.zeros(1, np.int64)
    loaded.k49[1, 1](out)
    assert out[0] == 49


NESTED = (1,)
for _ in range(10):
    NESTED = (NESTED,) * 8


@cuda.jit
def reads_nested(out):
    out[0] = NESTED[0][0][0][0][0][0][0][0][0][0][0]


def test_a_tuple_of_a_billion_values():
    with pytest.raises(weft.CompileError, match="tuple of more than 10000 values"):
        reads_nested[1, 1](np.zeros(1, np.int64))
