"""Collective operations of the lanes of a warp: shuffles, votes, matches, reductions; also divergent, with masks, in
partial warps.

The kernels have no undefined behavior: all live lanes of a mask reach the same call with the same mask, and no lane
reads from a lane that does not exist.
"""

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import weft
from generators import halves
from harness import launch, module, run
from weft import cuda

FULL = 0xFFFFFFFF
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def numbers(dtype, size, seed=1):
    """Numbers of a type, some of them equal."""
    whole = np.random.default_rng(seed).integers(-40, 40, size)
    if dtype == "bool":
        return whole > 0
    if dtype.startswith("complex"):
        return (whole + 1j * whole[::-1]).astype(dtype)
    return whole.astype(dtype) if dtype[0] != "u" else (whole & 63).astype(dtype)


@cuda.jit
def shuffles(x, by, out):
    i = cuda.grid(1)
    v = x[i]
    out[i, 0] = cuda.shfl_sync(FULL, v, 3)
    out[i, 1] = cuda.shfl_sync(FULL, v, by[i])
    out[i, 2] = cuda.shfl_up_sync(FULL, v, 1)
    out[i, 3] = cuda.shfl_up_sync(FULL, v, by[i])
    out[i, 4] = cuda.shfl_down_sync(FULL, v, 5)
    out[i, 5] = cuda.shfl_down_sync(FULL, v, by[i])
    out[i, 6] = cuda.shfl_xor_sync(FULL, v, 16)
    out[i, 7] = cuda.shfl_xor_sync(FULL, v, 21)
    out[i, 8] = cuda.shfl_xor_sync(FULL, v, by[i])
    out[i, 9] = cuda.shfl_xor_sync(FULL, v, 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_shuffles_of_every_type(dtype):
    by = np.random.default_rng(2).integers(-70, 70, 192).astype(np.int32)
    run(shuffles, 2, 96, numbers(dtype, 192), by, np.zeros((192, 10), dtype))


@pytest.mark.parametrize("name", halves.HALVES)
def test_shuffles_keep_the_bits_of_halves(name):
    kernel = module(f"""
        import numpy as np, weft
        from weft import cuda

        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            out[i] = cuda.shfl_xor_sync(0xffffffff, x.view(weft.{name})[i], 5)
    """).kernel
    # No conversion to float32: payloads of NaN are preserved.
    bits = halves.BITS
    out = launch(kernel, 1 << 9, 128, bits, np.zeros(1 << 16, np.float32 if name == "bfloat16" else np.float16))[1]
    expected = bits.reshape(-1, 32)[:, np.arange(32) ^ 5].reshape(-1)
    as_float = (expected.astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else expected.view(np.float16)
    np.testing.assert_array_equal(out, as_float)


@cuda.jit
def parts(x, width, out):
    i = cuda.grid(1)
    v = x[i]
    out[i, 0] = cuda.shfl_sync(FULL, v, 9, 8)
    out[i, 1] = cuda.shfl_up_sync(FULL, v, 3, 4)
    out[i, 2] = cuda.shfl_down_sync(FULL, v, 1, width=2)
    out[i, 3] = cuda.shfl_xor_sync(FULL, v, 1, 16)
    out[i, 4] = cuda.shfl_sync(FULL, v, -1, width)
    out[i, 5] = cuda.shfl_up_sync(FULL, v, 2, width)
    out[i, 6] = cuda.shfl_down_sync(FULL, v, 2, width)
    out[i, 7] = cuda.shfl_xor_sync(FULL, v, 3, width)
    out[i, 8] = cuda.shfl_xor_sync(FULL, v, 9, width)
    out[i, 9] = cuda.shfl_sync(FULL, v, 0, 1)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_parts_of_a_warp(width):
    run(parts, 2, 64, np.arange(128) ** 2, width, np.zeros((128, 10), np.int64))


class Best(NamedTuple):
    value: float
    index: int


@cuda.jit
def best_of_warp(x, out, where):
    i = cuda.grid(1)
    best = (x[i], i)
    step = 16
    while step:
        other = cuda.shfl_xor_sync(FULL, best, step)
        if other[0] > best[0] or (other[0] == best[0] and other[1] < best[1]):
            best = other
        step >>= 1
    out[i] = best[0]
    where[i] = best[1]


def test_a_tuple_travels_whole():
    x = numbers("float32", 256)
    run(best_of_warp, 4, 64, x, np.zeros_like(x), np.zeros(256, np.int64))


@cuda.jit
def named(x, out):
    i = cuda.grid(1)
    best = Best(x[i], i)
    other = cuda.shfl_down_sync(FULL, best, 1)
    out[i, 0] = other.value
    out[i, 1] = other.index


def test_named_tuples_are_shuffled():
    x = np.arange(64.0)
    out = launch(named, 1, 64, x, np.zeros((64, 2)))[1]
    lane = np.arange(64)
    other = np.where(lane % 32 == 31, lane, lane + 1)
    np.testing.assert_array_equal(out, np.stack([other, other], 1))


def test_what_shuffles_give_has_the_type_of_the_value():
    kernel = module("""
        from weft import cuda

        @cuda.jit
        def kernel(out):
            x = cuda.shfl_sync(-1, cuda.threadIdx.x, 0)
            y = cuda.shfl_sync(mask=-1, value=7, src_lane=0)
            if cuda.threadIdx.x == 0:
                out[0] = x + 2147483647
                out[1] = y
    """).kernel
    assert launch(kernel, 1, 32, np.zeros(2, np.int64))[0].tolist() == [2147483647, 7]


@cuda.jit
def votes(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    p = x[i]
    out[i, 0] = cuda.all_sync(FULL, p > -30)
    out[i, 1] = cuda.any_sync(FULL, p > 35)
    out[i, 2] = cuda.eq_sync(FULL, p > 20)
    out[i, 3] = cuda.ballot_sync(FULL, p > 0)
    out[i, 4] = cuda.ballot_sync(FULL, p)
    out[i, 5] = cuda.all_sync(FULL, 1)
    out[i, 6] = cuda.any_sync(FULL, False)
    out[i, 7] = cuda.elect_sync(FULL)


@pytest.mark.parametrize("block", [32, 64, 33, 7, (5, 3, 4), (16, 16), 1])
@pytest.mark.parametrize("size", [128, 100])
def test_votes(block, size):
    n_threads = int(np.prod(block))
    x = numbers("int32", size)
    kernel = votes if isinstance(block, int) else votes_3d
    run(kernel, -(-128 // n_threads), block, x, np.zeros((size, 8), np.int64))


@cuda.jit
def votes_3d(x, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z + t
    if i < x.size:
        p = x[i]
        out[i, 0] = cuda.all_sync(FULL, p > -30)
        out[i, 1] = cuda.any_sync(FULL, p > 35)
        out[i, 2] = cuda.eq_sync(FULL, p > 20)
        out[i, 3] = cuda.ballot_sync(FULL, p > 0)
        out[i, 4] = cuda.reduce_add_sync(FULL, p)
        out[i, 5] = cuda.match_any_sync(FULL, p % 4)
        out[i, 6] = cuda.laneid
        out[i, 7] = cuda.elect_sync(FULL)


@cuda.jit
def matches(x, mask, out):
    i = cuda.grid(1)
    lanes = cuda.match_any_sync(mask, x[i])
    same, is_same = cuda.match_all_sync(mask, x[i])
    out[i, 0], out[i, 1], out[i, 2] = lanes, same, is_same


@pytest.mark.parametrize("dtype", [name for name in TYPES if not name.startswith("complex")])
def test_matches_of_every_type(dtype):
    x = numbers(dtype, 128)
    x[32:64] = x[32]
    run(matches, 1, 128, x, FULL, np.zeros((128, 3), np.int64))


def test_matches_compare_bits():
    x = np.zeros(64)
    x[::2] = -0.0
    x[1::4] = np.nan
    out = run(matches, 1, 64, x, -1, np.zeros((64, 3), np.int64))[2]
    assert out[0, 0] == 0x55555555
    assert out[1, 0] == 0x22222222


@cuda.jit
def reductions(x, out):
    i = cuda.grid(1)
    v = x[i]
    out[i, 0] = cuda.reduce_add_sync(FULL, v)
    out[i, 1] = cuda.reduce_min_sync(FULL, v)
    out[i, 2] = cuda.reduce_max_sync(FULL, v)
    out[i, 3] = cuda.reduce_and_sync(FULL, v)
    out[i, 4] = cuda.reduce_or_sync(FULL, v)
    out[i, 5] = cuda.reduce_xor_sync(FULL, v)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("block", [128, 40, 8])
def test_reductions(dtype, block):
    x = np.random.default_rng(3).integers(0, 1 << 32, 3 * block, np.uint64).astype(np.uint32).view(dtype)
    run(reductions, 3, block, x, np.zeros((3 * block, 6), dtype))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("block", [128, 40, 8])
def test_reductions_of_64_bits(dtype, block):
    x = np.random.default_rng(3).integers(0, 1 << 64, 3 * block, np.uint64).view(dtype)
    run(reductions, 3, block, x, np.zeros((3 * block, 6), dtype))


@cuda.jit
def reductions_of_some(x, out):
    i = cuda.grid(1)
    v = x[i]
    lane = cuda.laneid
    if lane % 3 == 0:
        out[i, 0] = cuda.reduce_add_sync(0x49249249, v)
        out[i, 1] = cuda.reduce_min_sync(0x49249249, v)
    else:
        out[i, 0] = cuda.reduce_add_sync(0xB6DB6DB6, v)
        out[i, 1] = cuda.reduce_max_sync(0xB6DB6DB6, v)
    out[i, 2] = cuda.reduce_add_sync(FULL, v)
    out[i, 3] = cuda.reduce_max_sync(FULL, v)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("block", [64, 50, 3])
def test_reductions_of_every_type_and_of_some_lanes(dtype, block):
    x = np.random.default_rng(5).integers(-50, 50, 2 * block).astype(dtype)
    run(reductions_of_some, 2, block, x, np.zeros((2 * block, 4), dtype))


@cuda.jit
def sums_of_complex(x, out):
    i = cuda.grid(1)
    out[i] = cuda.reduce_add_sync(FULL, x[i])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_complex_numbers(dtype):
    x = (np.arange(48) - 1j * np.arange(48)[::-1]).astype(dtype)
    got = launch(sums_of_complex, 1, 48, x, np.zeros_like(x))[1]
    np.testing.assert_array_equal(got, np.repeat([x[:32].sum(), x[32:].sum()], [32, 16]))


@cuda.jit
def lane_masks(out):
    i = cuda.grid(1)
    out[i, 0] = cuda.lanemask_lt()
    out[i, 1] = cuda.lanemask_le()
    out[i, 2] = cuda.lanemask_eq()
    out[i, 3] = cuda.lanemask_ge()
    out[i, 4] = cuda.lanemask_gt()
    out[i, 5] = cuda.activemask()


def test_masks_of_lanes():
    run(lane_masks, 2, 64, np.zeros((128, 6), np.uint64))


# ---- divergence -----------------------------------------------------------------------------------------------------


@cuda.jit
def halves_apart(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    if lane < 16:
        v = x[i] + cuda.shfl_xor_sync(0xFFFF, x[i], 8)
        out[i] = v + cuda.ballot_sync(0xFFFF, v > 0)
    else:
        v = x[i] * cuda.shfl_xor_sync(0xFFFF0000, x[i], 1)
        out[i] = v + cuda.any_sync(0xFFFF0000, v < -100)
    out[i] += cuda.reduce_add_sync(FULL, np.int32(v))


@cuda.jit
def masks_side_by_side(x, out):
    i = cuda.grid(1)
    mask = 0x11111111 << (cuda.laneid % 4)
    out[i, 0] = cuda.ballot_sync(mask, x[i] > 0)
    out[i, 1] = cuda.shfl_xor_sync(mask, x[i], 12)
    out[i, 2] = cuda.reduce_max_sync(mask, np.int32(x[i]))
    out[i, 3] = cuda.match_any_sync(mask, x[i] & 1)
    out[i, 4] = cuda.all_sync(mask, x[i] > -20)


@cuda.jit
def in_loops(x, out):
    i = cuda.grid(1)
    total = 0
    for k in range(cuda.laneid // 8 + 1):
        mask = FULL << (8 * k)
        total += cuda.shfl_xor_sync(mask, x[i] + k, 3)
        if cuda.any_sync(mask, x[i] == 5 * k):
            total += 1000
    out[i] = total


@cuda.jit
def left_apart(x, out):
    i = cuda.grid(1)
    left = x[i] & 15
    mask = FULL
    turns = 0
    while True:
        mask = cuda.ballot_sync(mask, turns < left)
        if turns >= left:
            break
        turns += 1
        out[i] += cuda.reduce_add_sync(mask, np.int32(turns)) + cuda.shfl_sync(mask, x[i], cuda.laneid)
    out[i] += cuda.reduce_or_sync(FULL, np.int32(turns)) << 20


@cuda.jit
def sum_of_lanes(mask, value, width):
    step = width // 2
    while step > 0:
        value += cuda.shfl_xor_sync(mask, value, step)
        step //= 2
    return value


@cuda.jit
def first_lane(mask, value):
    if mask == 0:
        return value
    lane = 0
    while not mask >> lane & 1:
        lane += 1
    if lane == 99:
        return value + 1
    return cuda.shfl_sync(mask, value, lane)


@cuda.jit
def in_functions(x, out):
    i = cuda.grid(1)
    if cuda.laneid < 8:
        out[i] = sum_of_lanes(0xFF, x[i], 8)
    elif cuda.laneid < 24:
        out[i] = sum_of_lanes(0xFFFF00, x[i], 8) + first_lane(0xFFFF00, x[i])
    out[i] += sum_of_lanes(FULL, x[i], 32) + first_lane(FULL, x[i])


@cuda.jit
def after_returns(x, out):
    i = cuda.grid(1)
    if cuda.laneid % 3 == 0:
        return
    out[i] = cuda.ballot_sync(FULL, x[i] > 0) + cuda.all_sync(FULL, x[i] > -35)
    if x[i] > 20:
        return
    out[i] += cuda.reduce_add_sync(FULL, np.int32(x[i])) + cuda.match_any_sync(FULL, x[i] & 3)


@cuda.jit
def whole_warps_apart(x, out):
    i = cuda.grid(1)
    if cuda.threadIdx.x // 32 == 1:
        v = x[i]
        for step in (16, 8, 4, 2, 1):
            v += cuda.shfl_down_sync(FULL, v, step)
        out[i] = cuda.shfl_sync(FULL, v, 0)
    else:
        out[i] = cuda.shfl_up_sync(FULL, x[i], 2)
    cuda.syncthreads()
    out[i] += cuda.shfl_sync(FULL, out[i], cuda.laneid ^ 7)


@pytest.mark.parametrize(
    "kernel",
    [halves_apart, in_loops, left_apart, in_functions, after_returns, whole_warps_apart],
    ids=lambda kernel: kernel.py_func.__name__,
)
@pytest.mark.parametrize("block", [32, 96])
def test_lanes_that_part(kernel, block):
    run(kernel, 2, block, numbers("int64", 2 * block), np.zeros(2 * block, np.int64))


def test_masks_of_one_call():
    run(masks_side_by_side, 2, 96, numbers("int64", 192), np.zeros((192, 5), np.int64))


@cuda.jit
def by_leaders(keys, counts):
    i = cuda.grid(1)
    todo = True
    while todo:
        here = cuda.activemask()
        leader = cuda.shfl_sync(here, keys[i], first_of(here))
        same = cuda.ballot_sync(here, keys[i] == leader)
        if keys[i] == leader:
            if cuda.laneid == first_of(same):
                cuda.atomic.add(counts, leader, bits(same))
            todo = False


@cuda.jit
def first_of(mask):
    lane = 0
    while not mask >> lane & 1:
        lane += 1
    return lane


@cuda.jit
def bits(mask):
    n = 0
    for lane in range(32):
        n += mask >> lane & 1
    return n


def test_counting_by_those_who_are_here():
    keys = np.random.default_rng(5).integers(0, 6, 512)
    counts = launch(by_leaders, 4, 128, keys, np.zeros(6, np.int64))[1]
    np.testing.assert_array_equal(counts, np.bincount(keys, minlength=6))


@cuda.jit
def warp_memory(x, out):
    tile = cuda.shared.array(128, np.int64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.laneid < 16:
        tile[t] = x[i]
        cuda.syncwarp(0xFFFF)
        out[i] = tile[t ^ 15]
    else:
        tile[t] = 2 * x[i]
        cuda.syncwarp(mask=0xFFFF0000)
        out[i] = tile[t ^ 15]
    cuda.syncwarp()
    out[i] += tile[t ^ 31]


def test_barriers_of_masks():
    run(warp_memory, 2, 128, numbers("int64", 256), np.zeros(256, np.int64))


@cuda.jit
def arms_that_meet(x, out):
    tile = cuda.shared.array(128, np.int64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.laneid < 16:
        tile[t] = x[i]
        cuda.syncwarp()
        out[i] = tile[t ^ 31]
    else:
        tile[t] = 2 * x[i]
        cuda.syncwarp()
        out[i] = tile[t ^ 31]


@pytest.mark.skipif(os.environ.get("WEFT_CPU_STRATEGY") == "loops", reason="loops run one arm after the other")
def test_lanes_meet_at_barriers_of_two_arms():
    x = numbers("int64", 256)
    out = launch(arms_that_meet, 2, 128, x, np.zeros(256, np.int64))[1]
    lane = np.arange(256) % 32
    np.testing.assert_array_equal(out, np.where(lane < 16, 2, 1) * x[np.arange(256) ^ 31])


@cuda.jit
def block_sum(x, out):
    sums = cuda.shared.array(32, np.float64)
    v = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(FULL, v, step)
    if cuda.laneid == 0:
        sums[cuda.threadIdx.x // 32] = v
    cuda.syncthreads()
    if cuda.threadIdx.x < 32:
        v = sums[cuda.threadIdx.x] if cuda.threadIdx.x < cuda.blockDim.x // 32 else 0.0
        for step in (16, 8, 4, 2, 1):
            v += cuda.shfl_down_sync(FULL, v, step)
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = v


@pytest.mark.parametrize("block", [32, 256, 1024])
def test_the_sum_of_a_block(block):
    x = np.arange(3.0 * block)
    out = launch(block_sum, 3, block, x, np.zeros(3))[1]
    np.testing.assert_array_equal(out, x.reshape(3, block).sum(1))


def test_floats_are_no_masks_and_arrays_are_not_shuffled():
    def refused(line):
        kernel = module(f"""
            from weft import cuda

            @cuda.jit
            def kernel(x):
                {line}
        """).kernel
        with pytest.raises(weft.errors.TypingError) as error:
            kernel[1, 32](np.zeros(32))
        return str(error.value)

    assert "no overload of `cuda.shfl_sync` takes (float64, int64, int64)" in refused("cuda.shfl_sync(1.5, 1, 0)")
    assert "no overload of `cuda.shfl_sync`" in refused("cuda.shfl_sync(-1, x, 0)")
    assert "no overload of `cuda.match_any_sync`" in refused("cuda.match_any_sync(-1, x)")
    assert "no overload of `cuda.ballot_sync`" in refused("cuda.ballot_sync(0.5, True)")
    assert "has no parameter `lane`" in refused("cuda.shfl_sync(-1, 1, lane=0)")
    assert "takes 3 to 4 arguments, not 2" in refused("cuda.shfl_sync(-1, 1)")
    assert "the width of a shuffle must be" in refused("cuda.shfl_sync(-1, 1, 0, 3)")


@pytest.mark.cpu
@pytest.mark.skipif("WEFT_CPU_STRATEGY" in os.environ, reason="this is the run with a strategy of its own")
@pytest.mark.parametrize("strategy", ["loops", "fibers"])
def test_both_ways_of_running_threads(strategy):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--device", "cpu", "--cpu-strategy", strategy, __file__]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env["WEFT_HOST_OPT_LEVEL"] = "0"  # weft chooses the strategy, not LLVM
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@cuda.jit
def masks_of_a_type(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.shfl_xor_sync(np.int32(-1), x[i], np.int8(1))
    out[i, 1] = cuda.shfl_down_sync(np.uint32(FULL), x[i], np.uint64(2), np.int16(4))
    out[i, 2] = cuda.shfl_sync(np.int64(-1), x[i], np.uint8(3))


@pytest.mark.parametrize("dtype", ["int16", "float64", "complex64"])
def test_masks_and_lanes_are_known_numbers_of_any_type_of_integers(dtype):
    run(masks_of_a_type, 1, 32, numbers(dtype, 32), np.zeros((32, 3), dtype))
