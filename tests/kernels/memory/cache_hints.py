# weft: sig = "void(float32[::1], uint8[::1], int64[:, :])", show = ["ir", "ptx"]
"""Loads and stores with a cache operator, and clocks; in shared memory the operator has no effect."""

from weft import cuda, float32


@cuda.jit
def cache_hints(f, b, n):
    s = cuda.shared.array(4, float32)
    cuda.stcg(f, 0, cuda.ldca(f, 1))
    cuda.stcs(b, 0, cuda.ldcg(b, 1))
    cuda.stwt(n, (0, 1), cuda.ldcv(n, (1, 0)))
    cuda.stwb(s, 0, cuda.ldcs(f, 2))
    f[3] = cuda.ldlu(s, cuda.threadIdx.x)
    cuda.nanosleep(50)
    n[0, 0] = cuda.clock64() + cuda.clock() + cuda.globaltimer()
