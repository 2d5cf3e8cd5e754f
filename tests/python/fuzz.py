#!/usr/bin/env python3
"""Runs very many random programs on weft and on the oracle, in worker processes.

    python tests/python/fuzz.py --first 0 --count 20000 --device cpu
    python tests/python/fuzz.py --minimize 1234
    python tests/python/fuzz.py --device python --count 1000
    python tests/python/fuzz.py --count 20000 --device cpu --keep bits.txt
    python tests/python/fuzz.py --device cuda --against bits.txt
    python tests/python/fuzz.py --sanitize --count 10000
    python tests/python/fuzz.py --typing numpy --count 20000

A program fails if its results differ from the oracle's, if weft rejects it, if it crashes the process, or if it does
not end within `--timeout` seconds. Each failure is printed with its seed and program; the last line has the counts.

With `--device python` Python's interpreter runs the programs. Intended differences of the interpreter
(docs/how-to/debug.md) are not failures: a variable that has no value on a path raises an exception there, and
overloaded functions do not exist.

With `--keep`, programs are compiled with `WEFT_REPRODUCIBLE=1`, and a digest of the bits of each result is written to a
file. A run with `--against` computes the digests of the same programs on another device; a program fails if its digest
differs.

With `--typing numpy` the programs are those of `random_numpy.py`, whose oracle is CPython with NumPy.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

GOOD = ("passed", "inexact", "meaningless", "unordered")  # results that are no failure
ORACLE = 5.0  # limit for the oracle in seconds of CPU time; most programs take a hundredth of a second
STACK = 16 << 10  # stack size of a GPU thread in bytes
NOT_INTERPRETED = ("libraries",)  # features that Python's interpreter does not support: overloaded functions
LIFE = 400  # programs per process; a limit, because compiled kernels are never freed


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="random programs on weft against the oracle")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "python"])
    parser.add_argument("--typing", default="numba", choices=["numba", "numpy"], help="the typing of the programs")
    parser.add_argument("--sanitize", action="store_true", help="under the sanitizer, which is to find nothing")
    parser.add_argument("--strategy", choices=["auto", "loops", "fibers"], help="how threads run on the CPU")
    parser.add_argument(
        "--optimize", type=int, default=1, metavar="N", help="have LLVM optimize every Nth program only"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; on a GPU each has 4 GB of stacks")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a program may take")
    parser.add_argument("--only", help="rare features that programs may have, with commas; 'none' for none")
    parser.add_argument("--with", dest="always", help="rare features that every program has, with commas")
    parser.add_argument("--without", help="rare features that they may not have, with commas")
    parser.add_argument("--until", type=int, help="stop after this number of failures")
    parser.add_argument("--keep", metavar="FILE", help="write digests of the bits that reproducible programs leave")
    parser.add_argument("--against", metavar="FILE", help="compare with the digests that another run has saved")
    parser.add_argument("--quiet", action="store_true", help="print no programs")
    parser.add_argument("--minimize", type=int, metavar="SEED", help="make the failing program of a seed small")
    return parser.parse_args()


def features(asked: argparse.Namespace) -> tuple[str, ...]:
    """The rare features that programs may have."""
    from generators.random_integer_limits import FEATURES

    only = asked.only.split(",") if asked.only else FEATURES
    without = asked.without.split(",") if asked.without else ()
    always = asked.always.split(",") if asked.always else ()
    if unknown := (set(only) - {"none"} | {*without, *always}) - set(FEATURES):
        sys.exit(f"fuzz: no feature {', '.join(sorted(unknown))}; there are {', '.join(FEATURES)}")
    if asked.device == "python":
        without = (*without, *NOT_INTERPRETED)
    may = [name for name in FEATURES if name in only and name not in without]
    return (*may, *(f"+{name}" for name in always))


def has_bfloat16() -> bool:
    """Whether there are arrays of `bfloat16`: by Python's interpreter only with the package ml_dtypes."""
    return os.environ.get("WEFT_DEVICE") != "python" or importlib.util.find_spec("ml_dtypes") is not None


def run(program: object, *, optimized: bool = True) -> str:
    """`passed`; `inexact` or `meaningless` for a program without defined results; or a description of the failure."""
    from generators.random_check import Inexact, Meaningless, compare, expected, is_sound, unoptimized

    def endless(*_: object) -> None:
        raise Meaningless("a loop does not end, as `n > bound` never holds for a NaN")

    if "bfloat16" in program.source and not has_bfloat16():
        return "meaningless"
    signal.signal(signal.SIGVTALRM, endless)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, ORACLE)
        try:
            wanted = expected(program)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except Inexact:
        return "inexact"
    except Meaningless:
        return "meaningless"
    except Exception:
        return f"the oracle failed\n{traceback.format_exc()}"
    try:
        source = program.source
        compare(program, source if optimized else unoptimized(source), wanted)
    except AssertionError as error:
        return f"{'results differ' if is_sound(program) else 'the program is unsound'}: {error}"
    except UnboundLocalError:
        return "meaningless"  # by Python's interpreter; a compiled kernel reads zero
    except Exception as error:
        # A shuffle from a lane that does not exist is undefined in CUDA, and returns the lane's own value in weft.
        kinds = {finding.kind for finding in getattr(error, "findings", ())}
        if kinds != {"shuffle from a missing lane"}:
            return f"{type(error).__name__}: {error}"
    return "passed"


def bits(program: object, wanted: str | None) -> str:
    """`passed` and the digest of a program's bits, the reason why there is none, or how it differs from `wanted`."""
    from generators.random_bits import Unordered, digest, is_meaningful

    def endless(*_: object) -> None:
        raise TimeoutError

    if wanted is None:
        signal.signal(signal.SIGVTALRM, endless)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, ORACLE)
            try:
                if not is_meaningful(program):
                    return "meaningless"
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except TimeoutError:
            return "meaningless"
    try:
        found = digest(program)
    except Unordered:
        return "unordered"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if wanted not in (None, found):
        return f"bits differ: {found} where {wanted} was saved"
    return f"passed {found}"


def written(program: object) -> str:
    """A program in printed form."""
    head = f"# {', '.join(program.features)}; launched with {program.grid}, {program.block}"
    return f"{head}\n{program.source}"


def work(
    seeds: object,
    results: object,
    chosen: tuple[str, ...],
    typing: str,
    optimize: int,
    digests: dict[int, str] | None,
) -> None:
    """The body of a process: takes seeds until there are none and sends the result of each."""
    warnings.simplefilter("ignore")
    gc.set_threshold(200_000, 20, 20)  # many syntax trees, few reference cycles
    import linecache

    from generators import random_numpy
    from generators.random_check import EXACT
    from oracle import numeric, rewrite

    generate = generator(typing)
    check = random_numpy.run if typing == "numpy" else run
    if digests is None:
        numeric._BINARY.update(EXACT)
    grow_stacks()
    while (seed := seeds.recv()) is not None:
        try:
            program = generate(seed, chosen)
        except Exception:
            results.send((seed, f"the generator failed\n{traceback.format_exc()}", ""))
            continue
        if digests is None:
            outcome = check(program, optimized=seed % optimize == 0)
        else:
            outcome = bits(program, digests.get(seed))
        results.send((seed, outcome, "" if outcome.split()[0] in GOOD else written(program)))
        rewrite._functions.clear()
        linecache.clearcache()


def generator(typing: str) -> object:
    """The function that generates a program from a seed, and the features that a program may have."""
    from generators import random_numpy, random_programs

    return random_numpy.generate if typing == "numpy" else random_programs.generate


def grow_stacks() -> None:
    """Give GPU threads enough stack for unoptimized calls; recursion does not check for overflow."""
    if os.environ.get("WEFT_DEVICE") == "cuda":
        import ctypes

        from weft import cuda

        cuda.synchronize()  # makes the context
        status = ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(0, ctypes.c_size_t(STACK))
        if status:
            sys.exit(f"fuzz: no stacks of {STACK} bytes (CUDA error {status}): fewer --jobs may help")


class Worker:
    """A process and its current program."""

    def __init__(self, context: object, *work_with: object) -> None:
        self.seeds, seeds = context.Pipe()
        self.results, results = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(seeds, results, *work_with), daemon=True)
        self.process.start()
        seeds.close()
        results.close()
        self.seed: int | None = None
        self.since, self.done = time.monotonic(), 0

    def give(self, seed: int | None) -> None:
        """Starts a program; None ends the process."""
        self.seed, self.since = seed, time.monotonic()
        self.seeds.send(seed)

    def result(self, timeout: float) -> tuple[str, str] | None:
        """The result of the program, if there is one yet."""
        try:
            if self.results.poll():
                _, outcome, text = self.results.recv()
                self.done += 1
                return outcome, text
        except (EOFError, ConnectionError):
            self.process.join()
            return f"the process ended with {self.process.exitcode}", ""
        if not self.process.is_alive() and not self.results.poll():
            return f"the process ended with {self.process.exitcode}", ""
        if time.monotonic() - self.since > timeout:
            self.process.kill()
            self.process.join()
            return f"did not end within {timeout:.0f} s", ""
        return None


def sweep(asked: argparse.Namespace, chosen: tuple[str, ...]) -> int:
    """Runs all seeds; the number of those that failed."""
    context = multiprocessing.get_context("spawn")
    counts = dict.fromkeys((*GOOD, "failed"), 0)
    kept = kept_digests(asked)
    waiting = iter(kept or range(asked.first, asked.first + asked.count))
    workers: list[Worker] = [Worker(context, chosen, asked.typing, asked.optimize, kept) for _ in range(asked.jobs)]
    file = Path(asked.keep).open("w", encoding="utf-8", buffering=1) if asked.keep else None
    start = last = time.monotonic()
    for worker in workers:
        worker.give(next(waiting, None))
    while any(worker.seed is not None for worker in workers):
        busy = [worker for worker in workers if worker.seed is not None]
        multiprocessing.connection.wait([worker.results for worker in busy], timeout=1.0)
        for place, worker in enumerate(workers):
            if worker.seed is None or (found := worker.result(asked.timeout)) is None:
                continue
            outcome, text = found
            outcome, _, digest = outcome.partition(" ") if outcome.startswith("passed ") else (outcome, "", "")
            if file and digest:
                print(worker.seed, digest, file=file)
            counts[outcome if outcome in counts else "failed"] += 1
            total = sum(counts.values())
            if outcome not in counts:
                at = f"program {total} after {time.monotonic() - start:.0f} s"
                text = text or source(worker.seed, chosen, asked.typing)
                print(f"\n==> seed {worker.seed} failed ({at}): {outcome}")
                print("" if asked.quiet else text, flush=True)
                worker.done = LIFE  # a failure may have corrupted the process, and its device
            enough = asked.until and counts["failed"] >= asked.until
            following = None if enough else next(waiting, None)
            if worker.process.is_alive() and worker.done >= LIFE and following is not None:
                worker.give(None)
            if not worker.process.is_alive() or worker.done >= LIFE:
                if following is None:
                    worker.seed = None
                    continue
                workers[place] = worker = Worker(context, chosen, asked.typing, asked.optimize, kept)
            worker.give(following)
        if time.monotonic() - last > 60:
            last = time.monotonic()
            done = sum(counts.values())
            print(f"fuzz: {done} programs, {counts['failed']} failed, {done / (last - start):.1f} a second", flush=True)
    seconds = time.monotonic() - start
    done = sum(counts.values())
    if file:
        file.close()
    told = ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", *GOOD[1:]))
    print(f"\nfuzz: {told} in {seconds:.0f} s, {done / seconds:.1f} a second")
    return counts["failed"]


def kept_digests(asked: argparse.Namespace) -> dict[int, str] | None:
    """The digests to compare with, by seed; an empty dict to compute digests, None for an ordinary run."""
    if asked.against:
        lines = Path(asked.against).read_text(encoding="utf-8").splitlines()
        return {int(seed): digest for seed, digest in map(str.split, lines)}
    return {} if asked.keep else None


def source(seed: int, chosen: tuple[str, ...], typing: str) -> str:
    """The program of a seed whose process has died."""
    try:
        return written(generator(typing)(seed, chosen))
    except Exception:
        return ""


def main() -> int:
    """Runs the command of the command line."""
    asked = options()
    os.environ["WEFT_DEVICE"] = asked.device
    if asked.device == "cpu" and asked.jobs > 1:
        os.environ.setdefault("WEFT_CPU_THREADS", "1")  # several programs run in parallel
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if asked.keep or asked.against:
        os.environ["WEFT_REPRODUCIBLE"] = "1"
    if asked.strategy:
        os.environ["WEFT_CPU_STRATEGY"] = asked.strategy
    if asked.sanitize:
        os.environ |= {
            "WEFT_SANITIZE": "all",
            "WEFT_SANITIZE_BENIGN_RACES": "ignore",
        }  # programs may write one value twice
    warnings.simplefilter("ignore")
    chosen = features(asked)
    if asked.typing == "numpy" and (asked.minimize is not None or asked.keep or asked.against):
        sys.exit("fuzz: programs of NumPy's typing are only run: without --minimize, --keep and --against")
    if asked.minimize is not None:
        from generators.random_minimize import minimize

        return minimize(asked.minimize, chosen, asked.timeout, asked.jobs)
    return 1 if sweep(asked, chosen) else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
