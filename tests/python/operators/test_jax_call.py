"""Kernels as functions of JAX, beside the same in JAX: values, gradients, transformations."""

from __future__ import annotations

import os

import numpy as np
import pytest

# Two devices of the CPU, for shard_map.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402  # after the check
import operator_kernels as kernels  # noqa: E402
from weft import cuda  # noqa: E402

# JAX's CPU is tested; tests/benchmarks/operators.py checks the rest on a GPU.
pytestmark = pytest.mark.cpu

saxpy = kernels.saxpy.as_jax_call(
    launch=kernels.over,
    out=cuda.like("x"),
    backward=lambda grad, x, y, a: (saxpy(grad, jnp.zeros_like(grad), a), grad),
    signature=kernels.SIGNATURE,
)
accumulate = kernels.accumulate.as_jax_call(launch=kernels.over, signature=kernels.IN_PLACE)
outer = kernels.outer.as_jax_call(
    launch=lambda x: (x.size, 1),
    out={
        "product": cuda.shaped(lambda x, y: (x.shape[0], y.shape[0]), dtype="x"),
        "total": cuda.like("x", fill=0),
    },
    signature=kernels.OUTER,
)
X, Y = jnp.arange(8.0), jnp.ones(8)


def test_values():
    np.testing.assert_array_equal(saxpy(X, Y, 3.0), 3 * X + 1)
    np.testing.assert_array_equal(jax.jit(lambda x, y: saxpy(x, y=y, a=2) * 2)(X, Y), 2 * (2 * X + 1))
    product, total = outer(X, Y)
    np.testing.assert_array_equal(product, np.outer(X, Y))
    np.testing.assert_array_equal(total, 8 * X)


def test_an_array_that_is_written_in_place():
    out = jnp.full(8, 100.0)
    np.testing.assert_array_equal(accumulate(X, out), X + 100)
    np.testing.assert_array_equal(out, np.full(8, 100))
    donated = jax.jit(accumulate, donate_argnums=1)
    again = jnp.full(8, 100.0)
    np.testing.assert_array_equal(donated(X, again), X + 100)


def test_numbers_that_are_traced():
    np.testing.assert_array_equal(saxpy(X, Y, jnp.float32(3)), 3 * X + 1)
    factors = jnp.arange(3.0)
    rows = jax.vmap(lambda a: saxpy(X, Y, a))(factors)
    np.testing.assert_array_equal(rows, factors[:, None] * X + 1)


def test_vmap():
    batch = jnp.arange(24.0).reshape(3, 8)
    np.testing.assert_array_equal(jax.vmap(lambda x: saxpy(x, Y, 3.0))(batch), 3 * batch + 1)
    twice = jax.vmap(jax.vmap(lambda x: saxpy(x, Y, 3.0)))(batch[None])
    np.testing.assert_array_equal(twice, 3 * batch[None] + 1)
    np.testing.assert_array_equal(jax.vmap(accumulate, (0, None))(batch, jnp.full(8, 100.0)), batch + 100)


def test_gradients():
    def ours(x):
        return jnp.sin(saxpy(jnp.sin(saxpy(x, Y, 4.0)), Y, 3.0)).sum()

    def theirs(x):
        return jnp.sin(3 * jnp.sin(4 * x + Y) + Y).sum()

    np.testing.assert_allclose(jax.jit(jax.grad(ours))(X), jax.grad(theirs)(X), rtol=1e-5, atol=1e-5)
    batch = jnp.arange(24.0).reshape(3, 8)
    np.testing.assert_allclose(jax.vmap(jax.grad(ours))(batch), jax.vmap(jax.grad(theirs))(batch), rtol=1e-4, atol=1e-4)


def test_loops():
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda _, v: saxpy(v, Y, 2.0), x))(X)
    expected = X
    for _ in range(5):
        expected = 2 * expected + 1
    np.testing.assert_array_equal(looped, expected)


@pytest.mark.parametrize("check_vma", [False, True])
def test_shard_map(check_vma):
    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    part = jax.sharding.PartitionSpec("i")
    sharded = jax.shard_map(
        lambda x, y: saxpy(x, y, 2.0), mesh=mesh, in_specs=part, out_specs=part, check_vma=check_vma
    )
    np.testing.assert_array_equal(jax.jit(sharded)(X, Y), 2 * X + 1)


def test_export():
    from jax import export

    exported = export.export(
        jax.jit(lambda x, y: saxpy(x, y, 2.0)),
        platforms=("cpu", "cuda"),
        disabled_checks=[export.DisabledSafetyCheck.custom_call("weft")],
    )(X, Y)
    np.testing.assert_array_equal(exported.call(X, Y), 2 * X + 1)


def test_empty_arrays_and_dtypes():
    assert saxpy(X[:0], Y[:0], 2.0).shape == (0,)
    ints = kernels.accumulate.as_jax_call(launch=kernels.over, signature="void(int32[:], int32[:])")
    np.testing.assert_array_equal(ints(jnp.arange(4), jnp.arange(4)), 2 * np.arange(4))
    halves = jnp.arange(4, dtype=jnp.bfloat16)
    np.testing.assert_array_equal(accumulate(halves, halves), 2 * halves)


def test_errors_of_the_compiler_are_those_of_the_call():
    @cuda.jit
    def broken(x, out):
        out[0] = x[0, 0]

    call = broken.as_jax_call(launch=(1, 1), out=cuda.like("x"), signature="void(float32[:, :], float32[:, :])")
    with pytest.raises(RuntimeError, match="broken: "):
        call(X)


def test_one_number_for_a_kernel_in_every_process():
    def made(factor):
        @cuda.jit
        def scale(x, out):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = factor * x[i]

        return scale.as_jax_call(launch=kernels.over, out=cuda.like("x"), signature="void(float32[:], float32[:])")

    two, three, again = made(2), made(3), made(2)
    assert two._id == again._id != three._id
    np.testing.assert_array_equal(two(X), 2 * X)
    np.testing.assert_array_equal(three(X), 3 * X)
