# weft: sig = "void(from_dtype(np.dtype([('s0', 'u8'), ('s1', 'u8')], align=True))[::1], float32[::1], int64)", show = ["ptx"]
"""Random numbers use registers: a state is loaded and stored once, and Philox has no loop."""

from weft import cuda
from weft.cuda.random import philox_uniform_float32, xoroshiro128p_uniform_float32


@cuda.jit
def random(states, out, seed):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = xoroshiro128p_uniform_float32(states, i) + philox_uniform_float32(seed, i, 0)
