"""Over the elements of arrays, in C order: `item(a, k)` is the element with the number `k`, and any number itself."""

import numpy as np


def least_size(n, a):
    """The smaller of `n` and the size of `a`; a number has as many elements as it takes."""
    if isinstance(a, np.ndarray):
        return min(n, a.size)
    return n


def each1(f, a, out):
    """`out[...] = f(a[...])`."""
    for k in range(least_size(out.size, a)):
        put(out, k, f(item(a, k)))


def each2(f, a, b, out):
    """`out[...] = f(a[...], b[...])`."""
    for k in range(least_size(least_size(out.size, a), b)):
        put(out, k, f(item(a, k), item(b, k)))


def each3(f, a, b, c, out):
    """`out[...] = f(a[...], b[...], c[...])`."""
    for k in range(least_size(least_size(least_size(out.size, a), b), c)):
        put(out, k, f(item(a, k), item(b, k), item(c, k)))
