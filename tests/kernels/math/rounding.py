# weft: sig = "void(float64[::1], float32[::1], float64, float32, uint64)", show = ["ir", "ptx"]
"""Arithmetic and conversions with explicit rounding modes; round-to-nearest operations are never fused."""

from weft import cuda
from weft.cuda import libdevice


@cuda.jit
def rounding(d, f, x, y, n):
    d[0] = libdevice.dadd_rz(x, d[0])
    d[1] = libdevice.fma_ru(x, d[1], 2.0)
    d[2] = libdevice.dsqrt_rd(x)
    d[3] = libdevice.dadd_rn(libdevice.dmul_rn(x, d[3]), x)
    d[4] = libdevice.ull2double_ru(n)
    f[0] = libdevice.fmul_ru(y, f[0])
    f[1] = libdevice.frcp_rd(y)
    f[2] = libdevice.fsub_rz(y, f[2])
    f[3] = libdevice.double2float_rz(x)
    f[4] = libdevice.fadd_rn(libdevice.fmul_rn(y, f[4]), y)
    f[5] = libdevice.fast_expf(y)
    f[6] = libdevice.fast_fdividef(y, f[6])
