# weft: sig = "void(float32[::1], int8[::1], CPointer(complex128), int64)", show = ["ir", "ptx"], without = "host"
"""Functions of other languages: the ABIs of Numba and C, numbers of all sizes, pointers, and no result."""

import cffi

from weft import cuda

ffi = cffi.FFI()
scaled = cuda.declare_device("scaled", "float32(float32, float16)")
summed = cuda.declare_device("summed", sig="complex128(CPointer(float32), int64, complex64)")
touched = cuda.declare_device("touched", "void(CPointer(complex128), boolean)", use_cooperative=True)
narrow = cuda.declare_device("narrow", "int8(int8, uint16)", abi="c")
pair = cuda.declare_device("pair", "Tuple((int8, complex128))(complex64, Tuple((boolean, float16)), int32)", abi="c")
packed = cuda.declare_device("packed", "Tuple((int8, complex128))(Tuple((boolean, float16)))")
half = cuda.declare_device("half", "float16(float16, bfloat16)", abi="c")
plain = cuda.declare_device("plain", "void(CPointer(int8))", abi="c")


@cuda.declare_device("with_python", "float64(float64)", abi="c")
def with_python(x):
    return x


@cuda.jit(device=True)
def both(x, i):
    return scaled(x[i], 2) + with_python(x[i])


@cuda.jit
def external(x, b, z, n):
    i = cuda.grid(1)
    x[i] = both(x, i)
    total = summed(ffi.from_buffer(x), n, x[i])
    z[i] = total
    touched(z, total.real > 0)
    b[i] = narrow(b[i], i)
    plain(ffi.from_buffer(b))
    x[n] = half(x[i], x[n])
    small, large = pair(x[i], (n > 3, x[i]), 5)
    b[i] += small
    z[n] = large + packed((n > 3, x[i]))[1]
