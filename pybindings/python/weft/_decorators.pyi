"""The decorators as type checkers see them: what they make of a function keeps its parameters.

A launch `kernel[grid, block](…)` takes what the function takes, and so does a call in another kernel, which gives what
the function returns. Annotations say what a checker holds calls to; launches do not look at them, so a parameter that
arrays of the host and of a device are passed for has none, or `Any`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

from weft._weft import Dispatcher, LaunchRule, Signature, Type
from weft.cuda._code.link import LinkableCode
from weft.cuda._rules import Output
from weft.cuda._ufunc.ufunc import Ufunc

_P = ParamSpec("_P")
_R = TypeVar("_R")

_Signature: TypeAlias = str | Signature | Type | tuple[Type, ...]
_Link: TypeAlias = str | LinkableCode
_Launch: TypeAlias = Callable[..., Any] | tuple[Any, ...] | LaunchRule

class Options(TypedDict, total=False):
    """The options of `cuda.jit`, but for `device`."""

    inline: bool | str | Callable[..., bool]
    forceinline: bool
    link: _Link | Sequence[_Link]
    debug: bool | None
    opt: bool | None
    lineinfo: bool
    cache: bool | None
    fastmath: bool
    reproducible: bool | None
    max_registers: int | None
    launch_bounds: int | Sequence[int] | None
    coarsen: int | Sequence[int] | Literal["auto"] | None
    coarsen_blocks: int | Sequence[int] | None
    tune: bool
    lto: bool | None
    shared_memory_carveout: int | str | None
    extensions: Sequence[Any] | None
    launch: _Launch | None
    out: Output | dict[str, Output] | None
    boundscheck: bool | None
    sanitize: str | Sequence[str] | bool | None
    wraparound: bool
    exceptions: bool
    typing: Literal["numba", "numpy"] | None
    source: str | None

class Decorator(Protocol):
    """The decorator that makes a kernel or a device function from a function."""

    def __call__(self, function: Callable[_P, _R], /) -> Dispatcher[_P, _R]: ...

class UfuncDecorator(Protocol):
    """The decorator that makes a ufunc from a function of numbers."""

    def __call__(self, function: Callable[..., Any], /) -> Ufunc: ...

@overload
def jit(  # type: ignore[overload-overlap]  # types are called to make signatures
    func_or_sig: _Signature | Sequence[_Signature] | None = None, device: bool = False, **options: Unpack[Options]
) -> Decorator: ...
@overload
def jit(func_or_sig: Callable[_P, _R], device: bool = False, **options: Unpack[Options]) -> Dispatcher[_P, _R]: ...
@overload
def vectorize(  # type: ignore[overload-overlap]  # the same
    ftylist_or_function: _Signature | Sequence[_Signature] | None = (),
    target: Literal["cuda"] = "cuda",
    identity: Literal[0, 1, "reorderable"] | None = None,
    cache: Literal[False] = False,
    *,
    nopython: bool = True,
) -> UfuncDecorator: ...
@overload
def vectorize(
    ftylist_or_function: Callable[..., Any],
    target: Literal["cuda"] = "cuda",
    identity: Literal[0, 1, "reorderable"] | None = None,
    cache: Literal[False] = False,
    *,
    nopython: bool = True,
) -> Ufunc: ...
