"""Device functions of weft's own: operators on dates and time spans.

They are counts in one unit; the lowest count is NumPy's NaT, which propagates and is equal to nothing. Each is a body
without loops that ends in its one `return`.
"""

import math


def time_days(a, months):
    """Return the first day, counted from 1970, of a date in units of `months` months."""
    none = -9223372036854775807 - 1
    month = a * months % 12
    # Years and months are counted from March, so that a leap day is the last day of its year.
    year = 1970 + a * months // 12 - (1 if month < 2 else 0)
    day = (153 * ((month + 10) % 12) + 2) // 5
    return none if a == none else 365 * year + year // 4 - year // 100 + year // 400 + day - 719468


def time_weeks(a):
    """Return the week of a day."""
    none = -9223372036854775807 - 1
    return none if a == none else a // 7


def time_add(a, b):
    """Add a duration to a date or to a duration."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none else a + b


def time_sub(a, b):
    """Subtract."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none else a - b


def time_mul(a, n):
    """Multiply a duration, or a count that is converted to a finer unit, by an int."""
    none = -9223372036854775807 - 1
    return none if a == none else a * n


def time_mul_float(a, x):
    """Multiply a duration by a float; NaN gives NaT."""
    none = -9223372036854775807 - 1
    product = a * x
    return none if a == none or not math.isfinite(product) else int(product)


def time_div(a, n):
    """Divide a duration by an int, truncating."""
    none = -9223372036854775807 - 1
    whole = a // n
    truncated = whole + 1 if whole < 0 and whole * n != a else whole
    return none if a == none or n == 0 else truncated


def time_div_float(a, x):
    """Divide a duration by a float, truncating."""
    none = -9223372036854775807 - 1
    quotient = a / x
    return none if a == none or not math.isfinite(quotient) else int(quotient)


def time_ratio(a, b):
    """Return the quotient of two durations as a float."""
    none = -9223372036854775807 - 1
    return math.nan if a == none or b == none else a / b


def time_whole_ratio(a, b):
    """Return the floored quotient of two durations; 0 if it is undefined."""
    none = -9223372036854775807 - 1
    return 0 if a == none or b == none or b == 0 else a // b


def time_mod(a, b):
    """Return the remainder of the division of two durations."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none or b == 0 else a % b


def time_eq(a, b):
    """Return whether two times are equal."""
    none = -9223372036854775807 - 1
    return a == b and a != none


def time_ne(a, b):
    """Return whether two times are different."""
    none = -9223372036854775807 - 1
    return a != b or a == none


def time_lt(a, b):
    """Return whether a time is before another."""
    none = -9223372036854775807 - 1
    return a < b and a != none


def time_le(a, b):
    """Return whether a time is not after another."""
    none = -9223372036854775807 - 1
    return a <= b and a != none


def time_isnat(a):
    """Return whether it is NaT."""
    none = -9223372036854775807 - 1
    return a == none


def time_abs(a):
    """Return the absolute value of a duration; NaT is its own negative."""
    return abs(a)


def time_sign(a):
    """Return the sign of a duration, and NaT for NaT, as NumPy since 2.5."""
    none = -9223372036854775807 - 1
    return none if a == none else (1 if a > 0 else (-1 if a < 0 else 0))


def time_maximum(a, b):
    """Return the larger time, or NaT if one is NaT."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none else max(a, b)


def time_minimum(a, b):
    """Return the smaller time, or NaT if one is NaT, which is the lowest count."""
    return min(a, b)


def time_fmax(a, b):
    """Return the larger time; ignores one NaT."""
    return max(a, b)


def time_fmin(a, b):
    """Return the smaller time; ignores one NaT."""
    none = -9223372036854775807 - 1
    return b if a == none else (a if b == none else min(a, b))


def time_larger(a, b):
    """Return the second time if it is larger: Python's `max`."""
    none = -9223372036854775807 - 1
    return b if a < b and a != none else a


def time_smaller(a, b):
    """Return the second time if it is smaller: Python's `min`."""
    none = -9223372036854775807 - 1
    return b if b < a and b != none else a
