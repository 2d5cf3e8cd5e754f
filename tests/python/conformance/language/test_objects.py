"""Named tuples, dataclasses, members of enums and `None` as arguments and as captured values.

A thread has the same results as the function in CPython.
"""

from __future__ import annotations

import copy
import enum
from collections import namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from weft import cuda

Point = namedtuple("Point", ["x", "y"])


class Grid(NamedTuple):
    origin: Point
    cells: Any
    scale: float = 2.0


@dataclass
class Particle:
    mass: float
    place: Any
    charge: int = -1


@dataclass(frozen=True, slots=True)
class Settings:
    rounds: int
    inner: Particle
    weights: tuple[float, float]


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    DEEP = 2.5


class Shape(enum.IntEnum):
    ROUND = 3
    FLAT = -4


class Other(enum.IntEnum):
    ONE = 1
    THREE = 3


class Planet(enum.Enum):
    EARTH = (5.976e24, 6.37814e6)
    MARS = (6.421e23, 3.3972e6)


def same(kernel: Any, *args: Any) -> list[Any]:
    """The arguments after a launch of one thread, which must equal those after a call of the Python function."""
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    kernel[1, 1](*mine)
    kernel.py_func(*theirs)
    for got, expected in zip(mine, theirs, strict=True):
        assert_same(got, expected)
    return list(mine)


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(got, np.ndarray):
        assert got.tolist() == expected.tolist()
    elif isinstance(got, tuple):
        for mine, theirs in zip(got, expected, strict=True):
            assert_same(mine, theirs)
    elif isinstance(got, Particle):
        assert_same(got.place, expected.place)


@cuda.jit
def of_points(out, p, q):
    out[0] = p.x + p.y * 2
    out[1] = p[0] - q[-1]
    x, y = q
    out[2] = x * y
    out[3] = len(p)
    out[4] = p == q
    total = 0
    for item in p:
        total += item
    out[5] = total


@pytest.mark.parametrize("q", [Point(3, 4), Point(5, -2), Point(1.5, 2)])
def test_named_tuples(q) -> None:
    same(of_points, np.zeros(6), Point(3, 4), q)


@cuda.jit
def of_grids(grid, out):
    for i in range(grid.cells.shape[0]):
        grid.cells[i] = (grid.origin.x + i) * grid.scale
    out[0] = grid.cells.size + grid[0].y


def test_arrays_in_named_tuples_come_back() -> None:
    grid, _ = same(of_grids, Grid(Point(1, 2.5), np.zeros(4)), np.zeros(1))
    assert grid.cells.tolist() == [2, 4, 6, 8]
    device = cuda.to_device(np.zeros(3))
    of_grids[1, 1](Grid(Point(1, 2.5), device, 3.0), np.zeros(1))
    assert device.copy_to_host().tolist() == [3, 6, 9]


@cuda.jit
def of_particles(particle, out):
    for i in range(3):
        particle.place[i] += particle.mass * particle.charge
    out[0] = particle.mass


@cuda.jit
def of_settings(settings, out):
    for _ in range(settings.rounds):
        out[0] += settings.weights[0] * settings.inner.mass + settings.weights[1]
        settings.inner.place[0] += 1


def test_dataclasses() -> None:
    particle, _ = same(of_particles, Particle(2.0, np.arange(3.0)), np.zeros(1))
    assert particle.place.tolist() == [-2, -1, 0]
    settings, out = Settings(3, Particle(2.0, np.zeros(1)), (0.5, 1)), np.zeros(1)
    of_settings[1, 1](settings, out)
    assert settings.inner.place[0] == 3
    assert out[0] == 6


@cuda.jit
def chosen(out, x, extra):
    if extra is None:
        out[0] = x
    else:
        out[0] = x + extra[0]
    if extra is not None:
        out[1] = extra[0]


@cuda.jit
def optional(out, x, bias=None, *, unused=None):
    out[0] = x


@cuda.jit
def defaulted(out, x, bias=None, scale=2):
    out[0] = x * scale
    if bias is not None:
        out[0] += bias[0]


def test_none() -> None:
    same(chosen, np.zeros(2), 5, None)
    same(chosen, np.zeros(2), 5, np.array([7.0]))
    same(chosen, np.zeros(2), 5, (None or 3, None))
    same(defaulted, np.zeros(1), 5)
    same(defaulted, np.zeros(1), 5, np.array([0.5]))
    out = np.zeros(1)
    defaulted[1, 1](out, 5, scale=3)
    assert out[0] == 15
    assert len(defaulted.overloads) == 2


@cuda.jit
def of_colors(out, a, b):
    out[0] = a == b
    out[1] = a != b
    out[2] = a is b
    out[3] = a == Color.RED
    out[4] = b is Color.GREEN
    if a == Color.GREEN:
        out[5] = a.value


@cuda.jit
def of_shapes(out, shape, n):
    out[0] = shape + n
    out[1] = shape * 2 > Shape.ROUND
    out[2] = shape == Shape.FLAT
    if n < Shape.ROUND:
        out[3] = Shape.FLAT - n
    out[4] = Shape.ROUND.value


@cuda.jit
def of_planets(out, a, b):
    out[0] = a == b
    out[1] = a is not b
    out[2] = a.value[0] / b.value[1]


@cuda.jit
def compared(out, a, b):
    out[0] = a == b
    out[1] = a != b
    out[2] = a is b
    out[3] = a is not b


def test_enums() -> None:
    for a in (Color.RED, Color.GREEN):
        for b in (Color.RED, Color.GREEN):
            same(of_colors, np.zeros(6), a, b)
    for shape in Shape:
        for n in (2, 7):
            same(of_shapes, np.zeros(5), shape, n)
    for a in Planet:
        same(of_planets, np.zeros(3), a, Planet.MARS)
    # Members of different classes are equal as ints, but not identical.
    for a, b in ((Shape.ROUND, Shape.ROUND), (Shape.ROUND, Other.THREE), (Color.RED, Other.ONE), (3, Shape.ROUND)):
        same(compared, np.zeros(4), a, b)
    # An `IntEnum` member is accepted for a declared int.
    declared = cuda.jit("void(float64[:], int32, int64)")(of_shapes.py_func)
    out = np.zeros(5)
    declared[1, 1](out, Shape.FLAT, 2)
    assert out.tolist() == [-2, 0, 1, -6, 3]


@cuda.jit
def met(out, shape, color, n):
    a = Shape.ROUND if n > 3 else Shape.FLAT
    out[0] = a is Shape.FLAT
    out[1] = a.value + 1
    if n < 2:
        b, c = shape, color
    else:
        b, c = Shape.FLAT, Color.DEEP
    out[2] = b is Shape.FLAT
    out[3] = b.value
    out[4] = c.value
    out[5] = c is color
    last = Shape.ROUND
    for _ in range(n):
        out[6] += last is Shape.ROUND
        last = shape if last is Shape.ROUND else Shape.ROUND
    out[7] = last + 0.5
    mixed = Shape.FLAT if n > 3 else n
    out[8] = mixed * 2


@pytest.mark.parametrize("n", [0, 2, 5])
def test_members_stay_members_where_paths_meet(n) -> None:
    for shape in Shape:
        same(met, np.zeros(9), shape, Color.GREEN, n)


ORIGIN = Point(3, 4.5)
BODY = Particle(1.5, (1, 2))
CHOSEN = Color.GREEN


@cuda.jit
def of_captured(out, n):
    out[0] = ORIGIN.x * ORIGIN[1]
    out[1] = BODY.mass + BODY.place[1] + BODY.charge
    out[2] = CHOSEN.value
    out[3] = CHOSEN == Color.GREEN
    made = Point(n, n * 2)
    out[4] = made.x + made.y
    out[5] = Point(y=1, x=n).x
    x, y = ORIGIN
    out[6] = x + y
    out[7] = Color["RED"] is Color.RED


def test_captured_objects_and_classes() -> None:
    same(of_captured, np.zeros(8), 5)


@cuda.jit
def shifted(point, by):
    return Point(point.x + by, point.y - by)


@cuda.jit
def through_functions(out, point):
    moved = shifted(point, 1)
    for _ in range(3):
        moved = shifted(moved, 2)
    out[0] = moved.x
    out[1] = moved.y


def test_named_tuples_go_through_device_functions() -> None:
    out = np.zeros(2)
    through_functions[1, 1](out, Point(1, 0.5))
    assert out.tolist() == [8, -6.5]


class Way(enum.Enum):
    NORTH = 0
    EAST = 1
    SOUTH = 2


WAY = Way.EAST


def test_a_comparison_of_known_members_is_known() -> None:
    @cuda.jit
    def known(out: Any) -> None:
        a = 1
        if WAY == Way.SOUTH:
            a = 2.5
        way = Way.NORTH
        if way is not Way.NORTH:
            a = 2.5
        match WAY:
            case Way.SOUTH | Way.NORTH:
                a = 2.5
            case Way.EAST:
                a += 3
        # `<<` needs an integer: the branches above are not typed.
        out[0] = a << 4

    out = np.zeros(1, np.int64)
    known[1, 1](out)
    assert out[0] == 64


def test_enums_of_one_name_are_told_apart_by_their_members() -> None:
    def made(**members: int) -> Any:
        return enum.IntEnum("Made", members, module="there", qualname="Made")

    @cuda.jit
    def both(out: Any, a: Any, b: Any) -> None:
        out[0] = a.value * 10 + b.value
        out[1] = a is b

    one, alike, other, renamed = made(A=1, B=2), made(A=1, B=2), made(A=3, B=2), made(A=1, C=2)
    for a, b, found in (
        (one.A, one.A, [11, 1]),
        (one.A, alike.A, [11, 1]),
        (one.A, other.A, [13, 0]),
        (other.B, one.B, [22, 0]),
        (one.A, renamed.A, [11, 0]),
    ):
        out = np.zeros(2)
        both[1, 1](out, a, b)
        assert out.tolist() == found
    # Two equivalent classes count as one: each kernel is compiled once for both.
    assert len(both.signatures) == 4
