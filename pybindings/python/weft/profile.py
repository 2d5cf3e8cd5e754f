"""The profiler: ``python -m weft.profile program.py [args]``, and what it counts.

It compiles each kernel that a program launches for a GPU, and runs the PTX on the CPU, 32 lanes in lockstep, on copies
of the arrays. It counts sectors, wavefronts, operations and divergent lanes by line of Python, and ranks what costs
most.
No GPU is needed. The program's own launches run on the CPU, so its results stay the same.

In a program, ``kernel[grid, block].profile(*args)`` gives the `Profile` of one launch.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Access", "Array", "Finding", "Line", "Occupancy", "Profile", "Request", "main", "profile"]

SCHEMA = 1
"""The version of the JSON that `Profile.to_json` writes: a change of a field's meaning increments it."""


@dataclass(frozen=True)
class Request:
    """An access of a warp that was recorded.

    Attributes
    ----------
    offsets
        Of each of the 32 lanes the first byte that it accesses, from the beginning of the array or of the block's
        shared memory; None for a lane that accesses nothing.
    size
        The bytes that a lane accesses.
    """

    offsets: tuple[int | None, ...]
    size: int


@dataclass(frozen=True)
class Access:
    """The accesses of a line to an array.

    Attributes
    ----------
    kind
        "load", "store" or "atomic".
    space
        "global", "shared", "local" or "constant".
    array
        The parameter, or the names of several that share memory; empty for shared and local memory.
    source
        The subscript as written, such as ``a[y, x]``; empty if it is not known.
    stride
        The distance of consecutive threads' elements in bytes; None if it is not constant.
    requests
        Instructions of warps that access memory.
    lanes
        Threads that access memory.
    sectors, ideal_sectors
        Pieces of 32 bytes that are moved, and how many the same bytes need if they are contiguous. Global memory only.
    l2_requests
        Lines of 128 bytes that L1 requests from L2 if it is empty.
    l2_sectors
        An estimate of the sectors that L1 exchanges with L2: all of stores and atomics, and those of loads that L1
        does not hold if each resident block has an equal part of it.
    wavefronts, ideal_wavefronts
        Passes through shared memory, and how many there are without bank conflicts.
    first_requests
        The first requests that ran: their addresses.
    """

    kind: str
    space: str
    array: str
    source: str
    stride: int | None
    requests: int
    lanes: int
    sectors: int
    ideal_sectors: int
    l2_requests: int
    l2_sectors: int
    wavefronts: int
    ideal_wavefronts: int
    first_requests: tuple[Request, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Calls:
    """The part of the counts of a line of a device function that one caller has.

    Attributes
    ----------
    chain
        The file and the line of the call, and of the calls of its caller, the inner one first.
    instructions
        Instructions of warps.
    sectors
        Sectors of global memory.
    wavefronts
        Wavefronts of shared memory.
    """

    chain: tuple[tuple[str, int], ...]
    instructions: int
    sectors: int
    wavefronts: int


@dataclass(frozen=True)
class Line:
    """The counts of a line of the source.

    Attributes
    ----------
    file, line, text
        Where: lines count from 1.
    instructions
        Instructions of warps, without moves and branches, most of which ``ptxas`` removes.
    lanes
        Active lanes of these; a warp has 32.
    divergent_branches
        Times that some lanes of a warp took a branch and others did not.
    operations
        Operations of threads by type: "int16", "int32", "int64", "float16", "float32", "float64", "special". Divisions
        and roots count as the machine instructions that compute them; "special" are approximate functions.
    accesses
        The memory accesses.
    barrier_work
        Instructions of the warps before a barrier of the block at this line, since the barrier before or the start of
        the block. An estimate, without the phases in which a warp polls memory.
    barrier_waits
        Instructions that the warps of a block would have to run in addition to do as much as the warp that does most:
        they wait at the barrier meanwhile.
    calls
        Of a device function that is inlined the callers, those with the most instructions first. Instructions whose
        caller is not known are not among them.
    """

    file: str
    line: int
    text: str
    instructions: int
    lanes: int
    divergent_branches: int
    operations: dict[str, int]
    accesses: tuple[Access, ...]
    barrier_work: int = 0
    barrier_waits: int = 0
    calls: tuple[Calls, ...] = ()

    @property
    def active_lanes(self) -> float:
        """The mean number of active lanes of an instruction, at most 32."""
        return self.lanes / self.instructions if self.instructions else 0.0

    def total(self, space: str, count: str) -> int:
        """Sum a count of the accesses to a space."""
        return sum(getattr(access, count) for access in self.accesses if access.space == space)


@dataclass(frozen=True)
class Array:
    """An array that the launch may access.

    Attributes
    ----------
    name
        The parameter.
    nbytes
        Its size in bytes.
    reads, writes
        Whether the kernel loads its elements, and whether it stores to them.
    touched
        Bytes that the launch accesses, each counted once: what a cache without limit moves. An estimate where
        blocks were sampled.
    moved
        Bytes of all sectors that warps request.
    """

    name: str
    nbytes: int
    reads: bool
    writes: bool
    touched: int
    moved: int


@dataclass(frozen=True)
class Occupancy:
    """The resident warps of a multiprocessor.

    Attributes
    ----------
    registers
        Registers of a thread: those of ``ptxas`` if it is found, else an estimate.
    registers_are_estimated
        Whether it is the estimate.
    spilled_bytes
        Bytes of registers that a thread spills; None if that is not known.
    shared_bytes
        Shared memory of a block.
    blocks, warps, max_warps
        Resident blocks and warps, and the most that a multiprocessor can have.
    limits
        The resources that limit the number.
    text
        The same as a sentence.
    advice
        What raises it, or None.
    by_block
        For each number of threads of a block the resident warps, with the same registers and shared memory.
    """

    registers: int
    registers_are_estimated: bool
    spilled_bytes: int | None
    shared_bytes: int
    blocks: int
    warps: int
    max_warps: int
    limits: tuple[str, ...]
    text: str
    advice: str | None
    by_block: tuple[tuple[int, int], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Finding:
    """Something that costs time.

    Attributes
    ----------
    kind
        "uncoalesced", "misaligned", "bank conflicts", "atomics", "divergence", "float64", "local memory", "few blocks"
        or "occupancy".
    file, line, text
        The line of the source.
    share
        The time of what is in excess over the bound, from 0 to 1; less where its resource is not the busiest one.
    cost
        The counts that show it.
    cause
        Why, in a sentence.
    help
        What to change; empty if nothing general helps.
    """

    kind: str
    file: str
    line: int
    text: str
    share: float
    cost: str
    cause: str
    help: str = ""

    def __str__(self) -> str:
        from weft._profile_text import finding

        return finding(self)


@dataclass(frozen=True, repr=False)
class Profile:
    """The counts of a launch on a GPU.

    Attributes
    ----------
    kernel, types
        The kernel's name, and the types of its arguments.
    gpu, sm
        The GPU, and its target.
    griddim, blockdim
        The launch configuration.
    blocks, blocks_run
        The blocks of the grid, and those that ran: large launches are sampled, and counts are scaled.
    error
        The relative standard error of totals; 0 if all blocks ran, or if those that ran had equal counts.
    launches
        How many launches of this kernel, these types and this configuration the program made.
    bounds
        By resource, the time in seconds that it is busy for at least, the longest first. Those of "integers" and
        "instruction issue" are estimates, because ``ptxas`` merges and removes instructions, and that of "L2", because
        it depends on what L1 holds.
    lines, arrays, occupancy, findings
        The counts by line, the arrays, the resident warps, and what costs time, the largest share first.
    ptx
        The code that was counted.
    sass
        The machine code that ``ptxas`` makes of it for the GPU, as ``nvdisasm`` prints it with lines; empty if one of
        them is not on the PATH. If it has no access to local memory, none is counted.
    rates
        By resource, what the GPU does in a second: bytes of "device memory", sectors that "L2" and "L1" deliver,
        sectors of "atomics", wavefronts of "shared memory", operations, warp instructions of "instruction issue".
    """

    kernel: str
    types: tuple[str, ...]
    gpu: str
    sm: str
    griddim: tuple[int, int, int]
    blockdim: tuple[int, int, int]
    blocks: int
    blocks_run: int
    error: float
    bounds: tuple[tuple[str, float], ...]
    lines: tuple[Line, ...]
    arrays: tuple[Array, ...]
    occupancy: Occupancy | None
    findings: tuple[Finding, ...]
    ptx: str = field(default="", repr=False)
    sass: str = field(default="", repr=False)
    launches: int = 1
    rates: tuple[tuple[str, float], ...] = field(default=(), repr=False)

    def total(self, space: str, count: str) -> int:
        """Sum a count of `Access` over all lines.

        Parameters
        ----------
        space
            "global", "shared", "local" or "constant".
        count
            The attribute, such as "sectors".
        """
        return sum(line.total(space, count) for line in self.lines)

    @property
    def is_sampled(self) -> bool:
        """Whether only some blocks ran."""
        return self.blocks_run < self.blocks

    def to_dict(self) -> dict[str, Any]:
        """Give it as what JSON can hold; without its code and the addresses of requests."""
        fields = {"schema": SCHEMA, **asdict(self)}
        del fields["ptx"], fields["sass"]
        for line in fields["lines"]:
            for access in line["accesses"]:
                del access["first_requests"]
        return fields

    def to_json(self, indent: int | None = 2) -> str:
        """Give it as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_html(self) -> str:
        """Give it as a page of HTML that needs no other file."""
        from weft._profile_html import page

        return page([self])

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        from html import escape

        return f'<iframe srcdoc="{escape(self.to_html())}" title="profile" width="100%" height="600"></iframe>'

    def __str__(self) -> str:
        from weft._profile_text import report

        return report(self)

    __repr__ = __str__


def profile(launcher: Any, args: Sequence[Any], *, gpu: str = "h100", seconds: float = 5.0) -> Profile:
    """Count what a launch does on a GPU, without a GPU and without making the launch.

    Parameters
    ----------
    launcher
        The kernel with its configuration: ``kernel[grid, block]``.
    args
        An argument for each parameter.
    gpu
        The name of the GPU, such as "a100" or "rtx4090".
    seconds
        The time after which no more blocks run: larger launches are sampled.

    Raises
    ------
    ValueError
        The GPU is not known; the message lists the names.
    LaunchError
        The device is a GPU (set ``WEFT_DEVICE=cpu``), or the kernel cannot be simulated.
    """
    from weft._profiler import profile_for

    return profile_for(launcher, tuple(args), gpu, seconds)


def main(argv: Sequence[str] | None = None) -> int:
    """Profile the kernels of a program, and return its exit code.

    Parameters
    ----------
    argv
        The arguments; those of the process if there are none.
    """
    from weft._profile_program import run

    return run(list(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    # The program must see a single module of this name.
    from weft.profile import main as _main

    sys.exit(_main())
