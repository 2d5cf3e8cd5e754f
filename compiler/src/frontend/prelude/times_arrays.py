"""Functions of whole arrays of dates and durations, which are passed as their counts; the lowest count is NaT."""


def time_np_sum(a):
    """`np.sum`."""
    none = -9223372036854775807 - 1
    total = 0
    for k in range(a.size):
        x = item(a, k)
        total = none if total == none or x == none else total + x
    return total


def time_np_mean(a):
    """`np.mean`, truncated as in NumPy."""
    return time_div(time_np_sum(a), a.size)


def time_np_cumsum(a, out):
    """`np.cumsum`."""
    none = -9223372036854775807 - 1
    total = 0
    for k in range(min(a.size, out.size)):
        x = item(a, k)
        total = none if total == none or x == none else total + x
        put(out, k, total)


def time_np_min(a):
    """`np.min`: NaT is the lowest count."""
    best = first_of(a)
    for k in range(1, a.size):
        best = min(best, item(a, k))
    return best


def time_np_max(a):
    """`np.max`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = time_maximum(best, item(a, k))
    return best


def time_np_nanmin(a):
    """`np.nanmin`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = time_fmin(best, item(a, k))
    return best


def time_np_nanmax(a):
    """`np.nanmax`."""
    best = first_of(a)
    for k in range(1, a.size):
        best = max(best, item(a, k))
    return best


def time_np_ptp(a):
    """`np.ptp`."""
    return time_sub(time_np_max(a), time_np_min(a))


def time_np_argmin(a):
    """`np.argmin`: the first of equal elements, and the first NaT."""
    best, at = first_of(a), 0
    for k in range(1, a.size):
        x = item(a, k)
        if x < best:
            best, at = x, k
    return at


def time_np_argmax(a):
    """`np.argmax`: the first of equal elements, and the first NaT."""
    none = -9223372036854775807 - 1
    best, at = first_of(a), 0
    for k in range(1, a.size):
        x = item(a, k)
        if best != none and (x == none or x > best):
            best, at = x, k
    return at


def time_largest(a):
    """`max(a)`, with Python's comparison."""
    best = first_of(a)
    for k in range(1, a.size):
        best = time_larger(best, item(a, k))
    return best


def time_smallest(a):
    """`min(a)`, with Python's comparison."""
    best = first_of(a)
    for k in range(1, a.size):
        best = time_smaller(best, item(a, k))
    return best
