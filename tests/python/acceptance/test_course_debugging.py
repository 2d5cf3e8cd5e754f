"""A course's lessons about debugging: prints in kernels, a debugger, indices out of bounds."""

import ctypes

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda

LIBC = ctypes.CDLL(None)


@pytest.fixture
def printed(capfd):
    """The output of the process since the last call."""

    def read():
        cuda.synchronize()
        LIBC.fflush(None)
        return capfd.readouterr().out

    read()
    return read


@cuda.jit
def add_arrays_and_tell(a, b, result):
    idx = cuda.grid(1)
    if idx < a.size:
        result[idx] = a[idx] + b[idx]
        if idx % 16 == 0:
            print("thread", idx, "adds", a[idx], "and", b[idx])


def test_a5_4_a_kernel_prints(printed):
    a = np.arange(50, dtype=np.float32)
    result = np.zeros_like(a)
    add_arrays_and_tell[1, 64](a, a, result)
    lines = sorted(printed().splitlines())
    expected = [f"thread {i} adds {i}.000000 and {i}.000000" for i in range(0, 50, 16)]
    assert lines == sorted(expected)
    np.testing.assert_array_equal(result, a + a)


@cuda.jit
def wrong_histogram(x, xmin, xmax, histogram_out):
    # A value below xmin truncates to a negative bin, which counts from the end.
    nbins = histogram_out.shape[0]
    bin_width = (xmax - xmin) / nbins
    start, stride = cuda.grid(1), cuda.gridsize(1)
    for i in range(start, x.shape[0], stride):
        bin_number = np.int32((x[i] - xmin) / bin_width)
        if bin_number < 0 or bin_number >= nbins:
            print("in a wrong bin", x[i], bin_number)
        else:
            cuda.atomic.add(histogram_out, bin_number, 1)


def test_a6_21_prints_find_what_a_histogram_does_wrong(printed):
    x = np.random.default_rng(33).normal(0, 1, 50).astype(np.float32)
    x[[3, 17, 42]] = -9.0, 12.5, -5.25
    counts = cuda.to_device(np.zeros(10, np.int32))
    wrong_histogram[64, 64](cuda.to_device(x), np.float32(-4), np.float32(4), counts)
    lines = sorted(printed().splitlines())
    expected = [f"in a wrong bin {value:.6f} {int((value + 4) / 0.8)}" for value in (-9.0, 12.5, -5.25)]
    assert lines == sorted(expected)
    assert counts.copy_to_host().sum() == x.size - 3


DEBUGGER = """
from pdb import set_trace
from weft import cuda

@cuda.jit
def imported_before(x):
    i = cuda.grid(1)
    if i == 2:
        set_trace()
    x[i] = i

@cuda.jit
def imported_within(x):
    from pdb import set_trace
    set_trace()
    x[cuda.grid(1)] = 0
"""


def test_a6_22_a_debugger_in_a_kernel_is_refused_by_name():
    program = module(DEBUGGER)
    for kernel, word, line in ((program.imported_before, "set_trace", 9), (program.imported_within, "import", 14)):
        with pytest.raises(weft.CompileError) as caught:
            kernel[1, 4](np.zeros(4))
        assert word in str(caught.value)
        assert f"{program.__file__}:{line}:" in str(caught.value)


OUT_OF_BOUNDS = """
import numpy as np
from weft import cuda

@cuda.jit({options})
def histogram(x, xmin, xmax, histogram_out):
    nbins = histogram_out.shape[0]
    bin_width = (xmax - xmin) / nbins
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        bin_number = np.int32((x[i] - xmin) / bin_width)
        cuda.atomic.add(histogram_out, bin_number, 1)
"""


@pytest.mark.parametrize("options", ["debug=True, opt=False, boundscheck=True", "boundscheck=True"])
def test_a6_23_an_atomic_step_out_of_bounds_is_reported_with_its_line(options):
    program = module(OUT_OF_BOUNDS.format(options=options))
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    counts = cuda.to_device(np.zeros(10, np.int32))
    program.histogram[64, 64](x, np.float32(-4), np.float32(4), counts)
    cuda.synchronize()
    assert counts.copy_to_host().sum() == x.size
    x[700] = 7.5

    def counted():
        # With `debug=True` the launch waits, as in Numba.
        program.histogram[64, 64](x, np.float32(-4), np.float32(4), counts)
        cuda.synchronize()

    with pytest.raises(IndexError, match="14") as caught:
        counted()
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert f"{program.__file__}" in told
    assert "11" in told
    # The process continues.
    x[700] = 0
    counted()
