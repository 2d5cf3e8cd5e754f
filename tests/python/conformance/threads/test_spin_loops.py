"""Threads that wait for another thread's write: within a block, and a block for the previous one."""

import os
import subprocess
import sys

import numpy as np
import pytest
from weft import _weft, cuda


@cuda.jit
def merge(left, right, common):
    i, j, count = 0, 0, 0
    while i < left.size and j < right.size:
        u = left[i]
        v = right[j]
        if u == v:
            count += 1
        if u <= v:
            i += 1
        if v <= u:
            j += 1
    common[cuda.grid(1)] = count


@cuda.jit
def merge_in_vain(left, right, common):
    i, j, count = 0, 0, 0
    while i < left.size and j < right.size:
        u = left[i]
        v = right[j]
        if u == v:
            count += 1
        if u < v:
            i += 1
        if v < u:
            j += 1
        if u == v and common[cuda.grid(1)] != 0:
            i += 1
            j += 1
    common[cuda.grid(1)] = count


@cuda.jit
def produce_and_consume(flag, box, out):
    i = cuda.threadIdx.x
    if i == 0:  # the consumer is first: sequential execution would wait forever
        for turn in range(1, 11):
            while cuda.atomic.add(flag, 0, 0) != 2 * turn - 1:
                pass
            out[turn - 1] = box[0]
            cuda.atomic.add(flag, 0, 1)
    elif i == 1:
        for turn in range(1, 11):
            box[0] = turn * turn
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 1)
            while cuda.atomic.add(flag, 0, 0) != 2 * turn:
                pass


@cuda.jit
def flag_in_shared_memory(out):
    flag = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    if i == 0:
        flag[0] = 0
    cuda.syncthreads()
    if i == 0:
        while cuda.atomic.add(flag, 0, 0) != cuda.blockDim.x - 1:
            pass
        out[cuda.blockIdx.x] = flag[0]
    else:
        cuda.atomic.add(flag, 0, 1)


@cuda.jit
def ticket_lock(lock, data):
    """A ticket lock: `lock[0]` is the next ticket, `lock[1]` the ticket that may enter."""
    ticket = cuda.atomic.add(lock, 0, 1)
    while cuda.atomic.add(lock, 1, 0) != ticket:
        pass
    cuda.threadfence()
    data[0] = data[0] * 3 + 1
    data[1] += 1
    cuda.threadfence()
    cuda.atomic.add(lock, 1, 1)


@cuda.jit
def look_back(x, sums, ready, out):
    """A scan over blocks: each waits for the sum of all previous ones."""
    s = cuda.shared.array(64, np.int64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    s[t] = x[i]
    cuda.syncthreads()
    if t == 0:
        for k in range(1, cuda.blockDim.x):
            s[k] += s[k - 1]
        before = 0
        if b > 0:
            while cuda.atomic.add(ready, b - 1, 0) == 0:
                pass
            before = sums[b - 1]
        sums[b] = before + s[cuda.blockDim.x - 1]
        cuda.threadfence()
        cuda.atomic.add(ready, b, 1)
    cuda.syncthreads()
    before = 0
    if b > 0:
        before = sums[b - 1]
    out[i] = before + s[t]


@cuda.jit
def grid_barrier(bar, a, n):
    """A hand-written grid barrier between iterations in which blocks exchange elements."""
    i = cuda.grid(1)
    for turn in range(n):
        v = a[(i + cuda.blockDim.x) % a.size]
        for phase in range(2):
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                cuda.threadfence()
                cuda.atomic.add(bar, 0, 1)
                while cuda.atomic.add(bar, 0, 0) < cuda.gridDim.x * (2 * turn + phase + 1):
                    pass
                cuda.threadfence()
            cuda.syncthreads()
            if phase == 0:
                a[i] = v + 1


@cuda.jit
def handed_down(ready, steps):
    """Each thread does a step after the next thread has done it: an iteration may make no progress."""
    i = cuda.threadIdx.x
    last = cuda.blockDim.x - 1
    step = steps.shape[0] - 1
    while step >= 0:
        if i == last:
            steps[step, i] = step
            cuda.threadfence()
            cuda.atomic.add(ready, i - 1, 1)
            step -= 1
        elif cuda.atomic.add(ready, i, 0) > 0:
            steps[step, i] = steps[step, i + 1] + 1
            cuda.threadfence()
            if i > 0:
                cuda.atomic.add(ready, i - 1, 1)
            cuda.atomic.sub(ready, i, 1)
            step -= 1


@cuda.jit
def flag_at_a_computed_place(flags, out):
    """The address of the flag is computed in each iteration, but does not change."""
    i = cuda.threadIdx.x
    if i == cuda.blockDim.x - 1:
        cuda.atomic.exch(flags, 2, 1)
    else:
        while True:
            place = 2 + i // 1024
            if cuda.atomic.add(flags, place, 0) == 1:
                break
    out[i] = 1


@cuda.jit
def the_first_waits(flag, out):
    """Plain loads, in the first branch."""
    if cuda.threadIdx.x == 0:
        while flag[0] == 0:
            cuda.threadfence()
        out[0] = 1
    else:
        flag[0] = 1
        cuda.threadfence()


@cuda.jit
def the_others_wait(flag, out):
    if cuda.threadIdx.x != 0:
        while True:
            cuda.threadfence_block()
            if flag[0] == 1:
                break
        out[0] = 1
    else:
        flag[0] = 1
        cuda.threadfence()


@cuda.jit
def a_loop_that_counts_waits(flag, out):
    if cuda.threadIdx.x == 0:
        for _ in range(1 << 60):
            cuda.threadfence()
            if flag[0] != 0:
                break
        out[0] = 1
    else:
        flag[0] = 1
        cuda.threadfence()


@cuda.jit
def waits_in_shared_memory(flag, out):
    s = cuda.shared.array(1, np.int32)
    if cuda.threadIdx.x == 0:
        s[0] = 0
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        while s[0] == 0:
            cuda.threadfence_block()
        out[0] = s[0]
    else:
        s[0] = 1
        cuda.threadfence_block()


@cuda.jit
def value_of(flag):
    cuda.threadfence()
    return flag[0]


@cuda.jit
def waits_in_a_function(flag, out):
    if cuda.threadIdx.x == 0:
        while value_of(flag) == 0:
            pass
        out[0] = 1
    else:
        flag[0] = 1
        cuda.threadfence()


@cuda.jit
def waits_by_a_load_with_a_hint(flag, out):
    if cuda.threadIdx.x == 0:
        while cuda.ldcg(flag, 0) == 0:
            pass
        out[0] = 1
    else:
        flag[0] = 1
        cuda.threadfence()


@cuda.jit
def waits_for_what_a_variable_keeps(flag, out):
    if cuda.threadIdx.x == 0:
        seen = 0
        tries = 0
        while seen == 0:
            cuda.threadfence()
            now = flag[0]
            seen = now + now
            tries += 1
        out[0] = seen // 2
        out[1] = min(tries, 1)
    else:
        flag[0] = 1
        cuda.threadfence()


@cuda.jit
def each_waits_for_the_one_before(flag, out):
    i = cuda.threadIdx.x
    while flag[0] != i:
        cuda.threadfence()
    out[0] = i
    flag[0] = i + 1
    cuda.threadfence()


PLAIN_WAITS = [
    the_first_waits,
    the_others_wait,
    a_loop_that_counts_waits,
    waits_in_shared_memory,
    waits_in_a_function,
    waits_by_a_load_with_a_hint,
    waits_for_what_a_variable_keeps,
]


@pytest.mark.parametrize("threads", [2, 32, 100])
@pytest.mark.parametrize("kernel", PLAIN_WAITS, ids=lambda kernel: kernel.__name__)
def test_threads_of_a_warp_wait_by_plain_loads(kernel, threads):
    out = np.zeros(2, np.int64)
    kernel[1, threads](np.zeros(1, np.int64), out)
    assert out[0] == 1


@pytest.mark.parametrize("threads", [1, 2, 32, 256])
def test_each_thread_waits_for_the_one_before_by_plain_loads(threads):
    flag, out = np.zeros(1, np.int64), np.zeros(1, np.int64)
    each_waits_for_the_one_before[1, threads](flag, out)
    assert (flag[0], out[0]) == (threads, threads - 1)


@pytest.mark.parametrize("threads", [2, 31, 128])
def test_steps_that_are_handed_down_from_the_last_thread(threads):
    steps = np.full((5, threads), -1, np.int64)
    handed_down[1, threads](np.zeros(threads, np.int32), steps)
    np.testing.assert_array_equal(steps, np.arange(5)[:, None] + np.arange(threads)[::-1])


def test_a_flag_at_a_place_that_each_turn_computes():
    out = np.zeros(64, np.int64)
    flag_at_a_computed_place[1, 64](np.zeros(4, np.int32), out)
    assert out.all()


@pytest.mark.parametrize("threads", [2, 64])
def test_a_producer_and_a_consumer(threads):
    flag, box, out = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(10, np.int64)
    produce_and_consume[1, threads](flag, box, out)
    assert out.tolist() == [turn * turn for turn in range(1, 11)]


@pytest.mark.parametrize(("grid", "block"), [(1, 33), (5, 256), (40, 128)])
def test_a_flag_in_shared_memory(grid, block):
    out = np.zeros(grid, np.int64)
    flag_in_shared_memory[grid, block](out)
    assert (out == block - 1).all()


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 100), (8, 32)])
def test_a_lock_that_every_thread_takes(grid, block):
    lock, data = np.zeros(2, np.int32), np.zeros(2, np.uint64)
    ticket_lock[grid, block](lock, data)
    expected = 0
    for _ in range(grid * block):
        expected = (expected * 3 + 1) % 2**64
    assert data.tolist() == [expected, grid * block]


@pytest.mark.parametrize("blocks", [1, 3, 50, 1000])
def test_blocks_wait_for_the_one_before(blocks):
    x = np.arange(blocks * 64, dtype=np.int64) % 17
    out = np.zeros_like(x)
    look_back[blocks, 64](x, np.zeros(blocks, np.int64), np.zeros(blocks, np.int32), out)
    np.testing.assert_array_equal(out, np.cumsum(x))


@cuda.jit
def contended_barrier(bar, counts, n):
    """A grid barrier at which each thread waits by itself."""
    threads = cuda.gridsize(1)
    for turn in range(n):
        cuda.atomic.add(counts, turn, 1)
        cuda.threadfence()
        cuda.atomic.add(bar, 0, 1)
        while cuda.atomic.add(bar, 0, 0) < threads * (turn + 1):
            pass
        if cuda.atomic.add(counts, turn, 0) != threads:
            cuda.atomic.add(counts, n, 1)


@cuda.jit
def backwards(flags, out):
    """Each block waits for the next one, in a loop with a very large trip count."""
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0 and b + 1 < cuda.gridDim.x:
        for _ in range(1 << 60):
            if cuda.atomic.add(flags, b + 1, 0) != 0:
                break
    cuda.syncthreads()
    cuda.atomic.add(out, b, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.add(flags, b, 1)


@cuda.jit
def unseen_wait(flags, out):
    """As `backwards`, but the loop also reads other elements, so the compiler does not recognize a spin loop."""
    b = cuda.blockIdx.x
    turns = 0
    while cuda.atomic.add(flags, flags.size - 1, 0) == 0:
        pass
    if b + 1 < cuda.gridDim.x:
        while cuda.atomic.add(flags, (b + 1) * (1 + turns % 2), 0) == 0:
            turns += 1
    cuda.threadfence()
    out[b] = 1
    cuda.atomic.add(flags, b, 1)
    cuda.atomic.add(flags, 2 * b, 1)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 8), (30, 64), (300, 64), (64, 1024)])
def test_a_barrier_where_every_thread_waits(blocks, threads):
    turns = 3
    counts = np.zeros(turns + 1, np.int32)
    contended_barrier[blocks, threads](np.zeros(1, np.int32), counts, turns)
    assert counts.tolist() == [blocks * threads] * turns + [0]


@pytest.mark.parametrize(("blocks", "threads"), [(2, 1), (100, 32), (500, 64)])
def test_blocks_wait_for_the_one_after(blocks, threads):
    out = np.zeros(blocks, np.int32)
    backwards[blocks, threads](np.zeros(blocks, np.int32), out)
    assert (out == threads).all()


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
def test_a_merge_of_sorted_lists(dtype):
    rng = np.random.default_rng(3)
    left, right = (np.sort(rng.choice(200, 60, replace=False)).astype(dtype) for _ in range(2))
    common = np.zeros(70, np.int64)
    merge[2, 35](left, right, common)
    assert (common == np.intersect1d(left, right).size).all()


@pytest.mark.cpu
def test_which_merges_wait():
    """Of two integers, one is less than or equal to the other; of floats not, because of NaN."""
    stacks = {}
    for kernel, dtype in ((merge, np.int32), (merge, np.float32), (merge_in_vain, np.int32)):
        kernel = cuda.jit(kernel.py_func)
        kernel[1, 1](np.zeros(0, dtype), np.zeros(0, dtype), np.ones(1, np.int64))
        names = {name for _, _, names in _weft.plan_features(kernel) for name in names}
        stacks[kernel.py_func.__name__, dtype.__name__] = "stack-per-thread" in names
    assert stacks == {("merge", "int32"): False, ("merge", "float32"): True, ("merge_in_vain", "int32"): True}


def test_blocks_wait_in_loops_that_look_like_a_search():
    # More threads than can run without waking others.
    blocks = 5000
    out = np.zeros(blocks, np.int32)
    flags = np.zeros(2 * blocks, np.int32)
    flags[10:] = 1
    unseen_wait[blocks, 1](flags, out)
    assert (out == 1).all()


@pytest.mark.parametrize(("blocks", "threads"), [(1, 8), (4, 32), (30, 64), (64, 1024)])
def test_a_barrier_of_the_grid(blocks, threads):
    a = np.arange(blocks * threads, dtype=np.int64)
    expected = a.copy()
    for _ in range(5):
        expected = np.roll(expected, -threads) + 1
    grid_barrier[blocks, threads](np.zeros(1, np.int32), a, 5)
    np.testing.assert_array_equal(a, expected)


def test_a_setting_takes_stacks_for_every_kernel(tmp_path):
    program = """
import numpy as np
from weft import cuda

@cuda.jit
def reverse(x):
    s = cuda.shared.array(64, np.float32)
    a = cuda.local.array(4, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    a[t % 4] = x[i]
    cuda.syncthreads()
    s[t] = a[t % 4]
    if t >= 48:
        return
    cuda.syncthreads()
    cuda.syncwarp()
    x[i] = s[47 - t]

x = np.arange(64 * 100, dtype=np.float32)
expected = x.copy().reshape(100, 64)
expected[:, :48] = expected[:, 47::-1]
reverse[100, 64](x)
assert (x.reshape(100, 64) == expected).all()
print("passed")
"""
    path = tmp_path / "reverse.py"
    path.write_text(program, encoding="utf-8")
    for strategy in ("fibers", "loops", "auto"):
        env = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_CPU_STRATEGY": strategy}
        command = [sys.executable, "-W", "ignore", str(path)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.stdout == "passed\n", done.stderr


@pytest.mark.cpu
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")
def test_blocks_that_wait_without_memory_for_all_are_an_error(tmp_path):
    program = """
import os, resource
import numpy as np
from weft import cuda, errors

@cuda.jit
def barrier(bar):
    threads = cuda.gridsize(1)
    cuda.atomic.add(bar, 0, 1)
    while cuda.atomic.add(bar, 0, 0) < threads:
        pass

barrier[8, 1024](np.zeros(1, np.int32))
with open("/proc/self/statm", encoding="ascii") as file:
    pages = int(file.read().split()[0])
most = pages * os.sysconf("SC_PAGE_SIZE") + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    barrier[200, 1024](np.zeros(1, np.int32))
except errors.DeviceMemoryError as error:
    assert "wait for each other" in str(error), error
    barrier[4, 1024](np.zeros(1, np.int32))
    print("passed")
"""
    path = tmp_path / "memory.py"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(path)]
    # This tests memory use: under the sanitizer, two hundred thousand waiting threads would take too long.
    env = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_CPU_THREADS": "2", "WEFT_SANITIZE": "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "passed\n", done.stdout + done.stderr
