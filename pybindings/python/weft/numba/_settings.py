"""numba's environment variables, led to weft's settings.

https://numba.readthedocs.io/en/stable/reference/envvars.html and numba-cuda's page of the same name say what they mean.
weft reads its settings once, when the first is needed: they are led before that. A variable of weft's own comes first.
"""

from __future__ import annotations

import os
import warnings

# numba's variable, weft's variable, and the value of weft's if numba's is on; None to copy the value.
_LED: tuple[tuple[str, str, str | None], ...] = (
    ("NUMBA_ENABLE_CUDASIM", "WEFT_DEVICE", "cpu"),
    ("NUMBA_DISABLE_CUDA", "WEFT_DEVICE", "none"),
    ("NUMBA_DISABLE_PERFORMANCE_WARNINGS", "WEFT_WARN_ON_IMPLICIT_COPY", "0"),
    ("NUMBA_DISABLE_PERFORMANCE_WARNINGS", "WEFT_LOW_OCCUPANCY_WARNINGS", "0"),
    ("NUMBA_CUDA_DEBUGINFO", "WEFT_DEBUG", "1"),
    ("NUMBA_BOUNDSCHECK", "WEFT_BOUNDSCHECK", "1"),
    ("NUMBA_CUDA_WARN_ON_IMPLICIT_COPY", "WEFT_WARN_ON_IMPLICIT_COPY", None),
    ("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "WEFT_LOW_OCCUPANCY_WARNINGS", None),
    ("NUMBA_CUDA_ARRAY_INTERFACE_SYNC", "WEFT_CUDA_ARRAY_INTERFACE_SYNC", None),
    ("NUMBA_CUDA_NVRTC_EXTRA_SEARCH_PATHS", "WEFT_NVRTC_EXTRA_SEARCH_PATHS", None),
    ("NUMBA_CUDA_DEFAULT_PTX_CC", "WEFT_DEFAULT_PTX_CC", None),
    ("NUMBA_CACHE_DIR", "WEFT_CACHE_DIR", None),
)

# Settings that would change a program and have no counterpart in weft, with numba's default and a replacement.
_WITHOUT = {
    "NUMBA_OPT": (("3", "max"), "pass `opt=False` to `cuda.jit`"),
    "NUMBA_DISABLE_JIT": (("0", ""), "kernels are always compiled"),
    "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": (("0", ""), "launch on `cuda.per_thread_default_stream()`"),
    "NUMBA_FORCE_CUDA_CC": (("",), "kernels are compiled for the device, and `cuda.compile_ptx` takes `cc=`"),
}

# The variables of weft that `lead` has set.
_set: list[str] = []


def is_on(value: str) -> bool:
    """Whether a variable that is a number says yes."""
    return value.strip() not in ("", "0")


def lead() -> None:
    """Set weft's variables by numba's."""
    for name, own, becomes in _LED:
        value = os.environ.get(name)
        if value is None or own in os.environ or (becomes is not None and not is_on(value)):
            continue
        if own.startswith(("WEFT_WARN", "WEFT_LOW")):
            value = str(int(is_on(value)))
        os.environ[own] = value if becomes is None else becomes
        _set.append(own)
    for name, (defaults, way) in _WITHOUT.items():
        value = os.environ.get(name)
        if value is not None and value not in defaults:
            from weft.errors import InvalidConfigWarning

            msg = f"weft has no setting for {name}={value}, which is ignored: {way}"
            warnings.warn(msg, InvalidConfigWarning, stacklevel=3)


def leave() -> None:
    """Take back what `lead` set."""
    for own in _set:
        os.environ.pop(own, None)
    _set.clear()
