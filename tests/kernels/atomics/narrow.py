# weft: sig = "void(uint8[::1], int16[::1], float16[::1], boolean[::1], complex64[::1])", show = ["ptx"]
"""An atomic operation on less than 32 bits swaps the containing word; on a complex number it is two operations."""

from weft import cuda


@cuda.jit
def narrow(b, s, h, flags, z):
    cuda.atomic.add(b, 1, 200)
    s[1] = cuda.atomic.min(s, 0, -5)
    cuda.atomic.add(h, 1, 0.5)
    cuda.atomic.or_(flags, 3, True)
    cuda.atomic.add(z, 0, 1 + 2j)
