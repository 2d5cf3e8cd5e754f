# weft: sig = "(complex64, UniTuple(Tuple(int8, float64), 2), complex128)", abi = "c", show = ["ptx", "nvvm"]
"""Other values than scalars are structs by value, aligned as in CUDA: `cuDoubleComplex` at multiples of 16."""

from weft import cuda


@cuda.jit(device=True)
def c_structs(z, pairs, w):
    return pairs[1][0], z * w, pairs[0][1]
