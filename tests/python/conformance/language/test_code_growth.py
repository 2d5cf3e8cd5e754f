"""Programs whose code could grow faster than their source: code size and results."""

from __future__ import annotations

import numpy as np
import pytest
from harness import like_python, module
from weft import CompileError

HEAD = "import numpy as np\nfrom weft import cuda\n"


def over_a_barrier(n: int) -> str:
    """Functions with a barrier, each of which calls the previous one twice."""
    text = HEAD + "@cuda.jit(device=True)\ndef f0(s, x):\n    cuda.syncthreads()\n    return s[x % 64]\n"
    for at in range(1, n):
        text += f"@cuda.jit(device=True)\ndef f{at}(s, x):\n    a = f{at - 1}(s, x)\n    b = f{at - 1}(s, x + 1)\n"
        text += "    return a * 3 + b & 1023\n"
    text += "@cuda.jit\ndef k(o):\n    s = cuda.shared.array(64, np.int64)\n    t = cuda.threadIdx.x\n    s[t] = t\n"
    return text + f"    o[t] = f{n - 1}(s, t)\n"


@pytest.mark.parametrize("n", [4, 13])
def test_functions_over_a_barrier(n):
    out = np.zeros(64, np.int64)
    module(over_a_barrier(n)).k[1, 64](out)
    expected = np.arange(64)
    for _ in range(1, n):
        expected = expected * 3 + np.roll(expected, -1) & 1023
    np.testing.assert_array_equal(out, expected)


def unlike_items(n: int) -> str:
    items = ", ".join(f"{i}" if i % 2 else f"{i}.5" for i in range(n))
    text = HEAD + f"items = ({items})\n@cuda.jit\ndef k(o):\n"
    return text + "    for at, item in enumerate(items):\n        if at % 100 == 7:\n            o[0] += item\n"


def test_a_loop_over_many_unlike_items():
    kernel = module(unlike_items(600)).k
    like_python(kernel, np.zeros(1))
    # Items are selected by a binary search of nested branches: the depth is about log2 of the number of items.
    ir = kernel.inspect_ir(kernel.signatures[0])
    deepest = max(len(line) - len(line.lstrip()) for line in ir.splitlines()) // 4
    assert deepest < 40, deepest
    # An item is read only in its own iteration.
    assert ir.count("\n") < 600 * 20


def test_unlike_items_have_a_bound():
    with pytest.raises(CompileError, match="iterates over 3000 items of different types"):
        module(unlike_items(3000)).k[1, 1](np.zeros(1))


def lambdas(n: int) -> str:
    """Inlined functions, each of which calls the previous one twice."""
    text = HEAD + "@cuda.jit\ndef k(o):\n    f0 = lambda x: x * 5 ^ x >> 3\n"
    for at in range(1, n):
        text += f"    f{at} = lambda x: f{at - 1}(x * 3 + {at}) ^ f{at - 1}(x * 7 - {at})\n"
    return text + f"    o[0] = f{n - 1}(o[0])\n"


def test_functions_in_place_of_their_calls():
    kernel = module(lambdas(14)).k
    like_python(kernel, np.array([3]))
    assert len(kernel.inspect_asm("void(int64[::1])", target="sm_80")) < 2_000_000
