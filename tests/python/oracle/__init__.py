"""An oracle for kernels: runs a kernel's Python source in CPython, over a grid, with Numba's typing rules.

`launch(kernel, grid, block, *args)` takes the same function and arguments as weft, works on copies, and gives the
arguments after the launch. The source is rewritten (`rewrite.py`) so that each operator, subscript, attribute and call
goes through `numeric.py` and `emulate.py`. A block's threads are generators that run in turn between barriers; blocks
run one after the other.

Limits: it sees values, not types, so a variable has the type of the value it holds and not the type that all paths
together give it (`x if c else 0.0` is float32 where `c` is true). Values agree; roundings of later float32 arithmetic
may not. Data races come out in thread order. Barriers must be called by a name or attribute that can be resolved when
the function is read (`cuda.syncthreads()`), not through a local variable.
"""

from oracle.launch import launch

__all__ = ["launch"]
