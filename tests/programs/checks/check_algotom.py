"""algotom's functions with `gpu=True`, against the same with `gpu=False`."""

import numpy as np
import pytest
from algotom.rec import reconstruction, vertrec
from algotom.util import correlation


@pytest.fixture(scope="module")
def sinogram():
    """That of two disks."""
    angles = np.linspace(0, np.pi, 91)[:, None]
    x = np.arange(64)[None, :] - 31.5
    found = np.zeros((91, 64))
    for at, where, radius in ((10, 0.3, 6), (15, 2.0, 9)):
        distance = x - at * np.cos(angles - where)
        found += 2 * np.sqrt(np.maximum(radius**2 - distance**2, 0))
    return found.astype(np.float32)


def test_back_projection(sinogram):
    settings = {"center": 31.5, "apply_log": False, "ratio": 1.0}
    found = reconstruction.fbp_reconstruction(sinogram, gpu=True, **settings)
    expected = reconstruction.fbp_reconstruction(sinogram, gpu=False, **settings)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert expected.max() > 0.5


def test_back_projection_of_a_chunk(sinogram):
    chunk = np.stack([sinogram, 2 * sinogram], axis=1)
    angles = np.linspace(0, np.pi, len(sinogram))
    found = reconstruction.back_projection_gpu_chunk(chunk, angles, 31.5, edge_pad=True)
    for number in range(2):
        one = reconstruction.back_projection_cpu(np.ascontiguousarray(chunk[:, number]), angles, 31.5, True)
        np.testing.assert_allclose(found[:, number], one, rtol=1e-3, atol=0.3)


def test_a_vertical_slice():
    projections = np.random.default_rng(2).random((37, 24, 32)).astype(np.float32)
    settings = {"center": 15.5, "apply_log": False, "show_progress": False}
    found = vertrec.vertical_reconstruction(projections, 15, gpu=True, **settings)
    expected = vertrec.vertical_reconstruction(projections, 15, gpu=False, **settings)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("shape", [(40, 40), (5, 30, 30)])
def test_a_correlation_map(shape):
    random = np.random.default_rng(1)
    ref = random.random(shape).astype(np.float32)
    mat = ref[..., 8:21, 8:21].copy()
    found = correlation.generate_correlation_map(ref, mat, gpu=True)
    expected = correlation.generate_correlation_map(ref, mat, gpu=False)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_local_shifts():
    random = np.random.default_rng(1)
    ref = random.random((3, 40, 40)).astype(np.float32)
    mat = np.roll(ref, (1, 2), axis=(1, 2))
    settings = {"dim": 2, "win_size": 7, "margin": 5, "method": "diff"}
    found = correlation.find_local_shifts(ref, mat, gpu=True, **settings)
    expected = correlation.find_local_shifts(ref, mat, gpu=False, **settings)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one[10:-10, 10:-10], other[10:-10, 10:-10], atol=1e-3)
