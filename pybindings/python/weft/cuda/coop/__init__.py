"""Collectives, for kernels: `coop.block.sum(x)`, `coop.block.exclusive_sum(x)`, `coop.warp.reduce(x, op)`.

All threads of the block, or all lanes of the warp, call them together. docs/reference/intrinsics.md lists them.
"""

from __future__ import annotations

from weft.cuda.coop import block, warp

__all__ = ["block", "warp"]
