"""``python -m weft.numba script.py [args]``, ``-m module [args]`` or ``-c code [args]``: run a program on weft.

The program sees what it would see under ``python``: its own `__main__`, `sys.argv` and first folder of `sys.path`.
"""

from __future__ import annotations

import linecache
import os
import runpy
import sys
import types
from pathlib import Path

import weft.numba

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

USAGE = """\
usage: python -m weft.numba script.py [args]
       python -m weft.numba -m module [args]
       python -m weft.numba -c code [args]
       python -m weft.numba - [args]           (the program is read from the standard input)

Runs a program that was written for numba.cuda on weft, and the Python processes that it starts.
"""


def main(args: list[str]) -> int:
    """Run what the arguments name."""
    if not args or args[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if args else sys.stderr)
        return 0 if args else 2
    first, rest = args[0], args[1:]
    if first.startswith("-") and first not in ("-m", "-c", "-"):
        print(
            f"weft.numba has no option {first}: Python's stand before `-m weft.numba`\n{USAGE}", end="", file=sys.stderr
        )
        return 2
    if first in ("-m", "-c") and not rest:
        print(f"weft.numba: argument expected for {first}\n{USAGE}", end="", file=sys.stderr)
        return 2
    weft.numba.install()
    if first == "-m":
        _run_module(rest)
    elif first == "-c":
        _first_path("")
        sys.argv[:] = ["-c", *rest[1:]]
        _run(rest[0], "<string>")
    elif first == "-":
        _first_path("")
        sys.argv[:] = args
        _run(sys.stdin.read(), "<stdin>")
    else:
        return _run_script(first, rest)
    return 0


def _first_path(folder: str) -> None:
    """Put a folder where `python -m` has put the current one."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _run_module(args: list[str]) -> None:
    sys.argv[:] = args
    runpy.run_module(args[0], run_name="__main__", alter_sys=True)


def _run_script(script: str, rest: list[str]) -> int:
    sys.argv[:] = [script, *rest]
    path = Path(script)
    if path.is_dir() or path.suffix in (".zip", ".pyz"):
        if not sys.flags.safe_path:
            del sys.path[0]
        runpy.run_path(script, run_name="__main__")
        return 0
    try:
        source = path.read_bytes()
    except OSError as error:
        print(f"weft.numba: can't open file {script!r}: {error.strerror}", file=sys.stderr)
        return 2
    # As Python does: the folder that a link leads to.
    _first_path(str(Path(os.path.realpath(script)).parent))
    # The name as it was given, made absolute; links stay.
    name = str(Path(script).absolute())
    _run(source, name, __file__=name)
    return 0


def _run(source: str | bytes, filename: str, **names: Any) -> None:
    """Run code as the program's `__main__`, which stays after it: threads and what runs at exit may need it."""
    if isinstance(source, str):
        # There is no file with the text of its kernels.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __spec__=None, __package__=None, **names)
    sys.modules["__main__"] = module
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
