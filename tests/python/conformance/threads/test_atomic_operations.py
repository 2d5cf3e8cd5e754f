"""All atomic operations on all types, in all address spaces; memory orders and scopes; operations of many threads on
one element."""

import numpy as np
import oracle
import pytest
import weft
from harness import assert_exact, launch, module, run
from weft import cuda

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
NUMBERS = [*INTEGERS, *FLOATS]
TYPES = {
    "add": [*NUMBERS, "complex64", "complex128"],
    "sub": [*NUMBERS, "complex64", "complex128"],
    "and_": ["bool", *INTEGERS],
    "or_": ["bool", *INTEGERS],
    "xor": ["bool", *INTEGERS],
    "max": NUMBERS,
    "min": NUMBERS,
    "nanmax": NUMBERS,
    "nanmin": NUMBERS,
    "inc": ["uint8", "uint16", "uint32", "uint64"],
    "dec": ["uint8", "uint16", "uint32", "uint64"],
    "exch": ["bool", *NUMBERS],
}
STEPS = [(name, dtype) for name, dtypes in TYPES.items() for dtype in dtypes]


def values_of(dtype):
    """Pairs of an element and a value: limits, signs, NaN, infinities, and a few random ones."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(11)
    if dtype.kind == "b":
        edge = np.array([False, True])
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        some = rng.integers(info.min, info.max, 4, dtype, endpoint=True)
        edge = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max, *some], dtype)
    else:
        kind = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        info = np.finfo(kind)
        edge = np.array([0.0, -0.0, 1, -1.5, info.max, info.min, info.tiny, np.inf, -np.inf, np.nan, -np.nan], kind)
        edge = np.concatenate([edge, rng.normal(size=3).astype(kind)])
        if dtype.kind == "c":
            edge, real = np.empty(edge.size, dtype), edge
            edge.real, edge.imag = real, np.roll(real, 3)
    old, value = np.meshgrid(edge, edge, indexing="ij")
    return old.ravel().copy(), value.ravel().copy()


def step_kernel(name):
    return module(f"""
        from weft import cuda

        @cuda.jit
        def step(a, values, out):
            i = cuda.grid(1)
            if i < a.size:
                out[i] = cuda.atomic.{name}(a, i, values[i])
    """).step


@pytest.mark.parametrize(("name", "dtype"), STEPS)
def test_what_an_element_becomes(name, dtype):
    old, value = values_of(dtype)
    kernel, args = step_kernel(name), (old, value, np.zeros_like(old))
    for mine, theirs in zip(launch(kernel, 4, 64, *args), oracle.launch(kernel, 4, 64, *args), strict=True):
        assert_exact(mine, theirs)


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_compare_and_swap(dtype):
    kernel = module("""
        from weft import cuda

        @cuda.jit
        def step(a, compare, value, out):
            i = cuda.grid(1)
            if i < a.size:
                out[i] = cuda.atomic.cas(a, i, compare[i], value[i])

        @cuda.jit
        def first(a, compare, value, out):
            i = cuda.grid(1)
            if i < a.size:
                out[i] = cuda.atomic.compare_and_swap(a[i:], compare[i], value[i])
    """)
    old, compare = values_of(dtype)
    value = np.roll(old, 5)
    for function in (kernel.step, kernel.first):
        run(function, 4, 64, old, compare, value, np.zeros_like(old))


@pytest.mark.parametrize(("name", "dtype"), [pair for pair in STEPS if pair[1] not in ("complex64", "complex128")])
def test_memories(name, dtype):
    kernels = module(f"""
        from weft import cuda
        import numpy as np
        dtype = np.dtype("{dtype}").type

        @cuda.jit
        def memories(a, values, out):
            i = cuda.threadIdx.x
            shared = cuda.shared.array((2, 32), dtype)
            local = cuda.local.array(3, dtype)
            shared[1, i] = a[i]
            local[2] = a[i]
            cuda.syncthreads()
            out[i, 0] = cuda.atomic.{name}(shared, (1, i), values[i])
            out[i, 1] = shared[1, i]
            out[i, 2] = cuda.atomic.{name}(local, -1, values[i])
            out[i, 3] = local[2]
            either = shared[1] if values[i] == values[0] else local
            k = i if values[i] == values[0] else 2
            either[k] = a[i]
            out[i, 4] = cuda.atomic.{name}(either, k, values[i])
            out[i, 5] = either[k]
    """)
    old, value = values_of(dtype)
    keep = np.random.default_rng(3).permutation(old.size)[:32]
    keep = np.resize(keep, 32)
    run(kernels.memories, 1, 32, old[keep], value[keep], np.zeros((32, 6), dtype))


def by_neighbors(name, dtype):
    """Threads of all blocks on few elements: adjacent ones, so that narrow types share a 32-bit word."""
    return module(f"""
        from weft import cuda

        @cuda.jit
        def step(a, values):
            i = cuda.grid(1)
            if i < values.size:
                cuda.atomic.{name}(a, i % a.size, values[i])
    """).step


@pytest.mark.parametrize("dtype", NUMBERS)
def test_many_threads_add_and_find_ends(dtype):
    rng = np.random.default_rng(5)
    kind = np.dtype(dtype).kind
    # Sums of these are exact in any order.
    values = rng.integers(0, 2 if dtype == "float16" else 100, 7 * 600).astype(dtype)
    columns = values.reshape(600, 7)
    with np.errstate(over="ignore"):
        total = columns.sum(axis=0, dtype=dtype)
    assert_exact(launch(by_neighbors("add", dtype), 33, 128, np.zeros(7, dtype), values)[0], total)
    back = launch(by_neighbors("sub", dtype), 33, 128, total, values)[0]
    assert_exact(back, np.zeros(7, dtype))
    if kind == "f":
        values = rng.normal(size=7 * 600).astype(dtype)
        values[::11] = np.nan
        columns = values.reshape(600, 7)
    for name, best, start in (("max", np.nanmax, -np.inf), ("min", np.nanmin, np.inf)):
        if kind != "f":
            start = np.iinfo(dtype).min if name == "max" else np.iinfo(dtype).max
        assert_exact(launch(by_neighbors(name, dtype), 33, 128, np.full(7, start, dtype), values)[0], best(columns, 0))
        if kind == "f":
            found = launch(by_neighbors(f"nan{name}", dtype), 33, 128, np.full(7, np.nan, dtype), values)[0]
            assert_exact(found, best(columns, 0))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_many_threads_count_around(dtype):
    values = np.full(7 * 600, 10, dtype)
    up = launch(by_neighbors("inc", dtype), 33, 128, np.zeros(7, dtype), values)[0]
    assert_exact(up, np.full(7, 600 % 11, dtype))
    down = launch(by_neighbors("dec", dtype), 33, 128, up, values)[0]
    assert_exact(down, np.zeros(7, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_many_threads_set_bits(dtype):
    bits = np.dtype(dtype).itemsize * 8
    place = np.arange(7 * 600) // 7 % bits
    values = (np.uint64(1) << place.astype(np.uint64)).astype(dtype)
    ones = np.full(7, -1 if np.dtype(dtype).kind == "i" else np.iinfo(dtype).max, dtype)
    assert_exact(launch(by_neighbors("or_", dtype), 33, 128, np.zeros(7, dtype), values)[0], ones)
    assert_exact(launch(by_neighbors("and_", dtype), 33, 128, ones, ~values)[0], np.zeros(7, dtype))
    odd = np.bitwise_xor.reduce(values.reshape(600, 7), 0)
    assert_exact(launch(by_neighbors("xor", dtype), 33, 128, np.zeros(7, dtype), values)[0], odd)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_many_threads_add_complex_numbers(dtype):
    rng = np.random.default_rng(9)
    values = (rng.integers(-50, 50, 4200) + 1j * rng.integers(-50, 50, 4200)).astype(dtype)
    total = values.reshape(600, 7).sum(axis=0, dtype=dtype)
    assert_exact(launch(by_neighbors("add", dtype), 33, 128, np.zeros(7, dtype), values)[0], total)
    assert_exact(launch(by_neighbors("sub", dtype), 33, 128, total, values)[0], np.zeros(7, dtype))


@cuda.jit
def adds_in_bfloat16(a, values, out):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(a.view(cuda.bfloat16), i % a.size, cuda.bfloat16(values[i]))
        old = cuda.atomic.max(out.view(cuda.bfloat16), i % a.size, cuda.bfloat16(values[i]))
        cuda.atomic.sub(out.view(cuda.bfloat16), 7, old - old)


def test_bfloat16():
    values = np.random.default_rng(2).integers(0, 8, 7 * 30).astype(np.float32)
    total, most = launch(adds_in_bfloat16, 4, 64, np.zeros(7, np.uint16), values, np.zeros(8, np.uint16))[::2]
    as_float = lambda bits: (bits.astype(np.uint32) << 16).view(np.float32)  # noqa: E731
    assert_exact(as_float(total), values.reshape(30, 7).sum(0))
    assert_exact(as_float(most)[:7], values.reshape(30, 7).max(0))


@cuda.jit
def on_fields_and_parts(records, z, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.atomic.add(records["count"], i % 2, 3)
    out[i, 1] = cuda.atomic.max(records.best, i % 2, i)
    cuda.atomic.add(z.real, i % 3, 1.5)
    cuda.atomic.sub(z.imag, (i % 3,), 0.25)
    cuda.atomic.add(z, 3, 1 + 2j)
    cuda.atomic.min(records[1]["small"], i % 4, -i)


def test_fields_of_records_and_parts_of_complex_numbers():
    dtype = np.dtype([("count", "i4"), ("best", "f4"), ("small", "i8", 4)], align=True)
    records, z, _ = launch(on_fields_and_parts, 2, 24, np.zeros(2, dtype), np.zeros(4, "c16"), np.zeros((48, 2)))
    assert records["count"].tolist() == [72, 72]
    assert records["best"].tolist() == [46, 47]
    assert records["small"].tolist() == [[0] * 4, [-44, -45, -46, -47]]
    assert z.tolist() == [24 - 4j, 24 - 4j, 24 - 4j, 48 + 96j]


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel", "seq_cst"])
@pytest.mark.parametrize("scope", ["block", "device", "system"])
def test_orders_and_scopes(order, scope):
    words = f'order="{order}", scope="{scope}"'
    kernels = module(f"""
        from weft import cuda
        how = "{order}"

        @cuda.jit
        def all_of_them(a, f, h, out):
            i = cuda.grid(1)
            out[i, 0] = cuda.atomic.add(a, i, 5, {words})
            out[i, 1] = cuda.atomic.sub(a, i, 2, {words})
            out[i, 2] = cuda.atomic.max(a, i, 9, scope="{scope}", order=how)
            out[i, 3] = cuda.atomic.exch(a, i, 40, {words})
            out[i, 4] = cuda.atomic.cas(a, i, 40, 41, {words})
            out[i, 5] = cuda.atomic.compare_and_swap(a[i:], 41, 42, {words})
            out[i, 6] = cuda.atomic.inc(a, i, 50, {words})
            out[i, 7] = cuda.atomic.dec(a, i, 50, {words})
            out[i, 8] = cuda.atomic.or_(a, i, 64, {words})
            out[i, 9] = cuda.atomic.and_(a, i, 96, {words})
            out[i, 10] = cuda.atomic.xor(a, i, 127, {words})
            out[i, 11] = cuda.atomic.add(f, i, 1.5, {words})
            out[i, 12] = cuda.atomic.nanmin(f, i, 0.5, {words})
            out[i, 13] = cuda.atomic.min(h, i, -3, {words})
            out[i, 14] = cuda.atomic.add(h, i, 7, {words})
    """)
    for dtype in ("uint32", "uint64"):
        a, h = np.arange(40).astype(dtype), np.arange(40).astype(np.int16)
        run(kernels.all_of_them, 2, 20, a, np.linspace(0, 4, 40), h, np.zeros((40, 15)))


@cuda.jit
def hands_over(data, flag, out):
    """Block 0 waits for the last block by an acquire, after which that block's data is visible."""
    i = cuda.grid(1)
    if i == cuda.gridsize(1) - 1:
        for k in range(data.size):
            data[k] = k * k
        cuda.atomic.exch(flag, 0, 1, order="release")
    elif i == 0:
        while cuda.atomic.cas(flag, 0, 7, 7, order="acquire") == 0:
            pass
        for k in range(data.size):
            out[k] = data[k]


def test_a_release_is_seen_by_an_acquire():
    for _ in range(5):
        _, _, out = launch(hands_over, 2, 1, np.zeros(500, np.int64), np.zeros(1, np.int32), np.zeros(500, np.int64))
        assert_exact(out, np.arange(500) ** 2)


@cuda.jit
def locked(lock, total, turns):
    """A spin lock on a float, which all threads of many blocks acquire repeatedly."""
    for _ in range(turns):
        while cuda.atomic.cas(lock, 0, 0.0, 1.0, order="acquire") != 0.0:
            pass
        total[0] += 1
        cuda.atomic.exch(lock, 0, 0.0, order="release")


def test_a_lock():
    assert launch(locked, 6, 1, np.zeros(1, np.float32), np.zeros(1, np.int64), 50)[1][0] == 300


@pytest.mark.parametrize("call", ["max(a, 0, 2, order='weak')", "add(a, 0, 1, scope='warp')", "add(a, 0, 1, order=1)"])
def test_unknown_orders_are_refused(call):
    kernel = module(f"""
        from weft import cuda

        @cuda.jit
        def refused(a):
            cuda.atomic.{call}
    """).refused
    with pytest.raises(Exception, match=r"has no (order|scope)"):
        launch(kernel, 1, 1, np.zeros(1, np.int32))


@pytest.mark.parametrize(("name", "dtype"), [("inc", "int32"), ("and_", "float32"), ("max", "bool"), ("exch", "c8")])
def test_types_that_a_step_does_not_take(name, dtype):
    with pytest.raises(Exception, match="no overload"):
        launch(step_kernel(name), 1, 1, np.zeros(1, dtype), np.zeros(1, dtype), np.zeros(1, dtype))


@cuda.jit
def on_a_packed_field(records):
    cuda.atomic.add(records["count"], 0, 1)


@cuda.jit
def on_a_packed_byte(records):
    cuda.atomic.add(records["flag"], 0, 1)


def test_elements_that_may_lie_anywhere_are_refused():
    fields = [("flag", "u1"), ("count", "i4")]
    packed, aligned = np.zeros(2, fields), np.zeros(2, np.dtype(fields, align=True))
    with pytest.raises(weft.CompileError, match=r"E0205.*multiples of 4 bytes"):
        on_a_packed_field[1, 1](packed)
    for records in (packed, aligned):
        on_a_packed_byte[1, 1](records)
        assert records["flag"].tolist() == [1, 0]
    on_a_packed_field[1, 1](aligned)
    assert aligned["count"].tolist() == [1, 0]
