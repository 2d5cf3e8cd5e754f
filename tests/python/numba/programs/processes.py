"""A program whose child processes run kernels: all start methods of multiprocessing, and subprocess."""

import multiprocessing
import subprocess
import sys

import numpy as np
from numba import cuda, njit


@njit
def twice(x):
    return 2 * x


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = twice(x[i])


def work(n):
    x = cuda.to_device(np.arange(n))
    double[1, 32](x)
    return double.__class__.__module__.partition(".")[0], int(x.copy_to_host().sum())


def main():
    for method in sys.argv[1:]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, *pool.apply(work, (5,)))
    code = "from numba import cuda; print('child', cuda.jit.__module__.partition('.')[0])"
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    main()
