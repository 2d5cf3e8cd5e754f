"""The price of an option by Monte Carlo over several GPUs and processes with MPI.

An Asian call pays the difference between the geometric mean of a share's price and the strike, if it is positive; its
price has a closed form. Each process simulates its share of the paths. The random numbers of a path depend only on the
number of the path, so the paths are the same for any number of processes.

    mpiexec -n 4 python 14_mpi_monte_carlo.py
"""

import math

import numpy as np
from mpi4py import MPI
from weft import cuda, workers

PATHS = 1 << 20
STEPS = 16
SEED = 11
PRICE, STRIKE, RATE, VOLATILITY, YEARS = 100.0, 105.0, 0.03, 0.25, 1.0


@cuda.jit
def simulate(first, payoffs):
    """Draw the paths from number `first` on: what each pays at the end, as it is worth today."""
    i = cuda.grid(1)
    if i < payoffs.size:
        step = YEARS / STEPS
        drift = (RATE - VOLATILITY * VOLATILITY / 2) * step
        logarithm = math.log(PRICE)
        total = 0.0
        for k in range(STEPS // 2):
            # Two normal numbers take four words of the path's sequence.
            one, other = cuda.random.philox_normal_float64x2(SEED, first + i, 4 * k)
            logarithm += drift + VOLATILITY * math.sqrt(step) * one
            total += logarithm
            logarithm += drift + VOLATILITY * math.sqrt(step) * other
            total += logarithm
        payoffs[i] = math.exp(-RATE * YEARS) * max(math.exp(total / STEPS) - STRIKE, 0.0)


def exact():
    """Give the price as it is known: the mean's logarithm is normally distributed."""
    times = YEARS * np.arange(1, STEPS + 1) / STEPS
    mean = math.log(PRICE) + (RATE - VOLATILITY**2 / 2) * times.mean()
    deviation = VOLATILITY * math.sqrt(np.minimum.outer(times, times).mean())
    d = (mean - math.log(STRIKE)) / deviation

    def normal(x):
        return (1 + math.erf(x / math.sqrt(2))) / 2

    undiscounted = math.exp(mean + deviation**2 / 2) * normal(d + deviation) - STRIKE * normal(d)
    return math.exp(-RATE * YEARS) * undiscounted


def by_numpy(count):
    """Estimate the same by NumPy, with random numbers of its own; give the standard error, too."""
    normal = np.random.default_rng(SEED).normal(size=(count, STEPS))
    step = YEARS / STEPS
    moves = (RATE - VOLATILITY**2 / 2) * step + VOLATILITY * math.sqrt(step) * normal
    mean = np.exp((math.log(PRICE) + moves.cumsum(axis=1)).mean(axis=1))
    payoffs = math.exp(-RATE * YEARS) * np.maximum(mean - STRIKE, 0)
    return payoffs.mean(), payoffs.std() / math.sqrt(count)


def main():
    world = MPI.COMM_WORLD
    # Its number among the processes of its machine.
    workers.select_gpu(world.Split_type(MPI.COMM_TYPE_SHARED).rank)
    first, last = (PATHS * rank // world.size for rank in (world.rank, world.rank + 1))
    payoffs = cuda.device_array(last - first, np.float64)
    simulate[(payoffs.size + 255) // 256, 256](first, payoffs)
    paid = payoffs.copy_to_host()
    mine = np.array([paid.sum(), (paid**2).sum()])
    sums = np.zeros(2)
    world.Reduce(mine, sums, op=MPI.SUM, root=0)
    if world.rank == 0:
        price = sums[0] / PATHS
        error = math.sqrt((sums[1] / PATHS - price**2) / PATHS)
        other, its_error = by_numpy(200_000)
        right = abs(price - exact()) < 5 * error and abs(price - other) < 5 * math.hypot(error, its_error)
        word = "ok" if right else "wrong"
        print(f"14_mpi_monte_carlo: {price:.4f} of {PATHS} paths in {world.size} processes: {word}")


if __name__ == "__main__":
    main()
