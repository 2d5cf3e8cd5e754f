"""Random programs: weft's results against the oracle's, for fixed seeds.

`WEFT_FUZZ_FIRST` and `WEFT_FUZZ_COUNT` choose other seeds; `fuzz.py` runs very many. `random_programs.py` describes the
programs, and `typed_rewrite.py` how the oracle gets the types of their variables.
"""

import os

import pytest
from fuzz import grow_stacks
from generators.random_check import EXACT, Inexact, Meaningless, compare, expected, typed, unoptimized
from generators.random_programs import generate
from oracle import numeric

FIRST = int(os.environ.get("WEFT_FUZZ_FIRST", "0"))
COUNT = int(os.environ.get("WEFT_FUZZ_COUNT", "200"))
OWN = ("cuda.own_", "cuda.bfloat16", "cuda.brains")  # functions that only the oracle has


def check(seed):
    program = generate(seed)
    print(f"seed {seed}, launched with {program.grid}, {program.block}\n{program.source}")
    wanted = expected(program)
    optimized = seed % 4 == 0  # LLVM takes most of the time
    compare(program, program.source if optimized else unoptimized(program.source), wanted)
    text = typed(program) if seed % 5 == 0 else ""
    if text and not any(own in text for own in OWN):
        print(f"# typed:\n{text}")
        compare(program, text, wanted, tuples=True)


@pytest.fixture(scope="module", autouse=True)
def stacks():
    """Unoptimized code may need more GPU stack than weft reserves for recursive functions."""
    grow_stacks()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_program(seed, monkeypatch):
    for op, exact in EXACT.items():
        monkeypatch.setitem(numeric._BINARY, op, exact)
    try:
        check(seed)
    except Inexact:
        pytest.skip("a product is not exact")
    except Meaningless:
        pytest.skip("an index is out of bounds")
