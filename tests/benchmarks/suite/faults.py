"""One line about an exception, for a cell of a table. Exceptions are also printed to stderr, except missing
libraries."""

from __future__ import annotations

import re
import sys
import traceback


def brief(fault: BaseException) -> str:
    if isinstance(fault, ModuleNotFoundError):
        return f"no {fault.name} here"
    traceback.print_exception(fault, file=sys.stderr)
    # Some messages end with a line of punctuation.
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(fault))  # colors of a terminal
    lines = [line.strip() for line in message.splitlines() if any(letter.isalnum() for letter in line)]
    text = f"{type(fault).__name__}: {lines[-1]}" if lines else type(fault).__name__
    return text.replace("|", "\\|")[:160]
