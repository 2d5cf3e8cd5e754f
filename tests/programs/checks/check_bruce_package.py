"""Radial velocities and light curves of binary stars: the kernels' likelihoods, against those of the host."""

import math

import numpy as np
import pytest
from bruce.binarystar import lc, rv
from numba import cuda


def test_radial_velocities():
    random = np.random.default_rng(7)
    time = np.linspace(0, 10, 3000)
    observed = random.normal(rv.rv(time, fs=0.2, fc=0.3), 1)
    error = random.uniform(0.5, 1.5, time.size)
    expected = rv.rv(time, observed, error, J=0.2, fs=0.2, fc=0.3)
    inclination = math.pi / 2
    found = cuda.to_device(np.empty_like(time))
    arrays = [cuda.to_device(values) for values in (time, observed, error)]
    # The kernel has no guard.
    rv.kernel_rv[30, 100](*arrays, 0.2, 0.0, 1.0, 10.0, 0.2, 0.3, 10.0, 0.0, inclination, 1e-5, found)
    assert rv.sum_reduce(found) == pytest.approx(expected, rel=1e-9)


def test_light_curves():
    random = np.random.default_rng(8)
    time = np.linspace(-0.6, 0.6, 2000)
    settings = {"t_zero": 0.0, "period": 1.0, "radius_1": 0.2, "k": 0.2, "incl": 90.0}
    observed = random.normal(lc.lc(time, **settings), 1e-3)
    error = np.full(time.size, 1e-3)
    expected = lc.lc(time, observed, error, **settings)
    found = lc.lc(
        *(cuda.to_device(values) for values in (time, observed, error)),
        **settings,
        gpu=1,
        loglike=cuda.to_device(np.empty_like(time)),
        blocks=20,
        threads_per_block=100,
        spots=cuda.to_device(np.array([])),
    )
    assert found == pytest.approx(expected, rel=1e-6)
