"""Runs programs in worker processes, so that one that hangs or crashes does not affect the others."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import os
import time
import traceback
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from combined.programs import Program

GOOD = ("passed", "unsound", "refused", "unresolved")  # results that are no failure
LIFE = 300  # programs per process; a limit, because compiled kernels are never freed


class Chosen(NamedTuple):
    """A program with chosen pieces and kind of kernel; with `plain`, nothing is around the pieces."""

    seed: int
    pieces: tuple[str, ...]
    kind: str
    plain: bool = True


# A program: the one of a seed, or one with chosen pieces.
Item = int | Chosen


def item_of(text: str) -> Item:
    """The item that `name_of` names: `12`, `12:block two:row_sum,tile`, or `12:one:row_sum:plain`."""
    seed, *rest = text.split(":")
    if not rest:
        return int(seed)
    kind, pieces, *plain = rest
    return Chosen(int(seed), tuple(pieces.split(",")), kind, plain == ["plain"])


def name_of(item: Item) -> str:
    """An item as the command line takes it."""
    if isinstance(item, int):
        return str(item)
    return f"{item.seed}:{item.kind}:{','.join(item.pieces)}{':plain' if item.plain else ''}"


def program_of(item: Item) -> Program:
    """The program that an item names."""
    from combined.programs import generate, generate_with

    if isinstance(item, int):
        return generate(item)
    return generate_with(item.seed, item.pieces, item.kind, plain=item.plain)


@dataclass
class Result:
    """The result of a program."""

    seed: Item
    outcome: str
    features: tuple[str, ...] = ()
    plans: tuple[tuple[str, ...], ...] = ()  # the features of the plan of each compiled variant


@dataclass
class Counts:
    """The results of all programs."""

    results: dict[str, int] = field(default_factory=dict)
    failed: list[Result] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, result: Result) -> None:
        word = result.outcome.split(":")[0]
        word = word if word in GOOD else "failed"
        self.results[word] = self.results.get(word, 0) + 1
        if word == "failed":
            self.failed.append(result)

    @property
    def total(self) -> int:
        return sum(self.results.values())


def work(connection: Any, device: str, planned: bool) -> None:
    """The body of a process: takes seeds until there are none, and sends the result of each."""
    warnings.simplefilter("ignore")
    gc.set_threshold(100_000, 20, 20)
    from combined.check import Runner, run
    from combined.features import plans_of

    runner = Runner(device)
    while (seed := connection.recv()) is not None:
        try:
            program = program_of(seed)
            outcome, kernel = run(program, runner)
            plans = plans_of(kernel) if planned and kernel is not None else ()
            connection.send((seed, outcome, tuple(sorted(program.features)), plans))
        except Exception:
            connection.send((seed, f"the generator failed\n{traceback.format_exc()}", (), ()))


class Worker:
    """A process and the program that it runs."""

    def __init__(self, context: Any, body: Callable[..., None], *how: object) -> None:
        self.connection, other = context.Pipe()
        self.process = context.Process(target=body, args=(other, *how), daemon=True)
        self.process.start()
        other.close()
        self.seed: Item | None = None
        self.since, self.done = time.monotonic(), 0

    def give(self, seed: Item) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.connection.send(seed)

    def result(self, timeout: float) -> Result | None:
        """The result of the program, if there is one yet."""
        assert self.seed is not None
        try:
            if self.connection.poll():
                self.done += 1
                return Result(*self.connection.recv())
        except (EOFError, ConnectionError):
            self.process.join()
            return Result(self.seed, f"the process ended with {self.process.exitcode}")
        # The first program of a process waits for imports, too.
        if time.monotonic() - self.since > timeout + (10 if self.done == 0 else 0):
            self.stop()
            return Result(self.seed, f"did not end within {timeout:.0f} s")
        return None

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def sweep(
    items: Iterable[Item],
    *,
    jobs: int,
    device: str = "cpu",
    planned: bool = False,
    timeout: float = 30.0,
    seconds: float | None = None,
    report: Callable[[Result], None] = lambda _: None,
    progress: Callable[[Counts], None] = lambda _: None,
    body: Callable[..., None] = work,
) -> Counts:
    """Runs the programs of some seeds in processes with a body, until all have run or the time is over."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    counts, waiting = Counts(), iter(items)
    start = told = time.monotonic()

    def following() -> Item | None:
        late = seconds is not None and time.monotonic() - start > seconds
        return None if late else next(waiting, None)

    workers: list[Worker] = []
    for _ in range(jobs):
        if (seed := following()) is None:
            break
        workers.append(Worker(context, body, device, planned))
        workers[-1].give(seed)
    while workers:
        multiprocessing.connection.wait([worker.connection for worker in workers], timeout=1.0)
        for place, worker in reversed(list(enumerate(workers))):
            if (result := worker.result(timeout)) is None:
                continue
            counts.add(result)
            report(result)
            # A failure may have corrupted the process.
            spent = worker.done >= LIFE or result.outcome.split(":")[0] not in GOOD
            seed = following()
            if spent or seed is None:
                worker.stop()
            if seed is None:
                del workers[place]
                continue
            if spent:
                workers[place] = worker = Worker(context, body, device, planned)
            worker.give(seed)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            counts.seconds = told - start
            progress(counts)
    counts.seconds = time.monotonic() - start
    return counts
