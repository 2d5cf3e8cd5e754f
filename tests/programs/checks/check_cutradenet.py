"""Trades on networks keep what there is, and the mean of what the agents have."""

import networkx as nx
import numpy as np
import pytest
from cuTradeNet import Models

MODELS = {
    "YardSale": {"f": 0.3},
    "MergerSpinoff": {},
    "Constant": {"w": 1e-3},
    "DragulescuYakovenko": {},
    "ChakrabortiChakrabarti": {},
    "Allin": {},
}


@pytest.mark.parametrize("name", MODELS)
def test_wealth_is_kept(name):
    graphs = [nx.random_regular_graph(4, 30, seed=seed) for seed in range(3)]
    model = getattr(Models, name)(G=graphs, **MODELS[name])
    before = model.wealths
    model.termalize(20)
    after = model.wealths
    assert not np.array_equal(before, after)
    np.testing.assert_allclose(after.sum(), before.sum(), rtol=1e-3)
    mean = model.epoch(10)
    np.testing.assert_allclose(mean.sum(), before.sum(), rtol=1e-3)
