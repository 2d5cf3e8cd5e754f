"""A first kernel: y = a * x + y, one thread for each element."""

import numpy as np
from weft import cuda


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:  # the last block may have threads to spare
        y[i] = a * x[i] + y[i]


def main():
    n = 1_000_000
    x = np.linspace(0, 1, n, dtype=np.float32)
    y = np.ones(n, dtype=np.float32)
    expected = 2 * x + y

    threads = 256
    blocks = (n + threads - 1) // threads
    d_x, d_y = cuda.to_device(x), cuda.to_device(y)
    saxpy[blocks, threads](np.float32(2), d_x, d_y)

    np.testing.assert_allclose(d_y.copy_to_host(), expected, rtol=1e-6)
    print(f"01_saxpy: {n:,} elements on {cuda.get_current_device().name}: ok")


if __name__ == "__main__":
    main()
