"""Kernels as operators of PyTorch, beside the same in PyTorch: values, gradients, transformations, guards."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import operator_kernels as kernels  # noqa: E402  # after the check
from weft import cuda  # noqa: E402

# PyTorch's CPU is tested; tests/benchmarks/operators.py checks the rest on a GPU.
pytestmark = pytest.mark.cpu

saxpy_ = kernels.saxpy.as_torch_op("weft_tests::saxpy_", launch=kernels.over_out, signature=kernels.SIGNATURE)
saxpy = kernels.saxpy.as_torch_op(
    "weft_tests::saxpy",
    launch=kernels.over,
    out=cuda.like("x"),
    backward=lambda grad, x, y, a: (saxpy(grad, torch.zeros_like(grad), a), grad),
    signature=kernels.SIGNATURE,
)
accumulate = kernels.accumulate.as_torch_op(
    "weft_tests::accumulate", launch=kernels.over_out, signature=kernels.IN_PLACE
)
outer = kernels.outer.as_torch_op(
    "weft_tests::outer",
    launch=lambda x: (x.size, 1),
    out={
        "product": cuda.shaped(lambda x, y: (x.shape[0], y.shape[0]), dtype="x"),
        "total": cuda.like("x", fill=0),
    },
    signature=kernels.OUTER,
)


def vectors(n=6):
    return torch.arange(float(n)), torch.ones(n)


def test_schemas_have_the_effects():
    assert saxpy_.schema == "(Tensor x, Tensor y, float a, Tensor(a!) out) -> ()"
    assert saxpy.schema == "(Tensor x, Tensor y, float a) -> Tensor"
    assert outer.schema == "(Tensor x, Tensor y) -> (Tensor, Tensor)"


def test_values():
    x, y = vectors()
    out = torch.zeros(6)
    saxpy_(x, y, 2.0, out)
    assert torch.equal(out, 2 * x + 1)
    saxpy_(x, y=y, a=3, out=out)
    assert torch.equal(out, 3 * x + 1)
    assert torch.equal(saxpy(x, y, 2.0), 2 * x + 1)
    accumulate(x, out)
    assert torch.equal(out, 4 * x + 1)
    product, total = outer(x, torch.tensor([1.0, 2.0]))
    assert torch.equal(product, torch.outer(x, torch.tensor([1.0, 2.0])))
    assert torch.equal(total, 3 * x)


def test_strides_dtypes_and_empty_tensors():
    x, y = vectors(12)
    assert torch.equal(saxpy(x[::2], y[1::2], 2.0), 2 * x[::2] + 1)
    assert torch.equal(saxpy(x.flip(0), y.expand(12), 2.0), 2 * x.flip(0) + 1)
    assert torch.equal(saxpy(x.double(), y.double(), 2.0), (2 * x + 1).double())
    assert saxpy(x[:0], y[:0], 2.0).shape == (0,)
    big = torch.arange(300_000.0)
    out = torch.zeros(300_000)
    saxpy_(big, torch.ones_like(big), 2.0, out)
    assert torch.equal(out, 2 * big + 1)


def test_version_counter():
    x, y = vectors()
    out = torch.zeros(6)
    version = out._version
    saxpy_(x, y, 2.0, out)
    assert out._version == version + 1
    # A saved tensor that has changed is seen.
    w = torch.ones(6, requires_grad=True)
    h = w * 2
    square = h * h
    saxpy_(x, y, 2.0, h.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_gradients():
    x, y = vectors()
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    saxpy(saxpy(ours, y, 4.0).sin(), y, 3.0).sum().backward()
    (3 * (4 * theirs + y).sin() + y).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    of = torch.func.grad(lambda v: saxpy(v, y, 5.0).sum())(x)
    assert torch.equal(of, torch.full((6,), 5.0))


def test_vmap():
    _, y = vectors()
    batch = torch.randn(4, 6)
    assert torch.equal(torch.vmap(saxpy, (0, None, None))(batch, y, 2.0), 2 * batch + 1)
    assert torch.equal(torch.vmap(saxpy, (1, None, None), 1)(batch.T, y, 2.0), (2 * batch + 1).T)
    twice = torch.vmap(torch.vmap(saxpy, (0, None, None)), (0, None, None))
    assert torch.equal(twice(batch.reshape(2, 2, 6), y, 2.0), (2 * batch + 1).reshape(2, 2, 6))
    out = torch.zeros(4, 6)
    torch.vmap(lambda row, out: (saxpy_(row, y, 2.0, out), out)[1])(batch, out)
    assert torch.equal(out, 2 * batch + 1)
    with pytest.raises(RuntimeError, match=r"weft_tests::saxpy_: vmap cannot write `out`, which has no batch"):
        torch.vmap(lambda row: saxpy_(row, y, 2.0, torch.zeros(6)))(batch)
    product, total = torch.vmap(outer, (0, None))(batch, y)
    torch.testing.assert_close(product, batch[:, :, None] * y)
    torch.testing.assert_close(total, batch * 6)


def test_vmap_of_a_kernel_that_reads_the_z_axis():
    @cuda.jit
    def with_z(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + 10 * cuda.blockIdx.z + cuda.gridDim.z

    op = with_z.as_torch_op(
        "weft_tests::with_z", launch=kernels.over, out=cuda.like("x"), signature="void(float32[:], float32[:])"
    )
    batch = torch.randn(4, 6)
    torch.testing.assert_close(torch.vmap(op)(batch), batch + 1)


def test_vmap_of_a_kernel_with_shared_memory_and_a_signature():
    @cuda.jit("void(float32[:, ::1], float64, float32[::1])")
    def row_sums(x, factor, out):
        partial = cuda.shared.array(32, "float32")
        row, thread = cuda.blockIdx.x, cuda.threadIdx.x
        partial[thread] = 0
        for column in range(thread, x.shape[1], 32):
            partial[thread] += x[row, column]
        cuda.syncthreads()
        if thread == 0:
            total = cuda.float32(0)
            for other in range(32):
                total += partial[other]
            out[row] = factor * total

    op = row_sums.as_torch_op(
        "weft_tests::row_sums", launch=lambda x: (x.shape[0], 32), out=cuda.shaped(lambda x: (x.shape[0],), dtype="x")
    )
    batch = torch.randn(5, 7, 50)
    torch.testing.assert_close(torch.vmap(op, (0, None))(batch, 3), 3 * batch.sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.vmap(op, (0, None))(batch[:1], 3.0), 3 * batch[:1].sum(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["saxpy_", "saxpy", "outer", "accumulate"])
def test_opcheck(name):
    x, y = vectors()
    args = {
        "saxpy_": (x, y, 2.0, torch.zeros(6)),
        "saxpy": (x, y, 2.0),
        "outer": (x, y),
        "accumulate": (x, torch.zeros(6)),
    }
    results = torch.library.opcheck(globals()[name].op, args[name])
    assert set(results.values()) == {"SUCCESS"}


def program(x, y):
    out = torch.empty_like(x)
    saxpy_(x.sin(), y, 2.0, out)
    product, total = outer(out, y)
    return saxpy(out, y, 3.0).cos() + saxpy(x, y, 1.0) + total + product.sum(1)


def test_compiled():
    x, y = vectors()
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, y), program(x, y))
    torch.testing.assert_close(compiled(x[:4], y[:4]), program(x[:4], y[:4]))
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    torch.compile(lambda v: saxpy(v * 2, y, 3.0).sin().sum(), backend="aot_eager", fullgraph=True)(ours).backward()
    saxpy(theirs * 2, y, 3.0).sin().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_exported():
    class Module(torch.nn.Module):
        def forward(self, x, y):
            return program(x, y)

    x, y = vectors()
    extent = torch.export.Dim("extent", min=2)
    exported = torch.export.export(Module(), (x, y), dynamic_shapes=({0: extent}, {0: extent}))
    names = {str(node.target) for node in exported.graph.nodes}
    assert {"weft_tests.saxpy.default", "weft_tests.saxpy_.default", "weft_tests.outer.default"} <= names
    x, y = vectors(9)
    torch.testing.assert_close(exported.module()(x, y), program(x, y))


def test_modes_of_pytorch_see_the_operator():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x, y = vectors()
    out = torch.zeros(6)
    with Mode():
        saxpy_(x, y, 2.0, out)
        saxpy(x, y, 2.0)
    assert {"weft_tests.saxpy_.default", "weft_tests.saxpy.default"} <= set(seen)
    assert saxpy(x.to("meta"), y.to("meta"), 2.0).device.type == "meta"


def test_without_gradients():
    x, y = vectors()
    weight = torch.nn.Parameter(x.clone())
    out = torch.zeros(6)
    with torch.no_grad():
        saxpy_(weight, y, 2.0, out)
        assert torch.equal(out, 2 * x + 1)
    with torch.inference_mode():
        inner = torch.zeros(6)
        saxpy_(x, y, 2.0, inner)
        assert torch.equal(inner, 2 * x + 1)


def test_threads():
    x, y = vectors(1000)
    wrong = []

    def calls():
        for factor in range(200):
            if not torch.equal(saxpy(x, y, float(factor)), factor * x + 1):
                wrong.append(factor)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_operator_is_replaced_in_a_notebook():
    def made(factor):
        @cuda.jit
        def scale(x, out):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = factor * x[i]

        return scale.as_torch_op(
            "weft_tests::scale", launch=kernels.over, out=cuda.like("x"), signature="void(float32[:], float32[:])"
        )

    x, _ = vectors()
    assert torch.equal(made(2)(x), 2 * x)
    assert torch.equal(made(3)(x), 3 * x)


def test_exceptions_of_kernels():
    @cuda.jit(exceptions=True)
    def divide(x, by, out):
        i = cuda.grid(1)
        if i < x.size:
            if by == 0:
                raise ZeroDivisionError("no quotient")
            out[i] = x[i] // by

    op = divide.as_torch_op(
        "weft_tests::divide", launch=kernels.over, out=cuda.like("x"), signature="void(int64[:], int64, int64[:])"
    )
    assert torch.equal(op(torch.tensor([7, 8]), 2), torch.tensor([3, 4]))
    with pytest.raises(RuntimeError, match=r"weft_tests::divide: .*no quotient"):
        op(torch.tensor([7, 8]), 0)
