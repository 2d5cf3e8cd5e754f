"""Assignments, augmented assignments, if, assert, pass, docstrings and return."""

import warnings

import numpy as np
import pytest
import weft
from harness import module, run
from weft import cuda


@cuda.jit
def assignments(x, out):
    """A docstring has no effect."""
    i = cuda.grid(1)
    a = b = x[i]
    out[i, 0] = a + b
    c, d = x[i], 7
    out[i, 1] = c - d
    c, d = d, c
    out[i, 2] = c - d
    (e, (f, g)) = (1, (x[i], 3))
    out[i, 3] = e + f * g
    h: int = 5
    out[i, 4] = h
    out[i, 5] = out[i, 6] = a * 2
    k, out[i, 7] = 8, 9
    out[i, 8] = k
    pass  # noqa: PIE790
    "an expression that does nothing"
    m = a
    m = m * 1.5  # the same name, another type
    out[i, 9] = m


def test_assignments():
    x = np.arange(-4, 4, dtype=np.int64)
    run(assignments, 2, 4, x, np.zeros((8, 10)))


@cuda.jit
def augmented(x, y, out):
    i = cuda.grid(1)
    a = x[i]
    a += y[i]
    out[i, 0] = a
    a -= 3
    out[i, 1] = a
    a *= y[i]
    out[i, 2] = a
    a //= 4
    out[i, 3] = a
    a %= 5
    out[i, 4] = a
    a <<= 3
    out[i, 5] = a
    a >>= 1
    out[i, 6] = a
    a &= 0xFC
    out[i, 7] = a
    a |= 1
    out[i, 8] = a
    a ^= y[i]
    out[i, 9] = a
    a **= 2
    out[i, 10] = a
    out[i, 11] += x[i]
    out[i][11] *= 3
    out[i, -1] -= y[i]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.int16])
def test_augmented(dtype):
    rng = np.random.default_rng(1)
    x = rng.integers(5, 100, 16).astype(dtype)
    y = rng.integers(1, 20, 16).astype(dtype)
    run(augmented, 4, 4, x, y, np.ones((16, 12), np.int64))


@cuda.jit
def augmented_floats(x, y, out):
    i = cuda.grid(1)
    a = x[i]
    a += y[i]
    a *= 2.5
    a /= y[i]
    a //= 0.25
    a %= 7.0
    out[i] = a
    out[i] /= 3
    out[i] **= 2


def test_augmented_floats():
    rng = np.random.default_rng(2)
    run(augmented_floats, 4, 4, rng.uniform(-9, 9, 16), rng.uniform(1, 9, 16), np.zeros(16), rtol=1e-12)


@cuda.jit
def in_place_division_of_integers(x, out):
    i = cuda.grid(1)
    a = x[i]
    a /= 4
    out[i] = a


def test_in_place_division_of_integers_gives_a_float():
    x = np.arange(-8, 8, dtype=np.int32)
    out = run(in_place_division_of_integers, 1, 16, x, np.zeros(16))[1]
    np.testing.assert_array_equal(out, x / 4)


@cuda.jit
def classify(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    if x[i] < -2:
        out[i] = 1
    elif x[i] < 0:
        out[i] = 2
    elif x[i] == 0:
        out[i] = 3
    else:
        if x[i] % 2:
            out[i] = 4
        else:
            out[i] = 5
            return
    if x[i] == 3:
        return None
    out[i] += 10


def test_if_elif_else_and_early_return():
    x = np.arange(-5, 6, dtype=np.int32)
    out = run(classify, 4, 4, x, np.zeros(11, np.int32))[1]
    assert out.tolist() == [11, 11, 11, 12, 12, 13, 14, 5, 4, 5, 14]


@cuda.jit
def truthiness(x, y, out):
    i = cuda.grid(1)
    if x[i]:
        out[i] += 1
    if y[i]:
        out[i] += 2
    if not x[i]:
        out[i] += 4
    if x[i] and not y[i]:
        out[i] += 8
    while x[i]:
        out[i] += 16
        break


def test_numbers_are_conditions():
    x = np.array([0, 1, -1, 256], np.int32)
    y = np.array([0.0, -0.0, 0.5, np.nan])
    out = run(truthiness, 1, 4, x, y, np.zeros(4, np.int32))[2]
    assert out.tolist() == [4, 25, 19, 19]


@cuda.jit
def checked(x, out):
    i = cuda.grid(1)
    assert x[i] >= 0
    assert x.size == 4, "four of them"
    out[i] = x[i]


def test_assert_that_holds():
    out = run(checked, 1, 4, np.arange(4), np.zeros(4, np.int64))[1]
    assert out.tolist() == [0, 1, 2, 3]


@cuda.jit
def maybe_unset(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        found = x[i]
        flag = True
    else:
        flag = False
    if flag:
        out[i] = found


def test_variable_set_on_one_path_only():
    out = run(maybe_unset, 1, 4, np.array([-1, 1, 0, 2]), np.zeros(4, np.int64))[1]
    assert out.tolist() == [0, 1, 0, 2]


@cuda.jit
def shadows(x, out):
    i = cuda.grid(1)
    max = x[i]
    sum = max + 1
    μ = sum * 2
    out[i] = μ


def test_names_that_shadow_builtins_and_unicode_names():
    out = run(shadows, 1, 4, np.arange(4), np.zeros(4, np.int64))[1]
    assert out.tolist() == [2, 4, 6, 8]


@cuda.jit
def nothing():
    pass


@cuda.jit
def only_returns(x):
    return


def test_kernels_that_do_nothing():
    run(nothing, 3, 5)
    run(only_returns, 1, 1, np.zeros(1))


def test_long_chains_are_not_nested():
    """Hundreds of `elif`s and of operators in a row."""
    branches = "\n".join(f"    elif n == {i}:\n        out[0] = {i * i}" for i in range(1, 200))
    total = " + ".join(f"x[{i % 5}] * {i}" for i in range(200))
    text = f"""
from weft import cuda

@cuda.jit
def kernel(x, n, out):
    if n == 0:
        out[0] = -1
{branches}
    else:
        out[0] = -2
    out[1] = {total}
"""
    kernel = module(text).kernel
    x = np.arange(5)
    for n in (0, 1, 150, 199, 200):
        run(kernel, 1, 1, x, n, np.zeros(2, np.int64))


@cuda.jit(device=True)
def chosen(a, b):
    if a:
        v = 3
        return v
    if b:
        return v
    return 4


@cuda.jit
def unset(out, c):
    i = cuda.grid(1)
    if c[i]:
        x = i
    else:
        out[i, 0] = 5
        out[i, 1] = x
        out[i, 2] = 7
    out[i, 2] = x + 1
    out[i, 3] = chosen(c[i], c[i] == 0)
    out[i, 4] = 1


def test_a_thread_ends_where_its_path_gave_a_variable_no_value():
    out = np.zeros((2, 5))
    with pytest.warns(weft.errors.CompileWarning, match="`x` is used before it has a value"):
        unset[1, 2](out, np.array([0, 1]))
    assert out.tolist() == [[5, 0, 0, 0, 0], [0, 0, 2, 3, 1]]


def test_a_variable_may_have_its_value_from_what_is_known_not_to_run():
    wanted = False

    @cuda.jit
    def counted(out, n):
        k = 0
        while k < 8 % 2:
            k += 1
            last = k
        if wanted:
            extra = n
        for _ in ():
            none = n
        out[0] = 1
        if n == 1:
            out[1] = last
        elif n == 2:
            out[1] = extra
        elif n == 3:
            out[1] = none
        out[2] = 1

    for n, reached in enumerate([1, 0, 0, 0]):
        out = np.zeros(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", weft.errors.CompileWarning)
            counted[1, 1](out, n)
        assert out.tolist() == [1, 0, reached]


def test_a_variable_that_no_path_gives_a_value_is_an_error():
    @cuda.jit
    def counts(out):
        for i in range(out.size):
            if out[i] > 0:
                total += 1  # noqa: F821, F841
        out[0] = 1

    with pytest.raises(weft.CompileError, match="`total` is used before it has a value"):
        counts[1, 1](np.zeros(2))
