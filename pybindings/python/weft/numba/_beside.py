"""Where numba is installed: what numba and weft know of each other, from the import of `numba.cuda` on."""

from __future__ import annotations

import sys
from types import ModuleType

from weft import config
from weft.numba import _config, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# numba's defaults: they must not override weft's own variables.
_DEFAULTS: dict[str, Any] = {
    "CUDA_WARN_ON_IMPLICIT_COPY": 1,
    "CUDA_LOW_OCCUPANCY_WARNINGS": 1,
    "CUDA_ARRAY_INTERFACE_SYNC": 1,
    "CUDA_NVRTC_EXTRA_SEARCH_PATHS": "",
    "CUDA_DEBUGINFO_DEFAULT": 0,
    "BOUNDSCHECK": None,
}


def join() -> None:
    """Let numba's classes catch what weft raises, and weft hear what is written to numba's settings."""
    found = sys.modules.get("numba.core.errors")
    if found is not None:
        errors.join(found)
    listened = sys.modules.get("numba.core.config")
    if listened is not None and type(listened) is ModuleType:
        listened.__class__ = _config.Listened
        for name, default in _DEFAULTS.items():
            value = getattr(listened, name, default)
            if value != default:
                setattr(config, _config.SHARED[name], value)


def part() -> None:
    """Undo it."""
    errors.part()
    listened = sys.modules.get("numba.core.config")
    if listened is not None and listened.__class__ is _config.Listened:
        object.__setattr__(listened, "__class__", ModuleType)
