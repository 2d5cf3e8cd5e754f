"""Runs one random program on weft and on the oracle, and reports how the results differ.

Used by `conformance/language/test_random_programs.py`, by `fuzz.py`, which runs very many, and by its minimizer.
"""

from __future__ import annotations

import ast
import linecache
import math
import re
import sys
import types
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import oracle
from harness import assert_exact, copied
from oracle import bfloat16, numeric, rewrite
from oracle.emulate import Left
from weft import _weft, cuda

from generators.random_objects import Made, instantiate, names_of
from generators.typed_objects import plain
from generators.typed_rewrite import Undecided, elaborate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generators.random_programs import Program

plain_power = numeric._BINARY["**"]
plain_quotient = numeric._BINARY["/"]


class Inexact(Exception):
    """A product of floats was rounded, which a fused multiply-add would not do; or a power of floats was computed."""


class Meaningless(Exception):
    """An index was out of bounds, a loop does not end (`x % 4` of a float can be NaN), or types were not found."""


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
    """A power of integers, or one that is the same in every library; else an exception."""
    if dtype.kind == "f" and np.isfinite(a) and a not in (0, 1) and b != 0:
        raise Inexact
    return plain_power(a, b, dtype)


def exact_quotient(a, b, dtype):
    """A quotient. A complex one must be exact: otherwise it depends on the algorithm."""
    result = plain_quotient(a, b, dtype)
    if dtype.kind == "c":
        parts = [part for each in (result, a, b) for part in (float(each.real), float(each.imag))]
        if not np.isfinite(parts).all():
            raise Inexact
        real, imag, a_real, a_imag, b_real, b_imag = (Fraction(part) for part in parts)
        if (real * b_real - imag * b_imag, real * b_imag + imag * b_real) != (a_real, a_imag):
            raise Inexact
    return result


# Exceptions that random programs raise, also for a value that is None and an iterator without an item.
FAULTS = (AssertionError, ValueError, KeyError, RuntimeError, IndexError, ArithmeticError, TypeError, StopIteration)

bfloat16.REFUSED[:] = [Inexact]
EXACT = {"*": exact_product, "/": exact_quotient, "**": exact_power}  # for `numeric._BINARY`


def module_of(text: str) -> types.ModuleType:
    """A module made from a string. It has no file; its lines are in `linecache`."""
    name = f"<random program {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType("random_program")
    module.__file__ = name
    sys.modules["random_program"] = module  # dataclasses look into the module of a class
    exec(compile(text, name, "exec"), vars(module))
    return module


def unoptimized(source: str) -> str:
    """The source with a kernel that LLVM does not optimize."""
    return re.sub(
        r"@cuda\.jit(?:\((?!device)(.*)\))?\n",
        lambda found: f"@cuda.jit({found[1] or ''}{', ' * bool(found[1])}opt=False)\n",
        source,
    )


def typed(program: Program) -> str:
    """The program with its types written out."""
    tree = elaborate(program.source, program.types, program.kept, names_of(program.source))
    return ast.unparse(ast.fix_missing_locations(tree))


def run_oracle(program: Program, *, otherwise: bool = False) -> list[object]:
    """The arguments after the program ran on the oracle with the types that weft must infer."""
    names = names_of(program.source)
    tree = elaborate(program.source, program.types, program.kept, names)
    kernel = rewrite.kernel_of(tree, {**names, "np": np, "cuda": cuda})
    args = [plain(instantiate(arg, names)) for arg in program.args]
    Left.count = 0
    try:
        return oracle.launch(kernel, program.grid, program.block, *args, otherwise=otherwise)
    finally:
        program.faults = Left.count


def expected(program: Program) -> list[object]:
    """The expected results of a program; an exception if they are not well defined."""
    try:
        return run_oracle(program)
    except (IndexError, Undecided) as error:
        raise Meaningless from error


def is_sound(program: Program) -> bool:
    """Whether a program's results depend on no race and no uninitialized memory."""
    one, two = (run_oracle(program, otherwise=otherwise) for otherwise in (False, True))
    pairs = zip(arrays_in("", one), arrays_in("", two), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for (_, a), (_, b) in pairs)


def arrays_in(name: str, item: object) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of numbers in an argument: fields of records one by one, times as integers."""
    if isinstance(item, (tuple, list, Made)):
        for part in item.items if isinstance(item, Made) else item:
            yield from arrays_in(name, part)
    elif isinstance(item, (np.ndarray, np.void)):
        if item.dtype.names:
            for field in item.dtype.names:
                part = item[field]
                yield from arrays_in(f"{name}.{field}", part if part.dtype.names else np.asarray(part))
        elif item.dtype.kind in "US":  # their bytes
            yield name, np.ascontiguousarray(item).reshape(-1).view(np.uint8)
        else:
            yield name, item.view(np.int64) if item.dtype.kind in "mM" else item


def twin(arg: object) -> object:
    """A copy of an argument, with copies of its arrays."""
    if isinstance(arg, Made):
        return Made(arg.of, tuple(twin(item) for item in arg.items))
    return arg.copy() if isinstance(arg, np.void) else copied(arg)


def compare(program: Program, source: str, wanted: list[object], *, tuples: bool = False) -> None:
    """Runs a source on weft; AssertionError where its arguments differ from those that are wanted.

    With `tuples`, the source is the result of `typed`, in which objects have become tuples.
    """
    module = module_of(source)
    got = [twin(arg) for arg in program.args]
    args = [instantiate(arg, vars(module)) for arg in got]
    if tuples:
        args = [plain(instantiate(arg, names_of(program.source))) for arg in got]
    first = len(args) - len(program.named)
    named = dict(zip(program.named, args[first:], strict=True))
    told = None
    try:
        module.kernel[program.grid, program.block](*args[:first], **named)
    except FAULTS as error:
        told = error
    if program.faults and _weft.interprets_kernels():
        # The first thread that ends with a fault ends the launch.
        assert told is not None, f"{program.faults} threads end with a fault, and the launch raised nothing"
        return
    should = program.faults > 0 and "exceptions=True" in program.source
    assert (told is not None) == should, f"{program.faults} threads ended with a fault, and the host received {told!r}"
    for name, mine, theirs in zip(program.types, got, wanted, strict=False):
        pairs = zip(arrays_in(name, mine), arrays_in(name, theirs), strict=True)
        for (at, one), (_, two) in pairs:
            assert_exact(one, two, at)
