"""The fourteen kernels, one file per group."""

from suite import finance, grid, linear, nbody, pixels, reduction, saxpy, softmax
from suite.case import Case, Work

CASES: tuple[Case, ...] = (
    *saxpy.CASES,
    *pixels.CASES,
    *linear.CASES,
    *reduction.CASES,
    *grid.CASES,
    *finance.CASES,
    *nbody.CASES,
    *softmax.CASES,
)

__all__ = ["CASES", "Case", "Work"]
