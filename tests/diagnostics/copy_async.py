# weft: sig = "void(float32[::1], float32[:, ::1], int32)"
"""Asynchronous copies with wrong operands."""

from weft import cuda, float32


@cuda.jit
def copy_async(a, b, n):
    s = cuda.shared.array(32, float32)
    cuda.copy_async(s)  # error: [E0206] "takes 4 arguments"
    cuda.copy_async(s, 0)  # error: [E0205] "no overload"
    cuda.copy_async(s, 0, n, 0)  # error: [E0205] "no overload"
    cuda.copy_async(s, (0, 0), a, 0)  # error: [E0208] "2 indices for an array of 1 dimension"
    cuda.copy_wait(n)  # error: [E0210] "compile-time integer from 0 to 255"
    cuda.copy_wait(0, n)  # error: [E0210] "must be True or False"
    cuda.copy_async(s, a)  # error: [E0205] "copies from a C-contiguous array in shared memory"
    cuda.copy_async(s, s)  # error: [E0205] "copies to a C-contiguous array in global memory"
    cuda.copy_async(b, s[:3])  # error: [E0205] "a multiple of 16 bytes, not 12"
