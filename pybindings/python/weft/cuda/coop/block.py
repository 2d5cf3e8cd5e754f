"""Collective operations of the threads of a block, for kernels: reductions, scans, sorts, exchanges, loads.

The names are CUB's; docs/reference/intrinsics.md lists them.
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
