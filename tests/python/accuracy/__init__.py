"""How far weft's math functions are from the exact result: measured, and made into docs/reference/accuracy.md.

`functions` says what is measured, `points` at which arguments, `reference` computes exact results (MPFR, through
gmpy2), `ulp` holds results against them, `kernels` runs weft, `measure` puts these together, `page` writes the page.
`./weft-dev accuracy` runs the package. tests/python/conformance/language/test_accuracy.py compares a sample with the
bounds of the page.

An ulp is Goldberg's: for a number of size 2**e to 2**(e+1), the distance of neighbors there, and the distance of
subnormals for what is smaller than all normal numbers. The error is |result - exact| / ulp(exact).
"""
