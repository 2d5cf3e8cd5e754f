"""How Numba compiles the twins: as C's, a product and a sum may be one operation; only `sums` may be added up anew."""

from numba import njit, prange

loops = njit(parallel=True, fastmath={"contract"}, error_model="numpy")
sums = njit(parallel=True, fastmath={"contract", "reassoc"}, error_model="numpy")
alone = njit(fastmath={"contract"}, error_model="numpy")
"""What calls others or is called by them, or needs atomics, which Numba has not on the CPU: no loop over threads."""

__all__ = ["alone", "loops", "prange", "sums"]
