"""`numba.config` where it is weft's, and what weft hears of it where it is numba's.

Programs read it and write to it: ``config.CUDA_LOW_OCCUPANCY_WARNINGS = 0``. Those that weft has, in `weft.config`,
take effect; numba's names of them are in https://numba.readthedocs.io/en/stable/reference/envvars.html.
"""

from __future__ import annotations

import os
from types import ModuleType

from weft import config
from weft.numba import _modules, _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# numba's names, with weft's.
SHARED = {
    "CUDA_WARN_ON_IMPLICIT_COPY": "CUDA_WARN_ON_IMPLICIT_COPY",
    "CUDA_LOW_OCCUPANCY_WARNINGS": "CUDA_LOW_OCCUPANCY_WARNINGS",
    "CUDA_ARRAY_INTERFACE_SYNC": "CUDA_ARRAY_INTERFACE_SYNC",
    "CUDA_NVRTC_EXTRA_SEARCH_PATHS": "CUDA_NVRTC_EXTRA_SEARCH_PATHS",
    "CUDA_DEBUGINFO_DEFAULT": "DEBUG",
    "BOUNDSCHECK": "BOUNDSCHECK",
    "CUDA_DEFAULT_PTX_CC": "CUDA_DEFAULT_PTX_CC",
}


def _flag(name: str) -> int:
    return int(_settings.is_on(os.environ.get(name, "")))


class Config(ModuleType):
    """The settings under numba's names."""

    def __getattr__(self, name: str) -> Any:
        """Read a setting."""
        if name in SHARED:
            return getattr(config, SHARED[name])
        if name in ("ENABLE_CUDASIM", "DISABLE_CUDA", "DISABLE_JIT", "DISABLE_PERFORMANCE_WARNINGS"):
            return _flag(f"NUMBA_{name}")
        if name in ("NUMBA_NUM_THREADS", "NUMBA_DEFAULT_NUM_THREADS"):
            return os.cpu_count() or 1
        if name == "CACHE_DIR":
            return os.environ.get("NUMBA_CACHE_DIR", "")
        if name in ("OPT", "CUDA_USE_NVIDIA_BINDING", "CUDA_ENABLE_PYNVJITLINK", "CUDA_ENABLE_NRT"):
            return 3 if name == "OPT" else 0
        if name.startswith("__"):
            msg = f"module {self.__name__!r} has no attribute {name!r}"
            raise AttributeError(msg, name=name, obj=self)
        raise AttributeError(_modules.help_for(f"{self.__name__}.{name}"), name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set one; variables without a setting of weft are stored and have no effect."""
        if name in SHARED:
            setattr(config, SHARED[name], value)
        else:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        from weft.numba import _finder

        return _finder.import_module, (self.__name__,)


class Listened(ModuleType):
    """numba's own `numba.core.config`, which forwards assignments to weft's settings."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Write a setting, for numba and for weft."""
        super().__setattr__(name, value)
        if name in SHARED:
            setattr(config, SHARED[name], value)

    def __reduce__(self) -> tuple[Any, ...]:
        from weft.numba import _finder

        return _finder.import_module, (self.__name__,)
