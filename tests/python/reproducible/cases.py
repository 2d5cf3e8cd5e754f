"""Cases that have the same bits on all devices: kernels with `reproducible=True` and host functions, with hard inputs.

A case is a function that returns results by name. Each process runs the same cases: inputs come from seeds.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import weft
from accuracy import points
from accuracy.functions import FUNCTIONS
from accuracy.kernels import KINDS, SHORT
from harness import module
from weft import cuda

CASES: dict = {}
COUNT = 6000
HEAD = """
import cmath
import math
import numpy as np
import weft
from weft import cuda
from weft.cuda import bf16, cg, coop, fp16, libdevice
"""
ONE = """
@cuda.jit(reproducible=True)
def kernel(xs, ys, out):
    i = cuda.grid(1)
    if i < out.size:
        x, y = {kind}(xs[i]), {kind}(ys[i])
        out[i] = {call}
"""
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def case(function):
    """Adds a case under its function's name."""
    CASES[function.__name__] = function
    return function


def as_bits(value: object) -> np.ndarray:
    """Numbers as the integers of their bits; complex ones as pairs."""
    array = np.ascontiguousarray(value)
    if array.dtype.kind == "c":
        array = array.view(np.float32 if array.itemsize == 8 else np.float64)
    return array.reshape(-1).view(WORDS[array.itemsize])


def drawn(seed: int, count: int, dtype: type) -> np.ndarray:
    """Numbers of all magnitudes: edge cases, small numbers, whole numbers, and random bits."""
    random = np.random.default_rng(seed)
    edges = points.edges(dtype)
    parts = [
        edges[random.permutation(edges.size)[: count // 4]],
        random.normal(size=count // 2).astype(dtype),
        random.integers(-100, 100, count // 8).astype(dtype),
    ]
    parts.append(points.bits(random, count - sum(part.size for part in parts), dtype))
    return random.permutation(np.concatenate(parts))


def run_one(call: str, dtype: str, xs: np.ndarray, ys: np.ndarray, result: type | None = None) -> np.ndarray:
    """One call for each pair of arguments."""
    out = np.zeros(xs.size, result or xs.dtype)
    kernel = module(HEAD + ONE.format(kind=KINDS[dtype], call=call)).kernel
    kernel[(xs.size + 127) // 128, 128](xs, ys, out)
    return out


def functions() -> dict:
    """All math functions, in all types."""
    results = {}
    for function in FUNCTIONS:
        for dtype in function.types:
            kind = np.float64 if dtype == "float64" else np.float32
            if function.pairs:
                xs, ys = points.of_two(function.pairs, COUNT, kind)
            else:
                xs = points.of_one(function, COUNT, kind)
                ys = xs
            call = function.call_for(dtype).format(half=SHORT.get(dtype))
            results[f"{call} of {dtype} {function.above} {function.below}"] = run_one(call, dtype, xs, ys)
    return results


CASES["functions"] = functions

# Operators and functions of two numbers whose result has the type of the arguments.
OPERATIONS = [
    "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "-x", "abs(x)", "x * y + x", "x - x * y", "x * x - y * y",
    "x ** 2.0", "x ** 3.0", "x ** 0.5", "x ** -1.0", "x ** 2", "x ** 7", "(x + y) * (x - y)", "min(x, y)", "max(x, y)",
    "x if x > y else y", "math.floor(x)", "math.ceil(x)", "math.trunc(x)", "np.rint(x)", "math.copysign(x, y)",
    "math.copysign(x, x - y)", "math.copysign(1.0, math.sqrt(x))", "math.frexp(x)[0]", "math.ldexp(x, 3)",
    "math.modf(x)[0]", "math.fabs(x - y)", "np.nextafter(x, y)", "x * 0.1 + y * 0.3", "1.0 / x + y",
    "np.float64(np.float32(x)) + y",
    "np.float32(np.float64(x) * np.float64(y))", "math.fmod(x, y)", "divmod(x, y)[1]", "x - x // y * y",
    "np.heaviside(x, y)", "np.logaddexp(x, y)", "np.fmin(x, y)", "np.minimum(x, y)", "np.maximum(x, y)",
    "np.sign(x - y)",
]  # fmt: skip


@case
def operations():
    results = {}
    for dtype in KINDS:
        kind = np.float64 if dtype == "float64" else np.float32
        xs, ys = drawn(1, COUNT, kind), drawn(2, COUNT, kind)
        for call in OPERATIONS:
            if dtype in SHORT and ("math." in call or "np.nextafter" in call or "divmod" in call):
                continue
            results[f"{call} of {dtype}"] = run_one(call, dtype, xs, ys)
    return results


@case
def bits_of_numbers():
    """Copies preserve the bits of a NaN; a computed NaN is always the same one."""
    results = {}
    xs, ys = drawn(3, COUNT, np.float32), drawn(4, COUNT, np.float32)
    nans = [0x7F800001, 0xFFC00000, 0x7FC12345, 0xFF812345, 0, 1 << 31, 0x7F800000, 0xFF800000]
    xs[:8] = np.array(nans, np.uint32).view(np.float32)
    for call in ("libdevice.float_as_int(x)", "libdevice.float_as_int(x * y)", "libdevice.float_as_int(x - x)"):
        results[call] = run_one(call, "float32", xs, ys, np.int32)
    for call in ("x", "x if y > x else y", "libdevice.int_as_float(libdevice.float_as_int(x))", "np.float64(x)"):
        results[call] = run_one(call, "float32", xs, ys)
    ds = drawn(5, COUNT, np.float64)
    results["d"] = run_one("libdevice.double_as_longlong(x + y)", "float64", ds, ds[::-1].copy(), np.int64)
    return results


@case
def conversions():
    results = {}
    integers = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    for dtype, kind in (("float32", np.float32), ("float64", np.float64)):
        xs = drawn(6, COUNT, kind)
        for integer in integers:
            results[f"{integer} of {dtype}"] = run_one(f"np.{integer}(x)", dtype, xs, xs, np.dtype(integer).type)
        for half in ("np.float16", "weft.bfloat16"):
            results[f"{half} of {dtype}"] = run_one(f"np.float32({half}(x))", dtype, xs, xs, np.float32)
        results[f"round of {dtype}"] = run_one("round(x)", dtype, xs, xs, np.int64)
    for way in ("rn", "rz", "ru", "rd"):
        xs, ys = drawn(7, COUNT, np.float64), drawn(8, COUNT, np.float64)
        for call in (f"libdevice.dadd_{way}(x, y)", f"libdevice.dmul_{way}(x, y)", f"libdevice.ddiv_{way}(x, y)",
                     f"libdevice.dsqrt_{way}(x)", f"libdevice.fma_{way}(x, y, x)"):  # fmt: skip
            results[call] = run_one(call, "float64", xs, ys)
    return results


@case
def fast_functions():
    xs, ys = drawn(9, COUNT, np.float32), drawn(10, COUNT, np.float32)
    calls = [f"libdevice.fast_{name}f(x)" for name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "exp10")]
    calls += ["libdevice.fast_powf(x, y)", "libdevice.fast_fdividef(x, y)"]
    return {call: run_one(call, "float32", xs, ys) for call in calls}


CHAINS = """
@cuda.jit(device=True)
def horner(x, c):
    y = c[0]
    for i in range(1, c.size):
        y = y * x + c[i]
    return y


@cuda.jit(reproducible=True)
def polynomials(xs, c, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = horner(xs[i], c)


@cuda.jit(reproducible=True)
def product(a, b, out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = out[i, j]
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        out[i, j] = total


@cuda.jit(reproducible=True)
def tiles(a, b, out):
    left = cuda.shared.array((16, 16), out.dtype)
    right = cuda.shared.array((16, 16), out.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.y * 16 + y, cuda.blockIdx.x * 16 + x
    total = a[i, 0] * b[0, j]
    for k in range(0, a.shape[1], 16):
        left[y, x] = a[i, k + x]
        right[y, x] = b[k + y, j]
        cuda.syncthreads()
        for m in range(16):
            total -= left[y, m] * right[m, x] - total * 0.5
        cuda.syncthreads()
    out[i, j] = total


@cuda.jit(reproducible=True)
def bodies(p, v, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        ax = ay = az = 0.0
        for j in range(p.shape[0]):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + 0.01
            inverse = 1.0 / (r2 * math.sqrt(r2))
            ax += dx * inverse
            ay += dy * inverse
            az += dz * inverse
        out[i, 0] = v[i, 0] + ax * 0.1
        out[i, 1] = v[i, 1] + ay * 0.1
        out[i, 2] = v[i, 2] + az * 0.1


@cuda.jit(reproducible=True)
def mandelbrot(cs, out, turns):
    i = cuda.grid(1)
    if i < cs.size:
        z, c, n = 0j, cs[i], 0
        while n < 200 and z.real * z.real + z.imag * z.imag < 4.0:
            z = z * z + c
            n += 1
        out[i], turns[i] = z / (c + 0.5) - cmath.exp(z) * c, n


@cuda.jit(reproducible=True)
def stencil(x, out):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        out[i, j] = x[i, j] * 0.5 + 0.125 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@cuda.jit(reproducible=True)
def strided(x, out):
    start, step = cuda.grid(1), cuda.gridsize(1)
    total = x[start] * x[start] - 0.5
    for i in range(start, x.size, step):
        total = total * 0.99 + x[i] * x[i]
        x[i] = x[i] * total - x[i] / 3.0
    out[start] = total


@cuda.jit(reproducible=True)
def through_shared(x, out):
    s = cuda.shared.array(128, out.dtype)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t] = x[i] * 1.1 - x[i] / x[i]
    cuda.syncthreads()
    other = s[127 - t]
    out[i] = other * s[t] + x[i]
"""


@case
def chains():
    made = module(HEAD + CHAINS)
    results = {}
    for kind in (np.float32, np.float64):
        name, random = np.dtype(kind).name, np.random.default_rng(11)
        xs, c = drawn(12, COUNT, kind), random.normal(size=17).astype(kind)
        out = np.zeros_like(xs)
        made.polynomials[(xs.size + 99) // 100, 100](xs, c, out)
        results[f"polynomials of {name}"] = out
        a, b = random.normal(size=(96, 160)).astype(kind), random.normal(size=(160, 80)).astype(kind)
        out = random.normal(size=(96, 80)).astype(kind)
        made.product[(6, 5), (16, 16)](a, b, out)
        results[f"product of {name}"] = out
        out = np.zeros((96, 80), kind)
        made.tiles[(5, 6), (16, 16)](a, b, out)
        results[f"tiles of {name}"] = out
        p, v = random.normal(size=(300, 3)).astype(kind), random.normal(size=(300, 3)).astype(kind)
        out = np.zeros_like(p)
        made.bodies[3, 128](p, v, out)
        results[f"bodies of {name}"] = out
        x = drawn(13, 64 * 64, kind).reshape(64, 64)
        out = np.zeros_like(x)
        made.stencil[(4, 4), (16, 16)](x, out)
        results[f"stencil of {name}"] = out
        x, out = random.normal(size=20_000).astype(kind), np.zeros(512, kind)
        made.strided[4, 128](x, out)
        results[f"strided of {name}"], results[f"strided, totals of {name}"] = x, out
        x, out = drawn(14, 4096, kind), np.zeros(4096, kind)
        made.through_shared[32, 128](x, out)
        results[f"through shared memory of {name}"] = out
    for kind in (np.complex64, np.complex128):
        random = np.random.default_rng(15)
        cs = (random.normal(size=4000) + 1j * random.normal(size=4000)).astype(kind)
        out, turns = np.zeros_like(cs), np.zeros(4000, np.int32)
        made.mandelbrot[40, 100](cs, out, turns)
        results[f"mandelbrot of {np.dtype(kind).name}"], results[f"turns of {np.dtype(kind).name}"] = out, turns
    return results


COLLECTIVES = """
@cuda.jit(reproducible=True)
def of_blocks(x, out):
    i, t = cuda.grid(1), cuda.threadIdx.x
    v = x[i]
    total = coop.block.sum(v)
    out[i, 0] = total
    out[i, 1] = coop.block.inclusive_sum(v)
    out[i, 2] = coop.block.reduce(v, multiply)
    out[i, 3] = coop.block.max(v)
    out[i, 4] = coop.warp.sum(v)
    out[i, 5] = coop.warp.inclusive_sum(v)
    g = cg.this_thread_block()
    out[i, 6] = cg.reduce(g, v, cg.plus)


@cuda.jit(device=True)
def multiply(a, b):
    return a * b + a + b


@cuda.jit(reproducible=True)
def shuffled(x, out):
    i = cuda.grid(1)
    v = x[i]
    for step in (16, 8, 4, 2, 1):
        v = v * 0.5 + cuda.shfl_xor_sync(-1, v, step) * v
    out[i] = v


@cuda.jit(reproducible=True)
def extremes(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(out, i % 16, x[i])
        cuda.atomic.min(out, 16 + i % 16, x[i])
        cuda.atomic.nanmax(out, 32 + i % 16, x[i])
        cuda.atomic.nanmin(out, 48 + i % 16, x[i])
"""


@case
def collectives():
    results = {}
    made = module(HEAD + COLLECTIVES)
    for kind in (np.float32, np.float64):
        name, random = np.dtype(kind).name, np.random.default_rng(16)
        for block in (32, 64, 96, 128, 200, 256, 500, 1024):
            x = random.normal(size=2 * block).astype(kind)
            out = np.zeros((2 * block, 7), kind)
            made.of_blocks[2, block](x, out)
            results[f"blocks of {block} {name}"] = out
        x = drawn(17, 1024, kind)
        out = np.zeros_like(x)
        made.shuffled[8, 128](x, out)
        results[f"shuffled {name}"] = out
        zeros = np.where(random.uniform(size=4096) < 0.5, 0.0, -0.0).astype(kind)
        for what, x in (("zeros", zeros), ("all", drawn(18, 4096, kind))):
            out = np.zeros(64, kind)
            out[::3] = -0.0
            made.extremes[32, 128](x, out)
            results[f"extremes of {what} {name}"] = out
    return results


@case
def reductions():
    """`cuda.reduce`, device arrays and ufuncs, with `WEFT_REPRODUCIBLE=1`."""
    results = {}
    total = cuda.reduce(lambda a, b: a + b)
    mixed = cuda.Reduce(lambda a, b: a * 0.5 + b * 0.5, reproducible=True)
    for kind in (np.float32, np.float64):
        name, random = np.dtype(kind).name, np.random.default_rng(19)
        for count in (1, 7, 511, 512, 513, 4096, 5000, 100_003, 3_000_001):
            x = random.normal(size=count).astype(kind)
            results[f"sum of {count} {name}"] = np.asarray(total(x))
            results[f"sum of {count} {name} from 1"] = np.asarray(total(x, init=1))
            results[f"mean of {count} {name}"] = np.asarray(mixed(x))
        for shape in ((3, 100_000), (100_000, 3), (700, 900), (5, 4000, 7), (2000, 65)):
            x = random.normal(size=shape).astype(kind)
            d = cuda.to_device(x)
            for axis in (None, *range(len(shape)), (0, 1)):
                results[f"{shape} {name} along {axis}"] = np.asarray(cuda.to_device(x).sum(axis=axis))
                results[f"add of {shape} {name} along {axis}"] = added().reduce(x, axis=axis)
                results[f"add of {shape} {name} transposed along {axis}"] = added().reduce(x.T[::2], axis=axis)
            results[f"mean of {shape} {name}"], results[f"deviation of {shape} {name}"] = (
                np.asarray(d.mean(axis=0).copy_to_host()), np.asarray(d.std(axis=-1).copy_to_host())
            )  # fmt: skip
        a, b = random.normal(size=(150, 333)).astype(kind), random.normal(size=(333, 70)).astype(kind)
        results[f"matmul of {name}"] = (cuda.to_device(a) @ cuda.to_device(b)).copy_to_host()
        tiny = np.full((5, 3), np.finfo(kind).tiny, kind)
        results[f"matmul of tiny {name}"] = (cuda.to_device(-tiny) @ cuda.to_device(tiny.T)).copy_to_host()
    return results


@functools.cache
def added():
    return weft.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")(lambda a, b: a + b)


@case
def ufuncs():
    @weft.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
    def both(a, b):
        return math.sin(a) * b + math.exp(b) - a * a

    results = {}
    for kind in (np.float32, np.float64):
        a, b = drawn(20, COUNT, kind), drawn(21, COUNT, kind)
        results[f"a ufunc of {np.dtype(kind).name}"] = both(a, b)
        d, e = cuda.to_device(a), cuda.to_device(b)
        results[f"operators of {np.dtype(kind).name}"] = (d * e + np.sqrt(d) / e - d**2).copy_to_host()
    return results


RANDOM = """
from weft.cuda.random import (
    create_xoroshiro128p_states, xoroshiro128p_normal_float32, xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float64,
)


@cuda.jit(reproducible=True)
def numbers(states, single, double):
    i = cuda.grid(1)
    total = 0.0
    for _ in range(10):
        total += xoroshiro128p_uniform_float64(states, i) * 0.1
    double[i] = xoroshiro128p_normal_float64(states, i) * total + xoroshiro128p_normal_float64(states, i)
    single[i] = xoroshiro128p_normal_float32(states, i)
"""


@case
def random_numbers():
    made = module(HEAD + RANDOM)
    states = made.create_xoroshiro128p_states(1024, seed=5)
    single, double = np.zeros(1024, np.float32), np.zeros(1024, np.float64)
    made.numbers[8, 128](states, single, double)
    return {"single": single, "double": double}
