"""Pairs of features that no plan combines, each with the reason, which is a condition of the planner.

A rare pair without a row here is one that the generator should write more often.
"""

from __future__ import annotations

STACKS = "a thread with a stack of its own runs in no thread loop"
PLAIN = "sanitized code is planned without it"
MERGED = "blocks are merged only in kernels in which threads neither synchronize nor share memory"
QUOTIENT = "rows are split by quotients only where blocks are merged"
BOUNDARY = "a boundary is partitioned before the cut only in kernels in which threads do not synchronize"
WARP = "a warp that is a block is planned without it"
VERSION = "a kernel has one version of its whole body"

# Features of plans only for kernels in which threads synchronize.
SYNCHRONIZED = (
    "exit-value-sinking", "guard-normalization", "inlined-barrier-functions", "once-per-warp", "prefetch-next-block",
    "prefetch-next-iteration", "speculative-stores", "warp-as-block", "warp-leaders", "warp-operations",
    "warp-region",
)  # fmt: skip
# Features only where threads share a block's memory, or where blocks are not merged.
SHARED = ("access-prefetch",)
NOT_OF_WARPS = (
    "access-prefetch", "axis-interchange", "block-merging", "excluded-range", "privatized-accumulators",
    "quotient-index-split", "residue-class-guard", "scaled-guard", "strided-access", "warp-region", "xor-partner-split",
)  # fmt: skip


def reason(one: str, two: str) -> str:
    """Why two names never occur in one plan; empty if they may."""
    pair = {one, two}
    other = {name: (pair - {name}).pop() if len(pair) == 2 else name for name in pair}
    if "stack-per-thread" in pair:
        return STACKS
    if "sanitized" in pair and other["sanitized"] not in ("thread-loops", "barrier", "uniform-code"):
        return PLAIN
    if "block-merging" in pair and other["block-merging"] in (*SYNCHRONIZED, *SHARED):
        return MERGED
    if "quotient-index-split" in pair and other["quotient-index-split"] in (*SYNCHRONIZED, *SHARED):
        return QUOTIENT
    # The threads of a warp that is a block may synchronize with no barrier.
    if "boundary-partition" in pair and other["boundary-partition"] in {*SYNCHRONIZED} - {"warp-as-block"}:
        return BOUNDARY
    versions = {"quotient-index-split", "short-extent-version", "boundary-partition"}
    if pair <= versions:
        return VERSION
    if "warp-as-block" in pair and other["warp-as-block"] in NOT_OF_WARPS:
        return WARP
    return ""
