"""Runs rows in this process: `python -m bad_calls.run MODULE FIRST`, with a line of JSON before and after each.

If a row ends the process, the parent process finds it by these lines and continues with the next row.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys

SECONDS = 30


def out_of_time(_signal: int, _frame: object) -> None:
    """Ends a row that runs too long, if Python code or a launch can be interrupted."""
    message = f"no end after {SECONDS} s"
    raise TimeoutError(message)


def main(module: str, first: int) -> None:
    """Runs the rows of a module, starting with one of them."""
    from bad_calls.cases import verdict

    rows = importlib.import_module(f"bad_calls.{module}").CASES
    # The output of rows is discarded.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    signal.signal(signal.SIGALRM, out_of_time)
    for number, row in enumerate(rows[first:], first):
        print(json.dumps(["begin", number]), file=lines)
        signal.alarm(SECONDS)
        found, text = verdict(row, number)
        signal.alarm(0)
        print(json.dumps([found, number, text]), file=lines)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
