"""The notebooks run in a Jupyter kernel, print what is stored in them, and do not need the reader's solutions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs" / "_site"))
from notebooks import NOTEBOOKS, printed, run


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# Jupyter's libraries cause warnings in each other.
@pytest.mark.filterwarnings("default")
def test_notebook(path: Path) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    ran = printed(run(path))
    stored = printed(json.loads(path.read_text(encoding="utf-8")))
    differ = [f"{cell}:\n{ran[cell]}\nstored:\n{stored.get(cell)}" for cell in ran if ran[cell] != stored.get(cell)]
    assert not differ, "run docs/_site/notebooks.py and read the diff\n" + "\n".join(differ)
