"""Measures the errors of weft's math functions, and generates docs/reference/accuracy.md.

`functions` lists the measured functions, `points` their arguments. `reference` computes exact results (MPFR, through
gmpy2), `ulp` computes errors, `kernels` runs weft, `measure` combines these, and `page` writes the page. `./weft-dev
accuracy` runs the package. tests/python/conformance/language/test_accuracy.py compares a sample with the bounds of the
page.

An ulp is Goldberg's: for a number with absolute value in [2**e, 2**(e+1)), the distance between adjacent numbers there,
and the distance between subnormals below the smallest normal number. The error is |result - exact| / ulp(exact).
"""
