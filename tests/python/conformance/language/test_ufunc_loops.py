"""The types that NumPy's ufuncs accept in kernels: those for which NumPy has a loop, after safe casts."""

import itertools

import numpy as np
import pytest
from test_numpy_types import NAMES, of_name
from weft import CompileError, cuda

UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
MATRICES = {"matmul", "vecdot", "matvec", "vecmat"}
NOT_IN_KERNELS = {"isnat"}  # for dates


def function(name, typing, arguments):
    """Make a device function that calls the ufunc."""
    parameters = ", ".join("abc"[:arguments])
    text = f"def f({parameters}):\n    return np.{name}({parameters})\n"
    space = {"np": np}
    exec(text, space)
    return cuda.jit(device=True, typing=typing, source=text)(space["f"])


def has_loop(ufunc, names):
    """Whether NumPy has a loop for the types."""
    try:
        ufunc.resolve_dtypes(tuple(np.dtype(name) for name in names) + (None,) * ufunc.nout)
    except TypeError:
        return False
    return True


def refusal(f, names):
    """Get the error message; None if the types are accepted."""
    try:
        f.result_type(tuple(of_name(name) for name in names))
    except CompileError as error:
        return str(error)
    return None


CALLS = [
    (name, typing)
    for name in UFUNCS
    if name not in MATRICES | NOT_IN_KERNELS
    for typing in ("numba", "numpy")
    if typing == "numba" or getattr(np, name).__name__ == name  # skip aliases
]


@pytest.mark.parametrize(("name", "typing"), CALLS)
def test_a_ufunc_takes_what_numpy_has_loops_for(name, typing):
    ufunc = getattr(np, name)
    f = function(name, typing, ufunc.nin)
    wrong = {}
    for names in itertools.product(NAMES, repeat=ufunc.nin):
        wanted = has_loop(ufunc, names)
        if name == "rint" and "complex" in names[0]:
            wanted = False  # kernels round real numbers only
        error = refusal(f, names)
        if (error is None) != wanted:
            wrong[names] = error or "taken"
        elif error is not None:
            assert f"`numpy.{name}` takes ({', '.join(names).replace('bool', 'boolean')})" in error
    assert not wrong


CLIP = [names for names in itertools.product(NAMES[:-2], repeat=3) if len(set(names)) < 3]


def test_clip_takes_what_numpy_has_loops_for():
    f = function("clip", "numba", 3)
    wanted = {names: has_loop(np._core.umath.clip, names) for names in CLIP}
    assert {names: refusal(f, names) is None for names in CLIP} == wanted


@pytest.mark.parametrize("typing", ["numba", "numpy"])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "gcd"])
def test_a_known_int_is_of_the_type_that_it_meets(name, typing):
    """The same for Python ints in NumPy: `np.bitwise_and(uint64, 3)` has a loop, but none with an int64."""
    text = f"def f(a):\n    return np.{name}(a, 3)\n"
    space = {"np": np}
    exec(text, space)
    f = cuda.jit(device=True, typing=typing, source=text)(space["f"])
    wrong = {}
    for of in NAMES:
        try:
            getattr(np, name)(np.dtype(of).type(1), 3)
            wanted = True
        except TypeError:
            wanted = False
        if (refusal(f, (of,)) is None) != wanted:
            wrong[of] = wanted
    assert not wrong


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "call", ["np.bitwise_and(x[0], 3)", "np.invert(x[0])", "np.bitwise_or(x, 8, o)", "np.gcd(4, x[0])"]
)
def test_floats_have_no_bits(dtype, call):
    text = f"def k(x, o):\n    {call}\n"
    space = {"np": np}
    exec(text, space)
    kernel = cuda.jit(source=text)(space["k"])
    with pytest.raises(CompileError, match=call.split("(")[0].replace("np.", "numpy[.]")):
        kernel[1, 1](np.ones(1, dtype), np.ones(1, dtype))


def test_logical_functions_take_all_numbers():
    """Each number is converted to a bool: a fraction is true, whatever the other operand is."""

    @cuda.jit
    def kernel(x, y, n, out):
        i = cuda.grid(1)
        out[i, 0] = np.logical_and(x[i], y[i])
        out[i, 1] = np.logical_or(x[i], n[i])
        out[i, 2] = np.logical_xor(y[i], n[i])
        out[i, 3] = np.logical_not(x[i])
        out[i, 4] = np.logical_not(n[i])

    x, y = np.array([0.25, 0, -0.0, np.nan]), np.array([1e-30, 0.5, 0, 1], np.float32)
    n = np.array([0, 256, 0, -1], np.int16)
    out = np.zeros((4, 5), np.bool_)
    kernel[1, 4](x, y, n, out)
    wanted = [np.logical_and(x, y), np.logical_or(x, n), np.logical_xor(y, n), np.logical_not(x), np.logical_not(n)]
    np.testing.assert_array_equal(out, np.stack(wanted, 1))
