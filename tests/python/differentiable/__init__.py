"""Random differentiable kernels: adjoint and tangent kernels beside differences.

    python tests/python/differentiable --count 2000 --jobs 2

`programs` writes a kernel of float64 from a seed, out of the `statements` and `expressions`; `check` compares its
derivatives. `docs/design/fuzzing.md` says how.
"""
