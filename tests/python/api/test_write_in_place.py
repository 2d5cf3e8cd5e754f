"""On the CPU, a kernel writes large host arrays in place, and writes nothing outside them."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any, NamedTuple

import numpy as np
import pytest
from weft import cuda, float64, int32

LARGE = 1 << 20  # bytes
N = (LARGE >> 3) + 37  # float64
# The number of bytes before and after an array that are compared. They must exist, or the array is copied.
BESIDE = 64 * mmap.PAGESIZE


@pytest.fixture(autouse=True)
def on_the_cpu() -> None:
    if cuda.get_current_device().kind == "cuda":
        pytest.skip("a GPU does not reach arrays of the host")


def where(x: Any, place: Any, out: Any) -> None:
    x[0] = 7
    cuda.threadfence()
    out[0] = place[0]


def is_in_place(x: Any, of: Any = None, kernel: Any = where) -> bool:
    """Whether a kernel's write to the first element of `x`, or of its base, is visible in its memory at once."""
    own = x if of is None else of
    layout = {1: "::1" if own.flags.c_contiguous else ":"}.get(own.ndim, ", ".join([":"] * own.ndim))
    launched = cuda.jit(f"void(float64[{layout}], CPointer(float64), float64[::1])")(kernel)
    before, out = own.flat[0], np.zeros(1)
    assert before != 7
    launched[1, 1](x, own.ctypes.data, out)
    assert own.flat[0] == 7 or of is not None
    own.flat[0] = before
    return out[0] == 7


def test_what_is_large_and_has_no_gaps_is_written_where_it_is() -> None:
    # at other addresses, a stack's guard page may follow an array, and the array is copied
    x = np.arange(1.0, 2 * N)[:N]
    assert is_in_place(x)
    assert is_in_place(np.arange(2.0 * N)[100 : N + 100])
    assert is_in_place(x[::-1])
    assert not is_in_place(x[: N // 2])
    assert not is_in_place(np.arange(1.0, 4 * N)[::2])
    for hint in (cuda.In, cuda.Out, cuda.InOut):
        assert not is_in_place(hint(x), x)
    packed = np.zeros(N, [("a", "i1"), ("b", "f8")])
    assert not is_in_place(packed["b"])
    odd = np.zeros(8 * N + 1, np.int8)[1:].view(np.float64)
    assert not is_in_place(odd)


def test_a_pointer_that_the_kernel_writes_through_may_lead_anywhere() -> None:
    def through(x: Any, place: Any, out: Any) -> None:
        x[0] = 7
        cuda.threadfence()
        out[0] = place[0]
        place[1] = 3

    x = np.arange(1.0, N + 1)
    assert not is_in_place(x, kernel=through)


# Kernels whose last threads access memory past the end of an array, or before it. Several threads write the same
# values.


@cuda.jit
def store(x: Any) -> None:
    i = cuda.grid(1)
    x[i] = x[i] + x[i]


@cuda.jit
def store_in_front(x: Any) -> None:
    i = cuda.grid(1)
    x[-1 - i] = i % 7


@cuda.jit
def half_in_front(x: Any) -> None:
    i = cuda.grid(1)
    x[i - cuda.gridsize(1) // 2] = 1


@cuda.jit
def augmented(x: Any) -> None:
    i = cuda.grid(1)
    x[i] += 1


@cuda.jit
def by_tuples(arrays: Any) -> None:
    i = cuda.grid(1)
    arrays[0][i] = 1


@cuda.jit
def in_turns(x: Any) -> None:
    i = cuda.grid(1)
    for k in range(3):
        x[i + k * 100] = (i + k * 100) % 7


@cuda.jit
def as_views(x: Any) -> None:
    i = cuda.grid(1)
    tail = x[i:]
    tail[0] = 1
    whole = x[:]
    whole[i] = 1
    back = x[::-1]
    back[i] = 1


@cuda.jit
def barriers(x: Any) -> None:
    tile = cuda.shared.array(256, int32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = i
    cuda.syncthreads()
    own = cuda.local.array(4, float64)
    own[i % 4] = tile[255 - cuda.threadIdx.x]
    cuda.syncthreads()
    x[i] = 1 if own[i % 4] >= 0 else 2
    cuda.syncthreads()
    x[i + 100] = 1


@cuda.jit(device=True)
def put(x: Any, i: Any, value: Any) -> Any:
    x[i] = value
    return x


@cuda.jit(device=True)
def put_twice(x: Any, i: Any) -> None:
    again = put(x, i, i % 7)
    again[i + 1] = (i + 1) % 7
    put(x[i:], 5, (i + 5) % 7)


@cuda.jit
def by_functions(x: Any) -> None:
    put_twice(x, cuda.grid(1))


@cuda.jit
def unsigned(x: Any) -> None:
    x[np.uint64(cuda.grid(1))] = 1
    x[np.uint64(2**63) + np.uint64(cuda.grid(1))] = 1


UNGUARDED = [store, store_in_front, half_in_front, augmented, in_turns, as_views, barriers, by_functions]


def in_the_middle(shape: Any, dtype: Any, order: str = "C") -> tuple[Any, Any]:
    """An array between other bytes, and the whole buffer."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.random.default_rng(7).integers(1, 100, size + 2 * BESIDE, np.uint8)
    if dtype == np.bool_:
        memory &= 1
    return np.ndarray(shape, dtype, memory, BESIDE, order=order), memory


def check(kernel: Any, x: Any, memory: Any, *, threads: int | None = None, wrap: Any = lambda x: x) -> None:
    """More threads than elements: the results are those for a view of device memory, and no byte outside changes."""
    before, device = memory.copy(), cuda.to_device(memory)
    copy = device[BESIDE:-BESIDE].view(x.dtype).reshape(x.shape, order="C" if x.flags.c_contiguous else "F")
    blocks = -(-(threads or x.size) // 256) + 1
    kernel[blocks, 256](wrap(x))
    kernel[blocks, 256](wrap(copy))
    np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])
    np.testing.assert_array_equal(memory[BESIDE:-BESIDE], device.copy_to_host()[BESIDE:-BESIDE])
    assert (memory != before).any()


@pytest.mark.parametrize("kernel", UNGUARDED, ids=lambda kernel: kernel.py_func.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u2", "c16", "f2"])
def test_what_lies_beside_an_array_stays(kernel, dtype) -> None:
    dtype = np.dtype(dtype)
    check(kernel, *in_the_middle(LARGE // dtype.itemsize + 5, dtype))


def test_tuples_booleans_and_indices_without_a_sign() -> None:
    check(by_tuples, *in_the_middle(N, "f8"), wrap=lambda x: (x, 3))
    check(unsigned, *in_the_middle(N, "f8"))

    @cuda.jit
    def invert(x):
        i = cuda.grid(1)
        x[i] = not x[i]

    check(invert, *in_the_middle(LARGE + 3, "?"))


class Pair(NamedTuple):
    first: Any
    scale: Any


def test_arrays_in_objects() -> None:
    @cuda.jit
    def scaled(pair):
        i = cuda.grid(1)
        pair.first[i] *= pair.scale

    check(scaled, *in_the_middle(N, "f8"), wrap=lambda x: Pair(x, 3.0))


@pytest.mark.parametrize("aligned", [True, False])
def test_records(aligned) -> None:
    dtype = np.dtype([("a", "i2"), ("b", "f8"), ("c", "u1", 5)], align=aligned)

    @cuda.jit
    def fields(x):
        i = cuda.grid(1)
        record = x[i]
        record.a = i
        x[i].b = 2.5
        x["c"][i, 3] = 4
        record.c[1] = 9
        x[i + 1] = x[i]

    x, memory = in_the_middle(LARGE // dtype.itemsize + 5, dtype)
    before = memory.copy()
    fields[x.size // 256 + 2, 256](x)
    np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])
    assert x["a"][0] == 0
    assert (x["b"] == 2.5).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_crossed_as_in_a_copy(order) -> None:
    @cuda.jit
    def flat(x):
        i = cuda.grid(1)
        if x.shape[0] > 1:
            x[0, i] = i
            x[1, i] += 1
            x[i, 0] += 2

    @cuda.jit
    def rows(x):
        i, j = cuda.grid(2)
        x[i, j] = i * 1000 + j

    x, memory = in_the_middle((300, 500), "f8", order)
    before = memory.copy()
    flat[700, 256](x)
    np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])
    x, memory = in_the_middle((300, 500), "f8", order)
    rows[(20, 33), (16, 16)](x)
    np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])

    @cuda.jit
    def one(x):
        i = cuda.grid(1)
        if order == "C":
            x[0, i] = i
        else:
            x[i, 0] = i

    check(one, *in_the_middle((300, 500), "f8", order))


def test_any_order_of_axes_and_backwards() -> None:
    @cuda.jit
    def fill(x):
        i, j = cuda.grid(2)
        for k in range(x.shape[2]):
            if i < x.shape[0] and j < x.shape[1]:
                x[i, j, k] = i * 10000 + j * 100 + k

    @cuda.jit
    def unguarded(x):
        i, j = cuda.grid(2)
        for k in range(x.shape[2] + 30):
            x[i, j, k] = 1

    base, memory = in_the_middle((70, 60, 50), "f8")
    before = memory.copy()
    for view in (base, base[::-1], base[:, ::-1, ::-1], base.transpose(1, 0, 2), base.T, base.transpose(2, 0, 1)[::-1]):
        base[:] = -1
        fill[(5, 5), (20, 20)](view)
        want = np.add.outer(
            np.add.outer(np.arange(view.shape[0]) * 10000, np.arange(view.shape[1]) * 100), np.arange(view.shape[2])
        )
        np.testing.assert_array_equal(view, want)
        unguarded[(5, 5), (20, 20)](view)
        assert (base == 1).all()
        np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
        np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])


def test_between_the_elements_of_a_view_lies_what_is_not_its_own() -> None:
    @cuda.jit
    def rows(x):
        i, j = cuda.grid(2)
        x[i, j] = 1

    base = np.zeros((700, 900))
    view = base[100:600, 200:500]
    rows[(32, 20), (16, 16)](view)
    assert (view == 1).all()
    assert base.sum() == view.size


@pytest.mark.parametrize("dtype", ["i4", "u8", "f4", "f8"])
def test_atomic_steps(dtype) -> None:
    @cuda.jit
    def steps(x):
        i = cuda.grid(1)
        cuda.atomic.add(x, i, 1)
        cuda.atomic.max(x, i + 1, 50)
        cuda.atomic.exch(x, i // 2, 3)

    @cuda.jit
    def given(x, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.add(x, i, 1)

    x, memory = in_the_middle(LARGE // np.dtype(dtype).itemsize + 5, dtype)
    before = memory.copy()
    steps[x.size // 256 + 2, 256](x)
    np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])
    assert x.tobytes() != before[BESIDE:-BESIDE].tobytes()
    x, memory = in_the_middle(LARGE // np.dtype(dtype).itemsize + 5, dtype)
    before, was = memory.copy(), x.copy()
    old = np.zeros(x.size + 512, dtype)
    given[x.size // 256 + 2, 256](x, old)
    np.testing.assert_array_equal(old[: x.size], was)
    np.testing.assert_array_equal(x, was + np.ones(1, dtype))
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])


def test_compare_and_swap_bytes_and_hinted_stores() -> None:
    @cuda.jit
    def swap(x):
        i = cuda.grid(1)
        cuda.atomic.cas(x, i, x[i], 200)
        cuda.atomic.cas(x, i - 300, x[i], 201)

    @cuda.jit
    def narrow(x):
        i = cuda.grid(1)
        cuda.atomic.add(x, i, np.uint16(3))

    @cuda.jit
    def hinted(x):
        i = cuda.grid(1)
        cuda.stcs(x, i, float64(2))
        cuda.stcg(x, i + 7, float64(3))

    for kernel, dtype in ((swap, "i4"), (swap, "u8"), (narrow, "u2"), (hinted, "f8")):
        x, memory = in_the_middle(LARGE // np.dtype(dtype).itemsize + 5, dtype)
        before = memory.copy()
        kernel[x.size // 256 + 2, 256](x)
        np.testing.assert_array_equal(memory[:BESIDE], before[:BESIDE])
        np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])
        assert x.tobytes() != before[BESIDE:-BESIDE].tobytes()


def test_views_of_another_type_and_shape() -> None:
    @cuda.jit
    def typed(x):
        i = cuda.grid(1)
        x.view(np.int32)[i] = 5

    @cuda.jit
    def shaped(x):
        i = cuda.grid(1)
        if i < x.size // 5 + 9:
            x[: x.size // 5 * 5].reshape(x.size // 5, 5)[i, 3] = 2

    for kernel in (typed, shaped):
        check(kernel, *in_the_middle(LARGE // 8 + 3, "f8"), threads=LARGE // 4 + 6)


def test_a_local_that_may_be_either_of_two_arrays() -> None:
    @cuda.jit
    def either(x, y, which):
        i = cuda.grid(1)
        z = x if which else y
        z[i] = 9

    base = np.zeros(2 * N)
    for which in (True, False):
        base[:] = 0
        either[N // 256 + 2, 256](base[:N], base[N:], which)
        written, other = (base[:N], base[N:]) if which else (base[N:], base[:N])
        assert (written == 9).all()
        assert not other.any()


def test_arrays_that_share_memory_are_one() -> None:
    @cuda.jit
    def chain(x, y):
        if cuda.grid(1) == 0:
            for i in range(1000):
                x[i + 1] = y[i] + 1

    base = np.zeros(N + 10)
    chain[1, 32](base[:N], base[:N])
    np.testing.assert_array_equal(base[:1001], np.arange(1001))
    base[:] = 0
    chain[1, 32](base[5:], base[:N])
    want = np.zeros(N + 10)
    for i in range(1000):
        want[5 + i + 1] = want[i] + 1
    np.testing.assert_array_equal(base, want)
    base[:] = 0
    chain[1, 32](base[::2][: N // 2], base)  # one has gaps: both are copied
    want[:] = 0
    for i in range(1000):
        want[2 * (i + 1)] = want[i] + 1
    np.testing.assert_array_equal(base, want)


def test_device_arrays_beside_them_are_not_confined() -> None:
    @cuda.jit
    def both(x, y):
        i = cuda.grid(1)
        x[i] = i
        y[i] = i

    whole = cuda.to_device(np.zeros(2 * N))
    x = np.zeros(N)
    both[2 * N // 256, 256](x, whole[:N])  # writes past the view, as with a small `x`
    np.testing.assert_array_equal(x, np.arange(N))
    threads = 2 * N // 256 * 256
    np.testing.assert_array_equal(whole.copy_to_host()[:threads], np.arange(threads))


def test_threads_beyond_the_end_that_wait_for_their_own_writes_end() -> None:
    @cuda.jit
    def until(x):
        i = cuda.grid(1)
        while x[i] < 5:
            x[i] += 1

    @cuda.jit
    def multiply(x, by):
        i = cuda.grid(1)
        old = x[i]
        while True:
            seen = cuda.atomic.cas(x, i, old, old * by)
            if seen == old:
                break
            old = seen

    x = np.zeros(N)
    until[N // 256 + 2, 256](x)
    assert (x == 5).all()
    y = np.arange(2 * N)
    multiply[N // 128 + 2, 256](y, 3)
    np.testing.assert_array_equal(y, np.arange(2 * N) * 3)


def test_exceptions_and_bounds_that_are_checked() -> None:
    @cuda.jit(debug=True, opt=False)
    def raises(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = 1
            if i == 70:
                raise ValueError("seventy")

    @cuda.jit(boundscheck=True)
    def checked(x):
        x[cuda.grid(1)] = 1

    x = np.zeros(N)
    with pytest.raises(ValueError, match="seventy"):
        raises[N // 256 + 1, 256](x)
    assert x[70] == 1
    x, memory = in_the_middle(N, "f8")
    before = memory.copy()
    with pytest.raises(IndexError):
        checked[N // 256 + 2, 256](x)
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])


def test_declared_types_values_that_may_be_none_and_no_dimensions() -> None:
    @cuda.jit("void(float64[::1], float64)")
    def declared(x, a):
        x[cuda.grid(1)] = a

    x, memory = in_the_middle(N, "f8")
    before = memory.copy()
    declared[N // 256 + 2, 256](x, 3)
    assert (x == 3).all()
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])

    @cuda.jit("void(optional(float64[::1]), float64[::1])")
    def maybe(y, x):
        i = cuda.grid(1)
        if y is not None and i < y.size + 9:
            y[i] = 1
        x[i] = 2

    for y in (None, np.zeros(N), np.zeros(3)):
        x[:] = 0
        maybe[N // 256 + 2, 256](y, x)
        assert (x == 2).all()
        assert y is None or (y == 1).all()
        np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])


def test_buffers_that_are_not_numpys() -> None:
    @cuda.jit
    def fill(x):
        i = cuda.grid(1)
        x[i] = i % 100

    want = np.arange(N) % 100
    pages = mmap.mmap(-1, 8 * N)
    for x in (
        array.array("d", bytes(8 * N)),
        memoryview(bytearray(8 * N)).cast("d"),
        (ctypes.c_double * N)(),
        memoryview(pages).cast("d"),
    ):
        fill[N // 256 + 2, 256](x)
        np.testing.assert_array_equal(np.asarray(x), want)

    class Interface:
        def __init__(self, x: Any) -> None:
            self.x = x
            self.__array_interface__ = x.__array_interface__

    x, memory = in_the_middle(N, "f8")
    before = memory.copy()
    fill[N // 256 + 2, 256](Interface(x))
    np.testing.assert_array_equal(x, want)
    np.testing.assert_array_equal(memory[-BESIDE:], before[-BESIDE:])


def test_read_only_arrays_stay_what_they_are() -> None:
    @cuda.jit
    def maybe(x, y, flag):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = x[i]

    x, y = np.arange(float(N)), np.zeros(N)
    x.flags.writeable = False
    maybe[N // 256 + 1, 256](x, y, 0)
    np.testing.assert_array_equal(y, x)
