"""Mutants that the sanitizer does not find, each with the reason.

`KNOWN` has mutants without a fault in their memory accesses: the launch does not need the deleted code, or only its
result is wrong.
`MISSED` has faults of kinds that the sanitizer does not check: they count as not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutation import Mutant

BARRIER = "cuda.syncthreads()"
NUMBA_BARRIER = "numba.cuda.syncthreads()"
FENCE = "cuda.threadfence()"
EXACT = "the launch has as many threads as there are elements"
OWN = "each thread goes on with the elements that are its own"

KNOWN: dict[tuple[str, str, str, str], str] = {
    ("dynamic.py", "barrier", BARRIER, "score[0, 0] = 0"): (
        "in the first iteration thread 0 alone goes on, with what it has written itself, and a barrier follows"
    ),
    ("dynamic.py", "barrier", BARRIER, "old[0] = 1"): (
        "in the first iteration thread 0 alone goes on, with what it has written itself, and a barrier follows"
    ),
    ("dynamic.py", "barrier", BARRIER, "older[0] = old[0]"): OWN,
    ("dynamic.py", "initialization", "older[i] = 0", "i = tid + 1"): "it is written again before anybody reads it",
    ("dynamic.py", "guard", "if j >= 0 and j <= n:", BARRIER): "the element is the thread's own: the result is wrong",
    ("scans.py", "initialization", "tree[511] = ZERO", "totals[cuda.blockIdx.x] = tree[511]"): (
        "the element was written before: the result is wrong"
    ),
    ("scans.py", "barrier", BARRIER, "d *= 2"): "in the last iteration each thread has the elements that it stores",
    ("02_grey.py", "guard", "if y < out.shape[0] and x < out.shape[1]:", "x, y = cuda.grid(2)"): EXACT,
    ("test_attention.py", "barrier", NUMBA_BARRIER, "m_i[ii] = -math.inf"): (
        "what was written before is read after the barrier that follows the next tile"
    ),
    ("test_attention.py", "barrier", NUMBA_BARRIER, "O_i[ii][dd] += S[ii][jj] * V[jj + j * B_c, dd]"): (
        "the next iteration writes a tile that no thread reads any more, and reaches a barrier before it changes what "
        "is read here; after the last one each thread reads its own sums"
    ),
    ("test_attention.py", "barrier", BARRIER, "for j in range(K.shape[0] // columns):"): (
        "the tile was last read before the barrier in the middle of the previous iteration"
    ),
    ("test_course_grids.py", "barrier", BARRIER, "sum += a_cache[y, i] * b_cache[i, x]"): "the launch has one tile",
    (
        "test_course_kernels.py",
        "guard",
        "if 0 <= bin_number < histogram_out.shape[0]:",
        "bin_number = np.int32((x[i] - xmin) / bin_width)",
    ): "all values are in the histogram",
    ("test_puzzles.py", "guard", "if i < size:", "local_i = cuda.threadIdx.x"): EXACT,
    ("test_puzzles.py", "guard", "if i >= size:", "local_i = cuda.threadIdx.x"): EXACT,
    ("test_puzzles.py", "barrier", BARRIER, "shared[local_i] = a[i]"): OWN,
    ("test_python_101.py", "guard", "if idx < a.size:", "idx = cuda.grid(1)"): EXACT,
    ("test_python_101_arrays.py", "guard", "if i < a.shape[0] and j < a.shape[1]:", "i, j = cuda.grid(2)"): (
        "its tests need a GPU, and launch as many threads as there are elements"
    ),
    ("test_recurring_arrays.py", "guard", "if i < points.shape[0]:", "i = cuda.grid(1)"): "the launch has one thread",
    ("test_recurring_control.py", "guard", "if i < out.shape[0]:", "i = cuda.grid(1)"): (
        "threads beyond the end access nothing: conditions within are stricter"
    ),
    (
        "test_recurring_control.py",
        "guard",
        "if i < starts.size - 1 and k < starts[i] + my_num_nbs:",
        "for k in range(starts[i] if i < starts.size - 1 else 0, edges.size):",
    ): "the loop's bounds are those of the array: the result is wrong",
    ("test_recurring_control.py", "guard", "if i < starts.size - 1:", "best = candidate"): (
        "the rows are there, and the variables are not memory: the result is wrong"
    ),
    ("test_recurring_control.py", "guard", "if i >= n:", "i = cuda.threadIdx.x"): (
        "the elements are there, and negative indices count from the end: the result is wrong"
    ),
    ("test_recurring_control.py", "barrier", BARRIER, "buffer[i] = -value"): OWN,
    ("test_recurring_control.py", "guard", "if i < b.size:", "i = cuda.grid(1)"): EXACT,
    ("test_tiles_and_sums.py", "guard", "if i < c.size:", "i = cuda.grid(1)"): EXACT,
    (
        "test_tiles_and_sums.py",
        "guard",
        "if i < z.size:",
        "x, y, z = a.view(cuda.float32x4), b.view(cuda.float32x4), c.view(cuda.float32x4)",
    ): EXACT,
    ("test_tiles_and_sums.py", "initialization", "s_a[ty, tx] = 0", "for tile in range(cuda.gridDim.x):"): (
        "the previous tile's rest is multiplied by the other tile's zeros, or added to sums that are not stored"
    ),
    ("test_tiles_and_sums.py", "initialization", "s_b[ty, tx] = 0", "s_a[ty, tx] = 0"): (
        "the previous tile's rest is multiplied by the other tile's zeros, or added to sums that are not stored"
    ),
}
"""By file, kind, the line as it was, and the line before it."""

RELAXED = (
    "it orders atomic operations, or elements of one thread: there is no race, but the order of operations at "
    "different addresses is not guaranteed without a fence"
)

MISSED: dict[tuple[str, str, str, str], str] = {
    ("test_recurring_control.py", "fence", FENCE, "cuda.atomic.add(totals, block, total)"): RELAXED,
    ("test_recurring_control.py", "fence", FENCE, "pass"): RELAXED,
    ("test_recurring_control.py", "fence", FENCE, "cuda.atomic.add(x, i, total / lower[i, i])"): RELAXED,
    ("test_recurring_control.py", "fence", FENCE, "out[i] = cuda.atomic.add(turn, 0, 1)"): RELAXED,
}
"""The same of faults."""


def reason(known: dict[tuple[str, str, str, str], str], mutant: Mutant) -> str | None:
    """Why a mutant is not found; None if there is no explanation."""
    return known.get((mutant.path.name, mutant.kind, mutant.text, mutant.before))
