"""The notebooks as files: outputs are stored, exercises have folded solutions, and the code runs as a plain program.

tests/python/site/ runs them in a Jupyter kernel and compares what they print with what is stored.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs" / "_site"))
from notebooks import NOTEBOOKS, solution, tags, text


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def test_there_are_six() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["1-", "2-", "3-", "4-", "5-", "6-"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored(path: Path) -> None:
    found = cells(path)
    assert [cell["id"] for cell in found] == [f"cell-{number:02}" for number in range(1, len(found) + 1)]
    code = [cell for cell in found if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run docs/_site/notebooks.py"
    for cell in code:
        shown = [text(output) for output in cell["outputs"]]
        assert bool(shown) or not re.search(r"^print\(", source(cell), re.MULTILINE), source(cell)
        assert not [output for output in cell["outputs"] if output["output_type"] == "error"]
        assert ("picture" in shown) == ("plot" in tags(cell))
        assert str(Path.home()) not in "".join(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_exercises_have_folded_solutions(path: Path) -> None:
    found = cells(path)
    exercises = [number for number, cell in enumerate(found) if "### Exercise " in source(cell)]
    assert len(exercises) == 4
    for number in exercises:
        task, folded = found[number + 1], found[number + 2]
        assert task["cell_type"] == "code"
        assert folded["cell_type"] == "markdown"
        # Jupyter, GitHub and the site fold such a cell.
        assert source(folded).startswith("<details>\n<summary>Solution</summary>\n\n```python\n")
        assert source(folded).endswith("```\n\n</details>")
        assert "assert " in (solution(folded) or "")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nearly_every_cell_is_checked(path: Path) -> None:
    shown = [cell for cell in cells(path) if cell["cell_type"] == "code" and not {"plot"} & set(tags(cell))]
    # The first cells import and define helpers, the reader writes exercises, and the result of a race varies.
    unchecked = [cell for cell in shown if "assert " not in source(cell)]
    assert len(unchecked) <= 1 + 4 + 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_as_a_program(path: Path, tmp_path: Path) -> None:
    code = [
        solution(cell) or source(cell)
        for cell in cells(path)
        if "solution" in tags(cell) or (cell["cell_type"] == "code" and "plot" not in tags(cell))
    ]
    program = tmp_path / "notebook.py"
    program.write_text("\n\n".join(code) + "\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("right!") >= 3
