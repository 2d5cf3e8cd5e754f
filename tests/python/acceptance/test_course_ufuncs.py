"""Rows A6.1 to A6.8: a course's ufuncs, from broadcast sums to a generalized ufunc."""

import math
from math import exp

import numpy as np
import pytest
from weft import cuda, guvectorize, vectorize


@vectorize(["int64(int64, int64)"], target="cuda")
def add_ufunc(x, y):
    return x + y


def test_a6_1_broadcasting():
    a, b = np.array([1, 2, 3, 4]), np.array([10, 20, 30, 40])
    c = np.arange(16).reshape(4, 4)
    for x, y in ((a, b), (b, c), (c, b[:, np.newaxis]), (a, 100)):
        got = add_ufunc(x, y)
        assert type(got) is np.ndarray
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, x + y)


SQRT_2PI = np.float32((2 * math.pi) ** 0.5)


@vectorize(["float32(float32, float32, float32)"], target="cuda")
def gaussian_pdf(x, mean, sigma):
    return math.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * SQRT_2PI)


def test_a6_2_a_normal_distribution():
    x = np.random.default_rng(0).uniform(-3, 3, 1_000_000).astype(np.float32)
    got = gaussian_pdf(x, np.float32(0), np.float32(1))
    assert got.dtype == np.float32
    wide = x.astype(np.float64)
    np.testing.assert_allclose(got, np.exp(-0.5 * wide**2) / math.sqrt(2 * math.pi), rtol=1e-5)
    assert gaussian_pdf(x[0], 0.0, 1.0) == pytest.approx(got[0])


@cuda.jit(device=True)
def polar_to_cartesian(rho, theta):
    return rho * math.cos(theta), rho * math.sin(theta)


@vectorize(["float32(float32, float32, float32, float32)"], target="cuda")
def polar_distance(rho1, theta1, rho2, theta2):
    x1, y1 = polar_to_cartesian(rho1, theta1)
    x2, y2 = polar_to_cartesian(rho2, theta2)
    return ((x1 - x2) ** 2 + (y1 - y2) ** 2) ** 0.5


def test_a6_3_a_device_function_that_returns_a_pair():
    n = 1_000_000
    rng = np.random.default_rng(1)
    rho1, rho2 = rng.uniform(0.5, 1.5, (2, n)).astype(np.float32)
    theta1, theta2 = rng.uniform(-np.pi, np.pi, (2, n)).astype(np.float32)
    got = polar_distance(rho1, theta1, rho2, theta2)
    z1, z2 = rho1 * np.exp(1j * theta1.astype(float)), rho2 * np.exp(1j * theta2.astype(float))
    np.testing.assert_allclose(got, abs(z1 - z2), rtol=1e-4, atol=1e-5)


@vectorize(["int16(int16, int16)"], target="cuda")
def zero_suppress(waveform_value, threshold):
    if waveform_value < threshold:
        result = 0
    else:
        result = waveform_value
    return result


def test_a6_4_zero_suppression():
    noise = np.random.default_rng(2).normal(0, 10, 100_000).astype(np.int16)
    got = zero_suppress(noise, 15)
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, np.where(noise < 15, 0, noise))


@vectorize(["float32(float32, float32)"], target="cuda")
def add_float(x, y):
    return x + y


def test_a6_5_device_arrays():
    n = 100_000
    x = np.arange(n).astype(np.float32)
    y = 2 * x
    x_device, y_device = cuda.to_device(x), cuda.to_device(y)
    assert (x_device.shape, x_device.dtype) == ((n,), np.float32)
    fresh = add_float(x_device, y_device)
    assert isinstance(fresh, cuda.DeviceNDArray)
    out_device = cuda.device_array(shape=(n,), dtype=np.float32)
    add_float(x_device, y_device, out=out_device)
    np.testing.assert_array_equal(out_device.copy_to_host(), x + y)
    np.testing.assert_array_equal(np.asarray(fresh), x + y)


@vectorize(["float32(float32, float32, float32)"], target="cuda")
def make_pulses(i, period, amplitude):
    return max(math.sin(i / period) - 0.3, 0.0) * amplitude


def test_a6_6_arguments_on_the_device_and_numbers():
    n = 100_000
    noise = (np.random.default_rng(3).normal(0, 1, n) * 3).astype(np.float32)
    t = np.arange(n, dtype=np.float32)
    t_device, noise_device = cuda.to_device(t), cuda.to_device(noise)
    pulses = cuda.device_array(shape=(n,), dtype=np.float32)
    waveform = cuda.device_array(shape=(n,), dtype=np.float32)
    make_pulses(t_device, n / 23, 100.0, out=pulses)
    add_float(pulses, noise_device, out=waveform)
    expected = np.maximum(np.sin(t / np.float32(n / 23)) - 0.3, 0) * 100
    np.testing.assert_allclose(pulses.copy_to_host(), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(waveform.copy_to_host(), expected + noise, rtol=1e-3, atol=1e-3)


@vectorize(["float32(float32)"], target="cuda")
def normalize(grayscales):
    return grayscales / 255


@vectorize(["float32(float32, float32)"], target="cuda")
def weigh(values, weights):
    return values * weights


@vectorize(["float32(float32)"], target="cuda")
def activate(values):
    return (exp(values) - exp(-values)) / (exp(values) + exp(-values))


def test_a6_7_a_layer_of_neurons(device):
    n = 100_000_000 if device == "cuda" else 1_000_000
    rng = np.random.default_rng(4)
    grayscales = rng.integers(0, 256, n).astype(np.float32)
    weights = rng.standard_normal(n, np.float32) * np.float32(0.1) + np.float32(0.5)
    gray_device, weights_device = cuda.to_device(grayscales), cuda.to_device(weights)
    normalized = cuda.device_array_like(gray_device)
    weighted = cuda.device_array_like(gray_device)
    activated = cuda.device_array_like(gray_device)
    normalize(gray_device, out=normalized)
    weigh(normalized, weights_device, out=weighted)
    activate(weighted, out=activated)
    expected = np.tanh(grayscales / 255 * weights)
    np.testing.assert_allclose(activated.copy_to_host(), expected, rtol=1e-4, atol=1e-6)


@guvectorize(["(float32[:], float32[:])"], "(i)->()", target="cuda")
def l2_norm(vec, out):
    acc = 0.0
    for value in vec:
        acc += value**2
    out[0] = math.sqrt(acc)


def test_a6_8_a_generalized_ufunc():
    angles = np.random.default_rng(5).uniform(-np.pi, np.pi, 10)
    coords = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert coords.dtype == np.float64
    got = l2_norm(coords)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.ones(10), rtol=1e-6)
