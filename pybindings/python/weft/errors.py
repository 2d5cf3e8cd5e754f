"""The exceptions and warnings of weft.

One exception for each kind of remedy: a `CompileError` is for the program's author, a `LaunchError` for the
launch's, a `DriverError` for the machine's, an `InternalError` for weft's. They derive from Numba's of the same meaning
(`weft.numba.errors`), so that ``except`` clauses of a program that moves go on working. Those may have bases of Numba's
own, with other arguments: what is here calls `Exception.__init__`.
"""

from __future__ import annotations

from weft.numba.errors import (
    CudaAPIError,
    CudaDriverError,
    CudaRuntimeError,
    DeprecationError,
    LoweringError,
    NumbaError,
    NumbaInvalidConfigWarning,
    NumbaPerformanceWarning,
    NumbaWarning,
    TypingError,
    UnsupportedError,
    join_core,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft.numba.errors import *  # noqa: F403
    from weft.sanitize import Finding


class WeftError(Exception):
    """The base class of weft's exceptions."""


class CompileError(WeftError, TypingError, LoweringError, UnsupportedError):
    """weft cannot compile a kernel; the message shows the file, the line and the code.

    Parameters
    ----------
    message
        The text.
    diagnostics
        The same as a JSON array.
    """

    def __init__(self, message: str, diagnostics: str = "[]") -> None:
        Exception.__init__(self, message, diagnostics)
        # Numba's errors have the message as `msg`.
        self.message = self.msg = message
        self._json = diagnostics

    def __str__(self) -> str:
        return self.message

    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """One dictionary for each finding: code, message, position, labels, notes."""
        import json

        found: list[dict[str, Any]] = json.loads(self._json)
        return found


class InternalError(CompileError):
    """A bug in weft. Please report it with the message."""


class IntegerTooLargeError(WeftError, OverflowError, ValueError):
    """An integer with more than 64 bits, which no kernel takes."""


class KernelReturnsError(CompileError, TypeError):
    """A kernel that returns a value."""


class RemovedOptionError(WeftError, DeprecationError, TypeError):
    """An option of `cuda.jit` was removed; the message says what to write instead."""


class SourceError(WeftError, OSError):
    """weft cannot find the source of a function."""


class DriverError(WeftError, CudaAPIError, CudaRuntimeError, RuntimeError):
    """A call of the CUDA driver failed; the message names the call.

    Parameters
    ----------
    msg
        The text.
    code
        The driver's error number, if a driver call failed; of a launch that was refused, what it would have been.
    """

    def __init__(self, msg: str, code: int | None = None) -> None:
        join_core()
        Exception.__init__(self, msg, code)
        self.msg = msg
        self.code = code

    def __str__(self) -> str:
        return str(self.msg)


class LinkerError(DriverError):
    """Code that cannot be linked with a kernel: a file that is not there, what the linker says."""


class NvrtcError(LinkerError):
    """CUDA C++ that was not compiled."""


class NvrtcCompilationError(NvrtcError):
    """CUDA C++ has errors; the message contains the compiler's log."""


class NvrtcSupportError(NvrtcError, ImportError):
    """NVRTC is missing or cannot be used."""


class LaunchError(DriverError):
    """A launch that the device cannot run: too many threads, too much shared memory, an array on another device."""


class DeviceMemoryError(DriverError, MemoryError):
    """The device has no memory left."""


class EventError(DriverError, ValueError):
    """The time between events that have none: not recorded, not reached yet, or made with ``timing=False``."""


class CudaSupportError(DriverError, ImportError):
    """A CUDA device is required, but there is no device or no driver."""


class KernelRuntimeError(DriverError):
    """A kernel failed while it ran."""


class SanitizerError(WeftError):
    """The sanitizer found errors in a launch; the message shows each finding with its lines.

    Parameters
    ----------
    message
        The text.
    findings
        The findings.

    Attributes
    ----------
    findings : list
        Each is a ``weft.sanitize.Finding``: ``tool``, ``kind``, ``kernel``, ``message``, ``count`` and ``accesses``.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        Exception.__init__(self, message, findings)
        self.message = message
        self.findings: list[Finding] = list(findings)

    def __str__(self) -> str:
        return self.message


class WeftWarning(Warning):
    """The base class of weft's warnings."""


class SanitizerWarning(WeftWarning):
    """The sanitizer found errors in a launch, with ``WEFT_SANITIZE_ACTION=warn``."""


class PerformanceWarning(WeftWarning, NumbaPerformanceWarning):
    """Something that works, slowly."""


class DeviceWarning(WeftWarning):
    """Kernels run somewhere else than a user may think."""


class CompileWarning(WeftWarning):
    """Something in a kernel that is likely not meant."""


class ReproducibilityWarning(CompileWarning):
    """An operation in a kernel with ``reproducible=True`` is not reproducible."""


class LinkerWarning(WeftWarning, UserWarning):
    """A warning of the compiler of linked code."""


class InvalidConfigWarning(WeftWarning, NumbaInvalidConfigWarning):
    """Options that do not fit together, or that do less than they say."""


__all__ = [
    "CompileError",
    "CompileWarning",
    "CudaAPIError",
    "CudaDriverError",
    "CudaRuntimeError",
    "CudaSupportError",
    "DeviceMemoryError",
    "DeviceWarning",
    "DriverError",
    "EventError",
    "IntegerTooLargeError",
    "InternalError",
    "InvalidConfigWarning",
    "KernelReturnsError",
    "KernelRuntimeError",
    "LaunchError",
    "LinkerError",
    "LinkerWarning",
    "LoweringError",
    "NumbaError",
    "NumbaInvalidConfigWarning",
    "NumbaPerformanceWarning",
    "NumbaWarning",
    "NvrtcCompilationError",
    "NvrtcError",
    "NvrtcSupportError",
    "PerformanceWarning",
    "RemovedOptionError",
    "ReproducibilityWarning",
    "SanitizerError",
    "SanitizerWarning",
    "SourceError",
    "TypingError",
    "UnsupportedError",
    "WeftError",
    "WeftWarning",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Give numba's further exceptions and warnings: `weft.numba.errors` has them all."""
        from weft.numba import errors

        if name in errors.__all__:
            return getattr(errors, name)
        from weft._missing import missing

        raise missing(f"module {__name__!r}", f"{__name__}.{name}", [*__all__, *errors.__all__])

    def __dir__() -> list[str]:
        from weft.numba import errors

        return sorted({*globals(), *errors.__all__})
