# weft: sig = "void(CPointer(int32), CPointer(complex64), int64)", show = ["ir", "ptx"]
"""Indexing of C pointers: negative indices do not count from the end."""

from weft import cuda


@cuda.jit(device=True)
def last(p, n):
    return p[n - 1]


@cuda.jit
def pointers(p, z, n):
    i = cuda.grid(1)
    p[i] += last(p, i)
    z[-i] = z[i] * 2
    cuda.atomic.add(p, n, 1)
    cuda.stcs(p, 0, cuda.ldcg(p, i))
