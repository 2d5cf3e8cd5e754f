# weft: sig = "void(int32[::1], int32[::1], int32[::1])", show = ["ptx"]
"""Two pointers over sorted lists: each iteration advances one of them, so that the loop waits for no other thread and
its loads are not volatile."""

from weft import cuda


@cuda.jit
def sorted_merge(left, right, common):
    i, j, count = 0, 0, 0
    while i < left.size and j < right.size:
        u = left[i]
        v = right[j]
        if u == v:
            count += 1
        if u <= v:
            i += 1
        if v <= u:
            j += 1
    common[cuda.grid(1)] = count
