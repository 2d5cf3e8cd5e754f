"""Trades on networks keep what there is, and the mean of what the agents have."""

import networkx
import numpy as np
import pytest
from cuTradeNet.Models import Allin, Constant, DragulescuYakovenko, MergerSpinoff, YardSale


def graphs():
    return [networkx.random_regular_graph(4, 30, seed=seed) for seed in range(3)]


MODELS = {
    "AiNetModel": (Allin, ()),
    "YSNetModel": (YardSale, ()),
    "MSNetModel": (MergerSpinoff, ()),
    "CNetModel": (Constant, ()),
    "DYNetModel": (DragulescuYakovenko, ()),
}


@pytest.mark.parametrize("name", MODELS)
def test_wealth_is_kept(name):
    module, args = MODELS[name]
    model = getattr(module, name)(graphs(), *args)
    before = model.wealths
    model.termalize(20)
    after = model.wealths
    assert not np.array_equal(before, after)
    assert (after >= 0).all()
    np.testing.assert_allclose(after.sum(), before.sum(), rtol=1e-3)
    mean = model.epoch(10)
    np.testing.assert_allclose(mean.sum(), before.sum(), rtol=1e-3)
