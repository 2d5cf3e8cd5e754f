"""and, or and not: short-circuit evaluation, and the operand that is the result."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def operands(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] and y[i]
    out[i, 1] = x[i] or y[i]
    out[i, 2] = (x[i] and y[i]) or -7
    out[i, 3] = (x[i] or y[i]) and 5
    out[i, 4] = not x[i]
    out[i, 5] = not (x[i] and y[i])
    out[i, 6] = x[i] and y[i] and x[i] + y[i]
    out[i, 7] = x[i] > 0 and y[i] > 0
    out[i, 8] = x[i] > 0 or y[i]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, np.uint8])
def test_operands_are_returned(dtype):
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(np.arange(0, 4), np.arange(0, 4)))
    run(operands, 4, 4, x, y, np.zeros((16, 9)))


@cuda.jit
def guarded(x, index, out):
    i = cuda.grid(1)
    if index[i] < x.size and x[index[i]] > 0:
        out[i] = 1
    if index[i] >= x.size or x[index[i]] == 0:
        out[i] += 2
    while index[i] < x.size and x[index[i]] == 3 and out[i] < 9:
        out[i] += 8


def test_the_right_side_is_not_evaluated_in_vain():
    x = np.array([0, 3, -1], np.int64)
    index = np.array([0, 1, 2, 3, 2**40, 2**62], np.int64)
    out = run(guarded, 1, 6, x, index, np.zeros(6, np.int64))[2]
    assert out.tolist() == [2, 9, 0, 2, 2, 2]


@cuda.jit
def count_calls(counter, item):
    counter[0] += 1
    return item


@cuda.jit
def effects(counter, flags, out):
    a, b, c = flags[0], flags[1], flags[2]
    out[0] = 1 if count_calls(counter, a) and count_calls(counter, b) and count_calls(counter, c) else 0
    out[1] = counter[0]
    out[2] = 1 if count_calls(counter, a) or count_calls(counter, b) or count_calls(counter, c) else 0
    out[3] = counter[0]
    out[4] = 1 if 0 < count_calls(counter, a) < count_calls(counter, b) < 5 else 0
    out[5] = counter[0]


@pytest.mark.parametrize("flags", [(0, 0, 0), (1, 0, 1), (1, 2, 3), (0, 1, 0), (0, 0, 1)])
def test_calls_on_the_right_side(flags):
    run(effects, 1, 1, np.zeros(1, np.int64), np.array(flags), np.zeros(6, np.int64))


@cuda.jit
def bool_values(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = a + b
    out[i, 1] = a & b
    out[i, 2] = a | b
    out[i, 3] = a ^ b
    out[i, 4] = -a
    out[i, 5] = ~a
    out[i, 6] = a * 3
    out[i, 7] = a < b
    out[i, 8] = a == True  # noqa: E712
    out[i, 9] = a - b
    out[i, 10] = a << b


def test_arithmetic_of_bools():
    x = np.array([False, False, True, True])
    y = np.array([False, True, False, True])
    out = run(bool_values, 1, 4, x, y, np.zeros((4, 11), np.int64))[2]
    assert out[:, 0].tolist() == [0, 1, 1, 2]
    assert out[:, 4].tolist() == [0, 0, -1, -1]
    assert out[:, 5].tolist() == [1, 1, 0, 0]


@cuda.jit
def bool_argument(flag, out):
    if flag == True:  # noqa: E712
        out[0] = 1
    if flag:
        out[1] = 1
    out[2] = not flag


@pytest.mark.parametrize("flag", [True, False, np.True_, np.False_])
def test_bool_argument(flag):
    out = run(bool_argument, 1, 1, flag, np.zeros(3, np.int32))[1]
    assert out.tolist() == [flag, flag, not flag]


@cuda.jit
def stores_bools(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32, np.float32, np.float64])
def test_store_into_a_bool_array_is_a_test_for_zero(dtype):
    x = np.array([0, 1, 2, 100], dtype)
    out = run(stores_bools, 1, 4, x, np.zeros(4, np.bool_))[1]
    assert out.view(np.uint8).tolist() == [0, 1, 1, 1]
