"""Devices, contexts, and which device runs kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from weft import cuda


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **env}
    )


def test_devices() -> None:
    device = cuda.get_current_device()
    assert device.id == 0
    assert device.name
    assert device.compute_capability >= (5, 0)
    assert device.MAX_THREADS_PER_BLOCK == 1024
    assert device.WARP_SIZE == 32
    assert device.MULTIPROCESSOR_COUNT >= 1
    assert device.MAX_SHARED_MEMORY_PER_BLOCK >= 48 * 1024
    assert "WARP_SIZE" in dir(device)
    assert ("cuda" in repr(device).lower()) == (device.kind == "cuda")
    assert cuda.select_device(0) == device
    assert len(cuda.gpus) == len(list(cuda.gpus)) >= 1
    assert cuda.list_devices() is cuda.gpus
    assert cuda.gpus.current == device
    with cuda.gpus[0] as inside:
        assert inside == device
    with pytest.raises(AttributeError, match="NO_SUCH"):
        _ = device.NO_SUCH
    with pytest.raises(IndexError, match="no device 77"):
        cuda.select_device(77)


@pytest.mark.cpu
def test_the_cpu_answers_with_a_capability():
    assert cuda.get_current_device().compute_capability == (9, 0)


def test_attributes_of_the_driver() -> None:
    device = cuda.get_current_device()
    assert device.MAX_REGISTERS_PER_BLOCK >= 32 * 1024
    assert device.TOTAL_CONSTANT_MEMORY == 64 * 1024
    assert device.MAX_THREADS_PER_MULTI_PROCESSOR >= device.MAX_THREADS_PER_BLOCK
    assert device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR > device.MAX_SHARED_MEMORY_PER_BLOCK
    assert device.COOPERATIVE_LAUNCH == device.CAN_MAP_HOST_MEMORY == device.UNIFIED_ADDRESSING == 1
    # Programs divide by counts, sizes and rates.
    for name in (
        "ASYNC_ENGINE_COUNT",
        "CLOCK_RATE",
        "GLOBAL_MEMORY_BUS_WIDTH",
        "L2_CACHE_SIZE",
        "MAX_PITCH",
        "MEMORY_CLOCK_RATE",
        "MULTIPROCESSOR_COUNT",
        "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO",
        "SURFACE_ALIGNMENT",
        "TEXTURE_ALIGNMENT",
    ):
        assert getattr(device, name) >= 1, name
    assert "L2_CACHE_SIZE" in dir(device)
    with pytest.raises(AttributeError, match="no attribute 'L9_CACHE_SIZE'"):
        device.L9_CACHE_SIZE  # noqa: B018


def test_versions() -> None:
    assert cuda.driver is cuda.cudadrv.driver
    assert cuda.devices.get_context() == cuda.current_context()
    major, minor = cuda.runtime.get_version()
    assert (major >= 11) == (cuda.get_current_device().uuid != "")
    assert 0 <= minor < 10
    assert cuda.cudadrv.driver.driver.get_version() == cuda.cudadrv.runtime.runtime.get_version() == (major, minor)
    assert cuda.runtime.is_supported_version()


def test_a_reset_keeps_arrays() -> None:
    array = cuda.to_device(np.arange(3))
    cuda.get_current_device().reset()
    cuda.current_context().reset()
    assert array.copy_to_host().tolist() == [0, 1, 2]


def test_contexts() -> None:
    context = cuda.current_context()
    assert context.device == cuda.get_current_device()
    info = context.get_memory_info()
    context.deallocations.clear()
    assert len(context.deallocations) == 0  # freed at once
    with cuda.defer_cleanup(), cuda.defer_cleanup():
        cuda.to_device(np.zeros(3))
    assert 0 < info.free <= info.total
    context.synchronize()
    cuda.close()
    assert cuda.is_available()
    assert cuda.cuda_error() is None


def test_detect(capfd) -> None:
    assert cuda.detect() is True
    assert cuda.get_current_device().name in capfd.readouterr().out


def test_no_gpu_when_one_is_demanded() -> None:
    if cuda.get_current_device().kind == "cuda":
        pytest.skip("there is a GPU")
    code = (
        "from weft import cuda\nimport weft\n"
        "assert not cuda.is_available()\n"
        "print(cuda.cuda_error())\n"
        "try:\n    cuda.device_array(3)\n"
        "except cuda.CudaSupportError as error:\n    print(isinstance(error, weft.DriverError), error)"
    )
    result = python(code, WEFT_DEVICE="cuda")
    assert "True no" in result.stdout, result.stderr
    assert "WEFT_DEVICE" in result.stdout


def test_the_cpu_says_once_that_it_stands_in(tmp_path) -> None:
    if cuda.get_current_device().kind == "cuda":
        pytest.skip("there is a GPU")
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom weft import cuda\n"
        "@cuda.jit\ndef f(x):\n    x[0] = 1\n"
        "for _ in range(3):\n    f[1, 1](np.zeros(1))\n    f[1, 1](np.zeros(1, np.float32))\n"
    )
    for device, count in (("auto", 1), ("cpu", 0)):
        env = {**os.environ, "WEFT_DEVICE": device}
        result = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=True, timeout=60, env=env
        )
        assert result.stderr.count("kernels run on the CPU") == count, result.stderr


def test_the_compute_capability_of_the_cpu_is_a_setting() -> None:
    code = "from weft import cuda\nprint(cuda.get_current_device().compute_capability)"
    assert python(code, WEFT_DEVICE="cpu", WEFT_CPU_COMPUTE_CAPABILITY="7.5").stdout == "(7, 5)\n"


def test_profiling_does_nothing_where_nobody_profiles() -> None:
    with cuda.profiling():
        x = cuda.to_device([1, 2])
    cuda.profile_start()
    cuda.profile_stop()
    assert x.copy_to_host().tolist() == [1, 2]
