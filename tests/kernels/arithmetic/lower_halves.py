# weft: sig = "void(int32[::1], uint32[::1], int64, int64)", show = ["ir", "ptx"]
"""Sums of which only the lower half is stored are int32, a generator's state is uint32; compared values are int64."""

from weft import cuda


@cuda.jit
def lower_halves(out, seeds, n, step):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        whole = 0
        state = seeds[i]
        for k in range(n):
            state = (1664525 * state + 1013904223) & 0xFFFFFFFF
            total += (state >> 7) * step ^ total << 3
            whole += state
        out[i] = total if whole > 0 else -total
