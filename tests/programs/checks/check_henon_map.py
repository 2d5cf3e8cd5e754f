"""The Hénon map's tracks on a GPU, against those that numba computes on the host."""

import henon_map
import numpy as np
import pytest


def engines():
    random = np.random.default_rng(4)
    start = [random.uniform(-0.4, 0.4, 500) for _ in range(4)]
    make = henon_map.partial_track.generate_instance
    # The limit is one of the square of the radius on a GPU, and of half of that on the host.
    return make(*start, limit=20.0, cuda_device=True), make(*start, limit=10.0, cuda_device=False)


@pytest.mark.parametrize("kind", ["basic", "sps"])
def test_tracks(kind):
    found, expected = (engine.compute(50, 16.0, modulation_kind=kind) for engine in engines())
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_forth_and_back():
    engine = engines()[0]
    *_, steps = engine.compute(20, 16.0)
    back = engine.inverse_compute(20, 16.0)
    kept = steps == steps.max()
    start = engine.get_zero_data()
    assert kept.sum() > 100
    for one, other in zip(back[:4], start[:4], strict=True):
        np.testing.assert_allclose(one[kept], other[kept], rtol=1e-6, atol=1e-6)
