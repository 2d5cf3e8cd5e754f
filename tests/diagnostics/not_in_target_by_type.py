# weft: sig = "void(uint32[::1])"
"""PTX whose types the target, which is sm_80 here, does not have."""

import numpy as np
from weft import cuda


@cuda.jit
def not_in_target_by_type(x):
    x[0] = cuda.inline_ptx("fma.rn.bf16x2 %0, %1, %1, %1;", "=r", np.uint32, "r", x[0])
    x[1] = cuda.inline_ptx("add.rn.bf16x2 %0, %1, %1;", "=r", np.uint32, "r", x[1])  # error: [E0308] "`sm_90` or newer"
