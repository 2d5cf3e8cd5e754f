"""A fake GPU for the package: programs run over the fake driver of the runtime tests, which is written in C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

DRIVER = Path(__file__).parents[3] / "runtime" / "tests" / "fake_driver" / "libcuda.c"

PRELUDE = """
import warnings
import numpy as np
import weft
from weft import cuda

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Grid size|Host array")


@cuda.jit
def sum3(out, a, b):
    out[0] = a + b
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    command = [compiler, "-shared", "-fPIC", "-O1", "-pthread", str(DRIVER), "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, check=True)
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


@pytest.fixture
def run(driver, tmp_path):
    def run(code: str, **env: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(code))
        path = {"LD_LIBRARY_PATH": str(driver), "WEFT_DEVICE": "cuda"}
        done = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **path, **env},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
