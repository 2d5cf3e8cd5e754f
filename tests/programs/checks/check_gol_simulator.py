"""The game of life on a GPU, against NumPy."""

import numpy as np
from GOL_Simulator import gpu


def after(world):
    padded = np.pad(world, 1)
    rows, columns = world.shape
    around = sum(
        padded[i : i + rows, j : j + columns].astype(int) for i in range(3) for j in range(3) if (i, j) != (1, 1)
    )
    return (around == 3) | (world & (around == 2))


def test_generations():
    world = np.random.default_rng(0).random((70, 90)) < 0.4
    simulator = gpu.Simulator(world)
    expected = world
    for _ in range(5):
        simulator.run(2)
        expected = after(after(expected))
        np.testing.assert_array_equal(simulator[:, :], expected)
    assert expected.any()
