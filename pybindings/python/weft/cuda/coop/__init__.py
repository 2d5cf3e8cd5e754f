"""Collectives, for kernels: `coop.block.sum(x)`, `coop.block.exclusive_sum(x)`, `coop.warp.reduce(x, op)`.

All threads of the block, or all lanes of the warp, call them together. docs/reference/intrinsics.md lists them.
"""

from __future__ import annotations

from weft.cuda.coop import block, warp

__all__ = ["block", "warp"]


def __getattr__(name: str) -> object:
    """Say which name is meant."""
    from weft._missing import missing

    raise missing(f"module {__name__!r}", f"{__name__}.{name}", __all__)
