"""Thread block clusters, for kernels that CPython runs: `cuda.cluster`."""

from __future__ import annotations

import numpy as np

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Vectors, array
from weft.cuda._cpython.names import INT32, NAMES, base_of, meet, site
from weft.cuda._cpython.warps import Collective, nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The contents of shared memory that another block has not used yet.
_GARBAGE = 0xCD


def _sync() -> None:
    from weft.cuda._cpython.barriers import synchronize

    synchronize(threads.current().block)
    meet(Collective("cluster", "sync", site(), nothing))


def block_of(rank: int) -> threads.Block:
    """Give the block of a rank.

    Raises
    ------
    IndexError
        The cluster has no such block.
    """
    cluster = threads.current().block.cluster
    if not 0 <= rank < len(cluster):
        msg = "the cluster has no block of this rank: launch the kernel with a cluster, or test `cuda.cluster.size()`"
        raise IndexError(msg)
    return cluster[rank]


def in_block(given: Any, other: threads.Block) -> Any:
    """Give an array in the shared memory of another block.

    Raises
    ------
    TypeError
        It is not in shared memory.
    """
    block = threads.current().block
    numbers = np.asarray(given.numbers if isinstance(given, Vectors) else given)
    base = base_of(given)
    memory = other.dynamic if base is block.dynamic else None
    for key, own in block.arrays.items():
        if base_of(own) is base:
            if key not in other.arrays:
                whole = np.asarray(own.numbers if isinstance(own, Vectors) else own)
                fresh = np.full(base.size, base.dtype.type(_GARBAGE & 1 if whole.dtype.kind == "b" else _GARBAGE))
                made = array(fresh.view(whole.dtype).reshape(whole.shape))
                other.arrays[key] = Vectors(made, own.of) if isinstance(own, Vectors) else made
            memory = base_of(other.arrays[key])
    if memory is None:
        msg = "cuda.cluster.shared takes an array in the block's shared memory"
        raise TypeError(msg)
    offset = numbers.ctypes.data - base.ctypes.data
    view = array(np.ndarray(numbers.shape, numbers.dtype, memory, offset, numbers.strides))
    return Vectors(view, given.of) if isinstance(given, Vectors) else view


def _shared(array: Any, rank: Any) -> Any:
    from weft.cuda._cpython.barriers import Barrier, Remote, barrier_of

    other = block_of(int(rank))
    if isinstance(array, Barrier):
        return Remote(barrier_of(array, other))
    if isinstance(array, list):
        return [Remote(barrier_of(each, other)) for each in array]
    return in_block(array, other)


NAMES["weft.cuda.cluster.rank"] = lambda: INT32(threads.current().block.cluster_rank)
NAMES["weft.cuda.cluster.size"] = lambda: INT32(len(threads.current().block.cluster))
NAMES["weft.cuda.cluster.sync"] = _sync
NAMES["weft.cuda.cluster.shared"] = _shared
