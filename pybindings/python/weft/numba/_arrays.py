"""Changes of device arrays when `numba.cuda` is weft, after its import."""

from __future__ import annotations

import sys

# The module of numba's class of device arrays.
_MODULE = "numba.cuda.cudadrv.devicearray"


def join() -> None:
    """Have totals be numbers, as they are of numba's arrays, and a base of device arrays be of numba by its module.

    Libraries such as Dask choose what handles an object by the packages that its class and the bases of that are of.
    The class itself remains where pickles find it in every process.
    """
    from weft.cuda._memory import generic, operators

    operators.totals_are_numbers(True)
    generic.Array.__module__ = _MODULE


def part() -> None:
    """Undo it."""
    if "weft.cuda._memory.operators" in sys.modules:
        from weft.cuda._memory import generic, operators

        operators.totals_are_numbers(False)
        generic.Array.__module__ = generic.__name__
