"""CUDA's runtime library, as numba-cuda's module of this name has it: its version."""

from __future__ import annotations

from weft.cuda._devices import runtime

__all__ = ["runtime"]
