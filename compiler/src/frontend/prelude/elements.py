"""Elements of arrays in C order: `item(a, k)` is the element at the linear index `k`; a number is its own item."""

import numpy as np


def least_size(n, a):
    """The minimum of `n` and the size of `a`; a number is broadcast to any size."""
    if isinstance(a, np.ndarray):
        return min(n, a.size)
    return n


def same_shape(a, b):
    """Whether an array has the shape of another; a number has any shape."""
    if isinstance(a, np.ndarray):
        return a.shape == b.shape if a.ndim == b.ndim else False
    return True


def each1(f, a, out):
    """`out[...] = f(a[...])`."""
    if not same_shape(a, out):
        a = broadcast(a, out)
        for k in range(out.size):
            put(out, k, f(item(a, k)))
        return
    for k in range(out.size):
        put(out, k, f(item(a, k)))


def each2(f, a, b, out):
    """`out[...] = f(a[...], b[...])`."""
    if not (same_shape(a, out) and same_shape(b, out)):
        a, b = broadcast(a, out), broadcast(b, out)
        for k in range(out.size):
            put(out, k, f(item(a, k), item(b, k)))
        return
    for k in range(out.size):
        put(out, k, f(item(a, k), item(b, k)))


def each3(f, a, b, c, out):
    """`out[...] = f(a[...], b[...], c[...])`."""
    if not (same_shape(a, out) and same_shape(b, out) and same_shape(c, out)):
        a, b, c = broadcast(a, out), broadcast(b, out), broadcast(c, out)
        for k in range(out.size):
            put(out, k, f(item(a, k), item(b, k), item(c, k)))
        return
    for k in range(out.size):
        put(out, k, f(item(a, k), item(b, k), item(c, k)))


def each1_pair(f, a, out, more):
    """`out[...], more[...] = f(a[...])`."""
    a, more = broadcast(a, out), broadcast(more, out)
    for k in range(out.size):
        x, y = f(item(a, k))
        put(out, k, x)
        put(more, k, y)


def each2_pair(f, a, b, out, more):
    """`out[...], more[...] = f(a[...], b[...])`."""
    a, b, more = broadcast(a, out), broadcast(b, out), broadcast(more, out)
    for k in range(out.size):
        x, y = f(item(a, k), item(b, k))
        put(out, k, x)
        put(more, k, y)
