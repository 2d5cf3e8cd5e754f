"""Every example runs as it stands, and says that its result is right."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong" not in done.stdout.lower()
    assert done.stdout.strip()


def test_there_are_examples():
    assert len(EXAMPLES) >= 11
