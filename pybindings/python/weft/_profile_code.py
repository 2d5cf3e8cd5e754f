"""The code of a profile by line of the source: its PTX, and the machine code that `ptxas` makes of it.

Accesses are counted in the PTX. `ptxas` joins some of them, repeats those of loops that it unrolls, and keeps local
arrays in registers, which a comparison of the numbers of instructions shows.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections import Counter, defaultdict
from dataclasses import replace

from weft.cuda._code.sass import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.profile import Line

_ACCESS_OF_PTX = re.compile(r"(?:@!?%p\d+\s+)?(ld|st|atom|red)\.(?:\w+\.)*?(global|shared|local)\b")
_ACCESS_OF_SASS = re.compile(r"(?:@!?U?P\w+\s+)?(LD|ST|ATOM|RED)([GSL]?)\b")
_KINDS = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}
_SPACES = {"": "global", "G": "global", "S": "shared", "L": "local"}


def ptx_by_line(ptx: str) -> dict[tuple[str, int], list[str]]:
    """Give the instructions of PTX by file and line of the source."""
    files = {int(number): name for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.MULTILINE)}
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    place: tuple[str, int] | None = None
    for line in ptx.splitlines():
        stripped = line.strip()
        if location := re.match(r"\.loc\s+(\d+)\s+(\d+)", stripped):
            place = files.get(int(location[1]), ""), int(location[2])
        elif stripped.startswith((".visible", "}")):
            place = None
        elif place is not None and stripped.endswith(";") and not stripped.startswith("."):
            found[place].append(stripped)
    return found


def sass_by_line(sass: str) -> dict[tuple[str, int], list[str]]:
    """Give the instructions of machine code, as `nvdisasm` prints it with lines, by file and line of the source."""
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    place: tuple[str, int] | None = None
    for line in sass.splitlines():
        stripped = line.strip()
        if location := re.match(r'//## File "([^"]*)", line (\d+)', stripped):
            place = location[1], int(location[2])
        elif stripped.startswith(".section"):
            place = None
        elif place is not None and (instruction := re.match(r"/\*[0-9a-f]{4,}\*/\s+(.*;)", stripped)):
            found[place].append(instruction[1].replace(" ;", ";"))
    return found


def machine_code(cubin: bytes | None) -> str:
    """Give the text of machine code; empty if there is none, or `nvdisasm` is missing or fails."""
    if cubin is None or not shutil.which("nvdisasm"):
        return ""
    try:
        return _disassembled(cubin)
    except (RuntimeError, OSError):
        return ""


@functools.lru_cache(maxsize=16)
def _disassembled(cubin: bytes) -> str:
    """Disassemble once for all launches of a kernel."""
    return text_of(cubin, "-g", "-c")


def in_registers(lines: Iterable[Line], sass: str) -> list[Line]:
    """Give the lines without accesses to local memory if the machine code has none: local arrays are in registers.

    Functions that are not inlined are in the machine code too.
    """
    lines = list(lines)
    if not sass or "local" in {space for code in sass_by_line(sass).values() for _, space in _accesses_of_sass(code)}:
        return lines
    return [
        replace(line, accesses=tuple(access for access in line.accesses if access.space != "local")) for line in lines
    ]


def differences(line: Line, ptx: list[str], sass: list[str]) -> list[str]:
    """Show which accesses of a line the machine code has more or less often than the PTX."""
    if not sass:
        return []
    own, machine = Counter(_accesses_of_ptx(ptx)), Counter(_accesses_of_sass(sass))
    shown = []
    for kind, space in sorted({(access.kind, access.space) for access in line.accesses}):
        before, after = own[kind, space], machine[kind, space]
        if not before or before == after:
            continue
        why = "`ptxas` unrolls or copies" if after > before else "`ptxas` joins, moves or removes"
        shown.append(f"{before} {kind} of {space} memory in the PTX, {after} in the machine code: {why}")
    return shown


def _accesses_of_ptx(code: Iterable[str]) -> list[tuple[str, str]]:
    matches = (_ACCESS_OF_PTX.match(each) for each in code)
    return [(_KINDS[match[1]], match[2]) for match in matches if match]


def _accesses_of_sass(code: Iterable[str]) -> list[tuple[str, str]]:
    matches = (_ACCESS_OF_SASS.match(each) for each in code)
    kinds = {"LD": "load", "ST": "store", "ATOM": "atomic", "RED": "atomic"}
    return [(kinds[match[1]], _SPACES[match[2]]) for match in matches if match]
