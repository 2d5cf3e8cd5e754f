"""The drop-in: programs written for `numba.cuda` run on weft as they are.

``python -m weft.numba script.py`` runs a program so, `install` begins it inside one. Then `numba.cuda` and its modules
are weft's, and where numba is not installed, so is what programs use of numba beside them. Where it is installed, the
rest of it is numba's own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.numba._finder import Installed

_installed: Installed | None = None


def install(*, processes: bool = True) -> None:
    """Make `numba.cuda` mean weft in this process, and in those that it starts.

    Call it before the program imports `numba.cuda`: names that it has already imported are unchanged. A second
    call does nothing.

    Parameters
    ----------
    processes
        Do so in the Python processes that this one starts, too: by a folder in their ``PYTHONPATH``.

    Examples
    --------
    >>> weft.numba.install()  # doctest: +SKIP
    >>> from numba import cuda  # weft's  # doctest: +SKIP
    """
    global _installed
    if _installed is None:
        from weft.numba import _finder, _settings

        _settings.lead()
        _installed = _finder.Installed(processes=processes)


def uninstall() -> None:
    """Take back what `install` did: the next import of `numba.cuda` is what it would have been without it.

    Examples
    --------
    >>> weft.numba.uninstall()
    >>> weft.numba.is_installed()
    False
    """
    global _installed
    if _installed is not None:
        from weft.numba import _settings

        _installed.remove()
        _settings.leave()
        _installed = None


def is_installed() -> bool:
    """Whether `numba.cuda` means weft in this process.

    Returns
    -------
    bool
        It is True after `install`, and under ``python -m weft.numba``.

    Examples
    --------
    >>> weft.numba.is_installed()
    False
    """
    return _installed is not None


__all__ = ["install", "is_installed", "uninstall"]
