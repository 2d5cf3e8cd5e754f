"""The programs in README.md and docs/ run unmodified and print what the page shows, and README's commands work.

The ```python blocks of a page are one program; what a block prints is in the ```output block that follows it.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from weft import cuda

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOT_PAGES = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MARK = "\x1e"  # printed before each block, to separate the outputs


def program(page: str) -> tuple[str, list[str]]:
    """The page with all but its programs blanked, so that line numbers agree, and the output expected of each block."""
    lines, outputs, fence = [], [], None
    for line in page.splitlines():
        opens = re.fullmatch(r"```(\S*)", line)
        if opens and fence is not None:
            fence = None
        elif opens:
            fence = opens[1]
            if fence == "python":
                outputs.append("")
                lines.append(f"print({MARK!r}, end='')")
                continue
        elif fence == "output":
            outputs[-1] += line + "\n"
        lines.append(line if fence == "python" else "")
    return "\n".join(lines) + "\n", outputs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_programs(page: Path, tmp_path: Path) -> None:
    source, expected = program(page.read_text())
    if not expected:
        pytest.skip("the page has no program")
    path = tmp_path / f"{page.stem}.py"
    path.write_text(source)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split(MARK)[1:] == expected


def commands() -> list[str]:
    """The lines of README.md's indented blocks that call `weft`."""
    lines = (ROOT / "README.md").read_text().splitlines()
    return [line.strip() for line in lines if line.startswith("    weft ")]


@pytest.mark.parametrize("command", commands())
def test_commands(command: str) -> None:
    weft = Path(sys.executable).with_name("weft")
    run = subprocess.run([weft, *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


def places(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub and the site make them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.+)$", prose, flags=re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def links(page: Path) -> list[str]:
    """The files within the repository that a page links to; a notebook is a page."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [target for target in re.findall(r"\]\(([^()\s]+)\)", prose) if ":" not in target]


@pytest.mark.parametrize("page", [*PAGES, *ROOT_PAGES, *NOTEBOOKS], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, place = link.partition("#")
        there = page.parent / target if target else page
        assert there.exists(), link
        assert not place or place in places(there), f"{link}: there is no such heading"


@pytest.mark.parametrize("page", [page for page in PAGES if "reference" not in page.parts], ids=lambda page: page.name)
def test_names_of_cuda_are_there(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`\n]+)`", prose):
        for path in re.findall(r"(?<![\w.])cuda((?:\.\w+)+)", code):
            value, names = cuda, path[1:].split(".")
            if names[0] in {
                "bindings",
                "core",
                "const",
            }:  # NVIDIA's packages; `const.array_like` is called by kernels only
                continue
            for name in names:
                try:
                    value = getattr(value, name)
                except RuntimeError:  # such as `threadIdx.x`, which only kernels can read
                    break


def test_the_workflow_can_be_copied(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "continuous-integration.md").read_text()
    (block,) = re.findall(r"^```yaml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    jobs = yaml.safe_load(block)["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    # Run its checks on a project with the expected layout.
    (tmp_path / "src" / "mylib").mkdir(parents=True)
    (tmp_path / "src" / "mylib" / "kernels.py").write_text(
        "from weft import cuda\n\n\n@cuda.jit\ndef f(x: 'float32[:]'):\n    x[cuda.grid(1)] = 1\n"
    )
    (command,) = [step["run"] for step in jobs["cpu"]["steps"] if step.get("run", "").startswith("weft ")]
    weft = Path(sys.executable).with_name("weft")
    argv = [weft, *command.split()[1:]]
    assert subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "src" / "mylib" / "kernels.py").write_text("from weft import cuda\n\n\n@cuda.jit\ndef f(x):\n    y\n")
    assert subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False).returncode == 1
