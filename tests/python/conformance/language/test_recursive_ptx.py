"""The PTX of recursive functions."""

from __future__ import annotations

import re

from weft import cuda


@cuda.jit(device=True, forceinline=False)
def twice(x):
    return x + down(x, 2)


@cuda.jit(device=True)
def down(x, n):
    return x if n <= 0 else down(x * 3, n - 1) - 1


@cuda.jit("void(int64[::1])", opt=False)
def calls_twice(x):
    x[0] = twice(x[0])


def test_every_function_beside_recursive_ones_is_visible():
    """Functions with internal linkage can crash `ptxas` 13.0, and with it the driver."""
    text = calls_twice.inspect_asm(calls_twice.signatures[0], target="sm_90")
    functions = [line for line in text.splitlines() if ".func " in line and not line.endswith(";")]
    assert len(functions) >= 2
    assert all(line.startswith(".visible .func ") for line in functions), functions


@cuda.jit(device=True)
def half(x, n):
    return x if n <= 0 else half(x, n - 1) / x


@cuda.jit("void(float64[::1])", opt=False)
def never_calls(x):
    i = cuda.grid(1)
    if (i & 1) < 0:  # ptxas infers that this is false
        x[i] = half(x[i], 3)


def test_a_table_names_the_functions_of_a_recursive_kernel():
    """Without the table, `ptxas` 13.0 crashes on an uncalled function with a division."""
    text = never_calls.inspect_asm(never_calls.signatures[0], target="sm_90")
    (table,) = [line for line in text.splitlines() if line.startswith(".global") and "kept" in line]
    names = re.findall(r"^\.visible \.func .*?([\w$]+)\($", text, re.MULTILINE)
    assert names
    assert all(name in table for name in names), text
