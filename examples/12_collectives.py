"""Collective operations of a block: select elements with a scan, and find medians with a sort."""

import numpy as np
from weft import cuda
from weft.cuda import coop

THREADS = 256


@cuda.jit
def pack(x, least, out, count):
    """Concatenate the elements of at least `least`; the blocks come in any order."""
    i = cuda.grid(1)
    keep = i < x.size and x[i] >= least
    at, found = coop.block.exclusive_sum(keep, aggregate=True)
    begin = 0
    if cuda.threadIdx.x == 0:
        begin = cuda.atomic.add(count, 0, found)
    begin = coop.block.sum(begin)
    if keep:
        out[begin + at] = x[i]


@cuda.jit(launch_bounds=THREADS)
def medians(x, out):
    """Find the median of each row, of which a thread has four elements."""
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    items = cuda.local.array(4, x.dtype)
    for k in range(4):
        items[k] = x[row, k * cuda.blockDim.x + t]
    coop.block.radix_sort_keys(items)
    if t == cuda.blockDim.x // 2:
        out[row] = items[0]


x = np.random.default_rng(1).random((500, 4 * THREADS)).astype(np.float32)

out, count = np.zeros(x.size, np.float32), np.zeros(1, np.int64)
pack[x.size // THREADS, THREADS](x.ravel(), np.float32(0.75), out, count)
np.testing.assert_array_equal(np.sort(out[: count[0]]), np.sort(x[x >= 0.75]))
print(f"{count[0]} of {x.size} elements are 0.75 or more")

middle = np.zeros(len(x), np.float32)
medians[len(x), THREADS](x, middle)
np.testing.assert_array_equal(middle, np.sort(x, axis=1)[:, x.shape[1] // 2])
print("the medians of the rows are right")
