"""Functions of `math` that no back end implements, and `**` of a float and an integer."""

import math

import numpy as np


def integer_power(x, n):
    """`x ** n` of a float and an integer: the same multiplications as for a constant exponent, in the same order."""
    if n > 65536 or n < -65536:
        return math.pow(x, type(x)(n))
    left = np.int32(n) if n > 0 else -np.int32(n)
    product = type(x)(1)
    square = x
    while left != 0:
        if left & 1:
            product *= square
        left >>= 1
        square *= square
    return type(x)(1) / product if n < 0 else product


def math_log(x, base):
    """`math.log(x, base)`."""
    return math.log(x) / math.log(base)


def math_ulp(x):
    """`math.ulp`."""
    if not math.isfinite(x):
        return abs(x)
    above = math.nextafter(abs(x), type(x)(math.inf))
    # The largest number has no finite successor: the distance to its predecessor is the same.
    return above - abs(x) if math.isfinite(above) else abs(x) - math.nextafter(abs(x), type(x)(0))


def math_isclose(a, b, rel_tol=1e-09, abs_tol=0.0):
    """`math.isclose`."""
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    apart = abs(a - b)
    return apart <= abs(rel_tol * b) or apart <= abs(rel_tol * a) or apart <= abs_tol


def math_isqrt(n):
    """`math.isqrt`: the rounded root is at most one off."""
    if n <= 0:
        return type(n)(0)
    # No 64-bit square has a larger root.
    root = min(np.uint64(math.sqrt(np.float64(n))), np.uint64(0xFFFFFFFF))
    wide = np.uint64(n)
    if root * root > wide:
        root -= np.uint64(1)
    elif root < np.uint64(0xFFFFFFFF) and (root + np.uint64(1)) * (root + np.uint64(1)) <= wide:
        root += np.uint64(1)
    return type(n)(root)


def math_factorial(n):
    """`math.factorial`."""
    product = type(n)(1)
    factor = type(n)(2)
    # From 66! on, all lower 64 bits are zero.
    while factor <= min(n, type(n)(66)):
        product *= factor
        factor += type(n)(1)
    return product


def math_perm(n, k=None):
    """`math.perm`."""
    if k is None:
        return math_factorial(n)
    if k > n or n < 0 or k < 0:
        return type(n)(0)
    product = type(n)(1)
    done = type(n)(0)
    while done < k and product != 0:
        product *= n - done
        done += type(n)(1)
    return product


def math_comb(n, k):
    """`math.comb`: each factor is divided by its common divisor with the next divisor before it can overflow."""
    if k > n or n < 0 or k < 0:
        return type(n)(0)
    steps = np.uint64(min(k, n - k))
    product = np.uint64(1)
    done = np.uint64(0)
    while done < steps:
        factor = np.uint64(n) - done
        done += np.uint64(1)
        common = math_gcd(product, done)
        # The remaining divisor divides the factor.
        product = (product // common) * (factor // (done // common))
    return type(n)(product)
