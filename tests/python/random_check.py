"""Runs one random program on weft and on the oracle, and says how they differ.

Used by `conformance/test_random_programs.py`, by `fuzz.py`, which runs very many, and by its minimizer.
"""

from __future__ import annotations

import linecache
import types
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import oracle
from harness import assert_exact, launch
from oracle import numeric
from typed_rewrite import elaborate

if TYPE_CHECKING:
    from random_programs import Program

plain_power = numeric._BINARY["**"]


class Inexact(Exception):
    """A product of floats was rounded: fused with an addition, it would not be. Or a power of floats was computed."""


class Meaningless(Exception):
    """An index was out of bounds: what is random in it cannot always be held in, as `x % 4` of a float can be 4."""


def exact_product(a, b, dtype):
    """A product that is exact, or an exception."""
    result = a * b
    if dtype.kind == "c":
        parts = [exact_product(x, y, x.dtype) for x in (a.real, a.imag) for y in (b.real, b.imag)]
        if not np.isfinite(parts).all():  # which of its parts are NaN depends on how the product is formed
            raise Inexact
    if dtype.kind == "f" and np.isfinite(a) and np.isfinite(b):
        if not np.isfinite(result) or Fraction(float(a)) * Fraction(float(b)) != Fraction(float(result)):
            raise Inexact
    return result


def exact_power(a, b, dtype):
    """A power of integers, or one that every library gives alike; else an exception."""
    if dtype.kind == "f" and np.isfinite(a) and a not in (0, 1) and b != 0:
        raise Inexact
    return plain_power(a, b, dtype)


EXACT = {"*": exact_product, "**": exact_power}  # for `numeric._BINARY`


def kernel_of(text: str) -> object:
    """The kernel of a module made of text, which lives in no file: linecache holds its lines."""
    name = f"<random program {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType("random_program")
    module.__file__ = name
    exec(compile(text, name, "exec"), vars(module))
    return module.kernel


def expected(program: Program) -> tuple[str, list[object]]:
    """The program with its types written out and what it must give; Inexact or Meaningless if nothing certain."""
    typed = elaborate(program.source, program.types, program.kept)
    try:
        return typed, oracle.launch(kernel_of(typed), program.grid, program.block, *program.args)
    except IndexError as error:
        raise Meaningless from error


def is_sound(program: Program) -> bool:
    """Whether a program's results depend on no race and on no memory that was never written."""
    one, two = (
        oracle.launch(kernel_of(text), program.grid, program.block, *program.args, otherwise=otherwise)
        for otherwise in (False, True)
        for text in [elaborate(program.source, program.types, program.kept)]
    )
    arrays = [pair for pair in zip(one, two, strict=True) if isinstance(pair[0], np.ndarray)]
    return all(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind in "fc") for mine, theirs in arrays)


def compare(program: Program, source: str, wanted: list[object]) -> None:
    """Runs a source on weft; AssertionError where its arguments differ from those that are wanted."""
    got = launch(kernel_of(source), program.grid, program.block, *program.args)
    for name, mine, theirs in zip(program.types, got, wanted, strict=True):
        if isinstance(mine, np.ndarray):
            assert_exact(mine, theirs, name)
