"""The variant of a kernel that writes large host arrays in place: when it is compiled, and where it is listed."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from weft import cuda

N = (1 << 17) + 37  # a little more than 1 MiB of float64


@pytest.fixture(autouse=True)
def on_the_cpu() -> None:
    if cuda.get_current_device().kind == "cuda":
        pytest.skip("a GPU does not reach arrays of the host")


@cuda.jit
def augmented(x: Any) -> None:
    i = cuda.grid(1)
    x[i] += 1


def test_who_compiles_no_further_types_has_it_too() -> None:
    kernel = cuda.jit(augmented.py_func)
    small = np.zeros(10)
    kernel[1, 10](small)
    kernel.disable_compile()
    x = np.zeros(N)
    kernel[N // 256 + 1, 256](x)
    assert (x == 1).all()
    assert len(kernel.overloads) == 1
    with pytest.raises(TypeError):
        kernel[1, 10](np.zeros(10, np.float32))


def test_there_is_one_kernel_to_be_seen() -> None:
    kernel = cuda.jit(augmented.py_func)
    x = np.zeros(N)
    for _ in range(3):
        kernel[N // 256 + 1, 256](x)
    assert (x == 3).all()
    assert len(kernel.overloads) == len(kernel.signatures) == 1
    kernel.recompile()
    kernel[N // 256 + 1, 256](x)
    assert (x == 4).all()


def test_threads_of_python_and_forks() -> None:
    kernel = cuda.jit(augmented.py_func)
    arrays = [np.zeros(N) for _ in range(8)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda x: [kernel[N // 256 + 1, 256](x) for _ in range(5)], arrays))
    assert all((x == 5).all() for x in arrays)
    child = os.fork()
    if child == 0:
        kernel[N // 256 + 1, 256](arrays[0])
        os._exit(0 if (arrays[0] == 6).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (arrays[0] == 5).all()


SCRIPT = """
import numpy as np
from weft import cuda

@cuda.jit
def twice(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2

x = np.ones(SIZE)
for _ in range(3):
    twice[x.size // 256 + 1, 256](x)
assert (x == 8).all()
"""


def test_what_is_compiled_when_and_kept_on_the_disk(tmp_path) -> None:
    def lines(size: int) -> list[str]:
        script = tmp_path / f"script{size}.py"
        script.write_text(SCRIPT.replace("SIZE", str(size)))
        env = {
            **os.environ,
            "WEFT_DEVICE": "cpu",
            "WEFT_TIMING": "1",
            "WEFT_CACHE": "on",
            "WEFT_CACHE_DIR": str(tmp_path / "kept"),
        }
        done = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=True, env=env, timeout=120
        )
        return [line.partition(" ms")[0].rpartition(":")[0] for line in done.stderr.splitlines()]

    twice = "weft: twice(array(float64, 1d, C)) for host"
    assert lines(1000) == [twice]
    assert lines(N) == [twice, f"{twice}, for host arrays in place"]
    assert lines(N) == [f"{twice}, cached", f"{twice}, for host arrays in place, cached"]
