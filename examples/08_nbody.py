"""Gravity between bodies: all pairs, positions staged in shared memory, and device functions that return tuples."""

import math

import numpy as np
from weft import cuda

TILE = 128
SOFTENING = np.float32(1e-3)


@cuda.jit
def pull(dx, dy, dz, mass):
    """Give the acceleration towards a body at a distance."""
    squared = dx * dx + dy * dy + dz * dz + SOFTENING
    factor = mass / (squared * math.sqrt(squared))
    return dx * factor, dy * factor, dz * factor


@cuda.jit
def accelerations(bodies, out):
    tile = cuda.shared.array((TILE, 4), np.float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    n = bodies.shape[0]
    x = y = z = np.float32(0)
    if i < n:
        x, y, z = bodies[i, 0], bodies[i, 1], bodies[i, 2]
    ax = ay = az = np.float32(0)
    for first in range(0, n, TILE):
        if first + t < n:
            for k in range(4):
                tile[t, k] = bodies[first + t, k]
        cuda.syncthreads()
        for j in range(min(TILE, n - first)):
            px, py, pz = pull(tile[j, 0] - x, tile[j, 1] - y, tile[j, 2] - z, tile[j, 3])
            ax += px
            ay += py
            az += pz
        cuda.syncthreads()
    if i < n:
        out[i, 0] = ax
        out[i, 1] = ay
        out[i, 2] = az


def expected_for(bodies, i):
    delta = bodies[:, :3].astype(np.float64) - bodies[i, :3]
    squared = (delta**2).sum(axis=1) + SOFTENING
    return (delta * (bodies[:, 3] / squared**1.5)[:, None]).sum(axis=0)


def main():
    n = 1000
    rng = np.random.default_rng(0)
    bodies = np.concatenate([rng.normal(size=(n, 3)), rng.random((n, 1))], axis=1).astype(np.float32)
    out = np.zeros((n, 3), np.float32)
    accelerations[(n + TILE - 1) // TILE, TILE](bodies, out)
    for i in (0, 1, n // 2, n - 1):
        np.testing.assert_allclose(out[i], expected_for(bodies, i), rtol=1e-3, atol=1e-3)
    # Forces cancel: what each body is pulled by, it pulls with.
    momentum = (out * bodies[:, 3:]).sum(axis=0, dtype=np.float64)
    assert np.abs(momentum).max() < 0.1
    print(f"08_nbody: {n} bodies, {n * n:,} pairs: ok")


if __name__ == "__main__":
    main()
