"""The semantics of `reproducible=True`: which operations are fused, rejected, or reported by a warning."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
import weft
from harness import module
from weft import config, cuda
from weft.cuda import libdevice
from weft.errors import CompileWarning, ReproducibilityWarning


def run(call: str, xs: np.ndarray, ys: np.ndarray, **options: object) -> np.ndarray:
    """A kernel's results for each pair of numbers."""
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    source = f"""
        import math
        import numpy as np
        from weft import cuda

        @cuda.jit(reproducible=True{given})
        def kernel(xs, ys, out):
            i = cuda.grid(1)
            if i < out.size:
                x, y = xs[i], ys[i]
                out[i] = {call}
    """
    out = np.zeros_like(xs)
    module(source).kernel[(xs.size + 63) // 64, 64](xs, ys, out)
    return out


NUMBERS = np.random.default_rng(7).normal(size=(2, 300))


@pytest.mark.parametrize(
    ("call", "exact"),
    [
        ("x * y + x", lambda x, y: [x * y + x]),
        ("x + x * y", lambda x, y: [x * y + x]),
        ("x * y - x", lambda x, y: [x * y - x]),
        ("x - x * y", lambda x, y: [x - x * y]),
        ("-(x * y) + x", lambda x, y: [-(Fraction(float(x * y))), x]),
        ("x * x - y * y", lambda x, y: [x * x, -Fraction(float(y * y))]),
        ("x + x * y + y * y", lambda x, y: [Fraction(float(x * y + x)), y * y]),
    ],
)
def test_a_product_is_fused_with_the_sum_that_it_stands_in(call, exact):
    """The left product of two is fused. Values that the program assigns to variables are rounded."""
    xs, ys = NUMBERS
    got = run(call, xs, ys)
    pairs = [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(xs, ys, strict=True)]
    wanted = [float(sum(exact(x, y))) for x, y in pairs]  # rounds a fraction to the nearest float
    assert np.array_equal(got, wanted)


def test_a_product_in_a_variable_is_rounded():
    source = """
        from weft import cuda

        @cuda.jit(reproducible=True)
        def kernel(xs, ys, out):
            i = cuda.grid(1)
            product = xs[i] * ys[i]
            pair = (xs[i] * ys[i], xs[i])
            out[i, 0] = product + xs[i]
            out[i, 1] = pair[0] + pair[1]
            out[i, 2] = times(xs[i], ys[i]) + xs[i]

        @cuda.jit(device=True)
        def times(x, y):
            return x * y
    """
    xs, ys = NUMBERS
    out = np.zeros((xs.size, 3))
    module(source).kernel[3, 100](xs, ys, out)
    for column in out.T:
        assert np.array_equal(column, xs * ys + xs)


def test_operators_are_those_of_ieee_754():
    """Quotients and roots are correctly rounded, and denormals are preserved."""
    random = np.random.default_rng(8)
    for dtype in (np.float32, np.float64):
        tiny = np.finfo(dtype).tiny
        xs = np.concatenate([random.normal(size=200), random.normal(size=200) * tiny]).astype(dtype)
        ys = np.concatenate([random.normal(size=200), random.normal(size=200)]).astype(dtype)
        assert np.array_equal(run("x / y", xs, ys), xs / ys)
        assert np.array_equal(run("x * y", xs, ys), xs * ys)
        assert np.array_equal(run("math.sqrt(abs(x))", xs, ys), np.sqrt(abs(xs)))


def test_a_nan_that_is_computed_is_numpys():
    """A copied NaN keeps its sign and payload."""
    for dtype, word in ((np.float32, np.uint32), (np.float64, np.uint64)):
        quiet = np.array(np.nan, dtype).view(word)
        nans = np.array([np.inf, -np.inf, np.nan, -np.nan], dtype)
        payload = nans.copy().view(word)
        payload[2:] |= word(5)
        nans = payload.view(dtype)
        zeros = np.zeros_like(nans)
        for call in ("x * y", "x - x", "math.sqrt(x - x)", "math.sin(x) + math.log(-abs(x) - 1.0)", "-(x * y)"):
            assert (run(call, nans, zeros).view(word) == quiet).all(), call
        assert np.array_equal(run("x", nans, zeros).view(word), payload)
        assert np.array_equal(run("math.copysign(1.0, x * y)", nans, zeros), np.ones_like(nans))


def test_extremes_do_not_depend_on_who_is_first():
    """-0 is below 0."""

    @cuda.jit(reproducible=True)
    def kernel(x, out):
        i = cuda.grid(1)
        cuda.atomic.max(out, 0, x[i])
        cuda.atomic.min(out, 1, x[i])

    for values in ([0.0, -0.0], [-0.0, 0.0]):
        out = np.array([values[0], values[0]])
        kernel[1, 2](np.array(values), out)
        assert np.array_equal(np.signbit(out), [False, True])


def test_fastmath_contradicts_it():
    with pytest.raises(ValueError, match="reproducible=True and fastmath=True contradict each other"):
        cuda.jit(lambda x: None, reproducible=True, fastmath=True)
    with pytest.raises(TypeError, match="reproducible must be True or False, not 'yes'"):
        cuda.jit(lambda x: None, reproducible="yes")
    cuda.jit(lambda x: None, reproducible=False, fastmath=True)


WARNED = {
    "cuda.atomic.add(x, 0, x[i])": "atomic.add of float32 is not reproducible",
    "cuda.atomic.sub(x, 0, x[i])": "atomic.sub of float32 is not reproducible",
    "n[i] = cuda.atomic.add(n, 0, 1)": "the result of atomic.add is not reproducible",
    "cuda.atomic.exch(n, 0, i)": "atomic.exch is not reproducible",
    "cuda.atomic.cas(n, 0, 1, 2)": "atomic.cas is not reproducible",
    "n[i] = cuda.clock64()": "a clock is not reproducible",
    "n[i] = cuda.activemask()": "activemask is not reproducible",
    "x[i] = T.mma(T.a(M, 0, 0), T.b(M, 0, 0), T.zeros())[0]": "a product of matrices of tf32 is not reproducible",
}
SILENT = [
    "cuda.atomic.add(n, 0, 1)", "cuda.atomic.max(x, 0, x[i])", "cuda.atomic.or_(n, 0, 3)", "x[i] = math.sin(x[i])",
    "x[i] = coop.block.sum(x[i])", "x[i] = cuda.shfl_xor_sync(-1, x[i], 1)", "cuda.syncthreads()",
]  # fmt: skip
KERNEL = """
    import math
    from weft import cuda
    from weft.cuda import coop
    import numpy as np
    M = np.ones((16, 16), np.float32)
    T = cuda.mma.tile(16, 8, 8, a="tf32", b="tf32", c=np.float32)

    @cuda.jit({options})
    def kernel(x, n):
        i = cuda.threadIdx.x
        {line}
"""


def warned(line: str, options: str) -> list[warnings.WarningMessage]:
    """The warnings of a launch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = module(KERNEL.format(line=line, options=options))
        made.kernel[1, 32](np.zeros(32, np.float32), np.zeros(32, np.int64))
    return [each for each in caught if issubclass(each.category, CompileWarning)]


@pytest.mark.parametrize("line", WARNED)
def test_what_cannot_be_reproducible_is_told_with_its_line(line):
    (told,) = warned(line, "reproducible=True")
    assert told.category is ReproducibilityWarning
    text = str(told.message)
    assert f"warning[E0220]: {WARNED[line]}" in text
    assert ":12:" in text
    assert line in text
    assert warned(line, "reproducible=False") == []


@pytest.mark.parametrize("line", SILENT)
def test_what_is_reproducible_is_not_warned_of(line):
    assert warned(line, "reproducible=True") == []


PROGRAM = """
import numpy as np
from weft import config, cuda

@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * x[i] - x[i]

out = np.zeros(3)
kernel[1, 3](np.array([np.inf, 1.0, 0.1]), out)
print(config.REPRODUCIBLE, *out.view(np.uint64))
"""


def test_the_setting_is_for_kernels_that_do_not_say():
    def run_with(value: str) -> list[int]:
        environment = {**os.environ, "WEFT_REPRODUCIBLE": value}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        return [int(word) for word in done.stdout.split()]

    on, *bits = run_with("1")
    exact = float(Fraction(0.1) * Fraction(0.1) - Fraction(0.1))
    assert on == 1
    assert np.array_equal(np.array(bits, np.uint64).view(np.float64), [np.nan, 0.0, exact], equal_nan=True)
    assert bits[0] == 0x7FF8000000000000
    assert run_with("0")[0] == 0


def test_a_reduction_says_for_itself():
    """All devices use the same order, which is not left to right."""
    x = np.random.default_rng(9).normal(size=300_000).astype(np.float32)
    total = cuda.Reduce(lambda a, b: a + b, reproducible=True)(x)
    assert math.isclose(total, x.astype(np.float64).sum(), rel_tol=1e-4, abs_tol=1e-2)
    assert total == cuda.Reduce(lambda a, b: a + b, reproducible=True)(cuda.to_device(x))
    assert config.REPRODUCIBLE == 0


SHAPES = [(1,), (70,), (513,), (100_003,), (2_200_000,), (3, 50_000), (50_000, 3), (900, 700), (40, 64), (9, 1000, 33)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_thread_of_the_cpu_takes_the_steps_of_a_gpus_block(shape, monkeypatch):
    """The CPU's reduction kernels have the same bits as the GPU's."""
    from weft.cuda import _reduce
    from weft.cuda._ufunc import rows

    monkeypatch.setattr(config, "REPRODUCIBLE", 1)
    mixed = weft.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")(
        lambda a, b: a * 0.75 + b
    )
    for kind in (np.float32, np.float64):
        x = np.random.default_rng(10).normal(size=shape).astype(kind)

        def results(x: np.ndarray = x) -> list[np.ndarray]:
            axes = (None, *range(x.ndim), tuple(range(x.ndim))[-2:])
            return [np.asarray(mixed.reduce(x, axis=axis)) for axis in axes]

        own = results()
        with monkeypatch.context() as patch:
            for module_ in (_reduce, rows):
                patch.setattr(module_, "on_cpu", lambda: False)
            gpus = results()
        for one, two in zip(own, gpus, strict=True):
            assert one.tobytes() == two.tobytes()


def test_functions_of_the_hardware_are_functions():
    """Hardware approximations differ between GPUs, so the mode calls the accurate functions instead."""

    @cuda.jit(reproducible=True)
    def kernel(x, out):
        i = cuda.grid(1)
        out[i, 0], out[i, 1] = libdevice.fast_sinf(x[i]), math.sin(x[i])
        out[i, 2], out[i, 3] = libdevice.fast_log2f(abs(x[i]) + 1), math.log2(abs(x[i]) + np.float32(1))

    x = np.linspace(-20, 20, 128, dtype=np.float32)
    out = np.zeros((128, 4), np.float32)
    kernel[1, 128](x, out)
    assert np.array_equal(out[:, 0], out[:, 1])
    assert np.array_equal(out[:, 2], out[:, 3])


def test_a_kernel_may_have_the_name_of_a_function_of_the_compilers():
    """`blocks` is a former name of the compiler's own function with the loop over blocks."""
    for name in ("blocks", "segment"):
        source = f"""
            from weft import cuda

            @cuda.jit
            def {name}(x):
                cuda.syncthreads()
                x[cuda.grid(1)] = 1
        """
        x = np.zeros(64)
        getattr(module(source), name)[2, 32](x)
        assert (x == 1).all()


def test_halves_have_one_nan():
    @cuda.jit(reproducible=True)
    def kernel(h, b):
        i = cuda.grid(1)
        h[i] = h[i] - h[i]
        b[i] = b[i] * b[i]

    h, b = np.full(4, np.inf, np.float16), cuda.device_array(4, weft.bfloat16)
    b.view(np.uint16).copy_to_device(np.full(4, 0xFFC5, np.uint16))
    kernel[1, 4](h, b)
    assert (h.view(np.uint16) == 0x7E00).all()
    assert (b.view(np.uint16).copy_to_host() == 0x7FC0).all()
