"""Finds the text of a function, and where Python packages lie."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def of(function: Callable[..., object], source: str | None) -> tuple[str, str, int]:
    """Name of the file, text, and number of its first line.

    The text is that of one function with its decorators, indented as in the file.

    Parameters
    ----------
    function
        A Python function.
    source
        Its text, if the user gave one.
    """
    import inspect

    name = function.__code__.co_filename
    if source is not None:
        return name, source, 1
    if function.__name__ == "<lambda>":
        msg = f"{name}:{function.__code__.co_firstlineno}: a lambda cannot be a kernel or a device function: use def"
        raise TypeError(msg)
    try:
        lines, first = inspect.getsourcelines(function.__code__)
    except (OSError, TypeError):
        msg = (
            f"weft compiles the text of `{function.__qualname__}`, but Python has none for it ({name}): it was made "
            "by exec or typed into a plain interpreter. Put it into a file or a notebook cell, or pass its text "
            "with cuda.jit(source=text)"
        )
        raise OSError(msg) from None
    return name, "".join(lines), max(first, 1)


def site_packages() -> list[str]:
    """Folders with installed packages, where libdevice may be."""
    import sys

    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
