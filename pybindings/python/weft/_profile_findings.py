"""The findings of a profile: the causes of lost time, ranked.

Each rule computes the time of what is in excess on the resource that it occupies, from the rates of the profile: L2 and
L1 move sectors, shared memory does wavefronts, and the schedulers issue instructions. L2 executes one atomic operation
a clock on a sector.

The share of a finding is that time over the longest time that any resource is busy, times the part of the longest time
that its own resource is busy: the others hide excess on a resource that is mostly idle.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from weft._profile_text import waiting
from weft.profile import Access, Finding, Line, Profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

_LEAST = 0.02
"""Findings with a smaller share are not reported."""

_SECTOR = 32
_WARP = 32

_ENOUGH_WARPS = 0.25
"""The part of the resident warps that hides the latency of memory in most kernels."""


@dataclass(frozen=True)
class _Times:
    """The rates of a GPU, and the longest time that a resource is busy in a launch."""

    clock: float
    multiprocessors: int
    sectors_per_second: float
    wavefronts_per_second: float
    instructions_per_second: float
    longest: float = 0.0

    @classmethod
    def of(cls, profile: Profile, gpu: Mapping[str, Any]) -> _Times:
        """Compute them for a launch."""
        multiprocessors = gpu["multiprocessors"]
        rates = dict(profile.rates)
        # A block runs on one multiprocessor.
        used = min(profile.blocks / multiprocessors, 1.0)
        times = cls(
            clock=gpu["clock_mhz"] * 1e6,
            multiprocessors=multiprocessors,
            sectors_per_second=min(rates["L2"], rates["L1"] * used),
            wavefronts_per_second=rates["shared memory"] * used,
            instructions_per_second=rates["instruction issue"] * used,
        )
        busy = [seconds for _, seconds in profile.bounds]
        busy.append(times.moving(profile))
        busy.extend(seconds for _, _, seconds in _contended(profile, times))
        return replace(times, longest=max(busy, default=0.0))

    def moving(self, profile: Profile) -> float:
        """Compute the time in which L2 moves all sectors."""
        return self.sectors(profile.total("global", "sectors") + profile.total("local", "sectors"))

    def sectors(self, count: float) -> float:
        return count / self.sectors_per_second

    def wavefronts(self, count: float) -> float:
        return count / self.wavefronts_per_second

    def instructions(self, count: float) -> float:
        return count / self.instructions_per_second

    def share(self, excess: float, busy: float) -> float:
        """Compute the share of excess on a resource that is busy for some time."""
        if self.longest <= 0:
            return 0.0
        return min(excess / self.longest, 1.0) * min(busy / self.longest, 1.0)


def findings(profile: Profile, gpu: Mapping[str, Any]) -> list[Finding]:
    """Give what costs time in a launch, the largest share first."""
    times = _Times.of(profile, gpu)
    rules: tuple[Callable[[Profile, _Times], Iterator[Finding]], ...] = (
        _uncoalesced,
        _bank_conflicts,
        _shared_atomics,
        _global_atomics,
        _divergence,
        _float64,
        _local_memory,
        _few_blocks,
        _occupancy,
        _unequal_work,
    )
    found = [finding for rule in rules for finding in rule(profile, times) if finding.share >= _LEAST]
    return sorted(found, key=lambda finding: -finding.share)


def _finding(kind: str, line: Line, share: float, cost: str, cause: str, help_: str = "") -> Finding:
    return Finding(kind, line.file, line.line, line.text.strip(), share, cost, cause, help_)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _named(access: Access) -> str:
    return f"`{access.source or access.array or access.space + ' memory'}`"


def _accesses(profile: Profile, space: str, *kinds: str) -> Iterator[tuple[Line, Access]]:
    for line in profile.lines:
        for access in line.accesses:
            if access.space == space and access.kind in kinds:
                yield line, access


def _uncoalesced(profile: Profile, times: _Times) -> Iterator[Finding]:
    total, busy = profile.total("global", "sectors"), times.moving(profile)
    for line, access in _accesses(profile, "global", "load", "store"):
        excess = access.sectors - access.ideal_sectors
        if excess <= 0:
            continue
        cost = (
            f"sectors {access.sectors / max(access.ideal_sectors, 1):.1f} times the ideal, "
            f"{_percent(access.sectors, total)} of all sectors"
        )
        item = access.ideal_sectors * _SECTOR / max(access.lanes, 1)
        kind, cause, help_ = _pattern(access, item)
        yield _finding(kind, line, times.share(times.sectors(excess), busy), cost, cause, help_)


def _pattern(access: Access, item: float) -> tuple[str, str, str]:
    """Give the kind, the cause and the fix of an access with more sectors than its bytes need."""
    what, stride = _named(access), access.stride
    if stride is None:
        cause = f"the threads of a warp access elements of {what} that are not at one distance"
        return "uncoalesced", cause, "sort or group the indices so that consecutive threads access nearby elements"
    if abs(stride) <= max(item, 1.0) * 1.01:
        cause = (
            f"consecutive threads access consecutive elements of {what}, but a warp begins within a sector of 32 bytes"
        )
        return "misaligned", cause, "shift the index, or pad the rows to a multiple of 32 bytes"
    cause = f"consecutive threads access {what} {abs(stride):,} bytes apart"
    if access.source.count(",") and "[" in access.source:
        fix = "let `threadIdx.x` count the last index: exchange the indices, or x and y of the thread"
    else:
        fix = "let consecutive threads access consecutive elements, or store the array in the other order"
    return "uncoalesced", cause, fix


def _bank_conflicts(profile: Profile, times: _Times) -> Iterator[Finding]:
    total = profile.total("shared", "wavefronts")
    busy = times.wavefronts(total)
    for line, access in _accesses(profile, "shared", "load", "store"):
        extra = access.wavefronts - access.ideal_wavefronts
        if extra <= 0:
            continue
        cost = (
            f"{access.wavefronts / max(access.ideal_wavefronts, 1):.1f} times the wavefronts that are needed, "
            f"{_percent(access.wavefronts, total)} of all wavefronts of shared memory"
        )
        if access.stride is None:
            cause = f"threads of a warp access different words of {_named(access)} in one bank"
        else:
            cause = (
                f"consecutive threads access {_named(access)} {abs(access.stride):,} bytes apart, so that several are "
                "in one of the 32 banks"
            )
        help_ = "make the last extent of the shared array odd (33 in place of 32), or exchange its indices"
        yield _finding("bank conflicts", line, times.share(times.wavefronts(extra), busy), cost, cause, help_)


def _shared_atomics(profile: Profile, times: _Times) -> Iterator[Finding]:
    busy = times.wavefronts(profile.total("shared", "wavefronts"))
    for line, access in _accesses(profile, "shared", "atomic"):
        extra = access.wavefronts - access.requests
        if extra <= 0:
            continue
        cost = f"{access.wavefronts / max(access.requests, 1):.1f} wavefronts for an instruction of a warp"
        cause = (
            f"threads of a warp update the same words of {_named(access)} or the same bank, one after the other; "
            "atomic operations of float32, float64 and int64 in shared memory are loops"
        )
        help_ = "sum in a local variable first and update once, or give each warp a copy of the array"
        yield _finding("atomics", line, times.share(times.wavefronts(extra), busy), cost, cause, help_)


def _contended(profile: Profile, times: _Times) -> Iterator[tuple[Line, Access, float]]:
    """Give the atomic operations on global memory with the time that the busiest sectors need for them."""
    touched = {array.name: array.touched for array in profile.arrays}
    for line, access in _accesses(profile, "global", "atomic"):
        sectors = max(touched.get(access.array, 0) / _SECTOR, 1.0)
        yield line, access, access.sectors / sectors / times.clock


def _global_atomics(profile: Profile, times: _Times) -> Iterator[Finding]:
    for line, access, seconds in _contended(profile, times):
        excess = access.sectors - access.ideal_sectors
        spent = max(seconds, times.sectors(max(excess, 0)))
        cost = f"{access.sectors:,} sector operations for {access.requests:,} instructions of warps"
        cause = f"many threads update the same elements of {_named(access)}, one after the other"
        help_ = "combine values first: in a local variable, with `cuda.reduce` of the block, or in a shared array"
        yield _finding("atomics", line, times.share(spent, spent), cost, cause, help_)


def _divergence(profile: Profile, times: _Times) -> Iterator[Finding]:
    idle = sum(line.instructions - line.lanes / _WARP for line in profile.lines)
    issued = sum(line.instructions for line in profile.lines)
    branches = [line for line in profile.lines if line.divergent_branches]
    if not branches or idle <= 0:
        return
    worst = max(branches, key=lambda line: line.divergent_branches)
    cost = f"{_WARP * (1 - idle / issued):.1f} of 32 lanes are active in an instruction, on average"
    cause = f"threads of a warp take different ways at this line {worst.divergent_branches:,} times"
    help_ = "let whole warps take the same way: sort the work, or move the condition into the value"
    yield _finding(
        "divergence", worst, times.share(times.instructions(idle), times.instructions(issued)), cost, cause, help_
    )


def _float64(profile: Profile, times: _Times) -> Iterator[Finding]:
    if any("float64" in each or "complex128" in each for each in profile.types if each.startswith("array")):
        return
    lines = [line for line in profile.lines if line.operations.get("float64")]
    if not lines:
        return
    seconds = dict(profile.bounds).get("float64", 0.0)
    worst = max(lines, key=lambda line: line.operations["float64"])
    count = sum(line.operations["float64"] for line in lines)
    literal = _literal(worst.text)
    cause = "a float64 makes float64 of what it is combined with, and no array is of float64"
    if literal:
        cause = f"the literal {literal} is float64, and makes float64 of what it is combined with"
    fix = f"write `np.float32({literal})`" if literal else "convert scalars and literals to float32"
    cost = f"{count:,} operations of float64"
    yield _finding(
        "float64", worst, times.share(seconds, seconds), cost, cause, f'{fix}, or use `cuda.jit(typing="numpy")`'
    )


def _literal(text: str) -> str:
    """Give the first float literal of a line that is no argument of float32; empty if there is none."""
    for opening in ("", "if True:\n    "):
        source = text.strip()
        source = f"{opening}{source}" + ("\n        pass" if source.endswith(":") else "")
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        converted = {
            id(argument)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("float32")
            for argument in node.args
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, float) and id(node) not in converted:
                return repr(node.value)
    return ""


def _local_memory(profile: Profile, times: _Times) -> Iterator[Finding]:
    busy = times.moving(profile)
    for line in profile.lines:
        sectors = line.total("local", "sectors")
        if not sectors:
            continue
        cost = f"{sectors:,} sectors of local memory (an estimate: `ptxas` keeps a part of it in registers)"
        cause = "an array of a thread is indexed by a value that is not a constant, so it is in memory"
        help_ = "index the array by constants or by loops with a constant number of iterations, or use a shared array"
        yield _finding("local memory", line, times.share(times.sectors(sectors), busy), cost, cause, help_)


def _first(profile: Profile) -> Line | None:
    return min((line for line in profile.lines if line.line), key=lambda line: (line.file, line.line), default=None)


def _few_blocks(profile: Profile, times: _Times) -> Iterator[Finding]:
    first = _first(profile)
    if first is None or profile.blocks >= times.multiprocessors:
        return
    cost = f"{profile.blocks} blocks for {times.multiprocessors} multiprocessors"
    cause = "a block runs on one multiprocessor, so the others are idle"
    help_ = "launch more blocks: smaller ones, or split the work of a block"
    share = 1 - profile.blocks / times.multiprocessors
    yield _finding("few blocks", first, share, cost, cause, help_)


def _occupancy(profile: Profile, times: _Times) -> Iterator[Finding]:
    first, occupancy = _first(profile), profile.occupancy
    if first is None or occupancy is None or profile.blocks < times.multiprocessors:
        return
    enough = _ENOUGH_WARPS * occupancy.max_warps
    if not occupancy.warps or occupancy.warps >= enough:
        return
    cause = f"few warps hide the latency of memory; {' and '.join(occupancy.limits)} limit their number"
    yield _finding("occupancy", first, 1 - occupancy.warps / enough, occupancy.text, cause, occupancy.advice or "")


def _unequal_work(profile: Profile, _times: _Times) -> Iterator[Finding]:
    """Find barriers at which most warps wait: the others are too few to hide the latency of memory."""
    lines = [line for line in profile.lines if line.barrier_waits]
    occupancy = profile.occupancy
    if not lines or occupancy is None or not occupancy.warps:
        return
    issued = sum(line.instructions for line in profile.lines)
    waits = sum(line.barrier_waits for line in lines)
    worst = max(lines, key=lambda line: line.barrier_waits)
    enough = min(_ENOUGH_WARPS * occupancy.max_warps, occupancy.warps)
    working = occupancy.warps * issued / (issued + waits)
    cost = f"{working:.1f} of {occupancy.warps} resident warps work, on average"
    cause = f"the warps of a block wait at this barrier for {waiting(worst)} of the time since the one before"
    help_ = "divide the work before the barrier evenly among the warps, or let each warp do more before it"
    yield _finding("unequal work", worst, max(1 - working / enough, 0.0), cost, cause, help_)
