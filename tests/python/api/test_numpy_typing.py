"""`typing="numpy"` in whole functions: Python with NumPy scalars is the reference."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import weft
from weft import CompileError, cuda, types

THIRD = 1 / 3
SEVEN = np.int16(7)


def total(a):
    acc = 0
    for i in range(a.size):
        acc += a[i]
    return acc


def mean(a):
    acc = 0.0
    for x in a:
        acc += x
    return acc / a.size


def polynomial(a):
    result = 0.5
    for i in range(3):
        result = result * a[i] + i
    return result


def smoothed(a):
    return (a[0] + 2 * a[1] + a[2]) // 4


def clamped(a):
    return min(max(a[1] + 3, 0), 100)


def of_python_alone(a):
    n, half = 0, 0.5
    for i in range(len(a)):
        n += i * 2
        half = half * 3
    return n + half * a.ndim


def larger(a):
    n = 0
    for x in a:
        n += x > 2
    return n


def chosen(a):
    return 1 if a[0] > 100 else a[1]


def numbered(a):
    acc = 0
    for i, x in enumerate(a):
        acc += x * i
    return acc


def halved(a):
    n = 100
    while n > 3:
        n //= 2
    return a[0] * n


def unpacked(a):
    low, high = 0, 7
    return a[0] * high - low


def by_names(a):
    return a[2] * THIRD + SEVEN


def squared(a):
    return a[0] ** 2 + abs(a[1])


def of_truths(a):
    return (a[0] > 1) + (a[1] > 2)


def of_pythons_truths(a):
    n = len(a)
    return (n > 1) + (n > 2)


def of_an_extent(a):
    return a[1] / a.shape[0]


def in_branches(a):
    x = 0
    if a[0] > 0:
        x = a[1]
    elif a[0] > 1:
        x = 2
    return x * 2


FUNCTIONS = [
    total,
    mean,
    polynomial,
    smoothed,
    clamped,
    of_python_alone,
    larger,
    chosen,
    numbered,
    halved,
    unpacked,
    by_names,
    squared,
    of_truths,
    of_pythons_truths,
    of_an_extent,
    in_branches,
]
DTYPES = ["uint8", "int8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"]


def run(function, a, typing="numpy"):
    """The results of a device function for an array, with their own type."""
    f = cuda.jit(device=True, typing=typing)(function)
    dtype = np.dtype(str(f.result_type((weft.typeof(a),))).replace("boolean", "bool"))

    @cuda.jit(opt=False)
    def kernel(a, out):
        out[0] = f(a)

    out = np.zeros(1, dtype)
    kernel[1, 1](a, out)
    return out[0]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_give_what_python_gives(function):
    for dtype in DTYPES:
        a = np.array([3, 5, 100, 4, 90], dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = np.asarray(function(a))
        found = run(function, a)
        assert found.dtype == expected.dtype, dtype
        np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 1e-6, err_msg=dtype)


def test_without_the_option_types_are_numbas():
    a = np.array([200, 100, 3], np.uint8)
    assert run(total, a, None) == 303
    assert run(total, a, "numba") == 303
    assert run(total, a) == 47
    assert run(polynomial, a.astype(np.float32), None).dtype == np.float64


@cuda.jit(device=True)
def sum_of(a, b):
    return a + b


@cuda.jit(device=True, typing="numba")
def sum_of_numba(a, b):
    return a + b


@cuda.jit(device=True, typing="numpy")
def sum_of_numpy(a, b):
    return a + b


def test_a_device_function_follows_its_caller_or_says_its_own():
    def function(a, out):
        out[0] = sum_of(a[0], a[1])
        out[1] = sum_of_numba(a[0], a[1])
        out[2] = sum_of_numpy(a[0], a[1])
        inner = lambda x: x + a[1]  # noqa: E731
        out[3] = inner(a[0])
        out[4] = sum_of(a[0], 100)
        out[5] = sum_of_numba(a[0], 100)
        out[6] = sum_of(100, 200)

    a = np.array([200, 100], np.uint8)
    found = {}
    for typing in (None, "numpy"):
        found[typing] = np.zeros(7, np.int64)
        cuda.jit(typing=typing)(function)[1, 1](a, found[typing])
    assert found["numpy"].tolist() == [44, 300, 44, 44, 44, 300, 300]
    assert found[None].tolist() == [300, 300, 44, 300, 300, 300, 300]


def test_functions_that_call_themselves_follow_too():
    @cuda.jit(device=True)
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    @cuda.jit(typing="numpy")
    def kernel(a, out):
        out[0] = power(a[0], 3)

    a, out = np.array([20], np.uint8), np.zeros(1, np.int64)
    kernel[1, 1](a, out)
    assert out[0] == 8000 % 256


INDICES = {
    "cuda.threadIdx.x + 1": "int32",
    "cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x": "int32",
    "cuda.gridDim.y": "int32",
    "cuda.grid(1) + 1": "int64",
    "cuda.gridsize(1)": "int64",
    "cuda.threadIdx.x * 0.5": "float64",
    "np.float32(cuda.threadIdx.x) * 0.5": "float32",
}


@pytest.mark.parametrize("expression", INDICES)
def test_indices_have_types(expression):
    text = f"def f():\n    return {expression}\n"
    space = {"cuda": cuda, "np": np}
    exec(text, space)
    f = cuda.jit(device=True, typing="numpy", source=text)(space["f"])
    assert str(f.result_type(())) == INDICES[expression]


ERRORS = {
    "x = a[0] + 300": "E0218",
    "x = a[0] - -1": "E0218",
    "x = min(a[0], 256)": "E0218",
    "x = np.minimum(a[0], 256)": "E0218",
    "a[0] = 256": "E0218",
    "a[1:] = -1": "E0218",
    "a[0] += 256": "E0218",
    "x = np.int8(128)": "E0218",
    "x = a[0] << 256": "E0218",
    "x = np.int32(a[0]) ** -1": "E0211",
    "x = (a[0] > 1) - (a[0] > 2)": "E0211",
    "x = -(a[0] > 1)": "E0211",
    "x = np.uint64(a[0]) & np.int64(1)": "E0211",
    "x = 0.5 << a[0]": "E0211",
}


@pytest.mark.parametrize("statement", ERRORS)
def test_what_numpy_refuses_is_an_error(statement):
    text = f"def k(a):\n    {statement}\n"
    space = {"np": np}
    exec(text, space)
    with pytest.raises(CompileError) as caught:
        cuda.jit("void(uint8[::1])", typing="numpy", source=text)(space["k"])
    assert f"error[{ERRORS[statement]}]" in str(caught.value)
    assert statement in str(caught.value)


def test_an_integer_that_its_variable_does_not_hold_is_an_error_where_it_is_used():
    @cuda.jit(typing="numpy")
    def kernel(a, out):
        best = -1
        for x in a:
            if x > 3:
                best = x
        out[0] = best

    with pytest.raises(CompileError, match=r"-1 is out of bounds for uint8"):
        kernel[1, 1](np.zeros(3, np.uint8), np.zeros(1))
    out = np.zeros(1)
    kernel[1, 1](np.array([1, 7], np.int8), out)
    assert out[0] == 7


def test_a_value_of_the_option_that_there_is_not():
    def kernel(a):
        a[0] = 1

    with pytest.raises(ValueError, match="typing must be 'numba' or 'numpy', not 'np2'"):
        cuda.jit(typing="np2")(kernel)
    with pytest.raises(TypeError, match="typing must be 'numba' or 'numpy', not 2"):
        cuda.jit(typing=2)(kernel)


def test_code_for_other_programs_keeps_the_option():
    def total(a, b):
        return a + b

    f = cuda.jit(device=True, typing="numpy")(total)
    assert str(cuda.compile(f, (types.int32, types.int32))[1]) == "int32"
    assert str(cuda.compile(total, (types.int32, types.int32))[1]) == "int64"


def test_the_setting_warns_where_numbas_types_are_wider(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(NOTED, encoding="utf-8")
    for setting, expected in (("0", "0\n"), ("1", "1 True\n")):
        environment = os.environ | {"WEFT_WARN_WIDENING": setting, "WEFT_CACHE": "off"}
        done = subprocess.run(
            [sys.executable, program], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        assert done.stdout == expected


NOTED = """\
import warnings

import numpy as np
from weft import cuda


@cuda.jit
def kernel(x):
    x[0] = x[0] * 0.5


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    kernel[1, 1](np.ones(2, np.float32))
caught = [str(one.message) for one in caught if "E0219" in str(one.message)]
print(len(caught), *["`*` of float32 and float64 computes as float64" in one for one in caught])
"""
