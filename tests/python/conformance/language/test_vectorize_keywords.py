"""The keyword arguments of ufuncs: `where`, `dtype`, `casting`, `order`, and the axes of `reduce`, against NumPy."""

import itertools

import numpy as np
import pytest
from weft import cuda, guvectorize, vectorize

RNG = np.random.default_rng(11)

SIGNATURES = ["int32(int32, int32)", "int64(int64, int64)", "float32(float32, float32)", "float64(float64, float64)"]


@vectorize(SIGNATURES, identity=0)
def add(x, y):
    return x + y


@vectorize(SIGNATURES)
def greatest(x, y):
    return max(x, y)


@vectorize(["float64(float64, float64)", "complex128(complex128, complex128)"], identity=1)
def times(x, y):
    return x * y


def places(*arrays):
    """The arrays on the host, and on the device."""
    yield arrays
    yield tuple(cuda.to_device(array) if isinstance(array, np.ndarray) else array for array in arrays)


def on_host(array):
    return array.copy_to_host() if isinstance(array, cuda.DeviceNDArray) else array


@pytest.mark.parametrize(
    ("shape", "mask"),
    [((5,), (5,)), ((3, 4), (4,)), ((3, 4), (3, 1)), ((3, 4), ()), ((2, 3, 4), (3, 1)), ((300, 70), (300, 70))],
)
def test_where_leaves_the_other_elements_alone(shape, mask):
    x = RNG.integers(-9, 9, shape)
    chosen = RNG.random(mask) < 0.5
    expected = np.add(x, x, out=np.full(shape, -100), where=chosen)
    for a, b, some in places(x, x, chosen):
        for out in (np.full(shape, -100), cuda.to_device(np.full(shape, -100)), np.full(shape, -100, ">i8")):
            assert add(a, b, out=out, where=some) is out
            np.testing.assert_array_equal(on_host(out), expected)
    # Strides and memory orders, and a mask that broadcasts the arguments.
    out = np.full((*shape[::-1], 2), -100)[..., ::2]
    add(x.T, 1, out=out[..., 0], where=np.broadcast_to(chosen, shape).T)
    np.testing.assert_array_equal(
        out[..., 0], np.add(x.T, 1, out=np.full_like(x.T, -100), where=chosen_like(x, chosen))
    )


def chosen_like(x, chosen):
    return np.broadcast_to(chosen, x.shape).T


def test_where_broadcasts_and_computes_nothing_where_it_is_false():
    seen = cuda.to_device(np.arange(4))
    add(seen, 1, out=seen, where=False)
    np.testing.assert_array_equal(seen.copy_to_host(), np.arange(4))
    assert add(1, 2, where=np.array([True, True])).tolist() == [3, 3]
    assert add(np.arange(3), 1, where=np.array([[True] * 3] * 2)).shape == (2, 3)
    # The mask may overlap the results.
    flags = np.array([True, False, True])
    expected = np.equal(flags, flags, out=flags.copy(), where=flags)
    same = vectorize(["boolean(boolean, boolean)"])(lambda a, b: a == b)
    np.testing.assert_array_equal(same(flags, flags, out=flags, where=flags), expected)
    for wrong in (1, np.arange(3), [0, 1, 1], "x"):
        with pytest.raises(TypeError, match="ufunc add: `where` must be an array of bool"):
            add(np.arange(3), 1, where=wrong)
    with pytest.raises(ValueError, match="does not broadcast"):
        add(np.arange(3), 1, where=np.array([True, False]))


TYPES = [np.bool_, np.int8, np.int32, np.int64, np.uint32, np.float32, np.float64]


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_dtype_and_casting_choose_as_numpy_does(dtype, casting):
    for first, second in itertools.product(TYPES, TYPES):
        a, b = np.array([1, 0, 1], first), np.array([1, 1, 0], second)
        try:
            expected = np.add(a, b, dtype=dtype, casting=casting)
        except TypeError:
            for x, y in places(a, b):
                with pytest.raises(TypeError, match=f"no loop with results of {np.dtype(dtype)} takes"):
                    add(x, y, dtype=dtype, casting=casting)
            continue
        for x, y in places(a, b):
            found = on_host(add(x, y, dtype=dtype, casting=casting))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_casting_says_what_results_may_become(casting):
    for of, to in itertools.product([np.int32, np.int64, np.float32, np.float64], TYPES):
        a = np.array([1, 2, 3], of)
        expected = np.zeros(3, to)
        try:
            np.add(a, a, out=expected, casting=casting)
        except TypeError:
            with pytest.raises(TypeError, match="cannot hold"):
                add(a, a, out=np.zeros(3, to), casting=casting)
            continue
        for x, out in itertools.product((a, cuda.to_device(a)), (np.zeros(3, to), cuda.to_device(np.zeros(3, to)))):
            add(x, x, out=out, casting=casting)
            np.testing.assert_array_equal(on_host(out), expected)


def test_numbers_and_losses_with_a_dtype():
    assert add(1, 2, dtype=np.float32).dtype == np.float32
    assert add(1.5, 2.5, dtype=np.int64, casting="unsafe") == np.add(1.5, 2.5, dtype=np.int64, casting="unsafe") == 3
    with pytest.raises(TypeError, match=r"no loop with results of int64 takes \(float, float\)"):
        add(1.5, 2.5, dtype=np.int64)
    with pytest.raises(TypeError, match="no loop with results of uint8"):
        add(1, 2, dtype=np.uint8)
    z = np.array([1 + 2j, 3 - 1j])
    for (x,) in places(z):
        with pytest.warns(np.exceptions.ComplexWarning) if x is z else pytest.MonkeyPatch.context():
            found = times(x, x, dtype=np.float64, casting="unsafe")
        np.testing.assert_array_equal(on_host(found), [1, 9])
        with pytest.raises(TypeError, match="result 1 is complex128, which an array of float64 cannot hold"):
            times(x, x, out=np.zeros(2), casting="unsafe")
    with pytest.raises(ValueError, match=r"casting must be one of 'no', .*, not 'sometimes'"):
        add(1, 2, casting="sometimes")
    # Without signatures, the arguments are converted to the dtype.
    twice = vectorize(lambda x, y: x * 2 + y)
    narrow = np.arange(3, dtype=np.float32)
    assert twice(narrow, narrow).dtype == np.float64
    assert twice(np.arange(3), 1, dtype=np.float32).tolist() == [1, 3, 5]
    assert twice(np.arange(3), 1, dtype=np.float32).dtype == np.float32
    assert twice(narrow, narrow).dtype == np.float64
    with pytest.raises(TypeError, match="no loop with results of int32 takes"):
        twice(narrow, narrow, dtype=np.int32)
    plus = vectorize(lambda x, y: x + y)
    assert plus.reduce(np.arange(3), dtype=np.float32).dtype == np.float32
    assert plus.reduce(np.arange(3), dtype=np.float32) == 3


def test_order_of_new_arrays():
    c = np.zeros((3, 4))
    f = np.asfortranarray(c)
    for order, array in itertools.product("KACF", (c, f)):
        expected = np.add(array, 1.0, order=order).flags
        found = add(array, 1.0, order=order).flags
        assert (found.c_contiguous, found.f_contiguous) == (expected.c_contiguous, expected.f_contiguous)
        assert add(cuda.to_device(array), 1.0, order=order).flags["F_CONTIGUOUS"] == expected.f_contiguous
    with pytest.raises(ValueError, match="order must be 'K', 'A', 'C' or 'F', not 'X'"):
        add(c, c, order="X")


@pytest.mark.parametrize("keyword", ["ouput", "wheer", "subok", "signature", "axis", "keepdims"])
def test_unknown_keywords_are_refused(keyword):
    total = guvectorize(["void(float64[:], float64[:])"], "(n)->()")(sum_row)
    x = np.ones(3)
    for call in (add, add.outer, lambda *args, **keywords: total(args[0], **keywords)):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
            call(x, x, **{keyword: True})
    if keyword not in ("axis", "keepdims"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
            add.reduce(x, **{keyword: True})
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
        add.at(x, [0], x[:1], **{keyword: True})


def sum_row(row, out):
    out[0] = 0
    for x in row:
        out[0] += x


AXES = [None, (), 0, -1, (0,), (0, 2), (2, 0), (1, -1), (0, 1, 2), (-1, 0)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce_over_several_axes(axis, keepdims):
    x = RNG.integers(-50, 50, (3, 4, 5))
    keywords = {"axis": axis, "keepdims": keepdims}
    some = RNG.random((4, 1)) < 0.6
    for ours, numpys in ((add, np.add), (greatest, np.maximum)):
        for array in (x, x.transpose(2, 0, 1), x[::-1, ::2], np.asfortranarray(x), x[:, :, :1]):
            expected = numpys.reduce(array, **keywords)
            mask = np.broadcast_to(some[: array.shape[1]], (array.shape[1], 1))
            masked = numpys.reduce(array, **keywords, where=mask, initial=-7)
            for given, chosen in places(array, mask):
                found = ours.reduce(given, **keywords)
                assert np.shape(found) == np.shape(expected)
                np.testing.assert_array_equal(on_host(found), expected)
                out = np.zeros_like(expected)
                if np.ndim(expected):
                    assert ours.reduce(given, **keywords, out=out, initial=3) is out
                    np.testing.assert_array_equal(out, numpys.reduce(array, **keywords, initial=3))
                    ours.reduce(given, **keywords, out=out, where=chosen, initial=-7)
                    np.testing.assert_array_equal(out, masked)
                found = ours.reduce(given, **keywords, where=chosen, initial=-7)
                assert np.shape(found) == np.shape(masked)
                np.testing.assert_array_equal(on_host(found), masked)
                np.testing.assert_array_equal(
                    add.reduce(array, **keywords, where=chosen), np.add.reduce(array, **keywords, where=mask)
                )


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_reduce_and_accumulate_as_a_dtype(dtype):
    for of in (np.int32, np.float64):
        x = RNG.integers(-50, 50, (3, 4)).astype(of)
        for (array,) in places(x):
            for axis in (None, 0, 1, (0, 1)):
                found = on_host(add.reduce(array, axis, dtype))
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, np.add.reduce(x, axis, dtype))
            found = on_host(add.accumulate(array, 1, dtype))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, np.add.accumulate(x, 1, dtype))
    z = np.array([1 + 2j, 3 - 1j])
    assert times.reduce(cuda.to_device(z), dtype=np.float64) == 3


def test_faults_of_reductions_name_the_argument():
    x = np.ones((2, 3))
    for axis, message in (((0, 0), "duplicate value in 'axis'"), ((0, -2), "duplicate value in 'axis'")):
        with pytest.raises(ValueError, match=message):
            add.reduce(x, axis)
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        add.reduce(x, (0, 2))
    for call in (lambda: add.reduce(x, 1.5), lambda: add.reduce(x, "x"), lambda: add.accumulate(x, (0, 1))):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            call()
    with pytest.raises(TypeError, match="no loop takes and returns uint8, the `dtype` of `reduce`"):
        add.reduce(x, dtype=np.uint8)
    with pytest.raises(ValueError, match="ufunc greatest has no identity: pass `initial` with `where`"):
        greatest.reduce(x, where=x > 1)
    with pytest.raises(ValueError, match=r"`where` with shape \(2, 2, 3\) does not broadcast to \(2, 3\)"):
        add.reduce(x, where=np.ones((2, 2, 3), bool))
    with pytest.raises(ValueError, match=r"the result has shape \(1, 3\), the array for it \(3,\)"):
        add.reduce(x, keepdims=True, out=np.zeros(3))


@guvectorize(["void(float32[:], float32[:], float32[:])", "void(float64[:], float64[:], float64[:])"], "(n),(n)->(n)")
def joined(a, b, out):
    for i in range(a.size):
        out[i] = a[i] + b[i]


def test_dtype_and_casting_of_generalized_ufuncs():
    x = np.arange(4, dtype=np.float32)
    for a, b in places(x, x):
        assert joined(a, b).dtype == np.float32
        found = joined(a, b, dtype=np.float64)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(on_host(found), x + x)
        assert joined(a, b, casting="no").dtype == np.float32
    wide = x.astype(np.float64)
    assert joined(wide, wide, dtype=np.float32).dtype == np.float32
    for a, b in places(wide, wide):
        with pytest.raises(TypeError, match=r"no loop with results of float32 takes .* with casting='safe'"):
            joined(a, b, dtype=np.float32, casting="safe")
        assert joined(a, b, dtype=np.float32, casting="unsafe").dtype == np.float32
    with pytest.raises(TypeError, match="no loop with results of int32 takes"):
        joined(x, x, dtype=np.int32)
    with pytest.raises(TypeError, match=r"no loop takes .* with casting='no'"):
        joined(np.arange(4), x, casting="no")
    with pytest.raises(ValueError, match="casting must be one of"):
        joined(x, x, casting=1)
    free = guvectorize("(n)->(n)")(lambda a, out: None)
    with pytest.raises(TypeError, match="has no signatures from which `dtype` could choose"):
        free(x, x.copy(), dtype=np.float32)
