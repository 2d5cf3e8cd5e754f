"""Every function that is measured: how a kernel calls it, its exact reference, where its arguments matter.

Not measured are functions that are exact by definition, which the other tests compare bit by bit, and those that are
other functions one after another: they are as exact as their formulas. `libdevice` says which of `cuda.libdevice`'s
functions are measured here, and under which name.
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
    # How it is called on float32, if not as on float64.
    single_call: str = ""
    # On float32 it is the function of float64, rounded: that one cannot judge it, and only MPFR does.
    rounded: bool = False
    # Of two: how pairs are drawn (`points.PAIRS`).
    pairs: str = ""
    # Only these arguments are measured, and the table has the function once for each part.
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

    def points(self, count: int) -> int:
        """How many points against MPFR: of libdevice's own fewer, whose exact results take up to 100 times as long."""
        return count // 10 if self.call.startswith("libdevice.") else count

    def least_for(self, dtype: str) -> float:
        """In whose ulps smaller results count: what float64 has lost float32 never had."""
        return 0.0 if dtype == "float32" and self.rounded else self.least

    def call_for(self, dtype: str) -> str:
        """How it is called on numbers of a type."""
        if dtype == "float32" and self.single_call:
            return self.single_call
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
    """A function of `cuda.libdevice`: most are computed in float64 on float32, too."""
    rest = {"rounded": True, "single_call": f"libdevice.{name}f(x)", **rest}
    return Function(name, f"libdevice.{name}(x)", (low, high), SINGLES, **rest)


def of_library_with_integer(name, pairs, arguments, **rest):
    """The same of a number and an integer, which the arguments say."""
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

    It is a function with `fastmath=True`, which changes nothing on a CPU, or one of libdevice's that are called fast.
    """

    call: str
    # Which arguments, as an expression of a kernel, and in words.
    condition: str
    where: str
    # The error is the distance itself, and not in ulps.
    absolute: bool = False
    # The name of the function that it approximates, if different: it approximates without `fastmath`, and is measured
    # everywhere.
    exact: str = ""
    pairs: str = "near"

    @property
    def arity(self) -> int:
        """How many numbers it takes."""
        return 2 if "y" in self.call else 1


NEAR_ONE, FAR_FROM_ONE = "0.5 <= x <= 2.0", "1.1754944e-38 <= x < 0.5 or 2.0 < x <= 3.4028235e38"
QUOTIENTS = "1.1754944e-38 <= abs(y) <= 8.5e37 and abs(x) >= 1.1754944e-38 and 1.1754944e-38 <= abs(x / y) <= 3.4e38"
POWERS = "1.1754944e-38 <= x <= 3.4028235e38 and abs(y) <= 10.0 and 1.1754944e-38 <= math.pow(x, y) <= 3.4e38"

# Calls, what they approximate, where. `math.NAME(x)` has it with `fastmath`, libdevice under a name of its own.
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
    """What a row of the table is called."""
    call = function.call_for(dtype).format(half="m")
    for range_, limit in ((">", function.above), ("<", function.below)):
        if limit is not None:
            return f"{call}, x {range_} {limit:g}" + (" (*)" if function.least else "")
    return call
