"""The body of a worker process of `combined.sweep`, and the minimizer."""

from __future__ import annotations

import dataclasses
import multiprocessing
import warnings
from typing import Any

from combined.minimize import smaller_sources

from differentiable.programs import Program, generate


def work(connection: Any, *_: object) -> None:
    """Takes seeds until there are none, and sends the result of each."""
    warnings.simplefilter("ignore")
    from differentiable.check import run

    while (seed := connection.recv()) is not None:
        connection.send((seed, run(generate(seed))))


def attempt(connection: Any, program: Program) -> None:
    """The body of a process: runs one program."""
    warnings.simplefilter("ignore")
    from differentiable.check import run

    connection.send(run(program))


def outcome(program: Program, timeout: float) -> str:
    """The result of a program that runs in a separate process."""
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    process = context.Process(target=attempt, args=(other, program), daemon=True)
    process.start()
    other.close()
    try:
        return mine.recv() if mine.poll(timeout) else "did not end"
    except EOFError:
        process.join()
        return f"the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()


def minimize(program: Program, timeout: float) -> tuple[str, str]:
    """A small source that fails like a program, and how; the program's own if it does not fail."""
    found = outcome(program, timeout)
    word = found.split(":")[0]
    changed = word not in ("passed", "refused", "unresolved")
    while changed:
        changed = False
        for source in smaller_sources(program.source):
            less = dataclasses.replace(program, source=source)
            now = outcome(less, timeout)
            if now.split(":")[0] == word:
                program, found, changed = less, now, True
                break
    return program.source, found
