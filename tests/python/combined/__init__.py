"""Random kernels that combine what the CPU back end transforms, for a plan of any CPU.

    python tests/python/combined --count 2000 --jobs 2

A kernel is a sequence of *pieces*: divergent exits, row traversals, boundary tests, strided loops, atomics, shared
tiles, warp operations. Each piece has the form that real programs use, since the planner matches patterns. The order,
nesting and guards of the pieces and the shapes of the launches are random. `programs` writes a program from a seed,
`reference` runs it by CPython, `check` runs it on weft, `sweep` runs many in processes of their own, `pairs` counts
which planner features occurred together. `docs/design/fuzzing.md` says why it is so.

Nothing here needs more than Python, NumPy and weft.
"""
