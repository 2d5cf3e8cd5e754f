"""The functions of `operator` are equivalent to their operators, for all pairs of types."""

import operator

import numpy as np
import pytest
from harness import assert_exact, launch, module
from weft import cuda

KINDS = ["bool", "int8", "uint16", "int32", "uint64", "int64", "float32", "float64", "complex64"]
INTS = KINDS[:6]
BINARY = {
    "add": ("+", KINDS), "sub": ("-", KINDS), "mul": ("*", KINDS), "truediv": ("/", KINDS[:-1]),
    "floordiv": ("//", KINDS[:-1]), "mod": ("%", KINDS[:-1]), "pow": ("**", KINDS[:-1]), "and_": ("&", INTS),
    "or_": ("|", INTS), "xor": ("^", INTS), "lshift": ("<<", INTS), "rshift": (">>", INTS), "eq": ("==", KINDS),
    "ne": ("!=", KINDS), "lt": ("<", KINDS[:-1]), "le": ("<=", KINDS[:-1]), "gt": (">", KINDS[:-1]),
    "ge": (">=", KINDS[:-1]), "is_": ("==", KINDS), "is_not": ("!=", KINDS),
}  # fmt: skip
IN_PLACE = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"]
UNARY = {
    "neg": ("-x", KINDS), "pos": ("+x", KINDS), "invert": ("~x", INTS), "inv": ("~x", INTS), "not_": ("not x", KINDS),
    "truth": ("bool(x)", KINDS), "abs": ("abs(x)", KINDS), "index": ("x", INTS[1:]),
}  # fmt: skip


def values(kind):
    return np.array([0, 1, 2, 3, 7, 5], kind)


def both(lines, kinds, setup=""):
    """The results of the function and the operator for all kinds, as complex numbers, and whether the types agree."""
    body = "\n            ".join(lines)
    params = [f"a{k}" for k in range(len(kinds))]
    kernel = module(f"""
        import operator
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel({", ".join(params)}, out, same):
            i = cuda.grid(1)
            j = (i * 5 + 2) % 6
            {body}
        """).kernel
    n = len(lines) // 3
    got = launch(kernel, 1, 6, *[values(kind) for kind in kinds], np.zeros((n, 6, 2), complex), np.zeros((n, 6), bool))
    assert_exact(got[-2][..., 0], got[-2][..., 1])
    assert got[-1].all()


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    symbol, kinds = BINARY[name]
    lines = []
    for left in range(len(kinds)):
        for right in range(len(kinds)):
            n, a, b = len(lines) // 3, f"a{left}[i]", f"a{right}[j]"
            lines.append(f"out[{n}, i, 0] = operator.{name}({a}, {b})")
            lines.append(f"out[{n}, i, 1] = {a} {symbol} {b}")
            lines.append(f"same[{n}, i] = isinstance(operator.{name}({a}, {b}), type({a} {symbol} {b}))")
    both(lines, kinds)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name):
    plain = name + "_" if name in ("and", "or") else name
    kinds = BINARY[plain][1]
    lines = []
    for left in range(len(kinds)):
        n, a, b = len(lines) // 3, f"a{left}[i]", f"a{left}[j]"
        lines.append(f"out[{n}, i, 0] = operator.i{name}({a}, {b})")
        lines.append(f"out[{n}, i, 1] = operator.{plain}({a}, {b})")
        lines.append(f"same[{n}, i] = isinstance(operator.i{name}({a}, {b}), type(operator.{plain}({a}, {b})))")
    both(lines, kinds)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    text, kinds = UNARY[name]
    lines = []
    for left in range(len(kinds)):
        n, plain = len(lines) // 3, text.replace("x", f"a{left}[i]")
        lines.append(f"out[{n}, i, 0] = operator.{name}(a{left}[i])")
        lines.append(f"out[{n}, i, 1] = {plain}")
        lines.append(f"same[{n}, i] = isinstance(operator.{name}(a{left}[i]), type({plain}))")
    both(lines, kinds)


def test_items():
    @cuda.jit
    def kernel(a, out, found):
        i = cuda.grid(1)
        out[i, 0] = operator.getitem(a, (i, 1))
        out[i, 1] = operator.getitem((4, 5, 6), i)
        operator.setitem(out, (i, 2), a[i, 0])
        found[i, 0] = operator.contains(a, 2 * i)
        found[i, 1] = operator.contains((1, 2), i)
        found[i, 2] = operator.is_(None, None)

    a = np.arange(6.0).reshape(3, 2)
    got = launch(kernel, 1, 3, a, np.zeros((3, 3)), np.zeros((3, 3), bool))
    assert got[1].tolist() == [[1, 4, 0], [3, 5, 2], [5, 6, 4]]
    assert got[2].tolist() == [[True, False, True], [True, True, True], [True, True, True]]


def test_as_a_value():
    add = operator.add

    @cuda.jit
    def kernel(x, out):
        op = operator.mul if x.ndim == 1 else operator.sub
        out[0] = add(op(x[0], x[1]), 1)

    assert launch(kernel, 1, 1, np.array([3, 4]), np.zeros(1, int))[1][0] == 13
