"""`types.Optional(T)` in declared signatures: arguments that may be `None`, in launches and calls."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from harness import module
from weft import CompileError, cuda, types

MAYBE = types.Optional(types.float64)


def test_the_type_is_one():
    assert str(MAYBE) == "OptionalType(float64)"
    assert MAYBE.type == types.float64
    assert isinstance(MAYBE, types.Optional)
    assert not isinstance(types.float64, types.Optional)
    assert types.optional(MAYBE) == MAYBE != types.Optional(types.float32)
    assert pickle.loads(pickle.dumps(MAYBE)) == MAYBE
    assert hash(MAYBE) == hash(types.Optional(types.float64))
    with pytest.raises(TypeError, match="use `none` for the type of None"):
        types.Optional(types.none)
    with pytest.raises(AttributeError):
        _ = types.float64.type


@cuda.jit(types.void(MAYBE, types.Optional(types.int8), types.float64[:]))
def numbers(a, b, out):
    out[0] = -1 if a is None else a
    if b is not None:
        out[1] = b + 1
    out[2] = a is None and b is None


@pytest.mark.parametrize("a", [None, 0.0, 2.5, 3, np.float32(0.5), True])
@pytest.mark.parametrize("b", [None, 0, 7, 300, np.uint64(5)])
def test_numbers_or_none(a, b):
    out = np.zeros(3)
    numbers[1, 1](a, b, out)
    second = 0 if b is None else float(np.int64(b).astype(np.int8)) + 1
    assert out.tolist() == [-1 if a is None else float(a), second, a is None and b is None]


def test_one_kernel_takes_both():
    numbers[1, 1](None, 1, np.zeros(3))
    numbers[1, 1](1.0, None, np.zeros(3))
    assert len(numbers.overloads) == len(numbers.signatures) == 1
    with pytest.raises(TypeError, match=r"declares OptionalType\(int8\)"):
        numbers[1, 1](None, 1.5, np.zeros(3))


@cuda.jit("void(Optional(float32[:]), optional(int32[:, ::1]), types.Optional(complex64), int64[:])")
def arrays(x, y, z, out):
    i = cuda.grid(1)
    if x is not None and i < x.size:
        x[i] *= 2
        out[0] = x.size
    if y is not None:
        if i < y.shape[0]:
            y[i, -1] = i
    if z is not None and i == 0:
        out[1] = z.imag


@pytest.mark.parametrize("given", range(8))
def test_arrays_or_none(given):
    x = np.arange(10, dtype=np.float32)
    y = np.zeros((4, 3), np.int32)
    out = np.zeros(2, np.int64)
    has_x, has_y, has_z = (bool(given & bit) for bit in (1, 2, 4))
    arrays[1, 32](x[::2] if has_x else None, y if has_y else None, 3 + 4j if has_z else None, out)
    expected = np.arange(10, dtype=np.float32)
    expected[::2] *= 2 if has_x else 1
    assert x.tolist() == expected.tolist()
    assert y.tolist() == [[0, 0, i if has_y else 0] for i in range(4)]
    assert out.tolist() == [5 if has_x else 0, 4 if has_z else 0]


@cuda.jit((types.Optional(types.Tuple((types.int64, MAYBE))), types.Tuple((MAYBE, types.float64)), types.float64[:]))
def tuples(pair, other, out):
    if pair is not None:
        number, inner = pair
        out[0] = number
        out[1] = 100 if inner is None else inner
    if other[0] is not None:
        out[2] = other[0]
    out[3] = other[1]


def test_tuples_of_them():
    for pair, inner in ((None, 5.0), ((3, None), None), ((3, 4.5), 2)):
        out = np.zeros(4)
        tuples[1, 1](pair, (inner, 7), out)
        first = [0, 0] if pair is None else [pair[0], 100 if pair[1] is None else pair[1]]
        assert out.tolist() == [*first, 0 if inner is None else inner, 7]


def test_what_is_none_ends_a_thread_that_computes_with_it():
    @cuda.jit("void(Optional(int64), int64[:])")
    def kernel(n, out):
        out[0] = 1
        out[0] = n + 1

    out = np.zeros(1, np.int64)
    kernel[1, 1](None, out)
    assert out[0] == 1
    kernel[1, 1](5, out)
    assert out[0] == 6


def test_it_is_a_variable_like_others():
    @cuda.jit("void(Optional(int64), boolean, int64[:])")
    def kernel(n, forget, out):
        if n is None:
            n = cuda.grid(1)
        if forget:
            n = None
        if n is not None:
            out[cuda.grid(1)] = n * 10

    for n, forget, expected in ((None, False, [0, 10, 20]), (4, False, [40] * 3), (4, True, [1] * 3)):
        out = np.ones(3, np.int64)
        kernel[1, 3](n, forget, out)
        assert out.tolist() == expected


def test_signatures_with_and_without():
    @cuda.jit(["void(Optional(int64), int64[:])", "void(float64, int64[:])"])
    def kernel(n, out):
        out[0] = 1 if n is None else 2
        out[1] = 0 if n is None else n * 2

    for n, expected in ((None, [1, 0]), (3, [2, 6]), (1.5, [2, 3])):
        out = np.zeros(2, np.int64)
        kernel[1, 1](n, out)
        assert out.tolist() == expected


@cuda.jit("Optional(int64)(Optional(int64), Optional(float32[:]))", device=True)
def declared(n, x):
    if x is not None:
        x[0] += 1
    return None if n is None else n + 1


@cuda.jit
def calls(x, out, shared):
    own = cuda.shared.array(1, np.float32)
    i = cuda.threadIdx.x
    if i == 0:
        own[0] = 5
    maybe = i if i % 2 == 0 else None
    first = declared(maybe, None)
    out[i, 0] = -1 if first is None else first
    second = declared(7, x if i == 0 else None)
    out[i, 1] = second
    declared(None, own if i == 0 else None)
    if i == 0:
        shared[0] = own[0]


def test_device_functions_declare_them():
    x, out, shared = np.zeros(2, np.float32), np.zeros((4, 2), np.int64), np.zeros(1, np.float32)
    calls[1, 4](x, out, shared)
    assert out.tolist() == [[1, 8], [-1, 8], [3, 8], [-1, 8]]
    assert (x.tolist(), shared.tolist()) == ([1, 0], [6])


def test_a_declared_number_takes_what_is_there():
    kernel = module("""
        from weft import cuda

        @cuda.jit("int64(int64)", device=True)
        def twice(n):
            return 2 * n

        @cuda.jit("void(Optional(int64), int64[:])")
        def kernel(n, out):
            out[0] = 1
            out[0] = twice(n)
    """).kernel
    out = np.zeros(1, np.int64)
    kernel[1, 1](None, out)
    assert out[0] == 1
    kernel[1, 1](4, out)
    assert out[0] == 8


def test_what_no_signature_takes():
    with pytest.raises(CompileError, match="no signature of `declared` takes"):
        cuda.jit("void(complex64[:], int64[:])")(
            module("""
            from conformance.language.test_optional_arguments import declared

            def kernel(x, out):
                out[0] = 1 if declared(x[0], None) is None else 0
        """).kernel
        )


def test_a_declared_result_is_there_or_ends_the_thread():
    @cuda.jit("int64(int64)", device=True)
    def positive(n):
        found = n if n > 0 else None
        return found

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = -1
        out[i] = positive(x[i])

    x, out = np.array([3, -3, 0, 4]), np.zeros(4, np.int64)
    kernel[1, 4](x, out)
    assert out.tolist() == [3, -1, -1, 4]
