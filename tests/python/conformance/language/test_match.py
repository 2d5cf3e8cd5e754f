"""`match` statements."""

from __future__ import annotations

import enum
from collections import namedtuple

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda

Point = namedtuple("Point", ["x", "y"])
LIMIT = 12


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Level:
    HIGH = 9


@cuda.jit
def numbers(x, out):
    for i in range(x.size):
        match x[i]:
            case 0:
                out[i] = 100
            case 1 | 2 | -3:
                out[i] = 200
            case n if n > 50:
                out[i] = n * 2
            case (4 | 5) as m:
                out[i] = m + 0.5
            case m if m % 2 == 0 and m < LIMIT:
                out[i] = -m
            case 9:
                continue
            case _:
                out[i] = 300


def test_numbers_alternatives_and_guards():
    like_python(numbers, np.array([0, 1, 2, -3, 51, 4, 5, 6, 9, 7, 14, -8]), np.zeros(12))


@cuda.jit
def sequences(x, out):
    for i in range(x.shape[0]):
        match (x[i, 0], x[i, 1], 7):
            case (0, 0, _):
                out[i] = 1
            case (0, y, 8):
                out[i] = y
            case (0, y, _):
                out[i] = y * 2
            case [x0, (1 | 2) as y, z] if x0 < 5:
                out[i] = x0 + y + z
            case (first, *rest):
                out[i] = first * 100 + rest[0] * 10 + rest[1] + len(rest)


def test_sequences():
    like_python(sequences, np.array([(0, 0), (0, 5), (3, 1), (6, 1), (4, 9), (2, 2)]), np.zeros(6))


@cuda.jit
def by_length(t, out):
    match t:
        case ():
            out[0] = 1
        case (a,):
            out[0] = a
        case (a, (b, *c)):
            out[0] = a * 100 + b * 10 + len(c)
        case (a, b) | (b, a, 0):
            out[0] = a - b
        case (*front, last):
            out[0] = len(front) * 1000 + last
        case _:
            out[0] = -1


TUPLES = [(4,), (4, 9), (4, 9, 0), (4, 9, 1), (5, (6, 7, 8)), (1, 2, 3, 4.5)]


@pytest.mark.parametrize("t", TUPLES)
def test_tuples_of_any_length(t):
    like_python(by_length, t, np.zeros(1))


@cuda.jit
def values(color, x, out):
    match color:
        case Color.RED:
            out[0] = 1
        case Color.GREEN:
            out[0] = 2
    match x:
        case None:
            out[1] = 10
        case True:
            out[1] = 20
        case Level.HIGH:
            out[1] = 30
        case _:
            out[1] = x + 1


@pytest.mark.parametrize("color", Color)
@pytest.mark.parametrize("x", [None, True, 9, 3.5])
def test_named_values_and_none(color, x):
    like_python(values, color, x, np.zeros(2))


@cuda.jit
def point(p, out):
    match p:
        case (0, y):
            out[0] = y
        case (x, 0):
            out[0] = x * 2
        case (x, y):
            out[0] = x - y


@pytest.mark.parametrize("p", [Point(0, 3), Point(3, 0), Point(5.5, 2)])
def test_named_tuples_match_as_tuples(p):
    like_python(point, p, np.zeros(1))


@cuda.jit
def names_stay(x, out):
    y = 5
    match x[0]:
        case 3:
            y = 6
        case y if y > 100:
            out[1] = 1
    out[0] = y
    match x[0] + 1:
        case 4:
            match x[1]:
                case 0:
                    out[2] = 1
                case _:
                    out[2] = 2
        case _:
            return
    out[3] = 1


@pytest.mark.parametrize("x", [(3, 0), (3, 1), (4, 0), (200, 5)])
def test_names_bound_by_patterns(x):
    like_python(names_stay, np.array(x), np.zeros(4))


@cuda.jit
def shadowed(t, out):
    len = isinstance = tuple = 3
    match t:
        case (1, m):
            out[0] = m + len
        case _:
            out[0] = isinstance + tuple


@pytest.mark.parametrize("t", [(1, 5), 4])
def test_names_of_builtins_as_variables(t):
    like_python(shadowed, t, np.zeros(1))


def test_the_subject_is_evaluated_once():
    @cuda.jit
    def kernel(counter, out):
        match cuda.atomic.add(counter, 0, 1):
            case 5:
                out[0] = 1
            case 6 | 0:
                out[0] = 2

    counter, out = np.zeros(1, np.int64), np.zeros(1)
    kernel[1, 1](counter, out)
    assert (counter[0], out[0]) == (1, 2)


def test_patterns_of_classes_and_keys_are_refused():
    @cuda.jit
    def of_class(p, out):
        match p:
            case Point(x=0):
                out[0] = 1

    @cuda.jit
    def of_keys(p, out):
        match p:
            case {"x": 0}:
                out[0] = 1

    for kernel in (of_class, of_keys):
        with pytest.raises(weft.CompileError, match="pattern of keys or classes"):
            kernel[1, 1](Point(1, 2), np.zeros(1))


@cuda.jit
def typed_in_its_case(x, out):
    v = 2.5
    for i in range(x.size):
        match (x[i], i):
            case (v, 2):
                # `<<` needs integers: the earlier type of `v` does not matter here.
                out[i] = v << 3
            case (_, *rest):
                out[i] = v + rest[0]


def test_a_name_has_the_type_that_its_case_gives_it():
    like_python(typed_in_its_case, np.array([5, 6, 7, 8]), np.zeros(4))


@cuda.jit
def typed_before_its_guard(x, out):
    v = 2.5
    w = (1, 2)
    for i in range(x.size):
        match (x[i], i):
            case (v, 2) if v << 1 > 3:
                out[i] = v << 3
                v = v / 2
            case (w, (0 | 1) as k) if w % 2 == k or v > 100:
                out[i] = (w << 2) | k
                w = (w, k)
            case (_, 3) | (3, _) as both:
                out[i] = both[0] + 0.25
            case _:
                # Names of a matched pattern are bound even if its guard is false.
                out[i] = v + 0.5


@pytest.mark.parametrize("first", [4, 7])
def test_a_name_has_the_type_that_its_case_gives_it_behind_a_guard(first):
    like_python(typed_before_its_guard, np.array([first, 6, 0, 8, 3, 9, 1]), np.zeros(7))


@cuda.jit
def typed_in_one_of_several_ways(x, out):
    v = 0.5
    for i in range(x.size):
        match (i, x[i], x[i] * 2):
            case (0 | 3, v, _) | (1, _, v):
                out[i] = v << 3
                v = v + 0.5
            case (2, v, _) | (4, _, v) if v & 1 == 0:
                out[i] = v | 1
            case _:
                out[i] = v


def test_a_name_has_the_type_that_one_of_several_ways_gives_it():
    like_python(typed_in_one_of_several_ways, np.array([5, 6, 7, 8, 9, 10]), np.zeros(6))


@cuda.jit
def bound_in_a_condition(x, out):
    v = 0.5
    for i in range(x.size):
        if i > 0 and (v := x[i]) > 2 and v & 1:
            out[i] = v << 1
        else:
            out[i] = v
        v = v + 0.25


def test_a_name_that_a_condition_binds_has_its_type_where_the_condition_holds():
    like_python(bound_in_a_condition, np.array([5, 6, 7, 1, 9, 10]), np.zeros(6))
