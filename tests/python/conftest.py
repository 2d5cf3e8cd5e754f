"""Which device the tests run on.

weft reads ``WEFT_DEVICE`` once, so one process tests one device. ``--device cpu`` and ``--device cuda`` name it;
``--device all``, or several ``--device``, runs pytest once for each. Without the option the CPU is tested, and the GPU
too where there is one. Without a GPU the tests of ``--device cuda`` are skipped, or fail if ``WEFT_REQUIRE_GPU=1``.

This file must not import weft: the variable has to be set first.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DEVICES = ("cpu", "cuda")


def gpu_fault() -> str | None:
    """Why no GPU can be used, or None if one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1) on this machine"
    if status := driver.cuInit(0):
        return f"cuInit failed with error {status}"
    count = ctypes.c_int(0)
    if (status := driver.cuDeviceGetCount(ctypes.byref(count))) or count.value == 0:
        return f"the driver sees no device (status {status})"
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        action="append",
        choices=(*DEVICES, "python", "ptx", "all"),
        help="device to test: cpu, cuda or all; may be given several times (default: cpu, and cuda if there is a GPU); "
        "python runs kernels by Python's interpreter, ptx in the simulator of PTX, for which not all tests are made",
    )
    parser.addoption(
        "--cpu-strategy",
        choices=("auto", "loops", "fibers"),
        help="how the threads of a block run on the CPU (WEFT_CPU_STRATEGY); else weft chooses for each kernel",
    )
    parser.addoption("--keep-bits", metavar="FILE", help="run with WEFT_REPRODUCIBLE=1, and keep the bits of results")
    parser.addoption("--against-bits", metavar="FILE", help="the same, and fail where they differ from the saved ones")


def chosen_devices(config: pytest.Config) -> list[str]:
    """The devices of the command line, in order, each once."""
    asked = config.getoption("--device")
    if not asked:
        return ["cpu"] if gpu_fault() else list(DEVICES)
    return list(dict.fromkeys(device for name in asked for device in (DEVICES if name == "all" else (name,))))


def without_device_option(args: tuple[str, ...] | list[str]) -> list[str]:
    """The command line without ``--device X`` and ``--device=X``."""
    kept: list[str] = []
    skip = False
    for arg in args:
        if skip:
            skip = False
        elif arg == "--device":
            skip = True
        elif not arg.startswith("--device="):
            kept.append(arg)
    return kept


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Runs pytest once for each device if there are several."""
    devices = chosen_devices(config)
    if len(devices) == 1 or config.option.collectonly:
        return None
    args = without_device_option(config.invocation_params.args)
    statuses = []
    for device in devices:
        print(f"=== weft tests on {device} ===", flush=True)
        command = [sys.executable, "-m", "pytest", *args, "--device", device]
        statuses.append(subprocess.call(command, cwd=config.invocation_params.dir))
    return max(statuses)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cuda: needs the CUDA device itself, not only a device that behaves like one")
    config.addinivalue_line("markers", "cpu: is about the CPU executor")
    # All other warnings are errors (pyproject.toml). These two are advice that tests with small host arrays ignore.
    config.addinivalue_line("filterwarnings", "ignore:Host array used in CUDA kernel")
    config.addinivalue_line("filterwarnings", r"ignore:Grid size \d+ will likely result in GPU under-utilization")
    device = chosen_devices(config)[0]
    config.stash[DEVICE] = device
    config.stash[FAULT] = gpu_fault() if device == "cuda" else None
    os.environ["WEFT_DEVICE"] = device
    # Tests always compile, and do not use the user's cache.
    os.environ.setdefault("WEFT_CACHE", "off")
    # Tests multiply small matrices. By default each process that imports NumPy starts a thread per core, which spins.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if strategy := config.getoption("--cpu-strategy"):
        os.environ["WEFT_CPU_STRATEGY"] = strategy
    if config.getoption("--keep-bits") or config.getoption("--against-bits"):
        import saved_bits

        os.environ["WEFT_REPRODUCIBLE"] = "1"
        config.addinivalue_line("filterwarnings", "always::weft.errors.ReproducibilityWarning")
        config.pluginmanager.register(saved_bits.KeptBits(config), "saved_bits")


DEVICE = pytest.StashKey[str]()
FAULT = pytest.StashKey["str | None"]()


def pytest_report_header(config: pytest.Config) -> str:
    fault = config.stash[FAULT]
    return f"weft device: {config.stash[DEVICE]}" + (f" (missing: {fault})" if fault else "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    device, fault = config.stash[DEVICE], config.stash[FAULT]
    for item in items:
        for other in DEVICES:
            if other != device and item.get_closest_marker(other):
                item.add_marker(pytest.mark.skip(reason=f"a test of {other}; this process tests {device}"))
    if fault and os.environ.get("WEFT_REQUIRE_GPU") != "1":
        for item in items:
            item.add_marker(pytest.mark.skip(reason=fault))
    if os.environ.get("WEFT_SANITIZE", "0") != "0":
        expect_findings(items)


def expect_findings(items: list[pytest.Item]) -> None:
    """Under the sanitizer some tests must fail: their kernels have faults that it reports."""
    known = runpy.run_path(str(Path(__file__).with_name("sanitizer") / "expected.py"))["EXPECTED"]
    for item in items:
        name = item.nodeid.partition("tests/python/")[2] or item.nodeid
        if reason := known.get(name) or known.get(name.partition("[")[0]):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def pytest_runtest_setup(item: pytest.Item) -> None:
    fault = item.config.stash[FAULT]
    if fault and os.environ.get("WEFT_REQUIRE_GPU") == "1":
        pytest.fail(f"WEFT_REQUIRE_GPU=1, but {fault}", pytrace=False)


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """``cpu`` or ``cuda``: the device that this process tests."""
    return request.config.stash[DEVICE]
