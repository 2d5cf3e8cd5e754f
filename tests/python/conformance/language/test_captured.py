"""Captured globals and closure variables: constants frozen when a kernel is compiled."""

import math
import math as m

import numpy  # noqa: ICN001 - under both names
import numpy as np
import pytest
import weft
from harness import run
from weft import cuda, float32

COUNT = 3
SCALE = 2.5
FLAG = True
PAIR = (4, 0.25)
NESTED = ((1, 2), (3.5, -4))
SMALL = np.int8(100)
SINGLE = np.float32(0.1)
WIDE = np.uint64(2**63 + 5)
UNIT = 1 - 2j
NEGATIVE = -7
BIG = 2**63
DTYPE = np.float32
INSTANCE = np.dtype("int16")


@cuda.jit
def scalars(out):
    out[0] = COUNT + SCALE
    out[1] = 1 if FLAG else 2
    out[2] = PAIR[0] * PAIR[1]
    out[3] = NESTED[1][0] + NESTED[0][1]
    out[4] = SMALL + SMALL
    out[5] = SINGLE
    out[6] = SINGLE * SINGLE
    out[7] = NEGATIVE // 2
    out[8] = len(PAIR)
    out[9] = BIG // np.uint64(3)
    out[10] = UNIT.imag
    out[11] = (UNIT * UNIT).real


def test_global_numbers():
    out = run(scalars, 1, 1, np.zeros(12))[0]
    assert out[4] == 200
    assert out[5] == np.float64(np.float32(0.1))
    assert out[6] == np.float64(np.float32(0.1) * np.float32(0.1))
    assert out[9] == (2**63) // 3


@cuda.jit
def wide(out):
    out[0] = WIDE
    out[1] = WIDE >> np.uint64(1)


def test_global_uint64():
    out = run(wide, 1, 1, np.zeros(2, np.uint64))[0]
    assert out.tolist() == [2**63 + 5, (2**63 + 5) >> 1]


@cuda.jit
def loops(out):
    for k in range(COUNT):
        out[k] = k
    a, b = PAIR
    out[3] = a + b


def test_globals_in_loops_and_unpacked():
    run(loops, 1, 1, np.zeros(4))


@cuda.jit
def modules(x, out):
    i = cuda.grid(1)
    out[i, 0] = math.pi + m.e
    out[i, 1] = math.sqrt(x[i]) + m.sqrt(x[i])
    out[i, 2] = np.float32(x[i]) / numpy.float32(3)
    out[i, 3] = numpy.int32(x[i] * 2.9)
    out[i, 4] = np.pi
    out[i, 5] = -math.inf if x[i] > 2 else np.inf


def test_modules_under_any_name():
    run(modules, 1, 4, np.arange(4.0), np.zeros((4, 6)))


@cuda.jit
def casts(x, out):
    i = cuda.grid(1)
    out[i, 0] = DTYPE(x[i])
    out[i, 1] = float32(x[i])
    out[i, 2] = weft.float32(x[i])
    out[i, 3] = cuda.float32(x[i])
    out[i, 4] = weft.int8(x[i] * 1000)


def test_types_under_any_name():
    x = np.array([0.1, 0.7, 1 / 3, 12.3])
    out = run(casts, 1, 4, x, np.zeros((4, 5)))[1]
    for column in range(4):
        np.testing.assert_array_equal(out[:, column], x.astype(np.float32))


@cuda.jit
def dtypes(x, out):
    i = cuda.grid(1)
    a = cuda.local.array(COUNT, DTYPE)
    b = cuda.local.array((2, COUNT), INSTANCE)
    c = cuda.local.array(shape=COUNT, dtype="float64")
    for k in range(COUNT):
        a[k] = x[i] + k
        b[1, k] = x[i] * k * 40000
        c[k] = a[k] + b[1, k]
    out[i] = c[COUNT - 1]


def test_dtypes_of_local_arrays():
    run(dtypes, 1, 4, np.linspace(0, 1, 4), np.zeros(4))


def make(constant):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * constant + constant

    return kernel


@pytest.mark.parametrize("constant", [3, -2.5, True, np.int16(7), np.float32(0.1), np.uint8(200)], ids=repr)
def test_closure_variables(constant):
    x = np.arange(4, dtype=np.float32)
    run(make(constant), 1, 4, x, np.zeros(4))


def test_closures_do_not_share_what_was_compiled():
    x, out = np.ones(2), np.zeros(2)
    kernels = [make(n) for n in range(5)]
    for n, kernel in enumerate(kernels):
        kernel[1, 2](x, out)
        assert out.tolist() == [2 * n, 2 * n]


def test_shapes_from_closures_and_locals():
    rows, cols = 3, 4
    block = (2, 5)

    @cuda.jit
    def kernel(out):
        n = 6
        a = cuda.local.array((rows, cols), np.float64)
        b = cuda.local.array(block, np.int32)
        c = cuda.local.array(n, np.int64)
        out[0] = a.size + b.size * 100 + c.size * 10000
        out[1] = a.shape[1] * 10 + b.shape[1]

    out = run(kernel, 1, 1, np.zeros(2, np.int64))[0]
    assert out.tolist() == [61012, 45]


rebound = 1


@cuda.jit
def frozen(out):
    out[0] = rebound


def test_globals_are_read_for_each_compilation():
    global rebound
    out = np.zeros(1, np.int64)
    frozen[1, 1](out)
    rebound = 2
    try:
        frozen[1, 1](out)
        assert out[0] == 1
        other = np.zeros(1, np.int32)  # another specialisation is compiled now
        frozen[1, 1](other)
        assert other[0] == 2
        frozen[1, 1](out)
        assert out[0] == 1
    finally:
        rebound = 1


ϵ = 3.0
𝛼 = 2


@cuda.jit(device=True)
def ﬂoor_of(ℏ):
    return ℏ // 1


def test_names_are_those_that_python_makes_of_them():
    @cuda.jit
    def kernel(out):
        ﬁ = 4
        out[0] = fi + ϵ + ε
        out[1] = 𝛼 + α + floor_of(ħ=1.5)

    out = run(kernel, 1, 1, np.zeros(2))[0]
    assert out.tolist() == [10, 5]
