"""Prints a generated kernel, its signature, and its launch of the full size: `python show.py SEED`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from generated import generate

if __name__ == "__main__":
    case = generate(int(sys.argv[1]))
    work = case.work("full")
    print(f"{case.source}\n# {case.signature}\n# grid {work.grid}, block {work.block}, {work.n_bytes >> 20} MiB")
