"""``python -m weft.numba script.py [args]``, ``-m module [args]`` or ``-c code [args]``: run a program on weft.

The program sees what it would see under ``python``: its own `__main__`, `sys.argv` and first folder of `sys.path`, and
the same names in `__main__`. Modules, folders and archives are run by the function of `runpy` that Python itself calls
for them.
"""

from __future__ import annotations

import importlib.util
import linecache
import marshal
import os
import pkgutil
import runpy
import sys
import types
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from pathlib import Path

import weft.numba

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, TracebackType
    from typing import Any

USAGE = """\
usage: python -m weft.numba script.py [args]
       python -m weft.numba -m module [args]
       python -m weft.numba -c code [args]
       python -m weft.numba - [args]           (the program is read from the standard input)

Runs a program that was written for numba.cuda on weft, and the Python processes that it starts.
"""


def main(args: list[str]) -> int:
    """Run the program that the arguments name."""
    if not args or args[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if args else sys.stderr)
        return 0 if args else 2
    first, rest = args[0], args[1:]
    if first.startswith("-") and first not in ("-m", "-c", "-"):
        print(
            f"weft.numba has no option {first}: put Python's options before `-m weft.numba`\n{USAGE}",
            end="",
            file=sys.stderr,
        )
        return 2
    if first in ("-m", "-c") and not rest:
        print(f"weft.numba: argument expected for {first}\n{USAGE}", end="", file=sys.stderr)
        return 2
    weft.numba.install()
    try:
        if first == "-m":
            # The module's file replaces "-m" after it is found.
            sys.argv[:] = ["-m", *rest[1:]]
            _run_module(rest[0], is_named=True)
        elif first == "-c":
            _first_path("")
            sys.argv[:] = ["-c", *rest[1:]]
            _run_source(rest[0], "<string>")
        elif first == "-":
            _first_path("")
            sys.argv[:] = args
            _run_source(sys.stdin.read(), "<stdin>", is_file=True)
        else:
            return _run_path(first, rest)
    except SystemExit:
        raise
    except BaseException:
        # Python exits as for any program, with only the program's part of the traceback.
        sys.excepthook = _ProgramsHook(sys.excepthook)
        raise
    return 0


class _ProgramsHook:
    """Calls the program's own `sys.excepthook` with a traceback that begins in the program."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        sys.excepthook = self._hook
        # Skip Python's frames that run this module, and this module's frames.
        while traceback is not None and traceback.tb_frame.f_globals is not globals():
            traceback = traceback.tb_next
        while traceback is not None and traceback.tb_frame.f_globals is globals():
            traceback = traceback.tb_next
        sys.last_traceback = error.__traceback__ = traceback
        self._hook(kind, error, traceback)


def _first_path(folder: str) -> None:
    """Put a folder where `python -m` has put the current one."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _new_main(**names: Any) -> dict[str, Any]:
    """Make the program's `__main__`, which outlives its last line: threads and functions at exit use it."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __loader__=BuiltinImporter)
    # The names that this version of Python defines in `__main__`.
    if "__annotations__" in globals():
        module.__annotations__ = {}
    module.__dict__.update(names)
    sys.modules["__main__"] = module
    return module.__dict__


def _run_module(name: str, *, is_named: bool) -> None:
    """Run a module that is named, or the `__main__` of the folder or archive at the head of `sys.path`."""
    _new_main()
    runpy._run_module_as_main(name, is_named)  # type: ignore[attr-defined]


def _run_path(path: str, rest: list[str]) -> int:
    sys.argv[:] = [path, *rest]
    # As in Python, neither `..` nor links are resolved.
    name = os.getcwd() if path == "." else os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118
    if pkgutil.get_importer(name) is not None:
        if sys.flags.safe_path:
            sys.path.insert(0, name)
        else:
            sys.path[0] = name
        _run_module("__main__", is_named=False)
        return 0
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        print(f"weft.numba: can't open file {path!r}: {error.strerror}", file=sys.stderr)
        return 2
    # As in Python, the folder of the link's target.
    _first_path(str(Path(os.path.realpath(path)).parent))
    if name.endswith(".pyc") or content[:2] == importlib.util.MAGIC_NUMBER[:2]:
        loader = SourcelessFileLoader("__main__", name)
        _run_file(_compiled(content), name, __loader__=loader)
    else:
        _run_source(content, name, is_file=True, __loader__=SourceFileLoader("__main__", name))
    return 0


def _compiled(content: bytes) -> CodeType:
    """Give the code in the content of a ``.pyc``: after a header of 16 bytes, which begins with Python's number."""
    magic = importlib.util.MAGIC_NUMBER
    if content[: len(magic)] != magic:
        msg = "Bad magic number in .pyc file"
        raise RuntimeError(msg)
    code = marshal.loads(content[16:])
    if not isinstance(code, types.CodeType):
        msg = "Bad code object in .pyc file"
        raise RuntimeError(msg)
    return code


def _run_source(source: str | bytes, filename: str, *, is_file: bool = False, **names: Any) -> None:
    if isinstance(source, str):
        # The source of its kernels is in no file.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    if is_file:
        _run_file(source, filename, **names)
    else:
        exec(compile(source, filename, "exec", dont_inherit=True), _new_main(**names))


def _run_file(content: str | bytes | CodeType, filename: str, **names: Any) -> None:
    """Run a script, or what comes from the standard input: `__main__` has the file's name while it runs."""
    of_file: dict[str, Any] = {"__file__": filename}
    if "__cached__" in globals():
        of_file["__cached__"] = None
    main = _new_main(**of_file, **names)
    try:
        code = content if isinstance(content, types.CodeType) else compile(content, filename, "exec", dont_inherit=True)
        exec(code, main)
    finally:
        for name in of_file:
            main.pop(name, None)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    if status:
        sys.exit(status)
