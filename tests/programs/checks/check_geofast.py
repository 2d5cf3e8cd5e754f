"""geofast's functions on GPUs, against the same formulas in NumPy."""

import numpy as np
import pytest
from geofast import cuda_kernels

RADIUS = 3959.0


@pytest.fixture(scope="module")
def places():
    random = np.random.default_rng(3)
    return random.uniform(-80, 80, 1000), random.uniform(-179, 179, 1000)


def distances(lat1, lon1, lat2, lon2):
    lat1, lon1, lat2, lon2 = (np.radians(value) for value in (lat1, lon1, lat2, lon2))
    a = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * RADIUS * np.arcsin(np.sqrt(a))


def test_a_gpu_is_found():
    assert cuda_kernels.NUMBA_CUDA_AVAILABLE


def test_haversine(places):
    lats, lons = places
    found = cuda_kernels.haversine_gpu(lats, lons, lats[::-1], lons[::-1])
    np.testing.assert_allclose(found, distances(lats, lons, lats[::-1], lons[::-1]), rtol=1e-9, atol=1e-6)


def test_a_matrix_of_distances(places):
    lats, lons = (values[:70] for values in places)
    found = cuda_kernels.haversine_matrix_gpu(lats, lons, lats[:33], lons[:33])
    expected = distances(lats[:, None], lons[:, None], lats[None, :33], lons[None, :33])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-4)


def test_hexagons(places):
    lats, lons = places
    found = cuda_kernels.hex_keys_gpu(lats, lons, 0.5, 0.7)
    x, y = lons / 0.7, lats / 0.5
    q, r = 2 / 3 * x, -1 / 3 * x + np.sqrt(3) / 3 * y
    s = -q - r
    rounded = [np.round(value) for value in (q, r, s)]
    off = [np.abs(one - other) for one, other in zip(rounded, (q, r, s), strict=True)]
    first = (off[0] > off[1]) & (off[0] > off[2])
    second = ~first & (off[1] > off[2])
    rounded[0][first] = (-rounded[1] - rounded[2])[first]
    rounded[1][second] = (-rounded[0] - rounded[2])[second]
    np.testing.assert_array_equal(found[0], rounded[0])
    np.testing.assert_array_equal(found[1], rounded[1])
