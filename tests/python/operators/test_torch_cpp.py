"""Exported kernels as operators of PyTorch in C++: a model that AOTInductor compiled runs without Python. 2 minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "torch_cpp"
torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("g++")), reason="cmake or g++ is not installed"),
]

IN_PYTHON = """
import sys
import torch

torch.ops.load_library(sys.argv[1])
op = torch.ops.block.rms_norm
x, weight = torch.rand(3, 40), torch.rand(40)


def expected(x):
    return x * (x.square().mean(1, keepdim=True) + 1e-5).rsqrt() * weight


assert torch.allclose(op(x, weight, 1e-5), expected(x))
assert torch.allclose(op(x.t().contiguous().t(), weight, 1e-5), expected(x))
assert torch.allclose(op(x[:1].expand(3, 40), weight, 1e-5), expected(x[:1].expand(3, 40)))
assert op(x[:0], weight, 1e-5).shape == (0, 40)
assert op(x.to("meta"), weight.to("meta"), 1e-5).shape == x.shape
assert str(op.default._schema) == "block::rms_norm(Tensor x, Tensor weight, float eps) -> Tensor"
for args, message in (
    ((x.double(), weight, 1e-5), "block::rms_norm: `x` is of Double, not Float"),
    ((x[0], weight, 1e-5), "block::rms_norm: `x` has 1 dimensions, not 2"),
    ((x, weight.to("meta"), 1e-5), "block::rms_norm: `weight` is on meta, other tensors on cpu"),
    ((x, torch.rand(80)[::2], 1e-5), "argument `weight` must be contiguous"),
):
    try:
        op(*args)
    except RuntimeError as error:
        assert message in str(error), f"{message!r} is not in {error}"
    else:
        raise AssertionError(message)
print("all as expected")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch_cpp")
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    build = [sys.executable, "-m", "weft", "build", "kernels.py", "--name", "block", "--target", "sm_80,host"]
    run(folder, *build, "-o", "block")
    run(folder, "cmake", "-B", "build", f"-DTORCH={torch.__path__[0]}", ".")
    run(folder, "cmake", "--build", "build", "--parallel", "2")
    return folder


def run(folder: Path, *argv: str) -> str:
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"WEFT_DEVICE": "cpu"}
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_model_of_aotinductor_runs_without_python(built: Path):
    assert "compiled for c" in run(built, sys.executable, "compile.py", ".")
    assert "16 rows" in run(built, "build/run", "block.pt2", "input.pt", "expected.pt")


def test_the_operators_of_a_library_name_what_is_wrong(built: Path):
    (built / "check.py").write_text(IN_PYTHON)
    assert "all as expected" in run(built, sys.executable, "check.py", "build/libblock_torch.so")
