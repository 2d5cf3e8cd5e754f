"""Exceptions that kernels raise: the host raises the same exception at its next wait, with its source position and
calls."""

# ruff: noqa: PT012

import re

import numpy as np
import pytest
from weft import cuda


class OutOfRange(ValueError):
    pass


class Coded(Exception):
    def __init__(self, code, name="none"):
        super().__init__(code, name)
        self.code = code
        self.name = name


@cuda.jit(device=True)
def positive(x, i):
    if x[i] <= 0:
        raise OutOfRange("not positive", 7, (1, 2.5, None, True))
    return x[i]


@cuda.jit(device=True)
def twice(x, i):
    return positive(x, i) * 2


def note_of(error):
    (note,) = error.__notes__
    return note


def test_a_fault_is_told_at_the_next_wait_and_once():
    @cuda.jit(exceptions=True)
    def k(x, out):
        i = cuda.grid(1)
        out[i] = twice(x, i)

    x, out = cuda.to_device(np.array([1, 2, 3, -4])), cuda.to_device(np.zeros(4, np.int64))
    k[2, 2](x, out)
    with pytest.raises(OutOfRange) as caught:
        cuda.synchronize()
    assert caught.value.args == ("not positive", 7, (1, 2.5, None, True))
    note = note_of(caught.value)
    assert "thread (1, 0, 0) of block (1, 0, 0)" in note
    places = [line.rsplit(" in ", 1)[1] for line in note.splitlines() if line.lstrip().startswith("File")]
    assert places == ["k", "twice", "positive"]
    assert 'raise OutOfRange("not positive"' in note
    cuda.synchronize()
    assert out.copy_to_host().tolist() == [2, 4, 6, 0]


@pytest.mark.parametrize("wait", ["copy", "stream", "event", "launch with a host array"])
def test_every_wait_tells_it(wait):
    @cuda.jit(exceptions=True)
    def k(x):
        if x[0] > 0:
            raise ValueError("positive")

    stream = cuda.stream()
    x = cuda.to_device(np.array([1]))
    cuda.synchronize()
    with pytest.raises(ValueError, match="positive"):
        if wait == "copy":
            k[1, 1](x)
            x.copy_to_host()
        elif wait == "stream":
            k[1, 1, stream](x)
            stream.synchronize()
        elif wait == "event":
            event = cuda.event()
            k[1, 1, stream](x)
            event.record(stream)
            event.synchronize()
        else:
            # Arrays that may have been written are copied back.
            @cuda.jit(exceptions=True)
            def writes(x):
                x[0] += 1
                if x[0] > 0:
                    raise ValueError("positive")

            writes[1, 1](np.array([1]))
    cuda.synchronize()


def test_the_process_and_the_device_go_on():
    @cuda.jit(exceptions=True)
    def k(x, out):
        i = cuda.grid(1)
        if x[i] == 3:
            raise KeyError(3)
        out[i] = x[i]

    for bad in (True, False, True, False):
        x = np.arange(10) + (0 if bad else 10)
        out = np.zeros_like(x)
        if bad:
            with pytest.raises(KeyError) as caught:
                k[2, 5](x, out)
                cuda.synchronize()
            assert caught.value.args == (3,)
        else:
            k[2, 5](x, out)
            assert (out == x).all()


def test_a_launch_with_an_array_of_the_host_tells_whatever_the_kernel_does_with_it():
    @cuda.jit(exceptions=True)
    def check(x):
        i = cuda.grid(1)
        if i < x.size and x[i] < 0:
            raise KeyError("negative")

    @cuda.jit(exceptions=True)
    def sizes(x, y):
        if x.size == 3 and y[0] < 9:
            raise KeyError(3)

    @cuda.jit
    def total(x, out):
        out[0] = x[0] + x[1]

    bad = np.array([1.0, -1.0, 2.0])
    on_device = cuda.to_device(bad)
    stream = cuda.stream()
    launches = [
        lambda: check[1, 4](bad),
        lambda: check[1, 4, stream](bad),
        lambda: check[1, 2](bad[::2][::-1] * -1),
        lambda: sizes[1, 1](bad, on_device),
        lambda: check[1, 4](cuda.In(bad)),
    ]
    for raising in launches:
        with pytest.raises(KeyError):
            raising()
        cuda.synchronize()
    # An earlier exception of another kernel, for which the host has not waited yet.
    check[1, 4](on_device)
    with pytest.raises(KeyError):
        total[1, 1](bad, cuda.device_array(1))
    total[1, 1](bad, cuda.device_array(1))


def test_the_first_of_many_is_told():
    @cuda.jit(exceptions=True)
    def k():
        raise RuntimeError("each thread")

    k[64, 64]()
    with pytest.raises(RuntimeError, match="each thread"):
        cuda.synchronize()
    cuda.synchronize()


@pytest.mark.parametrize("debug", [False, True])
def test_classes_and_arguments(debug):
    options = {"debug": True, "opt": False} if debug else {"exceptions": True}

    @cuda.jit(**options)
    def k(which):
        error = OutOfRange("held in a variable")
        if which == 0:
            raise ValueError
        elif which == 1:
            raise ValueError()
        elif which == 2:
            raise Coded(5, "five")
        elif which == 3:
            raise error
        elif which == 4:
            assert which < 0
        elif which == 5:
            assert which < 0, "text"
        elif which == 6:
            raise ZeroDivisionError(-1, 2.5)

    expected = [
        (ValueError, ()),
        (ValueError, ()),
        (Coded, (5, "five")),
        (OutOfRange, ("held in a variable",)),
        (AssertionError, ()),
        (AssertionError, ("text",)),
        (ZeroDivisionError, (-1, 2.5)),
    ]
    for which, (error, args) in enumerate(expected):
        with pytest.raises(error) as caught:
            k[1, 1](which)
            cuda.synchronize()
        assert type(caught.value) is error
        if not debug:
            assert caught.value.args == args
        else:
            first, *rest = caught.value.args
            assert first.startswith("In function 'k', file ")
            assert "tid=[0, 0, 0] ctaid=[0, 0, 0]" in first
            assert first.endswith(f": {args[0]}" if args else "ctaid=[0, 0, 0]")
            assert tuple(rest) == args[1:]
    k[1, 1](7)
    cuda.synchronize()


def test_debug_code_raises_at_the_launch():
    @cuda.jit(debug=True, opt=False)
    def k(x):
        i = cuda.grid(2)[1]
        if cuda.threadIdx.y == 2 and cuda.blockIdx.x == 1:
            raise ValueError("here")
        x[i] = 1

    with pytest.raises(ValueError, match=r"tid=\[0, 2, 0\] ctaid=\[0, 0, 1\]: here"):
        k[2, (1, 3)](np.zeros(3))


def test_without_options_the_thread_ends():
    @cuda.jit
    def k(x, out):
        i = cuda.grid(1)
        if x[i] < 0:
            raise ValueError(f"bad {x[i]}")
        out[i] = twice(x, i)

    out = np.zeros(4, np.int64)
    k[1, 4](np.array([1, -1, 0, 3]), out)
    cuda.synchronize()
    assert out.tolist() == [2, 0, 0, 6]


def test_a_file_is_the_users_whatever_its_name():
    text = "def k(x):\n    if x[0] == 0:\n        raise OutOfRange('zero')\n    x[0] = 1\n"
    scope = {"OutOfRange": OutOfRange}
    exec(compile(text, "weft/prelude/k.py", "exec"), scope)
    kernel = cuda.jit(scope["k"], exceptions=True, source=text)
    with pytest.raises(OutOfRange, match="zero") as caught:
        kernel[1, 1](np.zeros(1))
    assert "weft/prelude/k.py" in note_of(caught.value)


def test_threads_behind_barriers_go_on():
    @cuda.jit(exceptions=True)
    def k(out):
        i = cuda.threadIdx.x
        shared = cuda.shared.array(32, np.int32)
        shared[i] = i
        if i == 5:
            raise ValueError("five")
        cuda.syncthreads()
        out[i] = shared[31 - i]

    out = cuda.to_device(np.full(32, -1, np.int32))
    k[1, 32](out)
    with pytest.raises(ValueError, match="five"):
        cuda.synchronize()
    expected = [31 - i if i != 5 else -1 for i in range(32)]
    assert out.copy_to_host().tolist() == expected


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "float32", "float64"])
def test_division_by_zero(dtype, debug):
    @cuda.jit(debug=debug, opt=not debug)
    def k(x, out, which):
        a, b = x[0], x[1]
        if which == 0:
            out[0] = a / b
        elif which == 1:
            out[0] = a // b
        elif which == 2:
            out[0] = a % b
        elif which == 3:
            out[0] = divmod(a, b)[0]
        elif which == 4:
            x[2] //= b
        out[1] = 1

    for which in range(5):
        x, out = np.array([7, 0, 5], dtype), np.zeros(2)
        if debug:
            with pytest.raises(ZeroDivisionError):
                k[1, 1](x, out, which)
        else:
            k[1, 1](x, out, which)
            assert out[1] == 1
        x[1] = 2
        k[1, 1](x, out, which)
        assert out[1] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fast_divisions_of_floats_raise_nothing(dtype):
    @cuda.jit(debug=True, opt=False, fastmath=True)
    def k(x, i, out):
        # The result is unspecified: `fastmath` assumes that there are no infinities.
        out[0] = x[0] / x[1]
        out[1] = 1
        out[2] = i[0] // i[1]
        out[3] = 1

    out = cuda.to_device(np.zeros(4))
    with pytest.raises(ZeroDivisionError, match="integer division or modulo by zero"):
        k[1, 1](np.array([7, 0], dtype), np.array([7, 0]), out)
    assert out.copy_to_host()[1:].tolist() == [1, 0, 0]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "float64"])
def test_steps_of_zero(dtype, debug):
    @cuda.jit(debug=debug, opt=not debug)
    def k(step, x, out, which):
        if which == 0:
            for turn in range(0, 6, step[0]):
                out[0] += turn
        elif which == 1:
            for turn in reversed(range(0, 6, step[0])):
                out[0] += turn
        elif which == 2:
            out[0] += len(range(0, 6, step[0]))
        elif which == 3:
            out[0] += x[0 : 6 : int(step[0])].sum()
        out[1] = 1

    messages = ["range() arg 3 must not be zero"] * 3 + ["slice step cannot be zero"]
    for which, (message, wanted) in enumerate(zip(messages, (6, 6, 3, 6), strict=True)):
        x, out = np.arange(6), np.zeros(2)
        if debug:
            with pytest.raises(ValueError, match=re.escape(message)):
                k[1, 1](np.zeros(1, dtype), x, out, which)
        else:
            k[1, 1](np.zeros(1, dtype), x, out, which)
            assert out.tolist() == [0, 1]
        k[1, 1](np.full(1, 2, dtype), x, out, which)
        assert out.tolist() == [wanted, 1]


def test_tuples_in_debug_code():
    @cuda.jit(debug=True, opt=False)
    def k(t, i, out):
        out[0] = t[i]

    out = np.zeros(1, np.int64)
    for i in (-3, 0, 2):
        k[1, 1]((4, 5, 6), i, out)
        assert out[0] == (4, 5, 6)[i]
    for i in (-4, 3):
        with pytest.raises(IndexError, match="tuple index out of range"):
            k[1, 1]((4, 5, 6), i, out)


@pytest.mark.parametrize("order", ["C", "F", "A"])
def test_bounds(order):
    @cuda.jit(boundscheck=True)
    def load(x, i, j, out):
        out[0] = x[i, j]

    @cuda.jit(boundscheck=True)
    def store(x, i, j, out):
        x[i, j] = 1

    @cuda.jit(boundscheck=True)
    def view(x, i, j, out):
        out[0] = x[i][j] + x[:, j][i]

    @cuda.jit(boundscheck=True)
    def atomic(x, i, j, out):
        cuda.atomic.add(x, (i, j), 1)

    host = np.arange(12.0).reshape(3, 4)
    if order == "F":
        host = np.asfortranarray(host)
    elif order == "A":
        host = np.arange(48.0).reshape(6, 8)[::2, ::2]
    x, out = cuda.to_device(host), cuda.to_device(np.zeros(1))
    for kernel in (load, store, view, atomic):
        for i, j in ((0, 0), (2, 3), (-3, -4)):
            kernel[1, 1](x, i, j, out)
            cuda.synchronize()
        for (i, j), message in {
            (3, 0): "index 3 is out of bounds for axis 0 with size 3",
            (-4, 0): "index -4 is out of bounds for axis 0 with size 3",
            (0, 4): "index 4 is out of bounds for axis 1 with size 4",
            (1, -5): "index -5 is out of bounds for axis 1 with size 4",
            (2**62, 0): f"index {2**62} is out of bounds for axis 0 with size 3",
        }.items():
            kernel[1, 1](x, i, j, out)
            with pytest.raises(IndexError) as caught:
                cuda.synchronize()
            expected = message.replace("axis 1", "axis 0") if kernel is view else message
            assert caught.value.args == (expected,)
            assert "thread (0, 0, 0) of block (0, 0, 0)" in note_of(caught.value)


def test_bounds_in_device_functions_and_shared_arrays():
    @cuda.jit(device=True)
    def at(x, i):
        return x[i]

    @cuda.jit(boundscheck=True)
    def k(i, out):
        s = cuda.shared.array(8, np.int64)
        s[cuda.threadIdx.x] = cuda.threadIdx.x
        cuda.syncthreads()
        out[cuda.threadIdx.x] = at(s, cuda.threadIdx.x + i) if cuda.threadIdx.x > 0 else 0

    out = cuda.to_device(np.zeros(8, np.int64))
    k[1, 8](0, out)
    cuda.synchronize()
    assert out.copy_to_host().tolist() == list(range(8))
    k[1, 8](1, out)
    with pytest.raises(IndexError, match="index 8 is out of bounds for axis 0 with size 8") as caught:
        cuda.synchronize()
    note = note_of(caught.value)
    assert "thread (7, 0, 0)" in note
    assert note.index("in k") < note.index("in at")


def test_what_python_raises_an_exception_for():
    @cuda.jit(device=True)
    def some(i):
        if i > 0:
            return i
        return None

    @cuda.jit(exceptions=True)
    def none(out, i):
        out[0] = some(i) + 1

    @cuda.jit(exceptions=True)
    def stop(out, n):
        it = iter(range(n))
        out[0] = next(it)

    out = np.zeros(1, np.int64)
    for kernel, error in ((none, TypeError), (stop, StopIteration)):
        kernel[1, 1](out, 1)
        cuda.synchronize()
        with pytest.raises(error):
            kernel[1, 1](out, 0)
            cuda.synchronize()


def test_recursion_shows_its_calls():
    @cuda.jit
    def down(n):
        if n == 0:
            raise ValueError("bottom")
        return down(n - 1) + 1 if n < 1000 else 0

    @cuda.jit(exceptions=True)
    def k(n, out):
        out[0] = down(n)

    out = cuda.to_device(np.zeros(1, np.int64))
    for n, shown in ((3, 4), (60, 32)):
        k[1, 1](n, out)
        with pytest.raises(ValueError, match="bottom") as caught:
            cuda.synchronize()
        lines = [line for line in note_of(caught.value).splitlines() if line.lstrip().startswith("File")]
        assert len(lines) == shown + 1
        assert ("29 more" in note_of(caught.value)) == (n == 60)


def test_all_arrays_of_the_host_come_back_where_a_thread_has_raised():
    @cuda.jit(exceptions=True)
    def k(one, two, three):
        i = cuda.grid(1)
        assert i != 2
        one[i] = two[i] = three[i] = i + 1

    one, two, three = np.zeros(4), np.zeros(8)[::2], np.zeros(4, np.int8)
    with pytest.raises(AssertionError):
        k[1, 4](one, two, three)
    for array in (one, two, three):
        assert array.tolist() == [1, 2, 0, 4]


def test_with_debug_a_complex_division_by_zero_is_an_error():
    @cuda.jit(debug=True, opt=False)
    def kernel(x, y, out):
        out[0] = x[0] / y[0]

    out = np.zeros(1, complex)
    kernel[1, 1](np.array([1j]), np.array([0.5j]), out)
    assert out[0] == 2
    with pytest.raises(ZeroDivisionError, match="complex division by zero"):
        kernel[1, 1](np.array([1j]), np.array([-0.0 + 0j]), out)
