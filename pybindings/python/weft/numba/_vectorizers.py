"""The builders of ufuncs that numba's own `vectorize` and `guvectorize` use with ``target="cuda"``: they are weft's.

numba calls the class with the function, gives it each signature by `add`, and takes what `build_ufunc` makes
(numba/np/ufunc/decorators.py).
"""

from __future__ import annotations

import weft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Builder:
    def __init__(
        self, function: Callable[..., Any], identity: Any, cache: bool, options: dict[str, Any] | None
    ) -> None:
        self._function = function
        self._options = {"target": "cuda", "identity": identity, **(options or {})}
        if cache:
            msg = "caching is not supported"
            raise TypeError(msg)
        self._signatures: list[Any] = []

    def add(self, sig: Any) -> None:
        """Take a signature."""
        self._signatures.append(sig)

    def disable_compile(self) -> None:
        """Take no more signatures: those that there are decide already."""


class CUDAVectorize(_Builder):
    """Builds a ufunc of the device."""

    def __init__(
        self,
        func: Callable[..., Any],
        identity: Any = None,
        cache: bool = False,
        targetoptions: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(func, identity, cache, targetoptions)

    def build_ufunc(self) -> Any:
        """Make the ufunc."""
        return weft.vectorize(self._signatures, **self._options)(self._function)


class CUDAGUFuncVectorize(_Builder):
    """Builds a generalized ufunc of the device."""

    def __init__(
        self,
        func: Callable[..., Any],
        sig: str,
        identity: Any = None,
        cache: bool = False,
        targetoptions: dict[str, Any] | None = None,
        writable_args: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(func, identity, cache, targetoptions)
        self._layout = sig
        if writable_args:
            msg = "writable_args is not supported by the cuda target: the results are what is written"
            raise TypeError(msg)

    def build_ufunc(self) -> Any:
        """Make the generalized ufunc."""
        args = (self._signatures, self._layout) if self._signatures else (self._layout,)
        return weft.guvectorize(*args, **self._options)(self._function)


__all__ = ["CUDAGUFuncVectorize", "CUDAVectorize"]
