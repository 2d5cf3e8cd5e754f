"""The fourth set of kernels: kinds from HeCBench, Parboil, PolyBench-GPU and applications, one file per group.

The rules of `second` apply: weft is not tuned for any of them, the Python code is as a scientist writes it for
numba.cuda, and the C++ kernel is as a CUDA programmer writes the same algorithm on the same grid. There are no
reference kernels in C for them, so that `cpu.py` does not have this set.
"""

from suite.case import Case, Work

from fourth import (
    elements,
    finance_newton,
    kalman,
    keys,
    lifting,
    molecules,
    normalization,
    polybench,
    radiology,
    ragged,
    resampling,
    sequences,
    small_matrices,
    sparse,
    surveys,
    textures,
    trees,
    volumes,
)

CASES: tuple[Case, ...] = (
    *molecules.CASES,
    *radiology.CASES,
    *surveys.CASES,
    *sparse.CASES,
    *resampling.CASES,
    *small_matrices.CASES,
    *sequences.CASES,
    *trees.CASES,
    *keys.CASES,
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
