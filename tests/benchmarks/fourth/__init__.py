"""The fourth set of kernels: as in PolyBench-GPU, HeCBench and applications, one file per group.

They are a measurement: weft is not tuned for any of them, and they are not changed to suit it. The Python code and the
C++ code are written by the rules of second/.
"""

from suite.case import Case, Work

from fourth import elements, finance_newton, kalman, lifting, normalization, polybench, ragged, textures, volumes

CASES: tuple[Case, ...] = (
    *polybench.CASES,
    *normalization.CASES,
    *ragged.CASES,
    *textures.CASES,
    *lifting.CASES,
    *volumes.CASES,
    *elements.CASES,
    *finance_newton.CASES,
    *kalman.CASES,
)

__all__ = ["CASES", "Case", "Work"]
