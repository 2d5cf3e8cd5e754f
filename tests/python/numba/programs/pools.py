"""A program that sends kernels, njit functions and device arrays to the workers of process pools of several kinds."""

import sys

import numpy as np
from numba import config, cuda, njit, types

FACTOR = 3


@njit
def even(n):
    return n % 2 == 0


@njit
def odd(n):
    return not even(n)


@njit
def scaled(x, by=FACTOR):
    return x * by


@cuda.jit
def kernel(x):
    i = cuda.grid(1)
    part = cuda.local.array(1, types.float64)
    if i < x.size:
        part[0] = scaled(x[i])
        x[i] = part[0]


def work(launched, x, n):
    """The globals that this function reads are sent to the worker by value, including modules of numba."""
    launched(x)
    own = cuda.to_device(np.arange(n) * scaled(1.0))
    kernel.forall(n)(own)
    names = cuda.__name__, config.__name__, cuda.implementation, odd(n)
    return x, own.copy_to_host().sum(), *names


def check(name, run):
    x, total, *names = run(work, kernel[1, 8], cuda.to_device(np.arange(4.0)), 5)
    print(name, x.copy_to_host().tolist(), total, *names)


def concurrent(method):
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context(method)) as pool:
        check(method, lambda function, *args: pool.submit(function, *args).result())


def joblib():
    import joblib

    check("joblib", lambda function, *args: joblib.Parallel(2, "loky")([joblib.delayed(function)(*args)] * 2)[1])
    joblib.externals.loky.get_reusable_executor().shutdown()


def dask():
    import distributed

    with (
        distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        distributed.Client(cluster) as client,
    ):
        check("dask", lambda function, *args: client.submit(function, *args, pure=False).result())


def main():
    for name in sys.argv[1:]:
        if name in ("joblib", "dask"):
            globals()[name]()
        else:
            concurrent(name)


if __name__ == "__main__":
    main()
