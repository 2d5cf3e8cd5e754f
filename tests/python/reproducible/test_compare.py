"""`kernel[grid, block].compare(…)`: a launch on two devices, and its report.

Without a GPU, the other side is this CPU without FMA, which rounds differently.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import weft
from harness import module
from weft import _compare, cuda

ON_GPU = os.environ["WEFT_DEVICE"] == "cuda"
OLD = {"WEFT_DEVICE": "cpu", "WEFT_HOST_CPU": "x86-64-v2"}
FUSES = os.uname().machine == "x86_64" and " fma " in Path("/proc/cpuinfo").read_text(encoding="utf-8")

# On a GPU, a hardware approximation surely differs: the CPU has none.
DIFFERS = "libdevice.fast_sinf(product * 50)" if ON_GPU else "pair[0][i] * pair[1][i] - product"
SOURCE = """
    from weft import cuda
    from weft.cuda import libdevice

    @cuda.jit{options}
    def kernel(pair, n, factor, out):
        i = cuda.grid(1)
        if i < out.size:
            product = pair[0][i] * factor
            out[i] = {differs}
            n[i] += i
"""


def arguments(kind: type = np.float64) -> tuple:
    """Two arrays in a tuple, an array of integers, a number and an array for results."""
    random = np.random.default_rng(1)
    x = random.normal(size=500).astype(kind)
    return (x, x + kind(1e-3)), np.zeros(500, np.int32), 0.3, np.zeros(500, kind)


def compared(launcher: object, *args: object, **kwargs: object) -> _compare.Comparison:
    """The comparison of this device and another."""
    if ON_GPU:
        return launcher.compare(*args, **kwargs)
    return _compare.run(launcher, args, kwargs, OLD)


@pytest.mark.skipif(not (ON_GPU or FUSES), reason="both sides round alike")
def test_what_differs_is_told():
    args = arguments()
    kept = [array.copy() for array in (*args[0], args[1], args[3])]
    found = compared(module(SOURCE.format(options="", differs=DIFFERS)).kernel[4, 128], *args)
    assert not found.same
    (out,) = found.arguments
    assert (out.name, out.dtype, out.shape, found.compared) == ("out", np.float64, (500,), 4)
    assert 0 < out.count <= 500
    assert len(out.first) == 5
    first = out.first[0]
    assert first.ulps is not None
    assert first.gpu != first.cpu
    assert np.sign(first.gpu) == np.sign(first.cpu)
    assert first.ulps == abs(int(first.gpu.view(np.int64)) - int(first.cpu.view(np.int64)))
    assert out.largest >= max(each.ulps for each in out.first)
    text = str(found)
    assert f"out: float64[500], {out.count} of 500 differ, by at most {out.largest:,} ulp" in text
    assert f"out[{first.index[0]}]" in text
    assert f"{first.gpu}" in text
    assert "reproducible=True" in text
    # The arguments are unchanged.
    for array, before in zip((*args[0], args[1], args[3]), kept, strict=True):
        assert np.array_equal(array, before)


def test_a_reproducible_kernel_is_the_same():
    kernel = module(SOURCE.format(options="(reproducible=True)", differs=DIFFERS)).kernel
    for kind in (np.float32, np.float64):
        pair, n, factor, out = arguments(kind)
        found = compared(kernel[4, 128], pair, n, out=cuda.to_device(out), factor=factor)
        assert found.same
        assert found.reproducible
        assert str(found).endswith("the bits of 4 arrays are the same")
        assert repr(found) == str(found)


class Pair(NamedTuple):
    """Two numbers."""

    left: object
    right: object


def test_ulps_are_counted_in_each_type():
    of = _compare._argument
    assert of("x", np.ones(3), np.ones(3)) is None
    one, two = np.array([[1.0, -0.0], [np.nan, 5.0]]), np.array([[1.0 + 2**-51, 0.0], [-np.nan, 5.0]])
    found = of("x", one, two)
    assert [(each.index, each.ulps) for each in found.first] == [((0, 0), 2), ((0, 1), 0), ((1, 0), None)]
    assert (found.count, found.largest) == (3, 2)
    assert "NaN" in str(found)
    small = np.array([2.0**-149, 1.0], np.float32)
    assert of("x", -small, small).first[0].ulps == 2
    assert of("x", np.array([7, -3], np.int8), np.array([9, -3], np.int8)).largest == 2
    assert "1 apart" in str(of("x", np.array([True]), np.array([False])))
    assert of("x", np.array([1 + 1j]), np.array([1 + (1 + 2**-52) * 1j])).largest == 1
    assert of("x", np.ones(2, np.float16), np.array([1, 1 + 2**-9], np.float16)).largest == 2
    many = of("x", np.zeros(100), np.full(100, 5e-324))
    assert "… and 95 more" in str(many)
    assert "by at most 1 ulp\n" in str(many)


def test_arrays_of_an_argument_have_names():
    record = np.zeros(2, [("a", np.float32), ("b", [("c", np.int32)])])
    found = _compare._arrays(["p", "r", "s"], [Pair(np.zeros(1), (np.ones(2), 3)), record, 2.5])
    assert list(found) == ["p.left", "p.right[0]", "r.a", "r.b.c"]


@pytest.mark.skipif(ON_GPU, reason="there is a GPU")
def test_without_a_gpu_the_error_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"(?s)this process has no GPU: .* runs its kernels.*np\.savez"):
        module(SOURCE.format(options="", differs=DIFFERS)).kernel[4, 128].compare(*arguments())


def test_what_cannot_be_given_away_is_named():
    kernel = module(SOURCE.format(options="", differs=DIFFERS)).kernel
    pair, n, _, out = arguments()
    with pytest.raises(TypeError, match="`factor` cannot be pickled"):
        _compare.run(kernel[4, 128], (pair, n, lambda x: x, out), {}, OLD)


def test_a_launch_that_fails_elsewhere_says_why():
    kernel = module(SOURCE.format(options="", differs=DIFFERS)).kernel
    with pytest.raises(RuntimeError, match=r"the launch on the CPU failed: .*WEFT_HOST_CPU"):
        _compare.run(kernel[4, 128], arguments(), {}, {"WEFT_DEVICE": "cpu", "WEFT_HOST_CPU": "no-such-cpu"})


def test_a_kernel_of_the_program_itself_is_compared(tmp_path):
    """No module that another process could import contains it."""
    import subprocess
    import sys

    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nfrom weft import _compare, cuda\n"
        "@cuda.jit(reproducible=True)\ndef twice(x):\n    x[cuda.grid(1)] *= 2\n"
        f"print(_compare.run(twice[1, 8], (np.ones(8),), {{}}, {OLD!r}))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kernel `twice` on ")
    assert done.stdout.strip().endswith("the bits of 1 array are the same")


def test_bfloat16():
    @cuda.jit(reproducible=True)
    def kernel(b):
        b[cuda.grid(1)] *= b[cuda.grid(1)]

    b = cuda.device_array(4, weft.bfloat16)
    b.view(np.uint16).copy_to_device(np.full(4, 0x3FC0, np.uint16))
    if find_spec("ml_dtypes") is None:  # NumPy needs it for bfloat16
        with pytest.raises(TypeError, match="`b` cannot be pickled: NumPy needs the package ml_dtypes for bfloat16"):
            _compare.run(kernel[1, 4], (b,), {}, OLD)
    else:
        assert compared(kernel[1, 4], b).same
