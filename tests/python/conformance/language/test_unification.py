"""The type of a variable that gets values of different types on different paths, for all pairs of types."""

import numpy as np
import pytest
from harness import assert_exact, launch, module, run
from oracle import numeric
from weft import cuda

REAL = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()


@cuda.jit
def joined(x, y, out):
    i = cuda.grid(1)
    if i % 2:
        v = x[i]
    else:
        v = y[i]
    out[i, 0] = v
    out[i, 1] = v / np.float32(3)
    out[i, 2] = -v
    w = x[i] if i % 2 else y[i]
    out[i, 3] = w
    out[i, 4] = w / np.float32(3)
    out[i, 5] = -w


EDGES = {
    "bool": [0, 1, 1, 0],
    "int8": [-128, 127, -1, 7],
    "uint8": [255, 200, 1, 7],
    "int16": [-32768, 32767, -1, 7],
    "uint16": [65535, 40000, 1, 7],
    "int32": [-(2**31), 2**31 - 1, 16777217, 7],
    "uint32": [2**32 - 1, 16777217, 1, 7],
    "int64": [-(2**63), 2**63 - 1, -1, 7],
    "uint64": [2**64 - 1, 2**63 + 2048, 1, 7],
    "float32": [0.1, -1.5, 3e38, 7.7],
    "float64": [0.1, -1.5, 1e300, 7.7],
}


@pytest.mark.parametrize("left", REAL)
@pytest.mark.parametrize("right", REAL)
def test_branches_and_conditional_expressions(left, right):
    x, y = np.array(EDGES[left], left), np.array(EDGES[right], right)
    out = launch(joined, 1, 4, x, y, np.zeros((4, 6)))[2]
    dtype = numeric.unify(x.dtype, y.dtype)
    chosen = np.where(np.arange(4) % 2, numeric.cast(x, dtype), numeric.cast(y, dtype))
    third = numeric.binary("/", chosen, np.float32(3))
    columns = [chosen, third, numeric.unary("-", chosen)] * 2
    assert_exact(out, np.stack([np.asarray(column, np.float64) for column in columns], axis=1))


@cuda.jit
def extremes(x, y, out):
    i = cuda.grid(1)
    v = min(x[i], y[i])
    out[i, 0] = v
    out[i, 1] = v / np.float32(3)
    out[i, 2] = -v
    v = max(x[i], y[i])
    out[i, 3] = v
    out[i, 4] = v / np.float32(3)
    out[i, 5] = -v


@pytest.mark.parametrize("left", REAL[1:])
@pytest.mark.parametrize("right", REAL[1:])
def test_min_and_max(left, right):
    x, y = np.array(EDGES[left], left), np.array(EDGES[right], right)
    out = launch(extremes, 1, 4, x, y, np.zeros((4, 6)))[2]
    dtype = numeric.unify(x.dtype, y.dtype)
    columns = []
    for best in (np.minimum, np.maximum):
        chosen = best(numeric.cast(x, dtype), numeric.cast(y, dtype))
        columns += [chosen, numeric.binary("/", chosen, np.float32(3)), numeric.unary("-", chosen)]
    assert_exact(out, np.stack([np.asarray(column, np.float64) for column in columns], axis=1))


@cuda.jit
def accumulates(x, out):
    i = cuda.grid(1)
    from_int = 0
    from_float32 = np.float32(0)
    for k in range(x.shape[1]):
        from_int += x[i, k]
        from_float32 += x[i, k]
    out[i, 0] = from_int
    out[i, 1] = from_float32


def test_accumulators_join_their_start_and_their_sum():
    x = np.full((4, 1000), 0.1, np.float32) * np.arange(1, 5, dtype=np.float32)[:, None]
    out = run(accumulates, 1, 4, x, np.zeros((4, 2)), rtol=1e-13)[1]
    np.testing.assert_allclose(out[:, 0], x.astype("f8").sum(axis=1), rtol=1e-13)
    np.testing.assert_array_equal(out[:, 1], out[:, 1].astype(np.float32))


@cuda.jit
def int_then_float(x, out):
    i = cuda.grid(1)
    best = 0
    for k in range(x.shape[1]):
        if k == 0:
            best = x[i, k]
        else:
            best = max(best, x[i, k])
    m = -np.inf
    for k in range(x.shape[1]):
        m = max(m, x[i, k])
    out[i, 0] = best
    out[i, 1] = m


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_loop_carried_joins(dtype):
    x = np.random.default_rng(8).integers(-50, 50, (4, 20)).astype(dtype)
    out = run(int_then_float, 1, 4, x, np.zeros((4, 2)))[1]
    np.testing.assert_array_equal(out, np.stack([x.max(axis=1)] * 2, axis=1))


@cuda.jit
def rebinds(x, out):
    i = cuda.grid(1)
    a = x[i]
    out[i, 0] = a // 2
    a = a * 0.5
    out[i, 1] = a
    a = (a, 3)
    out[i, 2] = a[0] + a[1]
    a = a[1] > 2
    out[i, 3] = a


def test_a_name_may_change_its_type_in_straight_code():
    run(rebinds, 1, 4, np.arange(4), np.zeros((4, 4)))


@cuda.jit
def ping_pong(n, out):
    a = 1
    b = 0.5
    for _ in range(n):
        a, b = b, a
    out[0] = a / 3
    out[1] = b / 3


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_types_that_swap_in_a_loop(n):
    run(ping_pong, 1, 1, n, np.zeros(2))


@cuda.jit
def tuples(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        pair = (1, 0.5)
    else:
        pair = (np.float32(0.1), 2)
    out[i, 0] = pair[0] / 3
    out[i, 1] = pair[1] / 3


def test_tuples_are_joined_item_by_item():
    out = launch(tuples, 1, 2, np.array([1, -1]), np.zeros((2, 2)))[1]
    np.testing.assert_array_equal(out, [[1 / 3, 0.5 / 3], [np.float64(np.float32(0.1)) / 3, 2 / 3]])


@cuda.jit
def extremes_of_quotients(x, out):
    i = cuda.grid(1)
    j = cuda.threadIdx.x
    out[i, 0] = max(x[i] / x[i], j)
    out[i, 1] = max(j, x[i] / x[i])
    out[i, 2] = min(x[i] / x[i], j + 5, 9)
    out[i, 3] = min(x[i] / x[i], -1)
    out[i, 4] = max(np.float32(x[i]) / np.float32(x[i]), np.int8(j))
    out[i, 5] = max(0.0, x[i] / x[i])


@pytest.mark.parametrize("threads", [1, 8])
def test_extremes_of_a_nan_and_an_integer(threads):
    x = np.array([0, 0, 0, 1, 0, 2, 0, 0])
    out = run(extremes_of_quotients, 8 // threads, threads, x, np.zeros((8, 6)))[1]
    assert not np.isnan(out).any()


@pytest.mark.parametrize("condition", ["len({}) > 0", "{}.shape[0] > 0", "{}.size > 0", "len({})", "{}.nbytes >= 4"])
@pytest.mark.parametrize("view", ["m", "m[:]", "m[-2:]", "m.reshape(2, 2)", "m[::-1][:3]"])
@pytest.mark.parametrize("named", [True, False])
def test_the_extents_of_arrays_are_numbers_of_run_time(condition, view, named):
    """As in Numba, both paths determine the joined type, even if one of them is never taken."""
    text = f"""
import numpy as np
from weft import cuda

@cuda.jit
def k(x, out):
    m = cuda.local.array(4, np.uint32)
    b = {view}
    v = x[0]
    if {condition.format("b" if named else view)}:
        v = np.uint32(3)
    out[0] = -v
"""
    out = np.zeros(1)
    module(text).k[1, 1](np.array([7], np.int32), out)
    assert out[0] == -3
