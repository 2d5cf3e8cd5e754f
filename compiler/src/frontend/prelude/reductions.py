"""Functions of whole arrays: sequentially, in C order."""

import math

import numpy as np


def total_of(a, start):
    """The start value of a sum, in the type of the elements; 16-bit floats are summed as float32."""
    total = a.dtype.type(start)
    if isinstance(total, float):
        if np.finfo(type(total)).bits < 32:
            return np.float32(start)
    return total


def np_sum(a):
    """`np.sum`."""
    total = total_of(a, 0)
    for k in range(a.size):
        total = total + item(a, k)
    return total


def np_prod(a):
    """`np.prod`."""
    total = total_of(a, 1)
    for k in range(a.size):
        total = total * item(a, k)
    return total


def no_total(a):
    """The start value of a mean: 0."""
    if isinstance(a.dtype.type(0), int):
        return np.float64(0)
    return total_of(a, 0)


def np_mean(a):
    """`np.mean`."""
    total = no_total(a)
    for k in range(a.size):
        total = total + item(a, k)
    return total / type(total.real)(a.size)


def squared(z):
    """The squared absolute value of a number."""
    if isinstance(z, complex):
        return z.real * z.real + z.imag * z.imag
    return z * z


def np_var(a):
    """`np.var`: in two passes, for accuracy."""
    mean = np_mean(a)
    total = type(mean.real)(0)
    for k in range(a.size):
        total = total + squared(item(a, k) - mean)
    return total / type(total)(a.size)


def np_std(a):
    """`np.std`."""
    return math.sqrt(np_var(a))


def np_average(a, weights=None):
    """`np.average`."""
    if weights is None:
        return np_mean(a)
    total, weight = no_total(a), no_total(weights)
    for k in range(least_size(a.size, weights)):
        total = total + item(a, k) * item(weights, k)
        weight = weight + item(weights, k)
    return total / weight


def np_nansum(a):
    """`np.nansum`."""
    total = total_of(a, 0)
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else total + x
    return total


def np_nanprod(a):
    """`np.nanprod`."""
    total = total_of(a, 1)
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else total * x
    return total


def count_numbers(a):
    """The number of elements that are not NaN."""
    n = 0
    for k in range(a.size):
        x = item(a, k)
        n += int(x == x)
    return n


def np_nanmean(a):
    """`np.nanmean`."""
    total = no_total(a)
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else total + x
    return total / type(total.real)(count_numbers(a))


def np_nanvar(a):
    """`np.nanvar`."""
    mean = np_nanmean(a)
    total = type(mean.real)(0)
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else total + squared(x - mean)
    return total / type(total)(count_numbers(a))


def np_nanstd(a):
    """`np.nanstd`."""
    return math.sqrt(np_nanvar(a))


def np_sum_from(a, start):
    """`np.sum` with `dtype` or `initial`: elements are converted to the type of the sum before they are added."""
    total = start
    for k in range(a.size):
        total = type(start)(total + type(start)(item(a, k)))
    return total


def np_prod_from(a, start):
    """`np.prod` with `dtype` or `initial`."""
    total = start
    for k in range(a.size):
        total = type(start)(total * type(start)(item(a, k)))
    return total


def np_cumsum(a, out, start):
    """`np.cumsum`."""
    total = start
    for k in range(min(a.size, out.size)):
        total = type(start)(total + type(start)(item(a, k)))
        put(out, k, total)


def np_cumprod(a, out, start):
    """`np.cumprod`."""
    total = start
    for k in range(min(a.size, out.size)):
        total = type(start)(total * type(start)(item(a, k)))
        put(out, k, total)


def quotient(total, count: known):
    """A sum divided by the number of elements, in its type; for integers in float64."""
    if isinstance(total, int):
        return total / count
    return total / type(total.real)(count)


def np_mean_as(a, zero):
    """`np.mean` with `dtype`."""
    return quotient(np_sum_from(a, zero), a.size)


def np_var_of(a, zero, ddof):
    """`np.var` with `ddof` or `dtype`."""
    mean = np_mean_as(a, zero)
    total = type(mean.real)(0)
    for k in range(a.size):
        total = total + squared(type(mean)(type(zero)(item(a, k))) - mean)
    return total / type(total)(max(a.size - ddof, 0))


def np_std_of(a, zero, ddof):
    """`np.std` with `ddof` or `dtype`."""
    return math.sqrt(np_var_of(a, zero, ddof))


def np_nansum_from(a, start):
    """`np.nansum` with `dtype` or `initial`."""
    total = start
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else type(start)(total + type(start)(x))
    return total


def np_nanprod_from(a, start):
    """`np.nanprod` with `dtype` or `initial`."""
    total = start
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else type(start)(total * type(start)(x))
    return total


def np_nanmean_as(a, zero):
    """`np.nanmean` with `dtype`."""
    return quotient(np_nansum_from(a, zero), count_numbers(a))


def np_nanvar_of(a, zero, ddof):
    """`np.nanvar` with `ddof` or `dtype`."""
    mean = np_nanmean_as(a, zero)
    total = type(mean.real)(0)
    for k in range(a.size):
        x = item(a, k)
        total = total if x != x else total + squared(type(mean)(type(zero)(x)) - mean)
    # The result is NaN if there are not more numbers than `ddof`, as in NumPy.
    divisor = type(total)(count_numbers(a) - ddof)
    return total / divisor if divisor > 0 else type(total)(math.nan)


def np_nanstd_of(a, zero, ddof):
    """`np.nanstd` with `ddof` or `dtype`."""
    return math.sqrt(np_nanvar_of(a, zero, ddof))


def np_min_from(a, best):
    """`np.min` with `initial`."""
    for k in range(a.size):
        best = np_minimum(best, item(a, k))
    return best


def np_max_from(a, best):
    """`np.max` with `initial`."""
    for k in range(a.size):
        best = np_maximum(best, item(a, k))
    return best


def np_nanmin_from(a, best):
    """`np.nanmin` with `initial`."""
    for k in range(a.size):
        best = np_fmin(best, item(a, k))
    return best


def np_nanmax_from(a, best):
    """`np.nanmax` with `initial`."""
    for k in range(a.size):
        best = np_fmax(best, item(a, k))
    return best


def all_into(f, a, out, *more):
    """`out[...] = f(a, *more)`, for an array with a single result."""
    if out.size > 0:
        put(out, 0, f(a, *more))


def rows_into(f, a, out, *more):
    """Applies `f` to each row along the last dimension; the results are the elements of `out`."""
    for k in range(min(out.size, math.prod(a.shape[:-1]))):
        put(out, k, f(row(a, k), *more))


def rows_along(f, a, out, *more):
    """Applies `f` to each row along the last dimension and the corresponding row of `out`."""
    for k in range(math.prod(a.shape[:-1])):
        f(row(a, k), row(out, k), *more)


def first_of(a):
    """The first element; 0 if there is none."""
    return item(a, 0) if a.size > 0 else a.dtype.type(0)


def np_min(a):
    """`np.min`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = np_minimum(best, item(a, k))
    return best


def np_max(a):
    """`np.max`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = np_maximum(best, item(a, k))
    return best


def np_nanmin(a):
    """`np.nanmin`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = np_fmin(best, item(a, k))
    return best


def np_nanmax(a):
    """`np.nanmax`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = np_fmax(best, item(a, k))
    return best


def np_ptp(a):
    """`np.ptp`."""
    return np_max(a) - np_min(a)


def np_argmin(a):
    """`np.argmin`: the first of equal elements, and the first NaN."""
    best, at = first_of(a), 0
    for k in range(1, a.size):
        x = item(a, k)
        if best == best and not at_least(x, best):
            best, at = x, k
    return at


def np_argmax(a):
    """`np.argmax`: the first of equal elements, and the first NaN."""
    best, at = first_of(a), 0
    for k in range(1, a.size):
        x = item(a, k)
        if best == best and not at_least(best, x):
            best, at = x, k
    return at


def np_all(a):
    """`np.all`."""
    if not isinstance(a, np.ndarray):
        return bool(a)
    for k in range(a.size):
        if not item(a, k):
            return False
    return True


def np_any(a):
    """`np.any`."""
    if not isinstance(a, np.ndarray):
        return bool(a)
    for k in range(a.size):
        if item(a, k):
            return True
    return False


def np_count_nonzero(a):
    """`np.count_nonzero`."""
    if not isinstance(a, np.ndarray):
        return int(bool(a))
    n = 0
    for k in range(a.size):
        n += int(bool(item(a, k)))
    return n


def np_trace(a):
    """`np.trace`."""
    rows, columns = a.shape
    total = total_of(a, 0)
    for k in range(min(rows, columns)):
        total = total + a[k, k]
    return total


def np_array_equal(a, b):
    """`np.array_equal`."""
    if a.ndim != b.ndim:
        return False
    if a.shape != b.shape:
        return False
    for k in range(a.size):
        if item(a, k) != item(b, k):
            return False
    return True


def np_allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """`np.allclose`."""
    for k in range(least_size(a.size, b)):
        if not np_isclose(item(a, k), item(b, k), rtol, atol, equal_nan):
            return False
    return True


def sorts_before(a, b):
    """Whether `a` precedes `b` in a sorted array, with NaNs at its end."""
    return a < b or (b != b and a == a)


def np_searchsorted(a, v, side="left"):
    """`np.searchsorted`."""
    low, high = 0, len(a)
    while low < high:
        middle = low + (high - low) // 2
        if side == "left":
            before = sorts_before(item(a, middle), v)
        else:
            before = not sorts_before(v, item(a, middle))
        if before:
            low = middle + 1
        else:
            high = middle
    return low


def fill(a, value):
    """`a.fill(value)`."""
    for k in range(a.size):
        put(a, k, value)


def sum_from(a, start):
    """`sum(a, start)`."""
    total = start
    for k in range(len(a)):
        total = total + a[k]
    return total


def product_from(a, start):
    """`math.prod(a, start=start)`."""
    total = start
    for k in range(len(a)):
        total = total * a[k]
    return total


def all_of(a):
    """`all(a)`."""
    for k in range(len(a)):
        if not a[k]:
            return False
    return True


def any_of(a):
    """`any(a)`."""
    for k in range(len(a)):
        if a[k]:
            return True
    return False


def smallest(a):
    """`min(a)`, with Python's comparison: a value that is not less is ignored."""
    best = first_of(a)
    for k in range(1, len(a)):
        x = a[k]
        best = x if x < best else best
    return best


def largest(a):
    """`max(a)`, with Python's comparison: a value that is not greater is ignored."""
    best = first_of(a)
    for k in range(1, len(a)):
        x = a[k]
        best = x if x > best else best
    return best


def holds(a, value):
    """`value in a`."""
    for k in range(a.size):
        if item(a, k) == value:
            return True
    return False


def in_range(start, stop, step, value):
    """`value in range(start, stop, step)`, of numbers of one type."""
    if step > 0:
        if not (start <= value and value < stop):
            return False
    elif not (stop < value and value <= start):
        return False
    # Not by their difference, which may overflow.
    whole = type(start)(value)
    return whole == value and step != 0 and whole % step == start % step


def range_index(start, stop, step, value):
    """`range(start, stop, step).index(value)`; -1 if the value is not in it."""
    if not in_range(start, stop, step, value):
        return -1
    past = type(start)(value) - start
    return int(past // step)


def range_count(start, stop, step, value):
    """`range(start, stop, step).count(value)`."""
    return int(in_range(start, stop, step, value))


def same_ranges(a, b):
    """`a == b` of two ranges: the same first and last value, and the same step unless there is one value."""
    if len(a) == 0 or len(b) == 0:
        return len(a) == len(b)
    if a[0] != b[0] or a[-1] != b[-1]:
        return False
    return a[0] == a[-1] or a.step == b.step


def clipped(at, n, low, high):
    """A bound of a slice of `n` items."""
    if at < 0:
        at = at + n
    return min(max(at, low), high)


def range_slice(start, step, n, lower, upper, by):
    """Start, stop and step of a slice of a range of `n` values, all of them `int64`."""
    largest = 9223372036854775807
    if n < 0:
        n = largest  # the length exceeds int64
    by = 1 if by is None else by
    if by > 0:
        first = 0 if lower is None else clipped(lower, n, 0, n)
        last = n if upper is None else clipped(upper, n, 0, n)
        some = first < last
    else:
        first = n - 1 if lower is None else clipped(lower, n, -1, n - 1)
        last = -1 if upper is None else clipped(upper, n, -1, n - 1)
        some = first > last
    begin = start + first * step
    end = start + last * step
    if some:
        # A step past the last value may overflow the type.
        before = end - step if by > 0 else end + step
        if (step > 0) == (by > 0):
            if end <= before:
                end = largest
        elif end >= before:
            end = -largest - 1
    # A step that would overflow skips all other values, like the longest one that does not.
    size = abs(step)
    most = largest // size if size > 0 else largest
    by = min(max(by, -most), most)
    return begin, end, step * by


def sum_over(items, start):
    """`sum(items, start)`."""
    total = start
    for x in items:
        total = total + x
    return total


def product_over(items, start):
    """`math.prod(items, start=start)`."""
    total = start
    for x in items:
        total = total * x
    return total


def all_over(items):
    """`all(items)`."""
    for x in items:
        if not x:
            return False
    return True


def any_over(items):
    """`any(items)`."""
    for x in items:
        if x:
            return True
    return False


def smallest_over(items):
    """`min(items)`; 0 if there are none."""
    found = False
    for x in items:
        if not found or x < best:
            best, found = x, True
    return best


def largest_over(items):
    """`max(items)`; 0 if there are none."""
    found = False
    for x in items:
        if not found or x > best:
            best, found = x, True
    return best
