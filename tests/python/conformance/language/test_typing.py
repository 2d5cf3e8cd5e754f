"""Types that need several iterations of inference over a function, and variables without a value on some path."""

import numpy as np
import pytest
from harness import assert_same, launch, module, run
from weft import cuda
from weft.errors import CompileError

CHAIN = 14


def test_chain_of_variables_carries_its_type_to_the_end():
    moves = "".join(f"        a{i} = a{i + 1}\n" for i in range(CHAIN - 1))
    starts = "".join(f"    a{i} = 0\n" for i in range(CHAIN))
    stores = "".join(f"    r[{i}] = a{i}\n" for i in range(CHAIN))
    kernel = module(
        "from weft import cuda\n@cuda.jit\ndef kernel(r):\n"
        f"{starts}    n = 0\n    while n < 30:\n{moves}        a{CHAIN - 1} = 0.5\n        n += 1\n{stores}"
    ).kernel
    (got,) = run(kernel, 1, 1, np.zeros(CHAIN))
    assert (got == 0.5).all()


def test_long_chain_through_nested_loops():
    count = 60
    moves = "".join(f"            a{i} = a{i + 1}\n" for i in range(count - 1))
    starts = "".join(f"    a{i} = 0\n" for i in range(count))
    kernel = module(
        "from weft import cuda\n@cuda.jit\ndef kernel(r):\n"
        f"{starts}    for j in range(9):\n        for i in range(9):\n{moves}            a{count - 1} = 0.5 + j\n"
        "    r[0] = a0\n"
    ).kernel
    run(kernel, 1, 1, np.zeros(1))


def test_shared_array_of_a_function_in_a_loop_counts_once():
    source = """
    import numpy as np
    from weft import cuda

    @cuda.jit(device=True)
    def f(acc, x):
        buffer = cuda.shared.array(4096, np.float64)
        buffer[0] = x
        return acc + buffer[0]

    @cuda.jit
    def kernel(r, x, n):
        acc = 0
        for i in range(n):
            acc = f(acc, x[i])
        r[0] = acc
    """
    kernel = module(source).kernel
    got, *_ = launch(kernel, 1, 1, np.zeros(1), np.arange(5.0), 5)
    assert got[0] == 10.0


@cuda.jit
def first_turns_index(r, n):
    i = 5
    t = (10, 20)
    s = 0
    while i > 0:
        i -= 1
        if i < 2:
            s = s + t[i]
    r[0] = s + n


def test_an_index_that_is_out_of_range_only_if_the_variable_never_changed():
    run(first_turns_index, 1, 1, np.zeros(1, np.int64), 1)


UNDEFINED = {
    "a float": ("        p = v\n", "    r[0] = p\n", [0.0]),
    "a literal": ("        p = 3\n", "    r[0] = p\n", [0.0]),
    "a bool": ("        p = True\n", "    r[0] = 2.0 if p else 1.0\n", [1.0]),
    "a tuple": ("        p = (4, v)\n", "    r[0] = p[0]\n    r[1] = p[1]\n", [0.0, 0.0]),
    "a complex number": ("        p = 1j * v\n", "    r[0] = p.real\n    r[1] = p.imag\n", [0.0, 0.0]),
    "an array": ("        p = x\n", "    r[0] = len(p)\n    r[1] = p.size\n", [0.0, 0.0]),
    "a view": ("        p = x[1::2]\n", "    r[0] = len(p)\n    for e in p:\n        r[1] = e\n", [0.0, -7.0]),
    "a wider type later": ("        p = 1\n", "    if c > 1:\n        p = v\n    r[0] = p\n", [0.0]),
    "two layouts": ("        p = x\n", "    if c > 1:\n        p = x[::2]\n    r[0] = len(p)\n", [0.0]),
    "another space": (
        "        p = cuda.local.array(4, np.float64)\n",
        "    if c > 1:\n        p = x\n    r[0] = len(p)\n",
        [0.0],
    ),
    "in a loop": (
        "        p = v\n",
        "    for i in range(2):\n        if i == c + 1:\n            q = p + 1.0\n    r[0] = q\n",
        [1.0],
    ),
    "a loop variable": ("        p = v\n", "    for q in range(c):\n        pass\n    r[0] = q\n", [0.0]),
    "a counter of no iterations": (
        "        p = v\n",
        "    for q in range(c):\n        w = q + 5\n    r[0] = w\n",
        [0.0],
    ),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_variable_without_a_value_reads_zero(name):
    assigned, used, expected = UNDEFINED[name]
    kernel = module(
        "import numpy as np\nfrom weft import cuda\n@cuda.jit\ndef kernel(r, x, v, c):\n"
        f"    if c > 0:\n{assigned}{used}"
    ).kernel
    got, *_ = launch(kernel, 1, 1, np.full(4, -7.0), np.arange(8.0), 2.5, 0)
    assert_same(got[: len(expected)], np.array(expected))


def test_a_pointer_without_a_value_is_null():
    kernel = module("""
    from weft import cuda
    @cuda.jit("void(float64[::1], float64[::1], int64)")
    def kernel(r, x, c):
        if c > 0:
            p = x
        if c > 1:
            r[0] = p[3]
    """).kernel
    assert "undef" not in kernel.inspect_llvm(kernel.signatures[0])
    assert "poison" not in kernel.inspect_llvm(kernel.signatures[0])
    got, *_ = launch(kernel, 1, 1, np.zeros(1), np.arange(8.0), 2)
    assert got[0] == 3.0


NEVER = {
    "carried": "    for i in range(n):\n        p = p + 1\n    r[0] = 1\n",
    "a growing tuple": "    for i in range(n):\n        t = (t, 1)\n    r[0] = 1\n",
    "through a condition": "    while n > 3:\n        if p > 2:\n            p = p - 1\n    r[0] = 1\n",
    "a loop over it": "    for i in range(n):\n        for e in p:\n            p = e\n    r[0] = 1\n",
}


@pytest.mark.parametrize("name", NEVER)
def test_a_variable_that_only_depends_on_itself_is_an_error(name):
    kernel = module(f"from weft import cuda\n@cuda.jit\ndef kernel(r, n):\n{NEVER[name]}").kernel
    with pytest.raises(CompileError, match="E0204"):
        launch(kernel, 1, 1, np.zeros(1), 3)


KNOWN_LATER = """
from weft import cuda
@cuda.jit
def kernel(r, x, n):
    for i in range(n):
        if i > 0 and p > 3:
            r[i] = p
        p = x[i]
    for j in range(n):
        q = x[j] if j == 0 else (q + 1 if q > 2 else q)
        if not (j > 0 and done):
            done = q > 3
        r[n + j] = q
"""


def test_conditions_on_what_is_assigned_later_in_the_loop():
    kernel = module(KNOWN_LATER).kernel
    run(kernel, 1, 1, np.zeros(12), np.array([3.0, 1.0, 8.0, 2.0, 5.0]), 5)


@cuda.jit
def later_loops_see_final_types(r, x, n):
    acc = 0
    for i in range(n):
        acc = acc + x[i]
    best = acc
    k = np.uint8(1)
    for i in range(n):
        y = k + np.uint8(1)
        k = np.int16(-5)
        if i > 0:
            r[i] = y // 2
    while best > 1:
        best = best / 2
    r[0] = best


def test_a_loop_after_a_loop():
    run(later_loops_see_final_types, 1, 1, np.zeros(6), np.arange(6, dtype=np.float32), 5)


INTEGERS = """
from weft import cuda
@cuda.jit
def kernel(r, x, n):
    for i in range(n):
        if i == 0:
            a = x[0]
        else:
            a = a + (-3)
    b = a - x[1]
    for j in range(2):
        if j == 0:
            c = b
            d = b - x[2]
        else:
            c = c ^ d
    for k in range(2):
        y = d - x[0]
        d = d + k
    r[0] = ~b
    r[1] = ~c
    r[2] = ~y
"""


def test_code_behind_a_loop_sees_final_types():
    """If inference made `a` a uint8 temporarily, `b` would be a uint64, and float64 after unification with an int64."""
    kernel = module(INTEGERS).kernel
    run(kernel, 1, 1, np.zeros(3, np.int64), np.array([200, 7, 9], np.uint8), 5)
