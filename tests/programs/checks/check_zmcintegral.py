"""Integrals by Monte Carlo in Ray's workers, against their values."""

import math

import pytest
import ray
from ZMC import ZMCintegral_multifunctions as multi


@pytest.fixture(scope="module")
def cluster():
    # Ray is started with one GPU: workers without a GPU compute on the CPU.
    ray.init(num_cpus=1, num_gpus=1, include_dashboard=False)
    yield
    ray.shutdown()


def test_workers_are_led_to_weft(cluster):
    @ray.remote
    def implementation():
        from numba import cuda

        return cuda.implementation

    assert ray.get(implementation.remote()) == "weft"


def test_functions_of_several_dimensions(cluster):
    functions = multi.string_manipulation(["math.sin(x[0])+x[1]", "x[0]*x[1]*x[2]", "math.exp(x[0])"])
    domains = [[[0, 1], [0, 2]], [[0, 1]] * 3, [[0, 1]]]
    tasks = [
        multi.MCkernel.remote(domain, function, 50_000) for domain, function in zip(domains, functions, strict=True)
    ]
    found = [float(result[0]) for result in ray.get(tasks)]
    expected = [2 * (1 - math.cos(1)) + 2, 0.125, math.e - 1]
    # Six standard deviations.
    for one, other, sigma in zip(found, expected, (1.3, 0.15, 0.5), strict=True):
        assert one == pytest.approx(other, abs=6 * sigma / math.sqrt(50_000))
