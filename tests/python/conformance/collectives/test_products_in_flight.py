"""Products of a warpgroup in flight (`wait=False`, `cuda.mma.wait`) against NumPy: chains, pairs, overlapping ones."""

import numpy as np
import pytest
import weft
from harness import launch
from weft import cuda

T = cuda.mma.tile(64, 32, 16, a=np.float16, b=np.float16, c=np.float32, threads=128)
WIDE = cuda.mma.tile(64, 16, 32, a=np.float16, b=np.float16, c=np.float32, threads=128)
SIGNATURE = "void(float16[:,::1], float16[:,::1], float32[:,:,::1], int64)"


@cuda.jit
def fill(x, y, a, b):
    for at in range(cuda.threadIdx.x, 64 * 64, 128):
        x[at // 64, at % 64] = a[at // 64, at % 64]
        y[at // 64, at % 64] = b[at // 64, at % 64]
    cuda.syncthreads()


@cuda.jit
def chain(a, b, out, steps):
    x = cuda.shared.array((64, 64), np.float16, swizzle=128)
    y = cuda.shared.array((64, 64), np.float16, swizzle=128)
    fill(x, y, a, b)
    acc = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), T.zeros(), wait=False)
    for step in range(1, steps):
        acc = T.mma(T.a(x, 0, step * 16), T.b(y, step * 16, 0), acc, wait=False)
        cuda.mma.wait(1)
    T.store(out[0], 0, 0, cuda.mma.wait(0, acc))
    # A product that waits completes those before it.
    acc = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), T.zeros(), wait=False)
    other = T.mma(T.a(x, 0, 16), T.b(y, 16, 0), T.zeros(), wait=False)
    other = T.mma(T.a(x, 0, 32), T.b(y, 32, 0), other)
    acc = cuda.mma.wait(7, acc)
    T.store(out[1], 0, 0, tuple(acc[r] - other[r] for r in range(len(acc))))


@cuda.jit
def in_turn(a, b, out, steps):
    x = cuda.shared.array((64, 64), np.float16, swizzle=128)
    y = cuda.shared.array((64, 64), np.float16, swizzle=128)
    fill(x, y, a, b)
    p = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), T.zeros(), wait=False)
    q = T.mma(T.a(x, 0, 0), T.b(y, 0, 32), T.zeros(), wait=False)
    total = T.zeros()
    for step in range(1, steps):
        p = cuda.mma.wait(1, p)
        p = T.mma(T.a(x, 0, step * 16), T.b(y, step * 16, 0), p, wait=False)
        numbers = cuda.mma.wait(1, q)
        q = T.mma(T.a(x, 0, step * 16), T.b(y, step * 16, 32), T.zeros(), wait=False)
        # The numbers are read while the next product is in flight.
        total = tuple(total[r] + numbers[r] * 2 for r in range(len(total)))
    p = cuda.mma.wait(1, p)
    q = cuda.mma.wait(0, q)
    T.store(out[0], 0, 0, p)
    T.store(out[1], 0, 0, tuple(total[r] + q[r] * 2 for r in range(len(total))))


@cuda.jit
def overlapping(a, b, out, steps):
    """Like attention: the scores of a step are computed beside the product of those of the step before."""
    x = cuda.shared.array((64, 64), np.float16, swizzle=128)
    y = cuda.shared.array((64, 64), np.float16, swizzle=128)
    fill(x, y, a, b)
    scores = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), T.zeros(), wait=False)
    acc = WIDE.zeros()
    left = WIDE.a(cuda.mma.wait(0, scores))
    for step in range(1, steps):
        scores = T.mma(T.a(x, 0, step * 16), T.b(y, step * 16, 0), T.zeros(), wait=False)
        acc = WIDE.mma(left, WIDE.b(y, 0, 0), acc, wait=False)
        scores = cuda.mma.wait(1, scores)
        if step % 2 == 0:
            scores = tuple(score + 1 for score in scores)
        acc = cuda.mma.wait(0, acc)
        left = WIDE.a(scores)
    acc = WIDE.mma(left, WIDE.b(y, 0, 0), acc, wait=False)
    WIDE.store(out[0], 0, 0, cuda.mma.wait(0, acc))


def matrices():
    rng = np.random.default_rng(3)
    return (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))


def run(kernel):
    a, b = matrices()
    got = launch(kernel, 1, 128, a, b, np.zeros((2, 64, 64), np.float32), 4)[2]
    a, b = a.astype(np.float32), b.astype(np.float32)
    return got, [(a[:, k : k + 16], b[k : k + 16]) for k in range(0, 64, 16)], b


def test_a_chain():
    got, parts, _ = run(chain)
    np.testing.assert_array_equal(got[0, :, :32], sum(a @ b for a, b in parts)[:, :32])
    (a, b), *two = parts[:3]
    np.testing.assert_array_equal(got[1, :, :32], (a @ b - sum(a @ b for a, b in two))[:, :32])


def test_two_in_turn():
    got, parts, _ = run(in_turn)
    expected = sum(a @ b for a, b in parts)
    np.testing.assert_array_equal(got[0, :, :32], expected[:, :32])
    np.testing.assert_array_equal(got[1, :, :32], 2 * expected[:, 32:])


def test_overlapping_products():
    got, parts, b = run(overlapping)
    expected = 0
    for step, (left, right) in enumerate(parts):
        scores = (left @ right)[:, :32] + (1 if step == 2 else 0)
        expected = expected + scores @ b[:32, :16]
    np.testing.assert_array_equal(got[0, :, :16], expected)


@pytest.mark.parametrize("kernel", [chain, in_turn, overlapping], ids=lambda kernel: kernel.__name__)
def test_unoptimized_code_waits_where_a_product_begins(kernel):
    assert "wgmma.wait_group.sync.aligned 1;" in cuda.compile_ptx(kernel.py_func, SIGNATURE, cc=(9, 0, "a"))[0]
    ptx = cuda.compile_ptx(kernel.py_func, SIGNATURE, cc=(9, 0, "a"), debug=True, opt=False)[0]
    begun = ptx.split("wgmma.commit_group.sync.aligned;")[1:]
    assert begun
    assert all(rest.split()[0] == "wgmma.wait_group.sync.aligned" for rest in begun)


def test_the_target_must_have_the_instruction():
    @cuda.jit
    def waits():
        cuda.mma.wait(0)

    with pytest.raises(weft.CompileError, match="needs `sm_90a`"):
        cuda.compile_ptx(waits.py_func, "void()", cc=(8, 0))
