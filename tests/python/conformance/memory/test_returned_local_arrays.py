"""Local arrays that device functions return: they may return an argument, but not their own array."""

import numpy as np
import pytest
import weft
from weft import cuda

RECORD = np.dtype([("x", "i4"), ("y", "f8")])


@cuda.jit(device=True)
def tail(a):
    return a[1:]


@cuda.jit(device=True)
def larger(a, b):
    if a[0] > b[0]:
        return a
    return b


@cuda.jit(device=True)
def both(a, n):
    own = cuda.local.array(4, np.float64)
    for i in range(4):
        own[i] = a[i] * n
    return tail(own)[1] + tail(tail(own))[1], larger(a, own)[2]


def test_arrays_of_the_caller_are_returned():
    @cuda.jit
    def kernel(out):
        local = cuda.local.array(4, np.float64)
        shared = cuda.shared.array(4, np.float64)
        for i in range(4):
            local[i], shared[i] = i + 1, 10 * (i + 1)
        tail(local)[0] = 7
        out[0] = tail(tail(local))[0] * 100 + local[1]
        out[1] = larger(local, shared)[3]
        out[2], out[3] = both(local, 2)
        window = (lambda k: local[k:])(2)
        out[4] = window[1]

    out = np.zeros(5)
    kernel[1, 1](out)
    assert out.tolist() == [307.0, 40.0, 14.0, 6.0, 4.0]


@cuda.jit(device=True)
def made():
    own = cuda.local.array(3, np.float64)
    own[0] = 1
    return own


@cuda.jit(device=True)
def in_a_tuple(n):
    own = cuda.local.array(3, np.float64)
    own[0] = n
    return n, own[1:]


@cuda.jit(device=True)
def a_record():
    own = cuda.local.array(3, RECORD)
    own[1].x = 4
    return own[1]


@cuda.jit(device=True)
def on_one_path(a):
    own = cuda.local.array(3, np.float64)
    own[0] = 1
    return a if a[0] > 0 else own


@pytest.mark.parametrize("function", [made, in_a_tuple, a_record, on_one_path])
def test_arrays_of_their_own_are_not(function):
    args = {made: "", in_a_tuple: "2", a_record: "", on_one_path: "out"}[function]
    kernel = cuda.jit(source=f"def kernel(out):\n    r = function({args})\n    out[0] = 1\n")
    names = {"function": function}
    exec(f"def kernel(out):\n    r = function({args})\n    out[0] = 1\n", names)
    with pytest.raises(weft.CompileError, match="in its own local memory"):
        kernel(names["kernel"])[1, 1](np.ones(3))
