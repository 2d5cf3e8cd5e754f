"""Block coarsening (`cuda.jit(coarsen_blocks=(2, 2))`): the same bits as without, or a reason why not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from weft import cuda, float32, int64

LINES = [{"coarsen_blocks": 2}, {"coarsen_blocks": 4}]
PLANES = [
    *LINES,
    {"coarsen_blocks": (1, 2)},
    {"coarsen_blocks": (2, 2)},
    {"coarsen_blocks": (4, 4)},
    {"coarsen": (2, 1), "coarsen_blocks": (1, 2)},
    {"coarsen": (1, 4), "coarsen_blocks": 2},
]


def note(kernel: Any) -> str:
    """How the only kernel of a dispatcher was coarsened, or why not."""
    (compiled,) = kernel.overloads.values()
    return str(compiled.coarsening)


def check(
    function: Any, coarsen: dict[str, Any], grid: Any, block: Any, *args: Any, told: str = "blocks in one"
) -> None:
    """Compare a kernel's arrays with those of the uncoarsened kernel, and check the remarks about it."""
    plain = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    cuda.jit(function, coarsen=1)[grid, block](*plain)
    kernel = cuda.jit(function, **coarsen)
    merged = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    kernel[grid, block](*merged)
    for number, (expected, found) in enumerate(zip(plain, merged, strict=True)):
        if isinstance(expected, np.ndarray):
            assert expected.tobytes() == found.tobytes(), f"argument {number} with {coarsen}"
    if os.environ.get("WEFT_COARSEN"):
        return  # the setting overrides the factor, so the reason may differ
    if told:
        assert told in note(kernel)
    else:
        assert note(kernel) == ""


def numbers(out: Any) -> None:
    x, y = cuda.grid(2)
    row = out[y, x]
    row[0], row[1], row[2] = cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
    row[3], row[4], row[5] = cuda.gridDim.x, cuda.gridDim.y, cuda.gridDim.z
    row[6], row[7] = cuda.threadIdx.x, cuda.threadIdx.y
    row[8], row[9] = cuda.blockDim.x, cuda.blockDim.y
    row[10], row[11] = cuda.gridsize(2)


@pytest.mark.parametrize("coarsen", PLANES)
def test_blocks_have_the_numbers_that_the_program_asked_for(coarsen: dict[str, Any]) -> None:
    check(numbers, coarsen, (4, 8), (8, 4), np.zeros((32, 32, 12), np.int64))


def planes(out: Any) -> None:
    x, y, z = cuda.grid(3)
    out[z, y, x] = cuda.blockIdx.z * 100 + cuda.gridDim.z * 10 + cuda.threadIdx.z


def test_blocks_along_z() -> None:
    for coarsen in (
        {"coarsen_blocks": (1, 1, 2)},
        {"coarsen_blocks": (1, 2, 4)},
        {"coarsen": (1, 1, 2), "coarsen_blocks": 2},
    ):
        check(planes, coarsen, (2, 2, 4), (4, 2, 2), np.zeros((8, 4, 8), np.int64))


def product(a: Any, b: Any, c: Any) -> None:
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("coarsen", PLANES)
def test_matrix_product(coarsen: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((61, 21), dtype=np.float32), rng.random((21, 50), dtype=np.float32)
    check(product, coarsen, (8, 8), (8, 8), a, b, np.zeros((61, 50), np.float32))


@pytest.mark.parametrize(
    ("coarsen", "grid"),
    [
        ({"coarsen_blocks": 2}, (7, 8)),
        ({"coarsen_blocks": (1, 2)}, (8, 7)),
        ({"coarsen_blocks": (4, 4)}, (8, 10)),
        ({"coarsen_blocks": (2, 2)}, (9, 8)),
        ({"coarsen": 4, "coarsen_blocks": (1, 4)}, (8, 9)),
    ],
)
def test_grids_that_are_not_divisible_run_as_they_are(coarsen: dict[str, Any], grid: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((50, 9), dtype=np.float32), rng.random((9, 50), dtype=np.float32)
    check(product, coarsen, grid, (8, 8), a, b, np.zeros((50, 50), np.float32), told="")
    kernel = cuda.jit(product, **coarsen)
    # One after the other, for the same kernel.
    for each in ((8, 8), grid, (16, 8)):
        c = np.zeros((50, 50), np.float32)
        kernel[each, (8, 8)](a, b, c)
        assert np.allclose(c, a @ b)
    assert len(kernel.overloads) == 1


def strided(x: Any, y: Any) -> None:
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if x[i] % 3 == 0:
            continue
        y[i] = x[i] * 2 + cuda.blockIdx.x


def early(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i >= x.size:
        return
    for k in range(x[i] % 7):
        if k * 3 == x[i] % 11:
            return
        y[i] += k + cuda.gridDim.x


@cuda.jit(device=True)
def my_block(offset: Any) -> Any:
    return cuda.blockIdx.x * 3 + offset


@cuda.jit(device=True)
def twice_removed(values: Any, offset: Any) -> Any:
    return values[my_block(0) % values.size] + my_block(offset) + cuda.gridDim.x


def calls(x: Any, y: Any) -> None:
    own = cuda.local.array(4, int64)
    i = cuda.grid(1)
    for k in range(4):
        own[k] = i * k + my_block(k)
    if i < x.size:
        y[i] = twice_removed(x, 5) + own[i % 4]


@pytest.mark.parametrize("function", [strided, early, calls])
@pytest.mark.parametrize("n", [1, 63, 130, 256, 1000])
def test_loops_returns_and_functions(function: Any, n: int) -> None:
    x = np.random.default_rng(n).integers(0, 90, n)
    for coarsen in LINES:
        check(function, coarsen, 4, 64, x, np.zeros_like(x))


def meets(x: Any, y: Any) -> None:
    """Barriers around memory accesses, and a trip count that is the block's index."""
    t, base = cuda.threadIdx.x, cuda.blockIdx.x * cuda.blockDim.x
    for turn in range(cuda.blockIdx.x + 1):
        y[base + t] += x[base + (t + turn) % 64]
        cuda.syncthreads()
        x[base + t] += y[base + 63 - t]
        cuda.syncthreads()
    if cuda.blockIdx.x % 2 == 0:
        return
    cuda.syncthreads()
    y[base + t] -= x[base + (t * 5) % 64]


def test_barriers_without_shared_memory() -> None:
    x = np.random.default_rng(3).integers(-9, 9, 512)
    for coarsen in LINES:
        check(meets, coarsen, 8, 64, x, np.zeros_like(x))


def adds(x: Any, sums: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(sums, x[i] % 8 + cuda.blockIdx.x % 2, 1)


def test_atomic_steps() -> None:
    x = np.random.default_rng(4).integers(0, 1000, 900)
    for coarsen in LINES:
        check(adds, coarsen, 16, 64, x, np.zeros(9, np.int64))


def has_static(x: Any) -> None:
    values = cuda.shared.array(64, int64)
    values[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    x[cuda.grid(1)] = values[63 - cuda.threadIdx.x]


def has_dynamic(x: Any) -> None:
    values = cuda.shared.array(0, int64)
    values[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    x[cuda.grid(1)] = values[63 - cuda.threadIdx.x]


def counts(x: Any) -> None:
    x[cuda.grid(1)] += cuda.syncthreads_count(x[cuda.grid(1)] > 5)


def waits(x: Any) -> None:
    if cuda.blockIdx.x == 0:
        cuda.atomic.add(x, 1, 1)
    while cuda.atomic.add(x, 1, 0) == 0:
        cuda.syncthreads()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (has_static, "not coarsened: its blocks cannot be merged: it has shared memory"),
        (has_dynamic, "not coarsened: its blocks cannot be merged: it has shared memory"),
        (counts, "cannot be merged: its barriers reduce over the threads"),
        (waits, "may wait in a loop"),
    ],
)
def test_what_is_left_alone(function: Any, reason: str) -> None:
    x = np.arange(256)
    shared = 512 if function is has_dynamic else 0
    kernel = cuda.jit(function, coarsen_blocks=2)
    plain = cuda.jit(function, coarsen=1)
    found, expected = x.copy(), x.copy()
    kernel[4, 64, None, shared](found)
    plain[4, 64, None, shared](expected)
    assert function is waits or (found == expected).all()
    if not os.environ.get("WEFT_COARSEN"):
        assert reason in note(kernel)


@pytest.mark.parametrize(
    ("coarsen", "blocks"),
    [(2, 2), ((1, 4), (4, 2)), ((1, 1, 2), (2, 2, 2)), (None, "2"), (None, "blocks:2"), (None, 3)],
)
def test_what_coarsen_blocks_cannot_be(coarsen: Any, blocks: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^coarsen(_blocks must be 1, 2 or 4| and coarsen_blocks must be for different)"
    ):
        cuda.jit(product, coarsen=coarsen, coarsen_blocks=blocks)


def test_the_estimate_chooses_blocks_itself() -> None:
    with pytest.raises(ValueError, match="coarsen='auto' chooses factors of blocks, too"):
        cuda.jit(product, coarsen="auto", coarsen_blocks=2)


def test_ones_change_nothing() -> None:
    a, c = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    for options, same in (
        ({"coarsen_blocks": (1, 1)}, {"coarsen": 1}),
        ({"coarsen": (2, 1), "coarsen_blocks": 1}, {"coarsen": 2}),
    ):
        kernels = [cuda.jit(product, **each) for each in (options, same)]
        for kernel in kernels:
            kernel[(2, 2), (8, 8)](a, a, c)
        assert note(kernels[0]) == note(kernels[1])


def test_recorded_and_prepared_launches() -> None:
    kernel = cuda.jit(strided, coarsen_blocks=2)
    x, y = cuda.to_device(np.arange(100)), cuda.to_device(np.zeros(100, np.int64))
    with cuda.graph() as graph:
        kernel[2, 32](x, y)
    graph.launch()
    once = y.copy_to_host()
    kernel[2, 32].prepare(x, y)()
    assert (y.copy_to_host() == once).all()
    other = cuda.to_device(np.zeros(100, np.int64))
    graph.set_args(0, x, other)
    graph.launch()
    assert (other.copy_to_host() == once).all()
    (recorded,) = graph.launches
    assert (recorded.griddim, recorded.blockdim) == ((2, 1, 1), (32, 1, 1))


def test_the_setting_is_for_all_kernels() -> None:
    program = """
import numpy as np
from weft import cuda
@cuda.jit
def k(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += cuda.blockDim.x
@cuda.jit(coarsen=4)
def l(x):
    x[cuda.grid(1)] += 1
x = np.zeros(90, np.int64)
k[3, 32](x)
assert (x == 32).all()
l[3, 30](x[:90])
l[2, 32](x[:64])
print([c.coarsening for d in (k, l) for c in d.overloads.values()])
"""
    expected: list[tuple[str, str, str | None]] = [
        ("2", "", "['2x1x1 threads in one, strided in x', '2x1x1 threads in one, strided in x']"),
        ("1,4", "", "['', '']"),
        ("off", "", "['', '']"),
        ("kernel", "", "['', '4x1x1 threads in one, strided in x']"),
        ("3", "", None),
        ("2x2", "", None),
        ("", "3", None),
        ("", "2", "['', '2x1x1 blocks in one']"),
        ("1", "2", "['', '2x1x1 blocks in one']"),
        ("2", "2", None),
    ]
    for threads, blocks, shown in expected:
        environment = os.environ | {"WEFT_COARSEN": threads, "WEFT_COARSEN_BLOCKS": blocks}
        ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        if shown is None:
            assert ran.returncode != 0
            assert "WEFT_COARSEN" in ran.stderr
        else:
            assert ran.stdout.strip() == shown, (threads, blocks, ran.stderr)
