"""`cuda.coop`: sorts and exchanges of the threads of a block and of the lanes of a warp."""

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda
from weft.cuda import coop

SIZES = range(1, 1025)
SOME = (1, 2, 3, 31, 32, 33, 100, 256, 300, 511, 1000, 1024)
TYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


def keys_of(dtype, size, seed=1):
    """Numbers over the whole range of a type, with many duplicates, both zeros and infinities."""
    dtype = np.dtype(dtype)
    bits = np.random.default_rng(seed).integers(0, 256, size * dtype.itemsize, dtype=np.uint8)
    numbers = bits.view(dtype).copy()
    if dtype.kind == "f":
        numbers[np.isnan(numbers)] = np.inf
        numbers[size // 3 :: 7] = 0.0
        numbers[size // 4 :: 7] = -0.0
    numbers[::3] = numbers[0]
    return numbers


@cuda.jit(launch_bounds=1024)
def one_key_a_thread(x, out):
    t = cuda.threadIdx.x
    out[0, t] = coop.block.merge_sort_keys(x[t])
    out[1, t] = coop.block.merge_sort_keys(x[t], lambda a, b: a > b)
    out[2, t] = coop.block.radix_sort_keys(x[t])
    out[3, t] = coop.block.radix_sort_keys_descending(x[t])


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_blocks_of_every_size(dtype):
    x = keys_of(dtype, 1024)
    for size in SIZES if cuda.is_available() else SIZES[::5]:
        up = np.sort(x[:size])
        got = launch(one_key_a_thread, 1, size, x[:size], np.zeros((4, size), dtype))[1]
        np.testing.assert_array_equal(got, [up, up[::-1], up, up[::-1]], err_msg=f"{size}")


@pytest.mark.parametrize("dtype", TYPES)
def test_keys_of_every_type(dtype):
    for size in SOME[::3]:
        x = keys_of(dtype, size)
        up = np.sort(x)
        got = launch(one_key_a_thread, 1, size, x, np.zeros((4, size), dtype))[1]
        np.testing.assert_array_equal(got, [up, up[::-1], up, up[::-1]], err_msg=f"{size}")


def sorts(count, dtype, most):
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

        @cuda.jit(launch_bounds={most})
        def kernel(x, indices, valid, out, order):
            keys = cuda.local.array({count}, np.{dtype})
            values = cuda.local.array({count}, np.int32)
            load(x, keys)
            coop.block.merge_sort_keys(keys)
            store(keys, out[0])
            load(x, keys)
            load(indices, values)
            coop.block.merge_sort_pairs(keys, values, lambda a, b: a > b, valid=valid)
            store(keys, out[1])
            store(values, order[0])
            load(x, keys)
            coop.block.radix_sort_keys_descending(keys)
            store(keys, out[2])
            load(x, keys)
            load(indices, values)
            coop.block.radix_sort_pairs(keys, values)
            store(keys, out[3])
            store(values, order[1])
            coop.block.radix_sort_pairs_descending(values, keys, 0, 15)
            store(values, order[2])
            store(keys, out[4])
    """).kernel


@pytest.mark.parametrize(
    ("count", "dtype"), [(1, "int32"), (3, "float32"), (4, "int64"), (8, "uint16"), (16, "float32")]
)
def test_several_items_a_thread(count, dtype):
    kernel = sorts(count, dtype, 288)
    for size in (1, 2, 31, 33, 100, 256, 288):
        n = size * count
        x, indices = keys_of(dtype, n), np.arange(n, dtype=np.int32)
        for valid in sorted({1, n // 2, n - 1, n} - {0}):
            got, order = launch(
                kernel, 1, size, x, indices, valid, np.zeros((5, n), dtype), np.zeros((3, n), np.int32)
            )[3:]
            up = np.sort(x)
            np.testing.assert_array_equal(got[0], up)
            np.testing.assert_array_equal(got[2], up[::-1])
            # The sort is stable.
            first = x[:valid].astype(np.longdouble)
            down = np.concatenate([np.argsort(-first, kind="stable"), indices[valid:]])
            np.testing.assert_array_equal(order[0], down)
            np.testing.assert_array_equal(got[1], x[down])
            np.testing.assert_array_equal(order[1], np.argsort(x, kind="stable"))
            np.testing.assert_array_equal(got[3], up)
            np.testing.assert_array_equal(order[2], indices[::-1])
            np.testing.assert_array_equal(got[4], x[::-1])


@cuda.jit
def with_nan(x, out):
    t = cuda.threadIdx.x
    out[0, t] = coop.block.merge_sort_keys(x[t])
    out[1, t] = coop.block.radix_sort_keys(x[t])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_is_the_last(dtype):
    x = np.random.default_rng(4).random(100).astype(dtype)
    x[::7] = np.nan
    got = launch(with_nan, 1, 100, x, np.zeros((2, 100), dtype))[1]
    np.testing.assert_array_equal(got, [np.sort(x), np.sort(x)])


@cuda.jit
def by_some_bits(x, out):
    t = cuda.threadIdx.x
    out[0, t], out[1, t] = coop.block.radix_sort_pairs(x[t], np.uint32(t), begin_bit=3, end_bit=9)


def test_some_bits_alone():
    x = keys_of("uint32", 300)
    got = launch(by_some_bits, 1, 300, x, np.zeros((2, 300), np.uint32))[1]
    order = np.argsort(x >> 3 & 63, kind="stable")
    np.testing.assert_array_equal(got, [x[order], order])


@cuda.jit(launch_bounds=1024)
def warp_sorts(x, out):
    t = cuda.threadIdx.x
    out[0, t] = coop.warp.merge_sort_keys(x[t])
    out[1, t] = coop.warp.merge_sort_keys(x[t], lambda a, b: a > b, threads=8)
    items = cuda.local.array(3, x.dtype)
    for k in range(3):
        items[k] = x[(t + k * 7) % x.size]
    coop.warp.merge_sort_keys(items)
    for k in range(3):
        out[2 + k, t] = items[k]


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_warps(dtype):
    for size in (*range(1, 70), 1000, 1024):
        x = keys_of(dtype, size)
        got = launch(warp_sorts, 1, size, x, np.zeros((5, size), dtype))[1]
        np.testing.assert_array_equal(got[0], np.concatenate([np.sort(x[k : k + 32]) for k in range(0, size, 32)]))
        np.testing.assert_array_equal(got[1], np.concatenate([np.sort(x[k : k + 8])[::-1] for k in range(0, size, 8)]))
        items = np.stack([x[(np.arange(size) + k * 7) % size] for k in range(3)], axis=1)
        sorted_items = [np.sort(items[k : k + 32].reshape(-1)).reshape(-1, 3) for k in range(0, size, 32)]
        np.testing.assert_array_equal(got[2:].T, np.concatenate(sorted_items))


def exchanges(count, most):
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

        @cuda.jit(launch_bounds={most})
        def kernel(x, indices, out):
            items = cuda.local.array({count}, x.dtype)
            ranks = cuda.local.array({count}, np.int32)
            load(indices, ranks)
            load(x, items)
            coop.block.blocked_to_striped(items)
            store(items, out[0])
            coop.block.striped_to_blocked(items)
            store(items, out[1])
            load(x, items)
            coop.block.striped_to_blocked(items)
            store(items, out[2])
            load(x, items)
            coop.block.scatter_to_blocked(items, ranks)
            store(items, out[3])
            load(x, items)
            coop.block.scatter_to_striped(items, ranks)
            store(items, out[4])
            load(x, items)
            coop.warp.blocked_to_striped(items)
            store(items, out[5])
            coop.warp.striped_to_blocked(items)
            store(items, out[6])
            load(x, items)
            coop.warp.striped_to_blocked(items, threads=4)
            store(items, out[7])
    """).kernel


def striped(x, count):
    """The items of each thread, concatenated, if the items are striped."""
    return x.reshape(count, -1).T.reshape(-1)


def gathered(x, count):
    return x.reshape(-1, count).T.reshape(-1)


@pytest.mark.parametrize(
    ("count", "dtype"), [(1, "int32"), (3, "int8"), (4, "float64"), (8, "complex64"), (16, "float32")]
)
def test_exchanges(count, dtype):
    kernel = exchanges(count, 320)
    for size in (*range(1, 40), 100, 256, 288, 300, 320):
        n = size * count
        x = np.random.default_rng(1).integers(0, 100, n).astype(dtype)
        indices = np.random.default_rng(2).permutation(n).astype(np.int32)
        got = launch(kernel, 1, size, x, indices, np.zeros((8, n), dtype))[2]
        moved = np.empty_like(x)
        moved[indices] = x
        warps = [x[k : k + 32 * count] for k in range(0, n, 32 * count)]
        fours = [x[k : k + 4 * count] for k in range(0, n, 4 * count)]
        np.testing.assert_array_equal(got[0], striped(x, count))
        np.testing.assert_array_equal(got[1], x)
        np.testing.assert_array_equal(got[2], gathered(x, count))
        np.testing.assert_array_equal(got[3], moved)
        np.testing.assert_array_equal(got[4], striped(moved, count))
        np.testing.assert_array_equal(got[5], np.concatenate([striped(part, count) for part in warps]))
        np.testing.assert_array_equal(got[6], x)
        np.testing.assert_array_equal(got[7], np.concatenate([gathered(part, count) for part in fours]))


@cuda.jit(launch_bounds=256)
def all_after_each_other(x, turns, out):
    t = cuda.threadIdx.x
    v = x[t]
    for k in range(turns):
        v += coop.block.sum(v)
        v = coop.block.merge_sort_keys(v)
        v += coop.block.exclusive_sum(v) * k
        v = coop.block.radix_sort_keys_descending(v & 0xFFFFF, end_bit=20)
        v = coop.warp.merge_sort_keys(v) + coop.warp.sum(v)
        v = coop.block.inclusive_scan(v, max) - v
    out[t] = v


@pytest.mark.parametrize("size", [1, 33, 200, 256])
def test_calls_one_after_the_other_do_not_meet(size):
    x = np.random.default_rng(1).integers(0, 99, size)
    got = launch(all_after_each_other, 1, size, x, 6, np.zeros_like(x))[2]
    v = x
    for k in range(6):
        v = np.sort(v + v.sum())
        v = v + (np.cumsum(v) - v) * k
        v = np.sort(v & 0xFFFFF)[::-1]
        parts = [v[start : start + 32] for start in range(0, size, 32)]
        v = np.concatenate([np.sort(part) + part.sum() for part in parts])
        v = np.maximum.accumulate(v) - v
    np.testing.assert_array_equal(got, v)


@cuda.jit(launch_bounds=128)
def some_groups_ahead(x, out):
    """Some groups of lanes reach the next call while others are in the previous one."""
    t = cuda.threadIdx.x
    a, b = np.uint16(x[t]), np.uint32(x[t])
    for turn in range(4):
        if (t // 32 + turn) % 2 == 0:
            a = coop.warp.merge_sort_keys(coop.warp.merge_sort_keys(a, lambda a, b: a > b))
        else:
            b = coop.warp.merge_sort_keys(coop.warp.merge_sort_keys(b, lambda a, b: a > b))
    out[0, t], out[1, t] = a, b
    items = cuda.local.array(4, np.int64)
    for k in range(4):
        items[k] = t * 4 + k
    for _ in range(t // 8 % 4 + 1):
        coop.warp.striped_to_blocked(items, threads=8)
    coop.warp.blocked_to_striped(items)
    for k in range(4):
        out[2 + k, t] = items[k]


@pytest.mark.parametrize("size", [32, 64, 100, 128])
def test_groups_that_are_ahead_do_not_meet_the_others(size):
    x = np.random.default_rng(2).integers(0, 999, size)
    got = launch(some_groups_ahead, 1, size, x, np.zeros((6, size), np.int64))[1]
    for first in range(0, size, 32):
        last = min(first + 32, size)
        key = np.sort(x[first:last])
        np.testing.assert_array_equal(got[0, first:last], key)
        np.testing.assert_array_equal(got[1, first:last], key)
        parts = []
        for start in range(first, last, 8):
            lanes = min(8, last - start)
            own = np.arange(4 * start, 4 * (start + lanes))
            for _ in range(start // 8 % 4 + 1):
                own = own.reshape(lanes, 4).T.reshape(-1)
            parts.append(own)
        striped = np.concatenate(parts).reshape(4, last - first)
        np.testing.assert_array_equal(got[2:, first:last], striped)


def test_calls_of_the_same_items_share_their_memory():
    """A block has 48 KiB of shared memory."""
    kernel = exchanges(16, 320)
    launch(kernel, 1, 1, np.zeros(16, np.float32), np.arange(16, dtype=np.int32), np.zeros((8, 16), np.float32))
    (held,) = kernel.get_shared_mem_per_block().values()
    assert 2 * 320 * 16 * 4 <= held < 2 * 320 * 16 * 4 + 4096


def wrong(call, options=""):
    return module(f"""
        import numpy as np
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit(device=True)
        def passed(items):
            coop.block.striped_to_blocked(items)

        @cuda.jit{options}
        def kernel(x, out):
            items = cuda.local.array(16, np.float64)
            {call}
    """).kernel


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("coop.block.striped_to_blocked(x[0])", "`cuda.coop.block.striped_to_blocked` does not take"),
        ("coop.block.striped_to_blocked(x)", "the number of items of a thread"),
        ("passed(items)", "the number of items of a thread"),
        (
            "items = cuda.local.array(4, np.float64); coop.block.striped_to_blocked(items)",
            "the number of items of a thread",
        ),
        (
            "more = cuda.local.array(4, np.int32); coop.block.scatter_to_blocked(items, more)",
            "the number of items of a thread",
        ),
        ("coop.block.striped_to_blocked(items)", "(?s)shared arrays take .*launch_bounds"),
        ("coop.block.radix_sort_keys(1j)", "does not take"),
        ("coop.block.merge_sort_keys(x[0], count=3)", "has no parameter `count`"),
    ],
)
def test_what_is_wrong_is_told(call, message):
    with pytest.raises(weft.errors.WeftError, match=message) as caught:
        wrong(call)[1, 32](np.zeros(32), np.zeros(32))
    assert "weft/prelude" not in str(caught.value)


@pytest.mark.parametrize("sort", [coop.block.merge_sort_pairs, coop.block.radix_sort_pairs])
def test_items_of_a_thread_stay_in_registers_of_a_gpu(sort):
    """LLVM does not unroll loops of this length by default; then the arrays would be in local memory."""

    def kernel(x, out):
        keys, values = cuda.local.array(16, np.float32), cuda.local.array(16, np.int32)
        for k in range(16):
            keys[k], values[k] = x[cuda.grid(1), k], k
        sort(keys, values)
        for k in range(16):
            out[cuda.grid(1), k] = values[k]

    signature = "void(float32[:,::1], int32[:,::1])"
    ptx, _ = cuda.compile_ptx(kernel, signature, cc=(9, 0), launch_bounds=128)
    assert ".shared" in ptx
    assert ".local" not in ptx


@cuda.jit(launch_bounds=128)
def by_digits(x, up, down, indices):
    t = cuda.threadIdx.x
    up[t] = coop.block.radix_sort_keys(x[t])
    down[t] = coop.block.radix_sort_keys_descending(x[t])
    indices[t] = coop.block.radix_sort_pairs(x[t], t)[1]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_next_to_zero(dtype):
    """Both zeros compare equal, and keep their order and signs; the smallest numbers differ from zero."""
    x = (np.random.default_rng(1).integers(-3, 4, 128) * np.finfo(dtype).smallest_subnormal).astype(dtype)
    x[::5], x[::7] = -0.0, 0.0
    _, up, down, indices = launch(by_digits, 1, 128, x, np.zeros_like(x), np.zeros_like(x), np.zeros(128, np.int64))
    order, back = np.argsort(x, kind="stable"), np.argsort(-x, kind="stable")
    np.testing.assert_array_equal(indices, order)
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(up.view(bits), x[order].view(bits))
    np.testing.assert_array_equal(down.view(bits), x[back].view(bits))
