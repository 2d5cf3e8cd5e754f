"""Runs a Python program inside this process, for commands that observe its kernels."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path


def run_program(program: str, args: list[str], is_module: bool) -> int:
    before = sys.argv[:], sys.path[:]
    sys.argv = [program, *args]
    try:
        if is_module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(program).resolve().parent))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as exit:
        if exit.code is None or isinstance(exit.code, int):
            return exit.code or 0
        print(exit.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0
