"""Cooperative groups, for kernels: `this_grid().sync()`, `tiled_partition(block, 8)`, `reduce(group, x, plus)`.

The names are CUDA's; docs/reference/intrinsics.md lists them, and the methods of each group.
"""

from __future__ import annotations

from weft.cuda._kernel_names import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    return member(globals(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *member(globals(), "__all__")})
