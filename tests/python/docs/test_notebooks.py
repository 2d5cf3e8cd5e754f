"""The notebooks as files: no outputs, exercises with hidden solutions, and code that runs as a plain program, too.

tests/python/site/ runs them in a Jupyter kernel, where there is one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def tags(cell: dict) -> list[str]:
    return cell["metadata"].get("tags", [])


def source(cell: dict) -> str:
    return "".join(cell["source"])


def test_there_are_five() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["1-", "2-", "3-", "4-", "5-"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_is_kept_of_a_run(path: Path) -> None:
    found = cells(path)
    assert [cell["id"] for cell in found] == [f"cell-{number:02}" for number in range(1, len(found) + 1)]
    for cell in found:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_exercises_have_solutions_that_are_hidden(path: Path) -> None:
    found = cells(path)
    exercises = [number for number, cell in enumerate(found) if "### Exercise " in source(cell)]
    assert len(exercises) == 4
    for number in exercises:
        task, solution = found[number + 1], found[number + 2]
        assert task["cell_type"] == "code"
        assert "solution" in tags(solution)
        assert "hide-cell" in tags(solution)  # on the site
        assert solution["metadata"]["jupyter"] == {"source_hidden": True}  # in Jupyter
        assert "assert " in source(solution)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nearly_every_cell_is_checked(path: Path) -> None:
    shown = [cell for cell in cells(path) if cell["cell_type"] == "code" and not {"plot"} & set(tags(cell))]
    # The first cell imports, and an exercise is the reader's; the race of the third notebook may come out either way.
    unchecked = [cell for cell in shown if "assert " not in source(cell)]
    assert len(unchecked) <= 1 + 4 + 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_as_a_program(path: Path, tmp_path: Path) -> None:
    code = [source(cell) for cell in cells(path) if cell["cell_type"] == "code" and "plot" not in tags(cell)]
    program = tmp_path / "notebook.py"
    program.write_text("\n\n".join(code) + "\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "right!" in done.stdout
