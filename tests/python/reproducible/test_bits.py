"""Results are the same, bit for bit, on each device and on CPUs with other instruction sets.

A process has one device, so each side is a separate process; the first uses the device under test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reproducible.cases import CASES
from reproducible.compared import differences

FOLDER = Path(__file__).parent
# This CPU, one that runs kernels differently in all respects (no FMA, one stack per thread, one core), and one without
# AVX-512.
OTHERS = {
    "cpu": {},
    "old-cpu": {"WEFT_HOST_CPU": "x86-64-v2", "WEFT_CPU_STRATEGY": "fibers", "WEFT_CPU_THREADS": "1"},
    "x86-64-v3": {"WEFT_HOST_CPU": "x86-64-v3"},
}


def run(device: str, path: Path, **settings: str) -> dict[str, np.ndarray]:
    """The results of all cases on a device."""
    environment = {**os.environ, "WEFT_DEVICE": device, **settings}
    done = subprocess.run(
        [sys.executable, FOLDER, path], env=environment, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(path))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The results of the device under test."""
    return run(os.environ["WEFT_DEVICE"], tmp_path_factory.mktemp("bits") / "own.npz")


@pytest.mark.parametrize("name", OTHERS)
def test_bits_are_those_of_another_processor(name, results, tmp_path):
    if name == "cpu" and os.environ["WEFT_DEVICE"] == "cpu":
        pytest.skip("it is the one that is tested")
    if "WEFT_HOST_CPU" in OTHERS[name] and os.uname().machine != "x86_64":
        pytest.skip("another architecture")
    if name == "x86-64-v3" and " fma " not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("this CPU fuses no products")
    other = run("cpu", tmp_path / "other.npz", **OTHERS[name])
    assert len(results) > 20 * len(CASES)
    assert differences(results, other) == []


def test_a_difference_is_told():
    one = {"a": np.arange(5, dtype=np.uint32), "b": np.zeros(2, np.uint8)}
    two = {"a": np.array([0, 1, 7, 3, 9], np.uint32), "c": np.zeros(2, np.uint8)}
    assert differences(one, one) == []
    assert differences(one, two) == [
        "b is in one of them only",
        "c is in one of them only",
        "a: 2 of 5 differ: [2] 0x2 0x7, [4] 0x4 0x9",
    ]
