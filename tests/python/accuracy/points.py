"""Arguments at which functions are measured: edge cases, random numbers in relevant ranges, random bit patterns."""

from __future__ import annotations

import functools

import numpy as np

INTEGER = {"float16": np.uint16, "float32": np.uint32, "float64": np.uint64}


# Near these numbers, functions overflow, underflow, or reach their limit or minimum.
ENDS = [103.97, 149, 745.13, 1074, 88.72, 709.78, 710.47, 89.41, 171.62, 35.04, 184, 42, 9.19, 10.05, 26.54, 27.22,
        1.4616321449683622]  # fmt: skip


def _neighbors(values, dtype, steps):
    """Numbers and the next representable ones, up to a number of steps on both sides."""
    with np.errstate(all="ignore"):
        found = [np.asarray(values, np.float64).astype(dtype)]
        up = down = found[0]
        for _ in range(steps):
            up, down = np.nextafter(up, dtype(np.inf)), np.nextafter(down, dtype(-np.inf))
            found += [up, down]
    return np.concatenate(found)


def _signed(values):
    return np.concatenate([values, -values])


def edges(dtype):
    """Edge cases of formulas: powers of 2 and 10, integers and half-integers, multiples of pi / 2, limits of ranges."""
    limits = np.finfo(dtype)
    least, most = limits.minexp - limits.nmant, limits.maxexp
    powers = np.ldexp(1.0, np.arange(max(least, -1074), min(most, 1024)))
    with np.errstate(all="ignore"):
        tens = 10.0 ** np.arange(-320, 309)
        # All multiples up to 2000, and then fewer and fewer.
        multiples = np.concatenate([np.arange(1, 2001), np.unique(np.geomspace(2001, 1e15, 3000).round())])
        quarters = np.concatenate([multiples * (np.pi / 2), multiples * (np.pi / 4)])
        halves = np.arange(0, 400) / 2
        limit, least_normal = float(limits.max), float(limits.tiny)
        ends = [np.log(limit), -np.log(least_normal), np.log2(limit), *ENDS]
    found = [
        _neighbors(powers, dtype, 2), _neighbors(quarters, dtype, 1), _neighbors(halves, dtype, 4),
        _neighbors(tens, dtype, 1), _neighbors(ends, dtype, 64), _neighbors(np.log(2) * np.arange(1, 1100), dtype, 1),
    ]  # fmt: skip
    special = np.array([0.0, np.inf, np.nan, float(limits.max), float(limits.smallest_subnormal)]).astype(dtype)
    found = _signed(np.concatenate([*found, special]))
    return np.unique(found.view(INTEGER[dtype().dtype.name])).view(dtype)


def bits(random, count, dtype):
    """Random bit patterns."""
    kind = INTEGER[dtype().dtype.name]
    return random.integers(0, np.iinfo(kind).max, count, kind, endpoint=True).view(dtype)


def _between(random, count, low, high):
    """Numbers between two bounds: two thirds uniform, and one third with a uniform logarithm of the absolute value."""
    even = random.uniform(low, high, count - count // 3)
    size = max(abs(low), abs(high))
    sizes = size * np.exp2(-random.uniform(0, 60, count // 3))
    signs = np.where(
        random.uniform(size=sizes.size) < (high / (high - low) if low < 0 < high else float(high > 0)), 1, -1
    )
    return np.concatenate([even, np.clip(signs * sizes, low, high)])


def of_one(function, count, dtype, seed=1):
    """About `count` arguments for a function with one argument."""
    random = np.random.default_rng(seed)
    low, high = function.near
    first = edges(dtype)
    if first.size > count // 2:
        first = first[random.permutation(first.size)[: count // 2]]
    rest = count - first.size
    with np.errstate(all="ignore"):
        drawn = _between(random, rest - rest // 4, low, high).astype(dtype)
    return within(function, np.concatenate([first, drawn, bits(random, rest // 4, dtype)]))


def within(function, x):
    """The measured arguments; all others are replaced by 0."""
    if function.above is not None:
        return np.where(x < x.dtype.type(function.above), x.dtype.type(0), x)
    if function.below is not None:
        return np.where(x > x.dtype.type(function.below), x.dtype.type(function.below), x)
    return x


# All pairs of these numbers come first.
SPECIAL = [
    0.0, 1e-320, 1e-45, 1e-40, 2.0**-1022, 2.0**-126, 1e-30, 0.1, 1 - 2.0**-53, 1 - 2.0**-24, 0.5, 1.0, 1 + 2.0**-52,
    1 + 2.0**-23, 1.5, 2.0, 2.5, 3.0, 10.0, 88.5, 127.0, 128.0, 149.0, 150.0, 709.5, 1023.0, 1024.0, 1074.0, 1075.0,
    8388607.5, 2.0**24 + 1, 2.0**31, 2.0**52 - 0.5, 2.0**53 - 1, 2.0**53, 2.0**64, 1e30, 3.4e38, 1e50, 1e300,
    np.inf, np.nan,
]  # fmt: skip


def special_pairs(dtype):
    """All pairs of edge values."""
    with np.errstate(all="ignore"):
        values = _signed(np.array([*SPECIAL, np.finfo(dtype).max]).astype(dtype))
    first, second = np.meshgrid(values, values)
    return first.ravel(), second.ravel()


@functools.lru_cache(maxsize=12)
def of_two(kind, count, dtype, seed=1):
    """`count` pairs of arguments: of a kind of `PAIRS`, edge cases and random ones."""
    random = np.random.default_rng(seed)
    if kind in WITH_INTEGER:
        with np.errstate(all="ignore"):
            return tuple(column.astype(dtype) for column in WITH_INTEGER[kind](random, count, dtype))
    first = special_pairs(dtype)
    first = tuple(column[:count] for column in first)
    count -= first[0].size
    free = count // 4
    columns = [bits(random, free, dtype), bits(random, free, dtype)]
    drawn = PAIRS[kind](random, count - free, dtype)
    with np.errstate(all="ignore"):
        return tuple(
            np.concatenate([start, column, near.astype(dtype)])
            for start, column, near in zip(first, columns, drawn, strict=True)
        )


def _sizes(random, count, bits_):
    signs = random.choice([-1.0, 1.0], count)
    return signs * np.exp2(random.uniform(-bits_, bits_, count))


def _near(random, count, dtype):
    """Pairs with similar magnitudes."""
    first = _sizes(random, count, 60)
    return first, first * _sizes(random, count, 12)


def _pow(random, count, dtype):
    """Bases of all magnitudes and near 1, with exponents for results within the range or slightly beyond."""
    most = np.finfo(dtype).maxexp * 1.02
    with np.errstate(all="ignore"):
        base = np.exp2(random.uniform(-most, most, count) * random.choice([1.0, 0.1, 1e-3, 1e-5], count))
        base = base.astype(dtype).astype(np.float64)
        exponent = random.uniform(-1.1 * most, most, count) / np.log2(base)
    whole = random.uniform(size=count) < 0.2
    exponent = np.where(whole, np.rint(exponent), exponent)
    return np.where(whole & (random.uniform(size=count) < 0.5), -base, base), exponent


def _log(random, count, dtype):
    """Positive numbers, with common bases."""
    base = np.where(random.uniform(size=count) < 0.5, random.choice([2.0, 3.0, 10.0, 0.5, 7.0], count), 0.0)
    other = np.exp2(random.uniform(-20, 20, count))
    return np.exp2(random.uniform(-100, 100, count)), np.where(base > 0, base, other)


def _powi(random, count, dtype):
    """Bases of all magnitudes with integer exponents."""
    base, exponent = _pow(random, count, dtype)
    small = random.integers(-40, 41, count)
    exponent = np.where(random.uniform(size=count) < 0.5, small, np.clip(np.rint(exponent), -(2.0**31), 2.0**31 - 1))
    return np.where(random.uniform(size=count) < 0.5, -base, base), exponent


def _bessel(random, count, dtype):
    """Orders, and arguments of similar magnitude."""
    return np.rint(random.uniform(-60, 60, count)), random.uniform(-120, 120, count)


def _bessel_second(random, count, dtype):
    """The same for Bessel functions of the second kind, which are undefined for negative arguments."""
    order, x = _bessel(random, count, dtype)
    return order, np.abs(x)


# Pairs with an integer: edge cases and random bit patterns would not be integers.
WITH_INTEGER = {"powi": _powi, "bessel": _bessel, "bessel of the second kind": _bessel_second}

PAIRS = {"near": _near, "pow": _pow, "log": _log}
