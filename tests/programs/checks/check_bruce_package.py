"""Light curves of binary stars: the likelihoods that a kernel and a reduction give, against those of the host."""

import importlib

import numpy as np
import pytest
from numba import cuda

# A function of this name hides the module.
lc = importlib.import_module("bruce.binarystar.lc")


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
