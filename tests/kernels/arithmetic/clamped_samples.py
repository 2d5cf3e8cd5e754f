# weft: sig = "void(float32[::1], float32[::1], float32[::1])", assume = ["disjoint", "small"], show = ["ptx"]
"""Indices of samples are computed in 32 bits, although `int` of a float is an int64: clamped, and tested before use."""

from weft import cuda


@cuda.jit(device=True)
def clamped(x, n):
    return min(max(x, 0), n - 1)


@cuda.jit
def clamped_samples(samples, positions, out):
    i = cuda.grid(1)
    if i < out.size:
        at = int(positions[i])
        out[i] = samples[clamped(at - 1, samples.size)] + samples[clamped(at + 2, samples.size)]
        near = int(positions[out.size - 1 - i])
        if near >= 0 and near < samples.size - 1:
            out[i] += samples[near] + samples[near + 1]
