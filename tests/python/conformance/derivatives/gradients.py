"""Compares adjoint kernels with central differences in float64."""

from __future__ import annotations

import numpy as np
from weft import cuda

STEP = 1e-6


def launched(kernel, grid, block, args, shared=0):
    """Copies of the arguments after a launch, with bytes of dynamic shared memory."""
    copies = [np.copy(value) if isinstance(value, np.ndarray) else value for value in args]
    kernel[grid, block, 0, shared](*copies)
    cuda.synchronize()
    return copies


def vdot(a, b):
    """The real inner product, of real and complex arrays."""
    return float(np.sum(np.real(np.conj(a) * b)))


def noise(rng, value):
    """Random numbers like a value."""
    shape = np.shape(value)
    drawn = rng.standard_normal(shape)
    if np.iscomplexobj(value):
        drawn = drawn + 1j * rng.standard_normal(shape)
    return drawn.astype(np.asarray(value).dtype)


def adjoints(kernel, grid, block, args, outputs, rng, wrt=None, shared=0):
    """Launches the adjoint kernel. Gives the weights of outputs and the adjoints afterwards, by parameter."""
    bwd = cuda.vjp(kernel, wrt)
    params = kernel.py_func.__code__.co_varnames
    names = bwd.adjoints(*args)
    values = {name: args[params.index(name)] for name in names}
    weights = {name: noise(rng, values[name]) for name in outputs}
    given = {name: np.zeros_like(value if np.ndim(value) else [value]) for name, value in values.items()}
    for name in outputs:
        given[name][...] = weights[name]
    before = [np.copy(value) for value in args]
    bwd[grid, block, 0, shared](*args, *given.values())
    cuda.synchronize()
    for value, old in zip(args, before, strict=True):
        np.testing.assert_array_equal(value, old, "the adjoint kernel writes no argument")
    return weights, given


def check(kernel, grid, block, args, outputs, *, seed=1, directions=2, tolerance=1e-6, wrt=None, shared=0):
    """Compares gradients with central differences along random directions, one parameter at a time."""
    rng = np.random.default_rng(seed)
    weights, given = adjoints(kernel, grid, block, args, outputs, rng, wrt, shared)
    params = kernel.py_func.__code__.co_varnames

    def loss(number, value):
        changed = launched(kernel, grid, block, [*args[:number], value, *args[number + 1 :]], shared)
        return sum(vdot(weights[name], changed[params.index(name)]) for name in outputs)

    for name, gradient in given.items():
        number = params.index(name)
        for _ in range(directions):
            along = noise(rng, args[number])
            ahead, behind = (
                loss(number, args[number] + step * along if np.ndim(along) else float(args[number] + step * along))
                for step in (STEP, -STEP)
            )
            expected = (ahead - behind) / (2 * STEP)
            found = vdot(gradient.reshape(np.shape(along)), along)
            scale = 1 + abs(expected) + abs(ahead) + np.linalg.norm(gradient)
            assert abs(found - expected) <= tolerance * scale, (name, found, expected)
    return given


def check_tangents(kernel, grid, block, args, outputs):
    """Compares the tangent kernel with the adjoint kernel, along random directions of all parameters."""
    rng = np.random.default_rng(3)
    weights, gradients = adjoints(kernel, grid, block, args, outputs, rng)
    tangents = {name: noise(rng, gradient) for name, gradient in gradients.items()}
    directions = {name: np.copy(value) for name, value in tangents.items()}
    copies = [np.copy(value) if isinstance(value, np.ndarray) else value for value in args]
    cuda.jvp(kernel)[grid, block](*copies, *tangents.values())
    cuda.synchronize()
    found = sum(vdot(weights[name], tangents[name]) for name in outputs)
    expected = sum(vdot(gradients[name], directions[name]) for name in gradients)
    assert abs(found - expected) <= 1e-12 * (1 + abs(expected)), (found, expected)
