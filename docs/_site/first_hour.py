"""Goes through a newcomer's first hour in a clean environment, and writes of it and its times docs/first-hour.md.

    python docs/_site/first_hour.py dist/weft-*.whl

It makes a virtual environment in a folder that goes away, installs the wheel and what is drawn with from the package
index, runs a first kernel with its mistakes, draws, and runs and saves a notebook by a Jupyter kernel. Each step's
command has to end as the page says.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "first-hour.md"

FIRST = """\
import numpy as np
from weft import cuda


@cuda.jit
def step(u, new):
    x, y = cuda.grid(2)
    if 0 < y < u.shape[0] - 1 and 0 < x < u.shape[1] - 1:
        around = u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1]
        new[y, x] = u[y, x] + np.float32(0.2) * (arround - 4 * u[y, x])


u = np.zeros((256, 256), np.float32)
u[100:150, 60:200] = 1
old, new = cuda.to_device(u), cuda.to_device(u)
for _ in range(500):
    step[u.shape[0] / 16, (16, 16)](old, new)
    old, new = new, old
result = old.copy_to_host()
print(result.sum(), result.max())
"""
GRID = ("u.shape[0] / 16, (16, 16)", "(16, 16), (16, 16)")
NAME = ("arround", "around")
PLOT = """
import matplotlib.pyplot as plt

plt.imshow(result, cmap="inferno")
plt.savefig("heat.png")
"""
CHECK = """
expected = u.copy()
for _ in range(500):
    around = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
    expected[1:-1, 1:-1] += np.float32(0.2) * (around - 4 * expected[1:-1, 1:-1])
print(np.allclose(result, expected, atol=1e-5))
"""


@dataclass
class Step:
    """A step: what is done and why, the files that it writes, its command, and how that ends."""

    title: str
    says: str
    command: list[str]
    files: dict[str, str] = field(default_factory=dict)
    shown: str = ""
    fails: bool = False
    prints: bool = True


def steps(wheel: Path) -> list[Step]:
    """All of them; `python` and `pip` are those of the environment."""
    first, grid = FIRST, FIRST.replace(*GRID)
    right = grid.replace(*NAME)
    cells = [right, PLOT.replace('plt.savefig("heat.png")', "plt.show()").strip() + "\n"]
    return [
        Step("An environment", "", ["python", "-m", "venv", "venv"], prints=False),
        Step("Install weft", "The wheel, and NumPy.", ["pip", "install", str(wheel)], prints=False),
        Step("What is there", "", ["weft", "devices"]),
        Step(
            "A first kernel of one's own",
            "Heat that spreads: each point becomes warmer or colder, as its neighbors are. Written in one go:",
            ["python", "heat.py"], {"heat.py": first}, first, fails=True,
        ),
        Step(
            "The first mistake",
            "`/` gives a float, and a grid of two dimensions is a tuple: `(16, 16), (16, 16)` it should be.",
            ["python", "heat.py"], {"heat.py": grid}, fails=True,
        ),
        Step("The second mistake", "The message says it: `around`.", ["python", "heat.py"], {"heat.py": right}),
        Step("The same once more", "What was compiled was kept on the disk.", ["python", "heat.py"]),
        Step("Is it right?", "Compared with NumPy:", ["python", "heat.py"], {"heat.py": right + CHECK}, CHECK.lstrip()),
        Step("Something to draw with", "", ["pip", "install", "matplotlib"], prints=False),
        Step("A plot", "", ["python", "heat.py"], {"heat.py": right + PLOT}, PLOT.lstrip(), prints=False),
        Step("Jupyter", "", ["pip", "install", "nbconvert", "ipykernel"], prints=False),
        Step(
            "A notebook, run and saved with its outputs",
            "The program and the plot as two cells. (By hand it is `jupyter lab`; here a command runs it.)",
            ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", "heat.ipynb"],
            {"heat.ipynb": notebook(cells)}, prints=False,
        ),
    ]  # fmt: skip


def notebook(cells: list[str]) -> str:
    """A notebook that was not run."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


def go(wheel: Path, folder: Path) -> tuple[list[str], float]:
    """Do all steps: the parts of the page, and the seconds that they took together."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WEFT", "VIRTUAL"))}
    env |= {"PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache")}
    env |= {"WEFT_DEVICE": "cpu", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    parts, total = [], 0.0
    for step in steps(wheel):
        for name, text in step.files.items():
            (folder / name).write_text(text)
        binary = folder / "venv" / "bin" / step.command[0]
        argv = [str(binary) if binary.exists() else sys.executable, *step.command[1:]]
        start = time.monotonic()
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - start
        total += seconds
        said = (done.stdout + done.stderr).replace(f"{folder}/", "").strip()
        if (done.returncode != 0) != step.fails:
            raise SystemExit(f"{step.title}: {' '.join(argv)} ended with {done.returncode}:\n{said}")
        parts.append(f"## {step.title}\n")
        if step.says:
            parts.append(f"{step.says}\n")
        if step.shown:
            parts.append(f"```py\n{step.shown.rstrip()}\n```\n")
        parts.append(f"    {' '.join(step.command).replace(str(wheel), wheel.name)}\n")
        if step.prints:
            parts.append(f"```text\n{shortened(said)}\n```\n")
        parts.append(f"{seconds:.1f} s.\n")
    saved = json.loads((folder / "heat.ipynb").read_text())
    outputs = [output for cell in saved["cells"] for output in cell["outputs"]]
    if not any("image/png" in output.get("data", {}) for output in outputs) or not (folder / "heat.png").exists():
        raise SystemExit("the notebook or the plot has no picture")
    return parts, total


def shortened(said: str) -> str:
    """The end of a traceback, which is what one reads."""
    return re.sub(r"Traceback.*?\n(?=\S)", "", said, flags=re.DOTALL)


def main() -> None:
    """Go through it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        parts, total = go(wheel, Path(scratch))
    revision = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(revision, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    head = f"""\
<!-- Made by `python docs/_site/first_hour.py WHEEL`; do not edit. -->

# The first hour

From nothing to a saved notebook, as a command went through it on {datetime.now(UTC):%Y-%m-%d}: a clean environment of
Python {platform.python_version()}, the wheel of commit {commit}, {os.cpu_count()} cores and no GPU. Below each step
stands how long the machine took for it, {total:.0f} s in all; the rest of the hour is for reading and typing.
"""
    PAGE.write_text(head + "\n" + "\n".join(parts))
    print(f"{PAGE}: {total:.0f} s")


if __name__ == "__main__":
    main()
