"""The sanitizer: ``python -m weft.sanitize program.py [args]``, and what it finds.

It runs a Python program with its kernels on the CPU, checks each access and each barrier, and prints the errors:
accesses out of bounds (memcheck), races (racecheck), memory that is read before it is written (initcheck), and barriers
and warp operations that some of their threads do not reach (synccheck). It checks CUDA's guarantees, independent of the
order in which the CPU runs the threads.

In a program, ``@cuda.jit(sanitize="all")`` checks one kernel and ``WEFT_SANITIZE=all`` all of them.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Access", "Call", "Finding", "main"]


@dataclass(frozen=True)
class Call:
    """A call that led to an access.

    Attributes
    ----------
    file, line, column, width
        Where: line and column count from 1, the width is in characters.
    text
        The line.
    function
        The kernel or device function that calls.
    """

    file: str
    line: int
    column: int
    width: int = 1
    text: str = field(default="", repr=False)
    function: str = ""


@dataclass(frozen=True)
class Access:
    """A thread on a line of the source.

    Attributes
    ----------
    file, line, column, width
        Where: line and column count from 1, the width is in characters.
    what
        "read", "write", "atomic", "barrier", "syncwarp", "shuffle", …; "index" where an index leads out of bounds.
    array
        The array as the source calls it; empty where that is not known.
    index
        The index of the element, where it is known.
    thread, block
        ``threadIdx`` and ``blockIdx``, as (x, y, z).
    text
        The line.
    function
        The kernel or device function.
    calls
        The calls that led there, the last one first; none in the kernel itself.
    """

    file: str
    line: int
    column: int
    what: str
    array: str
    index: tuple[int, ...] | None
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    width: int = 1
    text: str = field(default="", repr=False)
    function: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, however often it was seen.

    Attributes
    ----------
    tool
        "memcheck", "racecheck", "initcheck" or "synccheck".
    kind
        The kind of error, such as "race within a block".
    kernel
        The kernel's name.
    message
        The error in one sentence.
    count
        How often it was seen in the launch.
    accesses
        The accesses, the last one first.
    help
        How to fix it.
    """

    tool: str
    kind: str
    kernel: str
    message: str
    count: int
    accesses: list[Access]
    help: str = ""

    def __str__(self) -> str:
        from weft._sanitizer import shown

        return shown(self)

    def as_dict(self) -> dict[str, Any]:
        """Give it as what JSON can hold."""
        return asdict(self)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a program under the sanitizer, and return the exit code: 1 with findings, else the program's.

    Parameters
    ----------
    argv
        The arguments; those of the process if there are none.
    """
    from weft._sanitizer import run

    return run(list(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    # The program must see a single module of this name.
    from weft.sanitize import main as _main

    sys.exit(_main())
