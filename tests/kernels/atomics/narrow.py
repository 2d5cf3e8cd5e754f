# weft: sig = "void(uint8[::1], int16[::1], float16[::1], boolean[::1], complex64[::1])", show = ["ptx"]
"""Elements of less than 32 bits are parts of a word that is swapped; a complex number is two steps."""

from weft import cuda


@cuda.jit
def narrow(b, s, h, flags, z):
    cuda.atomic.add(b, 1, 200)
    s[1] = cuda.atomic.min(s, 0, -5)
    cuda.atomic.add(h, 1, 0.5)
    cuda.atomic.or_(flags, 3, True)
    cuda.atomic.add(z, 0, 1 + 2j)
