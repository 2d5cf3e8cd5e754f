"""The PTX of functions that call themselves."""

from __future__ import annotations

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
    """As `ptxas` 13.0, and with it the driver, ends the process over some that are the module's own."""
    text = calls_twice.inspect_asm(calls_twice.signatures[0], target="sm_90")
    functions = [line for line in text.splitlines() if ".func " in line and not line.endswith(";")]
    assert len(functions) >= 2
    assert all(line.startswith(".visible .func ") for line in functions), functions
