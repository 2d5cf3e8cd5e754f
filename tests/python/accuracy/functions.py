"""The measured functions: the call in a kernel, the exact reference, and the ranges of arguments.

Functions that are exact by definition are not measured; other tests compare them bit by bit. Compositions of other
functions are not measured either: their error is that of their formulas. `libdevice` lists the functions of
`cuda.libdevice` that are measured here, and under which names.
"""

from __future__ import annotations

from dataclasses import dataclass

HALVES = ("float16", "bfloat16")
SINGLES = ("float32", "float64")
ALL = (*HALVES, *SINGLES)


@dataclass(frozen=True)
class Function:
    """A function. A kernel calls it by `call`, an expression of `x`, and of `y` if it has two arguments."""

    name: str
    call: str
    # The range of random numbers, in addition to random bit patterns.
    near: tuple[float, float] | None
    types: tuple[str, ...] = SINGLES
    reference: str = ""
    half_call: str = ""
    # The call for float32, if it differs from that for float64.
    single_call: str = ""
    # On float32 it is the rounded float64 function, which is then no reference: only MPFR is used.
    rounded: bool = False
    # For two arguments: the distribution of pairs (`points.PAIRS`).
    pairs: str = ""
    # Only these arguments are measured; the table has a row for each part of the range.
    above: float | None = None
    below: float | None = None
    # The error of smaller results is measured in ulps of this number: near an irrational zero of the function, the
    # relative error is unbounded.
    least: float = 0.0

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return 2 if self.pairs else 1

    @property
    def exact(self) -> str:
        """The name of its reference."""
        return self.reference or self.name

    def points(self, count: int) -> int:
        """The number of points compared with MPFR: fewer for libdevice, which takes up to 100 times as long."""
        return count // 10 if self.call.startswith("libdevice.") else count

    def least_for(self, dtype: str) -> float:
        """The `least` of a dtype: none for float32 results that are rounded from float64."""
        return 0.0 if dtype == "float32" and self.rounded else self.least

    def call_for(self, dtype: str) -> str:
        """The call for a dtype."""
        if dtype == "float32" and self.single_call:
            return self.single_call
        return self.half_call if dtype in HALVES and self.half_call else self.call


def of_one(name, low, high, *, numpy=None, **rest):
    """A function of `math`; also with NumPy's name, if that function supports the 16-bit floats."""
    half_call = f"np.{numpy}(x)" if numpy else ""
    types = ALL if numpy else SINGLES
    return Function(name, f"math.{name}(x)", (low, high), types, half_call=half_call, **rest)


def of_two(name, pairs, *, numpy=None, **rest):
    """The same for two arguments."""
    half_call = f"np.{numpy}(x, y)" if numpy else ""
    types = ALL if numpy else SINGLES
    return Function(name, f"math.{name}(x, y)", None, types, half_call=half_call, pairs=pairs, **rest)


def of_library(name, low, high, **rest):
    """A function of `cuda.libdevice`: most compute in float64 on float32, too."""
    rest = {"rounded": True, "single_call": f"libdevice.{name}f(x)", **rest}
    return Function(name, f"libdevice.{name}(x)", (low, high), SINGLES, **rest)


def of_library_with_integer(name, pairs, arguments, **rest):
    """The same for a number and an integer; `arguments` has their order."""
    return Function(
        name, f"libdevice.{name}({arguments})", None, SINGLES, single_call=f"libdevice.{name}f({arguments})",
        rounded=True, pairs=pairs, **rest,
    )  # fmt: skip


FUNCTIONS = [
    of_one("sin", -40, 40, numpy="sin"),
    of_one("cos", -40, 40, numpy="cos"),
    of_one("tan", -40, 40, numpy="tan"),
    of_one("asin", -1, 1, numpy="arcsin"),
    of_one("acos", -1, 1, numpy="arccos"),
    of_one("atan", -20, 20, numpy="arctan"),
    of_two("atan2", "near", numpy="arctan2"),
    of_one("sinh", -720, 720, numpy="sinh"),
    of_one("cosh", -720, 720, numpy="cosh"),
    of_one("tanh", -25, 25, numpy="tanh"),
    of_one("asinh", -100, 100, numpy="arcsinh"),
    of_one("acosh", 1, 100, numpy="arccosh"),
    of_one("atanh", -1, 1, numpy="arctanh"),
    of_one("exp", -750, 715, numpy="exp"),
    of_one("exp2", -1080, 1030, numpy="exp2"),
    of_one("expm1", -40, 715, numpy="expm1"),
    of_one("log", 0, 100, numpy="log"),
    of_one("log2", 0, 100, numpy="log2"),
    of_one("log10", 0, 100, numpy="log10"),
    of_one("log1p", -1, 100, numpy="log1p"),
    of_two("log", "log", reference="log of a base"),
    of_two("pow", "pow", numpy="power"),
    of_one("sqrt", 0, 100, numpy="sqrt"),
    of_one("cbrt", -100, 100, numpy="cbrt"),
    of_two("hypot", "near", numpy="hypot"),
    of_one("erf", -7, 7),
    of_one("erfc", -7, 28),
    of_one("gamma", -185, 175),
    of_one("lgamma", 0, 200, above=-2.0),
    of_one("lgamma", -30, -2, below=-2.0, least=1.0),
    of_two("fmod", "near", numpy="fmod"),
    of_two("remainder", "near"),
    of_one("degrees", -100, 100, numpy="degrees"),
    of_one("radians", -1000, 1000, numpy="radians"),
    Function("np.reciprocal", "np.reciprocal(x)", (-100, 100), ALL, reference="reciprocal"),
    Function("x / y", "x / y", None, ALL, reference="quotient", pairs="near"),
    Function("hrsqrt", "{half}.hrsqrt(x)", (0, 100), HALVES, reference="rsqrt"),
    Function("hrcp", "{half}.hrcp(x)", (-100, 100), HALVES, reference="reciprocal"),
    Function("hexp10", "{half}.hexp10(x)", (-40, 40), HALVES, reference="exp10"),
    of_library("exp10", -310, 310),
    of_library("rsqrt", 0, 100),
    of_library("rcbrt", -100, 100, rounded=False),
    of_library("sinpi", -10, 10),
    of_library("cospi", -10, 10),
    of_library("erfcx", -27, 30),
    of_library("normcdf", -38, 9),
    of_library("erfinv", -1, 1),
    of_library("erfcinv", 0, 2),
    of_library("normcdfinv", 0, 1),
    of_library("j0", -100, 100, least=1.0),
    of_library("j1", -100, 100, least=1.0),
    of_library("y0", 0, 100, least=1.0),
    of_library("y1", 0, 100, least=1.0),
    of_library_with_integer("jn", "bessel", "np.int32(x), y", least=1.0),
    of_library_with_integer("yn", "bessel of the second kind", "np.int32(x), y", least=1.0),
    of_library_with_integer("powi", "powi", "x, np.int32(y)", reference="pow"),
]  # fmt: skip


@dataclass(frozen=True)
class Approximation:
    """A function of float32 that approximates on a GPU, measured for some arguments.

    It is a function with `fastmath=True`, which has no effect on a CPU, or a `fast_` function of libdevice.
    """

    call: str
    # The condition on arguments, as an expression of a kernel, and as text.
    condition: str
    where: str
    # The error is absolute, not in ulps.
    absolute: bool = False
    # The name of the approximated function, if different: then it is an approximation without `fastmath`, and is
    # measured for all arguments.
    exact: str = ""
    pairs: str = "near"

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return 2 if "y" in self.call else 1


NEAR_ONE, FAR_FROM_ONE = "0.5 <= x <= 2.0", "1.1754944e-38 <= x < 0.5 or 2.0 < x <= 3.4028235e38"
QUOTIENTS = "1.1754944e-38 <= abs(y) <= 8.5e37 and abs(x) >= 1.1754944e-38 and 1.1754944e-38 <= abs(x / y) <= 3.4e38"
POWERS = "1.1754944e-38 <= x <= 3.4028235e38 and abs(y) <= 10.0 and 1.1754944e-38 <= math.pow(x, y) <= 3.4e38"

# Calls, approximated functions, ranges. `math.NAME(x)` approximates with `fastmath`; libdevice has separate functions.
_FAST = [
    *((name, f"fast_{name}f", "abs(x) <= 3.1415927", "from -pi to pi", True) for name in ("sin", "cos")),
    ("tan", "fast_tanf", "abs(x) <= 1.0", "from -1 to 1", True),
    ("exp", "fast_expf", "abs(x) <= 87.0", "from -87 to 87", False),
    ("exp2", "", "abs(x) <= 126.0", "from -126 to 126", False),
    ("exp10", "fast_exp10f", "abs(x) <= 37.0", "from -37 to 37", False),
    *(
        (name, f"fast_{name}f", condition, where, absolute)
        for name in ("log", "log2", "log10")
        for condition, where, absolute in [
            (NEAR_ONE, "from 0.5 to 2", True),
            (FAR_FROM_ONE, "normal below 0.5 or above 2", False),
        ]
    ),
]

APPROXIMATIONS = [
    *(
        Approximation(f"math.{name}(x)", condition, where, absolute)
        for name, _, condition, where, absolute in _FAST
        if name != "exp10"
    ),
    Approximation("math.sqrt(x)", "1.1754944e-38 <= x <= 3.4028235e38", "normal"),
    Approximation("x / y", QUOTIENTS, "y up to 2^126, x, y and x / y normal"),
    *(
        Approximation(
            f"libdevice.{fast}(x)", condition, where, absolute,
            exact=f"math.{name}(x)" if name != "exp10" else "libdevice.exp10(x)",
        )
        for name, fast, condition, where, absolute in _FAST
        if fast
    ),
    Approximation("libdevice.fast_fdividef(x, y)", QUOTIENTS, "y up to 2^126, x, y and x / y normal", exact="x / y"),
    Approximation(
        "libdevice.fast_powf(x, y)", POWERS, "x and the power normal, y from -10 to 10", exact="math.pow(x, y)",
        pairs="pow",
    ),
]  # fmt: skip


def title(function: Function, dtype: str) -> str:
    """The label of a row of the table."""
    call = function.call_for(dtype).format(half="m")
    for range_, limit in ((">", function.above), ("<", function.below)):
        if limit is not None:
            return f"{call}, x {range_} {limit:g}" + (" (*)" if function.least else "")
    return call
