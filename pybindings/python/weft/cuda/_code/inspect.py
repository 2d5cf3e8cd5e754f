"""The types of a kernel's variables, as a text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from weft._weft import Dispatcher


def types(dispatcher: Dispatcher, file: TextIO | None) -> None:
    """Print weft's IR of each compiled kernel, which has the types of all that it computes.

    Parameters
    ----------
    dispatcher
        The kernel.
    file
        The file to write to; the standard output by default.
    """
    for args, text in dispatcher.inspect_ir().items():
        shown = ", ".join(map(str, args))
        print(f"{dispatcher.__name__} ({shown})", "-" * 80, text.rstrip(), "=" * 80, sep="\n", file=file)
