"""`cuda.fp8`: conversions to and from floats of 8 bits, compared with the table of their values."""

import numpy as np
import pytest
from generators.float8 import FORMATS, rounded, values
from generators.halves import blocks
from harness import assert_exact, launch, module

SOURCE = """
import weft
from weft import cuda

@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = cuda.fp8.{name}({argument})
"""


def converted(name, x, dtype, argument="x[i]"):
    kernel = module(SOURCE.format(name=name, argument=argument)).kernel
    return launch(kernel, blocks(x.size), 256, x, np.zeros(x.size, dtype))[1]


@pytest.mark.parametrize("name", FORMATS)
def test_all_numbers(name):
    assert_exact(converted(f"from_{name}", np.arange(256, dtype=np.uint8), np.float32), values(name).astype(np.float32))


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_their_own_nearest(name):
    x = values(name)
    finite = np.isfinite(x)
    got = converted(f"to_{name}", x[finite].astype(np.float32), np.uint8)
    np.testing.assert_array_equal(got, np.arange(256)[finite])


@pytest.mark.parametrize("name", FORMATS)
def test_all_halves(name):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(converted(f"to_{name}", x, np.uint8), rounded(name, x))
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    got = converted(f"to_{name}", bits, np.uint8, "cuda.bf16.ushort_as_bfloat16(x[i])")
    np.testing.assert_array_equal(got, rounded(name, wide))


def hard(name, dtype):
    """Random numbers of all magnitudes, all ties, and their neighbors."""
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        finite = values(name)[: FORMATS[name][3] + 1]
        middles = (finite[1:] + finite[:-1]) / 2
        largest = 2 * finite[-1] - middles[-1]
        ends = np.array([0.0, largest, 2 * finite[-1], np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny])
        near = np.concatenate([middles, finite, ends]).astype(dtype)
        near = np.concatenate([near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf))])
        spread = (rng.standard_normal(20000) * 2.0 ** rng.uniform(-30, 20, 20000)).astype(dtype)
        raw = rng.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32).astype(dtype)
        x = np.concatenate([near, spread, raw])
        return np.concatenate([x, -x])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding(name, dtype):
    x = hard(name, dtype)
    np.testing.assert_array_equal(converted(f"to_{name}", x, np.uint8), rounded(name, x))


@pytest.mark.parametrize("name", FORMATS)
def test_float64_is_rounded_once(name):
    # Next to a tie by less than a float32 can tell.
    finite = values(name)[: FORMATS[name][3] + 1]
    x = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([np.nextafter(x, 0), np.nextafter(x, np.inf), [1e300, -1e300, 1e-300]])
    np.testing.assert_array_equal(converted(f"to_{name}", x, np.uint8), rounded(name, x))


def test_integers_are_converted():
    np.testing.assert_array_equal(
        converted("to_e4m3", np.array([0, 1, -2, 17, 1000]), np.uint8), [0, 0x38, 0xC0, 0x58, 0x7E]
    )
