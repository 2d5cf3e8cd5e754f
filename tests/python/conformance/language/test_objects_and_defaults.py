"""Objects made in kernels, branches chosen by None, parameters with defaults."""

from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda

Point = namedtuple("Point", ["x", "y"], defaults=[5])


class Box(NamedTuple):
    low: Point
    high: Point
    weight: float = 0.5


@dataclass(frozen=True)
class Span:
    start: float
    stop: float
    step: float = 0.25


@cuda.jit(device=True)
def middle(box):
    return Point((box.low.x + box.high.x) / 2, (box.low.y + box.high.y) / 2)


@cuda.jit
def constructed(out, x, a):
    p = Point(x, 2.5)
    q = Point(y=1, x=x * 2)
    r = Point(7)
    box = Box(p, q)
    out[0] = p.x + p.y * 10
    out[1] = box.high.x - box.low.y + box.weight
    m = middle(Box(q, r, weight=2))
    out[2] = m.x * 10 + m.y
    s = Span(x, stop=9)
    out[3] = s.start + s.stop * s.step
    view = Span(0, a[1:])
    view.stop[0] = 3
    best = p
    for i in range(4):
        if i * 3 > best.x:
            best = Point(i * 3, best.y + 1)
    out[4] = best.x * 100 + best.y
    x0, y0 = best
    out[5] = x0 - y0 + len(p) + p[1]
    out[6] = Point(1, 2) < Point(1, 3)
    out[7] = p == Point(x, 2.5)


@pytest.mark.parametrize("x", [0, 4, 8])
def test_objects_are_made_in_kernels(x):
    out, a = np.zeros(8), np.zeros(2)
    constructed[1, 1](out, x, a)
    best = Point(x, 2.5)
    for i in range(4):
        if i * 3 > best.x:
            best = Point(i * 3, best.y + 1)
    assert out.tolist() == [
        x + 25,
        x * 2 - 2.5 + 0.5,
        (x * 2 + 7) / 2 * 10 + 3,
        x + 9 * 0.25,
        best.x * 100 + best.y,
        best.x - best.y + 2 + 2.5,
        1,
        1,
    ]
    assert a[1] == 3


def test_wrong_fields():
    @cuda.jit
    def missing(out):
        out[0] = Span(1).start

    @cuda.jit
    def unknown(out):
        out[0] = Point(1, z=2).x

    @cuda.jit
    def assigned(out, p):
        p.x = 3

    out = np.zeros(1)
    with pytest.raises(weft.CompileError, match="needs a value for `stop`"):
        missing[1, 1](out)
    with pytest.raises(weft.CompileError, match="no field `z`"):
        unknown[1, 1](out)
    with pytest.raises(weft.CompileError):
        assigned[1, 1](out, Point(1, 2))


@cuda.jit
def optional(out, a=None, b=None, n=3, scale=2.0):
    if a is None:
        out[0] = n
    else:
        out[0] = a[0] * n
    out[1] = -1 if b is None else b.x * scale
    if a is not None and a.size > 1:
        out[2] = a[1]
    if b is None or b.y > 1:
        out[3] = scale
    if not a is None:  # noqa: E714
        a[0] = 9


def test_branches_on_none_are_chosen_when_it_is_compiled():
    a, p = np.array([4.0, 5.0]), Point(3, 0)
    for args in [(), (a,), (None, p), (a, p), (a, None, 7)]:
        like_python(optional, np.zeros(4), *args, *(None, None, 3)[len(args) :])
    out = np.zeros(4)
    optional[1, 1](out)
    assert out.tolist() == [3, -1, 0, 2]
    optional[1, 1](out, n=8)
    assert out[0] == 8
    optional[1, 1](out, b=p, n=1)
    assert out.tolist() == [1, 6, 0, 2]
