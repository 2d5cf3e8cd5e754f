"""Functions of bits and numbers, clocks, and loads and stores with a cache operator."""

from fractions import Fraction

import numpy as np
import pytest
import weft
from harness import assert_exact, launch, like_python, module
from weft import cuda

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def samples(dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    edges = np.array([0, 1, 2, 3, info.max, info.min, info.max // 2, info.max // 3, 96], dtype)
    return np.concatenate([edges, rng.integers(info.min, info.max, 50, dtype, endpoint=True)])


def bits_of(value):
    return format(int(value) & (2 ** (8 * value.itemsize) - 1), f"0{8 * value.itemsize}b")


@cuda.jit
def counts(x, popc, clz):
    i = cuda.grid(1)
    if i < x.size:
        popc[i] = cuda.popc(x[i])
        clz[i] = cuda.clz(x[i])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_counts(dtype):
    x = samples(dtype)
    _, popc, clz = launch(counts, 1, 64, x, np.zeros_like(x), np.zeros_like(x))
    assert popc.tolist() == [bits_of(v).count("1") for v in x]
    assert clz.tolist() == [(bits_of(v) + "1").index("1") for v in x]


@cuda.jit
def places(x, ffs, brev):
    i = cuda.grid(1)
    if i < x.size:
        ffs[i] = cuda.ffs(x[i])
        brev[i] = cuda.brev(brev.dtype.type(x[i]))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_places(dtype):
    x = samples(dtype)
    word = f"uint{8 * x.itemsize}"
    _, ffs, brev = launch(places, 1, 64, x, np.zeros(x.size, np.uint32), np.zeros(x.size, word))
    assert ffs.tolist() == [bits_of(v)[::-1].find("1") + 1 for v in x]
    assert brev.tolist() == [int(bits_of(v)[::-1], 2) for v in x]


@cuda.jit
def types_of_results(out):
    # Each result has its argument's type, that of `ffs` 32 bits: the additions show it.
    out[0] = cuda.popc(np.int8(-1)) * np.int8(100) + 100
    out[1] = cuda.clz(np.int16(1))
    out[2] = cuda.clz(7)
    out[3] = cuda.popc(True)
    out[4] = cuda.ffs(12)


def test_types_of_results():
    out = launch(types_of_results, 1, 1, np.zeros(5, np.int64))[0]
    assert out.tolist() == [900, 15, 61, 1, 3]


@cuda.jit
def of_words(low, high, n, out):
    i = cuda.grid(1)
    out[0, i] = cuda.funnelshift_l(low[i], high[i], n[i])
    out[1, i] = cuda.funnelshift_lc(low[i], high[i], n[i])
    out[2, i] = cuda.funnelshift_r(low[i], high[i], n[i])
    out[3, i] = cuda.funnelshift_rc(low[i], high[i], n[i])
    out[4, i] = cuda.byte_perm(low[i], high[i], n[i])


def test_funnels_and_bytes():
    rng = np.random.default_rng(3)
    low, high = rng.integers(0, 2**32, (2, 64), np.uint32)
    n = np.concatenate([np.arange(40), [63, 64, 65, 2**31], rng.integers(0, 2**32, 20)]).astype(np.uint32)
    out = launch(of_words, 2, 32, low, high, n, np.zeros((5, 64), np.uint32))[3]
    for i in range(64):
        both = int(high[i]) << 32 | int(low[i])
        wrapped, clamped = int(n[i]) % 32, min(int(n[i]), 32)
        assert out[0, i] == (both << wrapped >> 32) % 2**32
        assert out[1, i] == (both << clamped >> 32) % 2**32
        assert out[2, i] == (both >> wrapped) % 2**32
        assert out[3, i] == (both >> clamped) % 2**32
        taken = [both >> 8 * (int(n[i]) >> 4 * k & 7) & 255 for k in range(4)]
        assert out[4, i] == sum(byte << 8 * k for k, byte in enumerate(taken))


@cuda.jit
def of_numbers(x, out, singles):
    i = cuda.grid(1)
    out[0, i] = cuda.fma(x[i], x[i], -1.0)
    out[1, i] = cuda.cbrt(x[i])
    out[2, i] = cuda.rsqrt(x[i])
    out[3, i] = cuda.selp(x[i] > 2.0, x[i], -1.0)
    singles[0, i] = cuda.fma(np.float32(x[i]), np.float32(3), np.float32(1))
    singles[1, i] = cuda.rsqrt(np.float32(x[i]))
    singles[2, i] = cuda.selp(True, np.float32(x[i]), np.float32(0))


def test_numbers():
    x = np.linspace(0.5, 4, 32)
    _, out, singles = launch(of_numbers, 1, 32, x, np.zeros((4, 32)), np.zeros((3, 32), np.float32))
    np.testing.assert_allclose(out[0], x * x - 1, atol=1e-15)
    np.testing.assert_allclose(out[1], np.cbrt(x), rtol=4e-16)
    np.testing.assert_allclose(out[2], x**-0.5, rtol=4e-16)
    assert_exact(out[3], np.where(x > 2, x, -1.0))
    np.testing.assert_allclose(singles[1], x**-0.5, rtol=2e-7)
    assert_exact(singles[2], x.astype(np.float32))


def test_a_fused_product_is_rounded_once():
    x = np.array([1 + 2.0**-30])
    _, out, _ = launch(of_numbers, 1, 1, x, np.zeros((4, 1)), np.zeros((3, 1), np.float32))
    assert out[0, 0] == 2.0**-29 + 2.0**-60


@cuda.jit
def bit_counts(n, out):
    out[0] = n.bit_count()
    out[1] = (n - 1).bit_count()


def test_bit_count_of_integers():
    for n in (0, 5, -7, 2**62, -(2**63)):
        like_python(bit_counts, n, np.zeros(2, np.int64)) if n > -(2**63) else None


@cuda.jit
def times(out):
    i = cuda.grid(1)
    began, began_64, began_time = cuda.clock(), cuda.clock64(), cuda.globaltimer()
    cuda.nanosleep(2000)
    x = 1.0
    for _ in range(20000):
        x = x * 1.0000001 + cuda.clock64() % 2
    out[i, 0] = np.uint32(cuda.clock() - began)
    out[i, 1] = cuda.clock64() - began_64
    out[i, 2] = cuda.globaltimer() - began_time
    out[i, 3] = x > 0
    out[i, 4] = began_time


def test_clocks_run():
    out = launch(times, 2, 3, np.zeros((6, 5), np.int64))[0]
    assert (out[:, :3] > 0).all()
    assert (out[:, 3] == 1).all()
    # The device's time is the system time in nanoseconds; the kernel above takes a second at most.
    assert (out[:, 2] < 10_000_000_000).all()
    assert (np.abs(out[:, 4] - np.int64(__import__("time").time_ns())) < 86_400_000_000_000).all()


@cuda.jit
def stops(x):
    breakpoint()
    x[0] += 1


def test_a_breakpoint_is_an_error_in_compiled_code():
    with pytest.raises(weft.CompileError, match="WEFT_DEVICE=python") as raised:
        launch(stops, 1, 1, np.zeros(1))
    assert "error[E0308]" in str(raised.value)
    assert "breakpoint()" in str(raised.value)
    debugged = cuda.jit(stops.py_func, debug=True, opt=False)
    ptx, _ = cuda.compile_ptx(debugged.py_func, (weft.float64[:],), debug=True, opt=False, cc=(8, 0))
    assert "brkpt" in ptx


HINTS = [("ldca", "stcg"), ("ldcg", "stcs"), ("ldcs", "stwb"), ("ldlu", "stwt"), ("ldcv", "stcg")]


@pytest.mark.parametrize(("load", "store"), HINTS)
@pytest.mark.parametrize("dtype", [*INTEGERS, "float16", "float32", "float64"])
def test_hints_to_the_caches(load, store, dtype):
    kernel = module(f"""
        from weft import cuda
        import numpy as np
        dtype = np.dtype("{dtype}").type

        @cuda.jit
        def copies(a, b, wide):
            i = cuda.grid(1)
            cuda.{store}(b, i, cuda.{load}(a, i))
            cuda.{store}(wide, (i, -1), cuda.{load}(wide, (i, 0)))
            mine = cuda.local.array(3, dtype)
            ours = cuda.shared.array(32, dtype)
            cuda.{store}(mine, 1, a[i])
            cuda.{store}(ours, i, cuda.{load}(mine, 1))
            cuda.{store}(wide, (i, 1), cuda.{load}(ours, i))
            cuda.{store}(wide, (i, 2), 7.9)
    """).copies
    x = np.random.default_rng(1).normal(size=32) * 50
    with np.errstate(invalid="ignore"):
        a = x.astype(dtype)
    wide = np.zeros((32, 4), dtype)
    wide[:, 0] = a
    _, b, wide = launch(kernel, 1, 32, a, np.zeros_like(a), wide)
    assert_exact(b, a)
    assert_exact(wide[:, 3], a)
    assert_exact(wide[:, 1], a)
    assert_exact(wide[:, 2], np.full(32, 7.9).astype(dtype))


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_types_that_hints_do_not_take(dtype):
    kernel = module("""
        from weft import cuda

        @cuda.jit
        def refused(a):
            a[0] = cuda.ldca(a, 1)
    """).refused
    with pytest.raises(Exception, match="no overload"):
        launch(kernel, 1, 1, np.zeros(2, dtype))


@cuda.jit
def waits(flag, out):
    if cuda.grid(1) == 0:
        while cuda.ldcv(flag, 0) == 0:
            cuda.nanosleep(100)
        out[0] = cuda.ldcv(flag, 0)
    else:
        cuda.stwt(flag, 0, 5)


def test_a_volatile_load_waits_for_a_store():
    assert launch(waits, 2, 1, np.zeros(1, np.int32), np.zeros(1, np.int32))[1][0] == 5


@cuda.jit
def rounded_fma(x, out):
    i = cuda.grid(1)
    v = x[i]
    out[0, i] = cuda.fma(v, v, v, rounding="rn")
    out[1, i] = cuda.fma(v, v, v, rounding="rz")
    out[2, i] = cuda.fma(v, v, v, rounding="rd")
    out[3, i] = cuda.fma(v, v, v, rounding="ru")
    out[4, i] = cuda.fma(v, v, v)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_as_it_is_told(dtype):
    x = np.random.default_rng(1).standard_normal(512).astype(dtype)
    near, zero, down, up, usual = launch(rounded_fma, 2, 256, x, np.zeros((5, 512), dtype))[1]
    np.testing.assert_array_equal(near, usual)
    np.testing.assert_array_equal(zero, np.where(near < 0, up, down))
    exact = [Fraction(float(v)) ** 2 + Fraction(float(v)) for v in x]
    for value, low, high, nearest in zip(exact, down, up, near, strict=True):
        assert Fraction(float(low)) <= value <= Fraction(float(high))
        assert high == low or high == np.nextafter(low, np.dtype(dtype).type(np.inf))
        assert nearest in (low, high)
    assert (down < up).mean() > 0.9
