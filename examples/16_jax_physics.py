"""Kernels as functions of JAX: a step of the heat equation under jit, vmap and grad, and an attention layer."""

import math
import sys

import numpy as np
from weft import cuda

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("16_jax_physics: JAX is not installed; nothing is run")
    sys.exit()


@cuda.jit("void(float32[:, :], float32, float32[:, :])")
def heat_step(u, rate, out):
    """One explicit step of the heat equation; the boundary keeps its values."""
    x, y = cuda.grid(2)
    height, width = u.shape
    if y < height and x < width:
        inside = 0 < y < height - 1 and 0 < x < width - 1
        change = cuda.float32(0)
        if inside:
            change = u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - 4 * u[y, x]
        out[y, x] = u[y, x] + rate * change


@cuda.jit("void(float32[:, :], float32, float32[:, :])")
def heat_step_back(grad, rate, out):
    """Return the transposed step: the gradient of a step's input, from that of its result."""
    x, y = cuda.grid(2)
    height, width = grad.shape
    if y < height and x < width:
        total = grad[y, x]
        if 0 < y < height - 1 and 0 < x < width - 1:
            total -= 4 * rate * grad[y, x]
        if y >= 2 and 0 < x < width - 1:
            total += rate * grad[y - 1, x]
        if y < height - 2 and 0 < x < width - 1:
            total += rate * grad[y + 1, x]
        if x >= 2 and 0 < y < height - 1:
            total += rate * grad[y, x - 1]
        if x < width - 2 and 0 < y < height - 1:
            total += rate * grad[y, x + 1]
        out[y, x] = total


@cuda.jit("void(float32[:, :], float32[:, :], float32[:, :], float32[:, :])")
def attention(q, k, v, out):
    """One thread for each query: a softmax that is computed while the keys are read."""
    i = cuda.grid(1)
    if i < q.shape[0]:
        scale = 1 / math.sqrt(q.shape[1])
        largest, total = cuda.float32(-1e30), cuda.float32(0)
        for d in range(v.shape[1]):
            out[i, d] = 0
        for j in range(k.shape[0]):
            score = cuda.float32(0)
            for d in range(q.shape[1]):
                score += q[i, d] * k[j, d]
            score *= scale
            new = max(largest, score)
            shrink, weight = math.exp(largest - new), math.exp(score - new)
            total = total * shrink + weight
            for d in range(v.shape[1]):
                out[i, d] = out[i, d] * shrink + weight * v[j, d]
            largest = new
        for d in range(v.shape[1]):
            out[i, d] /= total


def over_grid(u):
    return ((u.shape[1] + 15) // 16, (u.shape[0] + 15) // 16), (16, 16)


step_back = heat_step_back.as_jax_call(
    launch=lambda grad: (((grad.shape[1] + 15) // 16, (grad.shape[0] + 15) // 16), (16, 16)), out=cuda.like("grad")
)
step = heat_step.as_jax_call(launch=over_grid, out=cuda.like("u"), backward=lambda grad, u, rate: step_back(grad, rate))
attend = attention.as_jax_call(
    launch=lambda q: ((q.shape[0] + 63) // 64, 64),
    out=cuda.shaped(lambda q, v: (q.shape[0], v.shape[1]), dtype="q", fill=0),
)


def simulate(u):
    """Return the temperatures after 20 steps: the kernel is called inside a loop that JAX compiles."""
    return jax.lax.fori_loop(0, 20, lambda _, u: step(u, 0.2), u)


def reference_step(u, rate):
    inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return u.at[1:-1, 1:-1].add(rate * inner)


def reference_attention(q, k, v):
    with jax.default_matmul_precision("highest"):  # a GPU's own choice is TF32
        return jax.nn.softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def main():
    rng = np.random.default_rng(0)
    u = jnp.asarray(rng.random((48, 64), np.float32))
    expected = u
    for _ in range(20):
        expected = reference_step(expected, 0.2)
    np.testing.assert_allclose(jax.jit(simulate)(u), expected, rtol=1e-5, atol=1e-6)

    several = jnp.stack([u, 2 * u, u + 1])
    np.testing.assert_allclose(jax.vmap(simulate)(several)[1], 2 * expected, rtol=1e-5, atol=1e-5)

    weights = jnp.asarray(rng.random(u.shape, np.float32))
    ours = jax.jit(jax.grad(lambda u: (step(step(u, 0.2), 0.2) * weights).sum()))(u)
    theirs = jax.grad(lambda u: (reference_step(reference_step(u, 0.2), 0.2) * weights).sum())(u)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)

    q, k, v = (jnp.asarray(rng.standard_normal((8, 40, 16), np.float32)) for _ in range(3))
    heads = jax.jit(jax.vmap(attend))(q, k, v)
    np.testing.assert_allclose(heads, jax.vmap(reference_attention)(q, k, v), rtol=1e-4, atol=1e-5)
    print(f"16_jax_physics: heat equation and attention on {jax.default_backend()}: ok")


if __name__ == "__main__":
    main()
