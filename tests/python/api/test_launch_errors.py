"""What a launch refuses: each a Python exception that names the thing."""

import numpy as np
import pytest
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


ARRAYS = (np.ones(4), np.ones(4), np.zeros(4))


def test_a_kernel_that_was_never_configured():
    with pytest.raises(ValueError, match="configuration was not specified"):
        add(*ARRAYS)


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_wrong_number_of_arguments(count):
    with pytest.raises(TypeError, match="add") as caught:
        add[1, 4](*[np.ones(4)] * count)
    assert "3" in str(caught.value)
    assert str(count) in str(caught.value)


def test_keyword_arguments():
    with pytest.raises(TypeError, match="position"):
        add[1, 4](np.ones(4), np.ones(4), out=np.zeros(4))


@pytest.mark.parametrize(
    "bad", ["text", None, [1, 2], {1: 2}, {3}, object(), print, np.array(["a"]), np.array([None])], ids=str
)
def test_arguments_of_a_wrong_type(bad):
    with pytest.raises(TypeError) as caught:
        add[1, 4](np.ones(4), bad, np.zeros(4))
    assert "`y`" in str(caught.value) or "argument 2" in str(caught.value)


def test_an_integer_that_is_too_large():
    with pytest.raises(ValueError, match="too large"):
        add[1, 4](np.ones(4), 2**64, np.zeros(4))


def test_arguments_of_a_type_that_the_kernel_cannot_use():
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


def test_too_short_and_too_long_configurations():
    with pytest.raises((ValueError, TypeError)):
        nothing[(1,)]()
    with pytest.raises((ValueError, TypeError)):
        nothing[1]()
    with pytest.raises((ValueError, TypeError)):
        nothing[1, 1, 0, 0, 0]()


def test_a_stream_that_is_none():
    with pytest.raises(TypeError, match="stream"):
        nothing[1, 1, "stream"]()


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


class OnAnotherDevice:
    """Looks like an array in GPU memory."""

    @property
    def __cuda_array_interface__(self):
        return {"shape": (4,), "typestr": "<f8", "data": (1 << 40, False), "version": 3, "strides": None}


@pytest.mark.cpu
def test_gpu_memory_on_the_cpu():
    with pytest.raises((LaunchError, TypeError), match="GPU memory"):
        add[1, 4](np.ones(4), OnAnotherDevice(), np.zeros(4))


def test_a_device_function_is_no_kernel():
    @cuda.jit(device=True)
    def square(x):
        return x * x

    with pytest.raises((RuntimeError, TypeError), match="device function"):
        square[1, 1](2.0)
