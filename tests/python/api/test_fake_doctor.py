"""`weft doctor` over the fake driver: its report on a GPU, and on a driver that does not start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import weft


@pytest.fixture
def doctor(driver, tmp_path):
    def doctor(**env: str):
        own = {"LD_LIBRARY_PATH": str(driver), "WEFT_DEVICE": "auto", "WEFT_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-m", "weft", "doctor", "--format", "json"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=os.environ | own | env
        )
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout)

    return doctor


def test_a_gpu_that_works(doctor, driver):
    code, said = doctor(FAKE_VERSION="12040", FAKE_DEVICES="2", WEFT_LIBDEVICE="none")
    assert code == 0, said["problems"]
    assert said["driver"]["libcuda"] == {"file": str(driver / "libcuda.so"), "cuda": "12.4"}
    assert said["devices"]["cuda:0"]["works"] is True
    assert said["devices"]["cuda:1"]["target"] == "sm_90"
    assert said["devices"]["in_use"] == "cuda"
    assert said["versions"]["weft"]["version"] == weft.__version__
    assert said["versions"]["Python"] == {"version": sys.version.split()[0], "executable": sys.executable}
    assert said["versions"]["NumPy"] == np.__version__


@pytest.mark.parametrize(
    ("fault", "says", "mend"),
    [
        ({"FAKE_INIT": "803"}, "does not start", "restart the machine"),
        ({"FAKE_INIT": "999"}, "does not start", "nvidia-modprobe"),
        ({"FAKE_INIT": "34"}, "stub", "LD_LIBRARY_PATH"),
        ({"FAKE_INIT": "100"}, "no device", "nvidia-smi"),
        ({"FAKE_VERSION": "11000"}, "too old", "newer NVIDIA driver"),
        ({"FAKE_DEVICES": "0"}, "no device", "driver"),
    ],
)
def test_a_driver_that_gives_no_device(doctor, fault, says, mend):
    code, said = doctor(**fault)
    (problem,) = said["problems"]
    assert (code, problem["severity"]) == (0, "warning")
    assert says in problem["message"]
    assert mend in problem["help"]
    assert said["devices"]["in_use"] == "cpu"
    code, said = doctor(WEFT_DEVICE="cuda", **fault)
    (problem,) = said["problems"]
    assert (code, problem["severity"]) == (1, "error")
    assert mend in problem["help"]
    assert "WEFT_DEVICE" in problem["help"]
    code, said = doctor(WEFT_DEVICE="cpu", **fault)
    assert (code, said["problems"]) == (0, [])


def test_a_gpu_on_which_kernels_fail(doctor):
    code, said = doctor(FAKE_LAUNCH="719", FAKE_DEVICES="1")
    (problem,) = said["problems"]
    assert (code, problem["severity"]) == (1, "error")
    assert problem["message"].startswith("a small kernel fails on cuda:0: it cannot be launched: ")
    assert said["devices"]["cuda:0"]["works"] is False
    assert said["devices"]["cpu"]["works"] is True


def test_libraries_for_operators(doctor, tmp_path):
    for package, version in (("torch", "2.4.1"), ("jax", "0.11.0")):
        folder = tmp_path / "packages" / f"{package}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    path = os.pathsep.join(filter(None, [str(tmp_path / "packages"), os.environ.get("PYTHONPATH")]))
    code, said = doctor(PYTHONPATH=path, FAKE_DEVICES="1")
    assert said["versions"]["PyTorch"] == {"version": "2.4.1", "least": "2.8"}
    assert said["versions"]["JAX"] == {"version": "0.11.0", "least": "0.5"}
    (problem,) = said["problems"]
    assert (code, problem["severity"]) == (0, "warning")
    assert problem["message"].startswith("PyTorch 2.4.1 is too old")
    assert "--upgrade torch" in problem["help"]
