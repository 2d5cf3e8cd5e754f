"""Statements that a normalization pass of the CPU planner must leave as they are: each kernel has a wrong result without
one condition of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


# --- propagate_flags --------------------------------------------------------------------------------------------------


def test_a_flag_that_a_nested_branch_reads_before_it_is_set():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = x[i] > 5
        cuda.syncthreads()
        if x[i] > 0:
            if flag:
                out[i] = x[i + 1]
            flag = True
            out[i] += 2
        else:
            flag = False
            out[i] = 5
        cuda.syncthreads()
        if flag:
            out[i] += 10

    run(kernel, 1, 16, values(1, 17), np.zeros(16, np.float32))


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


def test_a_flag_that_an_arm_assigns_again():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = x[i] > 5
        out[i] = 3 if flag else 4
        if x[i] > 0:
            flag = True
            out[i] += 2
            if out[i] > 5:
                flag = x[i + 1] > 0
        else:
            flag = False
            out[i] = 5
        cuda.syncthreads()
        if flag:
            out[i] += 10

    run(kernel, 1, 16, values(3, 17), np.zeros(16, np.float32))


def test_a_flag_that_its_condition_reads():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = x[i] > 5
        for k in range(3):
            if flag != (x[i + k] > 0):
                flag = True
                out[i] += 3
            else:
                flag = False
                out[i] += 5
        cuda.syncthreads()
        if flag:
            out[i] += 10

    run(kernel, 1, 16, values(4, 19), np.zeros(16, np.float32))


def test_a_cleared_flag_that_the_condition_reads():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = False
        if (x[i] > 0) != flag:
            flag = True
            out[i] = 3
        cuda.syncthreads()
        if flag:
            out[i] += 10

    run(kernel, 1, 16, values(5, 16), np.zeros(16, np.float32))


def test_a_cleared_flag_that_is_read_before_the_branch():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        flag = False
        out[i] = x[i] if flag else 1
        y = 3 if flag else 4
        if x[i] > 0:
            flag = True
            out[i] = y
        cuda.syncthreads()
        if flag:
            out[i] += 10

    run(kernel, 1, 16, values(6, 16), np.zeros(16, np.float32))


# --- nest_conditions --------------------------------------------------------------------------------------------------


def test_a_condition_that_is_read_after_its_branch():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        both = i < n and x[i] > 0
        if both:
            out[i] = 3
        if both:
            out[i] += x[i + 1]

    run(kernel, 1, 16, values(7, 17), 9, np.zeros(16, np.float32))


def test_a_condition_that_decides_a_barrier():
    @cuda.jit
    def kernel(x, y, n, out):
        part = cuda.shared.array(16, np.float32)
        i = cuda.threadIdx.x
        if n > 3 and x[n] > 0:
            part[i] = y[i]
            cuda.syncthreads()
            out[i] = part[15 - i]

    run(kernel, 1, 16, np.ones(17, np.float32), values(8, 16), 9, np.zeros(16, np.float32))


def test_a_condition_that_decides_the_end_of_a_loop():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        for k in range(n):
            if k > 1 and x[k, i] > 0:
                out[i] += 1
                break
            out[i] += x[k, i]
        if i < n and x[i, i] > 0:
            return
        out[i] += 100

    run(kernel, 1, 16, values(9, 17, 17), 9, np.zeros(16, np.float32))


def test_a_condition_that_some_paths_assign():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        found = x[i + 1] > 0
        out[i] = found
        if i < n:
            if x[i] > 0:
                found = x[i + 2] > 0
            elif x[i] < -3:
                found = False
        if found:
            out[i] += 3

    run(kernel, 1, 16, values(10, 18), 9, np.zeros(16, np.float32))


def test_a_condition_that_is_read_before_it_is_assigned():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        found = x[i + 1] > 0
        if i < n:
            out[i] = 5 if found else 6
            found = x[i] > 0
        else:
            found = False
        if found:
            out[i] += 3

    run(kernel, 1, 16, values(11, 18), 9, np.zeros(16, np.float32))


# --- promote_scalars --------------------------------------------------------------------------------------------------


def test_an_accumulator_of_a_loop_without_an_iteration():
    @cuda.jit
    def kernel(x, out, at):
        i = cuda.grid(1)
        for k in range(5, 3):
            out[i + at] += x[k, i]
        k = 4
        while k < 3:
            out[i + at] += x[k, i]
            k += 1

    run(kernel, 1, 16, values(12, 8, 16), np.zeros(16, np.float32), 1 << 40)


def test_an_accumulator_with_a_counter_that_is_loaded_first():
    @cuda.jit
    def kernel(x, starts, out):
        i = cuda.grid(1)
        k = starts[i]
        starts[i] = 9
        while k < 5:
            out[i] += x[k]
            k += 1

    run(kernel, 1, 16, values(13, 20), np.arange(16, dtype=np.int64), np.zeros(16, np.float32))


def test_an_accumulator_with_a_counter_whose_first_value_changes():
    @cuda.jit
    def kernel(x, starts, out):
        i = cuda.grid(1)
        first = starts[i]
        k = first + 1
        first = 9
        while k < 5:
            out[i] += x[k]
            k += 1
        out[i] += first

    run(kernel, 1, 16, values(14, 20), np.arange(16, dtype=np.int64), np.zeros(16, np.float32))


def test_an_accumulator_of_a_loop_with_a_call():
    @cuda.jit(inline=False)
    def add(out, i):
        out[i] = out[i] * 2 + 1

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            out[i] += x[k, i]
            add(out, i)

    run(kernel, 1, 16, values(15, 5, 16), np.zeros(16, np.float32))


def test_an_accumulator_in_the_step_of_a_loop():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            j = i
            out[j] += x[k, i]
            if x[k, i] > 3:
                continue
            j = i + 1
            out[j] += 100

    run(kernel, 1, 16, values(16, 5, 16), np.zeros(17, np.float32))
