"""`guvectorize`: functions of arrays that are mapped over the leading axes, compared with NumPy."""

import pickle

import numpy as np
import pytest
from weft import cuda, float32, float64, guvectorize, int32, void

RNG = np.random.default_rng(3)


@guvectorize(["void(float32[:,:], float32[:,:], float32[:,:])", "void(float64[:,:], float64[:,:], float64[:,:])"],
             "(m,n),(n,p)->(m,p)")  # fmt: skip
def matmul(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@guvectorize(["void(int64[:], int64[:])", "void(float64[:], float64[:])"], "(n)->()")
def total(row, out):
    out[0] = 0
    for value in row:
        out[0] += value


@guvectorize(["void(float64[:], float64, float64[:], float64[:])"], "(n),()->(n),()")
def shifted(row, by, out, most):
    most[0] = row[0] + by
    for i in range(row.size):
        out[i] = row[i] + by
        most[0] = max(most[0], out[i])


@pytest.mark.parametrize(
    "outer", [((), ()), ((3,), (3,)), ((3,), ()), ((2, 3), (3,)), ((2, 1), (3,)), ((4, 2, 3), (2, 1))]
)
def test_outer_axes_broadcast(outer):
    first, second = outer
    a, b = RNG.standard_normal((*first, 2, 4)), RNG.standard_normal((*second, 4, 5))
    expected = np.matmul(a, b)
    got = matmul(a, b)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)
    device = matmul(cuda.to_device(a), b)
    assert isinstance(device, cuda.DeviceNDArray)
    np.testing.assert_array_equal(device.copy_to_host(), got)


def test_any_strides_and_sizes():
    a = RNG.standard_normal((7, 6, 5))
    for view in (a.T, a[::2], a[:, ::-1], a.transpose(1, 0, 2), a[..., 1:4], np.asfortranarray(a)):
        np.testing.assert_allclose(total(view), view.sum(-1), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(matmul(view, np.swapaxes(view, 1, 2)), view @ np.swapaxes(view, 1, 2), atol=1e-12)
    assert total(np.zeros((0, 5))).shape == (0,)
    np.testing.assert_array_equal(total(np.zeros((5, 0))), np.zeros(5))
    many = RNG.integers(0, 100, (10_001, 3))
    np.testing.assert_array_equal(total(many), many.sum(1))


def test_numbers_and_several_results():
    x = RNG.standard_normal((4, 6))
    out, most = shifted(x, 2.0)
    np.testing.assert_allclose(out, x + 2)
    np.testing.assert_allclose(most, (x + 2).max(1))
    by = np.arange(4.0)
    out, most = shifted(x, by)
    np.testing.assert_allclose(out, x + by[:, None])
    given = np.empty((4, 6)), np.empty(4)
    assert shifted(x, by, out=given)[1] is given[1]
    np.testing.assert_array_equal(given[0], out)
    given = np.empty((4, 6)), np.empty(4)
    shifted(x, by, *given)
    np.testing.assert_array_equal(given[1], most)
    assert total(np.arange(5)) == 10
    assert type(total(np.arange(5))) is np.int64


def test_arguments_without_axes_as_arrays_of_one_element():
    @guvectorize(["void(int32[:], int32[:], int32[:])"], "(n),()->(n)")
    def plus(x, y, out):
        for i in range(x.size):
            out[i] = x[i] + y[0]

    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    y = np.array([2, 10], np.int32)
    np.testing.assert_array_equal(plus(x, y), x + y[:, None])
    np.testing.assert_array_equal(plus(x, 5), x + 5)
    # The `out` array need not have axes of extent 1.
    out = np.zeros(4, np.int32)
    plus(x[0], y[:1], out=out)
    np.testing.assert_array_equal(out, x[0] + 2)

    @guvectorize([void(int32, int32[:])], "()->()")
    def twice(x, out):
        out[0] = x * 2

    assert twice(10) == 20
    np.testing.assert_array_equal(twice(np.arange(10, dtype=np.int32)), np.arange(10) * 2)


def test_arguments_are_converted():
    x = np.arange(12).reshape(3, 4)
    assert total(x.astype(np.int16)).dtype == np.int64
    assert total(x.astype(np.float32)).dtype == np.float64
    device = cuda.to_device(x.astype(np.int16))
    np.testing.assert_array_equal(total(device).copy_to_host(), x.sum(1))

    @guvectorize([(float32[:], float32[:])], "(n)->()")
    def norm(row, out):
        out[0] = 0
        for value in row:
            out[0] += value * value

    # As in Numba, host arrays are also converted with a loss of precision.
    got = norm(RNG.standard_normal((10, 2)))
    assert got.dtype == np.float32
    with pytest.raises(TypeError, match=r"argument 1 is a device array of float64, which does not support .astype"):
        norm(cuda.to_device(np.ones((3, 2))))
    with pytest.raises(TypeError, match=r"no matching signature: no loop takes \(complex128\[:\]\)"):
        norm(np.ones(3, complex))


def test_what_is_written_may_be_what_is_read():
    @guvectorize([(float64[:], float64[:])], "(n)->(n)")
    def reverse(x, out):
        for i in range(x.size):
            out[i] = x[x.size - 1 - i]

    x = np.arange(12.0).reshape(3, 4)
    expected = x[:, ::-1].copy()
    assert reverse(x, out=x) is x
    np.testing.assert_array_equal(x, expected)
    device = cuda.to_device(x)
    reverse(device, out=device)
    np.testing.assert_array_equal(device.copy_to_host(), expected[:, ::-1])


def test_a_stream_and_a_device_result():
    stream = cuda.stream()
    a = cuda.to_device(RNG.standard_normal((100, 2, 4)), stream)
    out = cuda.device_array((100, 2, 2), np.float64, stream=stream)
    given = matmul(a, RNG.standard_normal((4, 2)), out=out, stream=stream)
    assert given is out
    stream.synchronize()


def test_without_signatures_results_are_given():
    @guvectorize("(n)->(n)")
    def running(x, out):
        sum_so_far = x[0] * 0
        for i in range(x.size):
            sum_so_far += x[i]
            out[i] = sum_so_far

    x = np.arange(10).reshape(2, 5)
    out = np.zeros((2, 5), np.int64)
    running(x, out)
    np.testing.assert_array_equal(out, x.cumsum(1))
    wide = np.zeros((2, 5))
    running(x * 0.5, out=wide)
    np.testing.assert_array_equal(wide, (x * 0.5).cumsum(1))
    with pytest.raises(TypeError, match="has no signatures: pass arrays for the results"):
        running(x)


def test_fixed_extents():
    @guvectorize([(float64[:], float64[:], float64[:])], "(3),(3)->(3)")
    def cross(a, b, out):
        out[0] = a[1] * b[2] - a[2] * b[1]
        out[1] = a[2] * b[0] - a[0] * b[2]
        out[2] = a[0] * b[1] - a[1] * b[0]

    a, b = RNG.standard_normal((2, 7, 3))
    np.testing.assert_allclose(cross(a, b), np.cross(a, b), rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="argument 1 has 4 along `3`, not 3"):
        cross(np.ones(4), np.ones(3))


def test_a_gufunc_knows_what_it_is():
    assert matmul.__name__ == "matmul"
    assert (matmul.signature, matmul.nin, matmul.nout, matmul.nargs) == ("(m,n),(n,p)->(m,p)", 2, 1, 3)
    copy = pickle.loads(pickle.dumps(matmul))
    np.testing.assert_array_equal(copy(np.eye(3), np.eye(3)), np.eye(3))
    local = guvectorize([(float64[:], float64[:])], "(n)->()")(lambda x, out: None)
    pickle.loads(pickle.dumps(local))


def test_faults_name_the_argument():
    with pytest.raises(ValueError, match="argument 2 has 5 along `n`, not 4"):
        matmul(np.ones((2, 4)), np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"argument 2 has 1 dimensions, 2 at least are needed: \(n,p\)"):
        matmul(np.ones((2, 4)), np.ones(4))
    with pytest.raises(ValueError, match=r"matmul: argument 2 with shape \(4,\) does not broadcast with \(3,\)"):
        matmul(np.ones((3, 2, 2)), np.ones((4, 2, 2)))
    with pytest.raises(ValueError, match=r"output shape mismatch: result 1 has \(3,\), not \(4,\)"):
        total(np.ones((3, 5)), out=np.ones(4))
    with pytest.raises(TypeError, match="result 1 is float64, not float32"):
        total(np.ones((3, 5)), out=np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"accepts 2 positional .* or 3 positional .* Got 1 positional argument\."):
        matmul(np.eye(2))


def test_the_decorator_refuses_what_it_cannot_do():
    signature = [(float64[:], float64[:])]
    for options, kind, text in [
        ({"writable_args": (0,)}, TypeError, "writable_args are not supported"),
        ({"cache": True}, TypeError, "caching is not supported"),
        ({"nopython": False}, TypeError, "nopython flag must be True"),
        ({"what": 1}, TypeError, "options are not supported: 'what'"),
        ({"target": "cpu"}, ValueError, "Unsupported target: 'cpu'"),
        ({"identity": "zero"}, ValueError, "Invalid identity"),
    ]:
        with pytest.raises(kind, match=text):
            guvectorize(signature, "(n)->(n)", **options)
    for layout, kind, text in [
        ("(n)->(m)", NameError, "undefined output symbols: m"),
        ("(n)", ValueError, "`->`"),
        ("(n;m)->()", ValueError, 'bad token in signature ";"'),
        ("n->()", ValueError, 'bad token in signature "n"'),
        ("(n->()", ValueError, "not closed"),
        ("(n)->", ValueError, "at least one result"),
    ]:
        with pytest.raises(kind, match=text):
            guvectorize(signature, layout)(copied)
    for wrong, layout, text in [
        (["int32(float64[:], float64[:])"], "(n)->(n)", "cannot return values: .* specifies int32 return type"),
        ([(float64[:],)], "(n)->(n)", "has 1 arguments, the layout '\\(n\\)->\\(n\\)' has 2"),
        ([(float64[:, :], float64[:])], "(n)->(n)", "argument 1 has 1 axes in the layout, and 2 in the signature"),
        ([(float64, float64[:])], "(n)->(n)", "ndim>0 for scalar"),
        ([(float64[:], float64)], "(n)->()", "result 1 is a number"),
        (signature, "(n),(n)->(n)", "the function has 2 arguments, the layout .* has 3"),
    ]:
        with pytest.raises((TypeError, ValueError), match=text):
            guvectorize(wrong, layout)(copied)
    with pytest.raises(TypeError, match="one or two positional"):
        guvectorize(signature, "(n)->(n)", 3)


def copied(x, out):
    for i in range(x.size):
        out[i] = x[i]
