"""Runs every benchmark that the device allows; ``./weft-dev bench`` calls it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = {
    "cpu": (
        ("kernels.py", "--cpu-check"),
        ("arrays.py",),
        ("compile.py", "--no-launch"),
        ("cpu_saxpy.py",),
        ("cpu_warps.py",),
        ("operations.py",),
        ("import_time.py",),
    ),
    "cuda": (
        ("kernels.py",),
        ("arrays.py",),
        ("operations.py",),
        ("coop.py",),
        ("coop_sorts.py",),
        ("compile.py",),
        ("launch.py",),
        ("memory.py",),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=tuple(PROGRAMS), default="cpu")
    device = parser.parse_args().device
    failed = []
    for name, *options in PROGRAMS[device]:
        print(f"\n## {' '.join([name, *options])}\n", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(name)), *options]
        if subprocess.call(command, env=os.environ | {"WEFT_DEVICE": device}):
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
