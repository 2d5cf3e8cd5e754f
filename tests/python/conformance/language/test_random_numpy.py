"""Random programs with `typing="numpy"`, for fixed seeds: weft's results against those of CPython and NumPy.

`random_numpy.py` describes the programs; `fuzz.py --typing numpy` runs very many.
"""

import os

import pytest
from generators.random_numpy import generate, run

FIRST = int(os.environ.get("WEFT_FUZZ_FIRST", "0"))
COUNT = int(os.environ.get("WEFT_FUZZ_COUNT", "60"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_program(seed):
    program = generate(seed)
    print(f"seed {seed}\n{program.source}\n# the oracle's:\n{program.oracle}")
    assert run(program, optimized=seed % 4 == 0) == "passed"
