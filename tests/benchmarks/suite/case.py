"""A benchmark kernel: a factory for weft and Numba, a CUDA C++ kernel, inputs, and a reference.

A case's ``make`` is called with the module ``weft.cuda`` or ``numba.cuda`` and returns the kernel. The C++ kernel runs
the same algorithm on the same grid; it has the same arguments in the same order, followed by the extents as ints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


@dataclass(frozen=True)
class Work:
    """One size of a case: its launch configuration, its arguments, and lower bounds of its cost."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]
    """NumPy arrays and NumPy scalars, in the kernel's order."""
    outputs: tuple[int, ...]
    """Positions in `args` of the arrays that the kernel writes."""
    extents: tuple[int, ...]
    """The arguments of the C++ kernel after `args`."""
    n_bytes: int
    """Each input read once and each output written once; 0 for cases that are not timed on a GPU."""
    flops: float = 0.0
    initial: dict[int, np.ndarray] = field(default_factory=dict)
    """The contents of arrays before each launch, by their positions in `args`, for kernels that work in place."""


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[ModuleType], Any]
    signature: str
    cpp: str
    """The CUDA C++ implementation; its kernel is named ``peer``."""
    work: Callable[[str], Work]
    """The work of a size: "full", "tiny", or "cpu", which takes 1 to 100 ms on a processor with few cores."""
    reference: Callable[[ModuleType, tuple[Any, ...]], tuple[Any, ...]]
    """The outputs in higher precision, computed with NumPy or CuPy from the arguments."""
    tolerance: float = 1e-5
    accumulates: bool = False
    """Whether the kernel adds to its outputs: they are cleared instead of poisoned before the check."""
    counts_differences: bool = False
    """Whether the error is the share of elements that differ, for outputs that a rounding can change entirely."""
    flops_of: Callable[[tuple[Any, ...]], float] | None = None
    """The number of operations, if it depends on the result."""
    wider: bool = False
    """Whether Numba's types for the kernel's data (not indices or counters) are wider than the C++ kernel's."""
    narrow: Callable[[ModuleType], Any] | None = None
    """The kernel with the C++ kernel's types under ``typing="numpy"``, if ``make`` does not have them."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options of `cuda.jit` that the kernel has, for programs that give its function further ones."""

    def typed_as_numpy(self, cuda: ModuleType) -> Any:
        """The kernel with ``typing="numpy"``, which numba-cuda does not have."""
        return (self.narrow or self.make)(_NumpyTyping(cuda))

    def error(self, xp: ModuleType, outputs: tuple[Any, ...], expected: tuple[Any, ...]) -> float:
        """The largest error over all outputs, relative to the largest expected value; infinite if there is a NaN."""
        worst = 0.0
        for out, reference in zip(outputs, expected, strict=True):
            if self.counts_differences:
                error = float((out != reference).mean())
            else:
                difference = xp.abs(out.astype(xp.float64) - reference).max()
                error = float(difference / xp.abs(reference).max())
            worst = max(worst, error if error == error else float("inf"))
        return worst


class _NumpyTyping:
    """`weft.cuda`, whose `jit` has ``typing="numpy"``."""

    def __init__(self, cuda: ModuleType) -> None:
        self.cuda = cuda

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cuda, name)

    def jit(self, function: Any = None, **options: Any) -> Any:
        return self.cuda.jit(function, typing="numpy", **options)


def random(seed: int, *shape: int) -> np.ndarray:
    """Random float32 in [0, 1)."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def random_bytes(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def sized(size: str, full: Any, tiny: Any, cpu: Any = None) -> Any:
    """The value for a size: "cpu" is for a processor with few cores, and defaults to "full"."""
    return {"full": full, "tiny": tiny, "cpu": full if cpu is None else cpu}[size]


def blocks(extent: int, per_block: int) -> int:
    return -(-extent // per_block)
