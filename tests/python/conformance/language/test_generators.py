"""Generator expressions are lazy: they have the same side effects as in CPython, in the same order."""

import numpy as np
import pytest
import weft
from weft import cuda


@cuda.jit(device=True)
def noted(log, k):
    log[0] += 1
    log[log[0]] = k + 1
    return k


def noted_on_host(log, k):
    log[0] += 1
    log[log[0]] = k + 1
    return k


def check(function, *args, size=40):
    """Compare a kernel's log and results with Python's."""
    got, expected = (np.zeros(size, np.int64) for _ in range(2))
    out, wanted = (np.zeros(12) for _ in range(2))
    cuda.jit(function)[1, 1](got, out, *args)
    scope = {**function.__globals__, "noted": noted_on_host}
    on_host = type(function)(function.__code__, scope, function.__name__, None, function.__closure__)
    on_host(expected, wanted, *args)
    assert (got.tolist(), out.tolist()) == (expected.tolist(), wanted.tolist())


def any_stops(log, out, x):
    out[0] = any(noted(log, q) >= x for q in (0, 1, 2, 3))
    out[1] = any(noted(log, q) >= 2 for q in (5, 6))
    out[2] = any(noted(log, q) > x for q in range(4) if q % 2)
    out[3] = any(q > 8 for q in ())
    if any(noted(log, a * b) == x for a in (1, 2, 3) for b in range(a)):
        out[4] = 1


def all_stops(log, out, x):
    out[0] = all(noted(log, q) < x for q in (0, 1, 2, 3))
    out[1] = not all(noted(log, q) == 5 for q in (5, 6))
    out[2] = all(noted(log, q) > x for q in range(4) if q % 2)
    out[3] = all(q > 8 for q in ())
    out[4] = all(noted(log, i) + x for i, x in enumerate((1, x, 2)))


def member(log, out, x):
    out[0] = x in (noted(log, q) for q in (0, 1, 2, 3))
    out[1] = x not in (noted(log, q) for q in (3, 2, 1))
    out[2] = 2.0 in (noted(log, q) for q in (x, x + 1, 7))
    out[3] = noted(log, 9) in (noted(log, q) for q in (8, 9, 10))


def broken(log, out, x):
    for y in (noted(log, q) for q in (1, 2, 3)):
        out[0] += y
        if y == x:
            break
    else:
        out[1] = 1
    for y in (noted(log, q) for q in (1, 2, 3, 4) if q != 2):
        if y == x:
            continue
        out[2] += y
    else:
        out[3] = 1


def broken_of_several_types(log, out, x):
    for y in (noted(log, q) for q in (1, 2.5, 3)):
        out[0] += y // 2
        if y == x:
            break
    for y in ((noted(log, 1), 2), (noted(log, 2), 3)):
        out[1] += y[1]


def broken_of_several_loops(log, out, x):
    for y in (noted(log, 10 * a + b) for a in (0, 1, 2) for b in (noted(log, a + 30) - 30, a, 7)):
        out[0] += y
        if y == 10 * x:
            break
    for row, y in ((a, b) for a in ((1, 2), (3, 4)) for b in a if b != 2):
        out[1] += row[0] * y
        if y == x:
            break


def unused(log, out, x):
    g = (noted(log, q) for q in (1, 2, 3))  # noqa: F841
    h = (noted(log, q) for q in (noted(log, 7), 2, 3))  # noqa: F841
    (noted(log, q) for q in (1, 2, 3))
    log[30] = 1


def first(log, out, x):
    out[0] = next(noted(log, q) for q in (4, 5, 6))
    out[1] = next((noted(log, q) for q in (4, 5, 6) if q > 4), 9)
    out[2] = next((noted(log, q) for q in (4, 5, 6) if q > 9), noted(log, 9))
    out[3] = next(iter(noted(log, q) for q in (x, 5)))


def goes_on(log, out, x):
    g = (noted(log, q * x) for q in (1, 2, 3, 4, 5))
    out[0] = next(g)
    out[1] = next(g)
    for y in g:
        out[2] += y
        if y == 3 * x:
            break
    out[3] = next(g, -1)
    out[4] = next(g, -1)
    out[5] = next(g, -1)
    for y in g:
        out[6] = y
    else:
        out[7] = 1


def goes_on_in_a_loop(log, out, x):
    g = (noted(log, q) for q in (1, 2, 3, 4, 5))
    for k in range(x + 2):
        out[k] = next(g, -7)
    out[6] = 4 in g
    out[7] = any(g)
    g2 = (noted(log, q) for q in range(5))
    while next(g2) < x:
        out[8] += 1
    out[9] = all(y > 3 for y in (4, 5)) and 3 in g2


def on_one_path(log, out, x):
    g = (noted(log, q) for q in (1, 2, 3))
    if x > 1:
        out[0] = next(g)
    out[1] = next(g)


def side_by_side(log, out, x):
    for a, b in zip((noted(log, q) for q in (1, 2, 3)), (noted(log, q) for q in (4, 5))):  # noqa: B905
        out[0] += a * b
    for a, b in zip((noted(log, q) for q in (4, 5)), (noted(log, q) for q in (1, 2, 3))):  # noqa: B905
        out[1] += a * b
        if a == x + 2:
            break
    for k, (a, b) in enumerate(zip(range(2), (noted(log, q) for q in (6, 7, 8))), 3):  # noqa: B905
        out[2] += k * (a + b)
    pairs = tuple(zip((noted(log, q) for q in (1, 2)), (x, 2.5, 3)))  # noqa: B905
    out[3] = pairs[1][1]
    out[4] = any(a > b for a, b in zip((noted(log, q) for q in (1, 5, 2)), (x, x, x)))  # noqa: B905


def late(log, out, x):
    k = 1
    t = (1, 2)
    g = (q * k + noted(log, k) for q in t)
    k = 5
    t = (9, 9)
    out[0] = sum(g)
    q = 3
    h = (q for q in (1, 2))
    out[1] = max(h) + q


def whole(log, out, x):
    out[0] = sum(noted(log, q) for q in (1, 2, 3))
    out[1] = min(noted(log, q) for q in (3, x, 2))
    out[2] = max(noted(log, q) for q in (3, x, 2))
    a, b = (noted(log, q) for q in (x, 2))
    out[3] = a * 10 + b
    t = tuple(noted(log, q) for q in range(3))
    out[4] = t[1] + len(t)
    out[5] = max(*(noted(log, q) for q in (x, 8)))
    t = (1, *(noted(log, q) for q in (x, 8)), 2)
    out[6] = t[2]
    out[7] = sum(tuple(x + y for y in (noted(log, q) for q in (1, 2))))


def nested(log, out, x):
    out[0] = any(any(noted(log, a * b) == x for b in (1, 2)) for a in (0, 1, 2))
    out[1] = sum(sum(noted(log, a + b) for b in range(a)) for a in range(3))
    out[2] = any(y == x for y in (noted(log, q) for q in (0, 1, 2, 3)))
    for y in (z + 1 for z in (noted(log, q) for q in (1, 2, 3))):
        if y > x:
            break


def names_of_its_own(log, out, x):
    k = 3
    g = (k + noted(log, q) for q in (1, 2))
    out[0] = sum(tuple(next(g) + k for k in (100, 200)))
    f = lambda: k  # noqa: E731
    out[1] = sum(tuple(f() + k for k in (100, 200)))
    out[2] = any(f() == k for k in (7, 3))
    out[3] = sum(tuple((lambda: k)() for k in (100, 200)))
    h = (k * z for z in (w + k for w in (1, 2)))
    out[4] = sum(tuple(y + k for k in (50,) for y in (q for q in (k, k + 1))))
    out[5] = sum(h) + k
    g2 = (w for w in (1, 2, 3))
    out[6] = sum(tuple(w * 10 + next(g2) for w in (5, 6)))

    def counts():
        nonlocal k
        k += 1
        return k

    out[7] = sum(tuple(counts() * k for k in (10, 100))) + k


def ends_in_time(log, out, x):
    i = 5
    if x < 5 and all(i + q < 40 and log[i + q] == 0 for q in (1, 2, 100000)):
        out[0] = 1


@pytest.mark.parametrize("x", [1, 2, 7])
@pytest.mark.parametrize(
    "function",
    [
        any_stops,
        all_stops,
        member,
        broken,
        broken_of_several_types,
        broken_of_several_loops,
        unused,
        first,
        goes_on,
        on_one_path,
        side_by_side,
        late,
        whole,
        nested,
        names_of_its_own,
        ends_in_time,
    ],
)
def test_like_python(function, x):
    check(function, x)


@pytest.mark.parametrize("x", [1, 2])
def test_one_that_goes_on_in_a_loop(x):
    check(goes_on_in_a_loop, x)


def test_the_items_of_an_array_are_read_when_they_are_taken():
    def kernel(a):
        g = (a[k] for k in range(3))
        a[1] = 10
        a[3] = sum(g)
        a[4] = any(a[k] > 5 for k in range(3))

    got, expected = np.arange(5.0), np.arange(5.0)
    cuda.jit(kernel)[1, 1](got)
    kernel(expected)
    assert got.tolist() == expected.tolist()


def test_threads_stop_at_items_of_their_own():
    @cuda.jit
    def kernel(calls, out):
        i = cuda.grid(1)
        for y in (q * q for q in (1, 2, 3, 4)):
            calls[i] += 1
            cuda.syncwarp()
            if y > i:
                out[i] = y
                break

    calls, out = np.zeros(20, np.int64), np.zeros(20)
    kernel[1, 20](calls, out)
    squares = [next((q * q for q in (1, 2, 3, 4) if q * q > i), 0) for i in range(20)]
    assert out.tolist() == squares
    assert calls.tolist() == [int(square**0.5) or 4 for square in squares]


@cuda.jit(device=True)
def taker(g):
    return 1


def given_away(out, x):
    out[0] = taker(q for q in (1, 2))


def in_a_tuple(out, x):
    t = ((q for q in (1, 2)), 3)
    out[0] = t[1]


def two_names(out, x):
    g = (q for q in (1, 2))
    h = g
    out[0] = next(g) + next(h)


def rest_of_it(out, x):
    g = (q for q in (1, 2))
    out[0] = next(g)
    out[1] = sum(g)


def several_loops(out, x):
    g = (q * p for q in (1, 2) for p in (1, 2))
    out[0] = next(g) + next(g)


def unknown_length(out, x):
    out[0] = any(q for q in out)


def unknown_condition(out, x):
    out[0] = sum(q for q in (1, 2) if q > x)


def of_either(out, x):
    g = (q for q in (1, 2)) if x > 1 else (q for q in (3, 4))
    out[0] = sum(g)


def several_types(out, x):
    g = (q for q in (1, (2, 3)))
    out[0] = 1 if next(g) else 2
    next(g)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (given_away, "a generator cannot be passed to or returned from a function"),
        (in_a_tuple, "each generator is a type of its own"),
        (two_names, "one variable only"),
        (rest_of_it, "the number of items left in this generator"),
        (several_loops, "read more than once"),
        (unknown_length, "length is not a compile-time constant"),
        (unknown_condition, "condition of a generator must be a compile-time constant"),
        (of_either, "generator"),
        (several_types, "items of one type"),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(weft.WeftError, match=message):
        cuda.jit(function)[1, 1](np.zeros(4), 1)
