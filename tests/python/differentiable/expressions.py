"""Random expressions of floats that have a derivative almost everywhere, and the device functions that they call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

# Of moderate size where the operand is: a program's values may not overflow.
UNARY = (
    *("math.sin({0})", "math.cos({0})", "math.tanh({0})", "math.atan({0})", "np.arctan({0})", "np.sin({0})"),
    *("math.exp(-{0} * {0})", "math.exp(math.sin({0}))", "np.exp(-abs({0}))", "math.expm1(-abs({0}))"),
    *("math.sqrt(1.0 + {0} * {0})", "np.sqrt({0} ** 2 + 0.5)", "np.cbrt(2.0 + math.sin({0}))"),
    *(
        "math.log(1.5 + {0} * {0})",
        "math.log1p({0} ** 2)",
        "np.log2(1.2 + abs({0}))",
        "math.log10(3.0 + math.cos({0}))",
    ),
    *("math.erf({0})", "math.erfc({0})", "math.asinh({0})", "math.sinh(math.sin({0}))", "math.cosh(math.cos({0}))"),
    *("math.asin(0.9 * math.sin({0}))", "math.acos(0.8 * math.cos({0}))", "math.atanh(0.7 * math.sin({0}))"),
    *("math.acosh(1.5 + {0} * {0})", "math.tan(0.9 * math.sin({0}))", "np.exp2(math.sin({0}))", "np.sinc({0})"),
    *(
        "abs({0})",
        "math.fabs({0} - 0.2)",
        "-{0}",
        "(-{0})",
        "{0} ** 2",
        "math.sin({0}) ** 3",
        "np.square(math.cos({0}))",
    ),
    *("(0.7 / (1.2 + {0} * {0}))", "np.reciprocal(2.0 + math.sin({0}))", "(1.5 + {0} ** 2) ** -0.5"),
    *("np.clip({0}, -0.8, 0.9)", "max({0}, 0.1)", "np.minimum({0}, 0.4)", "np.float64({0} - 0.1)", "float({0})"),
    *("0.5 * {0}", "({0} * 0.3 + 0.1)", "math.floor({0}) * 0.1", "({0} % 1.7)", "math.fmod({0}, 1.3)", "+{0}"),
    *("int({0} * 3.0) * 0.05", "round({0}) * 0.1", "math.degrees(0.01 * {0})", "math.modf({0})[0]"),
)
BINARY = (
    *("({0} + {1})", "({0} - {1})", "{0} * {1}", "({0} / (1.5 + {1} * {1}))", "0.5 * ({0} + {1})"),
    *("({0} + {1})", "({0} - {1})", "{0} * {1}", "({0} * {1} - {0})"),
    *("math.hypot({0}, 0.7 + {1})", "math.atan2({0}, 1.5 + {1} * {1})", "np.logaddexp({0}, {1})"),
    *("math.pow(1.2 + {0} * {0}, math.sin({1}))", "(1.2 + abs({0})) ** math.cos({1})", "math.copysign({0}, {1})"),
    *("max({0}, {1})", "min({0}, {1} + 0.3)", "np.maximum({0}, {1} - 0.2)", "np.minimum({0}, {1})"),
    *("({0} if i % 3 else {1} * 2.0)", "({0} if {0} > {1} else {1} - 0.2)", "({0} if {1} < 0.4 and i > 1 else 0.3)"),
)
# Of the results of any operands; for values of later iterations.
BOUNDED = ("math.sin({0})", "math.tanh({0})", "({0} / (1.0 + {0} * {0}))", "np.cos({0})", "0.8 * math.atan({0})")


@dataclass
class Helper:
    """A device function of two numbers, with the number of its results."""

    name: str
    source: str
    results: int


@dataclass
class Expressions:
    """Writes expressions. `leaves` are operands that are values everywhere, such as elements of arguments."""

    random: random.Random
    leaves: list[str] = field(default_factory=list)
    helpers: list[Helper] = field(default_factory=list)

    def value(self, names: list[str], depth: int = 2) -> str:
        """An expression of the names and the leaves."""
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice([*names, *names, *self.leaves, "0.75"])
        one = self.value(names, depth - 1)
        pick = self.random.random()
        if pick < 0.4:
            return self.random.choice(UNARY).format(one)
        other = self.value(names, depth - 1)
        calls = [each.name for each in self.helpers if each.results == 1]
        if calls and pick > 0.85:
            return f"{self.random.choice(calls)}({one}, {other})"
        return self.random.choice(BINARY).format(one, other)

    def bounded(self, names: list[str], depth: int = 1) -> str:
        """An expression whose value is at most 1.3 in size."""
        return self.random.choice(BOUNDED).format(self.value(names, depth))

    def helper(self, number: int) -> Helper:
        """A device function of `u` and `v`."""
        name = f"f{number}"
        kind = self.random.choice(["plain", "plain", "branch", "branch", "loop", "pair", "pair", "rule"])
        inner = Expressions(self.random, ["u", "v"], self.helpers)
        head = f"@cuda.jit(device=True)\ndef {name}(u, v):\n"
        one, other, third = (inner.value(["u", "v"], 2).replace("i % 3", "u > 0.3") for _ in range(3))
        one, other, third = (text.replace("i > 1", "v < 1.0") for text in (one, other, third))
        if kind == "plain":
            return Helper(name, f"{head}    return {one}\n", 1)
        if kind == "branch":
            body = f"    if u < {self.random.choice(['0.5', 'v', '0.0'])}:\n        return {one}\n"
            return Helper(name, f"{head}{body}    t = {other}\n    return t * {third}\n", 1)
        if kind == "loop":
            count = self.random.randrange(2, 12)
            body = f"    t = {one}\n    for k in range({count}):\n        t = t * 0.5 + math.sin(u * k) * v\n"
            return Helper(name, f"{head}{body}    return t\n", 1)
        if kind == "pair":
            return Helper(name, f"{head}    t = {one}\n    return t, {other} * t\n", 2)
        rule = f"def {name}_backward(u, v, r, g):\n    return g * v * math.cos(u * v), g * u * math.cos(u * v)\n\n\n"
        text = f"{rule}@cuda.custom_vjp(backward={name}_backward)\ndef {name}(u, v):\n    return math.sin(u * v)\n"
        return Helper(name, text, 1)
