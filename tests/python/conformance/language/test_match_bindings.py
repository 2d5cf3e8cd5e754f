"""match: only patterns that match bind names."""

import numpy as np
import pytest
from harness import launch
from weft import cuda


@cuda.jit(device=True)
def chosen(x, y):
    a = 77
    b = 5
    match (x, y):
        case (a, 0.5):
            return a
        case (0, b):
            return b + a
        case (a, 2) | (2, a) if a > 100:
            return -1
        case (c, d) if c > 2:
            a += c * d
        case (1, *rest):
            return rest[0] + b
    return a


@cuda.jit
def matching(x, y, out):
    i = cuda.grid(1)
    out[i] = chosen(x[i], y[i])


def test_a_pattern_that_does_not_match_binds_nothing():
    x, y = (each.ravel() for each in np.meshgrid(np.arange(-1, 5), np.array([0.5, -0.25, 2.0, 8.0])))
    (_, _, out) = launch(matching, 1, x.size, x, y, np.zeros(x.size))
    np.testing.assert_array_equal(out, [chosen.py_func(*each) for each in zip(x.tolist(), y.tolist(), strict=True)])


@pytest.mark.parametrize("number", [-2, 3])
def test_a_comprehension_with_a_condition_on_the_values_of_a_range(number):
    @cuda.jit
    def odd(x, out):
        i = cuda.grid(1)
        for value in tuple(k * x[i] for k in range(1, 8) if k % 2 and k != 5):
            out[i] = out[i] * 100 + value

    (_, out) = launch(odd, 1, 1, np.array([number]), np.zeros(1, np.int64))
    assert out[0] == (number * 100 + 3 * number) * 100 + 7 * number
