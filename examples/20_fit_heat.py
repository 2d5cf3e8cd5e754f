"""Fitting a simulation: the conductivity of a plate, from its temperatures, by gradients through all time steps."""

import math
from pathlib import Path

import numpy as np
from weft import cuda

SIZE, STEPS, ITERATIONS = 32, 20, 120
MEASURED = (5, 10, 15, 20)
THREADS = (16, 16)
BLOCKS = (SIZE // 16, SIZE // 16)


@cuda.jit
def conductivity(raw, k):
    """Any number becomes a conductivity between 0.02 and 0.22."""
    x, y = cuda.grid(2)
    k[y, x] = 0.02 + 0.2 / (1.0 + math.exp(-raw[y, x]))


@cuda.jit
def step(u, k, out):
    """One time step of the heat equation: heat flows between neighbors by their mean conductivity."""
    x, y = cuda.grid(2)
    flow = 0.0
    if x > 0:
        flow += (k[y, x] + k[y, x - 1]) * (u[y, x - 1] - u[y, x])
    if x < u.shape[1] - 1:
        flow += (k[y, x] + k[y, x + 1]) * (u[y, x + 1] - u[y, x])
    if y > 0:
        flow += (k[y, x] + k[y - 1, x]) * (u[y - 1, x] - u[y, x])
    if y < u.shape[0] - 1:
        flow += (k[y, x] + k[y + 1, x]) * (u[y + 1, x] - u[y, x])
    out[y, x] = u[y, x] + 0.5 * flow


@cuda.jit
def distance(u, measured, loss):
    x, y = cuda.grid(2)
    cuda.atomic.add(loss, 0, (u[y, x] - measured[y, x]) ** 2)


@cuda.jit
def adam(raw, gradient, mean, square, rate, number):
    """Take a step of the optimizer Adam."""
    x, y = cuda.grid(2)
    g = gradient[y, x]
    mean[y, x] = 0.9 * mean[y, x] + 0.1 * g
    square[y, x] = 0.99 * square[y, x] + 0.01 * g * g
    change = mean[y, x] / (1.0 - 0.9**number) / (math.sqrt(square[y, x] / (1.0 - 0.99**number)) + 1e-12)
    raw[y, x] -= rate * change


def simulate(states, k):
    """Run all steps. Each state is a view of one array, so no step overwrites what a derivative needs."""
    for t in range(STEPS):
        step[BLOCKS, THREADS](states[t], k, states[t + 1])


def save(pictures, name):
    """Write gray pictures side by side as a PNG into examples/out if Pillow is installed, and say where."""
    try:
        from PIL import Image
    except ImportError:
        return "no picture: Pillow is not installed"
    folder = Path(__file__).parent / "out"
    folder.mkdir(exist_ok=True)
    scaled = [(255 * (p - p.min()) / (p.max() - p.min())).astype(np.uint8) for p in pictures]
    Image.fromarray(np.kron(np.hstack(scaled), np.ones((6, 6), np.uint8))).save(folder / name)
    return f"see examples/out/{name}"


def main():
    rows, columns = np.mgrid[:SIZE, :SIZE] / SIZE
    true = 0.05 + 0.1 * (np.hypot(rows - 0.35, columns - 0.4) < 0.2) + 0.05 * (rows + columns > 1.4)
    states = cuda.device_array((STEPS + 1, SIZE, SIZE), np.float64)
    states[0] = np.random.default_rng(0).random((SIZE, SIZE))
    simulate(states, cuda.to_device(true))
    measured = states.copy()

    raw, k = cuda.to_device(np.zeros((SIZE, SIZE))), cuda.device_array((SIZE, SIZE), np.float64)
    mean, square = cuda.to_device(np.zeros((SIZE, SIZE))), cuda.to_device(np.zeros((SIZE, SIZE)))
    loss, losses = cuda.to_device(np.zeros(1)), []
    for number in range(1, ITERATIONS + 1):
        loss[0] = 0.0
        with cuda.tape() as tape:
            conductivity[BLOCKS, THREADS](raw, k)
            simulate(states, k)
            for t in MEASURED:
                distance[BLOCKS, THREADS](states[t], measured[t], loss)
        tape.backward(loss)
        adam[BLOCKS, THREADS](raw, tape.gradient(raw), mean, square, 0.2, number)
        losses.append(loss.copy_to_host()[0])

    found = k.copy_to_host()
    error = np.abs(found - true).mean() / true.mean()
    assert losses[-1] < 1e-3 * losses[0], losses[-1] / losses[0]
    assert error < 0.05, error
    shown = save([true, found, states[STEPS].copy_to_host()], "heat.png")
    print(f"20_fit_heat: {SIZE * SIZE} conductivities through {STEPS} steps, {error:.1%} off on average: ok, {shown}")


if __name__ == "__main__":
    main()
