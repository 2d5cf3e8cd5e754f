"""Functions that kernels call, constants from a closure, and the PTX of a kernel."""

import math

import numpy as np
from weft import cuda


@cuda.jit(device=True)
def norm(v):
    total = v[0] * v[0]
    for k in range(1, v.size):
        total += v[k] * v[k]
    return math.sqrt(total)


@cuda.jit(device=True)
def limited(value, low=0.0, high=1.0):
    if value < low:
        return low
    return min(value, high)


def make_kernel(scale):
    """Make a kernel with `scale` as a constant: each call makes another one."""

    @cuda.jit
    def kernel(vectors, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = limited(norm(vectors[i]) * scale, high=2.0)  # vectors[i] is a row: a view, not a copy

    return kernel


def main():
    vectors = np.random.default_rng(0).normal(size=(1000, 3))
    for scale in (0.5, 1.5):
        kernel = make_kernel(scale)
        out = np.zeros(len(vectors))
        kernel[8, 128](vectors, out)
        np.testing.assert_allclose(out, np.clip(np.linalg.norm(vectors, axis=1) * scale, 0, 2), rtol=1e-14)

    out = np.zeros(len(vectors), np.float32)
    kernel[8, 128](vectors.astype(np.float32), out)  # other types: another specialization
    print(f"09_device_functions: {len(kernel.signatures)} specializations of the last kernel:")
    for signature in kernel.signatures:
        lines = kernel.inspect_asm(signature).count("\n")
        print(f"    {', '.join(map(str, signature))}: {lines} lines of PTX")


if __name__ == "__main__":
    main()
