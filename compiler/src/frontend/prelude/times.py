"""Device functions of weft's own: operators on dates and time spans.

They are counts in one unit; the lowest count is NumPy's NaT, which propagates and is equal to nothing. Each is a body
without loops that ends in its one `return`.
"""

import math


def time_days(a, months):
    """Give the first day, from 1970 on, of a date in units of `months` months."""
    none = -9223372036854775807 - 1
    month = a * months % 12
    # Years and months from March on: a leap day is the last of its year.
    year = 1970 + a * months // 12 - (1 if month < 2 else 0)
    day = (153 * ((month + 10) % 12) + 2) // 5
    return none if a == none else 365 * year + year // 4 - year // 100 + year // 400 + day - 719468


def time_weeks(a):
    """Give the week of a day."""
    none = -9223372036854775807 - 1
    return none if a == none else a // 7


def time_add(a, b):
    """Add a span to a date or to a span."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none else a + b


def time_sub(a, b):
    """Subtract."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none else a - b


def time_mul(a, n):
    """Multiply a span, or a count that becomes one of a shorter unit, by an int."""
    none = -9223372036854775807 - 1
    return none if a == none else a * n


def time_mul_float(a, x):
    """Multiply a span by a float; what is no number is no time."""
    none = -9223372036854775807 - 1
    product = a * x
    return none if a == none or not math.isfinite(product) else int(product)


def time_div(a, n):
    """Divide a span by an int, towards zero."""
    none = -9223372036854775807 - 1
    whole = a // n
    truncated = whole + 1 if whole < 0 and whole * n != a else whole
    return none if a == none or n == 0 else truncated


def time_div_float(a, x):
    """Divide a span by a float, towards zero."""
    none = -9223372036854775807 - 1
    quotient = a / x
    return none if a == none or not math.isfinite(quotient) else int(quotient)


def time_ratio(a, b):
    """Give how many times a span is another."""
    none = -9223372036854775807 - 1
    return math.nan if a == none or b == none else a / b


def time_whole_ratio(a, b):
    """Give how many whole times a span is another; 0 where there is no answer."""
    none = -9223372036854775807 - 1
    return 0 if a == none or b == none or b == 0 else a // b


def time_mod(a, b):
    """Give the remainder of a span divided by another."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none or b == 0 else a % b


def time_eq(a, b):
    """Say whether two times are the same."""
    none = -9223372036854775807 - 1
    return a == b and a != none


def time_ne(a, b):
    """Say whether two times are not the same."""
    none = -9223372036854775807 - 1
    return a != b or a == none


def time_lt(a, b):
    """Say whether a time is before another."""
    none = -9223372036854775807 - 1
    return a < b and a != none


def time_le(a, b):
    """Say whether a time is not after another."""
    none = -9223372036854775807 - 1
    return a <= b and a != none


def time_isnat(a):
    """Say whether it is no time."""
    none = -9223372036854775807 - 1
    return a == none


def time_abs(a):
    """Give a span without its sign; no time is its own negative."""
    return abs(a)


def time_sign(a):
    """Give the sign of a duration, and NaT of NaT, as NumPy has it since 2.5."""
    none = -9223372036854775807 - 1
    return none if a == none else (1 if a > 0 else (-1 if a < 0 else 0))


def time_maximum(a, b):
    """Give the larger, or no time if one is none."""
    none = -9223372036854775807 - 1
    return none if a == none or b == none else max(a, b)


def time_minimum(a, b):
    """Give the smaller, or no time if one is none: that is the lowest count."""
    return min(a, b)


def time_fmax(a, b):
    """Give the larger; none beside a time is ignored."""
    return max(a, b)


def time_fmin(a, b):
    """Give the smaller; none beside a time is ignored."""
    none = -9223372036854775807 - 1
    return b if a == none else (a if b == none else min(a, b))


def time_larger(a, b):
    """Give the second if it is larger: Python's `max`."""
    none = -9223372036854775807 - 1
    return b if a < b and a != none else a


def time_smaller(a, b):
    """Give the second if it is smaller: Python's `min`."""
    none = -9223372036854775807 - 1
    return b if b < a and b != none else a
