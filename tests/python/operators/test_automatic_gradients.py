"""`backward="auto"`: gradients of operators of PyTorch and calls of JAX, by adjoint kernels, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from weft import cuda

# PyTorch's and JAX's CPU are tested, as in the other tests of operators.
pytestmark = pytest.mark.cpu


@cuda.jit
def waves(x, w, a, squares, sums):
    """Two results; every thread reads the whole of `w`."""
    i = cuda.grid(1)
    if i < x.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * math.sin(x[i] * (k + 1))
        squares[i] = s * s * a
        sums[i] = s


@cuda.jit
def taken(x, index, out, last):
    """An array without derivative, and a result without one."""
    i = cuda.grid(1)
    if i < index.size:
        out[i] = x[index[i]] * x[index[i]]
        last[i] = index[i] + 1


@cuda.jit
def mirrored(x, out):
    """Through shared memory."""
    tile, t = cuda.shared.array(64, np.float64), cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t] * tile[63 - t] * tile[t]


@cuda.jit
def squared(z, out):
    i = cuda.grid(1)
    if i < z.size:
        out[i] = z[i] * z[i] * (1 + 2j)


@cuda.jit
def iterated(x, n, rate, out, last):
    """Loops without a constant bound, whose values the gradients need; a result without a gradient."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(n[i]):
            v = math.sin(v) * rate + x[(i + 1) % x.size] * v
        out[i] = v
        last[i] = n[i]


@cuda.jit
def overwritten(x, out):
    """Elements of the result that the kernel overwrites."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]
        for _ in range(12):
            out[i] = math.sin(out[i]) + x[i] * out[i]


@cuda.jit
def swept(x, out):
    """Elements of shared memory that nested loops overwrite."""
    tile, i = cuda.shared.array((3, 4), np.float64), cuda.threadIdx.x
    for k in range(x.shape[1]):
        tile[i, k] = x[i, k]
    for _ in range(x.shape[1] - 1):
        for k in range(x.shape[1]):
            tile[i, k] = math.sin(tile[i, k]) + 0.3 * tile[i, k] * tile[i, k - 1]
    for k in range(x.shape[1]):
        out[i, k] = tile[i, k]


WAVES = {
    "launch": lambda x: ((x.size + 127) // 128, 128),
    "out": {"squares": cuda.like("x"), "sums": cuda.like("x")},
    "backward": "auto",
    "signature": "void(float64[:], float64[:], float64, float64[:], float64[:])",
}
TAKEN = {
    "launch": lambda index: ((index.size + 127) // 128, 128),
    "out": {"out": cuda.like("index", dtype="x"), "last": cuda.like("index")},
    "backward": "auto",
    "signature": "void(float64[:], int64[:], float64[:], int64[:])",
}
MIRRORED = {
    "launch": lambda x: (1, 64),
    "out": cuda.like("x"),
    "backward": "auto",
    "signature": "void(float64[:], float64[:])",
}
SQUARED = {
    "launch": lambda z: (1, 64),
    "out": cuda.like("z"),
    "backward": "auto",
    "signature": "void(complex128[:], complex128[:])",
}


ITERATED = {
    "launch": lambda x: ((x.size + 31) // 32, 32),
    "out": {"out": cuda.like("x"), "last": cuda.like("n")},
    "backward": "auto",
    "signature": "void(float64[:], int64[:], float64, float64[:], int64[:])",
}
SWEPT = {
    "launch": lambda x: (1, x.shape[0]),
    "out": cuda.like("x"),
    "backward": "auto",
    "signature": "void(float64[:, :], float64[:, :])",
}
OVERWRITTEN = {
    "launch": lambda x: ((x.size + 31) // 32, 32),
    "out": cuda.like("x", fill=0),
    "backward": "auto",
    "signature": "void(float64[:], float64[:])",
}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def of_torch(torch):
    """The operator, and arguments for it."""
    op = waves.as_torch_op("weft_tests::waves", **WAVES)
    generator = torch.Generator().manual_seed(1)
    x, w = (torch.rand(n, dtype=torch.float64, generator=generator) for n in (7, 3))
    return op, x.requires_grad_(), w.requires_grad_()


def test_torch_gradients_are_those_of_differences(torch, of_torch):
    op, x, w = of_torch
    assert torch.autograd.gradcheck(lambda x, w: op(x, w, 1.3), (x, w))
    # Strided arguments, a gradient that is expanded, and a result without a gradient.
    assert torch.autograd.gradcheck(lambda x, w: op(x[::2], w.flip(0), 1.3)[1].sum(), (x, w))
    assert torch.autograd.gradcheck(squared.as_torch_op("weft_tests::squared", **SQUARED), (x + 1j * x.flip(0),))
    long = torch.linspace(0.1, 2, 64, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mirrored.as_torch_op("weft_tests::mirrored", **MIRRORED), (long,))


def test_torch_arrays_of_integers_have_no_gradients(torch, of_torch):
    op, x = taken.as_torch_op("weft_tests::taken", **TAKEN), of_torch[1]
    index = torch.tensor([1, 0, 1, 5])
    assert torch.autograd.gradcheck(lambda x: op(x, index)[0], (x,))


def test_torch_transformations(torch, of_torch):
    op, x, w = of_torch

    def loss(x):
        return op(x, w.detach(), 1.3)[0].sum()

    x = x.detach()
    rows = torch.stack([x, 2 * x, -x])
    of_rows = torch.stack([torch.func.grad(loss)(row) for row in rows])
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(rows), of_rows)
    assert torch.func.jacrev(lambda x: op(x, w.detach(), 1.3)[0])(x).shape == (7, 7)
    compiled = torch.compile(lambda x: op(x, w, 1.3)[0].sum(), backend="aot_eager", fullgraph=True)
    ours = x.clone().requires_grad_()
    compiled(ours).backward()
    torch.testing.assert_close(ours.grad, of_rows[0])


def test_torch_scratch_memory(torch):
    op = iterated.as_torch_op("weft_tests::iterated", **ITERATED)
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(40, dtype=torch.float64, generator=generator, requires_grad=True)
    n = torch.randint(0, 9, (40,), generator=generator)
    assert torch.autograd.gradcheck(lambda x: op(x, n, 0.9)[0], (x,))
    assert torch.autograd.gradcheck(lambda x: op(x[::2], n[::2], 0.9)[0], (x,))
    assert torch.autograd.gradcheck(overwritten.as_torch_op("weft_tests::overwritten", **OVERWRITTEN), (x,))

    def loss(x):
        return op(x, n, 0.9)[0].sum()

    (expected,) = torch.autograd.grad(loss(x), x)
    rows = torch.stack([x.detach(), 2 * x.detach()])
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(rows)[0], expected)
    ours = x.detach().clone().requires_grad_()
    torch.compile(loss, backend="aot_eager", fullgraph=True)(ours).backward()
    torch.testing.assert_close(ours.grad, expected)
    # A cell of a notebook that runs again.
    again = iterated.as_torch_op("weft_tests::iterated", **ITERATED)
    torch.testing.assert_close(torch.autograd.grad(again(x, n, 0.9)[0].sum(), x), (expected,))
    (first,) = torch.autograd.grad(loss(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"(?s)_iterated_adjoint_adjoint: .*E0403"):
        first.sum().backward()


def test_torch_halves(torch):
    for dtype in (torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")

        @cuda.jit
        def weighted(x, w, out):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = x[i] * w[0] + x[i] * x[i]

        op = weighted.as_torch_op(
            f"weft_tests::weighted_{name}",
            launch=lambda x: ((x.size + 31) // 32, 32),
            out=cuda.like("x"),
            backward="auto",
            signature=f"void({name}[:], {name}[:], {name}[:])",
        )
        x, w = torch.arange(5, dtype=dtype, requires_grad=True), torch.tensor([3.0], dtype=dtype, requires_grad=True)
        op(x, w).sum().backward()
        assert x.grad.tolist() == [3.0, 5.0, 7.0, 9.0, 11.0]
        assert w.grad.tolist() == [10.0]
        assert x.grad.dtype == w.grad.dtype == dtype


def test_jax_scratch_memory(jax):
    from jax.test_util import check_grads

    op = iterated.as_jax_call(**ITERATED)
    generator = np.random.default_rng(2)
    x, n = jax.numpy.asarray(generator.random(40)), jax.numpy.asarray(generator.integers(0, 9, 40))
    check_grads(lambda x: op(x, n, 0.9)[0], (x,), order=1, modes=["rev"])
    check_grads(overwritten.as_jax_call(**OVERWRITTEN), (x,), order=1, modes=["rev"])
    check_grads(swept.as_jax_call(**SWEPT), (x[:12].reshape(3, 4),), order=1, modes=["rev"])

    def loss(x, n):
        return op(x, n, 0.9)[0].sum()

    # Each item of a batch stores another number of values.
    rows, counts = jax.numpy.stack([x, 2 * x, -x]), jax.numpy.stack([n, 0 * n, 2 * n])
    expected = jax.numpy.stack([jax.grad(loss)(*each) for each in zip(rows, counts, strict=True)])
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(loss)))(rows, counts), expected, rtol=1e-12)
    with pytest.raises(Exception, match=r"(?s)_iterated_adjoint_adjoint.*E0403"):
        jax.grad(lambda x: jax.grad(loss)(x, n).sum())(x)


def test_jax_too_much_scratch_memory_is_an_error(jax):
    """One thread stores 8 million bytes, so each of 32 million threads has as many."""
    rules = ITERATED | {"launch": lambda x: (32768, 1024)}
    op = iterated.as_jax_call(**rules, name="vast")
    n = jax.numpy.asarray([1_000_000, 0])
    with pytest.raises(
        Exception, match="_vast_adjoint_store: the gradient needs 268435456000000 bytes of scratch memory"
    ):
        jax.grad(lambda x: op(x, n, 0.9)[0].sum())(jax.numpy.ones(2)).block_until_ready()


def test_jax_scratch_memory_of_float32(jax):
    """Without integers of 64 bits in JAX."""
    x = np.random.default_rng(3).random(40)
    jax.config.update("jax_enable_x64", False)
    try:
        op = overwritten.as_jax_call(**OVERWRITTEN | {"signature": "void(float32[:], float32[:])"})
        found = jax.grad(lambda x: op(x).sum())(jax.numpy.asarray(x, np.float32))
    finally:
        jax.config.update("jax_enable_x64", True)
    exact = overwritten.as_jax_call(**OVERWRITTEN)
    np.testing.assert_allclose(found, jax.grad(lambda x: exact(x).sum())(jax.numpy.asarray(x)), rtol=1e-4)


def test_torch_second_derivatives(torch, of_torch):
    op, x, w = of_torch
    assert torch.autograd.gradgradcheck(lambda x, w: op(x, w, 1.3), (x, w))
    (first,) = torch.autograd.grad(op(x, w, 1.3)[0].sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r'weft_tests::waves: backward="auto" has no third derivative'):
        second.sum().backward()


def test_torch_second_derivatives_through_shared_memory(torch):
    op = mirrored.as_torch_op("weft_tests::mirrored_twice", **MIRRORED)
    x = torch.linspace(0.1, 2, 64, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(op, (x,))


def test_jax_gradients_are_those_of_differences(jax):
    from jax.test_util import check_grads

    op = waves.as_jax_call(**WAVES)
    random = np.random.default_rng(1).random
    x, w = jax.numpy.asarray(random(7)), jax.numpy.asarray(random(3))
    check_grads(lambda x, w: op(x, w, 1.3), (x, w), 1, modes=["rev"])
    check_grads(mirrored.as_jax_call(**MIRRORED), (jax.numpy.linspace(0.1, 2, 64),), 1, modes=["rev"])

    def loss(x):
        return op(x, w, 1.3)[0].sum()

    rows = jax.numpy.stack([x, 2 * x, -x])
    of_rows = jax.numpy.stack([jax.jit(jax.grad(loss))(row) for row in rows])
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(rows), of_rows)
    with pytest.raises(TypeError, match=r'waves: backward="auto" needs the value of `a` when JAX traces the call'):
        jax.jit(jax.grad(lambda x, a: op(x, w, a)[0].sum()))(x, 1.3)
    check_grads(lambda x, w: op(x, w, 1.3), (x, w), 2, modes=["rev"])
    check_grads(mirrored.as_jax_call(**MIRRORED), (jax.numpy.linspace(0.1, 2, 64),), 2, modes=["rev"])
    second = jax.grad(lambda x: jax.grad(loss)(x).sum())
    with pytest.raises(ValueError, match=r'waves.*: backward="auto" has no third derivative'):
        jax.grad(lambda x: second(x).sum())(x)


def test_jax_complex_numbers_and_integers(jax):
    z = jax.numpy.asarray(np.random.default_rng(1).random(5) + 0.3j)
    op = squared.as_jax_call(**SQUARED)
    ours = jax.grad(lambda z: jax.numpy.abs(op(z)).sum())(z)
    theirs = jax.grad(lambda z: jax.numpy.abs(z * z * (1 + 2j)).sum())(z)
    np.testing.assert_allclose(ours, theirs)
    op, x, index = taken.as_jax_call(**TAKEN), jax.numpy.arange(6.0), jax.numpy.asarray([1, 0, 1, 5])
    np.testing.assert_array_equal(jax.grad(lambda x: op(x, index)[0].sum())(x), [0, 4, 0, 0, 0, 10])


@pytest.mark.parametrize("how", ["torch", "jax"])
def test_what_has_no_gradients(how, request):
    request.getfixturevalue(how)

    def made(name, kernel, **options):
        if how == "torch":
            return kernel.as_torch_op(f"weft_tests::{name}", **options)
        return kernel.as_jax_call(**options, name=name)

    launch = {"launch": lambda x: (1, 64), "backward": "auto"}

    @cuda.jit
    def kernel(x, out):
        out[cuda.grid(1)] = x[cuda.grid(1)]

    with pytest.raises(ValueError, match=r"in_place: .*the kernel writes `out`: give it an output rule"):
        made("in_place", kernel, signature="void(float64[:], float64[:])", **launch)
    rule = cuda.like("x")
    with pytest.raises(TypeError, match=r"integers: .*the operator takes no array of floats"):
        made("integers", kernel, signature="void(int64[:], float64[:])", out=cuda.like("x", dtype=np.float64), **launch)
    with pytest.raises(TypeError, match=r"to_integers: .*the operator returns no array of floats"):
        made(
            "to_integers", kernel, signature="void(float64[:], int64[:])", out=cuda.like("x", dtype=np.int64), **launch
        )
    with pytest.raises(TypeError, match=r"backward= takes a function .*, or 'auto', not 'automatic'"):
        made("no", kernel, signature="void(float64[:], float64[:])", out=rule, launch=(1, 1), backward="automatic")

    @cuda.jit
    def some_wait(x, out):
        tile, t = cuda.shared.array(64, np.float64), cuda.threadIdx.x
        tile[t] = x[t]
        if t < 32:
            cuda.syncthreads()
        out[t] = tile[0]

    op = made("barrier", some_wait, signature="void(float64[:], float64[:])", out=rule, **launch)
    with pytest.raises(Exception, match=r"(?s)_barrier_adjoint: .*E0401.*cuda.syncthreads\(\)"):
        _gradient(how, op)


def _gradient(how, op):
    if how == "torch":
        import torch

        x = torch.ones(64, dtype=torch.float64, requires_grad=True)
        op(x).sum().backward()
    else:
        import jax

        jax.grad(lambda x: op(x).sum())(jax.numpy.ones(64))
