"""Declares and launches kernels for the sanitizer, and locates their faults.

A kernel with a fault has the comment ``# fault`` on each line that the findings must name, and ``# may`` on lines that
they may also name. A clean kernel has neither.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """A kernel, its launch, and the tools that must find its fault; None if it has no fault."""

    kernel: Any
    tool: str | None
    grid: Any
    block: Any
    args: Callable[[], tuple[Any, ...]]
    shared: int
    cluster: Any = None

    @property
    def name(self) -> str:
        return str(self.kernel.py_func.__name__)

    def lines(self, mark: str) -> set[int]:
        """The lines with a mark."""
        source, first = inspect.getsourcelines(self.kernel.py_func)
        return {first + at for at, line in enumerate(source) if mark in line}

    def launch(self) -> None:
        """Launch it once."""
        self.kernel[self.grid, self.block, 0, self.shared, self.cluster](*self.args())


CASES: list[Case] = []


def _case(
    tool: str | None, grid: Any, block: Any, args: Callable[[], tuple[Any, ...]], shared: int, cluster: Any
) -> Any:
    def decorate(function: Callable[..., Any]) -> Any:
        kernel = cuda.jit(function, sanitize="all")
        CASES.append(Case(kernel, tool, grid, block, args, shared, cluster))
        return kernel

    return decorate


def planted(
    tool: str, grid: Any, block: Any, args: Callable[[], tuple[Any, ...]], shared: int = 0, cluster: Any = None
) -> Any:
    """Declare a kernel with a fault that a tool must find, or several tools with commas between."""
    return _case(tool, grid, block, args, shared, cluster)


def clean(grid: Any, block: Any, args: Callable[[], tuple[Any, ...]], shared: int = 0, cluster: Any = None) -> Any:
    """Declare a kernel without faults."""
    return _case(None, grid, block, args, shared, cluster)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    """Ones."""
    return np.ones(shape, np.float32)


def i32(*shape: int) -> np.ndarray[Any, Any]:
    """Zeros."""
    return np.zeros(shape, np.int32)


def count(n: int) -> np.ndarray[Any, Any]:
    """0, 1, 2, …."""
    return np.arange(n, dtype=np.int32)


def new(*shape: int, dtype: Any = np.float32) -> Any:
    """Uninitialized device memory."""
    return cuda.device_array(shape, dtype)
