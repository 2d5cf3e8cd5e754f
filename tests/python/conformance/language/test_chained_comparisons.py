"""Chained comparisons: `a < b <= c` evaluates each operand at most once, and stops at the first false comparison."""

import itertools

import numpy as np
import pytest
import weft
from harness import assert_exact, launch, module
from weft import cuda

# `f(v, k, calls)` is `v`, and adds 1 to `calls[k]`.
CHAINS = [
    "0 <= a < b <= c",
    "0 <= a < b",
    "0 <= a < 3 <= b",
    "a < b < c < b",
    "a <= b == c != a",
    "a < b > c",
    "a == b is not None",
    "0 <= a < len(x) <= x[a]",
    "-1 < a < len(x) > b >= 0 != x[a] + x[b]",
    "f(a, 0, calls) < f(b, 1, calls)",
    "f(a, 0, calls) < b < f(c, 1, calls)",
    "f(a, 0, calls) <= f(b, 1, calls) <= f(c, 2, calls) <= f(a, 3, calls)",
    "a < b < f(c, 0, calls)",
    "a < f(b, 0, calls) < c",
    "a < 2 < f(b, 0, calls) != f(c, 1, calls)",
    "0 <= a < b and b < f(c, 0, calls) < 4",
    "not 0 <= a < b <= c or f(a, 0, calls) < b < c",
    "0 < a < (a := b)",
    "0 < a < (a := b) < a + c",
    "a < (b := f(c, 0, calls)) < b + 1",
    "a < b < (b := a)",
    "b > a < (a := c) != a",
    "(a := b) < a < c",
    "a < b < c in (1, 2)",
    "(a, b) < (b, c) <= (c, c)",
    "a < b < c if a < b else f(c, 0, calls) > b > a",
    "(0 <= a < b) == (b < c)",
    "0 <= a < b == True",
    "1 < 2 < a",
    "2 < 1 < f(a, 0, calls)",
    "a < 2 > 1 < b",
]
TEXT = """
def test(a, b, c, x, calls, out):
    out[0] = {chain}
    out[1] = a
    out[2] = b
    if {chain}:
        out[3] = 1
    while {chain}:
        out[4] += 1
        c -= 1
        if out[4] > 3:
            break
    n = 0
    for i in range(6):
        if 0 <= i + a < b <= c:
            n += 1
    out[5] = n
"""
KERNEL = """
from weft import cuda

@cuda.jit(device=True)
def f(v, k, calls):
    cuda.atomic.add(calls, k, 1)
    return v

{text}
test = cuda.jit(device=True)(test)

@cuda.jit
def kernel(a, b, c, x, calls, out):
    i = cuda.grid(1)
    if i < len(a):
        test(a[i], b[i], c[i], x, calls[i], out[i])
"""


def counted(v, k, calls):
    calls[k] += 1
    return v


CASES = [(chain, dtypes) for chain in CHAINS for dtypes in (["lll", "iBh"] if "x[" in chain else ["lll", "ldl", "fif"])]


@pytest.mark.parametrize(("chain", "dtypes"), CASES)
def test_chains(chain, dtypes):
    loads = "x[" in chain
    if ":=" in chain:
        # A variable has one type.
        dtypes = dtypes[0] * 3
    columns = zip(*itertools.product([0, 1, 2, 5, 9], repeat=3), strict=True)
    a, b, c = (np.array(column, dtype) for column, dtype in zip(columns, dtypes, strict=True))
    for first, column in enumerate((a, b, c)):
        far = 2**40 if loads else np.iinfo(np.int64).min + 9
        special = {"l": far, "i": -7, "h": -7, "b": -7, "B": 255}
        column[first::7] = special.get(column.dtype.char, np.nan)
    x = np.array([3, 1, 4, 6, 8, 7])
    plain, text = {"f": counted}, TEXT.format(chain=chain)
    exec(text, plain)
    calls, out = np.zeros((len(a), 4), np.int64), np.zeros((len(a), 6))
    for i in range(len(a)):
        # A list raises an error where a kernel would read other memory.
        plain["test"](a[i].item(), b[i].item(), c[i].item(), x.tolist(), calls[i], out[i])
    kernel = module(KERNEL.format(text=text)).kernel
    *_, found_calls, found = launch(kernel, 2, 64, a, b, c, x, np.zeros_like(calls), np.zeros_like(out))
    assert_exact(found_calls, calls)
    assert_exact(found, out)


@cuda.jit
def unsigned_links(a, b, out):
    i = cuda.grid(1)
    if i < len(a):
        out[i, 0] = 0 <= a[i] < b[i] <= 2**63
        out[i, 1] = -1 < b[i] <= a[i] < 2**64 - 1
        u, v = a[i], b[i]
        out[i, 2] = u < v < u
        out[i, 3] = v >= u >= 0 > -1


def test_links_of_int64_and_uint64():
    values = [0, 1, 2**31, 2**63 - 1]
    a, b = zip(*itertools.product([*values, -1, -(2**63)], [*values, 2**63, 2**64 - 1]), strict=True)
    a, b = np.array(a, np.int64), np.array(b, np.uint64)
    got = launch(unsigned_links, 2, 32, a, b, np.zeros((len(a), 4), np.bool_))[2]
    pairs = [(int(u), int(v)) for u, v in zip(a, b, strict=True)]
    expected = [[0 <= u < v <= 2**63, -1 < v <= u < 2**64 - 1, False, v >= u >= 0] for u, v in pairs]
    assert_exact(got, np.array(expected))


@pytest.mark.parametrize("chain", ["z < a < b", "a < z < b", "a < b < z"])
def test_complex_numbers_have_no_order(chain):
    kernel = module(f"""
from weft import cuda

@cuda.jit
def kernel(z, a, b, out):
    out[0] = {chain}
""").kernel
    with pytest.raises(weft.CompileError, match="complex numbers have no order"):
        kernel[1, 1](1j, 1.0, 2.0, np.zeros(1))


@cuda.jit
def equal_complex(z, a, b, out):
    out[0] = z == a == b
    out[1] = z != a != b
    out[2] = 0 <= a.real < 2 == b.real


def test_equality_of_complex_numbers():
    for z, a, b in itertools.product([1, 1j, 2 + 0j], repeat=3):
        got = launch(equal_complex, 1, 1, complex(z), complex(a), complex(b), np.zeros(3, np.bool_))[3]
        assert got.tolist() == [z == a == b, z != a != b, 0 <= complex(a).real < 2 == complex(b).real]
