"""The bits of tests' results are saved and compared: a flipped bit is reported, and so are results that cannot be the
same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from saved_bits import Entry, arrays_of, differences

CONFORMANCE = Path(__file__).parent.parent / "conformance"
TESTS = [f"{CONFORMANCE}/language/test_power.py", f"{CONFORMANCE}/memory/test_views.py"]


def pytest_with(*options: str) -> subprocess.CompletedProcess[str]:
    """Runs some tests in another process, on the CPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--device", "cpu", *TESTS, *options]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.cpu
@pytest.mark.skipif(os.environ.get("WEFT_SANITIZE", "0") != "0", reason="the mode alone is tested")
def test_a_turned_bit_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bits.json"
    done = pytest_with("--keep-bits", str(file))
    assert done.returncode == 0, done.stdout[-3000:]
    done = pytest_with("--against-bits", str(file))
    assert done.returncode == 0, done.stdout[-3000:]
    assert ", 0 others," in done.stdout

    kept = json.loads(file.read_text())
    name, entries = next((name, entries) for name, entries in kept["tests"].items() if entries and not entries[0][1])
    at, token = next(iter(entries[0][2].items()))
    last = int(token[-1], 16) ^ 1
    entries[0][2][at] = f"{token[:-1]}{last:x}"
    file.write_text(json.dumps(kept))
    done = pytest_with("--against-bits", str(file))
    assert done.returncode == 1, done.stdout[-3000:]
    assert f"DIFFERENT: {name}" in done.stdout
    assert ", 1 others," in done.stdout


def test_what_the_mode_has_warned_of_may_differ() -> None:
    def entry(told: bool, data: str) -> Entry:
        return Entry("kernel", told, {"0": data})

    assert differences([entry(False, "a")], [entry(False, "a")]) == ([], True)
    text = "launch 0 of kernel, 0: b, saved a"
    assert differences([entry(False, "a")], [entry(False, "b")]) == ([text], False)
    assert differences([entry(False, "a")], [entry(True, "b")]) == ([text], True)
    texts, told = differences([entry(False, "a"), entry(True, "a")], [entry(False, "b"), entry(True, "b")])
    assert len(texts) == 2
    assert not told
    assert differences([entry(False, "a")], []) == (["launches: [], saved ['kernel']"], False)


def test_each_bit_of_an_array_counts_and_none_between_fields() -> None:
    zero, minus = np.zeros(100), np.zeros(100)
    minus[7] = -0.0
    assert dict(arrays_of(zero, "0")) != dict(arrays_of(minus, "0"))
    assert dict(arrays_of((1, zero[:3]), "0")).keys() == {"0.1"}
    padded = np.dtype([("a", np.int8), ("b", np.float64)], align=True)
    one, two = np.zeros(3, padded), np.zeros(3, padded)
    one.view(np.uint8)[1] = 5
    assert dict(arrays_of(one, "x")) == dict(arrays_of(two, "x"))
    two["b"][2] = 1
    assert dict(arrays_of(one, "x")) != dict(arrays_of(two, "x"))
