"""`cuda.reduce`: any function of two values over arrays of all lengths, with both implementations."""

import operator
import pickle
from functools import reduce

import numpy as np
import pytest
import weft
from weft import cuda
from weft.cuda import _reduce

# Lengths near multiples of tiles, blocks, pieces and lanes.
SIZES = [1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 512, 513, 769, 4095, 4096, 4097, 8191, 12_288, 16_384, 16_385]
LARGE = [40_000, 65_537, 1 << 20, (1 << 20) + 4095]


@cuda.reduce
def total(a, b):
    return a + b


@cuda.Reduce
def largest(a, b):
    return max(a, b)


@pytest.fixture(params=["as the device does", "in tiles"])
def way(request, monkeypatch):
    """The GPU's kernels also run on the CPU."""
    if request.param == "in tiles":
        monkeypatch.setattr(_reduce, "in_pieces", lambda: False)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_sums_of_integers_are_exact_and_wrap(dtype):
    for size in SIZES:
        x = np.arange(1, size + 1).astype(dtype) * 37
        got = total(x.astype(dtype))
        expected = x.astype(dtype).sum(dtype=dtype)
        assert got == expected, size
        assert got.dtype == dtype


@pytest.mark.usefixtures("way")
def test_every_element_counts_once():
    for size in LARGE:
        assert total(np.arange(size)) == size * (size - 1) // 2
        x = np.ones(size, np.float32)
        assert total(x) == size
        x[-1] = 5
        assert largest(x, init=2) == 5
        x[-1], x[0] = 1, 7
        assert largest(x) == 7


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sums_of_floats(dtype):
    rng = np.random.default_rng(1)
    for size in [1, 500, 5000, 70_000]:
        x = rng.standard_normal(size).astype(dtype)
        wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
        error = abs(total(x) - wide.sum())
        assert error <= np.finfo(dtype).eps * np.abs(wide).sum()


@pytest.mark.usefixtures("way")
def test_init_counts_once():
    product = cuda.reduce(lambda a, b: a * b)
    x = np.arange(1, 21, dtype=np.int64)
    assert product(x, init=1) == reduce(operator.mul, range(1, 21))
    assert product(np.ones(100_000), init=3) == 3
    assert total(np.ones(100_000), init=0.5) == 100_000.5
    assert largest(np.array([-3.0, -2.0]), init=-9) == -2


@pytest.mark.usefixtures("way")
def test_device_arrays_parts_and_steps():
    x = np.arange(20_000, dtype=np.int64)
    device = cuda.to_device(x)
    assert total(device) == x.sum()
    assert total(device[::3]) == x[::3].sum()
    assert total(device[::-1]) == x.sum()
    assert total(x[5::7]) == x[5::7].sum()
    assert total(device, size=100) == x[:100].sum()
    assert total(x, size=0) == 0
    stream = cuda.stream()
    assert total(device, stream=stream) == x.sum()
    np.testing.assert_array_equal(device.copy_to_host(), x)


def test_results_stay_on_the_device_if_asked():
    x = np.arange(100_000.0)
    res = cuda.to_device(np.array([-1.0, -2.0]))
    assert total(x, res=res) is None
    np.testing.assert_array_equal(res.copy_to_host(), [x.sum(), -2])
    assert total(x[:0], res=res, init=8) is None
    np.testing.assert_array_equal(res.copy_to_host(), [8, -2])


def test_what_is_not_of_one_dimension_is_refused():
    for wrong in (np.ones((2, 2)), np.float64(1), 3.0):
        with pytest.raises(TypeError, match="only support 1D array"):
            total(wrong)
    assert total(np.array([], np.int32), init=4) == np.int32(4)


@pytest.mark.parametrize("count", [1, 2, 3, 511, 513, 4096, 70_000])
def test_without_init_the_elements_alone_count(count, way):
    x = -1 - np.random.default_rng(count).permutation(count)
    assert largest(x) == -1
    assert largest(cuda.to_device(x)) == -1
    assert cuda.reduce(min)(-x) == 1
    assert cuda.reduce(operator.mul)(np.full(count, -1)) == (-1) ** count
    res = cuda.device_array(1, np.int64)
    largest(x, res=res)
    assert res.copy_to_host() == [-1]
    assert largest(x, init=-5) == -1
    assert largest(x, init=3) == 3


def test_of_no_elements_the_result_is_0_or_init():
    for dtype in (np.int32, np.float64, np.complex64):
        nothing = np.array([], dtype)
        assert total(nothing) == 0
        assert total(nothing).dtype == dtype
        assert total(np.ones(3, dtype), size=0) == 0
        assert total(nothing, init=7) == 7
    for res in (np.full(1, 9), cuda.to_device(np.full(1, 9))):
        total(np.array([], np.int64), res=res)
        assert res[0] == 0


def test_sizes_and_results_that_do_not_fit_are_refused():
    x = np.arange(5)
    for size in (-1, -5, 6, 2**40):
        with pytest.raises(ValueError, match=f"size {size} is larger than the array, which has 5 elements"):
            total(x, size=size)
    with pytest.raises(TypeError):
        total(x, size=2.5)
    assert total(x, size=np.int8(3)) == 3
    for res in (np.zeros(0, int), cuda.device_array((2, 2)), 3):
        with pytest.raises(ValueError, match="res must be a one-dimensional array with at least one element"):
            total(x, res=res)


def test_a_reduction_can_be_pickled():
    copy = pickle.loads(pickle.dumps(total))
    assert copy(np.arange(10)) == 45


def test_functions_that_kernels_know():
    x = np.array([3, 1, 4, 1, 5], np.int64)
    assert cuda.reduce(operator.mul)(x, init=1) == 60
    assert cuda.reduce(max)(x) == 5
    assert cuda.reduce(max)(-x) == -1
    assert cuda.reduce(np.minimum)(x, init=9) == 1
    assert pickle.loads(pickle.dumps(cuda.reduce(operator.xor)))(x) == 3 ^ 1 ^ 4 ^ 1 ^ 5
    with pytest.raises(TypeError, match="not int"):
        cuda.reduce(3)


def test_a_fault_of_the_function_is_shown_in_its_text():
    @cuda.reduce
    def wrong(a, b):
        return a + b.real.missing

    with pytest.raises(weft.CompileError) as caught:
        wrong(np.arange(5))
    assert "missing" in str(caught.value)
    assert "weft/cuda" not in str(caught.value)
    assert [diagnostic["file"] for diagnostic in caught.value.diagnostics] == [__file__]


def test_functions_of_several_statements():
    @cuda.reduce
    def longest(a, b):
        # By absolute value; of two with the same, the positive one.
        if abs(a) == abs(b):
            return max(a, b)
        return a if abs(a) > abs(b) else b

    x = np.array([3, -7, 5, 7, -2], np.int32)
    assert longest(x) == 7
    assert longest(-np.arange(5000)) == -4999
