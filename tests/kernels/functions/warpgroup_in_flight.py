# weft: sig = "void(float16[:, ::1], float32[:, ::1], int32)", targets = ["sm_90a"], show = ["ptx"]
"""Products of a warpgroup in flight: a chain through a loop, two in turn, and one whose left matrix is in registers."""

from weft import cuda, float16, float32

T = cuda.mma.tile(64, 16, 16, a=float16, b=float16, c=float32, threads=128)


@cuda.jit
def warpgroup_in_flight(a, c, n):
    x = cuda.shared.array((64, 64), float16, swizzle=128)
    y = cuda.shared.array((64, 64), float16, swizzle=128)
    for at in range(cuda.threadIdx.x, 64 * 64, 128):
        x[at // 64, at % 64] = a[at // 64, at % 64]
        y[at // 64, at % 64] = a[at // 64, at % 64]
    cuda.syncthreads()
    acc = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), T.zeros(), wait=False)
    for k in range(n):
        acc = T.mma(T.a(x, 0, k * 16), T.b(y, k * 16, 0), acc, wait=False)
        cuda.mma.wait(1)
    acc = cuda.mma.wait(0, acc)
    T.store(c, 0, 0, acc)
    p = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), T.zeros(), wait=False)
    q = T.mma(T.a(x, 0, 16), T.b(y, 16, 0), T.zeros(), wait=False)
    for k in range(n):
        p = cuda.mma.wait(1, p)
        largest = max(p[0], p[1])
        p = T.mma(T.a(x, 0, k * 16), T.b(y, 0, 16), p, wait=False)
        q = cuda.mma.wait(1, q)
        # The numbers live on while the next product writes its registers.
        r = T.mma(T.a(x, 0, k * 16), T.b(y, 0, 32), T.zeros(), wait=False)
        q = tuple(q[i] * largest for i in range(len(q)))
        T.store(c, 0, 16, q)
        q = r
    p = cuda.mma.wait(1, p)
    q = cuda.mma.wait(0, q)
    T.store(c, 0, 0, p)
    T.store(c, 0, 16, q)
    left = T.mma(T.a(p), T.b(y, 0, 0), q, wait=False)
    for i in range(n):
        c[i, 40] += 1
    T.store(c, 0, 32, cuda.mma.wait(0, left))
