"""Runs one random program on weft and on the oracle, and says how they differ.

Used by `conformance/test_random_programs.py`, by `fuzz.py`, which runs very many, and by its minimizer.
"""

from __future__ import annotations

import ast
import linecache
import math
import types
from typing import TYPE_CHECKING

import numpy as np
import oracle
from harness import assert_exact, launch
from oracle import numeric, rewrite
from typed_rewrite import elaborate
from weft import cuda

if TYPE_CHECKING:
    from random_programs import Program

plain_power = numeric._BINARY["**"]


class Inexact(Exception):
    """A product of floats was rounded: fused with an addition, it would not be. Or a power of floats was computed."""


class Meaningless(Exception):
    """An index was out of bounds, or a loop does not end: `x % 4` of a float can be 4, or NaN."""


def exact_product(a, b, dtype):
    """A product that is exact, or an exception."""
    result = a * b
    if dtype.kind in "iub":
        return result
    if dtype.kind == "c":
        parts = [exact_product(x, y, x.dtype) for x in (a.real, a.imag) for y in (b.real, b.imag)]
        if not np.isfinite(parts).all():  # which of its parts are NaN depends on how the product is formed
            raise Inexact
    if dtype.kind == "f" and math.isfinite(a) and math.isfinite(b):
        if not math.isfinite(result):
            raise Inexact
        (one, per_one), (two, per_two), (both, per_both) = (float(each).as_integer_ratio() for each in (a, b, result))
        if one * two * per_both != both * per_one * per_two:
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


def typed(program: Program) -> str:
    """The program with its types written out."""
    tree = elaborate(program.source, program.types, program.kept)
    return ast.unparse(ast.fix_missing_locations(tree))


def run_oracle(program: Program, *, otherwise: bool = False) -> list[object]:
    """The arguments after the program ran on the oracle with the types that weft must give."""
    tree = elaborate(program.source, program.types, program.kept)
    kernel = rewrite.kernel_of(tree, {"np": np, "cuda": cuda})
    return oracle.launch(kernel, program.grid, program.block, *program.args, otherwise=otherwise)


def expected(program: Program) -> list[object]:
    """What a program must give; an exception if that is not certain."""
    try:
        return run_oracle(program)
    except IndexError as error:
        raise Meaningless from error


def is_sound(program: Program) -> bool:
    """Whether a program's results depend on no race and on no memory that was never written."""
    one, two = (run_oracle(program, otherwise=otherwise) for otherwise in (False, True))
    arrays = [pair for pair in zip(one, two, strict=True) if isinstance(pair[0], np.ndarray)]
    return all(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind in "fc") for mine, theirs in arrays)


def compare(program: Program, source: str, wanted: list[object]) -> None:
    """Runs a source on weft; AssertionError where its arguments differ from those that are wanted."""
    got = launch(kernel_of(source), program.grid, program.block, *program.args)
    for name, mine, theirs in zip(program.types, got, wanted, strict=True):
        if isinstance(mine, np.ndarray):
            assert_exact(mine, theirs, name)
