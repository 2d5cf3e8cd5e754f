"""The import of weft has no side effects; and the `weft` command of the installed package."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import weft


def python(code, **kwargs):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True, **kwargs
    )


@pytest.mark.parametrize("statement", ["import weft", "from weft import cuda", "import weft.cuda as c"])
def test_importing_loads_neither_numpy_nor_the_driver(statement):
    code = f"""
{statement}
import sys
assert "numpy" not in sys.modules, "numpy was imported"
maps = open("/proc/self/maps").read()
assert "libcuda" not in maps, "the driver was opened"
assert "libnvidia" not in maps
"""
    python(code)


def test_weft_cuda_is_imported_when_it_is_asked_for():
    code = """
import sys
import weft as numba
assert "weft.cuda" not in sys.modules
assert "cuda" in dir(numba) and "weft.cuda" not in sys.modules
print(numba.cuda.jit.__name__, numba.cuda is sys.modules["weft.cuda"], numba.float32)
try:
    numba.cuad
except AttributeError as error:
    print(error)
"""
    assert python(code).stdout == "jit True float32\nmodule 'weft' has no attribute 'cuad'; did you mean `cuda`?\n"


def test_decorating_loads_neither(tmp_path):
    file = tmp_path / "decorated.py"
    file.write_text(
        """
import sys
from weft import cuda

@cuda.jit
def kernel(x):
    x[0] = 1

configured = kernel[1, 1]
assert "numpy" not in sys.modules
assert "libcuda" not in open("/proc/self/maps").read()
"""
    )
    subprocess.run([sys.executable, str(file)], check=True, timeout=120)


def test_an_unknown_device_is_refused():
    import os

    code = "from weft import cuda\ncuda.get_current_device()"
    env = {**os.environ, "WEFT_DEVICE": "abacus"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "ValueError" in done.stderr
    assert "WEFT_DEVICE" in done.stderr
    assert "abacus" in done.stderr


@pytest.mark.cpu
def test_a_gpu_is_demanded_and_missing(request):
    import os

    if request.config.getoption("--device") is None and Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    code = "from weft import cuda\ncuda.get_current_device()"
    env = {**os.environ, "WEFT_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "CudaSupportError" in done.stderr


def command():
    found = shutil.which("weft", path=sysconfig.get_path("scripts")) or shutil.which("weft")
    return [found] if found else [sys.executable, "-m", "weft"]


def weft_command(*args):
    return subprocess.run([*command(), *map(str, args)], capture_output=True, text=True, timeout=120)


SAXPY = """
from weft import cuda

@cuda.jit("void(float32, float32[:], float32[:])")
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] += a * x[i]
"""


def test_version():
    done = weft_command("--version")
    assert done.returncode == 0
    assert weft.__version__ in done.stdout


def test_emit(tmp_path):
    file = tmp_path / "saxpy.py"
    file.write_text(SAXPY)
    done = weft_command("emit", file, "--target", "sm_90")
    assert done.returncode == 0, done.stderr
    assert ".target sm_90" in done.stdout
    assert "saxpy" in done.stdout


def test_emit_a_page(tmp_path):
    file = tmp_path / "saxpy.py"
    file.write_text(SAXPY)
    page = tmp_path / "page.html"
    done = weft_command("emit", file, "--html", "-o", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert f"<h2>{file}</h2>" in text
    (after,) = [rest.partition("</tr>")[0] for rest in text.split("y[i] += ")[1:]]
    assert "st.global.b32" in after
    done = weft_command("emit", file, "--html", "--target", "host")
    assert done.returncode == 2
    assert "the target `host` has no html" in done.stderr
    done = weft_command("emit", file, "--html", "--target", "sm_80,sm_90")
    assert done.returncode == 2
    assert "write them to a folder with `-o FOLDER`" in done.stderr


def test_a_rejected_program_exits_with_1(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text(SAXPY.replace("y.size", "y.sise"))
    done = weft_command("check", file)
    assert done.returncode == 1
    assert "sise" in done.stdout + done.stderr
    assert "broken.py:7" in done.stdout + done.stderr


def test_bad_usage_exits_with_2(tmp_path):
    assert weft_command("emit").returncode == 2
    assert weft_command("no-such-command").returncode == 2
    assert weft_command("explain", "E9999").returncode == 2


def test_explain():
    done = weft_command("explain", "E0203")
    assert done.returncode == 0
    assert "E0203" in done.stdout


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "weft", "--version"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert weft.__version__ in done.stdout


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"WEFT_DEVICE": "cpu"} | environment
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)


def test_the_configuration_starts_as_the_settings_say():
    program = """
from weft import config, cuda
print(config.CUDA_WARN_ON_IMPLICIT_COPY, config.CUDA_LOW_OCCUPANCY_WARNINGS, config.CUDA_ARRAY_INTERFACE_SYNC)
config.CUDA_WARN_ON_IMPLICIT_COPY = 7
print(config.CUDA_WARN_ON_IMPLICIT_COPY, hasattr(config, "NOTHING"))
"""
    assert run_python(program).stdout == "1 1 1\n7 False\n"
    switched = run_python(program, WEFT_WARN_ON_IMPLICIT_COPY="0", WEFT_CUDA_ARRAY_INTERFACE_SYNC=" 0 ")
    assert switched.stdout == "0 1 0\n7 False\n"
    # Errors of the environment are raised by the first use, not by the import.
    for name in ("WEFT_LOW_OCCUPANCY_WARNINGS", "WEFT_DEBUG", "WEFT_BOUNDSCHECK"):
        wrong = run_python(program, **{name: "maybe"})
        assert wrong.returncode == 1
        assert f'ValueError: {name} is "maybe"; it can be 0, 1, on or off' in wrong.stderr
        assert run_python("import weft; from weft import cuda", **{name: "maybe"}).returncode == 0


def test_a_program_that_sets_the_configuration_first_keeps_it():
    program = "from weft import config; config.CUDA_LOW_OCCUPANCY_WARNINGS = 0; config.DEBUG; "
    program += "print(config.CUDA_LOW_OCCUPANCY_WARNINGS)"
    assert run_python(program).stdout == "0\n"
