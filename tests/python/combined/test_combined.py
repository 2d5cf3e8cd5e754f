"""Programs of `combined`, for fixed seeds: pairs of what threads do apart and of what they do along rows, and others.

`python tests/python/combined` runs very many.
"""

import itertools
import warnings

import pytest
from combined import check
from combined.programs import BLOCK, FLAT, generate, generate_with

EXITS = ("collatz", "search", "ragged", "escape", "skip", "row_exit")
ROWS = ("row_sum", "row_store", "in_place", "rows_by_centers", "function")
SEEDS = range(40)


@pytest.fixture(scope="module")
def runner(device):
    return check.Runner(device)


def run(program, runner):
    print(program.source)
    assert check.judge(program) == ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert check.run(program, runner)[0] == "passed"


@pytest.mark.parametrize(("one", "two"), list(itertools.product(EXITS, ROWS)))
def test_a_divergent_exit_beside_a_row(one, two, runner):
    number = EXITS.index(one) * len(ROWS) + ROWS.index(two)
    run(generate_with(number, (one, two) if number % 2 else (two, one)), runner)


@pytest.mark.parametrize("seed", SEEDS)
def test_combined(seed, runner):
    run(generate(seed), runner)


@pytest.mark.parametrize("piece", [*FLAT, *BLOCK])
def test_pieces_are_sound(piece):
    """No race, no index out of bounds, no number that is too large: CPython alone."""
    kind = "block" if piece in BLOCK else "one"
    for seed in range(4):
        program = generate_with(seed, (piece,), kind) if piece in FLAT else generate(seed)
        assert check.judge(program) == ""


def differs(source, change):
    """What comes of a program whose reference is that of another source."""
    program = generate_with(3, ("row_sum",))
    wanted = check.expected(program)
    change(program, wanted)
    return program, wanted


def test_a_wrong_element_is_seen(runner):
    program, wanted = differs("", lambda _, wanted: wanted[0][-1].__setitem__(0, 55))
    with pytest.raises(check.Wrong, match="launch 0"):
        runner.compare(program, wanted)


def test_what_is_unsound_is_said():
    program = generate_with(3, ("row_sum",))
    out = next(name for name in program.params if name.startswith("o"))
    program.source += f"    {out}[0] = i\n"
    assert "race" in check.judge(program)
    program.source = program.source.rsplit("\n", 2)[0] + f"\n    {out}[i + 200] = 1\n"
    assert "[" in check.judge(program)
