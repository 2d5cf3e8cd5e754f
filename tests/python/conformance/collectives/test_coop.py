"""`cuda.coop`: reductions and scans of the threads of a block and of the lanes of a warp, for all block sizes."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda
from weft.cuda import coop

SIZES = range(1, 1025)
SOME = (1, 2, 31, 32, 33, 63, 96, 255, 256, 257, 288, 289, 320, 511, 992, 1000, 1023, 1024)
WHOLE = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
REAL = [*WHOLE, "float16", "float32", "float64"]


def numbers(dtype, size=1024):
    """Small numbers whose sums are exact in all float types."""
    whole = np.random.default_rng(3).integers(-3, 4, size)
    if np.dtype(dtype).kind == "c":
        return (whole + 1j * whole[::-1]).astype(dtype)
    return whole.astype(dtype)


@cuda.jit(device=True)
def rank():
    return (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x


@cuda.jit(launch_bounds=1024)
def block_reductions(x, out):
    t = rank()
    out[0, t] = coop.block.sum(x[t])
    out[1, t] = coop.block.min(x[t])
    out[2, t] = coop.block.max(x[t])
    out[3, t] = coop.block.reduce(x[t], lambda a, b: a if a > b else b)
    total = coop.block.sum(x[t], broadcast=False)
    largest = coop.block.reduce(x[t], max, broadcast=False)
    if t == 0:
        out[4, 0], out[5, 0] = total, largest


@cuda.jit(launch_bounds=1024)
def block_scans(x, out):
    t = rank()
    out[0, t] = coop.block.inclusive_sum(x[t])
    out[1, t], out[2, t] = coop.block.exclusive_sum(x[t], aggregate=True)
    out[3, t] = coop.block.inclusive_scan(x[t], max)
    out[4, t], out[5, t] = coop.block.exclusive_scan(x[t], lambda a, b: a if a > b else b, 1, aggregate=True)


def reduced(x):
    total = x.sum(dtype=x.dtype)
    first = np.arange(x.size) == 0
    alone = [np.where(first, value, x.dtype.type(0)) for value in (total, x.max())]
    return [*(np.full(x.size, value) for value in (total, x.min(), x.max(), x.max())), *alone]


def scanned(x):
    sums, largest = np.cumsum(x, dtype=x.dtype), np.maximum.accumulate(x)
    before = np.maximum(np.concatenate([np.ones(1, x.dtype), largest[:-1]]), x.dtype.type(1))
    return [sums, sums - x, np.full_like(x, sums[-1]), largest, before, np.full_like(x, largest[-1])]


def check(kernel, expected, x, block):
    wanted = np.array(expected(x))
    got = launch(kernel, 1, block, x, np.zeros_like(wanted))[1]
    np.testing.assert_array_equal(got, wanted, err_msg=f"{x.dtype}, block {block}")


@pytest.mark.parametrize(
    ("kernel", "expected"), [(block_reductions, reduced), (block_scans, scanned)], ids=["reduce", "scan"]
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_blocks_of_every_size(kernel, expected, dtype):
    x = numbers(dtype)
    for size in SIZES:
        check(kernel, expected, x[:size], size)


@pytest.mark.parametrize(
    ("kernel", "expected"), [(block_reductions, reduced), (block_scans, scanned)], ids=["reduce", "scan"]
)
@pytest.mark.parametrize("dtype", REAL)
def test_blocks_of_every_type(kernel, expected, dtype):
    x = numbers(dtype)
    for size in SOME:
        check(kernel, expected, x[:size], size)


@pytest.mark.parametrize("block", [(33, 3), (7, 5, 9), (2, 2, 64), (1, 1000), (16, 16, 4)])
def test_blocks_of_several_dimensions(block):
    x = numbers("int32", int(np.prod(block)))
    check(block_reductions, reduced, x, block)
    check(block_scans, scanned, x, block)


def bounded(most):
    return module(f"""
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit(launch_bounds={most})
        def kernel(x, out):
            t = cuda.threadIdx.x
            out[0, t] = coop.block.sum(x[t])
            out[1, t] = coop.block.reduce(x[t], max)
            out[2, t] = coop.block.inclusive_sum(x[t])
            out[3, t], out[4, t] = coop.block.exclusive_scan(x[t], max, 1, aggregate=True)
    """).kernel


@pytest.mark.parametrize("most", [1, 32, 33, 256, 288, 1024])
def test_blocks_of_known_bounds(most):
    def expected(x):
        sums, _, total, _, before, largest = scanned(x)
        return [total, largest, sums, before, largest]

    kernel = bounded(most)
    for size in (size for size in SOME if size <= most):
        check(kernel, expected, numbers("float32")[:size], size)


@cuda.jit(launch_bounds=1024)
def complex_sums(x, out):
    t = rank()
    out[0, t] = coop.block.sum(x[t])
    out[1, t] = coop.block.inclusive_sum(x[t])
    out[2, t] = coop.block.exclusive_sum(x[t])
    out[3, t] = coop.block.reduce(x[t], lambda a, b: a + b)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_complex_numbers(dtype):
    for size in SOME:
        x = numbers(dtype)[:size]
        sums = np.cumsum(x)
        check(complex_sums, lambda x, s=sums: [np.full_like(x, s[-1]), s, s - x, np.full_like(x, s[-1])], x, size)


def test_sums_of_bfloat16():
    kernel = module("""
        import weft
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit
        def kernel(x, out):
            t = cuda.threadIdx.x
            v = weft.bfloat16(x[t])
            out[0, t] = coop.block.sum(v)
            out[1, t] = coop.block.inclusive_scan(v, max)
    """).kernel
    x = numbers("float32", 40)
    got = launch(kernel, 1, 40, x, np.zeros((2, 40), np.float32))[1]
    assert (got[0] == x.sum()).all()
    np.testing.assert_array_equal(got[1], np.maximum.accumulate(x))


@cuda.jit(launch_bounds=1024)
def counts(x, out):
    t = rank()
    yes = x[t] > 0
    out[0, t] = coop.block.sum(yes)
    out[1, t] = coop.block.exclusive_sum(yes)
    out[2, t] = coop.block.reduce(yes, lambda a, b: a or b)
    out[3, t] = coop.block.min(yes)
    out[4, t] = coop.warp.sum(yes)


def test_truths_are_counted():
    for size in SOME:
        x = numbers("int32")[:size]
        got = launch(counts, 1, size, x, np.zeros((5, size), np.int64))[1]
        sums = np.cumsum(x > 0)
        assert (got[0] == sums[-1]).all()
        np.testing.assert_array_equal(got[1], sums - (x > 0))
        assert (got[2] == (x > 0).any()).all()
        assert (got[3] == (x > 0).all()).all()
        np.testing.assert_array_equal(
            got[4], np.repeat(np.add.reduceat(x > 0, range(0, size, 32), dtype=int), 32)[:size]
        )


class Map(NamedTuple):
    """`x -> a * x + b`."""

    a: np.uint32
    b: np.uint32


@cuda.jit(device=True)
def then(f, g):
    """First `f`, then `g`: associative, but not commutative."""
    return f[0] * g[0], f[1] * g[0] + g[1]


@cuda.jit(device=True)
def map_then(f, g):
    return Map(np.uint32(f.a * g.a), np.uint32(f.b * g.a + g.b))


@cuda.jit(launch_bounds=1024)
def composed(x, out):
    t = rank()
    pair = (x[0, t], x[1, t])
    out[0, t], out[1, t] = coop.block.reduce(pair, then)
    out[2, t], out[3, t] = coop.block.inclusive_scan(pair, then)
    (out[4, t], out[5, t]), (out[6, t], out[7, t]) = coop.block.exclusive_scan(pair, then, (7, 9), aggregate=True)
    whole = coop.block.reduce(Map(x[0, t], x[1, t]), map_then)
    out[8, t], out[9, t] = whole.a, whole.b
    out[10, t], out[11, t] = coop.warp.inclusive_scan(pair, then)
    out[12, t], out[13, t] = coop.warp.reduce(pair, then, threads=8)


def compositions(x, start=None):
    """The compositions of the maps up to each one."""
    results = []
    for a, b in x.T.tolist():
        start = (a, b) if start is None else (start[0] * a % 2**32, (start[1] * a + b) % 2**32)
        results.append(start)
    return np.array(results, np.uint32).T


def of_groups(x, size):
    return [compositions(x[:, k : k + size]) for k in range(0, x.shape[1], size)]


def test_functions_that_do_not_commute():
    x = np.random.default_rng(5).integers(0, 2**32, (2, 1024), dtype=np.uint32)
    all_of = compositions(x)
    behind = compositions(x, (7, 9))
    for size in SIZES if cuda.is_available() else SOME:
        got = launch(composed, 1, size, x[:, :size].copy(), np.zeros((14, size), np.uint32))[1]
        last = np.repeat(all_of[:, size - 1 : size], size, axis=1)
        np.testing.assert_array_equal(got[0:2], last)
        np.testing.assert_array_equal(got[2:4], all_of[:, :size])
        np.testing.assert_array_equal(got[4:6], np.hstack([[[7], [9]], behind[:, : size - 1]]))
        np.testing.assert_array_equal(got[6:8], last)
        np.testing.assert_array_equal(got[8:10], last)
        np.testing.assert_array_equal(got[10:12], np.hstack(of_groups(x[:, :size], 32)))
        eighths = [np.repeat(part[:, -1:], part.shape[1], axis=1) for part in of_groups(x[:, :size], 8)]
        np.testing.assert_array_equal(got[12:14], np.hstack(eighths))


@cuda.jit(launch_bounds=1024)
def first_ones(x, valid, out):
    t = rank()
    out[0, t] = coop.block.sum(x[t], valid=valid)
    out[1, t] = coop.block.reduce(x[t], max, valid)
    out[2, t] = coop.block.min(x[t], valid)
    out[3, t] = coop.warp.sum(x[t], valid=min(valid, 32))
    out[4, t] = coop.warp.reduce(x[t], max, 16, min(valid, 16))


@pytest.mark.parametrize("size", [1, 32, 40, 288, 300, 1024])
def test_the_first_threads_alone(size):
    for dtype, valid in itertools.product(("int32", "float64"), sorted({1, 2, 31, 32, 33, 257, size - 1, size})):
        if not 0 < valid <= size:
            continue
        x = numbers(dtype)[:size]
        got = launch(first_ones, 1, size, x, valid, np.zeros((5, size), dtype))[2]
        of = x[:valid]
        assert (got[:3] == np.array([[of.sum()], [of.max()], [of.min()]])).all(), (dtype, valid)
        for start in range(0, size, 32):
            assert (got[3, start : start + 32] == x[start : start + min(valid, 32)].sum()).all(), (dtype, valid)
        for start in range(0, size, 16):
            assert (got[4, start : start + 16] == x[start : start + min(valid, 16)].max()).all(), (dtype, valid)


def of_items(count, dtype):
    return module(f"""
        import numpy as np
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit(device=True)
        def load(x, items):
            for k in range({count}):
                items[k] = x[cuda.threadIdx.x * {count} + k]

        @cuda.jit(device=True)
        def store(items, out):
            for k in range({count}):
                out[cuda.threadIdx.x * {count} + k] = items[k]

        @cuda.jit
        def kernel(x, out, totals):
            t = cuda.threadIdx.x
            items = cuda.local.array({count}, np.{dtype})
            load(x, items)
            totals[0, t] = coop.block.sum(items)
            totals[1, t] = coop.block.max(items)
            totals[2, t] = coop.block.reduce(items, lambda a, b: min(a, b))
            coop.block.inclusive_sum(items)
            store(items, out[0])
            load(x, items)
            totals[3, t] = coop.block.exclusive_sum(items, aggregate=True)
            store(items, out[1])
            load(x, items)
            totals[4, t] = coop.block.inclusive_scan(items, max, aggregate=True)
            store(items, out[2])
            load(x, items)
            totals[5, t] = coop.block.exclusive_scan(items, max, 1, aggregate=True)
            store(items, out[3])
            load(x, items)
            coop.warp.inclusive_sum(items)
            store(items, out[4])
            load(x, items)
            totals[6, t] = coop.warp.exclusive_sum(items, aggregate=True)
            store(items, out[5])
            totals[7, t] = coop.warp.sum(items)
    """).kernel


@pytest.mark.parametrize(("count", "dtype"), [(1, "int32"), (3, "float32"), (4, "int64"), (16, "int32")])
def test_several_items_a_thread(count, dtype):
    kernel = of_items(count, dtype)
    for size in (1, 31, 33, 128, 288, 300, 512):
        x = numbers(dtype, size * count)
        got, totals = launch(kernel, 1, size, x, np.zeros((6, x.size), dtype), np.zeros((8, size), dtype))[1:]
        sums, before, _, largest, behind, _ = scanned(x)
        np.testing.assert_array_equal(got[:4], [sums, before, largest, behind])
        parts = [x[start : start + 32 * count] for start in range(0, x.size, 32 * count)]
        np.testing.assert_array_equal(got[4], np.concatenate([np.cumsum(part, dtype=dtype) for part in parts]))
        np.testing.assert_array_equal(got[5], got[4] - x)
        whole = [x.sum(), x.max(), x.min(), x.sum(), x.max(), x.max()]
        np.testing.assert_array_equal(totals[:6], np.repeat(np.array(whole, dtype)[:, None], size, axis=1))
        warps = [np.repeat(part.sum(dtype=dtype), part.size // count) for part in parts]
        np.testing.assert_array_equal(totals[6], np.concatenate(warps))
        before = [np.full(part.size // count, (np.cumsum(part) - part).sum()) for part in parts]
        np.testing.assert_array_equal(totals[7], np.concatenate(before).astype(dtype))


def warps_of(threads):
    return module(f"""
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit
        def kernel(x, out):
            t = cuda.threadIdx.x
            v = x[t]
            out[0, t] = coop.warp.sum(v, threads={threads})
            out[1, t] = coop.warp.min(v, threads={threads})
            out[2, t] = coop.warp.reduce(v, max, {threads})
            out[3, t] = coop.warp.inclusive_sum(v, {threads})
            out[4, t], out[5, t] = coop.warp.exclusive_sum(v, {threads}, aggregate=True)
            out[6, t] = coop.warp.inclusive_scan(v, max, threads={threads})
            out[7, t] = coop.warp.exclusive_scan(v, max, 1, threads={threads})
    """).kernel


@pytest.mark.parametrize("threads", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "int64"])
def test_warps_and_parts_of_them(threads, dtype):
    kernel = warps_of(threads)
    for size in [*range(1, 66), 1000, 1024]:
        x = numbers(dtype)[:size]
        wanted = []
        for start in range(0, size, threads):
            part = x[start : start + threads]
            sums, before, total, largest, behind, most = scanned(part)
            wanted.append([total, np.full_like(part, part.min()), most, sums, before, total, largest, behind])
        got = launch(kernel, 1, size, x, np.zeros((8, size), dtype))[1]
        np.testing.assert_array_equal(got, np.hstack(wanted), err_msg=f"{size}")


@cuda.jit
def groups_apart(x, out):
    t = cuda.threadIdx.x
    if t // 8 % 2 == 0:
        out[t] = coop.warp.sum(x[t], threads=8)
    else:
        out[t] = coop.warp.inclusive_sum(x[t], threads=8)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_groups_of_lanes_that_part(dtype):
    x = numbers(dtype, 64)
    parts = x.reshape(4, 2, 8)
    wanted = np.stack([np.repeat(parts[:, :1].sum(2), 8, axis=1), np.cumsum(parts[:, 1], axis=1)], axis=1)
    np.testing.assert_array_equal(launch(groups_apart, 1, 64, x, np.zeros_like(x))[1], wanted.reshape(-1))


@cuda.jit
def in_loops(x, turns, out):
    t = cuda.grid(1)
    v = x[t]
    for k in range(turns):
        v += coop.block.sum(v) + coop.block.exclusive_sum(v * k)
        if k % 3 == 0:
            v -= coop.block.max(v)
    out[t] = v


@pytest.mark.parametrize("size", [1, 33, 288, 300])
def test_calls_one_after_the_other_do_not_meet(size):
    x = np.random.default_rng(1).integers(-9, 9, 3 * size)
    got = launch(in_loops, 3, size, x, 10, np.zeros_like(x))[2]
    v = x.reshape(3, size)
    for k in range(10):
        v = v + v.sum(1, keepdims=True) + np.cumsum(v * k, axis=1) - v * k
        if k % 3 == 0:
            v = v - v.max(1, keepdims=True)
    np.testing.assert_array_equal(got, v.reshape(-1))


@cuda.jit(launch_bounds=1024)
def close(x, out):
    t = rank()
    out[0, t] = coop.block.sum(x[t])
    out[1, t] = coop.block.inclusive_sum(x[t])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_threads_get_the_same_bits(dtype):
    for size in SOME:
        x = np.random.default_rng(size).random(size).astype(dtype)
        got = launch(close, 1, size, x, np.zeros((2, size), dtype))[1]
        assert (got[0] == got[0, 0]).all()
        np.testing.assert_allclose(got[0], x.sum(dtype=np.float64), rtol=1e-6 if dtype == "float32" else 1e-14)
        np.testing.assert_allclose(got[1], np.cumsum(x, dtype=np.float64), rtol=1e-6 if dtype == "float32" else 1e-14)


def wrong(call):
    return module(f"""
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit(device=True)
        def crooked(a, b):
            return a.nothing

        @cuda.jit
        def kernel(x, out):
            v = x[cuda.threadIdx.x]
            out[0] = {call}
    """).kernel


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("coop.block.sum((1, 2))", "`cuda.coop.block.sum` does not take .*\n(.*\n)*.*the function returns"),
        ("coop.block.sum()", "`cuda.coop.block.sum` takes 1 argument, not 0"),
        ("coop.block.sum(v, of=3)", "has no parameter `of`"),
        ("coop.block.reduce(v, crooked)", "nothing"),
        ("coop.block.reduce(v, 3)", "`cuda.coop.block.reduce` does not take"),
        ("coop.warp.sum(v, threads=3)", "`threads` must be 1, 2, 4, 8, 16 or 32"),
        ("coop.warp.sum(v, threads=x.size)", "`threads` must be 1, 2, 4, 8, 16 or 32"),
        ("coop.block.exclusive_sum(v, aggregate=v > 0)", "`aggregate` must be True or False"),
        ("coop.block.sum(v, broadcast=1)", "`broadcast` must be True or False"),
        ("coop.block.inclusive_scan(v)", "takes 2 arguments, not 1"),
    ],
)
def test_what_is_wrong_is_told(call, message):
    with pytest.raises(weft.errors.WeftError, match=message) as caught:
        wrong(call)[1, 32](np.zeros(32, np.float32), np.zeros(32, np.float32))
    assert "weft/prelude" not in str(caught.value)


def test_names_are_not_for_plain_python():
    with pytest.raises(RuntimeError, match="can only be used in a kernel"):
        coop.block.sum(1)
    assert "sum" in coop.block.__all__
    assert "sum" in coop.warp.__all__


@cuda.jit
def truths(x, out):
    own = cuda.local.array(8, np.bool_)
    for k in range(8):
        own[k] = x[cuda.threadIdx.x * 8 + k]
    out[0, cuda.threadIdx.x] = coop.block.sum(own)
    out[1, cuda.threadIdx.x] = coop.warp.sum(own)


@pytest.mark.parametrize("size", [1, 20, 32, 100])
def test_truths_of_several_items_are_counted(size):
    x = np.random.default_rng(1).random(8 * size) < 0.5
    got = launch(truths, 1, size, x, np.zeros((2, size), np.int64))[1]
    of_threads = x.reshape(size, 8).sum(axis=1)
    np.testing.assert_array_equal(got[0], np.full(size, x.sum()))
    np.testing.assert_array_equal(got[1], [of_threads[t // 32 * 32 :][:32].sum() for t in range(size)])


def by_pairs(x):
    """Neighbors are combined, then neighbors of these."""
    while x.size > 1:
        pairs = x[: x.size // 2 * 2].reshape(-1, 2)
        x = np.concatenate([pairs[:, 0] + pairs[:, 1], x[x.size // 2 * 2 :]])
    return x[0]


def by_steps(x):
    """Values at doubling distances are combined, as by shuffles."""
    x, step = x.copy(), 1
    while step < x.size:
        x[step:] = x[:-step] + x[step:]
        step *= 2
    return x


def sums_before(x, width, scan):
    """The sums before each element: groups of `width` are scanned, then the sums of groups."""
    groups = [scan(x[first : first + width]) for first in range(0, x.size, width)]
    below = by_steps(np.array([group[-1] for group in groups]))
    before = [np.concatenate([x[:1], groups[0][:-1]])]
    before += [np.concatenate([[low], low + group[:-1]]) for low, group in zip(below, groups[1:], strict=False)]
    return np.concatenate(before), below[-1]


def in_turn(x):
    return np.cumsum(x, dtype=x.dtype)


def ordered(most):
    bounds = "" if most is None else f"(launch_bounds={most})"
    return module(f"""
        from weft import cuda
        from weft.cuda import coop, cg

        @cuda.jit{bounds}
        def kernel(x, valid, out):
            t = cuda.threadIdx.x
            out[0, t] = coop.block.sum(x[t])
            out[1, t] = coop.block.reduce(x[t], lambda a, b: a + b, valid)
            out[2, t] = coop.block.exclusive_sum(x[t])
            out[3, t], out[4, t] = coop.block.inclusive_scan(x[t], lambda a, b: a + b, aggregate=True)
            out[5, t] = cg.reduce(cg.this_thread_block(), x[t], cg.plus)
    """).kernel


@pytest.mark.parametrize("most", [None, 32, 256, 288])
def test_sums_of_floats_are_in_the_order_of_shuffles(most, device):
    if device == "python":
        pytest.skip("the interpreter adds from the first thread to the last one")
    kernel = ordered(most)
    for size in (size for size in SOME if size <= (most or 1024)):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        valid = (size + 1) // 2
        is_raked = most == 256 and size == 256
        before, total = sums_before(x, 8 if is_raked else 32, in_turn if is_raked else by_steps)
        wanted = np.empty((6, size), np.float32)
        wanted[:2] = [[by_pairs(x)], [by_pairs(x[:valid])]]
        wanted[2:] = before, before + x, np.full_like(x, total), np.full_like(x, by_pairs(x))
        wanted[2, 0], wanted[3, 0] = 0, x[0]
        got = launch(kernel, 1, size, x, valid, np.zeros_like(wanted))[2]
        np.testing.assert_array_equal(got, wanted, err_msg=f"{size} threads")
