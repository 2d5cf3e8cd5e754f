"""The second set of kernels: of the kind that Rodinia and courses on CUDA have, one file per group.

They are a measure. Nothing in weft is tuned for one of them, and they are not changed to suit it: Python as a scientist
writes it for numba.cuda (plain integers, float32 constants where a float64 would spoil float32), and the C++ kernel as
a CUDA programmer writes the same algorithm on the same grid, with int for indices, float literals, and pointers that
are not `__restrict__`. Where that makes a C++ kernel narrower than what Numba's typing computes the data in (a sum of
int32 is int64 there), the case says so: `wider=True`. Indices, counters and sums that are stored as int32 at once do
not count.
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
