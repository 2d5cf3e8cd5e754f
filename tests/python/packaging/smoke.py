"""test_wheel.py runs this program in a clean environment: import, compile, launch, inspect."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from weft import cuda


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


n = 1000
x = np.arange(n, dtype=np.float32)
y = np.ones(n, dtype=np.float32)
out = np.zeros(n, dtype=np.float32)
saxpy[8, 128](np.float32(2.0), x, y, out)
np.testing.assert_array_equal(out, 2.0 * x + y)
# The drop-in, in a process and in its child process, which finds it through a folder of the wheel.
child = "from numba import cuda; assert cuda.implementation == 'weft'"
code = f"{child}; import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
subprocess.run([sys.executable, "-m", "weft.numba", "-c", code], check=True)
print(f"weft works on Python {sys.version_info.major}.{sys.version_info.minor}")
