# weft: sig = "void(float64[::1])"
"""Arrays of earlier iterations, in a variable and while an expression or a loop is evaluated."""

import numpy as np
from weft import cuda


@cuda.jit
def remade(x):
    now = np.zeros(2)
    last = np.zeros(2)
    other = np.zeros(2)
    for k in range(x.size):
        before = now
        now = np.ones(2)
        x[k] = before[0]  # error: [E0221] "`before` is an array of an earlier iteration"
        pair = (last, last := np.ones(2))  # error: [E0221] "made in an earlier iteration"
        x[k] += pair[0][0]
        for value in other:  # error: [E0221] "made in an earlier iteration"
            other = np.full(2, value)
