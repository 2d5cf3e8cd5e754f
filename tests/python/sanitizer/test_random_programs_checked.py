"""Random programs under the sanitizer. They have no faults, so it must not report any.

`python tests/python/fuzz.py --sanitize --count 10000` runs very many.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu

FUZZ = Path(__file__).parents[1] / "fuzz.py"


def test_nothing_is_found_in_random_programs() -> None:
    # LLVM's passes take most of the time, and do not change what the sanitizer records.
    options = ["--sanitize", "--first", "10", "--count", "40", "--jobs", "2", "--optimize", "1000"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_SANITIZE")}
    ran = subprocess.run(
        [sys.executable, str(FUZZ), *options], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ", 0 failed" in ran.stdout
