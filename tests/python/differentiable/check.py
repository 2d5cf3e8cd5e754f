"""Compares the derivatives of a program along a random direction: adjoint kernel, tangent kernel and differences.

All arrays are outputs and parameters at once. With weights `v` of the contents after a launch and a direction `u` of
those before it, `<v, J u>` is computed three times: the adjoint kernel turns `v` to `J' v`, the tangent kernel `u` to
`J u`, and launches of the kernel along `u` give differences.
"""

from __future__ import annotations

import linecache
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
from weft import cuda
from weft.errors import CompileError

if TYPE_CHECKING:
    from differentiable.programs import Program

STEPS = (4e-4, 4e-5, 4e-6)
OF_DIFFERENCES, OF_MODES = 1e-6, 1e-12  # relative errors
Arrays = dict[str, Any]


class Wrong(Exception):
    """The derivatives differ."""


class Unresolved(Exception):
    """The differences do not converge, or values are infinite: the kernel is not smooth there."""


def vdot(one: Arrays, other: Arrays) -> float:
    """The real inner product."""
    return sum(float(np.sum(np.real(np.conj(value) * other[name]))) for name, value in one.items())


def size(one: Arrays, other: Arrays) -> float:
    """The inner product of the absolute values."""
    return sum(float(np.sum(np.abs(value) * np.abs(other[name]))) for name, value in one.items())


def noise(rng: np.random.Generator, value: Any) -> Any:
    """Normally distributed numbers like an array."""
    drawn = rng.standard_normal(value.shape)
    return drawn + 1j * rng.standard_normal(value.shape) if np.iscomplexobj(value) else drawn


def kernel_of(source: str) -> Any:
    """The kernel of a source, which has no file."""
    name = f"<differentiable program {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType("differentiable_program")
    module.__file__ = name
    sys.modules["differentiable_program"] = module
    exec(compile(source, name, "exec"), vars(module))
    return module.program


class Launcher:
    """A program with its arguments, a direction and weights."""

    def __init__(self, program: Program) -> None:
        rng = np.random.default_rng(program.seed)
        self.program, self.kernel = program, kernel_of(program.source)
        self.args = program.arguments(rng)
        self.bwd = cuda.vjp(self.kernel)
        self.names = self.bwd.adjoints(*self.args)
        values = {name: np.atleast_1d(self.args[program.params.index(name)]) for name in self.names}
        self.along = {name: noise(rng, value) for name, value in values.items()}
        self.weights = {name: noise(rng, value) for name, value in values.items()}

    def launch(self, kernel: Any, *args: Any) -> None:
        """Launch a kernel, its adjoint kernel or its tangent kernel."""
        kernel[self.program.grid, self.program.block, 0, self.program.shared](*args)
        cuda.synchronize()

    def copies(self, step: float = 0.0) -> list[Any]:
        """The arguments, moved along the direction."""
        made = []
        for name, value in zip(self.program.params, self.args, strict=True):
            along = self.along.get(name)
            if along is None:
                made.append(np.copy(value))
            elif np.ndim(value):
                made.append(value + step * along)
            else:
                made.append(float(value + step * along[0]))
        return made

    def loss(self, step: float) -> float:
        """The weighted sum of the contents after a launch."""
        args = self.copies(step)
        self.launch(self.kernel, *args)
        after = {name: np.atleast_1d(args[self.program.params.index(name)]) for name in self.names}
        return vdot(self.weights, after)

    def gradient(self) -> Arrays:
        """The adjoints after a launch of the adjoint kernel, which may write no argument."""
        args, found = self.copies(), {name: value.copy() for name, value in self.weights.items()}
        self.launch(self.bwd, *args, *found.values())
        for name, value, old in zip(self.program.params, args, self.args, strict=True):
            if not np.array_equal(value, old):
                raise Wrong(f"the adjoint kernel wrote to {name}")
        return found

    def tangents(self) -> Arrays:
        """The tangents after a launch of the tangent kernel."""
        found = {name: value.copy() for name, value in self.along.items()}
        self.launch(cuda.jvp(self.kernel), *self.copies(), *found.values())
        return found

    def differences(self, found: float, scale: float) -> None:
        """Compare a derivative with central differences of fourth order."""
        before = None
        for step in STEPS:
            far, near = (self.loss(h) - self.loss(-h) for h in (2 * step, step))
            expected = (8 * near - far) / (12 * step)
            rounding = 1e-15 * scale / step
            # Differences that change with the step are those of a kernel that is not smooth here.
            if abs(found - expected) <= max(OF_DIFFERENCES * (abs(expected) + 1e-2 * scale), 10 * rounding):
                return
            if before is not None and abs(expected - before) <= 1e-5 * abs(expected) + 20 * rounding:
                raise Wrong(f"the adjoint kernel has {found!r}, differences {before!r} and {expected!r}")
            before = expected
        raise Unresolved


def run(program: Program) -> str:
    """`passed`, `refused` with the reason, `unresolved`, or how the derivatives are wrong."""
    try:
        made = Launcher(program)
        gradient = made.gradient()
        value = vdot(gradient, made.along)
        if not np.isfinite([value, made.loss(0.0)]).all():
            return "unresolved: infinite"
        scale = size(gradient, made.along) + abs(made.loss(0.0))
        made.differences(value, scale)
        tangents = made.tangents()
        other = vdot(made.weights, tangents)
        scale = size(gradient, made.along) + size(made.weights, tangents)
        if abs(value - other) > OF_MODES * scale:
            return f"wrong: the adjoint kernel has {value!r}, the tangent kernel {other!r}, scale {scale!r}"
    except Wrong as error:
        return f"wrong: {error}"
    except Unresolved:
        return "unresolved: not smooth"
    except CompileError as error:
        return f"refused: {reason(error)}" if "E040" in str(error) else f"rejected: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "passed"


def reason(error: CompileError) -> str:
    """The first line of a refusal."""
    return str(error).split("\n", 1)[0]
