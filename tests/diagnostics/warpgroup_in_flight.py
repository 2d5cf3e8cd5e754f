# weft: sig = "void(float16[:, ::1], float32[:, ::1], int32)"
"""Products of a warpgroup in flight that are not used exactly once, or otherwise than by `mma` and `wait`."""

from weft import cuda, float16, float32

T = cuda.mma.tile(64, 16, 16, a=float16, b=float16, c=float32, threads=128)
W = cuda.mma.tile(16, 16, 16, a=float16, b=float16, c=float32)


@cuda.jit
def other_uses(x, y, a, b, n):
    acc = T.mma(a, b, T.zeros(), wait=False)
    acc[0]  # error: [E0209] "accumulators in flight"
    len(acc)  # error: [E0205] "accumulators in flight"
    acc + 1  # error: [E0211] "accumulators in flight"
    T.store(y, 0, 0, acc)  # error: [E0205] "accumulators in flight"
    T.a(acc)  # error: [E0205] "accumulators in flight"
    for value in acc:  # error: [E0102] "accumulators in flight"
        y[0, 0] = value
    cuda.mma.wait(n, acc)  # error: [E0210] "from 0 to 7"
    cuda.mma.wait(8)  # error: [E0210] "from 0 to 7"
    cuda.mma.wait(0, T.zeros())  # error: [E0205] "takes what"
    T.mma(a, b, acc, wait=n)  # error: [E0210] "compile-time constant"
    W.mma(W.a(x, 0, 0), W.b(x, 0, 0), W.zeros(), wait=False)  # error: [E0205] "only a warpgroup's products"
    left = T.mma(T.a(T.zeros()[:8]), b, T.zeros(), wait=False)
    T.mma(a, b, left)  # error: [E0205] "does not take"


@cuda.jit
def passed(acc):
    return cuda.mma.wait(0, acc)  # error: [E0222] "not in flight here"


@cuda.jit
def ignored(acc):
    return 1


@cuda.jit
def returned(a, b):
    return T.mma(a, b, T.zeros(), wait=False)  # error: [E0222] "cannot be used here"


@cuda.jit
def without_end(a, b):
    T.mma(a, b, T.zeros(), wait=False)  # error: [E0222] "no `cuda.mma.wait` completes this product"


@cuda.jit
def used_twice(a, b, y):
    acc = T.mma(a, b, T.zeros(), wait=False)
    T.store(y, 0, 0, cuda.mma.wait(0, acc))
    T.store(y, 0, 0, cuda.mma.wait(0, acc))  # error: [E0222] "used before"


@cuda.jit
def too_early(a, b, y):
    p = T.mma(a, b, T.zeros(), wait=False)
    q = T.mma(a, b, T.zeros(), wait=False)
    T.store(y, 0, 0, cuda.mma.wait(1, p))
    T.store(y, 0, 0, cuda.mma.wait(1, q))  # error: [E0222] "no product begins after it"


@cuda.jit
def under_a_condition(a, b, y, n):
    acc = T.mma(a, b, T.zeros(), wait=False)
    if n > 0:
        acc = T.mma(a, b, acc, wait=False)  # error: [E0222] "cannot be waited for or continued in it"
    T.store(y, 0, 0, cuda.mma.wait(0, acc))


@cuda.jit
def begun_under_a_condition(a, b, y, n):
    if n > 0:
        acc = T.mma(a, b, T.zeros(), wait=False)  # error: [E0222] "begins under a condition"
        n = 1


@cuda.jit
def once_in_a_loop(a, b, y, n):
    acc = T.mma(a, b, T.zeros(), wait=False)
    for _ in range(n):
        T.store(y, 0, 0, cuda.mma.wait(0, acc))  # error: [E0222] "its variable is not at the end"


@cuda.jit
def of_an_iteration(a, b, y, n):
    for _ in range(n):
        acc = T.mma(a, b, T.zeros(), wait=False)  # error: [E0222] "begins in an iteration"


@cuda.jit
def exchanged(a, b, y, n):
    p = T.mma(a, b, T.zeros(), wait=False)
    q = T.mma(a, b, T.zeros(), wait=False)
    for _ in range(n):
        r = T.mma(a, b, p, wait=False)  # error: [E0222] "moves to another variable"
        p = T.mma(a, b, q, wait=False)  # error: [E0222] "moves to another variable"
        q = r
    T.store(y, 0, 0, cuda.mma.wait(0, p))
    T.store(y, 0, 0, cuda.mma.wait(0, q))


@cuda.jit
def warpgroup_in_flight(x, y, n):
    s = cuda.shared.array((64, 64), float16, swizzle=128)
    a, b = T.a(s, 0, 0), T.b(s, 0, 0)
    other_uses(x, y, a, b, n)
    returned(a, b)
    without_end(a, b)
    used_twice(a, b, y)
    too_early(a, b, y)
    under_a_condition(a, b, y, n)
    begun_under_a_condition(a, b, y, n)
    once_in_a_loop(a, b, y, n)
    of_an_iteration(a, b, y, n)
    exchanged(a, b, y, n)
    acc = T.mma(a, b, T.zeros(), wait=False)
    passed(acc)
    ignored(acc)  # error: [E0222] "cannot be used here"
    acc = cuda.mma.wait(0, acc)
