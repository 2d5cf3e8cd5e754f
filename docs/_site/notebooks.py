"""Runs the notebooks of docs/notebooks/ on the CPU and stores their outputs in them: `python docs/_site/notebooks.py`.

`./weft-dev docs --notebooks` calls it. A test runs the notebooks, too, and compares what cells print with what is
stored; cells with the tag `varies` (times, names of processors) may print something else.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CELL_FILE = re.compile(r"""[^\s"']*ipykernel_\d+.\d+\.py""")
"""The file of a cell, whose name differs in each run."""


def run(path: Path) -> Any:
    """The notebook with the outputs of a run on the CPU."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources=resources, coalesce_streams=True, record_timing=False
    )
    client.execute(env=os.environ | {"WEFT_DEVICE": "cpu", "WEFT_PROGRESS": "0"})
    notebook["metadata"]["language_info"] = {"name": "python"}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = CELL_FILE.sub("cell.py", output["text"])
    return notebook


def tags(cell: Any) -> list[str]:
    """The tags of a cell."""
    found: list[str] = cell["metadata"].get("tags", [])
    return found


def printed(notebook: Any) -> dict[str, list[str]]:
    """The text that each cell prints and shows, by its number in the notebook; a picture is a word."""
    texts: dict[str, list[str]] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code" or "varies" in tags(cell):
            continue
        texts[cell["id"]] = [text(output) for output in cell["outputs"]]
    return texts


def text(output: Any) -> str:
    """An output as text."""
    if output["output_type"] == "stream":
        return "".join(output["text"])
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    return "picture" if any(kind.startswith("image/") for kind in data) else "".join(data.get("text/plain", ""))


def solution(cell: Any) -> str | None:
    """The program of a folded solution."""
    if "solution" not in tags(cell):
        return None
    found = re.search(r"^```python\n(.*?)^```", "".join(cell["source"]), re.DOTALL | re.MULTILINE)
    return found[1] if found else None


def main() -> None:
    """Run all notebooks, or those whose names begin as an argument says, and store their outputs."""
    import nbformat

    for path in NOTEBOOKS:
        if len(sys.argv) > 1 and not path.name.startswith(tuple(sys.argv[1:])):
            continue
        notebook = run(path)
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
