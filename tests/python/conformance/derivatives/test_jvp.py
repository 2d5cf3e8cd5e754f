"""Tangent kernels beside adjoint kernels, dual numbers and differences."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import test_vjp
import test_vjp_memory
from gradients import adjoints, launched, noise, vdot
from weft import cuda
from weft.errors import CompileError

CASES = {
    name: test_vjp.CASES[name]
    for name in (
        "saxpy",
        "called",
        "iterated",
        "branches",
        "in_place",
        "stops",
        "histogram",
        "forces",
        "complex",
        "fortran",
    )
}
CASES |= {f"memory_{name}": case for name, case in test_vjp_memory.CASES.items() if name != "of_block"}


def tangents(kernel, grid, block, args, along, wrt=None):
    """Launches the tangent kernel; gives the arguments and the tangents by parameter afterwards."""
    fwd = cuda.jvp(kernel, wrt)
    names = fwd.tangents(*args)
    copies = [np.copy(value, order="K") if isinstance(value, np.ndarray) else value for value in args]
    given = {name: np.copy(along[name], order="K") for name in names}
    fwd[grid, block](*copies, *given.values())
    cuda.synchronize()
    return copies, given


@pytest.mark.parametrize("case", CASES)
def test_forward_and_reverse_mode_agree(case):
    """The dot product of the weights and the tangents is that of the gradients and the directions."""
    # All together: 10 s.
    kernel, grid, block, args, outputs = CASES[case]
    rng = np.random.default_rng(5)
    weights, gradients = adjoints(kernel, grid, block, args, outputs, rng)
    along = {name: np.zeros_like(value) for name, value in gradients.items()}
    for value in along.values():
        value[...] = noise(rng, value)
    copies, found = tangents(kernel, grid, block, args, along)
    for value, expected in zip(copies, launched(kernel, grid, block, args), strict=True):
        np.testing.assert_allclose(value, expected, 1e-12, err_msg="the tangent kernel does what the kernel does")
    one = sum(vdot(weights[name], found[name]) for name in outputs)
    other = sum(vdot(gradients[name], along[name]) for name in gradients)
    scale = sum(np.abs(gradients[name] * along[name]).sum() for name in gradients)
    assert abs(one - other) <= 1e-11 * scale


@cuda.jit
def product(x, out):
    """A loop without a bound, whose values reverse mode would have to keep."""
    p, k = 1.0, 0
    while k < x.size and p < 1e6:
        p = p * x[k] + math.sin(p)
        k += 1
    out[0] = p


def test_loops_without_a_bound():
    x = np.random.default_rng(2).random(37)
    _, found = tangents(product, 1, 1, (x, np.zeros(1)), {"x": np.ones(37), "out": np.zeros(1)})
    p, dp = 1.0, 0.0
    for v in x:
        p, dp = p * v + math.sin(p), dp * v + p + math.cos(p) * dp
    np.testing.assert_allclose(found["out"], dp, rtol=1e-13)


def test_only_some_arguments():
    args = 1.5, np.ones(4), np.zeros(4)
    fwd = cuda.jvp(test_vjp.saxpy, wrt="a")
    assert fwd.tangents(*args) == ("a", "y")
    _, found = tangents(test_vjp.saxpy, 1, 4, args, {"a": np.ones(1), "y": np.zeros(4)}, wrt="a")
    np.testing.assert_array_equal(found["y"], np.ones(4))


def test_a_pickle_and_wrong_calls():
    fwd = cuda.jvp(test_vjp.saxpy, wrt=("x",))
    assert repr(fwd) == "<tangent kernel of saxpy(a, x, y), wrt=('x',)>"
    assert pickle.loads(pickle.dumps(fwd)).tangents(1.0, np.zeros(3), np.zeros(3)) == ("x", "y")
    with pytest.raises(TypeError, match="its 3 arguments and 2 tangents, of `x`, `y`: got 1 tangents"):
        fwd[1, 4](1.0, np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match=r"the tangent of `x` has shape \(2,\)"):
        fwd[1, 4](1.0, np.zeros(3), np.zeros(3), np.zeros(2), np.zeros(3))
    with pytest.raises(TypeError, match=r"jvp\(\) takes a kernel"):
        cuda.jvp(test_vjp.scaled_sine)


def test_what_has_no_tangent_is_an_error():
    @cuda.jit
    def slot(count, x, y):
        at = cuda.atomic.add(count, 0, 1)
        y[at] = x[at]

    with pytest.raises(CompileError, match="E0401"):
        cuda.jvp(slot)[1, 1](np.zeros(1, np.int64), *[np.zeros(4)] * 4)
