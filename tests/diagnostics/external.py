# weft: sig = "void(float32[::1], float32[:])"
"""Calls of functions of other languages that cannot be."""

import cffi

from weft import cuda

ffi = cffi.FFI()
of_array = cuda.declare_device("of_array", "int32(float32[::1])")
twice = cuda.declare_device("twice", "float32(float32)")
also_twice = cuda.declare_device("twice", "float64(float64)")
many = cuda.declare_device("many", "float32[:](float32)", abi="c")
external_kernel = cuda.declare_device("external", "int32()")


@cuda.jit
def external(x, y):
    a = of_array(x)  # error: [E0211] "takes numbers, pointers and tuples of them, not array(float32, 1d, C)"
    b = twice(x[0])
    c = also_twice(x[0])  # error: [E0301] "declared with two different signatures"
    d = many(x[0])  # error: [E0301] "which a C function cannot return"
    e = external_kernel()  # error: [E0301] "the kernel has the same name"
    f = twice(x[0], x[1])  # error: [E0206] "takes 1 argument"
    g = twice(x)  # error: [E0205] "no signature of `twice`"
    h = ffi.from_buffer(y)  # error: [E0211] "takes contiguous arrays"
    i = ffi.from_buffer(x[0])  # error: [E0211] "takes an array"
