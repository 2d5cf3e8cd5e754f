"""The devices of the process and their contexts, as numba-cuda's module of this name has them."""

from __future__ import annotations

from weft.cuda._devices import close as reset
from weft.cuda._devices import current_context as get_context
from weft.cuda._devices import gpus, require_context

__all__ = ["get_context", "gpus", "require_context", "reset"]
