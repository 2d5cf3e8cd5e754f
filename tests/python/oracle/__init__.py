"""An oracle for kernels: runs a kernel's Python source in CPython, over a grid, with Numba's typing rules.

`launch(kernel, grid, block, *args)` takes the same function and arguments as weft, works on copies, and returns the
arguments after the launch. The source is rewritten (`rewrite.py`) so that each operator, subscript, attribute and call
goes through `numeric.py` and `emulate.py`. A block's threads are generators that run one after the other between
barriers; blocks run one after the other.

Limits: the oracle sees values, not types. A variable has the type of its current value, not the unified type of all
paths (`x if c else 0.0` is float32 where `c` is true). Values are the same, but later float32 arithmetic may round
differently. Data races resolve in thread order. Barriers must be called by a name or attribute that can be resolved
when the function is rewritten (`cuda.syncthreads()`), not through a local variable.
"""

from oracle.launch import launch

__all__ = ["launch"]
