"""NumPy's dates and time differences in kernels: a thread has the same results as the function in CPython."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import weft
from weft import cuda

DATES = ["2020-02-29", "1969-12-31", "NaT", "2100-01-01"]
SPANS = [0, 5, -7, "NaT", 1000]


def same(kernel, *args) -> None:
    """A launch of one thread and a call of the Python function must have the same effect on all arrays."""
    mine, theirs = ([arg.copy() for arg in args] for _ in range(2))
    kernel[1, 1](*mine)
    with np.errstate(all="ignore"):
        kernel.py_func(*theirs)
    for got, expected in zip(mine, theirs, strict=True):
        assert got.dtype == expected.dtype
        if got.dtype.names:
            assert got.tobytes() == expected.tobytes()
        else:
            np.testing.assert_array_equal(got, expected)


@cuda.jit
def dates_and_spans(dates, spans, later, earlier, between):
    for i in range(dates.size):
        later[i] = dates[i] + spans[i]
        earlier[i] = dates[i] - spans[i]
        between[i] = dates[i] - dates[0]


@cuda.jit
def of_spans(a, b, total, less, left, negative, ratio, whole):
    for i in range(a.size):
        total[i] = a[i] + b[i]
        less[i] = a[i] - b[i]
        left[i] = a[i] % b[i]
        negative[i] = -a[i]
        ratio[i] = a[i] / b[i]
        whole[i] = a[i] // b[i]


@cuda.jit
def scaled(a, n, x, times, back, parts, cut, shrunk):
    for i in range(a.size):
        times[i] = a[i] * n[i]
        back[i] = n[i] * a[i]
        parts[i] = a[i] / n[i]
        cut[i] = a[i] // n[i]
        shrunk[i] = a[i] * x[i] + a[i] / x[i]


@cuda.jit
def compared(a, b, out):
    for i in range(a.size):
        out[i, 0] = a[i] == b[i]
        out[i, 1] = a[i] != b[i]
        out[i, 2] = a[i] < b[i]
        out[i, 3] = a[i] <= b[i]
        out[i, 4] = a[i] > b[i]
        out[i, 5] = a[i] >= b[i]


def pairs(left, left_type, right, right_type):
    both = list(itertools.product(left, right))
    return np.array([a for a, _ in both], left_type), np.array([b for _, b in both], right_type)


@pytest.mark.parametrize(
    ("unit", "other", "shorter"),
    [("D", "D", "D"), ("D", "s", "s"), ("s", "D", "s"), ("ns", "us", "ns"), ("W", "h", "h")],
)
def test_operators(unit, other, shorter) -> None:
    dates, spans = pairs(DATES, f"M8[{unit}]", SPANS, f"m8[{other}]")
    result = np.zeros(dates.shape, f"M8[{shorter}]")
    same(dates_and_spans, dates, spans, result, result, np.zeros(dates.shape, f"m8[{unit}]"))
    a, b = pairs(SPANS, f"m8[{unit}]", SPANS, f"m8[{other}]")
    result = np.zeros(a.shape, f"m8[{shorter}]")
    same(of_spans, a, b, result, result, result, np.zeros_like(a), np.zeros(a.shape), np.zeros(a.shape, "i8"))
    for kind, values in (("M8", DATES), ("m8", SPANS)):
        a, b = pairs(values, f"{kind}[{unit}]", values, f"{kind}[{other}]")
        same(compared, a, b, np.zeros((a.size, 6), "?"))


def test_spans_and_numbers() -> None:
    a, n = pairs(SPANS, "m8[s]", [1, 2, -3, 0], "i8")
    x = np.resize([0.5, -2.25, np.nan, 3.0, 0.0], a.shape)
    same(scaled, a, n, x, a, a, a, a, a)


@cuda.jit
def as_arguments(dates, target, step, matches, moved):
    for i in range(dates.size):
        matches[i] = dates[i] == target
        moved[i] = dates[i] - step


EPOCH = np.datetime64("1970-01-01")
HOUR = np.timedelta64(1, "h")


@cuda.jit
def since(dates, out):
    for i in range(dates.size):
        out[i] = HOUR
        if dates[i] > EPOCH:
            out[i] = dates[i] - EPOCH + HOUR * 2


@cuda.jit
def of_records(records, out):
    for i in range(records.size):
        out[i] = records[i].end - records[i].start
        records[i].start = records[i].end


def test_times_are_arguments_constants_and_fields() -> None:
    dates = np.array(DATES, "M8[D]")
    matches, moved = np.zeros(4, "?"), np.zeros(4, "M8[D]")
    as_arguments[1, 1](dates, dates[1], np.timedelta64(3, "D"), matches, moved)
    assert matches.tolist() == [False, True, False, False]
    assert (moved.view("i8") == (dates - np.timedelta64(3, "D")).view("i8")).all()
    same(since, dates, np.zeros(4, "m8[h]"))
    records = np.zeros(4, [("start", "M8[s]"), ("tag", "i1"), ("end", "M8[s]")])
    records["end"] = dates
    records["start"] = dates[::-1]
    same(of_records, records.view(np.recarray), np.zeros(4, "m8[s]"))


@cuda.jit
def of_months(months, others, spans, later, between, back, stored, compared):
    for i in range(months.size):
        for j in range(others.size):
            between[i, j] = months[i] - others[j]
            back[i, j] = others[j] - months[i]
            compared[i, j] = (months[i] < others[j]) + 2 * (months[i] == others[j])
        for j in range(spans.size):
            later[i, j] = months[i] + spans[j]
        stored[i] = months[i]


@pytest.mark.parametrize("unit", ["W", "D", "h", "s", "us"])
@pytest.mark.parametrize("long", ["Y", "M"])
def test_dates_in_years_and_months(long, unit) -> None:
    """Months convert to their first day, in any shorter unit; time differences in months have no fixed length."""
    months = ["1969-12", "1970-01", "2020-02", "2020-03", "1900-03", "1600-02", "NaT", "2399-11"]
    months = np.array(months, f"M8[{long}]")
    others = np.array(["2020-02-29", "1969-12-31", "NaT", "1970-01-01"], f"M8[{unit}]")
    spans = np.array([5, -400, "NaT"], f"m8[{unit}]")
    later = np.zeros((8, 3), f"M8[{unit}]")
    between = np.zeros((8, 4), f"m8[{unit}]")
    compared = np.zeros((8, 4), "i8")
    same(of_months, months, others, spans, later, between, between, np.zeros(8, f"M8[{unit}]"), compared)


def test_spans_of_months_are_no_days() -> None:
    @cuda.jit
    def added(dates, spans):
        dates[0] = dates[0] + spans[0]

    @cuda.jit
    def ordered(spans, others, out):
        out[0] = spans[0] < others[0]

    with pytest.raises(weft.CompileError, match="does not take"):
        added[1, 1](np.zeros(1, "M8[D]"), np.zeros(1, "m8[M]"))
    with pytest.raises(weft.CompileError, match="cannot compare"):
        ordered[1, 1](np.zeros(1, "m8[M]"), np.zeros(1, "m8[D]"), np.zeros(1))


@cuda.jit
def functions_of_spans(a, b, size, sign, larger, smaller, fmax, fmin, best, worst, truth, count):
    for i in range(a.size):
        size[i] = abs(a[i])
        sign[i] = np.sign(a[i]) if not np.isnat(a[i]) else a[i]  # in NumPy before 2.5 the sign of NaT is -1
        larger[i] = np.maximum(a[i], b[i])
        smaller[i] = np.minimum(a[i], b[i])
        fmax[i] = np.fmax(a[i], b[i])
        fmin[i] = np.fmin(a[i], b[i])
        best[i] = max(a[i], b[i], a[0])
        worst[i] = min(a[i], b[i])
        truth[i, 0] = np.isnat(a[i])
        truth[i, 1] = np.isfinite(a[i])
        truth[i, 2] = np.isinf(a[i])
        truth[i, 3] = np.isnan(a[i])
        truth[i, 4] = np.less(a[i], b[i])
        truth[i, 5] = np.less_equal(a[i], b[i])
        truth[i, 6] = np.greater(a[i], b[i])
        truth[i, 7] = np.greater_equal(a[i], b[i])
        truth[i, 8] = np.equal(a[i], b[i])
        truth[i, 9] = np.not_equal(a[i], b[i])
        count[i] = np.int64(a[i])


@cuda.jit
def arithmetic_by_name(a, b, total, less, times, halves, ratio, whole, left, negative):
    for i in range(a.size):
        total[i] = np.add(a[i], b[i])
        less[i] = np.subtract(a[i], b[i])
        times[i] = np.multiply(a[i], 3) + np.multiply(2.5, a[i])
        halves[i] = np.divide(a[i], 2)
        ratio[i] = np.true_divide(a[i], b[i])
        whole[i] = np.floor_divide(a[i], b[i])
        left[i] = np.remainder(a[i], b[i])
        negative[i] = np.negative(a[i]) + np.positive(a[i]) + np.absolute(a[i])


@pytest.mark.parametrize(("unit", "other", "shorter"), [("s", "s", "s"), ("ms", "s", "ms"), ("D", "h", "h")])
def test_functions_of_spans(unit, other, shorter) -> None:
    a, b = pairs(SPANS, f"m8[{unit}]", SPANS, f"m8[{other}]")
    kept, both = np.zeros(a.size, a.dtype), np.zeros(a.size, f"m8[{shorter}]")
    same(functions_of_spans, a, b, kept, kept, both, both, both, both, both, both, np.zeros((a.size, 10), bool),
         np.zeros(a.size, np.int64))  # fmt: skip
    numbers = np.zeros(a.size), np.zeros(a.size, np.int64)
    same(arithmetic_by_name, a, b, both, both, kept, kept, *numbers, both, kept)


@cuda.jit
def functions_of_dates(a, b, later, sooner, fmax, fmin, best, worst, truth, count):
    for i in range(a.size):
        later[i] = np.maximum(a[i], b[i])
        sooner[i] = np.minimum(a[i], b[i])
        fmax[i] = np.fmax(a[i], b[i])
        fmin[i] = np.fmin(a[i], b[i])
        best[i] = max((a[i], b[i]))
        worst[i] = min(a[i], b[i], a[0])
        truth[i, 0] = np.isnat(a[i])
        truth[i, 1] = np.less(a[i], b[i])
        count[i] = np.int64(b[i])


def test_functions_of_dates() -> None:
    a, b = pairs(DATES, "M8[s]", DATES, "M8[D]")
    later = np.zeros(a.size, "M8[s]")
    same(functions_of_dates, a, b, later, later, later, later, later, later, np.zeros((a.size, 2), bool),
         np.zeros(a.size, np.int64))  # fmt: skip


@cuda.jit
def totals(a, out, at):
    out[0] = a.sum()
    out[1] = np.sum(a)
    out[2] = a.min()
    out[3] = np.max(a)
    out[4] = np.nanmin(a)
    out[5] = np.nanmax(a)
    out[6] = a.ptp() if False else np.ptp(a)
    out[7] = a.mean()
    out[8] = max(a)
    out[9] = min(a)
    at[0] = a.argmin()
    at[1] = np.argmax(a)


@cuda.jit
def extremes(a, out, span, at):
    out[0] = a.min()
    out[1] = np.amax(a)
    out[2] = np.nanmin(a)
    out[3] = np.nanmax(a)
    span[0] = np.ptp(a)
    at[0] = a.argmin()
    at[1] = a.argmax()


@pytest.mark.parametrize("values", [[3, -1, 7, 7, -1], [3, "NaT", -5], ["NaT", 2, "NaT", 9], [4]])
@pytest.mark.parametrize("step", [1, -1])
def test_whole_arrays(values, step) -> None:
    spans = np.array(values, "m8[ms]")[::step]
    same(totals, spans, np.zeros(10, "m8[ms]"), np.zeros(2, np.int64))
    dates = np.array(values, "m8[h]").view("M8[h]")[::step]
    same(extremes, dates, np.zeros(4, "M8[h]"), np.zeros(1, "m8[h]"), np.zeros(2, np.int64))


@cuda.jit
def along(a, rows, columns, at, running):
    np.sum(a, axis=1, out=rows)
    np.max(a, axis=0, out=columns)
    np.argmax(a, axis=1, out=at)
    np.cumsum(a, axis=1, out=running)


@cuda.jit
def signs(a, each, all_at_once):
    for i in range(a.size):
        each[i] = np.sign(a[i])
    np.sign(a, out=all_at_once)


def test_the_sign_of_nat_is_nat() -> None:
    a = np.array([5, 0, -7, "NaT"], "m8[s]")
    each, all_at_once = np.zeros_like(a), np.zeros_like(a)
    signs[1, 1](a, each, all_at_once)
    expected = np.array([1, 0, -1, "NaT"], "m8[s]")
    np.testing.assert_array_equal(each, expected)
    np.testing.assert_array_equal(all_at_once, expected)


@cuda.jit
def ufuncs(a, b, nat, larger, sign, total):
    np.isnat(a, nat)
    np.maximum(a, b[0], out=larger)
    np.negative(a, out=sign)
    np.add(a, b, total)


def test_into_arrays() -> None:
    a = np.array([[1, 2, "NaT"], [4, -5, 6]], "m8[s]")
    same(along, a, np.zeros(2, "m8[s]"), np.zeros(3, "m8[s]"), np.zeros(2, np.int64), np.zeros((2, 3), "m8[s]"))
    b = np.array([[3, 3, 3], [1, "NaT", 1]], "m8[s]")
    same(ufuncs, a, b, np.zeros((2, 3), bool), np.zeros((2, 3), "m8[s]"), np.zeros((2, 3), "m8[s]"),
         np.zeros((2, 3), "m8[s]"))  # fmt: skip


def test_an_int_of_a_span() -> None:
    @cuda.jit
    def counts(a, out):
        for i in range(a.size):
            out[i] = int(a[i])

    a, out = np.array([5, -3, "NaT"], "m8[s]"), np.zeros(3, np.int64)
    counts[1, 1](a, out)
    np.testing.assert_array_equal(out, a.view(np.int64))


@pytest.mark.parametrize(
    "function",
    [
        lambda d, t: d.sum(),
        lambda d, t: d.mean(),
        lambda d, t: np.prod(t),
        lambda d, t: np.maximum(d[0], t[0]),
        lambda d, t: np.sign(d[0]),
        lambda d, t: abs(d[0]),
        lambda d, t: np.fabs(t[0]),
        lambda d, t: int(d[0]),
        lambda d, t: np.sqrt(t[0]),
    ],
)
def test_what_no_time_has(function) -> None:
    device = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(d, t, out):
        out[0] = np.int64(device(d, t))

    with pytest.raises(weft.errors.CompileError, match=r"a\.view\(np\.int64\)"):
        kernel[1, 1](np.zeros(2, "M8[s]"), np.zeros(2, "m8[s]"), np.zeros(1, np.int64))
