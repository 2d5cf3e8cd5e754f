"""Making of profiles: counts of instructions become lines of the source."""

from __future__ import annotations

import ast
import functools
import linecache
from collections import defaultdict
from dataclasses import dataclass, replace

from weft import _weft
from weft._profile_code import in_registers, machine_code
from weft._profile_findings import findings
from weft.profile import Access, Array, Calls, Line, Occupancy, Profile, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

GPU = "h100"
"""The GPU that launches are profiled for by default."""

SECONDS = 5.0
"""The time for a launch by default: the blocks that did not run by then are estimated."""

_RECORDED = 2
"""The requests of an access whose addresses a profile has."""

_OPERATIONS = ("int16", "int32", "int64", "float16", "float32", "float64")


def profile(launcher: Any, args: tuple[Any, ...]) -> Profile:
    """Profile a launch that is not made; see `_LaunchConfiguration.profile`."""
    return profile_for(launcher, args, GPU, SECONDS)


def profile_for(launcher: Any, args: tuple[Any, ...], gpu: str, seconds: float) -> Profile:
    """Profile a launch that is not made for a GPU, in a time; see `weft.profile.profile`."""
    shape = launcher.griddim, launcher.blockdim, launcher.sharedmem, launcher.cluster
    return of_launch(launcher.dispatcher, shape, args, gpu, seconds)


def of_launch(dispatcher: Any, shape: tuple[Any, ...], args: tuple[Any, ...], gpu: str, seconds: float) -> Profile:
    """Profile a launch with an argument for each parameter; the shape is grid, block, shared memory and cluster."""
    griddim, blockdim, *_ = shape
    counted = _weft.profile_launch(dispatcher, shape, args, gpu, seconds)
    sass = machine_code(counted["cubin"])
    lines = in_registers(_lines(counted), sass)
    moved: dict[str, int] = defaultdict(int)
    for line in lines:
        for access in line.accesses:
            moved[access.array] += 32 * access.sectors
    occupancy = counted["occupancy"]
    made = Profile(
        kernel=counted["kernel"],
        types=tuple(counted["types"]),
        gpu=counted["gpu"]["name"],
        sm=counted["gpu"]["sm"],
        griddim=griddim,
        blockdim=blockdim,
        blocks=counted["blocks"],
        blocks_run=counted["ran"],
        error=counted["error"],
        bounds=tuple(counted["bounds"]),
        lines=tuple(lines),
        arrays=tuple(
            Array(name, nbytes, reads, writes, touched, moved[name])
            for name, nbytes, reads, writes, touched in counted["arrays"]
        ),
        occupancy=_occupancy(occupancy) if occupancy else None,
        findings=(),
        ptx=counted["ptx"],
        sass=sass,
        rates=tuple(counted["gpu"]["rates"]),
    )
    return replace(made, findings=tuple(findings(made, counted["gpu"])))


def _occupancy(fields: Mapping[str, Any]) -> Occupancy:
    return Occupancy(**{**fields, "limits": tuple(fields["limits"]), "by_block": tuple(fields["by_block"])})


def _lines(counted: Mapping[str, Any]) -> list[Line]:
    """Sum the instructions by line of the source, in the order of files and lines."""
    files: dict[int, str] = counted["files"]
    rows: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for row in counted["rows"]:
        rows[files.get(row[0], ""), row[1]].append(row)
    params = frozenset(name for each in counted["arrays"] for name in each[0].split(", "))
    names: list[str] = counted["counts"]
    machine: list[str] = counted["machine"]
    made = [_line(file, line, rows[file, line], params, names, machine) for file, line in sorted(rows)]
    # The simulator counts phases in all instructions of the PTX, and lines are without moves and branches.
    issued = sum(line.instructions for line in made) / max(sum(row[3] for row in counted["rows"]), 1)
    scaled = [
        replace(line, barrier_work=round(issued * line.barrier_work), barrier_waits=round(issued * line.barrier_waits))
        for line in made
    ]
    return [line for line in scaled if line.instructions or line.accesses]


def _line(file: str, line: int, rows: list[Any], params: frozenset[str], names: list[str], machine: list[str]) -> Line:
    operations: dict[str, int] = defaultdict(int)
    instructions = lanes = divergent = work = waits = 0
    accesses: dict[tuple[str, str, str, str], list[Any]] = {}
    callers: dict[tuple[tuple[str, int], ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    sectors, wavefronts = names.index("sectors"), names.index("wavefronts")
    for _file, _line_number, kind, warps, active, branches, executed, barrier, touched, chain in rows:
        divergent += branches
        work += barrier[0]
        waits += barrier[1]
        # `ptxas` removes moves and predicates short branches, so their numbers are not a GPU's.
        if kind in ("move", "control"):
            continue
        instructions += warps
        lanes += active
        if chain:
            own = callers[tuple(chain)]
            own[0] += warps
            own[1] += sum(access[2][sectors] for access in touched if access[0] == "global")
            own[2] += sum(access[2][wavefronts] for access in touched if access[0] == "shared")
        name = kind.split()[0]
        if name in _OPERATIONS and not any(executed):
            operations[name] += active
        for of_machine, count in zip(machine, executed, strict=True):
            if count:
                operations[of_machine.split()[0]] += count
        for space, array, counts, seen, stride, requests in touched:
            source = subscript(file, line, kind, space, array, params)
            key = (kind, space, array, source)
            sums = accesses.setdefault(key, [[0] * len(names), set(), []])
            sums[0] = [one + other for one, other in zip(sums[0], counts, strict=True)]
            if seen:
                sums[1].add(stride)
            sums[2].extend(Request(tuple(offsets), size) for offsets, size in requests)
    return Line(
        file=file,
        line=line,
        text=linecache.getline(file, line).rstrip("\n"),
        instructions=instructions,
        lanes=lanes,
        divergent_branches=divergent,
        operations=dict(sorted(operations.items())),
        accesses=tuple(_access(key, names, *sums) for key, sums in sorted(accesses.items())),
        barrier_work=work,
        barrier_waits=waits,
        calls=tuple(Calls(chain, *counts) for chain, counts in sorted(callers.items(), key=_most_instructions)),
    )


def _most_instructions(caller: tuple[tuple[tuple[str, int], ...], list[int]]) -> tuple[int, Any]:
    return -caller[1][0], caller[0]


def _access(
    key: tuple[str, str, str, str],
    names: list[str],
    counts: Iterable[int],
    strides: set[int | None],
    requests: list[Request],
) -> Access:
    kind, space, array, source = key
    named = dict(zip(names, counts, strict=True))
    del named["tag_wavefronts"], named["bank_conflicts"]
    stride = next(iter(strides)) if len(strides) == 1 else None
    return Access(
        kind=kind,
        space=space,
        array=array,
        source=source,
        stride=stride,
        first_requests=tuple(requests[:_RECORDED]),
        **named,
    )


@dataclass(frozen=True)
class _Subscript:
    """A subscript in a file: its array, its source, and whether it is loaded and stored."""

    array: str
    source: str
    loads: bool
    stores: bool


@functools.lru_cache(maxsize=64)
def _subscripts(file: str) -> dict[int, list[_Subscript]]:
    """Give the subscripts of a file by line; those of atomic functions too, as subscripts."""
    found: dict[int, list[_Subscript]] = defaultdict(list)
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return found
    augmented = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AugAssign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            stores = not isinstance(node.ctx, ast.Load)
            loads = not stores or id(node) in augmented
            row = _Subscript(ast.unparse(node.value), ast.unparse(node), loads, stores)
            found[node.lineno].append(row)
        elif isinstance(node, ast.Call) and ".atomic." in f".{ast.unparse(node.func)}" and len(node.args) > 1:
            array, index = map(ast.unparse, node.args[:2])
            found[node.lineno].append(_Subscript(array, f"{array}[{index.strip('()')}]", loads=True, stores=True))
    return found


def subscript(file: str, line: int, kind: str, space: str, array: str, params: frozenset[str]) -> str:
    """Give the subscript of an access on a line as written; empty if several fit, or none.

    The line table has no columns of subexpressions. So it is the one with the parameter's name, and for shared and
    local memory the one with a name that is no parameter's.
    """

    def fits(row: _Subscript) -> bool:
        if not {"load": row.loads, "store": row.stores}.get(kind, row.loads and row.stores):
            return False
        return row.array in array.split(", ") if space == "global" else row.array not in params

    sources = {row.source for row in _subscripts(file).get(line, []) if fits(row)}
    return sources.pop() if len(sources) == 1 else ""
