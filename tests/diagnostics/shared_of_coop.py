# weft: sig = "void(float64[::1])"
"""A sort whose items do not fit into shared memory, where a block may have 1024 threads."""

from weft import cuda, float64


@cuda.jit
def shared_of_coop(x):
    items = cuda.local.array(8, float64)
    for k in range(8):
        items[k] = x[k]
    cuda.coop.block.merge_sort_keys(items)  # error: [E0305] "bytes"
    for k in range(8):
        x[k] = items[k]
