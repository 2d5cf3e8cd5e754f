"""All casts between scalar types, on edge values.

Integers wrap. Floats truncate and saturate, NaN becomes 0; 8- and 16-bit integers are reached through int32. To bool is
`!= 0`. The expected values are computed with Python's integers, except for roundings, which are NumPy's.
"""

import math

import numpy as np
import pytest
from harness import assert_exact, launch, module
from oracle import numeric

REAL = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()
COMPLEX = ["complex64", "complex128"]

INTEGER_EDGES = sorted(
    {0, 1, 2, 7, -1, -2}
    | {
        sign * 2**bits + delta
        for bits in (7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64)
        for sign in (1, -1)
        for delta in (-1, 0, 1)
    }
)
FLOAT_EDGES = [
    *(float(edge) for edge in INTEGER_EDGES),
    0.0, -0.0, 0.5, -0.5, math.nextafter(0.5, 0), math.nextafter(0.5, 1), 1.5, -1.5, 2.5, 0.1, -0.9999999, 0.9999999,
    126.9, 127.5, 128.5, -128.5, -129.5, 255.5, 256.5, 32767.5, 65535.5, 2147483646.5, 2147483647.5, -2147483648.5,
    4294967295.5, math.nextafter(2.0**31, 0), math.nextafter(2.0**63, 0), math.nextafter(2.0**63, 1e300),
    math.nextafter(-(2.0**63), -1e300), math.nextafter(2.0**64, 0), 1e20, -1e20, 3.4e38, -3.4e38, 1e39, 1e300, -1e300,
    16777217.0, 16777219.0, 1e-45, 1e-40, 5e-324, 1.1754943508222875e-38, math.inf, -math.inf, math.nan,
]  # fmt: skip


def edges(name):
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([edge for edge in INTEGER_EDGES if info.min <= edge <= info.max], dtype)
    with np.errstate(all="ignore"):
        return np.array(FLOAT_EDGES).astype(dtype)


def to_integer(number, dtype):
    """A Python number as an integer of a dtype, by the rule above."""
    dtype = np.dtype(dtype)
    if isinstance(number, float):
        through = np.iinfo(np.int32) if dtype.itemsize < 4 else np.iinfo(dtype)
        if math.isnan(number):
            number = 0
        elif math.isinf(number):
            number = int(through.max) if number > 0 else int(through.min)
        else:
            number = max(int(through.min), min(int(through.max), math.trunc(number)))
    bits = 8 * dtype.itemsize
    number %= 1 << bits
    return number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number


def expected(x, target):
    dtype = np.dtype(target)
    if dtype.kind in "iu":
        return np.array([to_integer(number, dtype) for number in x.tolist()], dtype)
    with np.errstate(all="ignore"):
        return x != 0 if dtype.kind == "b" else x.astype(dtype)


SOURCE = """
import numpy as np
import weft
from weft import cuda

@cuda.jit
def by_store(x, out):
    i = cuda.grid(1)
    out[i] = x[i]

@cuda.jit
def by_numpy(x, out):
    i = cuda.grid(1)
    out[i] = np.{numpy}(x[i])

@cuda.jit
def by_weft(x, out):
    i = cuda.grid(1)
    y = weft.{weft}(x[i])
    out[i] = y

@cuda.jit
def through_a_local_array(x, out):
    i = cuda.grid(1)
    y = cuda.local.array(1, np.{numpy})
    y[0] = x[i]
    out[i] = y[0]
"""


@pytest.fixture(scope="module")
def kernels():
    made = {}
    for name in REAL + COMPLEX:
        text = SOURCE.format(numpy="bool_" if name == "bool" else name, weft="boolean" if name == "bool" else name)
        made[name] = module(text)
    return made


HOWS = ["by_store", "by_numpy", "by_weft", "through_a_local_array"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize("source", REAL)
def test_real(kernels, source, target, how):
    x = edges(source)
    out = launch(getattr(kernels[target], how), 1, x.size, x, np.ones(x.size, target))[1]
    assert_exact(out, expected(x, target))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("target", COMPLEX)
@pytest.mark.parametrize("source", REAL + COMPLEX)
def test_complex(kernels, source, target, how):
    if source in COMPLEX:
        part = edges("float32" if source == "complex64" else "float64")
        x = np.empty(part.size, source)
        x.real, x.imag = part, part[::-1]
    else:
        x = edges(source)
    out = launch(getattr(kernels[target], how), 1, x.size, x, np.ones(x.size, target))[1]
    with np.errstate(all="ignore"):
        wanted = x.astype(target)
    assert_exact(out.real, wanted.real)
    assert_exact(out.imag, wanted.imag)


ARGUMENT = """
from weft import cuda

@cuda.jit
def kernel(value, out):
    out[0] = value
"""


@pytest.mark.parametrize("target", ["int8", "uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    "value", [7, -1, 2**40 + 5, 2**63, 2.75, True, np.int8(-3), np.uint64(2**64 - 1), np.float32(0.1)], ids=repr
)
def test_scalar_arguments(value, target):
    out = launch(module(ARGUMENT).kernel, 1, 1, value, np.ones(1, target))[1]
    assert_exact(out, expected(np.asarray(numeric.value(value)).reshape(1), target))


@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize("source", REAL)
def test_the_oracle_casts_the_same(source, target):
    x = edges(source)
    assert_exact(numeric.cast(x, target), expected(x, target))
