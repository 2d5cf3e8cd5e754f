"""Mismatched extents: a `ValueError`, as in NumPy, and no access outside the arrays."""

import numpy as np
import pytest
import weft
from weft import cuda

OPTIONS = [{}, {"exceptions": True}, {"boundscheck": True}, {"debug": True, "opt": False}]


def array(o, x, n):
    o[0:8] = x


def update(o, x, n):
    o[0:8] += x


def name_of_a_view(o, x, n):
    view = o[2:9]
    view *= x


def slices(o, x, n):
    o[0:4] = o[14:18]


def tuple_of_three(o, x, n):
    o[0:4] = (1, 2, 3)


def tuple_of_an_update(o, x, n):
    o[0:4] -= (x[0], x[1], x[2])


def longer(o, x, n):
    o[0:2] = x


def none_into_one(o, x, n):
    o[0:1] = x[:0]


def known_into_unknown(o, x, n):
    t = cuda.local.array(3, np.float64)
    t[:] = 1
    o[0:n] = t


def unknown_into_known(o, x, n):
    t = cuda.local.array(4, np.float64)
    t[:] = x
    o[0] = t[3]


def row(o, x, n):
    o.reshape(4, n)[1] = x


def rows(o, x, n):
    o.reshape(4, n)[:] = x.reshape(1, 3)


def tuples_of_rows(o, x, n):
    o.reshape(4, n)[:2] = ((1, 2, 3), (4, 5, 6))


def ufunc(o, x, n):
    np.add(o, x, o)


def ufunc_of_two_results(o, x, n):
    np.divmod(o[:3], 2.0, x, o[:8])


def sums(o, x, n):
    np.sum(o.reshape(4, n), axis=0, out=x)


def running(o, x, n):
    np.cumsum(o, out=x)


def running_along(o, x, n):
    np.cumsum(o.reshape(4, n), axis=1, out=o[:12].reshape(n - 1, 4))


def product(o, x, n):
    o[0] = np.dot(o[:n], x)


def reshape(o, x, n):
    o.reshape(n, 5)[n - 1, 4] = 99


def reshape_of_a_tuple(o, x, n):
    np.reshape(o, (n, 5))[n - 1, 4] = 99


def reshape_with_a_rest(o, x, n):
    o[0] = o.reshape(-1, n + 1).shape[0]


def reshape_with_a_rest_at_run_time(o, x, n):
    o[0] = o.reshape(n - 5, 5).shape[0]


def reshape_beyond_all(o, x, n):
    o[:0].reshape(n << 30, n << 30)[3, 3] = 99


def rows_of_other_elements(o, x, n):
    o[:12].reshape(4, n - 1).view(np.complex128)[0, 0] = 1


FUNCTIONS = [
    array,
    update,
    name_of_a_view,
    slices,
    tuple_of_three,
    tuple_of_an_update,
    longer,
    none_into_one,
    known_into_unknown,
    unknown_into_known,
    row,
    rows,
    tuples_of_rows,
    ufunc,
    ufunc_of_two_results,
    sums,
    running,
    running_along,
    product,
    reshape,
    reshape_of_a_tuple,
    reshape_with_a_rest,
    reshape_with_a_rest_at_run_time,
    reshape_beyond_all,
    rows_of_other_elements,
]


def fault_of(kernel, threads, message, *args):
    """The `ValueError` of a launch."""

    def launch():
        kernel[1, threads](*args)
        cuda.synchronize()

    with pytest.raises(ValueError, match=message) as raised:
        launch()
    return raised.value


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_touched(function):
    for options in OPTIONS:
        memory = np.arange(64.0) + 1
        base = cuda.to_device(memory)
        error = fault_of(cuda.jit(function, **options), 1, r"broadcast|reshape", base[16:32], base[40:43], 4)
        assert f"in {function.__name__}" in error.__notes__[0]
        assert base.copy_to_host().tolist() == memory.tolist()


@cuda.jit
def fill(view, source):
    view[:] = source


def test_a_fault_in_a_device_function_ends_the_thread():
    @cuda.jit
    def kernel(o, x):
        i = cuda.threadIdx.x
        fill(o[i], x[: i + 3])
        o[i, 0] += 1

    for options in OPTIONS:
        o = cuda.to_device(np.zeros((3, 4)))
        x = cuda.to_device(np.arange(8.0))
        error = fault_of(cuda.jit(kernel.py_func, **options), 3, r"a dimension of size [35] to size 4", o, x)
        assert "in fill" in error.__notes__[0]
        assert o.copy_to_host().tolist() == [[0, 0, 0, 0], [1, 1, 2, 3], [0, 0, 0, 0]]


def test_threads_that_go_on_meet_at_barriers():
    @cuda.jit
    def kernel(o, x):
        shared = cuda.shared.array((4, 3), np.float64)
        i = cuda.threadIdx.x
        shared[i] = x[i, : 3 - (i == 2)]
        cuda.syncthreads()
        o[i] = shared[(i + 1) % 4]

    o, x = cuda.to_device(np.zeros((4, 3))), cuda.to_device(np.arange(12.0).reshape(4, 3))
    fault_of(kernel, 4, "a dimension of size 2 to size 3", o, x)
    got = o.copy_to_host()
    assert [row.tolist() for row in got[[0, 3]]] == [[3, 4, 5], [0, 1, 2]]
    assert got[2].tolist() == [0, 0, 0]


def known_views(o):
    t = cuda.local.array(6, np.float64)
    t[0:4] = (1, 2, 3)


def known_arrays(o):
    t, u = cuda.local.array((2, 3), np.float64), cuda.shared.array(4, np.float64)
    t[:] = u


def known_slices(o):
    t = cuda.local.array(6, np.float64)
    t[0:4] += t[3:6]


def known_none(o):
    t = cuda.local.array(6, np.float64)
    t[0:1] = t[6:]


def known_shape(o):
    t = cuda.local.array(6, np.float64)
    o[0] = t.reshape(2, 4)[0, 0]


def known_rest(o):
    t = cuda.local.array(6, np.float64)
    o[0] = t.reshape(-1, 4)[0, 0]


def known_results(o):
    t, u = cuda.local.array((2, 3), np.float64), cuda.local.array(4, np.float64)
    np.sum(t, axis=0, out=u)


def known_ufunc(o):
    t, u = cuda.local.array((2, 3), np.float64), cuda.local.array(2, np.float64)
    np.add(t, u, t)


def known_rows(o):
    t = cuda.local.array((2, 3), np.float64)
    o[0] = t.view(np.complex128)[0, 0].real


@pytest.mark.parametrize(
    "function",
    [
        known_views,
        known_arrays,
        known_slices,
        known_none,
        known_shape,
        known_rest,
        known_results,
        known_ufunc,
        known_rows,
    ],
)
def test_what_is_known_is_an_error_of_the_compiler(function):
    with pytest.raises(weft.WeftError) as raised:
        cuda.jit(function)[1, 1](np.zeros(1))
    assert "test_mismatched_extents.py" in str(raised.value)


def fitting(o, x, y, n):
    o[0:4] = x[:4]
    o[4:8] = x[n:5]
    o[8:8] = x[:0]
    o[8:8] = x[:1]
    o[:4].reshape(2, 2)[:] += x[2:4]
    o[8:].reshape(2, n)[:, :1] = x[0:2].reshape(2, 1)
    y[:] = x[:3]
    y[1:2] = x[3:4]
    np.multiply(y, x[:1], y)
    np.add(y, x[:3], out=y)
    o.reshape(n, -1)[3, 3] += 1
    o.reshape(n - 5, 2)[7, 1] += 1
    np.sum(y, axis=0, out=o[3:6])
    np.sum(y, axis=1, out=o[:2])


def test_what_fits_goes_on():
    o, x, y = np.zeros(16), np.arange(8.0) + 1, np.zeros((2, 3))
    expected, other = o.copy(), y.copy()
    fitting(expected, x, other, 4)
    for options in OPTIONS:
        got, more = o.copy(), y.copy()
        cuda.jit(fitting, **options)[1, 1](got, x, more, 4)
        assert (got.tolist(), more.tolist()) == (expected.tolist(), other.tolist())
