"""numba-timer's timer around a kernel, as its page shows it."""

import time

import numpy as np
from numba import cuda
from numba_timer import cuda_timer


@cuda.jit
def increment(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_a_launch_takes_time():
    x = cuda.to_device(np.zeros(1000))
    timer = cuda_timer.Timer()
    began = time.perf_counter()
    timer.start()
    for _ in range(20):
        increment[8, 128](x)
    timer.stop()
    milliseconds = timer.elapsed()
    took = time.perf_counter() - began
    assert 0 < milliseconds <= took * 1000 + 1
    assert timer.elapsed_seconds() == milliseconds / 1000
    assert (x.copy_to_host() == 20).all()
