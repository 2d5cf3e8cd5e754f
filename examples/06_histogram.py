"""A histogram: each block counts in its own shared memory, then adds its counts to the global ones."""

import numpy as np
from weft import cuda

BINS = 256


@cuda.jit
def histogram(data, counts):
    mine = cuda.shared.array(BINS, np.int32)
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        mine[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, data[i], 1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, mine[b])


def main():
    rng = np.random.default_rng(0)
    data = np.clip(rng.normal(128, 40, 2_000_000), 0, 255).astype(np.uint8)
    counts = np.zeros(BINS, np.int32)
    histogram[128, 256](data, counts)
    np.testing.assert_array_equal(counts, np.bincount(data, minlength=BINS))
    print(f"06_histogram: {data.size:,} bytes, most often {counts.argmax()}: ok")


if __name__ == "__main__":
    main()
