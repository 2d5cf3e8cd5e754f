# weft: sig = "void(uint32[::1], int64[::1], int32)", show = ["ir", "ptx"]
"""Functions on bits."""

from weft import cuda
from weft.cuda import libdevice


@cuda.jit
def bits(u, n, k):
    u[0] = cuda.popc(u[0])
    u[1] = cuda.ffs(u[1])
    u[2] = cuda.brev(u[2])
    u[3] = cuda.byte_perm(u[3], u[4], k)
    u[4] = cuda.funnelshift_lc(u[5], u[6], k)
    u[5] = cuda.funnelshift_r(u[6], u[7], k)
    n[0] = cuda.clz(n[0])
    n[1] = libdevice.mul64hi(n[1], n[2])
    n[2] = k.bit_count()
