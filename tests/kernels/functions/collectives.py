# weft: sig = "void(float32[::1], float32[::1])", show = ["ptx"], targets = ["sm_90"]
"""Block-wide sums and scans: shuffles, slots in shared memory, and two barriers per call."""

from weft import cuda
from weft.cuda import coop


@cuda.jit(launch_bounds=256)
def collectives(x, out):
    i = cuda.grid(1)
    out[i] = coop.block.exclusive_sum(x[i]) / coop.block.sum(x[i])
