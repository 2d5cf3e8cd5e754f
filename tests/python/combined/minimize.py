"""Makes a failing program small: fewer launches and statements, as long as it fails in the same way and is sound."""

from __future__ import annotations

import ast
import dataclasses
import multiprocessing
import sys
import time
from typing import TYPE_CHECKING, Any

from combined.check import Runner, judge, run
from combined.launches import Launch, View
from combined.sweep import Item, program_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from combined.programs import Program


def attempt(connection: Any, program: Program, device: str) -> None:
    """The body of a process: runs one program. An unsound program passes."""
    import warnings

    warnings.simplefilter("ignore")
    if judge(program):
        connection.send("unsound")
        return
    connection.send("sound")
    connection.send(run(program, Runner(device))[0])


def outcome(program: Program, device: str, timeout: float) -> str:
    """The result of a program that runs in a separate process."""
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    process = context.Process(target=attempt, args=(other, program, device), daemon=True)
    process.start()
    other.close()
    found = ""
    try:
        for _ in range(2):
            if not mine.poll(timeout):
                return "did not end" if found else "unsound"
            found = mine.recv()
            if found == "unsound":
                return found
        return found
    except EOFError:
        process.join()
        return f"the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()


def kind_of(found: str) -> str:
    return " ".join(found.split()[:2])


def smaller_sources(source: str) -> Iterator[str]:
    """Sources without one of the statements, larger ones first, or with a block in place of its statement."""
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    blocks: list[tuple[ast.AST, str]] = []
    for function in reversed(functions):
        for node in ast.walk(function):
            blocks += [(node, name) for name in ("body", "orelse") if isinstance(getattr(node, name, None), list)]
    for node, name in blocks:
        body = getattr(node, name)
        for size in (len(body) // 2, 2, 1):
            if not 0 < size <= len(body):
                continue
            for at in range(len(body) - size, -1, -1):
                rest = body[:at] + body[at + size :]
                if not rest and name == "body":
                    if isinstance(body[at], ast.Pass):
                        continue
                    rest = [ast.Pass()]
                setattr(node, name, rest)
                yield ast.unparse(tree) + "\n"
                setattr(node, name, body)
        for at, each in enumerate(body):
            if isinstance(each, (ast.If, ast.For, ast.While)):
                for part in (each.body, each.orelse):
                    if part:
                        setattr(node, name, [*body[:at], *part, *body[at + 1 :]])
                        yield ast.unparse(tree) + "\n"
                        setattr(node, name, body)
    for function in functions[:-1]:
        tree.body.remove(function)
        yield ast.unparse(tree) + "\n"
        tree.body.insert(0, function)
    for node in ast.walk(functions[-1]):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.BinOp):
                for part in (value.left, value.right):
                    setattr(node, name, part)
                    yield ast.unparse(tree) + "\n"
                    setattr(node, name, value)


def without_unused(program: Program) -> Program:
    """The program without the parameters that its kernel does not read."""
    tree = ast.parse(program.source)
    function = [node for node in tree.body if isinstance(node, ast.FunctionDef)][-1]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    function.args.args = [arg for arg in function.args.args if arg.arg in used]
    made = []
    for launch in program.launches:
        args = {name: arg for name, arg in launch.args.items() if name in used}
        kept = sorted({arg.buffer for arg in args.values() if isinstance(arg, View)})
        args = {
            name: dataclasses.replace(arg, buffer=kept.index(arg.buffer)) if isinstance(arg, View) else arg
            for name, arg in args.items()
        }
        buffers = [launch.buffers[each] for each in kept]
        made.append(Launch(launch.grid, launch.block, buffers, args, launch.at_end))
    params = {name: param for name, param in program.params.items() if name in used}
    return dataclasses.replace(program, source=ast.unparse(tree) + "\n", launches=made, params=params)


def minimize(item: Item, device: str, *, timeout: float = 15.0, seconds: float = 600.0) -> tuple[Program, str]:
    """A small program that fails like that of an item, and how; the unchanged program if it does not fail."""
    program = program_of(item)
    found = outcome(program, device, timeout)
    if found in ("passed", "unsound"):
        return program, found
    kind, start = kind_of(found), time.monotonic()
    for launch in reversed(program.launches):
        less = dataclasses.replace(program, launches=[launch])
        now = outcome(less, device, timeout)
        if kind_of(now) == kind:
            program, found = less, now
            break
    changed = True
    while changed and time.monotonic() - start < seconds:
        changed = False
        tried: set[str] = set()
        for source in smaller_sources(program.source):
            if source in tried or time.monotonic() - start > seconds:
                continue
            tried.add(source)
            less = without_unused(dataclasses.replace(program, source=source))
            now = outcome(less, device, timeout)
            if kind_of(now) == kind:
                program, found, changed = less, now, True
                print(f"# {len(source.splitlines())} lines: {now[:100]}", file=sys.stderr, flush=True)
                break
    return program, found
