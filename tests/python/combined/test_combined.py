"""Programs of `combined`, for fixed seeds: divergent exits combined with rows, and others.

They run in a separate process, so that a program that hangs is reported by its seed. `python tests/python/combined`
runs very many.
"""

import itertools
import re

import pytest

from combined import check
from combined.features import Pairs
from combined.guide import Guide
from combined.impossible import reason
from combined.launches import Launch, View
from combined.programs import BLOCK, BLOCK_2D, FLAT, generate, generate_with
from combined.sweep import Chosen, item_of, name_of, sweep

EXITS = ("search", "escape", "row_exit", "sparse")
ROWS = ("row_sum", "row_store", "in_place")
# Several programs of each of these: they differ in the form of their loops and in their numbers of threads.
OFTEN = [("collatz", "row_sum"), ("row_sum", "ragged"), ("ragged", "row_store")]
PAIRS = [Chosen(number, pair, "one") for number, pair in enumerate(itertools.product(EXITS, ROWS))]


def failures(items, device):
    """The programs that failed or are unsound."""
    bad = []
    sweep(items, jobs=1, device=device, timeout=60.0, report=lambda result: bad.append(result))
    return [f"{result.seed}: {result.outcome}" for result in bad if result.outcome != "passed"]


@pytest.mark.parametrize("pair", OFTEN)
def test_a_divergent_exit_beside_a_row(pair, device):
    assert failures([Chosen(seed, pair, "one") for seed in range(6)], device) == []


def test_other_exits_beside_rows(device):
    assert failures(PAIRS, device) == []


def test_combined(device):
    assert failures(range(24), device) == []


@pytest.mark.parametrize("piece", [*FLAT, *BLOCK, *BLOCK_2D])
def test_pieces_are_sound(piece):
    """No race, no index out of bounds, no number that is too large: CPython alone."""
    kind = "one" if piece in FLAT else "block" if piece in BLOCK else "block two"
    assert check.judge(generate_with(1, (piece,), kind)) == ""


def test_a_wrong_element_is_seen(device):
    program = generate_with(3, ("row_sum",))
    wanted = check.expected(program)
    out = next(name for name in program.params if name.startswith("o"))
    wanted[0][program.launches[0].args[out].buffer][0] += 1
    with pytest.raises(check.Wrong, match=f"launch 0: {out}: 1 of"):
        check.Runner(device).compare(program, wanted)


@pytest.mark.cpu
def test_a_store_beside_an_array_is_seen(device):
    program = generate_with(3, ("row_sum",))
    runner = check.Runner(device)
    launch = program.launches[0]
    places = [runner.guarded.place(at, buffer, at_end=True) for at, buffer in enumerate(launch.buffers)]
    assert all(
        (beside == 0xA5).all() and inside.nbytes == buffer.nbytes
        for (_, inside, beside), buffer in zip(places, launch.buffers, strict=True)
    )
    kernel = runner.kernel("from weft import cuda\n\n@cuda.jit\ndef kernel(a):\n    a[-a.size - 1] = 1\n")
    made = Launch((1, 1, 1), (1, 1, 1), [launch.buffers[0]], {"a": View(0, 0, launch.buffers[0].shape, (1,))})
    with pytest.raises(check.Wrong, match="a store beside the array"):
        runner.on_host(kernel, made, [launch.buffers[0]], "launch")


def test_what_is_unsound_is_said():
    program = generate_with(3, ("row_sum",))
    out = next(name for name in program.params if name.startswith("o"))
    source = program.source
    program.source = source + f"    {out}[0] = i\n"
    assert "race" in check.judge(program)
    program.source = source + f"    {out}[i + 10**6] = 1\n"
    assert "[" in check.judge(program)


def test_pairs_that_are_rare_are_listed_with_the_reason():
    pairs = Pairs()
    pairs.add(("barrier", "context-array"), ("barrier", "strip-mining"))
    pairs.add(("block-merging", "strip-mining"), ("stack-per-thread",))
    text = "\n".join(pairs.table(2, 1, reason))
    assert re.search(r"^ +0  barrier \+ block-merging$", text, re.MULTILINE)
    assert re.search(r"^ +0  block-merging \+ stack-per-thread: a thread with a stack", text, re.MULTILINE)
    assert not re.search(r"^ +\d+  barrier \+ strip-mining", text, re.MULTILINE)
    assert "occurred although" not in text
    pairs.add(("barrier", "stack-per-thread"))
    assert "barrier + stack-per-thread occurred although it cannot" in "\n".join(pairs.table(3, 1, reason))


@pytest.mark.parametrize("item", [12, Chosen(5, ("row_sum", "tile"), "block two", plain=False), *PAIRS[:1]])
def test_items_have_names(item):
    assert item_of(name_of(item)) == item


def test_a_guide_prefers_pieces_with_rare_features():
    """Two features each come from one piece, so the pair needs both pieces in one program."""
    of_piece = {"row_sum": "strided-access", "collatz": "tile-loop"}
    taken = []
    for wanted in (1, 10_000):
        pairs = Pairs()
        guide = Guide(0, 10_000, pairs, wanted)
        for item in itertools.islice(guide, 1500):
            pieces = () if isinstance(item, int) else item.pieces
            plans = (tuple(of_piece[piece] for piece in pieces if piece in of_piece),)
            pairs.add(*plans)
            guide.learn(item, plans)
        taken.append(pairs.pairs["strided-access", "tile-loop"])
    # A pair that has enough programs is left to chance.
    by_chance, guided = taken
    assert guided > 4 * by_chance, (guided, by_chance)


def test_a_seed_is_one_program():
    assert generate(7).source == generate(7).source != generate(8).source
