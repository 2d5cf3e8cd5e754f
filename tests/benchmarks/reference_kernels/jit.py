"""How Numba compiles the reference kernels.

As in C, a product and a sum may be contracted to one operation; only `sums` may be reassociated.
"""

from numba import njit, prange

loops = njit(parallel=True, fastmath={"contract"}, error_model="numpy")
sums = njit(parallel=True, fastmath={"contract", "reassoc"}, error_model="numpy")
alone = njit(fastmath={"contract"}, error_model="numpy")
"""For functions that call others or are called by them, or need atomics (which Numba lacks on the CPU): serial."""

__all__ = ["alone", "loops", "prange", "sums"]
