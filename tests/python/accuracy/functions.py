"""Every function that is measured: how a kernel calls it, its exact reference, where its arguments matter.

Not measured are functions that are exact by definition, which the other tests compare bit by bit, and those that are
other functions one after another: they are as exact as their formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

HALVES = ("float16", "bfloat16")
SINGLES = ("float32", "float64")
ALL = (*HALVES, *SINGLES)


@dataclass(frozen=True)
class Function:
    """A function that a kernel calls as `call` with `x`, and `y` if it takes two numbers."""

    name: str
    call: str
    # From where numbers are drawn besides all bit patterns.
    near: tuple[float, float] | None
    types: tuple[str, ...] = SINGLES
    reference: str = ""
    half_call: str = ""
    # Of two: how pairs are drawn (`points.PAIRS`).
    pairs: str = ""
    # Only these arguments are measured, and the function stands in the table once for each part.
    above: float | None = None
    below: float | None = None
    # Results that are smaller count in this one's ulps: near a zero that no argument meets there is no other measure.
    least: float = 0.0

    @property
    def arity(self) -> int:
        """How many numbers it takes."""
        return 2 if self.pairs else 1

    @property
    def exact(self) -> str:
        """The name of its reference."""
        return self.reference or self.name

    def call_for(self, dtype: str) -> str:
        """How it is called on numbers of a type."""
        return self.half_call if dtype in HALVES and self.half_call else self.call


def of_one(name, low, high, *, numpy=None, **rest):
    """A function of `math`; with NumPy's name where that one takes the halves, too."""
    half_call = f"np.{numpy}(x)" if numpy else ""
    types = ALL if numpy else SINGLES
    return Function(name, f"math.{name}(x)", (low, high), types, half_call=half_call, **rest)


def of_two(name, pairs, *, numpy=None, **rest):
    """The same of two."""
    half_call = f"np.{numpy}(x, y)" if numpy else ""
    types = ALL if numpy else SINGLES
    return Function(name, f"math.{name}(x, y)", None, types, half_call=half_call, pairs=pairs, **rest)


def of_library(name, low, high, **rest):
    """A function of `cuda.libdevice` on float64; on float32 it is that one, rounded."""
    return Function(name, f"libdevice.{name}(x)", (low, high), ("float64",), **rest)


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
    of_library("rcbrt", -100, 100),
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
]  # fmt: skip


@dataclass(frozen=True)
class Approximation:
    """A function of float32 with `fastmath=True` on a GPU, measured for some arguments."""

    call: str
    # Which arguments, as an expression of a kernel, and in words.
    condition: str
    where: str
    # The error is the distance itself, and not in ulps.
    absolute: bool = False

    @property
    def arity(self) -> int:
        """How many numbers it takes."""
        return 2 if "y" in self.call else 1


NEAR_ONE, FAR_FROM_ONE = "0.5 <= x <= 2.0", "1.1754944e-38 <= x < 0.5 or 2.0 < x <= 3.4028235e38"

APPROXIMATIONS = [
    *(
        Approximation(f"math.{name}(x)", "abs(x) <= 3.1415927", "from -pi to pi", absolute=True)
        for name in ("sin", "cos")
    ),
    Approximation("math.tan(x)", "abs(x) <= 1.5", "from -1.5 to 1.5"),
    Approximation("math.exp(x)", "abs(x) <= 87.0", "from -87 to 87"),
    Approximation("math.exp2(x)", "abs(x) <= 126.0", "from -126 to 126"),
    *(
        Approximation(f"math.{name}(x)", condition, where, absolute)
        for name in ("log", "log2", "log10")
        for condition, where, absolute in [
            (NEAR_ONE, "from 0.5 to 2", True),
            (FAR_FROM_ONE, "normal below 0.5 or above 2", False),
        ]
    ),
    Approximation("math.sqrt(x)", "1.1754944e-38 <= x <= 3.4028235e38", "normal"),
    Approximation(
        "x / y",
        "1.1754944e-38 <= abs(y) <= 8.5e37 and abs(x) >= 1.1754944e-38 and 1.1754944e-38 <= abs(x / y) <= 3.4e38",
        "y up to 2^126, x, y and x / y normal",
    ),
]  # fmt: skip


def title(function: Function, dtype: str) -> str:
    """What a row of the table is called."""
    call = function.call_for(dtype).format(half="m")
    for range_, limit in ((">", function.above), ("<", function.below)):
        if limit is not None:
            return f"{call}, x {range_} {limit:g}" + (" (*)" if function.least else "")
    return call
