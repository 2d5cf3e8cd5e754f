"""Runs a rewritten kernel over a grid."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np

from oracle import numeric
from oracle.emulate import CURRENT, GARBAGE, WARP, Block, Left, Thread
from oracle.rewrite import Function, as_function
from oracle.warps import Meeting, groups, meet, stranded


def launch(
    kernel: object, grid: object, block: object, *args: object, shared_bytes: int = 0, otherwise: bool = False
) -> list[object]:
    """The arguments after `kernel[grid, block, 0, shared_bytes](*args)`; the originals are not changed.

    With `otherwise`, blocks and threads run in another order, and uninitialized memory holds other bytes. If that
    changes the results of a kernel, it has a race or reads uninitialized memory.
    """
    GARBAGE[0] = 0x32 if otherwise else 0xCD
    order = -1 if otherwise else 1
    function = as_function(kernel)
    if not isinstance(function, Function):
        raise TypeError(f"{kernel!r} is no kernel")
    memo: dict[int, np.ndarray] = {}
    values = [_copied(arg, memo) for arg in args]
    grid_dim, block_dim = _dim3(grid), _dim3(block)
    with np.errstate(all="ignore"):
        for block_idx in list(_positions(grid_dim))[::order]:
            memory = Block(shared_bytes)
            threads = [Thread(memory, position, block_idx, block_dim, grid_dim) for position in _positions(block_dim)]
            threads = threads[::order]
            if function.waits:
                _run_with_barriers(function, threads, values)
                continue
            for thread in threads:
                CURRENT.thread = thread
                with contextlib.suppress(Left):
                    function.call(*values)
    return values


def _copied(arg: object, memo: dict[int, np.ndarray]) -> object:
    """A copy with the same strides. An array that is passed twice is copied once."""
    if isinstance(arg, tuple):
        return tuple(_copied(item, memo) for item in arg)
    if isinstance(arg, np.void):
        return arg.copy()
    if not isinstance(arg, np.ndarray):
        return numeric.value(arg)
    if id(arg) not in memo:
        memo[id(arg)] = np.array(arg, order="K", copy=True)
    return memo[id(arg)]


def _dim3(extent: object) -> tuple[int, int, int]:
    extents = extent if isinstance(extent, tuple) else (extent,)
    padded = (*(int(n) for n in extents), 1, 1)
    return padded[0], padded[1], padded[2]


def _positions(extents: tuple[int, int, int]):
    """All (x, y, z), x fastest."""
    x, y, z = extents
    return ((i, j, k) for k, j, i in itertools.product(range(z), range(y), range(x)))


def _run_with_barriers(function: Function, threads: list[Thread], values: list[object]) -> None:
    """Runs each thread to its next barrier of the block, warp by warp, until all have returned."""
    running = {thread: function.call(*values) for thread in threads}
    of_warps: dict[int, list[Thread]] = {}
    for thread in threads:
        of_warps.setdefault(thread.linear // WARP, []).append(thread)
    while running:
        block = threads[0].block  # has the threads' arguments for the next barrier
        block.values, block.together, block.sites = [], {}, set()
        for warp in of_warps.values():
            _run_warp(running, warp)


def _run_warp(running: dict, warp: list[Thread]) -> None:
    """Runs a warp until all its lanes have returned or wait for the block."""
    lanes = {thread.linear % WARP: thread for thread in warp}
    ready = [thread for thread in warp if thread in running]
    waiting: dict[int, Meeting] = {}
    while ready:
        for thread in ready:
            stop = _step(running, thread)
            if isinstance(stop, Meeting):
                waiting[thread.linear % WARP] = stop
        alive = {lane for lane, thread in lanes.items() if thread in running}
        ready = []
        for group in groups(waiting, alive) or stranded(waiting):
            meet(group)
            ready += [lanes[lane] for lane in group]
            for lane in group:
                del waiting[lane]


def _step(running: dict, thread: Thread) -> object:
    CURRENT.thread = thread
    try:
        return next(running[thread])
    except (StopIteration, Left):
        del running[thread]
        return None
