"""`weft.cuda.extending`: kernels call overloaded Python functions; selection of the implementation of a call."""

from __future__ import annotations

import math
from math import degrees
from typing import NamedTuple

import numpy as np
import pytest
import weft
from harness import launch
from weft import cuda, types
from weft.cuda import extending
from weft.cuda.extending import overload, overload_attribute, overload_method, register_jitable


@register_jitable
def doubled(x):
    return 2 * x


@register_jitable(inline="always")
def doubled_twice(x):
    return doubled(doubled(x))


@cuda.jit
def call_plain_functions(x, out):
    i = cuda.grid(1)
    out[i] = doubled_twice(x[i]) + doubled(x[i])


def test_plain_functions_stay_plain_and_kernels_call_them():
    assert doubled_twice(3) == 12
    *_, out = launch(call_plain_functions, 1, 3, np.arange(3), np.zeros(3))
    assert out.tolist() == [0, 6, 12]


def describe(x, more=None):
    """The Python function's body, which kernels do not use."""
    return repr((x, more))


@overload(describe)
def choose_describe(x, more=None):
    if isinstance(x, types.Integer):

        def integer(x, more=None):
            return x + 100

        return integer
    if isinstance(x, types.Float) and isinstance(more, types.Array):
        extent = more.ndim * 1000 + more.dtype.bitwidth
        return lambda x, more=None: x + extent
    if isinstance(x, types.BaseTuple):
        return items if len(x) > 1 else None
    return None


def items(x, more=None):
    # Another overloaded function, and this one for other types.
    return describe(x[0]) + describe(x[1:], more) if len(x) > 2 else describe(x[0]) + describe(x[1])


@cuda.jit
def describe_all(x, f, out):
    out[0] = describe(x[0])
    out[1] = describe(f[0], f)
    out[2] = describe(f[0], more=x)
    out[3] = describe((x[0], 7))
    out[4] = describe((1, 2, 3, np.int8(4)))
    total = 0
    for _ in range(3):
        total = total + describe(total)
    out[5] = total


def test_the_types_choose():
    *_, out = launch(describe_all, 1, 1, np.array([5], np.int32), np.array([0.5], np.float32), np.zeros(6))
    assert out.tolist() == [105, 1032.5, 1032.5, 212, 410, 700]


@cuda.jit
def described_in_vain(z, out):
    out[0] = describe(z[0])


def test_what_none_chooses_is_an_error():
    with pytest.raises(weft.CompileError, match=r"no implementation of `describe` takes \(complex128\)"):
        described_in_vain[1, 1](np.zeros(1, complex), np.zeros(1))


def scaled(x, by=2, *, then=0):
    return x * by + then


@overload(scaled)
def choose_scaled(x, by=2, *, then=0):
    # An omitted argument is passed as its default value.
    assert by == 2 or isinstance(by, (types.Integer, types.Float))

    def implementation(x, by=2, *, then=0):
        return x * by + then

    return implementation


@cuda.jit
def scale(x, out):
    i = cuda.grid(1)
    out[i, 0] = scaled(x[i])
    out[i, 1] = scaled(x[i], 0.5)
    out[i, 2] = scaled(then=x[i], x=3, by=x[i])


def test_defaults_and_names():
    *_, out = launch(scale, 1, 2, np.array([3, 4]), np.zeros((2, 3)))
    assert out.tolist() == [[6, 1.5, 12], [8, 2, 16]]


def by_mode(x, mode):
    raise NotImplementedError


@overload(by_mode)
def choose_mode(x, mode):
    implementations = {"neg": lambda x, mode: -x, "root": lambda x, mode: math.sqrt(x)}
    return implementations[mode]


@cuda.jit
def modes(x, out):
    out[0] = by_mode(x[0], "neg")
    out[1] = by_mode(x[0], mode="root")


@cuda.jit
def no_mode(x):
    x[0] = by_mode(x[0], "cube")


def test_texts_are_what_they_are():
    _, out = launch(modes, 1, 1, np.array([4.0]), np.zeros(2))
    assert out.tolist() == [-4, 2]
    with pytest.raises(weft.CompileError, match="`choose_mode` raised KeyError: 'cube'"):
        no_mode[1, 1](np.zeros(1))


def wrongly(x):
    return x


@overload(wrongly)
def choose_wrongly(x):
    return lambda y: y


@overload(wrongly)
def choose_after(x):
    return (lambda x: 1) if isinstance(x, types.Boolean) else None


@cuda.jit
def call_wrongly(x, out):
    out[0] = wrongly(x[0])


def test_an_implementation_has_the_parameters_of_its_choice():
    with pytest.raises(weft.CompileError, match=r"`choose_wrongly` returned takes \(y\), not \(x\)"):
        call_wrongly[1, 1](np.zeros(1), np.zeros(1))
    _, out = launch(call_wrongly, 1, 1, np.ones(1, bool), np.zeros(1))
    assert out.tolist() == [1]


def on_targets(x):
    return x


overload(on_targets, target="cpu")(lambda x: 1 / 0)
overload(on_targets, target="generic")(lambda x: lambda x: x + 1)
overload(on_targets, target="cuda")(lambda x: (lambda x: x + 2) if isinstance(x, types.Float) else None)


@cuda.jit
def of_targets(x, n, out):
    out[0] = on_targets(x[0])
    out[1] = on_targets(n[0])


def test_the_gpus_implementation_comes_first():
    *_, out = launch(of_targets, 1, 1, np.zeros(1), np.zeros(1, int), np.zeros(2))
    assert out.tolist() == [2, 1]


@overload(np.linalg.norm)
def choose_norm(x):
    if isinstance(x, types.Array) and x.ndim == 1:

        def norm(x):
            total = 0.0
            for v in x:
                total += v * v
            return math.sqrt(total)

        return norm
    return None


@overload_method(types.Array, "mean_square")
def choose_mean_square(array, scale=1):
    def implementation(array, scale=1):
        return scale * np.linalg.norm(array) ** 2 / array.size

    return implementation


@overload_attribute(types.Array, "last")
def choose_last(array):
    return (lambda array: array[-1]) if array.ndim == 1 else None


@cuda.jit
def of_modules_and_classes(x, out):
    out[0] = np.linalg.norm(x)
    out[1] = x.mean_square(scale=2)
    out[2] = x.last


@cuda.jit
def last_of_a_number(x):
    x[0] = x[0].last


def test_functions_of_modules_methods_and_attributes():
    _, out = launch(of_modules_and_classes, 1, 1, np.array([3.0, 4.0]), np.zeros(3))
    assert out.tolist() == [5, 25, 4]
    with pytest.raises(weft.CompileError, match="float64 has no attribute `last`"):
        last_of_a_number[1, 1](np.zeros(1))


class Span(NamedTuple):
    low: int
    high: int


@overload(divmod)
def choose_divmod(x, y):
    if isinstance(x, types.NamedUniTuple):
        return lambda x, y: (x.high - x.low) // y
    return None


@overload(degrees)
def choose_degrees(x):
    msg = "never"
    raise TypeError(msg)


@cuda.jit
def use_what_is_overloaded(x, out):
    out[0], out[1] = divmod(x[0], 2.0)
    out[2] = divmod(Span(3, 10), 3)
    out[3] = degrees(x[1]) - math.degrees(x[1])


def test_what_kernels_have_themselves_stays_where_no_implementation_is_given():
    _, out = launch(use_what_is_overloaded, 1, 1, np.array([7.0, 1.0]), np.zeros(4))
    assert out.tolist() == [3, 1, 2, 0]


def test_ufuncs_and_reductions_call_them_too():
    twice = weft.vectorize(lambda x: describe(doubled(x)), target="cuda")
    assert twice(np.arange(3)).tolist() == [100, 102, 104]
    assert cuda.reduce(lambda a, b: doubled(a) - a + on_targets(b) - 2)(np.arange(5.0)) == 10


def growing(x):
    return x


@overload(growing)
def choose_growing(x):
    def implementation(x):
        return growing((x, x))

    return implementation


@cuda.jit
def grow(out):
    out[0] = growing(1)


def test_calls_whose_types_grow_are_an_error():
    with pytest.raises(weft.CompileError):
        grow[1, 1](np.zeros(1))


def test_a_later_choice_is_seen_by_later_kernels():
    def late(x):
        return x

    def kernel(out):
        out[0] = late(1)

    with pytest.raises(weft.CompileError, match="`late` is a function"):
        cuda.jit(kernel)[1, 1](np.zeros(1))
    overload(late)(lambda x: lambda x: x + 4)
    (out,) = launch(cuda.jit(kernel), 1, 1, np.zeros(1))
    assert out.tolist() == [5]


def test_texts_of_a_kernel_have_the_implementations():
    launch(scale, 1, 2, np.array([3, 4]), np.zeros((2, 3)))
    (text,) = scale.inspect_asm().values()
    assert "scale" in text


def test_what_needs_llvmlite_is_refused_where_it_is_used():
    from weft.cuda.extending import intrinsic, lower_builtin, models

    for name, use in (("intrinsic", lambda: intrinsic(print)), ("models", lambda: models.StructModel)):
        with pytest.raises(NotImplementedError, match=rf"extending\.{name}"):
            use()
    with pytest.raises(NotImplementedError, match="with `overload`"):
        lower_builtin(len, types.Array)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = extending.nothing_of_this_name
    with pytest.raises(TypeError, match="takes a function"):
        overload(3)
