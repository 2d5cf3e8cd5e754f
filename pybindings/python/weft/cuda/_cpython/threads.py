"""The threads of a launch that CPython runs: one at a time, whatever the kernel does.

A kernel whose threads wait for nothing is a plain loop in the thread that launches. Of others, each thread has a
thread of Python's, which hand a baton on where they wait; the one that a breakpoint is to stop in is the launching
thread itself, so that a debugger has the terminal, the stack of the program and Ctrl-C as ever.
"""

from __future__ import annotations

import ctypes
import itertools
import threading

import numpy as np

from weft.cuda._cpython import arrays
from weft.cuda._cpython.warps import WARP, Collective, hand_out, stranded, warp_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Index = tuple[int, int, int]

# The most Python threads at a time, if blocks may wait for each other.
_MOST = 1024
# The number of loads after which a thread yields, if threads may wait for each other's writes.
_LOADS = 256
_STACK = 1 << 20


class Stopped(BaseException):
    """The launch has ended in another thread: this one is to end, too."""


class Block:
    """The state that the threads of a block share."""

    def __init__(self, index: Index, dynamic_bytes: int) -> None:
        self.index = index
        self.dynamic = np.full(dynamic_bytes, 0xCD, np.uint8)
        self.arrays: dict[Any, Any] = {}
        self.barriers: dict[Any, Any] = {}
        self.own: list[Any] = []  # the memory of local and constant arrays
        self.threads: list[Thread] = []
        self.alive = self.arrived = 0  # numbers of threads that have not returned, and of those at a barrier
        self.cluster: list[Block] = [self]
        self.cluster_rank = 0
        self.cluster_arrived = 0  # the number of threads at a barrier of the cluster, in its first block


class Thread:
    """One thread of a launch: where it is, and what it waits for."""

    def __init__(self, index: Index, block: Block, launch: Launch) -> None:
        self.index, self.block, self.launch = index, block, launch
        x, y, z = index
        self.rank = x + launch.block_dim[0] * (y + launch.block_dim[1] * z)
        self.lane: int = self.rank % WARP
        self.ended = False
        self.waiting: Collective | None = None
        self.baton: threading.Lock | None = None
        self.loads = 0
        self.idle = 0
        self.copies: list[Any] = []  # asynchronous copies since the latest group
        self.groups: list[list[Any]] = []
        self.products = self.complete = 0  # products of a warpgroup, and those that it has waited for

    def describe(self) -> str:
        """Say which one it is."""
        return f"thread {self.index} of block {self.block.index}"


class Launch:
    """A launch under way: its extents, and the threads that may run."""

    def __init__(
        self, kernel: str, grid_dim: Index, block_dim: Index, shared_bytes: int, cluster_dim: Index = (1, 1, 1)
    ) -> None:
        self.kernel, self.grid_dim, self.block_dim, self.shared_bytes = kernel, grid_dim, block_dim, shared_bytes
        self.cluster_dim = cluster_dim
        self.scheduler: Scheduler | None = None

    def blocks(self) -> Iterator[Block]:
        """Make the blocks lazily, in order: those of a cluster one after the other."""
        (x, y, z), (width, height, depth) = self.grid_dim, self.cluster_dim
        for i, j, k in _positions((x // width, y // height, z // depth)):
            cluster: list[Block] = []
            for a, b, c in _positions(self.cluster_dim):
                block = Block((i * width + a, j * height + b, k * depth + c), self.shared_bytes)
                block.threads = [Thread(each, block, self) for each in _positions(self.block_dim)]
                block.alive = len(block.threads)
                block.cluster, block.cluster_rank = cluster, len(cluster)
                cluster.append(block)
            yield from cluster


class _Current(threading.local):
    """Holds the running thread of a launch, of each thread of Python's."""

    thread: Thread | None = None


_CURRENT = _Current()


def current() -> Thread:
    """Give the running thread.

    Raises
    ------
    RuntimeError
        No kernel runs.
    """
    thread = _CURRENT.thread
    if thread is None:
        msg = "this can only be used in a kernel or device function"
        raise RuntimeError(msg)
    return thread


def is_running() -> bool:
    """Say whether a kernel runs in this thread of Python's."""
    return _CURRENT.thread is not None


def _positions(extents: Index) -> Iterator[Index]:
    x, y, z = extents
    return ((i, j, k) for k, j, i in itertools.product(range(z), range(y), range(x)))


def run_cooperatively(launch: Launch, call: Callable[[], None]) -> None:
    """Run the threads of a launch one after the other, in this thread of Python's."""
    before = _CURRENT.thread
    try:
        for block in launch.blocks():
            for thread in block.threads:
                _CURRENT.thread = thread
                call()
    except BaseException as error:
        _note(error, _CURRENT.thread)
        raise
    finally:
        _CURRENT.thread = before


def _note(error: BaseException, thread: Thread | None) -> None:
    """Say in which thread an exception was raised."""
    text = f"Raised by {thread.describe()} of the kernel `{thread.launch.kernel}`" if thread is not None else ""
    if thread is not None and isinstance(error, Exception) and text not in getattr(error, "__notes__", ()):
        error.add_note(text)


def run_together(
    launch: Launch,
    call: Callable[[], None],
    chosen: Callable[[Thread], bool],
    *,
    resident: bool,
    all_of_them: bool = False,
) -> None:
    """Run the threads of a launch so that they may wait for each other.

    The blocks run one after the other, or, if `resident`, as many at a time as there is room for, or all of them.
    """
    blocks = launch.blocks()
    size = launch.block_dim[0] * launch.block_dim[1] * launch.block_dim[2]
    in_cluster = launch.cluster_dim[0] * launch.cluster_dim[1] * launch.cluster_dim[2]
    if in_cluster > 1 and resident:
        all_of_them = True
    count = None if all_of_them else max(_MOST // size, 1) if resident else in_cluster
    while first := list(itertools.islice(blocks, count)):
        Scheduler(launch, first, call, chosen, blocks if resident else iter(())).run()


class Scheduler:
    """Decides which thread runs. Only the running thread calls it."""

    def __init__(
        self,
        launch: Launch,
        blocks: list[Block],
        call: Callable[[], None],
        chosen: Callable[[Thread], bool],
        later: Iterator[Block],
    ) -> None:
        self.launch, self.call, self.later = launch, call, later
        self.threads = [thread for block in blocks for thread in block.threads]
        # The launching thread is the one to be debugged, or else the first.
        self.own = next((thread for thread in self.threads if chosen(thread)), self.threads[0])
        self.ready: dict[Thread, None] = dict.fromkeys(self.threads)
        self.error: tuple[BaseException, Thread] | None = None
        self.workers: dict[Thread, threading.Thread] = {}
        self.main_done = threading.Event()
        self.alive, self.arrived = len(self.threads), 0  # the same as for a block, for grid barriers

    def run(self) -> None:
        """Run all of them to their ends."""
        outer, outer_scheduler = _CURRENT.thread, self.launch.scheduler
        self.launch.scheduler = self
        arrays.on_load[:] = [self._loaded]
        before = threading.stack_size(_STACK)
        try:
            for thread in self.threads:
                self._begin(thread)
        finally:
            threading.stack_size(before)
        try:
            first = next(iter(self.ready))
            if first is not self.own:
                self._give(first)
                self._receive(self.own)
            _CURRENT.thread = self.own
            self._body(self.own)
            if not self.main_done.is_set():
                self._wait_for_the_end()
        except BaseException as error:
            self.error = self.error or (error, self.own)
        finally:
            self._end_all()
            _CURRENT.thread, self.launch.scheduler = outer, outer_scheduler
            arrays.on_load.clear()
        if self.error is not None:
            raise self.error[0]

    def _begin(self, thread: Thread) -> None:
        thread.baton = threading.Lock()
        thread.baton.acquire()
        if thread is not self.own:
            worker = threading.Thread(target=self._worker, args=(thread,), daemon=True, name=f"weft {thread.index}")
            self.workers[thread] = worker
            worker.start()

    def _worker(self, thread: Thread) -> None:
        try:
            self._receive(thread)
        except Stopped:
            return
        with np.errstate(all="ignore"):
            self._body(thread)

    def _body(self, thread: Thread) -> None:
        """Run a thread that has the baton to its end, and hand the baton on."""
        try:
            self.call()
        except Stopped:
            return
        except BaseException as error:
            _note(error, thread)
            self.error = self.error or (error, thread)
            self.main_done.set()
            return
        thread.ended = True
        thread.block.alive -= 1
        self.alive -= 1
        self.ready.pop(thread, None)
        self._resume_complete(thread)
        try:
            if not thread.block.alive:
                self._take_up()
            following = self._next()
        except BaseException as error:
            self.error = self.error or (error, thread)
            following = None
        if following is None:
            self.main_done.set()
        else:
            self._give(following)

    def _wait_for_the_end(self) -> None:
        # With a timeout, so that Ctrl-C works on all platforms.
        while not self.main_done.wait(0.2):
            pass

    def _give(self, thread: Thread) -> None:
        assert thread.baton is not None
        thread.baton.release()

    def _receive(self, thread: Thread) -> None:
        """Wait for the baton; the launching thread looks whether another one has failed meanwhile."""
        assert thread.baton is not None
        if thread is self.own:
            while not thread.baton.acquire(timeout=0.05):
                if self.error is not None:
                    raise Stopped
        else:
            thread.baton.acquire()
        if self.error is not None:
            raise Stopped
        _CURRENT.thread = thread

    def _end_all(self) -> None:
        """Have the threads of Python's end, that wait or run on."""
        if self.error is None:
            for worker in self.workers.values():
                worker.join()
            return
        for thread, worker in self.workers.items():
            if worker.is_alive():
                assert thread.baton is not None
                if thread.baton.locked():
                    thread.baton.release()
                worker.join(0.2)
            if worker.is_alive() and worker.ident is not None:
                # It runs code that never checks for the end of the launch.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(Stopped))
                worker.join(5)

    # ---- called by the running thread ----

    def pause(self, thread: Thread) -> None:
        """Let another thread go on, if there is one."""
        if self.error is not None:
            raise Stopped
        # To the end of the queue.
        if self.ready.pop(thread, 0) is None:
            self.ready[thread] = None
        following = self._next()
        if following is not None and following is not thread:
            self._give(following)
            self._receive(thread)

    def meet(self, thread: Thread, collective: Collective) -> Any:
        """Wait until all threads of a collective operation have arrived; return this thread's result."""
        if self.error is not None:
            raise Stopped
        thread.waiting = collective
        self.ready.pop(thread, None)
        if collective.scope == "block":
            thread.block.arrived += 1
        elif collective.scope == "cluster":
            thread.block.cluster[0].cluster_arrived += 1
        elif collective.scope == "grid":
            self.arrived += 1
        self._resume_complete(thread)
        following = self._next()
        if following is not None and following is not thread:
            self._give(following)
            self._receive(thread)
        return collective.result

    def resume(self, group: list[Thread]) -> None:
        """Let threads run that wait for what the running thread has done."""
        self._go_on([thread for thread in group if not thread.ended and thread not in self.ready])

    def _loaded(self) -> None:
        thread = _CURRENT.thread
        if thread is None:
            return
        thread.loads += 1
        if thread.loads % _LOADS == 0:
            self.pause(thread)

    # ---- scheduling ----

    def _resume_complete(self, thread: Thread) -> None:
        """Resume the threads whose collective operation is complete, after a thread has arrived or ended."""
        block = thread.block
        first = thread.rank // WARP * WARP
        for group in warp_groups(block.threads[first : first + WARP]):
            self._go_on(group)
        if block.arrived and block.arrived == block.alive:
            block.arrived = 0
            self._go_on(hand_out([other for other in block.threads if not other.ended]))
        first_block = block.cluster[0]
        if first_block.cluster_arrived and first_block.cluster_arrived == sum(each.alive for each in block.cluster):
            first_block.cluster_arrived = 0
            threads = [other for each in block.cluster for other in each.threads if not other.ended]
            self._go_on(hand_out(threads))
        if self.arrived and self.arrived == self.alive:
            self.arrived = 0
            self._go_on(hand_out([other for other in self.threads if not other.ended]))

    def _go_on(self, group: list[Thread]) -> None:
        for thread in group:
            thread.waiting = None
            self.ready[thread] = None

    def _next(self) -> Thread | None:
        """Return the next thread to run; None if all have ended."""
        if not self.ready and self.alive:
            alive = [thread for thread in self.threads if not thread.ended]
            for group in stranded(alive):
                self._go_on(group)
            if not self.ready:
                raise _deadlock(self.launch, alive)
        return next(iter(self.ready), None)

    def _take_up(self) -> None:
        """Start a further block after one has ended."""
        for block in itertools.islice(self.later, 1):
            self.threads = [thread for thread in self.threads if not thread.ended] + block.threads
            self.alive += block.alive
            before = threading.stack_size(_STACK)
            try:
                for thread in block.threads:
                    self._begin(thread)
                    self.ready[thread] = None
            finally:
                threading.stack_size(before)


def _deadlock(launch: Launch, alive: list[Thread]) -> RuntimeError:
    """Make the error of threads that wait for each other for ever."""
    sites: dict[str, list[Thread]] = {}
    for thread in alive:
        assert thread.waiting is not None
        sites.setdefault(thread.waiting.describe(), []).append(thread)
    lines = [f"all threads of the kernel `{launch.kernel}` that have not returned wait for other threads forever:"]
    lines += [
        f"  {len(threads)} at {site}: the first is {threads[0].describe()}" for site, threads in sorted(sites.items())
    ]
    return RuntimeError("\n".join(lines))
