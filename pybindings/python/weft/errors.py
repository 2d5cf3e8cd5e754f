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
    """The base of weft's exceptions."""


class CompileError(WeftError, TypingError, LoweringError, UnsupportedError):
    """A kernel that weft cannot compile; the text names file and line and shows the place.

    Parameters
    ----------
    message
        The text.
    diagnostics
        The same as a JSON array.
    """

    def __init__(self, message: str, diagnostics: str = "[]") -> None:
        Exception.__init__(self, message, diagnostics)
        # Numba's errors have the text as `msg`.
        self.message = self.msg = message
        self._json = diagnostics

    def __str__(self) -> str:
        return self.message

    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """One dictionary for each finding: code, message, place, labels, notes."""
        import json

        found: list[dict[str, Any]] = json.loads(self._json)
        return found


class InternalError(CompileError):
    """A fault of weft's own. Please report it with the text."""


class IntegerTooLargeError(WeftError, OverflowError, ValueError):
    """An integer with more than 64 bits, which no kernel takes."""


class KernelReturnsError(CompileError, TypeError):
    """A kernel that returns a value."""


class RemovedOptionError(WeftError, DeprecationError, TypeError):
    """An option of `cuda.jit` that is there no more; the text says what to write instead."""


class SourceError(WeftError, OSError):
    """A function whose text weft cannot find, or whose file no longer has it."""


class DriverError(WeftError, CudaAPIError, CudaRuntimeError, RuntimeError):
    """A call of the CUDA driver that failed; the text names the call.

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
    """CUDA C++ with errors; the text has the compiler's log."""


class NvrtcSupportError(NvrtcError, ImportError):
    """There is no NVRTC, or it cannot be used."""


class LaunchError(DriverError):
    """A launch that the device cannot run: too many threads, too much shared memory, an array on another device."""


class DeviceMemoryError(DriverError, MemoryError):
    """The device has no memory left."""


class EventError(DriverError, ValueError):
    """The time between events that have none: not recorded, not reached yet, or made with ``timing=False``."""


class CudaSupportError(DriverError, ImportError):
    """There is no CUDA device or no driver, and one is demanded."""


class KernelRuntimeError(DriverError):
    """A kernel failed while it ran."""


class SanitizerError(WeftError):
    """What the sanitizer has found in a launch; the text shows each finding with its lines.

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
    """The base of weft's warnings."""


class SanitizerWarning(WeftWarning):
    """What the sanitizer has found in a launch, with ``WEFT_SANITIZE_ACTION=warn``."""


class PerformanceWarning(WeftWarning, NumbaPerformanceWarning):
    """Something that works, slowly."""


class DeviceWarning(WeftWarning):
    """Kernels run somewhere else than a user may think."""


class CompileWarning(WeftWarning):
    """Something in a kernel that is likely not meant."""


class ReproducibilityWarning(CompileWarning):
    """Something in a kernel of ``reproducible=True`` that does not give the same bits everywhere."""


class LinkerWarning(WeftWarning, UserWarning):
    """What the compiler of code says that is linked with a kernel."""


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
