"""The small operations that `operations.py` times, by dtype.

An operation is an expression of `x` and `y`, which have the dtype, or statements that assign `v`. Each operation has
the range of `x` and the type in which its values are summed.
"""

from __future__ import annotations

from dataclasses import dataclass

EXPONENTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 24, 32, 100, -1, -2, -3, -4, -6, -12, -24)
FRACTIONS = (0.5, 1.5, 2.5, -0.5, -1.5, 3.7)


@dataclass(frozen=True)
class Operation:
    dtype: str
    text: str
    low: float
    high: float
    total: str


def floats(dtype: str) -> list[Operation]:
    rows: list[Operation] = []

    def add(text: str, low: float = 0.5, high: float = 2.5) -> None:
        rows.append(Operation(dtype, text, low, high, dtype))

    for text in ("x + y", "x - y", "x * y", "x / y", "x * y + x", "-x * y", "abs(x)", "min(x, y)", "max(x, y)",
                 "x if x < y else y", "x < y", "x == y"):  # fmt: skip
        add(text)
    for text in ("x // y", "x % y", "q, m = divmod(x, y); v = q + m", "math.fmod(x, y)"):
        for low, high in ((0.5, 2.5), (-40.0, 40.0), (1e5, 2e6)):
            add(text, low, high)
    for text in ("x % 1.5", "x // 1.5", "x % 1.0"):
        add(text, -40.0, 40.0)
    for exponent in (*EXPONENTS, *FRACTIONS):
        add(f"x ** {exponent}")
    for text in ("x ** y", "pow(x, 12)", "x ** 2.0", "x ** -2.0", "x ** 12.0", "math.pow(x, y)", "math.pow(x, 3.0)",
                 "2.0 ** x", "v = x; v **= 12", "n = int(y); v = x ** n"):  # fmt: skip
        add(text)
    for name in ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "erf", "erfc", "gamma", "lgamma", "sinh",
                 "cosh", "tanh", "asinh", "atan"):  # fmt: skip
        add(f"math.{name}(x)")
    add("1.0 / math.sqrt(x)")
    add("math.acosh(x)", 1.0, 9.0)
    for name in ("asin", "acos", "atanh"):
        add(f"math.{name}(x)", -0.95, 0.95)
    for name in ("sin", "cos", "tan"):
        add(f"math.{name}(x)", -3.0, 3.0)
        add(f"math.{name}(x)", 100.0, 1000.0)
    for text in ("math.hypot(x, y)", "math.atan2(x, y)", "math.copysign(x, y)", "math.ldexp(x, 3)", "math.degrees(x)",
                 "math.radians(x)", "math.isnan(x)", "math.isinf(x)", "math.isfinite(x)"):  # fmt: skip
        add(text)
    add("m, e = math.frexp(x); v = m + e", -40.0, 40.0)
    add("f, w = math.modf(x); v = f + w", -40.0, 40.0)
    for text in ("round(x)", "round(x, 2)", "math.floor(x)", "math.ceil(x)", "math.trunc(x)", "int(x)",
                 "np.int8(x)", "np.int32(x)", "np.int64(x)", "np.uint32(x)", "np.float32(x)", "np.float64(x)",
                 "bool(x)"):  # fmt: skip
        add(text, -40.0, 40.0)
    return rows


def halves(dtype: str) -> list[Operation]:
    texts = ("x + y", "x * y", "x / y", "x * y + x", "abs(x)", "min(x, y)", "x < y", "x ** 2", "x ** 3", "x ** 12")
    return [Operation(dtype, text, 0.5, 2.5, "float32") for text in texts]


def integers(dtype: str) -> list[Operation]:
    rows: list[Operation] = []

    def add(text: str, low: float = 1, high: float = 1e6, total: str = dtype) -> None:
        rows.append(Operation(dtype, text, low, high, total))

    for text in ("x + y", "x - y", "x * y", "x * y + x", "abs(x)", "min(x, y)", "max(x, y)", "x < y", "x == y", "-x",
                 "~x", "x & y", "x | y", "x ^ y", "x << 3", "x >> 3", "x << (y & 7)", "x >> (y & 7)",
                 "x if x < y else y"):  # fmt: skip
        add(text)
    for text in ("x // y", "x % y", "q, m = divmod(x, y); v = q + m"):
        add(text)
        if not dtype.startswith("u"):
            add(text, -1e6, 1e6)
    for divisor in (2, 7, 8, 10, 1000):
        add(f"x // {divisor}", 1, 1e6)
        add(f"x % {divisor}", -1e6 if not dtype.startswith("u") else 1, 1e6)
    for exponent in (2, 3, 4, 5, 8, 9, 12, 16, 31):
        add(f"x ** {exponent}")
    for text in ("pow(x, 12)", "x ** (y & 7)"):
        add(text)
    for text in ("x / y", "x * 0.5", "x ** -1", "x ** -2", "x ** 0.5", "math.sqrt(x)", "math.sin(x)", "float(x)"):
        add(text, total="float64")
    for text in ("np.int8(x)", "np.int16(x)", "np.uint32(x)", "np.int64(x)", "bool(x)", "round(x)"):
        add(text)
    add("np.float32(x)", total="float32")
    return rows


def complexes(dtype: str) -> list[Operation]:
    texts = ["x + y", "x - y", "x * y", "x / y", "x * y + x", "-x", "x.conjugate()", "x == y", "abs(x)",
             "x.real * x.imag", "x * 2.0", "x ** y", "x ** 0.5", "pow(x, 3)"]  # fmt: skip
    texts += [f"x ** {exponent}" for exponent in (2, 3, 4, 6, 8, 9, 12, 16, -1, -2, -6)]
    texts += [f"cmath.{name}(x)" for name in (
        "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh",
        "acosh", "atanh", "phase", "isfinite", "isnan")]  # fmt: skip
    texts += ["r, p = cmath.polar(x); v = r + p", "cmath.rect(x.real, x.imag)"]
    return [Operation(dtype, text, 0.5, 1.5, dtype) for text in texts]


def operations() -> list[Operation]:
    found: list[Operation] = []
    for dtype in ("float32", "float64"):
        found += floats(dtype)
    for dtype in ("int32", "int64", "uint64"):
        found += integers(dtype)
    for dtype in ("complex64", "complex128"):
        found += complexes(dtype)
    return found + halves("float16")
