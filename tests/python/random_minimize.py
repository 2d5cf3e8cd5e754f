"""Makes a failing random program small: takes statements and expressions out while it still fails in the same way.

A smaller program counts only if it has types and the oracle runs it. Each attempt runs in a process of its own, since a
program may end it, or not end.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import multiprocessing
import time
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from random_programs import Program


def answer(pipe: object, program: Program) -> None:
    """In a process of its own: how a program fails, by the first word of it."""
    warnings.simplefilter("ignore")
    from fuzz import run
    from oracle import numeric
    from random_check import EXACT, expected

    numeric._BINARY.update(EXACT)
    try:
        expected(program)
    except Exception as error:
        pipe.send(f"the oracle failed: {error}")
        return
    pipe.send("runs")
    pipe.send(run(program))


def failure(program: Program, timeout: float) -> str:
    """How a program fails; nothing if it does not, or is none."""
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(other, program), daemon=True)
    process.start()
    other.close()
    try:
        found = mine.recv() if mine.poll(timeout) else "the oracle did not end"
        if found == "runs":
            found = mine.recv() if mine.poll(timeout) else "did not end"
    except EOFError:
        process.join()
        return f"ended the process with {process.exitcode}"
    finally:
        process.kill()
        process.join()
    if found == "passed" or found.startswith("the "):
        return ""
    return found


def kind_of(found: str) -> str:
    """What of a failure must stay: the kind of exception, or that results differ."""
    return " ".join(found.split()[:2])[:40]


def smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """The module with something less: blocks and statements first, then expressions."""
    places = [(node, field) for node in ast.walk(tree) for field in ("body", "orelse")]
    lists = [(node, field) for node, field in places if isinstance(getattr(node, field, None), list)]
    order = list(ast.walk(tree))
    for node, field in lists:
        block = getattr(node, field)
        size = len(block)
        while size:
            for at in range(0, len(block), size):
                rest = block[:at] + block[at + size :]
                if field == "body" and not rest and not isinstance(node, ast.Module):
                    rest = [ast.Pass()] if not isinstance(block[at], ast.Pass) else block
                if rest != block:
                    yield with_change(tree, order.index(node), field, rest)
            size //= 2
        for at, statement in enumerate(block):
            if isinstance(statement, (ast.If, ast.For, ast.While)):
                for inner in (statement.body, statement.orelse):
                    if inner:
                        yield with_change(tree, order.index(node), field, [*block[:at], *inner, *block[at + 1 :]])
    for place, node in enumerate(order):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and field not in ("func", "slice") and not isinstance(value, ast.Name):
                if isinstance(getattr(value, "ctx", None), ast.Store):
                    continue
                parts = [each for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)]
                known = [] if isinstance(value, ast.Constant) else [ast.Constant(1), ast.Constant(0)]
                for less in (*parts, *known):
                    yield with_change(tree, place, field, less)


def with_change(tree: ast.Module, place: int, field: str, value: object) -> ast.Module:
    """A copy of the tree in which one field of one node is another."""
    new = copy.deepcopy(tree)
    node = next(each for at, each in enumerate(ast.walk(new)) if at == place)
    setattr(node, field, copy.deepcopy(value))
    return new


def races(text: str, before: str) -> bool:
    """Whether a barrier went and shared memory stayed."""
    wait = "cuda.syncthreads()"
    return "cuda.shared" in text and text.count(wait) < before.count(wait)


def minimize(seed: int, chosen: tuple[str, ...], timeout: float) -> int:
    """Prints a small program that fails as the program of a seed does."""
    import weft  # noqa: F401 - the processes that are forked have it then
    from random_programs import generate

    program = generate(seed, chosen)
    timeout = min(timeout, 20.0)
    found = failure(program, timeout)
    if not found:
        print(f"seed {seed} does not fail")
        return 1
    kind, tried, kept = kind_of(found), 0, 0
    tree, again, start, shown = ast.parse(program.source), True, time.monotonic(), 0
    while again:
        again = False
        for less in smaller(tree):
            text = ast.unparse(ast.fix_missing_locations(less)) + "\n"
            if len(text) >= len(program.source) or races(text, program.source):
                continue
            tried += 1
            attempt = dataclasses.replace(program, source=text)
            if kind_of(now := failure(attempt, timeout)) == kind:
                program, tree, found, again, kept = attempt, less, now, True, kept + 1
                if time.monotonic() - start > 60 * (1 + shown):
                    shown += 1
                    print(f"# {kept} steps so far\n{program.source}", flush=True)
                break
    used = {name.id for name in ast.walk(tree) if isinstance(name, ast.Name)}
    print(f"# seed {seed}: {kept} of {tried} steps kept; launched with {program.grid}, {program.block}")
    for name, arg in zip(program.types, program.args, strict=True):
        if name in used:
            print(f"# {name} = {arg!r}")
    print(f"{program.source}\n{found}")
    return 0
