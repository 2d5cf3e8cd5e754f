"""Runs expressions of all kinds on numbers of all types, and writes the bits of their results to a file.

    WEFT_DEVICE=python python every_expression.py FILE numpy 0 10
    WEFT_DEVICE=cpu python every_expression.py FILE numba 0 1

There is a kernel for each pair of types, or, with `0 10`, for every tenth pair from the first. Operations that the
compiler rejects for a type are omitted; the compiler also determines the type of each result.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import weft
from weft import _weft, cuda

TYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=")
EXPRESSIONS = (
    *(f"a {op} b" for op in OPERATORS),
    *(f"a {op} {literal}" for op in OPERATORS for literal in ("2", "0.5", "True")),
    *(f"{literal} {op} a" for op in OPERATORS[:12] for literal in ("3", "1.5", "True")),
    *("-a", "+a", "~a", "not a", "abs(a)", "round(a)", "round(a, 1)", "round(a, -1)", "int(a)", "float(a)", "bool(a)"),
    *(
        "complex(a)",
        "complex(a, b)",
        "a.real",
        "a.imag",
        "a.conjugate()",
        "np.float32(a)",
        "np.int8(a)",
        "np.uint16(a)",
    ),
    *("min(a, b)", "max(a, b)", "min(a, 2)", "max(2.5, a)", "min(a, b, 1)", "max(0.5, b, a)", "min((a, b))"),
    *("divmod(a, b)[0]", "divmod(a, b)[1]", "pow(a, b)", "sum((a, b))", "a ** -1", "a ** 3", "a ** 0", "a ** 2.0"),
    *("a and b", "a or b", "a and 0.5", "a or 2", "not a or b", "(a and b) + 1", "(a or b) * 2"),
    *(
        "a if a == b else b",
        "b if a == b else a",
        "a if a == a else b",
        "(a if b == b else 0.5) + 1",
        "1 if a == b else b",
    ),
    *(
        "a < b <= a",
        "a == b != a",
        "1 < a < b",
        "a is b",
        "a is not b",
        "a in (b, 1)",
        "a not in (b, a)",
        "(a, 1) < (b, 2)",
    ),
    *(
        "(a == b) + (a == a)",
        "~(a == b)",
        "(a < b) | (a == b)",
        "-(a == b)",
        "(a == b) // (b == b)",
        "(a == a) % (a == b)",
    ),
    *(
        "((a + b) - a) * b",
        "a * b + a - b",
        "(a + 1) // 2 + b",
        "(a - b) ** 2",
        "-a + +b",
        "abs(a - b)",
        "((a, b))[1] + 1",
    ),
    *(
        "mixed(a, b)",
        "mixed(b, a)",
        "assigned(a, b)",
        "counted(a, b)",
        "updated(a, b)",
        "narrowed(a)",
        "either(a, b)(a)",
    ),
)


@cuda.jit(device=True)
def mixed(a, b):
    return a if a == b else b


@cuda.jit(device=True)
def assigned(a, b):
    x = a
    if a != b:
        x = b
    x = x * 2 if a == a else x
    y = 1
    if a == b:
        y = 0.5
    return x + y


@cuda.jit(device=True)
def counted(a, b):
    total = 0
    for i in range(3):
        total += a
        if i == 1:
            total = total - b
    return total


@cuda.jit(device=True)
def updated(a, b):
    x = a
    x += b
    x *= 2
    x -= 0.5
    return x


@cuda.jit(device=True)
def narrowed(a):
    x = np.int8(3)
    while x < 5:
        x = x + 1
    return x * a


@cuda.jit(device=True)
def either(a, b):
    return (lambda x: x + b) if True else (lambda x: x - b)


def values(name: str, *, second: bool) -> np.ndarray:
    """Some numbers of a type: its limits, zeros, small ones, and for floats NaN and infinity."""
    if name == "bool":
        return np.array([True, False, True, True] if second else [True, True, False, True])
    if name.startswith("complex"):
        some = [1 + 2j, -0.0 + 1j, 0, 2.5] if second else [3 - 1.5j, 2, -1j, 0.5 + 0.25j]
    elif name.startswith("float"):
        large = min(1e30, float(np.finfo(name).max))  # beyond int64, except for float16
        some = [0.0, -2.5, np.nan, 3.0, 0.1, np.inf] if second else [1.5, -0.0, 7.25, np.nan, -0.7, large]
    else:
        info = np.iinfo(name)
        some = [info.max, info.min, 3, 1, 2, info.max // 2] if second else [info.min, info.max, 7, 0, 5, info.max - 3]
    return np.array(some, dtype=name)


def result_dtype(expression: str, typing: str, *kinds: str) -> np.dtype | None:
    """The result dtype of an expression of two numbers; None if the compiler rejects it."""
    text = f"def f(a, b):\n    return {expression}\n"
    space = dict(globals())
    exec(text, space)
    function = cuda.jit(device=True, typing=typing, source=text)(space["f"])
    try:
        found = function.result_type(tuple(_weft.typeof_value(np.dtype(kind).type(1)) for kind in kinds))
        return np.dtype("bool" if str(found) == "boolean" else str(found))
    except (weft.CompileError, TypeError):
        return None


def kernel(typing: str, left: str, right: str):
    """A kernel that stores the results of all expressions, and their dtypes."""
    known = [(each, result_dtype(each, typing, left, right)) for each in EXPRESSIONS]
    known = [(each, dtype) for each, dtype in known if dtype is not None]
    outs = [f"o{at}" for at in range(len(known))]
    lines = [f"    o{at}[i] = {each}" for at, (each, _) in enumerate(known)]
    text = (
        f"def kernel(x, y, {', '.join(outs)}):\n    i = cuda.grid(1)\n    a, b = x[i], y[i]\n" + "\n".join(lines) + "\n"
    )
    space = dict(globals())
    exec(text, space)
    return cuda.jit(typing=typing, source=text, opt=False)(space["kernel"]), known


def main() -> None:
    """Writes the results."""
    warnings.simplefilter("ignore")
    path, typing, first, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    found = {}
    for at, (left, right) in enumerate((left, right) for left in TYPES for right in TYPES):
        if at % step != first:
            continue
        run, known = kernel(typing, left, right)
        x, y = values(left, second=False), values(right, second=True)
        count = min(x.size, y.size)
        outs = [np.zeros(count, dtype) for _, dtype in known]
        run[1, count](x[:count], y[:count], *outs)
        for (expression, dtype), out in zip(known, outs, strict=True):
            # The sign and payload of a computed NaN are unspecified.
            for part in {"c": (out.real, out.imag), "f": (out,)}.get(dtype.kind, ()):
                part[np.isnan(part)] = np.nan
            for i in range(count):
                found[f"{expression} of {left} {x[i]} and {right} {y[i]}, {dtype}"] = out[i].tobytes().hex()
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines(f"{bits} {what}\n" for what, bits in found.items())


if __name__ == "__main__":
    main()
