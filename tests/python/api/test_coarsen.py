"""Thread coarsening (`cuda.jit(coarsen=...)`): the same bits as without, or a reason why not."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from weft import cuda, float32, int64

MERGED = [{"coarsen_blocks": 2}, {"coarsen_blocks": 4}]
FACTORS = [
    *({"coarsen": of} for of in (2, 4, (1, 2), (2, 2), (4, 2), (1, 4), (1, 1, 2), (2, 1, 2))),
    {"coarsen_blocks": (2, 2)},
    {"coarsen_blocks": (1, 4)},
    {"coarsen": 2, "coarsen_blocks": (1, 2, 2)},
]
LINES = [{"coarsen": 2}, {"coarsen": 4}, *MERGED]


def note(kernel: Any) -> str:
    """How the only kernel of a dispatcher was coarsened, or why not."""
    (compiled,) = kernel.overloads.values()
    return str(compiled.coarsening)


def check(function: Any, coarsen: Any, grid: Any, block: Any, *args: Any, refused: str | None = None) -> None:
    """Compare a kernel's arrays with those of the uncoarsened kernel; `refused` is the expected reason."""
    plain = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    cuda.jit(function, coarsen=(1,))[grid, block](*plain)
    coarsen = coarsen if isinstance(coarsen, dict) else {"coarsen": coarsen}
    kernel = cuda.jit(function, **coarsen)
    coarsened = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    kernel[grid, block](*coarsened)
    for number, (expected, found) in enumerate(zip(plain, coarsened, strict=True)):
        if isinstance(expected, np.ndarray):
            assert expected.tobytes() == found.tobytes(), f"argument {number} with {coarsen}"
    if os.environ.get("WEFT_COARSEN"):
        return  # the setting overrides the factor, so the reason may differ
    if refused is not None:
        assert refused in note(kernel)
    elif "blocks" in str(coarsen):
        assert re.search("blocks in one|cannot be merged|may wait in a loop|^$", note(kernel))
    else:
        assert "threads in one" in note(kernel)


def saxpy(a: Any, x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@pytest.mark.parametrize("coarsen", LINES)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 1024])
def test_a_guard(coarsen: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random((2, n), dtype=np.float32)
    check(saxpy, coarsen, (n // 64 + 4) // 4 * 4, 64, np.float32(3), x, y)


def early(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i >= x.size:
        return
    if x[i] < 0:
        y[i] = -1
        return
    y[i] = x[i] + 1


def test_early_returns() -> None:
    x = np.random.default_rng(0).integers(-5, 5, 501)
    for coarsen in LINES:
        check(early, coarsen, 8, 64, x, np.zeros_like(x))


def returns_everywhere(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i >= x.size:
        return
    for k in range(10):
        if k == x[i]:
            y[i] = 100 + k
            if k % 2 == 0:
                return
            break
        if k > x[i] + 3:
            return
        for m in range(3):
            if m * k == 12:
                y[i] = 7
                return
    else:
        y[i] += 1000
    y[i] += 1


def test_returns_in_loops() -> None:
    x = np.arange(150) % 14
    for coarsen in LINES:
        check(returns_everywhere, coarsen, 4, 64, x, np.zeros_like(x))


def test_blocks_that_are_not_divisible_run_as_they_are() -> None:
    x, y = np.arange(300.0, dtype=np.float32), np.ones(300, np.float32)
    kernel = cuda.jit(saxpy, coarsen=4)
    kernel[5, 63](np.float32(2), x, y)
    assert (y == 2 * x + 1).all()
    if not os.environ.get("WEFT_COARSEN"):
        assert note(kernel) == ""
    y[:] = 1
    kernel[5, 64](np.float32(2), x, y)
    assert (y == 2 * x + 1).all()
    y[:] = 1
    kernel[5, 63](np.float32(2), x, y)
    assert (y == 2 * x + 1).all()
    assert len(kernel.overloads) == 1


def registers(out: Any) -> None:
    x, y, z = cuda.grid(3)
    t = cuda.threadIdx
    row = out[z, y, x]
    row[0], row[1], row[2] = t.x, t.y, t.z
    row[3], row[4], row[5] = cuda.blockDim.x, cuda.blockDim.y, cuda.blockDim.z
    row[6], row[7], row[8] = cuda.gridDim.x, cuda.blockIdx.y, cuda.blockIdx.z + cuda.gridDim.y * 8
    row[9], row[10], row[11] = cuda.gridsize(3)


@pytest.mark.parametrize("coarsen", FACTORS)
def test_threads_have_the_numbers_that_the_program_asked_for(coarsen: Any) -> None:
    out = np.zeros((4, 16, 16, 12), np.int64)
    check(registers, coarsen, (2, 4, 2), (8, 4, 2), out)


def naive(a: Any, b: Any, c: Any) -> None:
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("coarsen", FACTORS)
def test_matrix_product(coarsen: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((37, 21), dtype=np.float32), rng.random((21, 50), dtype=np.float32)
    check(naive, coarsen, (8, 8, 2), (8, 8, 2), a, b, np.zeros((37, 50), np.float32))


TILE = 16


def tiled(a: Any, b: Any, c: Any) -> None:
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float32(0)
    for tile in range((a.shape[1] + TILE - 1) // TILE):
        left[ty, tx] = 0
        right[ty, tx] = 0
        if i < a.shape[0] and tile * TILE + tx < a.shape[1]:
            left[ty, tx] = a[i, tile * TILE + tx]
        if j < b.shape[1] and tile * TILE + ty < b.shape[0]:
            right[ty, tx] = b[tile * TILE + ty, j]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


@pytest.mark.parametrize("coarsen", [2, 4, (1, 2), (2, 2), (1, 4), (4, 4)])
def test_tiles_in_shared_memory(coarsen: Any) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((40, 70), dtype=np.float32), rng.random((70, 33), dtype=np.float32)
    check(tiled, coarsen, (3, 3), (TILE, TILE), a, b, np.zeros((40, 33), np.float32))


def block_sum(x: Any, out: Any) -> None:
    parts = cuda.shared.array(128, int64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    parts[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            parts[t] += parts[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = parts[0]


def test_barriers_in_loops() -> None:
    x = np.random.default_rng(3).integers(-1000, 1000, 700)
    for coarsen in LINES:
        check(block_sum, coarsen, 6, 128, x, np.zeros(6, np.int64))
    out = np.zeros(6, np.int64)
    cuda.jit(block_sum, coarsen=4)[6, 128](x, out)
    assert out.sum() == x.sum()


def behind_a_return(x: Any, out: Any) -> None:
    parts = cuda.shared.array(64, int64)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i >= x.size:
        return
    parts[t] = x[i]
    cuda.syncthreads()
    n = min(cuda.blockDim.x, x.size - cuda.blockIdx.x * cuda.blockDim.x)
    total = 0
    for turn in range(3):
        for k in range(n):
            total += parts[k] * (k + turn)
        cuda.syncthreads()
        parts[t] += turn
        cuda.syncthreads()
    if t % 3 == 0:
        out[i] = total
    else:
        out[i] = -total + t


def behind_two_returns(x: Any, out: Any) -> None:
    parts = cuda.shared.array(64, int64)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i >= x.size:
        return
    parts[t] = x[i]
    if x.size - i < 3:
        out[i] = 5
        return
    cuda.syncthreads()
    count = 0
    while count < 4:
        parts[t] += count
        count += 1
        cuda.syncthreads()
    out[i] = parts[t] * count


@pytest.mark.parametrize("function", [behind_a_return, behind_two_returns])
@pytest.mark.parametrize("n", [1, 2, 62, 64, 65, 127, 190])
def test_barriers_behind_returns(function: Any, n: int) -> None:
    x = np.random.default_rng(n).integers(-1000, 1000, n)
    for coarsen in LINES:
        check(function, coarsen, 3, 64, x, np.zeros(n, np.int64))


def counting(x: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i >= x.size:
        return
    some = cuda.syncthreads_count(x[i] > 0)
    every = cuda.syncthreads_and(x[i] > -9)
    one = cuda.syncthreads_or(x[i] == 9)
    out[i, 0], out[i, 1], out[i, 2] = some, every, one


def test_barriers_that_count() -> None:
    x = np.random.default_rng(4).integers(-10, 10, 150)
    for coarsen in LINES:
        check(counting, coarsen, 3, 64, x, np.zeros((150, 3), np.int64))


def parted(x: Any) -> None:
    values = cuda.shared.array(64, int64)
    t = cuda.threadIdx.x
    values[t] = t
    for k in range(t, 128 + t, 64):
        values[k % 64] += x[t]
        cuda.syncthreads()
        x[t] += values[63 - t]
        cuda.syncthreads()
    x[t] += values[t]


def steps_by_memory(x: Any) -> None:
    values = cuda.shared.array(64, int64)
    t = cuda.threadIdx.x
    values[t] = x[0] % 5
    cuda.syncthreads()
    turn = 0
    while values[0] > 0:
        if values[t] % 2 == 0:
            x[t] += 3 * turn
            cuda.syncthreads()
        else:
            cuda.syncthreads()
            x[t] -= turn
        cuda.syncthreads()
        values[t] -= 1
        if values[t] < -5:
            continue
        cuda.syncthreads()
        turn += t
    x[t] += turn


def counts_in_turns(x: Any) -> None:
    t = cuda.threadIdx.x
    total = 0
    for k in range(t, t + 5):
        some = cuda.syncthreads_count(x[t] > k - t)
        every = cuda.syncthreads_and(x[t] > -k)
        if some == 0:
            break
        total += some * 10 + every
    cuda.syncthreads()
    x[t] = total


@pytest.mark.parametrize("function", [parted, steps_by_memory, counts_in_turns])
def test_barriers_in_branches_and_loops_of_each_thread(function: Any) -> None:
    for coarsen in [*LINES, (4, 1, 1)]:
        check(function, coarsen, 1, 64, np.random.default_rng(10).integers(-3, 5, 64))
        check(function, coarsen, 1, 64, np.full(64, 3, np.int64))


def strided(x: Any, y: Any) -> None:
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if x[i] % 3 == 0:
            continue
        y[i] = x[i] * 2


def apart(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    n = x[i % x.size]
    steps = 0
    while n != 1 and steps < 50:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if n == 5:
            break
    else:
        steps += 1000
    if i < y.size:
        y[i] = steps


@pytest.mark.parametrize("function", [strided, apart])
def test_loops_that_threads_leave_apart(function: Any) -> None:
    x = np.random.default_rng(5).integers(1, 90, 333)
    for coarsen in LINES:
        check(function, coarsen, 2, 64, x, np.zeros_like(x))


def histogram(x: Any, bins: Any, order: Any) -> None:
    local = cuda.shared.array(16, int64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t < 16:
        local[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(local, x[i], 1)
        order[cuda.atomic.add(order, 0, 1) + 1] = 1
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, local[t])


def test_atomic_steps() -> None:
    x = np.random.default_rng(6).integers(0, 16, 500)
    for coarsen in LINES:
        check(histogram, coarsen, 8, 64, x, np.zeros(16, np.int64), np.zeros(501, np.int64))


@cuda.jit(device=True)
def my_place(offset: Any) -> Any:
    return cuda.grid(1) + offset


@cuda.jit(device=True)
def twice_removed(values: Any, offset: Any) -> Any:
    memory = cuda.local.array(3, int64)
    for k in range(3):
        memory[k] = values[k] * cuda.threadIdx.x
    return memory[0] + memory[1] * cuda.blockDim.x + memory[2] + my_place(offset)


def calls(x: Any, y: Any) -> None:
    own = cuda.local.array(4, int64)
    i = my_place(0)
    for k in range(4):
        own[k] = i * k
    if i < x.size:
        y[i] = twice_removed(x, 5) + own[i % 4] + x[my_place(0)]


def test_device_functions_and_local_arrays() -> None:
    x = np.random.default_rng(7).integers(0, 16, 150)
    for coarsen in LINES:
        check(calls, coarsen, 4, 64, x, np.zeros_like(x))


def parameters(x: Any, n: Any, shift: Any) -> None:
    i = cuda.grid(1)
    n -= 3
    shift += i % 5
    if i < n:
        x[i] = shift + n


def test_parameters_that_are_assigned() -> None:
    for coarsen in LINES:
        check(parameters, coarsen, 4, 64, np.zeros(190, np.int64), 150, 7)


def test_what_reads_and_writes_the_same_array_in_place() -> None:
    def turned(x: Any) -> None:
        values = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        base = cuda.blockIdx.x * 64
        values[t] = x[base + t]
        cuda.syncthreads()
        x[base + t] = values[63 - t] + x[base + t]

    for coarsen in LINES:
        check(turned, coarsen, 3, 64, np.random.default_rng(8).random(192, dtype=np.float32))


def complex_elements(x: Any, y: Any) -> None:
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        z = x[i, j]
        for _ in range(4):
            z = z * z + x[i, j]
        y[i, j] = z


@pytest.mark.parametrize("coarsen", FACTORS)
def test_complex_numbers(coarsen: Any) -> None:
    # Exact products: LLVM chooses which of two it fuses with the sum.
    real, imag = np.random.default_rng(9).integers(-3, 4, (2, 20, 30))
    x = (real + 1j * imag).astype(np.complex128)
    check(complex_elements, coarsen, (4, 4, 2), (8, 8, 2), x, np.zeros_like(x))


def shuffles(x: Any) -> None:
    i = cuda.grid(1)
    x[i] = cuda.shfl_down_sync(0xFFFFFFFF, x[i], 1)


def lanes(x: Any) -> None:
    x[cuda.grid(1)] = cuda.laneid


def fences(x: Any) -> None:
    x[cuda.grid(1)] += 1
    cuda.threadfence()


def prints(x: Any) -> None:
    if x[cuda.grid(1)] > 1000:
        print("no")


def clocks(x: Any) -> None:
    x[cuda.grid(1)] += cuda.clock64() * 0


def waits(x: Any) -> None:
    i = cuda.grid(1)
    if i == 0:
        cuda.atomic.add(x, 1, 1)
    while cuda.atomic.add(x, 1, 0) == 0:
        pass


@cuda.jit(device=True)
def meets(values: Any, t: Any) -> Any:
    values[t] = t
    cuda.syncthreads()
    return values[63 - t]


def meets_in_a_function(x: Any) -> None:
    values = cuda.shared.array(64, int64)
    x[cuda.threadIdx.x] = meets(values, cuda.threadIdx.x)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (shuffles, "warp operations"),
        (lanes, "reads its lane"),
        (fences, "fences"),
        (prints, "prints"),
        (clocks, "reads a clock"),
        (waits, "may wait in a loop"),
        (meets_in_a_function, "a barrier in a function that it calls"),
    ],
)
def test_what_is_left_alone(function: Any, reason: str) -> None:
    check(function, 2, 1, 64, np.zeros(64, np.int64), refused=reason)


def test_what_raises_is_left_alone() -> None:
    @cuda.jit(coarsen=2, exceptions=True)
    def kernel(x: Any) -> None:
        i = cuda.grid(1)
        if x[i] < 0:
            raise ValueError
        x[i] += 1

    x = np.zeros(64, np.int64)
    kernel[1, 64](x)
    assert (x == 1).all()
    if not os.environ.get("WEFT_COARSEN"):
        assert "raises" in note(kernel)


@pytest.mark.parametrize(
    "wrong", [3, 0, 8, -2, (2, 3), (), (1, 1, 1, 1), "3", "2,2", "blocks:8", "2x2", True, 2.0, (2, "2")]
)
def test_what_coarsen_cannot_be(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="coarsen must be 1, 2 or 4, or a tuple of up to three of these"):
        cuda.jit(saxpy, coarsen=wrong)


def test_blocks_have_the_limits_that_the_program_sees() -> None:
    kernel = cuda.jit(saxpy, coarsen=4)
    x = np.ones(10, np.float32)
    with pytest.raises(cuda.LaunchError, match="2048 threads"):
        kernel[1, 2048](np.float32(1), x, x.copy())
    bound = cuda.jit(saxpy, coarsen=4, launch_bounds=64)
    with pytest.raises(cuda.LaunchError, match="this kernel allows 64 per block"):
        bound[1, 128](np.float32(1), x, x.copy())
    y = x.copy()
    bound[1, 64](np.float32(1), x, y)
    assert (y == 2).all()


def test_recorded_and_prepared_launches() -> None:
    kernel = cuda.jit(saxpy, coarsen=2)
    x, y = cuda.to_device(np.arange(100, dtype=np.float32)), cuda.to_device(np.ones(100, np.float32))
    with cuda.graph() as graph:
        kernel[2, 64](np.float32(2), x, y)
    graph.launch()
    prepared = kernel[2, 64].prepare(np.float32(1), x, y)
    prepared()
    assert (y.copy_to_host() == 3 * np.arange(100) + 1).all()
    graph.set_args(0, np.float32(4), x, y)
    graph.launch()
    assert (y.copy_to_host() == 7 * np.arange(100) + 1).all()
    (recorded,) = graph.launches
    assert recorded.blockdim == (64, 1, 1)


def looks_up(x: Any, table: Any, out: Any) -> None:
    i = cuda.grid(1)
    k = 0
    while table[0] > k:
        if table[i % 3] < 0:
            break
        k += 1
    if i < x.size:
        out[i] = x[i] + k


def test_loops_that_depend_on_what_nobody_writes() -> None:
    x, table = np.arange(100), np.array([5, 6, -1])
    for coarsen in LINES:
        check(looks_up, coarsen, 2, 64, x, table, np.zeros_like(x))
