"""Minimizes a failing random program: removes statements and expressions while it still fails in the same way.

A smaller program counts only if it has types, the oracle runs it, and it has no races. Each attempt runs in a separate
process, since a program may crash or not terminate.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
import multiprocessing
import time
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generators.random_programs import Program

GOOD = ("passed", "inexact", "meaningless")


def answer(pipe: object, program: Program) -> None:
    """In a process of its own: how a program fails, by the message's first word."""
    warnings.simplefilter("ignore")
    from fuzz import run
    from oracle import numeric

    from generators.random_check import EXACT, is_sound

    numeric._BINARY.update(EXACT)
    try:
        sound = is_sound(program)
    except Exception as error:
        pipe.send(f"the oracle failed: {error}")
        return
    if not sound:
        pipe.send("the program races")
        return
    pipe.send("runs")
    pipe.send(run(program))


class Attempt:
    """A program that runs in a process of its own."""

    def __init__(self, program: Program) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=answer, args=(other, program), daemon=True)
        self.process.start()
        other.close()

    def failure(self, timeout: float) -> str:
        """How the program fails; empty if it does not fail or is not valid."""
        try:
            found = self.pipe.recv() if self.pipe.poll(timeout) else "the oracle did not end"
            if found == "runs":
                found = self.pipe.recv() if self.pipe.poll(timeout) else "did not end"
        except EOFError:
            self.process.join()
            return f"ended the process with {self.process.exitcode}"
        finally:
            self.stop()
        if found in GOOD or found.startswith("the "):
            return ""
        return found

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()


def kind_of(found: str) -> str:
    """The part of a failure that must be preserved: the kind of exception, or that results differ, and whether the
    host's errors do."""
    return " ".join(found.split()[:2])[:40] + " told" * ("the host received" in found)


def smaller(tree: ast.Module) -> Iterator[tuple[int, str, object]]:
    """Edits that make the program smaller: a node by its number, a field and its new value. Blocks and statements
    come first."""
    order = list(ast.walk(tree))
    for place, node in enumerate(order):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            size = len(block)
            while size:
                for at in range(0, len(block), size):
                    rest = block[:at] + block[at + size :]
                    if field == "body" and not rest and not isinstance(node, ast.Module):
                        rest = [ast.Pass()] if not isinstance(block[at], ast.Pass) else block
                    if rest != block:
                        yield place, field, rest
                size //= 2
            for at, statement in enumerate(block):
                parts = []
                if isinstance(statement, (ast.If, ast.For, ast.While)):
                    parts = [statement.body, statement.orelse]
                elif isinstance(statement, ast.Match):
                    parts = [case.body for case in statement.cases]
                for inner in parts:
                    if inner:
                        yield place, field, [*block[:at], *inner, *block[at + 1 :]]
        if isinstance(node, ast.Match) and len(node.cases) > 1:
            for at in range(len(node.cases)):
                yield place, "cases", node.cases[:at] + node.cases[at + 1 :]
    for place, node in enumerate(order):
        if isinstance(node, (ast.Call, ast.Tuple, ast.MatchOr)):  # an argument, a field, an item or an alternative less
            for field in ("args", "keywords", "elts", "patterns"):
                many = getattr(node, field, [])
                for at in range(len(many)):
                    yield place, field, many[:at] + many[at + 1 :]
        for field, value in ast.iter_fields(node):
            values = value if isinstance(value, list) else [value]
            for at, each in enumerate(values):
                if not isinstance(each, ast.expr) or field in ("func", "slice") or isinstance(each, ast.Name):
                    continue
                if isinstance(getattr(each, "ctx", None), ast.Store):
                    continue
                parts = [part for part in ast.iter_child_nodes(each) if isinstance(part, ast.expr)]
                known = [] if isinstance(each, ast.Constant) else [ast.Constant(1), ast.Constant(0)]
                for less in (*parts, *known):
                    yield place, field, [*value[:at], less, *value[at + 1 :]] if isinstance(value, list) else less


def with_change(tree: ast.Module, place: int, field: str, value: object) -> ast.Module:
    """A copy of the tree in which one field of one node is another."""
    new = copy.deepcopy(tree)
    node = next(each for at, each in enumerate(ast.walk(new)) if at == place)
    setattr(node, field, copy.deepcopy(value))
    return new


def races(text: str, before: str) -> bool:
    """Whether a barrier was removed and shared memory was not."""
    wait = "cuda.syncthreads()"
    return "cuda.shared" in text and text.count(wait) < before.count(wait)


def attempts(tree: ast.Module, program: Program, at: int) -> Iterator[tuple[int, ast.Module, Program]]:
    """Smaller programs from a number on, each with the number of the next."""
    for number, change in enumerate(itertools.islice(smaller(tree), at, None), at + 1):
        less = with_change(tree, *change)
        try:
            text = ast.unparse(ast.fix_missing_locations(less)) + "\n"
        except (AttributeError, IndexError):  # a comparison or an operator of too few operands
            continue
        if len(text) < len(program.source) and not races(text, program.source):
            yield number, less, dataclasses.replace(program, source=text)


def minimize(seed: int, chosen: tuple[str, ...], timeout: float, jobs: int) -> int:
    """Prints a small program that fails as the program of a seed does."""
    import weft  # noqa: F401 - forked processes inherit the import

    from generators.random_programs import generate

    program = generate(seed, chosen)
    timeout = min(timeout, 20.0)
    found = Attempt(program).failure(timeout)
    if not found:
        print(f"seed {seed} does not fail")
        return 1
    kind, tried, kept = kind_of(found), 0, 0
    tree, start, shown = ast.parse(program.source), time.monotonic(), 0
    at, since = 0, 0  # the next attempt, and the number of successes at the last restart
    while True:
        more = list(itertools.islice(attempts(tree, program, at), jobs))
        if not more:
            if at == 0 or since == kept:
                break
            at, since = 0, kept  # start again, since the program shrank
            continue
        running = [Attempt(attempt) for _, _, attempt in more]
        for process, (number, less, attempt) in zip(running, more, strict=True):
            tried += 1
            now = process.failure(timeout)
            at = number
            if kind_of(now) == kind:
                program, tree, found, kept = attempt, less, now, kept + 1
                at = number - 1  # the node at this position is another one now
                break
        for process in running:
            process.stop()
        if time.monotonic() - start > 60 * (1 + shown):
            shown += 1
            print(f"# {kept} of {tried} steps\n{program.source}", flush=True)
    used = {name.id for name in ast.walk(tree) if isinstance(name, ast.Name)}
    print(f"# seed {seed}: {kept} of {tried} steps; launched with {program.grid}, {program.block}")
    for name, arg in zip(program.types, program.args, strict=False):
        if name in used:
            print(f"# {name} = {arg!r}")
    print(f"{program.source}\n{found}")
    return 0
