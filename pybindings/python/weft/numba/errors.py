"""numba's exceptions and warnings under numba's names; weft's own derive from those that mean the same.

The names, what derives from what, and the arguments are those of `numba.core.errors` and of numba-cuda's
`cudadrv.error` and `cudadrv.driver`, as numba 0.61 and numba-cuda 0.30 have them. Nothing here imports numba. Where it
is installed, `install` gives each class numba's own of that name as one more base (`join`), so that an ``except``
clause that names either catches what weft raises.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class _Error(Exception):
    """The base of `NumbaError` until `join`: Python only replaces a base by one with the same object layout."""


class _Warning(Warning):
    """The same of warnings."""


class NumbaError(_Error):
    """The base of what numba's compiler raises.

    Parameters
    ----------
    msg
        The text.
    loc
        The position in the program, if it is known.
    """

    msg: Any

    def __init__(self, msg: object = "", loc: object = None) -> None:
        Exception.__init__(self, msg)
        self.msg = msg
        self.loc = loc


class UnsupportedError(NumbaError):
    """Something that the compiler has no support for."""


class UnsupportedBytecodeError(Exception):
    """Bytecode that numba has no support for."""


class UnsupportedRewriteError(UnsupportedError):
    """A rewrite that numba has no support for."""


class IRError(NumbaError):
    """Something is wrong with numba's own form of the program."""


class RedefinedError(IRError):
    """A name that is defined twice."""


class NotDefinedError(IRError):
    """A name that is not defined."""


class VerificationError(IRError):
    """numba's own form of the program does not hold together."""


class DeprecationError(NumbaError):
    """Something that is there no more."""


class LoweringError(NumbaError):
    """A program with types that has no code."""


class ForbiddenConstruct(LoweringError):
    """Something that kernels cannot have."""


class TypingError(NumbaError):
    """A program whose types cannot be found."""


class UntypedAttributeError(TypingError):
    """An attribute that a type does not have."""


class ByteCodeSupportError(NumbaError):
    """Bytecode that cannot be read."""


class CompilerError(NumbaError):
    """An error of the compiler."""


class ConstantInferenceError(NumbaError):
    """A value that must be a constant is not one."""


class InternalError(NumbaError):
    """A fault of the compiler's own."""


class RequireLiteralValue(TypingError):
    """An argument that must be a literal."""


class ForceLiteralArg(NumbaError):
    """An argument that is to be taken as a literal."""


class LiteralTypingError(TypingError):
    """A value that has no literal type."""


class NumbaValueError(TypingError):
    """A value that is wrong."""


class NumbaTypeError(TypingError):
    """A type that is wrong."""


class NumbaAttributeError(TypingError):
    """An attribute that is not there."""


class NumbaAssertionError(TypingError):
    """An assertion that does not hold."""


class NumbaNotImplementedError(TypingError):
    """Something that is not there yet."""


class NumbaKeyError(TypingError):
    """A key that is not there."""


class NumbaIndexError(TypingError):
    """An index that is wrong."""


class NumbaRuntimeError(NumbaError):
    """An error of the machine's side."""


class CudaLoweringError(LoweringError):
    """A `LoweringError` of numba-cuda."""


class CudaDriverError(_Error):
    """An error of the driver."""


class CudaAPIError(CudaDriverError):
    """A call of the CUDA driver that failed.

    Parameters
    ----------
    code
        The driver's error number.
    msg
        The text.
    """

    def __init__(self, code: Any, msg: Any) -> None:
        Exception.__init__(self, code, msg)
        self.code = code
        self.msg = msg

    def __str__(self) -> str:
        return f"[{self.code}] {self.msg}"


class CudaRuntimeError(Exception):
    """An error of CUDA's runtime library."""


class NvvmError(Exception):
    """An error of NVVM, which weft does not use."""


class NvvmSupportError(ImportError):
    """NVVM is missing. weft does not use NVVM."""


class NvvmWarning(Warning):
    """A warning of NVVM, which weft does not use."""


class CCSupportError(RuntimeError):
    """A compute capability that is not supported."""


class NumbaWarning(_Warning):
    """The base of numba's warnings.

    Parameters
    ----------
    msg
        The text.
    loc
        The position in the program, if it is known.
    """

    def __init__(self, msg: object = "", loc: object = None, highlighting: bool = False) -> None:  # noqa: ARG002
        Warning.__init__(self, msg)
        self.msg = msg
        self.loc = loc


class NumbaPerformanceWarning(NumbaWarning):
    """Something that works, slowly."""


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    """Something that will not be there any more."""


class NumbaPendingDeprecationWarning(NumbaWarning, PendingDeprecationWarning):
    """Something that will be deprecated."""


class NumbaParallelSafetyWarning(NumbaWarning):
    """Something that is not safe in parallel."""


class NumbaTypeSafetyWarning(NumbaWarning):
    """A conversion that loses something."""


class NumbaExperimentalFeatureWarning(NumbaWarning):
    """Something that is tried out."""


class NumbaInvalidConfigWarning(NumbaWarning):
    """Options that do not fit together."""


class NumbaPedanticWarning(NumbaWarning):
    """Something that may be meant otherwise."""


class NumbaIRAssumptionWarning(NumbaPedanticWarning):
    """Something that numba's own form of the program does not hold to."""


class NumbaDebugInfoWarning(NumbaWarning):
    """A warning about debug information."""


class NumbaSystemWarning(NumbaWarning):
    """Something about the machine."""


__all__ = [name for name, value in globals().items() if isinstance(value, type) and name[0] != "_"]

# The classes to which `join` has added bases, with their previous bases.
_joined: dict[type, tuple[type, ...]] = {}


def join(*modules: ModuleType) -> None:
    """Let each class here derive from those of the same name in numba's modules, too."""
    # Base classes first: a derived class must see the new bases.
    for name in __all__:
        cls = globals()[name]
        others = [getattr(module, name, None) for module in modules]
        more = [other for other in others if isinstance(other, type) and not issubclass(cls, other)]
        # A class that derives from Python's own cannot be given a base with other objects.
        if not more or cls.__base__ in (Exception, Warning, ImportError, RuntimeError):
            continue
        _joined[cls] = cls.__bases__
        own = [base for base in cls.__bases__ if base.__module__ == __name__ and base not in (_Error, _Warning)]
        pythons = [base for base in cls.__bases__ if base.__module__ != __name__]
        cls.__bases__ = (*own, *dict.fromkeys(more), *pythons)


def join_core() -> None:
    """Let errors of the driver be those of `cuda.core`, by which numba-cuda launches, where a program has loaded it."""
    error = getattr(sys.modules.get("cuda.core._utils.cuda_utils"), "CUDAError", None)
    if isinstance(error, type) and not issubclass(CudaDriverError, error):
        bases = CudaDriverError.__bases__
        CudaDriverError.__bases__ = (*(base for base in bases if base is not _Error), error)


def part() -> None:
    """Take back what `join` did."""
    for cls, bases in reversed(_joined.items()):
        cls.__bases__ = bases
    _joined.clear()
