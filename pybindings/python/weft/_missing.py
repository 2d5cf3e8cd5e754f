"""Names that are not there: the error says which is meant, or what to write instead."""

from __future__ import annotations

import sys

from weft._weft import name_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType


def missing(what: str, path: str, known: Iterable[str]) -> Exception:
    """Make the error of an attribute that is not there.

    Parameters
    ----------
    what
        Whose attribute it is, as the sentence begins: ``module 'weft.cuda'``.
    path
        The whole path, such as ``weft.cuda.gird``, by which the table of the compiler has what to write instead.
    known
        The names that are there.

    Returns
    -------
    AttributeError or ImportError
        An `ImportError` for ``from … import`` of a module, which does not show the message of an `AttributeError`.
    """
    owner, _, name = path.rpartition(".")
    # Names with a leading underscore are usually read to test whether they exist.
    hint = "" if name.startswith("_") else name_hint(path, [other for other in known if not other.startswith("_")])
    if hint and _is_imported():
        return ImportError(f"cannot import name {name!r} from {owner!r}{hint}", name=owner)
    # Without `obj`: otherwise Python would also search for a similar name.
    return AttributeError(f"{what} has no attribute {name!r}{hint}", name=name, obj=None)


def _is_imported() -> bool:
    """Whether the statement that runs is ``from module import name``."""
    import dis

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "weft":
        frame = frame.f_back
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and dis.opname[code[at]] == "IMPORT_FROM"
