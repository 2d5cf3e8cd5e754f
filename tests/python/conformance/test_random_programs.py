"""Random programs: weft's results against the oracle's, for fixed seeds.

`WEFT_FUZZ_FIRST` and `WEFT_FUZZ_COUNT` choose other seeds; `random_programs.py` says what the programs are, and
`typed_rewrite.py` how the oracle comes to know the types of their variables.
"""

import math
import os
from fractions import Fraction

import numpy as np
import oracle
import pytest
from harness import assert_exact, launch, module
from oracle import numeric
from random_programs import generate
from typed_rewrite import elaborate

FIRST = int(os.environ.get("WEFT_FUZZ_FIRST", "0"))
COUNT = int(os.environ.get("WEFT_FUZZ_COUNT", "150"))


class Inexact(Exception):
    """A product of floats was rounded: fused with an addition, it would not be."""


def exact_product(a, b, dtype):
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
    result = plain_power(a, b, dtype)
    if dtype.kind == "f" and math.isfinite(a):
        if not math.isfinite(result) or Fraction(float(a)) ** int(b) != Fraction(float(result)):
            raise Inexact
    return result


plain_power = numeric._BINARY["**"]


def check(seed):
    program = generate(seed)
    typed = elaborate(program.source, program.types)
    text = f"seed {seed}, launched with {program.grid}, {program.block}\n{program.source}\n# typed:\n{typed}"
    print(text)
    try:
        expected = oracle.launch(module(typed).kernel, program.grid, program.block, *program.args)
    except Inexact:
        return False
    sources = [program.source] if seed % 5 else [program.source, typed]
    for source in sources:
        got = launch(module(source).kernel, program.grid, program.block, *program.args)
        for name, mine, theirs in zip(program.types, got, expected, strict=True):
            if isinstance(mine, np.ndarray):
                assert_exact(mine, theirs, name)
    return True


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_program(seed, monkeypatch):
    monkeypatch.setitem(numeric._BINARY, "*", exact_product)
    monkeypatch.setitem(numeric._BINARY, "**", exact_power)
    if not check(seed):
        pytest.skip("a product is not exact")
