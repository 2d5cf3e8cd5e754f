# weft: sig = "void(float32[::1], float32[:, ::1])"
"""Errors in calls of functions that weft implements in Python are reported at the call."""

import cmath
import operator

import numpy as np

from weft import cuda


@cuda.jit
def no_numpy_overload(x, y):
    x[0] = np.sum(x[1])  # error: [E0205] "numpy.sum"
    x[1] = np.gcd(x[2], 3)  # error: [E0205] "numpy.gcd"
    x[2] = y.mean(0)  # error: [E0205] "would return an array"
    np.sin(x)  # error: [E0205] "needs an array for the results"
    np.add(x, y, x)  # error: [E0205] "numpy.add"
    x[3] = np.trace(x)  # error: [E0205] "numpy.trace"
    x[4] = cmath.isclose(x[0], x[1], tolerance=1.0)  # error: [E0206] "tolerance"
    x[5] = operator.add(x[0])  # error: [E0206] "takes 2 arguments"
    x[6] = isinstance(x[0], 7)  # error: [E0205] "isinstance"
    x[7] = np.iinfo(np.float32).max  # error: [E0205] "numpy.iinfo"
    x[8] = np.cumsum(x)  # error: [E0205] "would return an array"
