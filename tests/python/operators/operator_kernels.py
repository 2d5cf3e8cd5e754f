"""Kernels that the tests of operators use, with their rules."""

from __future__ import annotations

from weft import cuda

SIGNATURE = "void(float32[:], float32[:], float32, float32[:])"
IN_PLACE = "void(float32[:], float32[:])"


@cuda.jit
def saxpy(x, y, a, out):
    """out = a * x + y."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


@cuda.jit
def accumulate(x, out):
    """out += x."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] += x[i]


@cuda.jit
def outer(x, y, product, total):
    """Two results of different shapes: the outer product, and the sums of its rows."""
    row = cuda.blockIdx.x
    for column in range(y.size):
        product[row, column] = x[row] * y[column]
        total[row] += x[row] * y[column]  # it starts with zeros


OUTER = "void(float32[:], float32[:], float32[:, :], float32[:])"


def over(x):
    """The launch rule of one thread for each element of `x`."""
    return (x.size + 255) // 256, 256


def over_out(out):
    """The same for `out`."""
    return (out.size + 255) // 256, 256


@cuda.jit(device=True)
def device(x):
    """No kernel."""
    return x


@cuda.jit
def reader(x):
    """A kernel that writes nothing."""
    i = cuda.grid(1)
    if i < x.size and x[i] > 1e30:
        print(i)


@cuda.jit("void(float32[:], float32[:])")
def typed(x, out):
    """A kernel of one signature."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


@cuda.jit
def copy(x, out):
    """out = x."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


@cuda.jit
def repeat(x, n, out):
    """out = n * x."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = n * x[i]
