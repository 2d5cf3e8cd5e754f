"""The argument types of the names that kernels use, for type checkers only: numbers of Python's and NumPy's."""

from typing import Any, TypeAlias

import numpy as np

Int: TypeAlias = int | np.integer[Any] | np.bool_
Real: TypeAlias = float | np.floating[Any] | Int
Complex: TypeAlias = complex | np.complexfloating[Any, Any] | Real
Index: TypeAlias = Int | tuple[Int, ...]
Extents: TypeAlias = Int | tuple[Int, ...]
