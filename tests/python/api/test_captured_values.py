"""Captured values of a kernel: globals, closures, attributes, device functions; when they are read."""

from __future__ import annotations

import types as pytypes

import numpy as np
import pytest
import weft
from weft import cuda

SCALE = 3


@cuda.jit
def module_kernel(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = SCALE * i


def run(kernel, *args, threads=32):
    kernel[1, threads](*args)
    cuda.synchronize()


def test_a_compiled_kernel_keeps_its_globals() -> None:
    global SCALE
    kernel = cuda.jit(module_kernel.py_func)
    out = np.zeros(3, np.int64)
    run(kernel, out)
    try:
        SCALE = 10
        run(kernel, out)
        assert out.tolist() == [0, 3, 6]
        run(cuda.jit(module_kernel.py_func), out)
        assert out.tolist() == [0, 10, 20]
    finally:
        SCALE = 3


def test_a_failed_compilation_freezes_nothing() -> None:
    def plain():
        return 4

    helper = plain

    @cuda.jit
    def kernel(out):
        out[0] = LATE + helper()  # noqa: F821

    out = np.zeros(1)
    try:
        with pytest.raises(weft.CompileError, match="LATE"):
            run(kernel, out)
        globals()["LATE"] = 9
        with pytest.raises(weft.CompileError, match="function"):
            run(kernel, out)
        helper = cuda.jit(helper)
        run(kernel, out)
        assert out[0] == 13
    finally:
        globals().pop("LATE", None)


def test_names_of_device_functions_are_read_with_those_of_the_kernel() -> None:
    value = 1

    @cuda.jit(device=True)
    def inner():
        return value

    @cuda.jit(device=True)
    def outer():
        return inner() * 10 + value

    @cuda.jit
    def kernel(out):
        out[0] = outer() + inner() * 100

    first, second = np.zeros(1), np.zeros(1, np.float32)
    run(kernel, first)
    value = 2
    run(kernel, second)
    run(kernel, first)
    assert (first[0], second[0]) == (111, 222)
    # The strings belong to the compiled code, or describe the present if nothing was compiled.
    texts = [kernel.inspect_llvm(signature) for signature in ("void(float64[::1])", "void(float32[::1])")]
    assert "1.110000e+02" in texts[0]
    assert "2.220000e+02" in texts[1]
    value = 3
    assert kernel.inspect_llvm("void(float64[::1])") == texts[0]
    kernel.recompile()
    run(kernel, first)
    assert first[0] == 333


def test_many_kinds_of_captured_values() -> None:
    box = pytypes.SimpleNamespace(inner=pytypes.SimpleNamespace(factor=2), pair=(1, 2.5))
    module = pytypes.ModuleType("settings")
    module.OFFSET = np.int16(4)
    dtype = np.dtype(np.float64)
    alias = cuda
    grid = cuda.grid
    flag, big, z = True, 2**63, 1 + 2j

    @cuda.jit(device=True)
    def helper(x, step=box.pair[0]):
        return x + step

    @cuda.jit
    def kernel(out):
        i = grid(1) + alias.threadIdx.y
        one = cuda.local.array(1, dtype)
        one[0] = 0.5
        if i < out.size and flag:
            out[i] = helper(box.inner.factor * i) + box.pair[1] + module.OFFSET + one[0] + z.imag
            out[i] += helper(0, step=weft.int32(big > 5))

    out = np.zeros(2)
    run(kernel, out)
    assert out.tolist() == [1 + 2.5 + 4 + 0.5 + 2 + 1, 2 + 1 + 2.5 + 4 + 0.5 + 2 + 1]


def test_values_that_kernels_cannot_have_are_named() -> None:
    values = {"a": 1}

    @cuda.jit
    def kernel(out):
        out[0] = values["a"]

    with pytest.raises(weft.CompileError, match="dict"):
        run(kernel, np.zeros(1))

    def plain():
        return 1

    @cuda.jit
    def caller(out):
        out[0] = plain()

    with pytest.raises(weft.CompileError, match="function"):
        run(caller, np.zeros(1))


def test_a_closure_may_hold_the_function_itself() -> None:
    step = 2

    @cuda.jit(device=True)
    def down(n):
        return 1 + down(n - step) if n > 0 else 0

    @cuda.jit
    def kernel(out):
        out[0] = down(5)

    out = np.zeros(1)
    run(kernel, out)
    assert out[0] == 3


class Foreign:
    """Similar to the result of Numba's `njit`."""

    def __init__(self, py_func):
        self.py_func = py_func
        self.__name__ = py_func.__name__


def njit(function):
    """Replace Numba's decorator."""
    kind = type("CPUDispatcher", (Foreign,), {"__module__": "numba.core.registry"})
    return kind(function)


@njit
def foreign_square(x):
    return x * x


@njit
def foreign_sum(x, y=2):
    return foreign_square(x) + foreign_square(y)


@njit
def foreign_factorial(n):
    return n * foreign_factorial(n - 1) if n > 1 else 1


def test_functions_that_numba_jitted_are_taken_over() -> None:
    @cuda.jit
    def kernel(out):
        out[0] = foreign_sum(out[1])
        out[2] = foreign_square(out[1])

    out = np.array([0.0, 3, 0])
    run(kernel, out)
    assert out.tolist() == [13, 3, 9]


def test_a_call_back_is_captured_without_end() -> None:
    @cuda.jit
    def kernel(out):
        out[0] = foreign_factorial(5)

    out = np.zeros(1, np.int64)
    run(kernel, out)
    assert out[0] == 120


def test_functions_of_other_libraries_have_a_suggestion() -> None:
    helper = Foreign(foreign_square.py_func)

    @cuda.jit
    def kernel(out):
        out[0] = helper(out[1])

    with pytest.raises(weft.CompileError, match=r"write `cuda\.jit\(helper\.py_func\)`"):
        run(kernel, np.zeros(2))
