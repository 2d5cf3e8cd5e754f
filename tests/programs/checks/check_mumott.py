"""mumott's projector that uses CUDA, against the one that numba compiles for the host."""

import numpy as np
import pytest
from mumott.core.geometry import Geometry, GeometryTuple
from mumott.methods.projectors import SAXSProjector, SAXSProjectorCUDA


@pytest.fixture(scope="module")
def geometry():
    made = Geometry()
    made.volume_shape = np.array([9, 8, 7])
    made.projection_shape = np.array([10, 11])
    for angle in np.linspace(0, np.pi, 5):
        c, s = np.cos(angle), np.sin(angle)
        rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
        made.append(GeometryTuple(rotation=rotation, j_offset=0.3, k_offset=-0.2))
    return made


@pytest.fixture
def fields(geometry):
    random = np.random.default_rng(0)
    volume = random.random((*geometry.volume_shape, 3)).astype(np.float32)
    projections = random.random((len(geometry), *geometry.projection_shape, 3)).astype(np.float32)
    return volume, projections


def test_forward(geometry, fields):
    expected = SAXSProjector(geometry).forward(fields[0].astype(np.float64))
    found = np.asarray(SAXSProjectorCUDA(geometry).forward(fields[0]))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-4)
    assert np.abs(expected).max() > 1


def test_adjoint(geometry, fields):
    expected = SAXSProjector(geometry).adjoint(fields[1].astype(np.float64))
    found = np.asarray(SAXSProjectorCUDA(geometry).adjoint(fields[1]))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-4)
    assert np.abs(expected).max() > 1
