"""Integers at the limits of 64 bits: bounds and steps of slices, ranges, and constants that operators fold."""

import numpy as np
import pytest
from harness import assert_exact, launch, module, run
from weft import cuda

MOST = 2**63 - 1
BOUNDS = [0, 1, 3, 7, 8, 2**31, MOST, 2**63, 2**63 + 5, 2**64 - 2, 2**64 - 1]


@cuda.jit
def unsigned_bounds(r, a, u):
    v = a[u:]
    r[0] = len(v)
    if len(v) > 0:
        r[1] = v[0]
    w = a[:u]
    r[2] = len(w)
    x = a[2:u:2]
    r[3] = len(x)
    y = a[u::3]
    r[4] = len(y)
    z = a[u::-1]
    r[5] = len(z)
    r[6] = len(a[np.uint64(2) : u])


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_slice_clips_unsigned_bounds(bound):
    got, *_ = launch(unsigned_bounds, 1, 1, np.zeros(7, np.int64), np.arange(8) + 10, np.uint64(bound))
    a = list(range(10, 18))
    expected = [len(a[bound:]), (a[bound:] or [0])[0], len(a[:bound]), len(a[2:bound:2]), len(a[bound::3])]
    expected += [len(a[bound::-1]), len(a[2:bound])]
    assert got.tolist() == expected


@cuda.jit
def fill_behind(a, u):
    a[u - np.uint64(5) :] = -1


def test_a_fill_behind_the_end_writes_nothing():
    a = cuda.to_device(np.arange(30))
    fill_behind[1, 1](a[10:20], np.uint64(3))
    assert_exact(a.copy_to_host(), np.arange(30))


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_slice_clips_literals(bound):
    kernel = module(f"""
    from weft import cuda
    @cuda.jit
    def kernel(r, a):
        r[0] = len(a[{bound}:])
        r[1] = len(a[:{bound}])
        r[2] = len(a[1:{bound}:2])
        r[3] = len(a[::{max(bound, 1)}])
        r[4] = len(a[::-{min(max(bound, 1), 2**63)}])
    """).kernel
    got, _ = launch(kernel, 1, 1, np.zeros(5, np.int64), np.arange(8))
    a = list(range(8))
    step = max(bound, 1)
    expected = [a[bound:], a[:bound], a[1:bound:2], a[::step], a[:: -min(step, 2**63)]]
    assert got.tolist() == [len(part) for part in expected]


@cuda.jit
def stepped(r, a, step):
    v = a[::step]
    r[0] = len(v)
    r[1] = v.size
    n = 0
    for e in v:
        n = n + e
    r[2] = n
    r[3] = len(a[2::step])
    r[4] = len(a[:5:step])
    r[5] = len(a[6:1:step])


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, -1, -2, -7, 2**62, 2**62 + 1, MOST, -(2**62), -MOST, -MOST - 1])
def test_a_slice_takes_any_step(step):
    got, *_ = launch(stepped, 1, 1, np.zeros(6, np.int64), np.arange(7) + 1, step)
    a = list(range(1, 8))
    v = a[::step]
    assert got.tolist() == [len(v), len(v), sum(v), len(a[2::step]), len(a[:5:step]), len(a[6:1:step])]


@cuda.jit
def down_from_a_literal(r, a):
    c = 0
    for i in range(2, 0x8000000000000000, -1):
        if i < -3:
            break
        r[c, 0] = i
        r[c, 1] = i // 2
        r[c, 2] = i % 10
        r[c, 3] = a[i]
        c += 1


def test_a_literal_beyond_int64_leaves_a_range_its_signs():
    a = np.arange(6) + 100
    got, _ = launch(down_from_a_literal, 1, 1, np.zeros((6, 4), np.int64), a)
    assert got.tolist() == [[i, i // 2, i % 10, a[i]] for i in range(2, -4, -1)]


FOLDED = [  # by Python, exactly; the result then gets a type
    ("~0xFFFFFFFF00000000", np.uint64(0xFFFFFFFF)),
    ("-0xFFFFFFFFFFFFFFFF", np.uint64(1)),
    ("-0x8000000000000001", np.uint64(MOST)),
    ("-(-0x8000000000000000)", np.uint64(MOST + 1)),
    ("-0x8000000000000000", np.int64(-MOST - 1)),
    ("~0x7FFFFFFFFFFFFFFF", np.int64(-MOST - 1)),
    ("0x8000000000000000 >> 1", np.int64(2**62)),
    ("0xFFFFFFFFFFFFFFFF - 0xFFFFFFFFFFFFFFFE", np.int64(1)),
    ("0xFFFFFFFFFFFFFFFF & 0xFF", np.int64(255)),
    ("0x8000000000000000 // 2", np.int64(2**62)),
    ("0x7FFFFFFFFFFFFFFF + 1", np.uint64(MOST + 1)),
]
KNOWN = [  # folded by weft, as at run time
    ("~0xFFFFFFFF00000000 > 0", np.bool_(True)),
    ("~0xFFFFFFFF00000000 == 0xFFFFFFFF", np.bool_(True)),
    ("~a", np.uint64(0xFFFFFFFF)),
    ("-b", np.uint64(1)),
    ("abs(-0x8000000000000000)", np.int64(-MOST - 1)),
    ("-c", np.int64(-MOST - 1)),
    ("d >> 1", np.uint64(2**62)),
    ("b - 0xFFFFFFFFFFFFFFFE", np.uint64(1)),
    ("b & 0xFF", np.int64(255)),
    ("d // 2", np.int64(-(2**62))),
    ("e + 1", np.int64(-MOST - 1)),
]


@pytest.mark.parametrize(("text", "expected"), [*FOLDED, *KNOWN])
def test_constants_stay_in_64_bits(text, expected):
    """Folded results have the value and the type of the same operators at run time."""
    kernel = module(f"""
    import numpy as np
    from weft import cuda
    @cuda.jit
    def kernel(r, f, one):
        a, b, c, d, e = 0xFFFFFFFF00000000, 0xFFFFFFFFFFFFFFFF, -0x8000000000000000, 0x8000000000000000, {MOST}
        r[0] = {text}
        f[0] = ({text}) / one
    """).kernel
    r, f, _ = launch(kernel, 1, 1, np.zeros(1, expected.dtype), np.zeros(1), 1)
    assert_exact(r[0], expected)
    # The conversion to float shows a wrong type.
    assert_exact(f[0], np.float64(expected))


@cuda.jit
def rounded(r, x, n):
    i = cuda.grid(1)
    r[i] = round(x[i], n[i])


def test_round_of_float32_computes_in_float64():
    r, *_ = launch(rounded, 1, 1, np.zeros(1, np.float32), np.array([0.3425], np.float32), np.array([3]))
    assert_exact(r, np.array([0.343], np.float32))


def test_round_to_more_digits_than_there_are():
    x = np.array([5.0, -5.0, 1e300, 0.0, -0.0, 1.5, 1e-300, np.inf, -np.inf, np.nan])
    for digits in (-400, -309, 400, 2**62, -(2**62), -(2**63)):
        r, *_ = launch(rounded, 1, len(x), np.full(len(x), 7.0), x, np.full(len(x), digits))
        expected = x if digits > 0 else np.where(np.isfinite(x), np.copysign(0.0, x), x)
        assert_exact(r, expected)


@cuda.jit
def narrow_signs(x, out):
    i = cuda.grid(1)
    negative, size = x.dtype.type(-x[i]), x.dtype.type(abs(x[i]))
    out[i, 0], out[i, 1] = negative, size
    out[i, 2], out[i, 3] = negative >> 3, negative // 7
    out[i, 4], out[i, 5] = negative < 0, size > 100
    x[i] = x.dtype.type(-x[i])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_smallest_integer_of_a_type_is_its_own_negative(dtype):
    ends = np.iinfo(dtype)
    x = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max], dtype)
    got, out = launch(narrow_signs, 1, x.size, x, np.zeros((x.size, 6), np.int64))
    with np.errstate(over="ignore"):
        negative, size = -x, np.abs(x)
    assert_exact(got, negative)
    wide = negative.astype(np.int64)
    columns = [wide, size, wide >> 3, wide // 7, wide < 0, size > 100]
    assert out.tolist() == np.stack([column.astype(np.int64) for column in columns], 1).tolist()


@cuda.jit
def indexed_by_differences(x, y, out):
    i = cuda.grid(1)
    own = cuda.local.array(12, np.uint8)
    for k in range(12):
        own[k] = y[i] + k
    out[i, 0] = own.reshape(3, 4)[:, ::-1][2, -(max(x[i], y[i]) % 4) - 1]
    out[i, 1] = own[np.uint16(8 - (x[i] & 3)) + 3]


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int8, np.uint8])
def test_a_difference_of_few_bits_is_an_index(dtype):
    """As a `sub.u16`, ptxas 13.0 would split the index expression, and lose the wrap to negative numbers."""
    x, y = np.arange(40, dtype=dtype), np.arange(40, dtype=dtype)[::-1].copy()
    run(indexed_by_differences, 1, 40, x, y, np.zeros((40, 2), np.int64))
