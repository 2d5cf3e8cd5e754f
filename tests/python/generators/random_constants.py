"""Random constant expressions of literals with a given value, for `random_expressions.py`.

CPython's compiler folds each, beyond 64 bits too, so that a program means the same whichever of them it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oracle.constants import compiled

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from typing import TypeAlias

    Number: TypeAlias = "bool | int | float"
    Way: TypeAlias = "Callable[..., tuple[str, Number]]"


def spelled(draw: random.Random, value: Number) -> str:
    """An expression in parentheses that CPython folds to the value, of its type; the literal if none is found."""
    for _ in range(4):
        text = f"({written(draw, value, draw.randint(1, 3))})"
        found = compiled(text)
        if found is not None and found[0].__class__ is value.__class__ and repr(found[0]) == repr(value):
            return text
    return literal(value)


def literal(value: Number) -> str:
    """A literal, in parentheses if it has a sign."""
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


def written(draw: random.Random, value: Number, depth: int) -> str:
    """An expression that usually has the value; the caller discards one that is folded to another value."""
    if depth == 0:
        return literal(value)
    ways = BOOLS if isinstance(value, bool) else FLOATS if isinstance(value, float) else INTS
    near, bits = draw.randint(1, 9), draw.choice((1, 3, 31, 62, 63, 64, 70))
    way = draw.choice(ways)
    if isinstance(value, int) and value > 1 and draw.random() < 0.2:
        way = draw.choice(roots(value) or NATURALS)
    text, part = way(value, near, bits)
    return text.format(f"({written(draw, part, depth - 1)})")


def roots(value: int) -> list[Way]:
    """The ways to write a power."""
    found = ((round(value ** (1 / exponent)), exponent) for exponent in range(2, 65) if value < 2**80)
    return [
        lambda v, near, bits, root=root, exponent=exponent: (f"{{}} ** {exponent}", root)
        for root, exponent in found
        if root > 1 and root**exponent == value
    ]


# Each maps a value, a small number and a number of bits to a string and the value of the operand in that string.
BOOLS: list[Way] = [
    lambda v, near, bits: ("not {}", not v),
    lambda v, near, bits: ("not {}" if v else "not not {}", False),
    lambda v, near, bits: ("not (0j, '', None, (), 0.0)[{}]" if v else "not 'a' * {}", near % 5 if v else near),
    lambda v, near, bits: ("{} ^ True", not v),
    lambda v, near, bits: ("{} & True", v),
    lambda v, near, bits: ("(2, {})[1]", v),
]
FLOATS: list[Way] = [
    lambda v, near, bits: (f"{{}} - {near}", v + near),
    lambda v, near, bits: (f"{{}} * 2**-{near}", v * 2**near),
    lambda v, near, bits: ("-{}", -v),
    lambda v, near, bits: ("{} / 8", int(v * 8)),
    lambda v, near, bits: ("{} * 10**25 / (8 * 10**25)", int(v * 8)),
    lambda v, near, bits: ("{} * 2.0**-3", int(v * 8)),
    lambda v, near, bits: ("{} / 10**4", v * 10**4),
    lambda v, near, bits: ("{} ** True", v),
    lambda v, near, bits: (f"{{}} % {near}.0", v + near),
    lambda v, near, bits: ("{} * 2**64 ** -1 * 2**-6", v * 2**70),
    lambda v, near, bits: ("(0, {})[-1]", v),
]
INTS: list[Way] = [
    lambda v, near, bits: (f"{{}} - {near}", v + near),
    lambda v, near, bits: (f"{{}} + (1 << {bits})", v - (1 << bits)),
    lambda v, near, bits: (f"(1 << {bits}) - {{}}", (1 << bits) - v),
    lambda v, near, bits: ("~{}", ~v),
    lambda v, near, bits: ("-{}", -v),
    lambda v, near, bits: (f"{{}} >> {near}", (v << near) + near % 2),
    lambda v, near, bits: (f"{{}} ^ {near}", v ^ near),
    lambda v, near, bits: ("{} // 10**20", v * 10**20 + near),
    lambda v, near, bits: (f"{{}} * 1 ** {bits}", v),
    lambda v, near, bits: (f"({near}, {{}}, 0.5)[-2]", v),
    lambda v, near, bits: (f"((0, {{}}) * {near})[-1]", v),
    lambda v, near, bits: (f"((True,) + ({near}, {{}}))[2]", v),
    lambda v, near, bits: ("{} & ~(1 << 70)", v | 1 << 70),
]
NATURALS: list[Way] = [
    lambda v, near, bits: (f"{{}} % {v + 1}", v - (v + 1) * near),
    lambda v, near, bits: (hex(v), 0),
    lambda v, near, bits: (oct(v), 0),
    lambda v, near, bits: (f"b'0123456789'[{{}}] - {48 + v % 10 - v}", v % 10),
]
