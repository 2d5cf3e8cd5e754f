"""The result of a compilation, as in numba's dispatchers: `CompileResult`, and its code."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import Dispatcher, Signature, Type


class CodeLibrary:
    """The code of a compiled function, as strings.

    Parameters
    ----------
    name
        The function's name.
    dispatcher
        The dispatcher that it is of.
    args
        The types of its arguments.
    """

    def __init__(self, name: str, dispatcher: Dispatcher, args: tuple[Type, ...]) -> None:
        self.name = name
        self._dispatcher = dispatcher
        self._args = args

    def get_asm_str(self, cc: tuple[int, int] | None = None) -> str:
        """Give the PTX for a compute capability, the device's if none is given."""
        return self._dispatcher.inspect("asm", self._args, None if cc is None else f"sm_{cc[0]}{cc[1]}")

    def get_llvm_str(self) -> str:
        """Give the LLVM IR."""
        return self._dispatcher.inspect("llvm", self._args)


class CompileResult(NamedTuple):
    """A device function that was compiled for arguments of some types."""

    signature: Signature
    """The types of its result and arguments."""
    library: CodeLibrary
    """Its code."""
    metadata: dict[str, Any]
    """Metadata: see `get_metadata`."""
