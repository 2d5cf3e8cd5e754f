"""Arrays of floats of 8 bits, of the package `ml_dtypes`: elements, conversions, errors."""

import os

import numpy as np
import pytest
from generators.float8 import FORMATS, rounded, values
from generators.halves import blocks
from harness import assert_exact, launch, module
from weft import cuda
from weft.errors import CompileError

ml_dtypes = pytest.importorskip("ml_dtypes")

DTYPES = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
NAMES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def all_numbers(name):
    return np.arange(256, dtype=np.uint8).view(DTYPES[name])


def numbers(rng, count):
    return (rng.standard_normal(count) * 2.0 ** rng.uniform(-20, 18, count)).astype(np.float64)


@pytest.mark.parametrize("name", FORMATS)
def test_loads_are_converted(name):
    @cuda.jit
    def kernel(x, out, wide, whole):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = np.float32(x[i])
            wide[i] = float(x[i])
            whole[i] = int(x[i])

    x, expected = all_numbers(name), values(name)
    out, wide, whole = launch(kernel, 1, 256, x, *(np.zeros(256, kind) for kind in (np.float32, np.float64, np.int64)))[
        1:
    ]
    assert_exact(out, expected.astype(np.float32))
    assert_exact(wide, expected)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(whole[finite], np.trunc(expected[finite]).astype(np.int64))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_stores_round_to_nearest_even_and_saturate(name, dtype):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i]

    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        if dtype is np.int64:
            x = rng.integers(-70000, 70000, 4000)
        else:
            finite = values(name)[: FORMATS[name][3] + 1]
            middles = (finite[1:] + finite[:-1]) / 2
            special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 448, 464, 480, 57344, 61440, 65000]
            x = np.concatenate([special, middles, -middles, numbers(rng, 4000)]).astype(dtype)
    out = launch(kernel, blocks(x.size), 256, x, np.zeros(x.size, DTYPES[name]))[1]
    np.testing.assert_array_equal(out.view(np.uint8), rounded(name, x))


@pytest.mark.parametrize("name", FORMATS)
def test_elements_are_copied_as_bits(name):
    kernel = module(
        f"""
        import numpy as np
        from weft import cuda
        float8 = cuda.fp8.{NAMES[name]}

        @cuda.jit
        def kernel(x, out, rows):
            tile = cuda.shared.array(256, float8)
            own = cuda.local.array(2, float8)
            i = cuda.threadIdx.x
            tile[i] = x[255 - i]
            cuda.syncthreads()
            own[0] = tile[255 - i]
            value = own[0] if i % 2 == 0 else x[i]
            out[i] = value
            rows[i // 16, i % 16] = float8(np.float32(value) * np.float32(2))
        """
    ).kernel
    x = all_numbers(name)
    out, rows = launch(kernel, 1, 256, x, np.zeros(256, x.dtype), np.zeros((16, 16), x.dtype))[1:]
    np.testing.assert_array_equal(out.view(np.uint8), x.view(np.uint8))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rows.view(np.uint8).ravel(), rounded(name, values(name) * 2))


def test_formats_are_converted_by_their_values():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = ml_dtypes.float8_e4m3fn(x[i])

    out = launch(kernel, 1, 256, all_numbers("e5m2"), np.zeros(256, DTYPES["e4m3"]))[1]
    np.testing.assert_array_equal(out.view(np.uint8), rounded("e4m3", values("e5m2")))


@pytest.mark.parametrize("name", FORMATS)
def test_views(name):
    kernel = module(
        f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel(x, bits, out):
            i = cuda.threadIdx.x
            out[i] = np.float32(bits.view(cuda.fp8.{NAMES[name]})[i])
            bits[i] = x.view(np.uint8)[i]
        """
    ).kernel
    x = all_numbers(name)
    _, bits, out = launch(kernel, 1, 256, x[::-1].copy(), x.view(np.uint8).copy(), np.zeros(256, np.float32))
    assert_exact(out, values(name).astype(np.float32))
    np.testing.assert_array_equal(bits, np.arange(256)[::-1])


@pytest.mark.parametrize(
    "expression",
    ["x[0] + x[1]", "x[0] * 2.0", "-x[0]", "x[0] < x[1]", "x[0] == 1.0", "abs(x[0])", "max(x[0], x[1])", "x[0] + y[0]"],
)
def test_arithmetic_is_an_error_with_a_fix(expression):
    kernel = module(
        f"""
        from weft import cuda

        @cuda.jit
        def kernel(x, y, out):
            out[0] = {expression}
        """
    ).kernel
    if os.environ["WEFT_DEVICE"] == "python":
        pytest.skip("CPython has its own error")
    x, y = all_numbers("e4m3"), all_numbers("e5m2")
    with pytest.raises(CompileError, match=r"no arithmetic: convert it, `np\.float32\(x\)`"):
        kernel[1, 1](x, y, np.zeros(1, np.float32))


def test_stores_of_another_format_and_to_numbers_are_errors():
    @cuda.jit
    def of_another(x, out):
        out[0] = x[0]

    x = all_numbers("e4m3")
    for out in (np.zeros(1, DTYPES["e5m2"]), np.zeros(1, np.float32)):
        with pytest.raises((CompileError, TypeError), match=r"convert it|real number"):
            of_another[1, 1](x, out)


def test_device_arrays():
    x = all_numbers("e4m3").reshape(16, 16)
    there = cuda.to_device(x)
    assert there.dtype == DTYPES["e4m3"]
    np.testing.assert_array_equal(there.copy_to_host().view(np.uint8), x.view(np.uint8))
    np.testing.assert_array_equal(there[3:5, ::2].copy_to_host().view(np.uint8), x[3:5, ::2].view(np.uint8))
    made = cuda.device_array(5, cuda.fp8.float8_e5m2)
    assert made.dtype == DTYPES["e5m2"]


@pytest.mark.parametrize(("a", "b"), [("e4m3", "e4m3"), ("e5m2", "e4m3")])
def test_matrix_tiles_take_them(a, b):
    kernel = module(
        f"""
        import numpy as np
        from weft import cuda
        T = cuda.mma.tile(16, 8, 32, a="{a}", b="{b}", c=np.float32)

        @cuda.jit
        def kernel(a, b, out):
            T.store(out, 0, 0, T.mma(T.a(a, 0, 0), T.b(b, 0, 0), T.zeros()))
        """
    ).kernel
    rng = np.random.default_rng(2)
    left, right = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((16, 32), (32, 8)))
    out = launch(kernel, 1, 32, left.astype(DTYPES[a]), right.astype(DTYPES[b]), np.zeros((16, 8), np.float32))[2]
    np.testing.assert_array_equal(out, left @ right)
    with pytest.raises((CompileError, TypeError), match="array of two dimensions"):
        kernel[1, 32](left.astype(DTYPES[a]), right.astype(DTYPES["e5m2" if b == "e4m3" else "e4m3"]), out)
