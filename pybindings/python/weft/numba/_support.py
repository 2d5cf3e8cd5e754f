"""Small functions and constants of numba's inner modules that programs import."""

from __future__ import annotations

import importlib.util
import sys

from weft._weft import Signature, parse_signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# The versions whose API weft implements.
NUMBA_VERSION = "0.61.2"
CUDA_VERSION = "0.30.4"
version_info = tuple(int(part) for part in NUMBA_VERSION.split("."))

IMPLEMENTATION = "weft"


def _has_numba() -> bool:
    finder = sys.modules["weft.numba"]._installed
    return bool(finder.finder.has_numba) if finder is not None else importlib.util.find_spec("numba") is not None


def __getattr__(name: str) -> Any:
    """Give what depends on the process, and what needs NumPy."""
    if name == "HAS_NUMBA":
        return _has_numba()
    if name == "numpy_version":
        import numpy as np

        return tuple(int(part) for part in np.__version__.split(".")[:2])
    if name == "vector_types":
        return _vector_types()
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def _vector_types() -> dict[str, Any]:
    """List the types of vectors by numba's names of them: ``vector_types["float32x4"]``."""
    from weft import _vectors

    return {name: value for name, value in vars(_vectors).items() if name in _vectors.__all__ and "x" in name}


def signature(return_type: Any, *args: Any) -> Signature:
    """Make a signature of a return type and the arguments' types, as `numba.core.typing.signature`."""
    from weft.numba._types import own_type

    return Signature(own_type(return_type), [own_type(arg) for arg in args])


def normalize_signature(sig: Any) -> tuple[tuple[Any, ...], Any]:
    """Give the arguments' types of a signature, and its return type or None, as `numba.core.sigutils` has it."""
    parsed = parse_signature(sig)
    # A tuple of types has no return type.
    named = isinstance(sig, Signature) or (isinstance(sig, str) and not sig.lstrip().startswith("("))
    return tuple(parsed.args), parsed.return_type if named else None


def is_signature(sig: Any) -> bool:
    """Whether a value is a signature, as in `numba.core.sigutils`."""
    return isinstance(sig, str | tuple | Signature)


def get_arch_option(major: int, minor: int) -> str:
    """Give the name of a compute capability to NVVM: ``compute_90``."""
    return f"compute_{major}{minor}"


def raise_driver_not_found() -> NoReturn:
    """Raise the error of a missing driver: programs use it in place of functions that need one."""
    from weft.errors import CudaSupportError

    msg = (
        "no CUDA device can be used: there is no NVIDIA driver (libcuda.so.1), or it finds no GPU. Unset "
        "WEFT_DEVICE=cuda to run kernels on the CPU"
    )
    raise CudaSupportError(msg)


def get_version() -> tuple[int, int]:
    """Give the version of CUDA's runtime library."""
    from weft.cuda import runtime

    return runtime.get_version()


__all__ = ["get_arch_option", "get_version", "is_signature", "normalize_signature", "signature"]
