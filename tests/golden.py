"""Records and compares digests of kernels' LLVM IR, to prove that a change of the compiler changes no code.

    python tests/golden.py record FILE
    python tests/golden.py compare BEFORE AFTER

`record` compiles the kernels of `tests/kernels`, of the conformance tests and of the CPU benchmark for five CPUs and
two SMs (`WEFT_IR_DIGESTS`), with the `weft` of this Python. The digests are those of LLVM IR before LLVM's passes.
`compare` lists the kernels whose digests differ, and fails if there are any. Record both files on one machine: LLVM IR
names the CPU that code is for.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Digests = dict[tuple[str, str, str], frozenset[str]]


def read(file: Path) -> Digests:
    """The digests of each kernel and target: location, name with types, and target."""
    found = defaultdict(set)
    for line in file.read_text(encoding="utf-8").splitlines():
        location, kernel, target, digest = line.split("\t")
        found[location, kernel, target].add(digest)
    return {key: frozenset(digests) for key, digests in found.items()}


def write(file: Path, digests: Digests) -> None:
    """Writes digests in order, each once."""
    lines = sorted("\t".join((*key, digest)) for key, all_of_key in digests.items() for digest in all_of_key)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def differences(before: Digests, after: Digests) -> list[str]:
    """A line for each kernel and target whose digests differ, or which one of both lacks."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        if key not in after:
            lines.append(f"only before: {' '.join(key)}")
        elif key not in before:
            lines.append(f"only after: {' '.join(key)}")
        elif before[key] != after[key]:
            lines.append(f"differs: {' '.join(key)}")
    return lines


def record(file: Path) -> None:
    """Compiles all kernels and writes their digests."""
    file = file.absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    env = os.environ | {
        "WEFT_DEVICE": "cpu", "WEFT_CACHE": "off", "WEFT_HOST_OPT_LEVEL": "0", "WEFT_IR_DIGESTS": str(file),
    }  # fmt: skip
    pytest = [sys.executable, "-m", "pytest", "-q", "--device", "cpu", "-n", str(os.cpu_count()), "--dist", "worksteal"]
    # Kernels of random programs have no location, and some tests measure accuracy at the default optimization level.
    tests = subprocess.run([*pytest, "tests/python/conformance", "-k", "not random"], cwd=ROOT, env=env, check=False)
    failed = ["the conformance tests"] if tests.returncode else []
    bench = [sys.executable, "tests/benchmarks/cpu.py", "--sizes", "tiny", "--repeats", "1", "--without-numba"]
    subprocess.run(bench, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    for kernels in sorted((ROOT / "tests" / "kernels").rglob("*.py")):
        header = re.search('^# weft: sig = "([^"]*)"', kernels.read_text(encoding="utf-8"), re.MULTILINE)
        if header is None:
            continue
        name = str(kernels.relative_to(ROOT))
        emit = [sys.executable, "-m", "weft", "emit", "--target", "host", "--sig", header[1], name]
        done = subprocess.run(emit, cwd=ROOT, env=env, check=False, capture_output=True)
        failed += [name] if done.returncode else []
    digests = read(file)
    write(file, digests)
    print(f"{file}: {len({key[:2] for key in digests})} kernels, {len(digests)} with targets")
    if failed:
        print(f"without the kernels that failed before their digest: {', '.join(failed)}", file=sys.stderr)


def main() -> int:
    """Runs the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("file", type=Path)
    compared = commands.add_parser("compare")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    asked = parser.parse_args()
    if asked.command == "record":
        record(asked.file)
        return 0
    before, after = read(asked.before), read(asked.after)
    found = differences(before, after)
    print("".join(f"{line}\n" for line in found), end="")
    print(f"{len(before)} before, {len(after)} after, {len(found)} differences")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
