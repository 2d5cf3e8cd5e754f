# weft: sig = "void(float32[:, ::1], int32)"
"""Swizzled arrays that do not exist, and what they cannot do."""

from weft import cuda, float32


@cuda.jit
def swizzled_arrays(a, n):
    s = cuda.shared.array((8, 32), float32, swizzle=128)
    a[0, 0] = s[0, 0]
    cuda.shared.array((8, 32), float32, swizzle=48)  # error: [E0205] "32, 64 or 128 bytes wide, not 48"
    cuda.shared.array((8, 24), float32, swizzle=64)  # error: [E0205] "rows of 96 bytes are not a multiple"
    cuda.shared.array(64, float32, swizzle=64)  # error: [E0205] "has two dimensions or more"
    cuda.shared.array(0, float32, swizzle=64)  # error: [E0205] "has two dimensions or more"
    cuda.shared.array((8, 32), float32, swizzle=n)  # error: [E0205] "must be a compile-time integer"
    cuda.local.array((8, 32), float32, swizzle=64)  # error: [E0206] "has no parameter `swizzle`"
    cuda.shared.swizzled(a, 128)  # error: [E0205] "no overload"
    s[0]  # error: [E0209] "takes two integers as indices"
    s[0:2, 0]  # error: [E0209] "takes two integers as indices"
    a[0, 0] = s.T[0, 0]
    a[0, 0] = s.flat[0]  # error: [E0207] "has no attribute `flat`"
