"""The notebooks run in a real Jupyter kernel, from the first cell to the last, and what they claim is so."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# Jupyter's libraries warn of each other.
@pytest.mark.filterwarnings("default")
def test_notebook(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in ran)
    solutions = [cell for cell in ran if "solution" in cell.metadata.get("tags", [])]
    for cell in solutions[1:] if "5-" in path.stem else solutions:
        printed = "".join(output.get("text", "") for output in cell.outputs)
        assert "right!" in printed or "note" in cell.source, cell.source
