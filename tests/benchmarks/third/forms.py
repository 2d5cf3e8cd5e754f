"""Forms of kernels of the third set: for the CPU only, and optionally as a host function with many launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suite.case import Case, Work

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def on_cpu(
    name: str,
    make: Callable[[ModuleType], Any],
    work: Callable[[str], Work],
    reference: Callable[[ModuleType, tuple[Any, ...]], tuple[Any, ...]],
    **more: Any,
) -> Case:
    """A case without a kernel in CUDA C++."""
    return Case(name, make, "", "", work, reference, **more)


def given(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    args: tuple[Any, ...],
    outputs: tuple[int, ...],
    extents: tuple[int, ...] = (),
    in_place: tuple[int, ...] = (),
) -> Work:
    """The work of a size. The arrays at `in_place` are reset to their present values before each launch."""
    return Work(
        grid, block, args, outputs, extents, 0, initial={position: args[position].copy() for position in in_place}
    )


class Host:
    """A host function that launches kernels many times; it is launched like one kernel.

    The function gets the grid, the block, and the arguments.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., None]:
        return lambda *args: self.function(*configuration, *args)
