"""your's functions on GPUs for pulses of radio telescopes, against NumPy.

The module is loaded by itself: the package imports what reads telescopes' files.
"""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

PACKAGE = Path(importlib.util.find_spec("your").submodule_search_locations[0])
SPEC = importlib.util.spec_from_file_location("your_utils_gpu", PACKAGE / "utils" / "gpu.py")
gpu = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gpu)


@pytest.fixture
def candidate():
    random = np.random.default_rng(9)
    data = random.integers(0, 200, (300, 64)).astype(np.float32)
    header = SimpleNamespace(dtype=np.float32, tsamp=1e-3)
    frequencies = np.linspace(1500, 1200, 64, dtype=np.float32)
    return SimpleNamespace(data=data, chan_freqs=frequencies, dm=150.0, your_header=header)


def rolled(candidate, dm):
    """The channels, each without the delay that a measure of dispersion makes of it."""
    f = candidate.chan_freqs
    delays = -4148808.0 * dm * (1 / f[0] ** 2 - 1 / f**2) / 1000 / candidate.your_header.tsamp
    return np.stack([np.roll(channel, -int(by)) for channel, by in zip(candidate.data.T, delays, strict=True)])


def test_dedispersion(candidate):
    found = gpu.gpu_dedisperse(candidate).dedispersed
    # A delay that is a whole number but for its last bits may be rounded to the one before it.
    same = (found.T == rolled(candidate, candidate.dm)).all(axis=1)
    assert same.mean() > 0.95
    assert np.array_equal(np.sort(found, axis=0), np.sort(candidate.data, axis=0))


def test_times_and_dispersion(candidate):
    found = gpu.gpu_dmt(candidate).dmt
    assert found.shape == (256, 300)
    for number in (0, 100, 255):
        dm = np.linspace(0, 2 * candidate.dm, 256, dtype=np.float32)[number]
        expected = rolled(candidate, dm).sum(axis=0)
        close = np.isclose(found[number], expected, rtol=1e-5)
        assert close.mean() > 0.9 if number else close.all()
