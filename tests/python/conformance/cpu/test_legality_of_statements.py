"""Statements that a normalization pass of the CPU planner must not rewrite: each kernel is wrong without one condition
of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import launch, module, run
from weft import _weft, cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.fixture
def without_passes():
    """Plans kernels without some passes, which otherwise remove statements that a condition is about."""
    yield _weft.skip_passes
    _weft.skip_passes([])


# --- propagate_flags --------------------------------------------------------------------------------------------------


def test_a_flag_that_an_arm_reads_before_it_is_set():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = x[i] > 5
        if x[i] > 0:
            out[i] = 3 if flag else 4
            flag = True
        else:
            flag = False
            out[i] = 5
        cuda.syncthreads()
        if flag:
            out[i] += 10

    run(kernel, 1, 16, values(2, 16), np.zeros(16, np.float32))


def test_a_flag_of_an_iteration_that_ends_before_it_is_set():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = x[0, i] > 5
        for k in range(x.shape[0]):
            if x[k, i] > 0:
                out[i] += 1
                if x[k, i] > 4:
                    break
                flag = True
                out[i] += 2
            else:
                flag = False
                out[i] += 5
        cuda.syncthreads()
        if flag:
            out[i] += 100

    run(kernel, 1, 64, values(1, 9, 64), np.zeros(64, np.float32))


# --- nest_conditions --------------------------------------------------------------------------------------------------


def test_a_condition_that_is_read_after_its_branch():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        if i < n:
            both = x[i] > 0
        else:
            both = False
        if both:
            out[i] = 3
        cuda.syncthreads()
        if both:
            out[i] += x[i + 1]

    run(kernel, 1, 16, values(7, 17), 9, np.zeros(16, np.float32))


def test_a_condition_that_a_path_does_not_assign_last():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        if i < n:
            if x[i] < 3:
                both = x[i + 1] > 0
            else:
                both = x[i + 2] > 0
                out[i] = 7
        else:
            both = False
        if both:
            out[i] += 3

    run(kernel, 1, 16, values(11, 18), 9, np.zeros(16, np.float32))


# --- loops that continue ----------------------------------------------------------------------------------------------


def test_an_iteration_that_is_repeated(without_passes):
    without_passes(["structurize"])

    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < n:
            total += x[i]
            if total < 10:
                total += 20
                continue
            if total > 400:
                break
            total -= 5
            k += 1
        out[i] = total

    run(kernel, 1, 40, np.abs(values(13, 40)) + 1, 9, np.zeros(40, np.float32))


# --- promote_scalars --------------------------------------------------------------------------------------------------


def test_an_accumulator_of_a_loop_without_an_iteration():
    @cuda.jit
    def kernel(x, out, at):
        i = cuda.grid(1)
        for k in range(5, 3):
            out[i + at] += x[k, i]

    launch(kernel, 1, 16, values(14, 8, 16), np.zeros(16, np.float32), 1 << 40)
    # LLVM removes such a load and store again, but need not.
    assert all("scalar-promotion" not in names for _, _, names in _weft.plan_features(kernel))


def test_an_accumulator_with_a_counter_whose_first_value_changes():
    @cuda.jit
    def kernel(x, starts, out):
        i = cuda.grid(1)
        first = starts[i]
        k = first + 1
        if x[0] > -100:
            first = 9
            starts[i] = 4
        while k < 5:
            out[i] += x[k]
            k += 1
        out[i] += first

    run(kernel, 1, 16, values(15, 20), np.arange(16, dtype=np.int64), np.zeros(16, np.float32))


# --- speculate_stores -------------------------------------------------------------------------------------------------


def test_a_store_that_other_threads_do_not_make():
    @cuda.jit
    def kernel(x, out):
        v = cuda.shared.array(16, np.int32)
        t = cuda.threadIdx.x
        if x[t] > 0:
            v[t * 65536] = 7
        cuda.syncthreads()
        out[t] = v[0]

    x = np.zeros(64, np.int32)
    x[0] = 7
    run(kernel, 1, 64, x, np.zeros(64, np.int32))


# --- promote_scalars --------------------------------------------------------------------------------------------------

LONG = "\n".join(f"    s = s * 3 + a[i] * {k}\n    if s > 1000: s -= 999" for k in range(60))
PEEK = f"""
import numpy as np
from weft import cuda


@cuda.jit(device=True)
def peek(a, i):
    s = np.float32(0)
{LONG}
    return s


@cuda.jit
def kernel(x, n, out):
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(n):
        out[i] += x[k, i]
        total += peek(out, i) + peek(x[0], i)
    out[i] += total
"""


def test_an_accumulator_that_a_function_reads():
    run(module(PEEK).kernel, 1, 64, values(59, 9, 64), 9, np.zeros(64, np.float32), rtol=1e-3)
