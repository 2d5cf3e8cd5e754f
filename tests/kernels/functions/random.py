# weft: sig = "void(from_dtype(np.dtype([('s0', 'u8'), ('s1', 'u8')], align=True))[::1], float32[::1], int64)", show = ["ptx"]
"""Random numbers are computed in registers: a state is read and written once, and Philox is no loop."""

from weft import cuda
from weft.cuda.random import philox_uniform_float32, xoroshiro128p_uniform_float32


@cuda.jit
def random(states, out, seed):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = xoroshiro128p_uniform_float32(states, i) + philox_uniform_float32(seed, i, 0)
