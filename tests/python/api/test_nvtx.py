"""Profiler ranges (NVTX): the calls that a profiler library in C receives, on the CPU and over the fake driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "runtime" / "tests" / "fake_driver" / "nvtx.c"
COMPILE, COPY, LAUNCH = 1, 2, 3
START = ["opened", "domain\tweft", "category\t1\tcompile", "category\t2\tcopy", "category\t3\tlaunch"]

PROGRAM = """
import numpy as np
from weft import cuda

@cuda.jit("void(int64[::1], int64, int64)")
def sum3(out, a, b):
    out[0] = a + b
"""


def built(folder, source, name):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = folder / name
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", str(source), "-o", str(library)], check=True)
    return library


@pytest.fixture(scope="session")
def profiler(tmp_path_factory):
    return built(tmp_path_factory.mktemp("profiler"), SOURCE, "profiler.so")


@pytest.fixture
def told(profiler, tmp_path):
    """The lines that the profiler writes for a program; its environment can be changed."""

    def told(code: str, **env: str) -> list[str]:
        script, ranges = tmp_path / "script.py", tmp_path / "ranges"
        script.write_text(PROGRAM + textwrap.dedent(code))
        ours = {
            "WEFT_DEVICE": "cpu",
            "WEFT_CACHE": "off",
            "WEFT_LOW_OCCUPANCY_WARNINGS": "0",
            "NVTX_INJECTION64_PATH": str(profiler),
        }
        done = subprocess.run(
            [sys.executable, script],
            env={**os.environ, **ours, "FAKE_NVTX": str(ranges), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return ranges.read_text().splitlines() if ranges.exists() else []

    return told


def pushes(lines: list[str]) -> list[tuple[int, int, str, str]]:
    """Depth, category, payload and message of each range, in the order of their starts."""
    found = [line.split("\t")[1:] for line in lines if line.startswith("push")]
    return [(int(depth), int(category), payload, message) for depth, category, payload, message in found]


def test_compilations_copies_and_launches_are_ranges_of_a_domain(told) -> None:
    lines = told(
        """
        out = cuda.to_device(np.zeros(4, np.int64))
        sum3[1, 1](out, 3, 4)
        again = cuda.device_array(4, np.int64)
        again.copy_to_device(out)
        assert again.copy_to_host().tolist() == [7, 0, 0, 0]
        """
    )
    assert lines[:5] == START
    assert pushes(lines) == [
        (0, COMPILE, "-", "compile sum3(array(int64, 1d, C), int64, int64)"),
        (0, COPY, "32", "copy host to device 32 bytes"),
        (0, LAUNCH, "-", "launch sum3"),
        (0, COPY, "32", "copy device to device 32 bytes"),
        (0, COPY, "32", "copy device to host 32 bytes"),
    ]
    # Each range starts after the end of the one before.
    assert [line.split("\t")[0] for line in lines[5:]] == ["push", "pop"] * 5


def test_a_graph_is_a_range_around_its_launches(told) -> None:
    lines = told(
        """
        out = cuda.to_device(np.zeros(4, np.int64))
        with cuda.graph() as graph:
            sum3[1, 1](out, 3, 4)
            sum3[1, 1](out, 5, 4)
        graph.launch()
        """
    )
    launches = [found for found in pushes(lines) if found[1] == LAUNCH]
    assert launches == [
        (0, LAUNCH, "-", "launch graph of 2 steps"),
        (1, LAUNCH, "-", "launch sum3"),
        (1, LAUNCH, "-", "launch sum3"),
    ]
    assert lines[-6:] == [lines[-6], lines[-5], "pop\t1", lines[-3], "pop\t1", "pop\t0"]


def test_ranges_end_where_errors_do(told) -> None:
    lines = told(
        """
        @cuda.jit
        def wrong(out):
            out[0] = nobody_knows

        @cuda.jit(debug=True, opt=False)
        def raises(out):
            if out[0] == 0:
                raise ValueError("no")

        out = np.zeros(4, np.int64)
        for kernel in (wrong, raises):
            try:
                kernel[1, 1](out)
                cuda.synchronize()
            except Exception:
                pass
            else:
                raise AssertionError
        """
    )
    messages = [message for *_, message in pushes(lines)]
    assert [message for message in messages if message.startswith("compile wrong")] == [
        "compile wrong(array(int64, 1d, C))"
    ]
    assert "launch raises" in messages
    assert all(depth == 0 for depth, *_ in pushes(lines))
    assert sum(line.startswith("push") for line in lines) == sum(line.startswith("pop") for line in lines)


def test_what_is_kept_is_not_compiled_again(told, tmp_path) -> None:
    for expected in (1, 0):
        (tmp_path / "ranges").unlink(missing_ok=True)
        lines = told("sum3[1, 1](np.zeros(4, np.int64), 3, 4)", WEFT_CACHE="on", WEFT_CACHE_DIR=str(tmp_path / "cache"))
        assert sum(category == COMPILE for _, category, *_ in pushes(lines)) == expected
        assert sum(category == LAUNCH for _, category, *_ in pushes(lines)) == 1


def test_threads_have_their_own_ranges(told) -> None:
    lines = told(
        """
        import threading

        def work():
            out = cuda.to_device(np.zeros(4, np.int64))
            for _ in range(50):
                sum3[1, 1](out, 3, 4)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """
    )
    assert sum(category == LAUNCH for _, category, *_ in pushes(lines)) == 200
    assert all(depth == 0 for depth, *_ in pushes(lines))


def test_on_a_gpu_too(told, driver) -> None:
    lines = told(
        """
        out = cuda.to_device(np.zeros(4, np.int64))
        sum3[1, 1](out, 3, 4)
        sum3[1, 1].prepare(out, 4, 4)()
        again = cuda.device_array(4, np.int64)
        again.copy_to_device(out)
        with cuda.graph() as graph:
            sum3[1, 1](out, 3, 4)
        graph.launch()
        assert out.copy_to_host().tolist() == [7, 0, 0, 0]
        """,
        LD_LIBRARY_PATH=str(driver),
        WEFT_DEVICE="cuda",
    )
    assert [found[1:] for found in pushes(lines)] == [
        (COMPILE, "-", "compile sum3(array(int64, 1d, C), int64, int64)"),
        (COPY, "32", "copy host to device 32 bytes"),
        (LAUNCH, "-", "launch sum3"),
        (LAUNCH, "-", "launch sum3"),
        (COPY, "32", "copy device to device 32 bytes"),
        (LAUNCH, "-", "launch graph of 1 step"),
        (COPY, "32", "copy device to host 32 bytes"),
    ]


LAUNCHES = "sum3[1, 1](cuda.to_device(np.zeros(4, np.int64)), 3, 4)"


@pytest.mark.parametrize("env", [{"NVTX_INJECTION64_PATH": ""}, {"WEFT_NVTX": "0"}])
def test_nothing_is_opened_where_nobody_watches_or_wants_it(told, env) -> None:
    assert told(LAUNCHES, **env) == []


def test_a_library_that_is_not_there_is_no_error(told, tmp_path) -> None:
    assert told(LAUNCHES, NVTX_INJECTION64_PATH=str(tmp_path / "nothing.so")) == []


def test_a_library_that_is_no_profiler_is_no_error(told, tmp_path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int something_else(void) { return 0; }\n")
    library = built(tmp_path, source, "other.so")
    assert told(LAUNCHES, NVTX_INJECTION64_PATH=str(library)) == []


def test_a_profiler_that_refuses_is_told_nothing(told) -> None:
    assert told(LAUNCHES, FAKE_NVTX_REFUSES="1") == ["opened"]
