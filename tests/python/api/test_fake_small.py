"""Which variant of a kernel a launch runs, without a GPU: over the runtime tests' driver made of C."""

from __future__ import annotations

import pytest

COUNT = """
import os

# What is timed is printed with the rest.
os.dup2(1, 2)

@cuda.jit
def scale(out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor

out = cuda.to_device(np.zeros(4, np.int64))
"""

# The factor, the grid, the block: whether a launch with them has a kernel of its own.
LAUNCHES = [
    (2**31 - 1, 1, 4, False),
    (2**31, 1, 4, True),
    (-(2**31), 1, 4, False),
    (-(2**31) - 1, 1, 4, True),
    (5, 2**22 - 1, 512, False),
    (5, 2**22, 512, True),
]


@pytest.mark.parametrize(("factor", "grid", "block", "is_large"), LAUNCHES)
def test_large_launches_have_a_kernel_of_their_own(run, factor, grid, block, is_large):
    code = f"""
scale[1, 4](out, 3)
print("then", flush=True)
scale[{grid}, {block}](out, {factor})
scale[{grid}, {block}](out, {factor})
print(len(scale.overloads), flush=True)
"""
    printed = run(COUNT + code, WEFT_TIMING="1").split("then\n")[1]
    assert printed.split()[-1] == "1", "no variant is an overload of its own"
    assert printed.count("for any size") == is_large


def test_launches_with_no_facts(run):
    code = COUNT + "scale[1, 4](out, 2**40)\nscale[1, 4](out, 2)\n"
    printed = run(code, WEFT_TIMING="1", WEFT_LAUNCH_FACTS="0")
    assert "scale(" in printed
    assert "for any size" not in printed


def test_a_recorded_launch_keeps_to_what_it_was_recorded_for(run):
    code = """
with cuda.graph() as graph:
    scale[1, 4](out, 3)
graph.set_args(0, out, 2**31 - 1)
try:
    graph.set_args(0, out, 2**31)
except ValueError as error:
    print(error)
with cuda.graph() as graph:
    scale[1, 4](out, 2**40)
graph.set_args(0, out, 2**41)
graph.set_args(0, out, 1)
"""
    assert "below 2**31" in run(COUNT + code)
