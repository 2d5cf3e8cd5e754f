"""A sum over millions of numbers: a grid-stride loop, a tree in shared memory, one atomic addition per block."""

import numpy as np
from weft import cuda

THREADS = 256


@cuda.jit
def block_sums(x, total):
    partial = cuda.shared.array(THREADS, np.float64)
    t = cuda.threadIdx.x
    mine = 0.0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i]
    partial[t] = mine
    cuda.syncthreads()
    width = THREADS // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.add(total, 0, partial[0])


def main():
    x = np.random.default_rng(0).random(4_000_000, np.float32)
    total = cuda.to_device(np.zeros(1))
    block_sums[256, THREADS](cuda.to_device(x), total)
    result = total.copy_to_host()[0]
    np.testing.assert_allclose(result, x.sum(dtype=np.float64), rtol=1e-12)
    print(f"05_reduction: the sum of {x.size:,} numbers is {result:.4f}: ok")


if __name__ == "__main__":
    main()
