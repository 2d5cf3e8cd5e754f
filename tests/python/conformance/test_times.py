"""NumPy's dates and spans of time in kernels: a thread does what the same function does in CPython with NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import weft
from weft import cuda

DATES = ["2020-02-29", "1969-12-31", "NaT", "2100-01-01"]
SPANS = [0, 5, -7, "NaT", 1000]


def same(kernel, *args) -> None:
    """All arrays are after a launch of one thread what they are after a call of the Python function."""
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
    """The first day of them, in any shorter unit; spans of months have no one number of days."""
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
    with pytest.raises(weft.CompileError, match="does not compare"):
        ordered[1, 1](np.zeros(1, "m8[M]"), np.zeros(1, "m8[D]"), np.zeros(1))
