"""Launch errors: each is a Python exception that names the argument or value."""

from __future__ import annotations

import numpy as np
import pytest
import weft
from harness import module
from weft import CompileError, LaunchError, cuda


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def nothing():
    pass


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * 2


@cuda.jit
def copy(src, dst):
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = src[i]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (1, TypeError, "must specify at least the griddim and blockdim"),
        ((1,), ValueError, "must specify at least the griddim and blockdim"),
        ((1, 2, 0, 0, 0, 0), ValueError, "at most a stream, sharedmem and cluster: got 6"),
        (((1, 2, 3, 4), 1), ValueError, r"griddim must be a sequence of 1, 2 or 3 integers, got \[1, 2, 3, 4\]"),
        ((1, (1, 2.5)), TypeError, r"blockdim must be a sequence of integers, got \[1, 2.5\]"),
        ((1.0, 1), TypeError, r"griddim must be a sequence of integers, got \[1.0\]: use `//`"),
        ((-1, 1), ValueError, r"griddim must have integers from 0"),
        ((None, 1), ValueError, "Kernel launch configuration was not specified"),
        ((1, 1, "stream"), TypeError, "a stream must be 0, a weft.cuda stream, or an object with `__cuda_stream__`"),
        ((1, 1, 0, -1), ValueError, "sharedmem must be an integer number of bytes"),
    ],
)
def test_wrong_configurations(index, error, text) -> None:
    with pytest.raises(error, match=text):
        double[index]


def test_a_kernel_that_was_not_configured() -> None:
    with pytest.raises(ValueError, match=r"Kernel launch configuration was not specified(.|\n)*kernel_function\["):
        double(np.zeros(1))


def test_a_device_function_cannot_be_launched() -> None:
    device = cuda.jit(device=True)(double.py_func)
    with pytest.raises(RuntimeError, match="device function"):
        device(np.zeros(1))
    with pytest.raises(RuntimeError, match="Cannot compile a device function as a kernel"):
        device[1, 1](np.zeros(1))
    with pytest.raises(RuntimeError, match="has no separate code on the CPU"):
        device.inspect_asm((weft.float64[:],), target="host")


def test_launches_that_the_device_cannot_run() -> None:
    limit = cuda.get_current_device().MAX_THREADS_PER_BLOCK
    with pytest.raises(weft.LaunchError, match=rf"{limit + 1}.*{limit}"):
        double[1, limit + 1](np.zeros(1))
    with pytest.raises(weft.LaunchError, match="shared memory"):
        double[1, 1, 0, 2**30](np.zeros(1))
    with pytest.raises(weft.LaunchError, match="z"):
        double[1, (1, 1, 65)](np.zeros(1))


def test_argument_counts() -> None:
    with pytest.raises(TypeError, match=r"kernel `copy` takes 2 arguments \(src, dst\) but 1 was given"):
        copy[1, 1](np.zeros(1))
    with pytest.raises(TypeError, match=r"takes 1 argument \(x\) but 2 were given"):
        double[1, 1](np.zeros(1), 2)
    with pytest.raises(TypeError, match="kernel `double` has no parameter `y`"):
        double[1, 1](y=np.zeros(1))


def test_arguments_that_cannot_be_passed_are_named() -> None:
    with pytest.raises(TypeError, match=r"argument 2 \(`dst`\) of kernel `copy`: a list cannot be passed"):
        copy[1, 1](np.zeros(1), [1])
    with pytest.raises(OverflowError, match=r"argument 1 \(`src`\) of kernel `copy`: Int value is too large"):
        copy[1, 1](2**64, np.zeros(1))
    with pytest.raises(TypeError, match=r"argument 1 \(`src`\) .*dict"):
        copy[1, 1](({}, 1), np.zeros(1))


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_wrong_number_of_arguments(count):
    with pytest.raises(TypeError, match="add") as caught:
        add[1, 4](*[np.ones(4)] * count)
    assert "3" in str(caught.value)
    assert str(count) in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [slice(1), [1, 2], {1: 2}, {3}, object(), print, np.array(["a"], ">U1"), np.array([None])],
    ids=lambda bad: type(bad).__name__,  # a test's name must be the same in every process
)
def test_arguments_of_a_wrong_type(bad):
    with pytest.raises(TypeError) as caught:
        add[1, 4](np.ones(4), bad, np.zeros(4))
    assert "`y`" in str(caught.value) or "argument 2" in str(caught.value)


def test_arguments_of_a_type_that_the_kernel_cannot_use():
    for text in ("text", np.array(["a"])):
        with pytest.raises(CompileError, match=r"`\+` does not take float64"):
            add[1, 4](np.ones(4), text, np.zeros(4))
    with pytest.raises(CompileError, match="out"):
        add[1, 4](np.ones(4), np.ones(4), 3.5)


@pytest.mark.parametrize("block", [1025, (32, 33), (11, 10, 10), (2000, 1, 1)])
def test_more_than_1024_threads(block):
    with pytest.raises(LaunchError, match="1024"):
        nothing[1, block]()


@pytest.mark.parametrize("block", [(1, 1, 65), (1, 1, 128)])
def test_more_than_64_threads_in_z(block):
    with pytest.raises(LaunchError, match="64"):
        nothing[1, block]()


@pytest.mark.parametrize("launch", [(0, 1), (1, 0), ((1, 0), 1), (1, (4, 0))])
def test_empty_grids_and_blocks(launch):
    with pytest.raises((LaunchError, ValueError)):
        nothing[launch]()


@pytest.mark.parametrize("launch", [(-1, 1), (1, -32), ((1, -2), 1)])
def test_negative_dimensions(launch):
    with pytest.raises((LaunchError, ValueError, TypeError, OverflowError)):
        nothing[launch]()


@pytest.mark.parametrize("launch", [(1.5, 1), (1, "32"), ((1, 2.0), 1), (1, (4, None))])
def test_dimensions_that_are_no_integers(launch):
    with pytest.raises(TypeError, match="integer"):
        nothing[launch]()


def test_four_dimensions():
    with pytest.raises(ValueError, match="griddim must be a sequence of 1, 2 or 3 integers"):
        nothing[(1, 1, 1, 1), 1]()
    with pytest.raises(ValueError, match="blockdim must be a sequence of 1, 2 or 3 integers"):
        nothing[1, (1, 1, 1, 1)]()


@cuda.jit
def dynamic(out):
    tile = cuda.shared.array(0, np.float32)
    out[0] = tile.size


def test_too_much_dynamic_shared_memory():
    with pytest.raises(LaunchError, match="shared"):
        dynamic[1, 1, 0, 1 << 20](np.zeros(1))


def test_too_much_static_shared_memory():
    source = """
    import numpy as np
    from weft import cuda

    @cuda.jit
    def kernel(out):
        tile = cuda.shared.array((1024, 1024), np.float64)
        tile[cuda.threadIdx.x, 0] = 1.0
        cuda.syncthreads()
        out[0] = tile[0, 0]
    """
    with pytest.raises((CompileError, LaunchError), match="shared"):
        module(source).kernel[1, 32](np.zeros(1))


def test_numpy_integers_are_dimensions():
    out = np.zeros(4)
    add[np.int64(2), (np.int32(2), np.uint8(1))](np.ones(4), np.ones(4), out)
    assert out.tolist() == [2.0] * 4


def test_a_failed_launch_leaves_the_kernel_usable():
    out = np.zeros(4)
    for _ in range(2):
        with pytest.raises(LaunchError):
            add[1, 4096](np.ones(4), np.ones(4), out)
        add[1, 4](np.ones(4), np.ones(4), out)
    assert out.tolist() == [2.0] * 4


@cuda.jit
def copies(source, target):
    i = cuda.grid(1)
    if i < target.size:
        target[i] = source[i]


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">U3", object])
def test_dtypes_that_kernels_do_not_have(dtype):
    host = np.zeros(4, dtype)
    with pytest.raises(TypeError):
        copies[1, 4](host, np.zeros(4))
