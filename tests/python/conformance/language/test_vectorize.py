"""`vectorize`: results of ufuncs for shapes, dtypes and devices, compared with NumPy."""

import math
import pickle

import numpy as np
import pytest
import weft
from weft import cuda, float32, float64, int32, int64, vectorize

RNG = np.random.default_rng(7)


@vectorize(["int32(int32, int32)", "float32(float32, float32)", "float64(float64, float64)"])
def sub(x, y):
    return x - y


@vectorize(["int64(int64, int64)", "float64(float64, float64)"], identity=0)
def add(x, y):
    return x + y


@vectorize(["UniTuple(float64, 2)(float64, float64)"])
def polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x)


@vectorize
def scaled(x, factor):
    return x * factor


def both(function, *args, **keywords):
    """The result of a ufunc for host arrays, which must equal that for device arrays."""
    host = function(*args, **keywords)
    moved = [cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    device = function(*moved, **keywords)
    if any(isinstance(arg, np.ndarray) for arg in args):
        assert isinstance(device, cuda.DeviceNDArray)
        np.testing.assert_array_equal(device.copy_to_host(), host)
    return host


SHAPES = [
    ((5,), (5,)),
    ((1,), (7,)),
    ((), (3, 4)),
    ((4, 1), (1, 5)),
    ((3, 4), (4,)),
    ((3, 4), (3, 1)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (3, 1)),
    ((2, 1, 4), (1, 3, 1)),
    ((2, 3, 4, 5), (3, 1, 5)),
    ((3, 1, 2, 1, 2), (1, 2, 1, 3, 1)),
    ((0, 4), (4,)),
    ((3, 0), (1, 1)),
    ((1, 1, 1), (1,)),
    ((300, 257), (257,)),
    ((257, 3), (257, 1)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_shapes_broadcast(first, second):
    x, y = RNG.standard_normal(first), RNG.standard_normal(second)
    x, y = np.asarray(x), np.asarray(y)
    for a, b in ((x, y), (y, x)):
        got = both(sub, a, b)
        expected = a - b
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


def test_any_strides():
    x = RNG.standard_normal((6, 8, 10))
    views = [
        x.T,
        x[::2],
        x[:, ::-1],
        x[::-1, 1:7:2, ::3],
        x.transpose(1, 2, 0),
        np.asfortranarray(x),
        np.broadcast_to(x[0], (3, 8, 10)),
        x[:, :1],
        np.swapaxes(x, 0, 1)[2:],
    ]
    for view in views:
        np.testing.assert_array_equal(sub(view, 1.0), view - 1)
        np.testing.assert_array_equal(sub(view, view[..., :1]), view - view[..., :1])
        np.testing.assert_array_equal(sub(np.ascontiguousarray(view), view), view - view)
    device = cuda.to_device(x)
    np.testing.assert_array_equal(sub(device[::2].T, device[1::2].T).copy_to_host(), (x[::2] - x[1::2]).T)


def any_view(rng, shape):
    """An array of a shape with any memory order of the axes, any strides, including negative ones, and padding."""
    order = rng.permutation(len(shape))
    extents = [2 * extent + int(rng.integers(0, 3)) for extent in shape]
    whole = rng.integers(-50, 50, [extents[axis] for axis in order]).transpose(np.argsort(order))
    steps = rng.choice([1, 2, -1], len(shape))
    part = whole[tuple(slice(None, None, int(step)) for step in steps)][tuple(slice(extent) for extent in shape)]
    return np.asarray(part).astype(rng.choice(["int64", "float64"]), order="K", copy=False)


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes_strides_and_places(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        shape = [int(extent) for extent in rng.choice([1, 1, 2, 3, 4, 7], rng.integers(0, 6))]
        own = [
            [1 if rng.random() < 0.3 else extent for extent in shape[rng.integers(0, len(shape) + 1) :]] for _ in "xy"
        ]
        x, y = (any_view(rng, extents) for extents in own)
        expected = np.asarray(x + y)
        args = [cuda.to_device(arg) if rng.random() < 0.5 else arg for arg in (x, y)]
        got = np.asarray(add(*args))
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        out = any_view(rng, expected.shape).astype(expected.dtype)
        # The inputs overlap the result, with another order of elements.
        turned = out[tuple(slice(None, None, int(step)) for step in rng.choice([1, -1], out.ndim))]
        expected = turned + x
        if expected.dtype == out.dtype and expected.shape == out.shape:
            add(turned, x, out=out)
            np.testing.assert_array_equal(out, expected)
        if out.ndim:
            axis = int(rng.integers(0, out.ndim))
            np.testing.assert_allclose(add.reduce(out, axis), out.sum(axis), rtol=1e-12)
            np.testing.assert_allclose(add.accumulate(out, axis), out.cumsum(axis), rtol=1e-12)


def test_results_have_the_order_of_the_arguments():
    x = np.asfortranarray(RNG.standard_normal((5, 7)))
    assert sub(x, x).flags.f_contiguous
    assert sub(x, 1.0).flags.f_contiguous
    assert sub(x, np.ascontiguousarray(x)).flags.c_contiguous
    assert sub(cuda.to_device(x), 1.0).is_f_contiguous()


def test_loops_are_chosen_as_numpy_does():
    expected = {
        ("int32", "int32"): "int32",
        ("int8", "int16"): "int32",
        ("int8", "float32"): "float32",
        ("uint16", "float32"): "float32",
        ("int32", "float32"): "float64",
        ("uint32", "int32"): "float64",
        ("int64", "int64"): "float64",
        ("bool", "bool"): "int32",
        ("float32", "float64"): "float64",
        ("float16", "float16"): "float32",
    }
    for (first, second), result in expected.items():
        x, y = np.ones(3, first), np.ones(3, second)
        got = both(sub, x, y)
        assert got.dtype == result, (first, second)
        np.testing.assert_array_equal(got, np.zeros(3))


def test_numbers_of_python_take_the_dtype_of_the_arrays():
    x = np.arange(4, dtype=np.float32)
    assert sub(x, 1.5).dtype == np.float32
    assert sub(x, 1).dtype == np.float32
    assert sub(1, x.astype(np.int32)).dtype == np.int32
    assert sub(x.astype(np.int32), 0.5).dtype == np.float64
    assert sub(x, np.float64(0.5)).dtype == np.float64
    np.testing.assert_array_equal(both(sub, 3.0, x), 3 - x)
    # Scalars are converted to the types of a single loop.
    only = vectorize(["float32(float32, float32)"])(lambda a, b: a + b)
    assert only(x, np.float64(0.5)).dtype == np.float32
    assert only(x, np.int64(2)).dtype == np.float32


def test_numbers_alone_give_numbers():
    assert sub(1.25, 2.5) == -1.25
    assert type(sub(1.25, 2.5)) is np.float64
    assert type(add(1, 2)) is np.int64
    assert type(sub(np.float32(1), np.float32(3))) is np.float32
    assert polar(3.0, 4.0) == (5, math.atan2(4, 3))
    assert sub(np.array(5, np.int32), np.int32(3)) == 2


def test_several_results():
    x, y = RNG.standard_normal(1000), RNG.standard_normal((3, 1))
    radius, angle = polar(x, y)
    np.testing.assert_allclose(radius, np.hypot(*np.broadcast_arrays(x, y)), rtol=1e-14)
    np.testing.assert_allclose(angle, np.arctan2(*np.broadcast_arrays(y, x)), rtol=1e-14)
    own = np.empty((3, 1000)), np.empty((3, 1000))
    given = polar(x, y, out=own)
    assert given[0] is own[0]
    assert given[1] is own[1]
    np.testing.assert_array_equal(own[0], radius)
    first = np.empty((3, 1000))
    a, b = polar(x, y, out=(first, None))
    assert a is first
    np.testing.assert_array_equal(b, angle)
    assert (polar.nin, polar.nout, polar.nargs) == (2, 2, 4)


def test_out_on_the_host_and_on_the_device():
    x, y = np.arange(12.0).reshape(3, 4), np.ones(4)
    out = np.empty((3, 4))
    assert sub(x, y, out=out) is out
    np.testing.assert_array_equal(out, x - y)
    assert sub(x, y, out) is out
    strided = np.zeros((3, 8))
    sub(x, y, out=strided[:, ::2])
    np.testing.assert_array_equal(strided[:, ::2], x - y)
    np.testing.assert_array_equal(strided[:, 1::2], 0)
    device = cuda.to_device(np.zeros((3, 4)))
    assert sub(x, y, out=device) is device
    np.testing.assert_array_equal(device.copy_to_host(), x - y)
    host = np.empty((3, 4))
    assert sub(device, y, out=host) is host
    np.testing.assert_array_equal(host, x - 2 * y)
    # A result may have more axes than the arguments, and another dtype of its kind.
    wide = np.empty((2, 3, 4), np.float32)
    sub(x, y, out=wide)
    np.testing.assert_array_equal(wide, np.broadcast_to(x - y, (2, 3, 4)))


def test_what_is_written_may_be_what_is_read():
    x = np.arange(10.0)
    device = cuda.to_device(x)
    sub(device, 1.0, out=device)
    np.testing.assert_array_equal(device.copy_to_host(), x - 1)
    # Shifted by one element: each element is read before it is written.
    for array in (x.copy(), cuda.to_device(x)):
        add(array[:-1], array[1:], out=array[1:])
        np.testing.assert_array_equal(np.asarray(array), np.concatenate([[0], x[:-1] + x[1:]]))
    square = np.arange(16.0).reshape(4, 4)
    expected = square + square.T
    add(square, square.T, out=square)
    np.testing.assert_array_equal(square, expected)


def test_a_stream():
    stream = cuda.stream()
    x = cuda.to_device(np.arange(100_000.0), stream)
    y = sub(x, 1.0, stream=stream)
    z = sub(y, x, stream=stream)
    np.testing.assert_array_equal(z.copy_to_host(stream=stream), np.full(100_000, -1.0))
    np.testing.assert_array_equal(sub(np.arange(5.0), 1.0, stream=stream), np.arange(-1.0, 4.0))


def test_without_signatures_each_types_make_a_loop():
    x = np.arange(5)
    assert scaled(x, 2).dtype == np.int64
    assert scaled(x.astype(np.float32), np.float32(2)).dtype == np.float32
    # As in a launch, a Python float is a float64.
    assert scaled(x.astype(np.float32), 2.5).dtype == np.float64
    assert scaled(x, 1j).dtype == np.complex128
    np.testing.assert_array_equal(scaled(x, 1j), x * 1j)
    assert scaled.ntypes == 4
    assert "ll->l" in scaled.types or "qq->q" in scaled.types
    named = vectorize([(float32, float32)])(lambda a, b: a + b > 1)
    assert named(np.ones(2, np.float32), 1).dtype == np.bool_


def test_signatures_in_every_form():
    x = np.arange(6, dtype=np.int32)
    for given in ("int64(int32)", ["int64(int32)"], [int64(int32)], int64(int32), (int64(int32),)):
        double = vectorize(given)(lambda a: a * 2)
        np.testing.assert_array_equal(double(x), x * 2)
        assert double(x).dtype == np.int64
    for maker in (cuda.vectorize, weft.vectorize):
        double = maker([float64(float64)], target="cuda")(lambda a: a * 2)
        np.testing.assert_array_equal(double(x), x * 2.0)


def test_dtypes_beyond_floats():
    @vectorize(["complex64(complex64, complex64)", "complex128(complex128, complex128)"])
    def product(a, b):
        return a * b

    z = RNG.standard_normal(8) + 1j * RNG.standard_normal(8)
    np.testing.assert_allclose(product(z, z), z * z, rtol=1e-15)
    np.testing.assert_allclose(product(z.astype(np.complex64), 2), 2 * z, rtol=1e-6)

    @vectorize(["boolean(float64)", "boolean(int8)"])
    def positive(a):
        return a > 0

    np.testing.assert_array_equal(positive(np.array([-1.0, 0, 2])), [False, False, True])
    np.testing.assert_array_equal(positive(np.array([-1, 0, 2], np.int8)), [False, False, True])

    @vectorize(["float16(float16, float16)"])
    def halves(a, b):
        return a + b

    h = np.array([1, 2048], np.float16)
    np.testing.assert_array_equal(halves(h, h), h + h)

    days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]")
    ty = weft.from_dtype(days.dtype)
    difference = vectorize([(ty, ty)])(lambda a, b: b - a)
    np.testing.assert_array_equal(difference(days, days[::-1]), days[::-1] - days)


def test_arrays_that_cannot_be_used_in_place():
    x = np.arange(5, dtype=">f8")
    np.testing.assert_array_equal(sub(x, 1.0), np.arange(5.0) - 1)
    out = np.zeros(5, ">f8")
    sub(x, 1.0, out=out)
    np.testing.assert_array_equal(out, np.arange(5.0) - 1)
    loose = np.zeros(41, np.uint8)[1:].view(np.float64)
    loose[:] = 3
    np.testing.assert_array_equal(sub(loose, 1.0), np.full(5, 2.0))
    sub(np.arange(5.0), 1.0, out=loose)
    np.testing.assert_array_equal(loose, np.arange(5.0) - 1)
    np.testing.assert_array_equal(sub([1.0, 2.0], (3.0, 5.0)), [-2, -3])


def test_outer():
    x, y = np.arange(3), np.arange(8).reshape(2, 4)
    np.testing.assert_array_equal(add.outer(x, y), np.add.outer(x, y))
    np.testing.assert_array_equal(add.outer(cuda.to_device(x), y).copy_to_host(), np.add.outer(x, y))
    np.testing.assert_array_equal(add.outer(2, y), 2 + y)


def test_reduce_one_axis_or_all():
    x = RNG.integers(-100, 100, (4, 5, 6))
    for array in (x, cuda.to_device(x)):
        for axis in (0, 1, 2, -1, -3):
            np.testing.assert_array_equal(np.asarray(add.reduce(array, axis)), x.sum(axis))
            np.testing.assert_array_equal(
                np.asarray(add.reduce(array, axis, keepdims=True)), x.sum(axis, keepdims=True)
            )
        assert add.reduce(array, None) == x.sum()
        assert add.reduce(array, axis=None, initial=1000) == x.sum() + 1000
        np.testing.assert_array_equal(np.asarray(add.reduce(array, 1, initial=5)), x.sum(1) + 5)
    out = np.zeros((4, 6), np.int64)
    assert add.reduce(x, 1, out=out) is out
    np.testing.assert_array_equal(out, x.sum(1))
    for n in (1, 8, 100, 1025, 100_000):
        line = np.arange(n, dtype=np.int32)
        got = add.reduce(line)
        assert got == line.sum()
        narrow = sub.reduce(np.zeros(n, np.int32))
        assert type(narrow) is np.int32
    assert add.reduce(np.zeros((0, 3), np.int64)).tolist() == [0, 0, 0]
    assert add.reduce(np.zeros(0, np.int64)) == 0


@pytest.mark.parametrize("way", ["as the device does", "by blocks"])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.complex64])
def test_reduce_rows_of_every_length(way, dtype, monkeypatch):
    """A thread, a block or several blocks per row; the GPU's kernels also run on the CPU."""
    from weft.cuda._ufunc import rows as reductions

    if way == "by blocks":
        monkeypatch.setattr(reductions, "in_pieces", lambda: False)
    first = np.array(dtype(1)).dtype
    total = vectorize([f"{first}({first}, {first})"], target="cuda")(lambda a, b: a + b)
    shapes = [(3, 63), (5, 64), (2, 2, 65), (4, 511), (3, 513), (70, 1000), (2, 9000), (1, 70_001), (3, 2, 40_000)]
    # Near the lengths from which a row gets more lanes or more warps; rows that do not fill the last block.
    shapes += [(300, 7), (259, 8), (130, 17), (40, 33), (9, 2, 127), (17, 128), (9, 257), (3, 1025), (2, 2049)]
    for shape in shapes:
        x = RNG.integers(-8, 9, shape).astype(dtype)
        padded = np.zeros((*shape[:-1], shape[-1] + 3), dtype)
        padded[..., :-3] = x
        wanted = x.sum(-1)
        for array in (x, cuda.to_device(x), cuda.to_device(padded)[..., :-3]):
            np.testing.assert_array_equal(np.asarray(total.reduce(array, -1)), wanted)
        np.testing.assert_array_equal(np.asarray(total.reduce(cuda.to_device(x), 0)), x.sum(0))
        turned = cuda.to_device(np.ascontiguousarray(np.moveaxis(x, -1, 0)))
        out = cuda.to_device(np.zeros(wanted.shape, dtype))
        assert total.reduce(turned, 0, out=out) is out
        np.testing.assert_array_equal(out.copy_to_host(), wanted)
        np.testing.assert_array_equal(np.asarray(total.reduce(x, -1, initial=7)), wanted + dtype(7))


@pytest.mark.parametrize("way", ["as the device does", "by tiles"])
def test_reduce_columns_of_every_kind(way, monkeypatch):
    from weft.cuda._ufunc import rows as reductions

    if way == "by tiles":
        monkeypatch.setattr(reductions, "in_pieces", lambda: False)
    total = vectorize(["int64(int64, int64)"], target="cuda")(lambda a, b: a + b)
    shapes = [(2, 16), (3, 31), (16, 33), (17, 15), (700, 40), (5, 3000), (3, 400, 20), (2, 3, 9, 64), (20_000, 17)]
    # More planes than the maximal y dimension of a grid.
    shapes += [(66_000, 2, 16)]
    for shape in shapes:
        x = RNG.integers(-8, 9, shape)
        axis = len(shape) - 2
        wanted = x.sum(axis)
        padded = np.zeros((*shape[:-1], shape[-1] + 5), np.int64)
        padded[..., :-5] = x
        for array in (x, cuda.to_device(x), cuda.to_device(padded)[..., :-5]):
            np.testing.assert_array_equal(np.asarray(total.reduce(array, axis)), wanted)
        whole = cuda.to_device(np.full((*wanted.shape[:-1], 2 * wanted.shape[-1]), -1))
        total.reduce(cuda.to_device(x), axis, out=whole[..., ::2])
        np.testing.assert_array_equal(whole.copy_to_host()[..., ::2], wanted)
        assert (whole.copy_to_host()[..., 1::2] == -1).all()


def test_accumulate():
    x = RNG.integers(-100, 100, (4, 5, 6))
    for axis in (0, 1, 2, -2):
        np.testing.assert_array_equal(add.accumulate(x, axis), x.cumsum(axis))
        device = add.accumulate(cuda.to_device(x), axis)
        np.testing.assert_array_equal(device.copy_to_host(), x.cumsum(axis))
    out = np.zeros((4, 5, 6), np.int64)
    assert add.accumulate(x, 1, out=out) is out
    np.testing.assert_array_equal(out, x.cumsum(1))
    assert add.accumulate(np.zeros((0, 3))).shape == (0, 3)


def test_at_counts_what_is_named_again():
    indices = RNG.integers(0, 20, 1000)
    values = RNG.integers(-5, 5, 1000)
    expected = np.zeros(20, np.int64)
    np.add.at(expected, indices, values)
    got = np.zeros(20, np.int64)
    add.at(got, indices, values)
    np.testing.assert_array_equal(got, expected)
    device = cuda.to_device(np.zeros(20, np.int64))
    add.at(device, cuda.to_device(indices), cuda.to_device(values))
    np.testing.assert_array_equal(device.copy_to_host(), expected)
    # In the order in which they are named.
    last = vectorize(["float64(float64, float64)"])(lambda a, b: a * 0.5 + b)
    x, y = np.ones((3, 4)), np.ones((3, 4))
    index = ([0, 2, 0, -1, 0], [1, 3, 1, -1, 1])
    last.at(x, index, np.arange(5.0))
    for k, (i, j) in enumerate(zip(*index, strict=True)):
        y[i, j] = y[i, j] * 0.5 + k
    np.testing.assert_array_equal(x, y)
    for array in (np.arange(12.0).reshape(3, 4), np.asfortranarray(np.arange(12.0).reshape(3, 4))):
        expected = array.copy()
        np.add.at(expected, np.s_[1:, ::2], 10)
        moved = cuda.to_device(array)
        add.at(moved, np.s_[1:, ::2], 10)
        np.testing.assert_array_equal(moved.copy_to_host(), expected)
        add.at(array, np.s_[1:, ::2], 10)
        np.testing.assert_array_equal(array, expected)
    double = vectorize(["int64(int64)"])(lambda a: a * 2)
    x = np.ones(5, np.int64)
    double.at(x, [0, 1, 1, 4, 1])
    np.testing.assert_array_equal(x, [2, 8, 1, 1, 2])
    add.at(x, [], 1)
    with pytest.raises(TypeError, match="takes 2 arguments and gives 1: `at` got 1 argument"):
        add.at(x, [0])
    with pytest.raises(IndexError):
        add.at(x, [7], 1)
    with pytest.raises(TypeError, match="int64 cannot hold the result, which is float64"):
        add.at(x, [0], 1.5)


def test_reductions_that_are_none():
    with pytest.raises(TypeError, match="empty array"):
        sub.reduce(np.zeros(0))
    with pytest.raises(TypeError, match="not a number"):
        add.reduce(5)
    with pytest.raises(ValueError, match="must have two arguments and one result"):
        polar.reduce(np.ones(3))
    with pytest.raises(ValueError, match="out of bounds"):
        add.reduce(np.ones(3), 1)
    less = vectorize(["boolean(float64, float64)"])(lambda a, b: a < b)
    with pytest.raises(TypeError, match="its result and argument types differ"):
        less.reduce(np.ones(3))


def test_lambdas():
    factor = 3.0
    first, second = vectorize(lambda x: x + 1), vectorize(lambda x, by=2: x * by)
    third = vectorize(
        ["float64(float64)"]
    )(
        lambda x: (
            x * factor
            - 1
        )
    )  # fmt: skip
    x = np.arange(4.0)
    np.testing.assert_array_equal(first(x), x + 1)
    np.testing.assert_array_equal(second(x, 5), x * 5)
    np.testing.assert_array_equal(third(x), x * 3 - 1)
    several = [vectorize(["float64(float64)"])(f) for f in (lambda x: x, lambda x: -x, lambda x: x * 2)]
    np.testing.assert_array_equal([f(2.0) for f in several], [2, -2, 4])
    with pytest.raises(weft.errors.SourceError, match="the source of this lambda was not found: use def"):
        vectorize(eval("lambda x: x - 7"))


def test_functions_that_it_calls_and_reads():
    scale = np.float32(2.5)

    @cuda.jit(device=True)
    def halved(x):
        return x / np.float32(2), x

    @vectorize(["float32(float32)"])
    def computed(x):
        a, b = halved(x)
        return a + b * scale

    x = np.arange(9, dtype=np.float32)
    np.testing.assert_allclose(computed(x), x / 2 + x * 2.5, rtol=1e-6)


def test_a_ufunc_knows_what_it_is():
    assert sub.__name__ == "sub"
    assert sub.types == ["ii->i", "ff->f", "dd->d"]
    assert (sub.nin, sub.nout, sub.nargs, sub.ntypes, sub.signature) == (2, 1, 3, 3, None)
    assert add.identity == 0
    assert sub.py_func(5, 3) == 2
    assert repr(sub) == "<weft ufunc sub>"
    small = vectorize(["float64(float64)"])(lambda x: -x)
    small.max_blocksize = 32
    assert small.max_blocksize == 32
    np.testing.assert_array_equal(small(np.arange(1000.0)), -np.arange(1000.0))


def test_pickling():
    copy = pickle.loads(pickle.dumps(sub))
    assert copy is sub or copy(3.0, 1.0) == 2
    local = vectorize(["float64(float64)"])(lambda x: x + 0.5)
    copy = pickle.loads(pickle.dumps(local))
    np.testing.assert_array_equal(copy(np.arange(4.0)), np.arange(4.0) + 0.5)
    dynamic = pickle.loads(pickle.dumps(vectorize(lambda x: x * 3)))
    np.testing.assert_array_equal(dynamic(np.arange(4)), np.arange(4) * 3)


def test_faults_name_the_argument():
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match=r"ufunc sub: no loop takes \(complex128\[:\], float32\[:\]\)"):
        sub(x.astype(complex), x)
    with pytest.raises(ValueError, match=r"sub: argument 2 with shape \(4,\) does not broadcast with \(3,\)"):
        sub(x, np.ones(4, np.float32))
    with pytest.raises(ValueError, match=r"result 1 has shape \(3,\), the array for it \(1,\)"):
        sub(x, x, out=np.ones(1, np.float32))
    with pytest.raises(TypeError, match="result 1 is float32, which an array of int32 cannot hold"):
        sub(x, x, out=np.ones(3, np.int32))
    with pytest.raises(TypeError, match="`out` must be arrays, not list"):
        sub(x, x, out=[1, 2, 3])
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        sub(x, x, out=frozen)
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        sub(x)
    with pytest.raises(TypeError, match="takes 2 arguments and arrays for 1 results, not 4"):
        sub(x, x, x, x)
    with pytest.raises(ValueError, match="both positional and keyword"):
        sub(x, x, x.copy(), out=x.copy())
    with pytest.raises(TypeError, match="unexpected keyword argument 'wheer'"):
        sub(x, x, wheer=True)
    several = vectorize(["float32(float32, float32)", "float64(float32, float64)"])(lambda a, b: a + b)
    with pytest.raises(TypeError, match="more than one loop takes"):
        several(x, np.complex64(1))


def test_decorators_refuse_what_they_cannot_do():
    with pytest.raises(TypeError, match="caching is not supported"):
        vectorize(["float32(float32)"], cache=True)
    with pytest.raises(KeyError, match="Unrecognized options"):
        vectorize(["float32(float32)"], fast=True)
    with pytest.raises(ValueError, match="Unsupported target: 'parallel'"):
        vectorize(["float32(float32)"], target="parallel")
    with pytest.raises(ValueError, match="Invalid identity value 7"):
        vectorize(["float32(float32)"], identity=7)
    with pytest.warns(RuntimeWarning, match="nopython kwarg for cuda target is redundant"):
        vectorize(["float32(float32)"], nopython=True)
    with pytest.raises(TypeError, match="takes 1 argument, but"):
        vectorize(["float32(float32, float32)"])(lambda x: x)
    with pytest.raises(TypeError, match=r"takes and returns numbers, not array"):
        vectorize(["float32(float32[:])"])(lambda x: x[0])
    with pytest.raises(TypeError, match="does not return a number"):
        vectorize([(float32,)])(nothing)
    with pytest.raises(weft.CompileError, match="float32 in its signature"):
        vectorize(["float32(float32)"])(nothing)
    with pytest.raises(weft.CompileError, match="undefined_name"):
        vectorize(["float32(float32)"])(wrong)


def nothing(x):
    pass


def wrong(x):
    return x + undefined_name  # noqa: F821
