"""The classifier of fast real-boost bins: fitted and queried on a GPU, against its NumPy and its host."""

import numpy as np
import pytest
from frbb import FastRealBoostBins


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(6)
    x = random.normal(size=(600, 12)).astype(np.float32)
    y = np.where(x[:, 0] + x[:, 3] * x[:, 5] + 0.1 * random.normal(size=600) > 0, 1, -1)
    return x, y


def fitted(data, mode, decision):
    return FastRealBoostBins(T=16, B=8, fit_mode=mode, decision_function_mode=decision).fit(*data)


def test_the_same_is_decided(data):
    found, expected = fitted(data, "numba_cuda", "numba_cuda"), fitted(data, "numpy", "numba_jit")
    assert found.fit_mode == "numba_cuda"
    np.testing.assert_array_equal(found.features_selected_, expected.features_selected_)
    np.testing.assert_allclose(found.logits_, expected.logits_, rtol=1e-4, atol=1e-4)
    x = data[0]
    np.testing.assert_allclose(found.decision_function(x), expected.decision_function(x), rtol=1e-4, atol=1e-4)
    assert (found.predict(x) == data[1]).mean() > 0.8
