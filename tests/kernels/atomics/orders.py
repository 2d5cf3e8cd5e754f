# weft: sig = "void(int32[::1], float32[::1], int32[::1])", show = ["ir", "ptx", "nvvm"]
"""Memory orders and scopes: for a lock, for message passing, and for the host."""

from weft import cuda


@cuda.jit
def orders(lock, message, seen):
    while cuda.atomic.cas(lock, 0, 0, 1, order="acquire") != 0:
        pass
    cuda.atomic.max(message, 0, 2.5, order="acq_rel", scope="block")
    cuda.atomic.exch(lock, 0, 0, order="release")
    cuda.atomic.add(seen, 0, 1, order="seq_cst", scope="system")
