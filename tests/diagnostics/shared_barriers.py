# weft: sig = "void(float32[:, ::1], float32[:, :], TensorMap(float32, (4, 32), 128), int32)"
"""Barriers in shared memory, and copies that they count, with wrong operands."""

from weft import cuda, float32, float64


@cuda.jit
def shared_barriers(a, b, boxes, n):
    s = cuda.shared.array(32, float32)
    plain = cuda.shared.array((4, 32), float32)
    swizzled = cuda.shared.array((4, 32), float32, swizzle=128)
    narrow = cuda.shared.array((8, 16), float32, swizzle=64)
    bars = cuda.barrier(1, 2)
    bar = cuda.barrier(n)
    cuda.barrier(1, n)  # error: [E0210] "compile-time integer from 1 to 256"
    cuda.barrier(0)  # error: [E0205] "1 to 1048575 arrivals, not 0"
    cuda.barrier(1.5)  # error: [E0205] "no overload"
    for _ in range(n):
        cuda.barrier(1)  # error: [E0103] "in a loop"
    bars.arrive()  # error: [E0205] "a method of one barrier"
    bars[0].arrive(1)  # error: [E0206] "takes 0 arguments"
    bar.expect(1 << 20)  # error: [E0205] "up to 1048575 bytes"
    bar.wait()  # error: [E0206] "takes 1 argument"
    bar.wait(0.5)  # error: [E0205] "no overload"
    bar.reset()  # error: [E0207] "reset"
    cuda.copy_async(s, a[0], s)  # error: [E0205] "the third argument"
    cuda.copy_async(a[0], s, bar)  # error: [E0205] "to a C-contiguous array in shared memory"
    cuda.copy_async(s, b[0], bar)  # error: [E0205] "from a C-contiguous array in global memory"
    cuda.copy_async(s, plain[0], bar)  # error: [E0205] "from a C-contiguous array in global memory"
    cuda.copy_async(cuda.shared.array(32, float64), a[0], bar)  # error: [E0205] "no overload"
    cuda.copy_async(cuda.shared.array(3, float32), a[0], bar)  # error: [E0205] "a multiple of 16 bytes, not 12"
    cuda.copy_async(swizzled, a, bar)  # error: [E0205] "no overload"
    cuda.copy_async(plain, boxes[0, 0], bar)  # error: [E0205] "swizzle is not that of the tensor map"
    cuda.copy_async(narrow, boxes[0, 0], bar)  # error: [E0205] "swizzle is not that of the tensor map"
    cuda.copy_async(swizzled, boxes[0], bar)  # error: [E0208] "has 2 indices, not 1"
    cuda.copy_async(swizzled, boxes[0, :], bar)  # error: [E0209] "selected by integers"
    cuda.copy_async(swizzled, boxes, bar)  # error: [E0205] "a box of the tensor map"
