"""NVIDIA's machine code as printed by nvdisasm or a profiler: its instructions, their loops, and their kinds.

Every instruction has one kind, which `kind` returns; an unknown instruction is "other". Does not need weft or a GPU.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

INTEGER64, INTEGER32 = "64-bit integer", "32-bit integer"
FLOAT16, FLOAT32, FLOAT64 = "float16", "float32", "float64"
SPECIAL, CONVERSION, MOVE = "special functions", "conversions", "moves"
ATOMIC, BRANCH, CONVERGENCE = "atomics", "branches", "convergence"
BARRIER, WARP, TENSOR, OTHER = "barriers", "warp", "tensor", "other"
ORDER = (INTEGER64, INTEGER32, FLOAT16, FLOAT32, FLOAT64, SPECIAL, CONVERSION, MOVE, ATOMIC, BRANCH, CONVERGENCE,
         BARRIER, WARP, TENSOR, OTHER)  # fmt: skip
"""The kinds in the order of tables; loads and stores, a kind for each space and width, come before the atomics."""

OPCODES = {
    INTEGER32: """
        IADD IADD3 IADD32I IMAD IMUL IMUL32I ISCADD LEA LOP LOP3 LOP32I SHF SHL SHR ISETP ISET IMNMX IABS INEG POPC FLO
        BREV PRMT SEL PLOP3 PSETP P2R R2P IDP IDP4A VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 VHMNMX BMSK SGXT
        """,
    FLOAT16: "HADD2 HADD2_32I HMUL2 HMUL2_32I HFMA2 HFMA2_32I HSETP2 HSET2 HMNMX2 HMNMX",
    FLOAT32: """
        FADD FADD2 FADD32I FMUL FMUL2 FMUL32I FFMA FFMA2 FFMA32I FSETP FSET FMNMX FMNMX3 FSEL FCHK FSWZADD RRO
        """,
    FLOAT64: "DADD DMUL DFMA DSETP DSET DMNMX",
    SPECIAL: "MUFU",
    CONVERSION: "F2F F2FP F2I F2IP I2F I2FP I2I I2IP FRND",
    MOVE: "MOV MOV32I CS2R S2R S2UR R2UR UR2UP R2B B2R",
    ATOMIC: "ATOM ATOMG ATOMS RED REDG ATOMCAS",
    BRANCH: "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL",
    CONVERGENCE: "BSSY BSYNC BREAK BMOV WARPSYNC YIELD ELECT NANOSLEEP",
    BARRIER: "BAR MEMBAR DEPBAR LDGDEPBAR ERRBAR FENCE SYNCS ARRIVES ACQBULK CCTL CGAERRBAR UCGABAR_ARV UCGABAR_WAIT",
    WARP: "SHFL VOTE VOTEU MATCH REDUX CREDUX",
    TENSOR: "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA WARPGROUP MOVM",
}
KIND_OF = {opcode: kind for kind, opcodes in OPCODES.items() for opcode in opcodes.split()}

LOADS = {
    "LDG": "global",
    "LDS": "shared",
    "LDL": "local",
    "LD": "generic",
    "LDC": "constant",
    "LDCU": "constant",
    "LDSM": "shared, tile",
}
STORES = {"STG": "global", "STS": "shared", "STL": "local", "ST": "generic", "STSM": "shared, tile"}
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
"""Bytes by modifier; without one it is 4."""

LINE = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>[^;]*);")
TEXT = re.compile(r"^\s*\{?\s*(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][A-Z0-9_]*(?:\.\w+)*)\s*(?P<operands>.*?)\s*\}?\s*$")
LABEL = re.compile(r"^\s*(?P<label>[.$\w]+):\s*$")
SECTION = re.compile(r"^\s*\.section\s+(?P<name>[^,\s]+)")
TARGET = re.compile(r"`\((?P<label>[^)]+)\)")


@dataclass(frozen=True)
class Instruction:
    opcode: str
    """With its modifiers, without the predicate: `LDG.E.64`."""
    operands: str
    loop: int | None = None
    """The shortest loop that contains it, by the index of the loop's first instruction in the function."""
    innermost: bool = False
    """Whether that loop contains no other loop."""


def instruction(text: str) -> Instruction | None:
    """Parses one instruction; None if the text has none."""
    found = TEXT.match(text.split(";")[0])
    return Instruction(found["opcode"], found["operands"]) if found else None


def uniform(name: str) -> str:
    """The opcode without the U of the uniform pipe: `UIADD3` is an `IADD3` that runs once per warp."""
    return name[1:] if name.startswith("U") and (name[1:] in KIND_OF or name[1:] in LOADS) else name


def is_move(name: str, modifiers: list[str], operands: str) -> bool:
    """Whether it is a copy in the form of an arithmetic instruction, to use another pipe."""
    if name == "IMAD":
        return "MOV" in modifiers
    # A product of zeros: HFMA2 R1, -RZ, RZ, 0, 0 loads a constant.
    return name == "HFMA2" and operands.split(", ")[1:3] == ["-RZ", "RZ"]


def is_wide(name: str, modifiers: list[str], operands: str) -> bool:
    """Whether it is integer arithmetic on 64 bits, or one half of it.

    These are products and shifts of 64 bits, instructions with a carry in, and sums with a carry out; the lower half of
    a comparison cannot be distinguished from a 32-bit comparison.
    """
    if {"WIDE", "X", "EX"} & set(modifiers) or any(modifier in ("64", "S64", "U64") for modifier in modifiers):
        return True
    parts = operands.split(", ")
    carries = len(parts) > 1 and re.fullmatch(r"!?U?P\d", parts[1]) is not None
    return name in ("IADD3", "LEA") and carries


def kind(each: Instruction) -> str:
    """The kind of an instruction; for loads and stores with the address space and the bytes per thread."""
    full, *modifiers = each.opcode.split(".")
    name = uniform(full)
    for verb, spaces in (("load", LOADS), ("store", STORES)):
        if name in spaces:
            width = next((WIDTHS[modifier] for modifier in modifiers if modifier in WIDTHS), 4)
            read_only = " read-only" if name == "LDG" and "CONSTANT" in modifiers else ""
            return f"{verb} {spaces[name]}{read_only}, {width} B"
    if name == "LDGSTS":
        width = next((WIDTHS[modifier] for modifier in modifiers if modifier in WIDTHS), 4)
        return f"load global to shared, {width} B"
    if is_move(name, modifiers, each.operands):
        return MOVE
    found = KIND_OF.get(name, OTHER)
    return INTEGER64 if found == INTEGER32 and is_wide(name, modifiers, each.operands) else found


def rank(name: str) -> tuple[int, str, int]:
    """The position of a kind in a table: arithmetic, memory by space and width, then the rest."""
    memory = ORDER.index(ATOMIC)
    if name in ORDER:
        place = ORDER.index(name)
        return (place if place < memory else place + 2, "", 0)
    words, width = name.rsplit(", ", 1)
    return (memory + name.startswith("store"), words, int(width.split()[0]))


def functions(disassembly: str) -> dict[str, list[Instruction]]:
    """The instructions of each function of a cubin, from the output of `nvdisasm -c`.

    The padding at the end of a function (NOP, and a branch to itself) is omitted. A loop is the code that a backward
    branch encloses.
    """
    found: dict[str, list[Instruction]] = {}
    section, lines = None, []
    for line in [*disassembly.splitlines(), ".section .end"]:
        if not (begins := SECTION.match(line)):
            lines.append(line)
            continue
        if section and section.startswith(".text."):
            found[section.removeprefix(".text.")] = function(lines)
        section, lines = begins["name"], []
    return found


def function(lines: Iterable[str]) -> list[Instruction]:
    """The instructions of one function, with their loops."""
    labels: dict[str, int] = {}
    code: list[Instruction] = []
    for line in lines:
        if label := LABEL.match(line):
            labels[label["label"]] = len(code)
        elif (match := LINE.match(line)) and (each := instruction(match["text"])) and each.opcode != "NOP":
            code.append(each)
    loops: dict[int, int] = {}  # the start of each loop: its last backward branch
    idle = set()
    for place, each in enumerate(code):
        target = TARGET.search(each.operands) if each.opcode.split(".")[0] == "BRA" else None
        begin = labels.get(target["label"], place + 1) if target else place + 1
        if begin == place:
            idle.add(place)
        elif begin < place:
            loops[begin] = max(place, loops.get(begin, place))
    spans = list(loops.items())
    inner = [span for span in spans if not any(o != span and span[0] <= o[0] and o[1] <= span[1] for o in spans)]

    def placed(place: int, each: Instruction) -> Instruction:
        around = [span for span in spans if span[0] <= place <= span[1]]
        if not around:
            return each
        shortest = min(around, key=lambda span: span[1] - span[0])
        return Instruction(each.opcode, each.operands, shortest[0], shortest in inner)

    return [placed(place, each) for place, each in enumerate(code) if place not in idle]


def count(code: Iterable[Instruction]) -> Counter[str]:
    return Counter(kind(each) for each in code)


SOURCE, EXECUTED = "Source", "Instructions Executed"
"""The columns of a profiler's page: an instruction, and how often warps executed it."""


def executed(page: str) -> Counter[str]:
    """Executed instructions of warps by kind, from the output of `ncu --page source --csv` for one launch.

    Raises ``ValueError`` if the columns of source and of executed instructions are missing.
    """
    counts: Counter[str] = Counter()
    source = column = None
    for row in csv.reader(page.splitlines()):
        if SOURCE in row and EXECUTED in row:
            source, column = row.index(SOURCE), row.index(EXECUTED)
        elif source is not None and column is not None and len(row) > max(source, column):
            times = row[column].replace(",", "").strip()
            if (each := instruction(row[source])) and times.isdigit() and each.opcode != "NOP":
                counts[kind(each)] += int(times)
    if column is None:
        raise ValueError(f"the profiler printed no table with the columns {SOURCE} and {EXECUTED}")
    return counts
