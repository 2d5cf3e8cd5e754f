"""`cuda.tape`: gradients through launches and copies, beside differences and closed forms."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
from weft import cuda
from weft.cuda import _tape
from weft.cuda._tape.operators import RULES
from weft.errors import CompileError

N = 20
STEP = 1e-6


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit
def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@cuda.jit
def wave(u, k, rate):
    """An update in place, whose derivative needs the old contents."""
    i = cuda.grid(1)
    if i < u.size:
        u[i] = u[i] + rate * k[0] * math.sin(u[i])


@cuda.jit
def blurred(u, out):
    i = cuda.grid(1)
    if 0 < i < u.size - 1:
        out[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1] * u[i]
    elif i < u.size:
        out[i] = u[i]


@cuda.jit
def combined(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * b[i]


@cuda.jit
def squares(u, target, out):
    i = cuda.grid(1)
    if i < u.size:
        cuda.atomic.add(out, 0, (u[i] - target[i]) ** 2)


def differences(function, value):
    """The gradient of a function of an array, by central differences."""
    gradient = np.zeros_like(value)
    for index in np.ndindex(value.shape):
        ahead, behind = value.copy(), value.copy()
        ahead[index] += STEP
        behind[index] -= STEP
        gradient[index] = (function(ahead) - function(behind)) / (2 * STEP)
    return gradient


def compare(program, *values):
    """Compares the tape's gradients of a program, which gives its loss, with differences."""
    arrays = [cuda.to_device(value) for value in values]
    with cuda.tape() as tape:
        loss = program(*arrays)
    after = loss.copy_to_host()
    tape.backward(loss)
    np.testing.assert_array_equal(loss.copy_to_host(), after, err_msg="backward writes no argument")
    for number, value in enumerate(values):

        def of_one(changed, number=number):
            given = [cuda.to_device(changed if at == number else other) for at, other in enumerate(values)]
            return float(program(*given).copy_to_host().item())

        expected = differences(of_one, value)
        found = tape.gradient(arrays[number]).copy_to_host()
        np.testing.assert_allclose(found, expected, 1e-6, 1e-7 * np.abs(expected).max())


def test_many_launches_with_two_buffers():
    """A simulation whose buffers are overwritten in each step."""

    def program(u, k):
        v, loss = cuda.device_array_like(u), cuda.to_device(np.zeros(1))
        for step in range(7):
            blurred[1, 32](u, v)
            wave[1, 32](v, k, 0.1 * step)
            u, v = v, u
        squares[1, 32](u, cuda.to_device(np.ones(N)), loss)
        return loss

    compare(program, uniform(N), np.array([0.7]))


def test_copies_views_and_fills():
    def program(u, k):
        grid = cuda.to_device(np.ones((4, N)))
        loss = cuda.to_device(np.zeros(1))
        for row in range(4):
            grid[row] = u
            wave[1, 32](grid[row], k, 0.3)
            u.copy_to_device(grid[row])
        grid[1, ::2] = 0.5
        grid[2] = grid[0, ::-1]
        columns = cuda.device_array(4)
        columns[...] = grid[:, 3]
        grid[3, 4:8] = columns.copy()
        grid[0] = k
        grid[2, 1:] = grid[2, :-1]
        grid[1:] = grid[:-1]
        narrow = grid.astype(np.complex128).real
        for row in range(4):
            squares[1, 32](narrow[row].copy(), u, loss)
        return loss

    compare(program, uniform(N), np.array([0.7]))


@pytest.mark.parametrize("name", sorted(RULES))
def test_operators(name):
    """Each row of the rules, for arrays that broadcast and for numbers, whose operands and results are overwritten."""
    function = getattr(np, name)
    x, k = uniform(4, N) + 0.5, uniform(N)

    def program(u, w):
        if function.nin == 1:
            v = function(u * w)
        else:
            v = function(u, w) * function(1.25, w) + function(u, 2.0)
            u[0] = w
            v = function(v, np.linspace(0.7, 0.9, N), out=v)
        result = (v * v).sum(axis=0)
        v[...] = 1.0
        w *= result
        w -= u.sum()
        return w.sum(keepdims=True)

    compare(program, x, k)


def test_operators_of_complex_numbers():
    def program(x, y):
        u = x + 1j * y
        v = np.exp(u) * u / (u + 2.0) - np.sqrt(u) * np.tanh(u) + u**3 * np.cos(u) - np.square(u) + 1j / u
        return (v.real * v.imag).sum(keepdims=True) + np.log(u).imag.sum() + v.real.mean()

    compare(program, uniform(N) + 0.5, uniform(N, 2)[:, 0])


def test_means_and_losses_of_float32():
    x = cuda.to_device(uniform(5, N).astype(np.float32))
    target = uniform(5, N).astype(np.float32)
    with cuda.tape() as tape:
        loss = ((x - target) ** 2).mean()
    tape.backward(loss)
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), 2 * (x.copy_to_host() - target) / target.size, 1e-5)


def test_an_array_that_is_passed_twice():
    def program(u):
        v, loss = cuda.device_array_like(u), cuda.to_device(np.zeros(1))
        combined[1, 32](u, u, v)
        combined[1, 32](v[: N - 1], v[1:], u[1:])
        squares[1, 32](u, cuda.to_device(np.zeros(N)), loss)
        return loss

    compare(program, uniform(N))


def test_adjoints_of_several_outputs():
    x = cuda.to_device(np.array([1.0, 2.0, 3.0]))
    y, z = cuda.device_array_like(x), cuda.device_array_like(x)
    with cuda.tape() as tape:
        square.forall(3)(x, y)
        square[1, 32](y, z)
    weights = np.array([1.0, 10.0, 100.0])
    tape.backward([y, z], [2.0, weights])
    expected = 2 * 2 * x.copy_to_host() + weights * 4 * x.copy_to_host() ** 3
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), expected)
    assert not tape.gradient(z).copy_to_host().any(), "what a launch overwrites has no effect"
    np.testing.assert_allclose(tape.gradient(x[1:]).copy_to_host(), expected[1:])


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_other_floats(dtype):
    x = cuda.to_device(np.array([1.0, 2.0, 3.0], dtype))
    y = cuda.device_array_like(x)
    with cuda.tape() as tape:
        square[1, 32](x, y)
    tape.backward(y, 1.0)
    gradient = tape.gradient(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient.copy_to_host(), 2 * np.conj(x.copy_to_host()))


def test_only_needed_contents_are_saved():
    @cuda.jit
    def scaled(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = 3.0 * x[i]

    x, y = cuda.to_device(uniform(N)), cuda.device_array(N)
    with cuda.tape() as tape:
        for _ in range(5):
            scaled[1, 32](x, y)
            scaled[1, 32](y, x)
        assert not tape._contents, "the derivative of a linear kernel needs no contents"
        square[1, 32](x, y)
        (contents,) = tape._contents
        x[...] = 0.0
        assert contents._saved is not None
        assert not tape._contents


def test_what_is_overwritten_after_the_block_is_saved():
    x, y = cuda.to_device(uniform(N)), cuda.device_array(N)
    old = x.copy_to_host()
    with cuda.tape() as tape:
        square[1, 32](x, y)
    square[1, 32](y, x)
    x[...] = 5.0
    tape.backward(y, 1.0)
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), 2 * old)
    assert not _tape._live(), "after `backward`, the tape saves nothing"


def test_arrays_of_the_host_are_constants():
    x, y = cuda.to_device(uniform(N)), cuda.device_array(N)
    weights = uniform(N, 1)[:, 0]
    with cuda.tape() as tape:
        combined[1, 32](x, weights, y)
    given = weights.copy()
    weights[...] = 0
    tape.backward(y, 1.0)
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), given)


def test_a_dropped_tape_observes_nothing():
    x, y = cuda.to_device(uniform(N)), cuda.device_array(N)
    with cuda.tape() as tape:
        square[1, 32](x, y)
    assert _tape._live() == [tape]
    del tape
    gc.collect()
    assert not _tape._live()


@cuda.jit
def largest(x, y):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(y, 0, x[i])


@cuda.jit
def bits(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] + 1


def test_a_gradient_through_what_the_tape_does_not_know_is_an_error():
    x, y = cuda.to_device(uniform(N)), cuda.device_array(N)

    def refused(error, message, operation):
        with cuda.tape() as tape:
            square[1, 32](x, y)
            operation()
            square[1, 32](y, x)
        with pytest.raises(error, match=message):
            tape.backward(x, 1.0)

    refused(RuntimeError, "an operator of device arrays has written", lambda: np.cbrt(y, out=y))
    refused(RuntimeError, "an operator of device arrays has written", lambda: np.add(y, 1.0, out=y, where=y > 0.5))
    refused(RuntimeError, "an assignment by arrays of indices", lambda: y.setitem(np.array([1, 3]), 2.0))
    refused(RuntimeError, "`bits`, as an array of int64, has written", lambda: bits[1, 32](y.view(np.int64)))
    refused(RuntimeError, "`memset` has written", lambda: y.gpu_data.memset(0))
    refused(CompileError, "this atomic operation", lambda: largest[1, 32](x, y))

    @cuda.jit
    def captures(y):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = y[i] * x[i]

    refused(RuntimeError, "`captures` captures an array that the tape follows", lambda: captures[1, 32](y))

    x.copy_to_device(uniform(N))
    with cuda.tape() as tape:
        square[1, 32](x, y)
        total = y * 2.0
    tape.backward(y, 1.0)
    assert tape.gradient(x).copy_to_host().all(), "what no gradient flows through has no effect"
    assert total.size == N


@cuda.jit
def into_half(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]


@cuda.jit
def into_record(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i].value = x[i]


def test_16_bit_floats():
    x, y, z = cuda.to_device(uniform(N)), cuda.device_array(N, np.float16), cuda.device_array(N, np.float16)
    with cuda.tape() as tape:
        into_half[1, 32](x, y)
        z.copy_to_device(y + y)
    tape.backward(z, np.full(N, 0.5, np.float16))
    assert (tape.gradient(x).copy_to_host() == 1).all()
    assert tape.gradient(y).dtype == np.float16


def test_what_cannot_be_recorded_is_an_error():
    x, y = cuda.to_device(uniform(N)), cuda.device_array(N)
    with cuda.tape():
        with pytest.raises(TypeError, match="writes `y`, an array of the host, which a tape does not follow"):
            square[1, 32](x, np.zeros(N))
        with pytest.raises(TypeError, match=r"writes `y`, an array of .*, through which a tape has no gradients"):
            into_record[1, 32](x, cuda.device_array(N, np.dtype([("value", np.float64)])))
        with pytest.raises(ValueError, match="`y` of `square` overlaps another argument, and one of them is written"):
            square[1, 32](x, x)
        with pytest.raises(RuntimeError, match="a tape cannot record a prepared launch"):
            square[1, 32].prepare(x, y)()
        with pytest.raises(RuntimeError, match="another tape records"):
            cuda.tape().__enter__()
    stream = cuda.stream()
    with cuda.tape() as tape:
        square[1, 32, stream](x, y)
        with pytest.raises(RuntimeError, match="the launch of `square` is in another stream"):
            square[1, 32, cuda.stream()](x, y)
        with pytest.raises(RuntimeError, match="a copy from the host is in another stream"):
            x.copy_to_device(np.zeros(N), cuda.stream())
    with pytest.raises(ValueError, match="the output has 20 elements: give its adjoint"):
        tape.backward(y)
    with pytest.raises(ValueError, match=r"of shape \(20,\) has shape \(3,\)"):
        tape.backward(y, np.ones(3))
    with pytest.raises(ValueError, match="there are 1 outputs, but 2 adjoints"):
        tape.backward([y], [1.0, 2.0])
    with pytest.raises(TypeError, match="outputs must be device arrays"):
        tape.backward(np.ones(3))
    with pytest.raises(RuntimeError, match="call `backward` first"):
        tape.gradient(x)
    tape.backward(y, 1.0)
    with pytest.raises(RuntimeError, match="call `backward` once"):
        tape.backward(y, 1.0)
    with pytest.raises(ValueError, match="no launch that the tape recorded accesses the array"):
        tape.gradient(cuda.device_array(3))
    with pytest.raises(TypeError, match="an array of int32 has no gradient"):
        tape.gradient(cuda.device_array(3, np.int32))
    with pytest.raises(RuntimeError, match="has recorded already"):
        tape.__enter__()


def test_a_stream_and_dynamic_shared_memory():
    @cuda.jit
    def mirrored(x, y):
        tile = cuda.shared.array(0, np.float64)
        i = cuda.threadIdx.x
        tile[i] = x[i] * x[i]
        cuda.syncthreads()
        y[i] = tile[tile.size - 1 - i]

    stream = cuda.stream()
    x, y = cuda.to_device(uniform(32)), cuda.device_array(32)
    with cuda.tape() as tape:
        mirrored[1, 32, stream, np.int64(256)](x, y)
    weights = uniform(32, 1)[:, 0]
    stream.synchronize()
    tape.backward(y, weights)
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), 2 * x.copy_to_host() * weights[::-1])


def test_gradients_of_gradients():
    """The tape records launches of adjoint kernels as of others."""
    x, y, dx, dy = (cuda.to_device(value) for value in (uniform(N), np.zeros(N), np.zeros(N), np.ones(N)))
    bwd = cuda.vjp(square)
    with cuda.tape() as tape:
        bwd[1, 64](x, y, dx, dy)
    tape.backward(dx, np.full(N, 3.0))
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), np.full(N, 6.0))
    np.testing.assert_allclose(tape.gradient(dy).copy_to_host(), 6.0 * uniform(N))
