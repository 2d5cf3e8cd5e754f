"""The second set of kernels: similar to those of Rodinia and of courses on CUDA, one file per group.

They are a measurement: weft is not tuned for any of them, and they are not changed to suit it. The Python code is as a
scientist writes it for numba.cuda (plain integers, float32 constants where a float64 would widen float32), and the C++
kernel is as a CUDA programmer writes the same algorithm on the same grid, with int for indices, float literals, and
pointers that are not `__restrict__`. If the C++ kernel therefore has narrower types for its data than Numba's typing (a
sum of int32 is int64 there), the case is marked with `wider=True`. Indices, counters and sums that are stored as int32
at once do not count.
"""

from suite.case import Case, Work

from second import bytewise, dense, dynamic, graph, hashing, images, lattice, random_numbers, scans, signals, vectors

CASES: tuple[Case, ...] = (
    *bytewise.CASES,
    *images.CASES,
    *lattice.CASES,
    *dense.CASES,
    *graph.CASES,
    *scans.CASES,
    *dynamic.CASES,
    *random_numbers.CASES,
    *vectors.CASES,
    *signals.CASES,
    *hashing.CASES,
)

__all__ = ["CASES", "Case", "Work"]
