"""`typing="numpy"`: the result types of operators are NumPy's, for all pairs of types and for Python numbers."""

import warnings

import numpy as np
import pytest
from weft import CompileError, cuda, types

NAMES = [
    "bool",
    *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")),
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]
LITERALS = ["3", "1.5", "2j", "True"]


def function(expression, parameters="a, b"):
    """Make a device function of the expression."""
    text = f"def f({parameters}):\n    return {expression}\n"
    space = {"np": np}
    exec(text, space)
    return cuda.jit(device=True, typing="numpy", source=text)(space["f"])


def of_name(name):
    return types.boolean if name == "bool" else getattr(types, name)


def weft_type(f, *names):
    """Get weft's result dtype; None where it is an error."""
    try:
        found = str(f.result_type(tuple(of_name(name) for name in names)))
        return np.dtype("bool" if found == "boolean" else found)
    except CompileError:
        return None


def numpy_type(expression, **operands):
    """Get NumPy's result dtype; None where it is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(eval(expression, {}, operands)).dtype
        except TypeError:
            return None


def one(name):
    return np.dtype(name).type(1)


@pytest.mark.parametrize("operator", OPERATORS + COMPARISONS)
def test_operators_give_numpys_types(operator):
    expression = f"a {operator} b"
    f = function(expression)
    wrong = {}
    for left in NAMES:
        for right in NAMES:
            expected = numpy_type(expression, a=one(left), b=one(right))
            if operator in COMPARISONS[2:] and "complex" in left + right:
                expected = None  # NumPy orders complex numbers lexicographically; kernels do not order them.
            found = weft_type(f, left, right)
            if found != expected:
                wrong[left, right] = (found, expected)
    assert not wrong


@pytest.mark.parametrize("operator", OPERATORS + COMPARISONS)
def test_python_numbers_take_the_type_of_what_they_meet(operator):
    wrong = {}
    for literal in LITERALS:
        for expression in (f"a {operator} {literal}", f"{literal} {operator} a"):
            f = function(expression, "a")
            for name in NAMES:
                expected = numpy_type(expression, a=one(name))
                if operator in COMPARISONS[2:] and ("complex" in name or "j" in literal):
                    expected = None
                found = weft_type(f, name)
                if found != expected:
                    wrong[expression, name] = (found, expected)
    assert not wrong


@pytest.mark.parametrize("expression", ["-a", "+a", "~a", "abs(a)"])
def test_operators_of_one_number(expression):
    f = function(expression, "a")
    found = {name: weft_type(f, name) for name in NAMES}
    assert found == {name: numpy_type(expression, a=one(name)) for name in NAMES}


def some_values(name, power=False):
    """Some values of a type: its limits, and small ones with remainders. Exponents are small and not negative."""
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([True, False, True, False, True, True, False, True])
    if power:
        return np.array([0, 1, 2, 3, 1, 0, 2, 3], dtype)
    if dtype.kind == "c":
        return np.array([1 + 2j, -3 + 0.5j, 0.25j, 4, -1.5 - 1j, 2 - 2j, 7 + 1j, 3j], dtype)
    if dtype.kind == "f":
        return np.array([0.1, -7.5, 3, 2.25, -0.5, 100.7, 0, 1e4], dtype)
    info = np.iinfo(dtype)
    return np.array([info.max, info.min, 1, 7, 100, info.max - 5, 0, 3], dtype)


def assert_like_numpy(found, expected, what):
    """Integers exactly; floats within some units in the last place, complex powers within more."""
    assert found.dtype == expected.dtype, what
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, what)
        return
    if found.dtype.kind == "c":
        # For powers that are not finite, the algorithm differs from NumPy's.
        finite = np.isfinite(expected)
        if "/" in what:
            np.testing.assert_array_equal(found[~finite], expected[~finite], what)
        found, expected = found[finite], expected[finite]
    kind = np.dtype(found.dtype.char.lower()) if found.dtype.kind == "c" else found.dtype
    ulps = 64 if "**" in what or found.dtype.kind == "c" else 4
    scale = np.max(np.abs(expected), initial=0) if found.dtype.kind == "c" else 0
    eps = float(np.finfo(kind).eps)
    np.testing.assert_allclose(found, expected, rtol=ulps * eps, atol=ulps * eps * float(scale), err_msg=what)


def compute(expressions, arrays):
    """Compute expressions of the arrays' elements in one kernel; each result has NumPy's dtype."""
    expected = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for expression in expressions:
            try:
                expected[expression] = np.asarray(eval(expression, {"np": np, "abs": abs}, arrays))
            except (TypeError, ValueError):
                continue
    dtypes = sorted({str(result.dtype) for result in expected.values()})
    size = len(next(iter(arrays.values())))
    outs = {dtype: np.zeros((len(expected), size), dtype) for dtype in dtypes}
    lines = [f"def k({', '.join([*arrays, *(f'out_{dtype}' for dtype in dtypes)])}):", "    i = cuda.grid(1)"]
    lines += [f"    {name}_i = {name}[i]" for name in arrays]
    for number, (expression, result) in enumerate(expected.items()):
        words = [f"{word}_i" if word in arrays else word for word in expression.split(" ")]
        lines.append(f"    out_{result.dtype}[{number}, i] = {' '.join(words)}")
    text = "\n".join(lines) + "\n"
    space = {"cuda": cuda, "np": np}
    exec(text, space)
    kernel = cuda.jit(typing="numpy", opt=False, source=text)(space["k"])
    kernel[1, size](*arrays.values(), *outs.values())
    for number, (expression, result) in enumerate(expected.items()):
        what = f"{expression} of {', '.join(str(array.dtype) for array in arrays.values())}"
        assert_like_numpy(outs[str(result.dtype)][number], result, what)
    return len(expected)


PAIRED = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("left", PAIRED)
def test_values_are_numpys(left):
    rights = PAIRED[PAIRED.index(left) :]
    arrays = {"a": some_values(left), "e": some_values(left, power=True)}
    expressions = []
    for right in rights:
        arrays[right] = np.roll(some_values(right), 3)
        arrays[f"{right}_e"] = np.roll(some_values(right, power=True), 3)
        for operator in [*OPERATORS, *COMPARISONS]:
            if operator in COMPARISONS[2:] and "complex" in left + right:
                continue
            power = "**" in operator or "<<" in operator
            expressions.append(f"a {operator} {right}{'_e' if power else ''}")
            expressions.append(f"{right} {operator} {'e' if power else 'a'}")
    assert compute(expressions, arrays) > 10


@pytest.mark.parametrize("name", NAMES)
def test_values_with_python_numbers_are_numpys(name):
    expressions = []
    for literal in [*LITERALS, "100", "0.1"]:
        for operator in OPERATORS + COMPARISONS:
            if operator in COMPARISONS[2:] and ("complex" in name or "j" in literal):
                continue
            if operator == "**" and literal in ("100", "0.1", "2j"):
                continue
            expressions.append(f"a {operator} {literal}")
            if operator not in ("**", "<<"):
                expressions.append(f"{literal} {operator} a")
    if "int" in name:
        expressions += [
            f"a {c} {n}" for c in COMPARISONS for n in ("-1", "300", "70000", str(2**40), str(2**63), "-(2**63)")
        ]
        expressions += [f"{n} {c} a" for c in COMPARISONS for n in ("-1", "300", str(2**63))]
        expressions += ["a << 40", "a >> 40", "a << 9", "a >> 9", "a // 0", "a % 0", "a / 300"]
    assert compute(expressions, {"a": some_values(name)}) > 10


FUNCTIONS = {
    "min(a, b)": "np.minimum(a, b)",
    "max(a, b)": "np.maximum(a, b)",
    "min(a, 5)": "np.minimum(a, 5)",
    "max(0, a, b)": "np.maximum(np.maximum(0, a), b)",
    "divmod(a, b)[0]": "a // b",
    "pow(a, b)": "a ** b",
    "a if a > b else b": "np.maximum(a, b)",
    "a or b": "np.maximum(a, b)",
    "math.sqrt(a)": "np.sqrt(a)",
    "math.exp(a)": "np.exp(a)",
    "math.atan2(a, b)": "np.arctan2(a, b)",
    "math.hypot(a, 3)": "np.hypot(a, 3)",
    "math.copysign(1.0, a)": "np.copysign(1.0, a)",
    "math.pow(a, 2.0)": "np.hypot(a, 2.0)",
    "np.floor(a + 0.5)": "np.floor(a + 0.5)",
    "np.sqrt(a)": "np.sqrt(a)",
    "np.add(a, b)": "np.add(a, b)",
    "np.multiply(a, 2)": "np.multiply(a, 2)",
    "np.minimum(a, 1.5)": "np.minimum(a, 1.5)",
    "np.hypot(a, b)": "np.hypot(a, b)",
    "a * math.pi": "a * np.pi",
    "a * math.sqrt(2.0)": "a * 1.5",
    "a * np.sqrt(2.0)": "a * np.sqrt(2.0)",
    "a * float(b)": "a * 1.5",
    "a + int(b)": "a + 1",
    "a + (b > 0)": "a + np.True_",
    "a + K": "a + 7",
    "a + F": "a + 0.25",
    "a + T": "a + np.int16(7)",
    "a + f()": "a + 3",
    "a + t[0]": "a + 3",
    "a + round(b)": "a + 3",
    "a + len(t)": "a + 3",
}
K, F, T = 7, 0.25, np.int16(7)


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_functions_and_names(expression):
    text = f"def g(a, b):\n    t = (3, 0.5)\n    return {expression}\n"

    @cuda.jit
    def three():
        return 3

    space = {"np": np, "math": __import__("math"), "K": K, "F": F, "T": T, "f": three}
    exec(text, space)
    g = cuda.jit(device=True, typing="numpy", source=text)(space["g"])
    # `math` computes float16 as float32 if it has no float16 function.
    least = np.float32 if expression.startswith(("math.at", "math.hy", "math.co", "math.po")) else np.bool_
    wrong = {}
    names = [name for name in NAMES if "complex" not in name and name != "bool"]
    for left in names:
        for right in names:
            try:
                expected = eval(FUNCTIONS[expression], {"np": np}, {"a": one(left), "b": one(right)}).dtype
                expected = np.promote_types(expected, least)
            except TypeError:
                continue
            found = weft_type(g, left, right)
            if found != expected:
                wrong[left, right] = (found, expected)
    assert not wrong
