"""Values of functions that are linked as LTO-IR are those of the same functions in the kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from weft import cuda, errors

pytestmark = pytest.mark.cuda

RANDOM = np.random.default_rng(7)
INTS = np.concatenate([np.array([0, 1, -1, 2, 7, -(2**31), 2**31 - 1]), RANDOM.integers(-(2**31), 2**31, 93)])
LONGS = np.concatenate([np.array([0, 1, -1, -(2**63), 2**63 - 1]), RANDOM.integers(-(2**63), 2**63 - 1, 95)])
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e9, -3e9, 1e20, -1e20, 255.5]
FLOATS = np.concatenate([np.array(SPECIAL), RANDOM.normal(0, 100, 100 - len(SPECIAL))])


def integers(a, b):
    return min(a, b) * 3 + max(a, b) // 7 - abs(a) % 1000 + (a << (b & 31)) + (a >> 3) + ~b


def division(a, b):
    return a // b + a % b


def bits(a, b):
    return cuda.popc(a) * 1000 + cuda.clz(b) * 100 + cuda.ffs(a) + cuda.brev(b)


def unsigned(a, b):
    return max(a, b) - min(a, b) // 3 + (a >> 5) + (b % 17)


def conversions(x):
    return np.int8(x) + np.uint16(x) * 3 + np.int32(x) // 5 + np.int64(np.float32(x)) % 1000 + np.uint32(x) % 7


def rounding(x):
    return math.floor(x) * 3.0 + math.ceil(x) * 5.0 + math.trunc(x) * 7.0 + round(x)


def extremes(x, y):
    return min(x, y) * 2 + max(y, x) + math.copysign(x, y) - abs(x)


def contracted(x, y):
    return x * y + y * x - x / y


def functions(x, y):
    return math.sin(x) + math.exp(y / 100) * math.atan2(x, y) + math.sqrt(abs(x)) - math.log1p(abs(y))


def classes(x):
    return math.isnan(x) + math.isinf(x) * 2 + math.isfinite(x) * 4


def power(x, y):
    return abs(x) ** y


def halves(x):
    return np.float16(x) * np.float16(3) + np.float16(0.1) - np.float16(x) / np.float16(7)


def gamma(x):
    return math.gamma(x) + math.lgamma(x) + math.erf(x)


def complicated(n, x):
    total = x
    for i in range(n & 15):
        if i % 3 == 1:
            continue
        total = total * x + np.float32(i)
        if total > 1000:
            break
    return total


def scalars(dtype, values):
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


CASES = [
    (integers, "int32", "int32", [scalars(np.int32, INTS), scalars(np.int32, INTS[::-1])]),
    (integers, "int64", "int64", [LONGS, LONGS[::-1].copy()]),
    (integers, "int16", "int64", [scalars(np.int16, INTS), scalars(np.int16, INTS[::-1])]),
    (division, "int32", "int32", [scalars(np.int32, INTS), scalars(np.int32, INTS[::-1])]),
    (division, "float64", "float64", [FLOATS, FLOATS[::-1].copy()]),
    (bits, "uint32", "int64", [scalars(np.uint32, INTS), scalars(np.uint32, INTS[::-1])]),
    (unsigned, "uint64", "uint64", [scalars(np.uint64, LONGS), scalars(np.uint64, LONGS[::-1])]),
    (conversions, "float64", "int64", [FLOATS]),
    (conversions, "float32", "int64", [scalars(np.float32, FLOATS)]),
    (rounding, "float64", "float64", [FLOATS]),
    (extremes, "float32", "float32", [scalars(np.float32, FLOATS), scalars(np.float32, FLOATS[::-1])]),
    (extremes, "float64", "float64", [FLOATS, FLOATS[::-1].copy()]),
    (contracted, "float32", "float32", [scalars(np.float32, FLOATS), scalars(np.float32, FLOATS[::-1])]),
    (functions, "float64", "float64", [FLOATS, FLOATS[::-1].copy()]),
    (functions, "float32", "float32", [scalars(np.float32, FLOATS), scalars(np.float32, FLOATS[::-1])]),
    (classes, "float64", "int64", [FLOATS]),
    (classes, "float32", "int64", [scalars(np.float32, FLOATS)]),
    (power, "float64", "float64", [FLOATS, np.linspace(-3, 3, 100)]),
    (halves, "float32", "float16", [scalars(np.float32, FLOATS)]),
    (gamma, "float64", "float64", [np.linspace(-5, 20, 100)]),
    (complicated, "int32, float32", "float32", [scalars(np.int32, INTS), scalars(np.float32, np.arange(100) % 5)]),
]
# Functions of floats without a product that the two compilers may fuse with different sums.
EXACT = {extremes, complicated}


def linked(function, signature: str, name: str):
    """The function as LTO-IR, declared with numba-cuda's ABI; skips where NVIDIA's libraries are missing."""
    capability = cuda.get_current_device().compute_capability
    try:
        code, _ = cuda.compile(
            function, signature, cc=capability, abi="numba", abi_info={"abi_name": name}, output="ltoir"
        )
    except NotImplementedError as error:
        pytest.skip(str(error))
    return cuda.declare_device(name, signature, link=cuda.LTOIR(code, f"{name}.ltoir"))


def launched(kernel, grid, block, *args):
    try:
        kernel[grid, block](*args)
    except errors.NvrtcSupportError as error:
        pytest.skip(str(error))


def results(function, inputs, dtype):
    """The values of a function for each element, in a kernel."""
    out = np.zeros(len(inputs[0]), dtype)
    if len(inputs) == 1:

        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = function(x[i])
    else:

        @cuda.jit
        def kernel(x, y, out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = function(x[i], y[i])

    launched(kernel, 4, 32, *inputs, out)
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def test_values_are_those_of_the_kernels_own_function(case) -> None:
    function, argument, returns, inputs = case
    args = argument if "," in argument else ", ".join([argument] * len(inputs))
    signature = f"{returns}({args})"
    external = linked(function, signature, f"lto_{function.__name__}")
    expected = results(cuda.jit(signature, device=True)(function), inputs, returns)
    got = results(external, inputs, returns)
    if np.dtype(returns).kind != "f" or function in EXACT:
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol={2: 2e-3, 4: 2e-6, 8: 1e-13}[got.itemsize])
    if function is extremes:
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(expected)]))


def updates(p, i, v):
    cuda.atomic.add(p, 0, v)
    cuda.atomic.max(p, 1, v)
    cuda.atomic.min(p, 2, v, order="acq_rel", scope="block")
    cuda.atomic.xor(p, 3, v)
    cuda.atomic.sub(p, 4, v)
    cuda.atomic.and_(p, 5, v)
    cuda.atomic.or_(p, 6, v, order="seq_cst", scope="system")
    cuda.threadfence()
    while cuda.atomic.cas(p, 7, 0, 1, order="acquire") != 0:
        pass
    p[8] += i
    cuda.atomic.exch(p, 7, 0, order="release")
    return 0


def floats(p, v):
    cuda.atomic.add(p, 0, v)
    cuda.atomic.max(p, 1, v)
    cuda.atomic.min(p, 2, v)
    return v


def updating(function):
    @cuda.jit("void(CPointer(int32))")
    def kernel(p):
        i = cuda.grid(1)
        function(p, i, i * 7 - 300)

    return kernel


def updating_floats(function):
    @cuda.jit("void(CPointer(float32))")
    def kernel(p):
        function(p, np.float32(cuda.grid(1) - 50))

    return kernel


def test_atomic_operations() -> None:
    external = linked(updates, "int32(CPointer(int32), int32, int32)", "lto_updates")
    seen = []
    for function in (cuda.jit(device=True)(updates), external):
        p = cuda.to_device(np.array([0, -(2**31), 2**31 - 1, 0, 0, -1, 0, 0, 0], np.int32))
        launched(updating(function), 8, 1, p.device_pointer)
        seen.append(p.copy_to_host().tolist())
    assert seen[0] == seen[1]
    external = linked(floats, "float32(CPointer(float32), float32)", "lto_floats")
    seen.clear()
    for function in (cuda.jit(device=True)(floats), external):
        p = cuda.to_device(np.array([0, -1e30, 1e30], np.float32))
        launched(updating_floats(function), 4, 32, p.device_pointer)
        seen.append(p.copy_to_host().tolist())
    assert seen[0] == seen[1]


def lanes(x):
    mask = 0xFFFFFFFF
    total = cuda.shfl_down_sync(mask, x, 3) + cuda.shfl_xor_sync(mask, x, 5) * 3 + cuda.shfl_up_sync(mask, x, 1, 8)
    total += cuda.ballot_sync(mask, x > 3) % 1000 + cuda.all_sync(mask, x > -1) + cuda.any_sync(mask, x > 90)
    total += cuda.match_any_sync(mask, x % 4) % 1000 + cuda.laneid + cuda.reduce_max_sync(mask, x)
    same, is_same = cuda.match_all_sync(mask, x)
    return total + same % 7 + is_same + cuda.popc(cuda.activemask())


def test_warps() -> None:
    x = np.arange(64, dtype=np.int32) * 5 % 37
    expected = results(cuda.jit("int64(int32)", device=True)(lanes), [x], np.int64)
    got = results(linked(lanes, "int64(int32)", "lto_lanes"), [x], np.int64)
    assert got.tolist() == expected.tolist()
