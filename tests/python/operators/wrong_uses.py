"""Wrong uses of operators: what is written, the exception, and what its message must contain.

A message names the operator, the argument, and what to write instead.
"""

from __future__ import annotations

import linecache
from typing import NamedTuple


class Wrong(NamedTuple):
    """A row. `code` runs with the names of the tests' modules."""

    code: str
    raises: type[Exception] | tuple[type[Exception], ...]
    # Words of the message, in order.
    words: tuple[str, ...]

    def run(self, names: dict[str, object]) -> None:
        """Run the code as a file of its own: rules are read from their source."""
        name = f"<{self.code}>"
        linecache.cache[name] = (len(self.code), None, [self.code + "\n"], name)
        exec(compile(self.code, name, "exec"), dict(names))


S = "signature=kernels.SIGNATURE"
MAKE = "kernels.saxpy.as_torch_op('weft_wrong::{}', "
CALL = "kernels.saxpy.as_jax_call("

MAKING = [
    ("launch=kernels.over", TypeError, ("types of `saxpy` are not known", "signature=")),
    (f"out=cuda.like('x'), {S}", ValueError, ("no launch rule", "launch=lambda x:")),
    (f"launch=3, out=cuda.like('x'), {S}", TypeError, ("launch must be a function",)),
    (f"launch=lambda x: x.foo, out=cuda.like('x'), {S}", Exception, ("foo",)),
    (f"launch=lambda q: (q.size, 1), out=cuda.like('x'), {S}", Exception, ("q",)),
    (f"launch=lambda x: open('f'), out=cuda.like('x'), {S}", Exception, ("open",)),
    (f"launch=kernels.over, out='x', {S}", TypeError, ("out must be a rule", "cuda.like('x')")),
    (f"launch=kernels.over, out=cuda.like('q'), {S}", Exception, ("q",)),
    (f"launch=kernels.over, out={{'q': cuda.like('x')}}, {S}", ValueError, ("`q`", "saxpy")),
    (f"launch=kernels.over, out={{'x': cuda.like('y')}}, {S}", Exception, ("`x`",)),
    (f"launch=kernels.over, out=cuda.shaped(lambda x: (x.size, 2), dtype='x'), {S}", Exception, ("`out`", "2")),
    (f"launch=kernels.over, out=cuda.like('x'), backward=3, {S}", TypeError, ("backward=", "function", "3")),
    (
        "launch=kernels.over, out=cuda.like('x'), signature='void(float32[:])'",
        (TypeError, ValueError),
        ("saxpy", "4"),
    ),
    (
        "launch=kernels.over, out=cuda.like('x'), signature='void(float32[:], float32[:], complex64, float32[:])'",
        TypeError,
        ("`a`", "complex64", "arrays of numbers, integers, floats"),
    ),
    (
        "launch=kernels.over, out=cuda.like('x'), signature=[kernels.SIGNATURE, "
        "'void(float32[:], float32, float32, float32[:])']",
        Exception,
        ("`y`",),
    ),
]

TORCH = [
    ("kernels.saxpy.as_torch_op('saxpy', launch=kernels.over)", ValueError, ("mylib::saxpy", "'saxpy'")),
    ("kernels.saxpy.as_torch_op('a::b c', launch=kernels.over)", ValueError, ("mylib::saxpy", "'a::b c'")),
    ("kernels.saxpy.as_torch_op(3)", (TypeError, ValueError), ("mylib::saxpy",)),
    (
        f"kernels.saxpy.as_torch_op('aten::add', launch=kernels.over, out=cuda.like('x'), {S})",
        ValueError,
        ("aten::add", "already", "another"),
    ),
    (
        f"kernels.saxpy.as_torch_op('weft_tests::saxpy', launch=kernels.over_out, {S})",
        ValueError,
        ("weft_tests::saxpy", "schema", "another name"),
    ),
    (
        MAKE.format("back") + f"launch=kernels.over_out, backward=print, {S})",
        ValueError,
        ("weft_wrong::back", "`out`", "out=cuda.like"),
    ),
    ("kernels.device.as_torch_op('weft_wrong::d', launch=kernels.over)", TypeError, ("`device`", "device function")),
    # Calls.
    ("saxpy(x, y)", TypeError, ("weft_tests::saxpy", "`a`", "missing")),
    ("saxpy(x, y, 1.0, x)", TypeError, ("weft_tests::saxpy", "3 arguments (x, y, a)", "4")),
    ("saxpy(x, y, 1.0, b=2)", TypeError, ("weft_tests::saxpy", "`b`", "x, y, a")),
    ("saxpy(x, y, 1.0, x=2)", TypeError, ("weft_tests::saxpy", "`x`", "twice")),
    ("saxpy(x, 3.0, 1.0)", TypeError, ("weft_tests::saxpy", "`y`", "float", "torch.as_tensor")),
    ("saxpy(x, np.ones(6), 1.0)", TypeError, ("weft_tests::saxpy", "`y`", "numpy.ndarray", "torch.as_tensor")),
    ("saxpy(x, None, 1.0)", (RuntimeError, TypeError), ("weft_tests::saxpy", "`y`", "tensor")),
    ("saxpy(x, y, 'a')", TypeError, ("weft_tests::saxpy", "`a`", "str", "float")),
    ("saxpy(x, y, x)", TypeError, ("weft_tests::saxpy", "`a`", "tensor", ".item()")),
    ("saxpy(x, y.to('meta'), 1.0)", RuntimeError, ("weft_tests::saxpy", "`y`")),
    ("saxpy(x, y.to_sparse(), 1.0)", (TypeError, RuntimeError), ("weft_tests::saxpy", "`y`", "to_dense")),
    ("saxpy(x.reshape(2, 3), y, 1.0)", RuntimeError, ("weft_tests::saxpy", "float64")),
    ("saxpy(x.to(torch.float8_e5m2), y, 1.0)", RuntimeError, ("weft_tests::saxpy", "`x`", "torch.float32")),
    ("saxpy(torch.ones(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), y, 1.0)", RuntimeError, ("weft_tests::saxpy", "`x`", "reshape")),
    ("saxpy_(x, y, 1.0, torch.zeros(1).expand(6))", RuntimeError, ("weft_tests::saxpy_", "`out`", "out.clone()")),
    ("saxpy_(x, y, 1.0, x.as_strided((6,), (0,)))", RuntimeError, ("weft_tests::saxpy_", "`out`", "out.clone()")),
    (
        "saxpy_(x, y, 1.0, torch.zeros(6, requires_grad=True))",
        RuntimeError,
        ("weft_tests::saxpy_", "`out`", "out.detach()"),
    ),
    (
        "saxpy_(x.clone().requires_grad_(), y, 1.0, torch.zeros(6))",
        RuntimeError,
        ("weft_tests::saxpy_", "`x`", "backward=", "x.detach()"),
    ),
    (
        "saxpy_(x, y, 1.0, torch.zeros(6, dtype=torch.complex64).conj().imag)",
        RuntimeError,
        ("weft_tests::saxpy_", "`out`", "resolve_conj()"),
    ),
    (
        "torch.vmap(lambda r: saxpy_(r, y, 1.0, torch.zeros(6)))(torch.ones(2, 6))",
        RuntimeError,
        ("weft_tests::saxpy_", "`out`", "in_dims"),
    ),
    ("torch.ops.weft_tests.saxpy(x, y)", RuntimeError, ("weft_tests::saxpy", "'a'")),
    ("typed(x.double())", RuntimeError, ("weft_tests::typed", "`x`", "float32")),
    ("bad_gradient(x.clone().requires_grad_()).sum().backward()", TypeError, ("weft_tests::bad", "2 gradients", "x")),
    ("bad_launch(x)", RuntimeError, ("weft_tests::bad_launch", "launch rule", "blockDim.x", "1024")),
    (
        "kernels.copy.as_torch_op('weft_wrong::two', launch=lambda x: (x.shape[1], 1), out=cuda.like('x'), "
        "signature='void(float32[:], float32[:])')",
        TypeError,
        ("weft_wrong::two", "launch rule", "x.shape[1]", "1 dimension"),
    ),
]

JAX = [
    ("kernels.device.as_jax_call(launch=kernels.over)", TypeError, ("`device`", "device function")),
    (
        "kernels.reader.as_jax_call(launch=kernels.over, signature='void(float32[:])')",
        ValueError,
        ("reader", "result"),
    ),
    ("saxpy(X, Y)", TypeError, ("saxpy", "`a`", "missing")),
    ("saxpy(X, Y, 1.0, X)", TypeError, ("saxpy", "3 arguments (x, y, a)", "4")),
    ("saxpy(X, Y, 1.0, b=2)", TypeError, ("saxpy", "`b`", "x, y, a")),
    ("saxpy(X, Y, 1.0, x=2)", TypeError, ("saxpy", "`x`", "twice")),
    ("saxpy(X, 3.0, 1.0)", TypeError, ("saxpy", "`y`", "float", "jax.numpy.asarray")),
    ("saxpy(X, None, 1.0)", TypeError, ("saxpy", "`y`", "NoneType", "jax.numpy.asarray")),
    ("saxpy(X, Y, 'a')", TypeError, ("saxpy", "`a`", "str")),
    ("saxpy(X, Y, X)", TypeError, ("saxpy", "`a`", "number")),
    ("counted(X, 1.5)", TypeError, ("repeat", "`n`", "1.5", "int(1.5)")),
    ("saxpy(X.reshape(2, 4), Y, 1.0)", RuntimeError, ("saxpy",)),
    ("typed(X.astype(int))", RuntimeError, ("typed", "`x`", "float32")),
    ("jax.grad(lambda x: accumulate(x, X).sum())(X)", ValueError, ("accumulate", "backward", "as_jax_call")),
    ("jax.grad(lambda x: bad_gradient(x).sum())(X)", TypeError, ("copy", "2 gradients", "x")),
    ("bad_launch(X)", RuntimeError, ("copy", "launch rule", "blockDim.x", "1024")),
    (
        "jax.block_until_ready(jax.ffi.ffi_call('weft', X)(X, weft=7, rank=1))",
        Exception,
        ("weft", "not loaded", "as_jax_call"),
    ),
]

TORCH = [Wrong(MAKE.format("made") + options + ")", *rest) for options, *rest in MAKING] + [
    Wrong(*row) for row in TORCH
]
JAX = [Wrong(CALL + options + ")", *rest) for options, *rest in MAKING] + [Wrong(*row) for row in JAX]
