"""Which variant of a kernel a launch runs, without a GPU: over the fake driver of the runtime tests."""

from __future__ import annotations

import pytest

COUNT = """
import os

# Timings are printed with the rest.
os.dup2(1, 2)

@cuda.jit
def scale(out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor

out = cuda.to_device(np.zeros(4, np.int64))
"""

# The factor, the grid, the block, and whether a launch with them has its own kernel.
LAUNCHES = [
    (2**31 - 1, 1, 4, False),
    (2**31, 1, 4, True),
    (-(2**31), 1, 4, False),
    (-(2**31) - 1, 1, 4, True),
    (5, 2**21 - 2**7, 512, False),
    (5, 2**21 - 2**7 + 1, 512, True),
    (5, 2**23 - 2**8, 4, False),
    (5, 2**23 - 2**8 + 1, 4, True),
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


# The tests use only the array's shape, its strides in elements of eight bytes, and whether it is too large. Nothing
# runs, so no element is read.
ARRAYS = [
    ("x[0, 0]", (2, 2**30 - 2**16), "C", False),
    ("x[0, 0]", (2, 2**30 - 2**16 + 1), "C", True),
    ("x[0, 0]", (2**16, 2**16), "C", True),
    ("x[0, 0]", (0, 2**30 - 2**16), "C", True),
    ("x[0]", (0,), (1,), True),
    ("x[out[0]]", (2**30 - 2**16,), "C", False),
    ("x[out[0]]", (2**30 - 2**16 + 1,), "C", True),
    ("x[0]", (2**28 - 1,), (1,), False),
    ("x[0]", (2**27,), (2,), True),
    ("x[0]", (2**27,), (-2,), True),
    ("x[0, 1]", (2**30, 2**30), (0, 0), False),
    ("x[0, 1]", (2**20, 2**8), (2**8, 1), True),
    ("x.size", (2, 2**30 - 2**16), "C", False),
    ("x.size", (3, 2**30 - 2**16), "C", True),
    ("x.shape[1] * x.shape[2]", (0, 2**16, 2**16), "C", True),
    ("x.shape[1] + x.shape[0]", (2**16, 2**16), "C", True),
    ("x.shape[1]", (2**16, 2**16), "C", False),
]


@pytest.mark.parametrize(("expression", "shape", "strides", "is_large"), ARRAYS)
def test_large_arrays_have_a_kernel_of_their_own(run, expression, shape, strides, is_large):
    layout = {"C": "::1"}.get(strides, ":")
    dims = ", ".join([":"] * (len(shape) - 1) + [layout])
    steps = None if strides == "C" else tuple(8 * step for step in strides)
    code = f"""
    import os
    os.dup2(1, 2)

    class Large:
        __cuda_array_interface__ = {{
            "version": 3, "typestr": "<i8", "data": (2**40, False), "shape": {shape}, "strides": {steps},
        }}

    @cuda.jit("void(int64[{dims}], int64[::1])")
    def first(x, out):
        out[0] = {expression}

    first[1, 1](Large(), cuda.to_device(np.zeros(1, np.int64)))
    """
    printed = run(code, WEFT_TIMING="1")
    assert printed.count("for any size") == is_large


def test_launches_with_no_facts(run):
    code = COUNT + "scale[1, 4](out, 2**40)\nscale[1, 4](out, 2)\n"
    printed = run(code, WEFT_TIMING="1", WEFT_SPECIALIZE="0")
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
