"""`cuda.libdevice`: error functions, their inverses, and Bessel functions.

They are computed in `float64` and need no table of coefficients: inverses are found by Newton's method from the
functions themselves, Bessel functions by their recurrences, and far out by Hankel's expansion
(docs/design/libdevice.md).
"""

import math

import numpy as np

# ---- error functions ------------------------------------------------------------------------------------------------


def libdevice_erfcx(x):
    """`erfcx`: exp(x * x) * erfc(x)."""
    x = np.float64(x)
    if x != x:
        return x
    if x > 10.0:
        if x > 1e8:
            return 0.5641895835477563 / x
        # The asymptotic series, summed from its smallest term on.
        inverse = 0.5 / (x * x)
        total = 1.0
        for k in range(14, 0, -1):
            total = 1.0 - np.float64(2 * k - 1) * inverse * total
        return 0.5641895835477563 / x * total
    square = x * x
    rest = math.fma(x, x, -square)
    power = math.exp(square)
    if math.isinf(power):
        return power
    return math.fma(power, rest, power) * math.erfc(x)


def libdevice_normcdf(x):
    """`normcdf`: half of erfc(-x / sqrt(2)), corrected for the argument's rounding error by the slope."""
    x = np.float64(x)
    if x != x:
        return x
    if x < -38.6:
        return 0.0
    if x > 38.6:
        return 1.0
    at = x * -0.7071067811865476
    rest = math.fma(x, -0.7071067811865476, -at) + x * 4.833646656726457e-17
    return 0.5 * (math.erfc(at) - rest * 1.1283791670955126 * math.exp(-at * at))


def tail_of_erfc(y):
    """The x > 0 with erfc(x) = y, for y in (0, 0.5]: Newton's method on the logarithm, from Winitzki's estimate."""
    goal = math.log(y)
    spread = goal + math.log(2.0 - y)
    middle = 4.3307464848 + 0.5 * spread
    x = math.sqrt(math.sqrt(middle * middle - spread * 6.8027210884353741) - middle)
    for _ in range(4):
        scaled = libdevice_erfcx(x)
        square = x * x
        error = (math.log(scaled) - square - goal) - math.fma(x, x, -square)
        x += error * 0.886226925452758 * scaled
    return x


def libdevice_erfinv(y):
    """`erfinv`."""
    y = np.float64(y)
    size = abs(y)
    if not size < 1.0:
        return y * math.inf if size == 1.0 else math.nan
    if size > 0.5:
        return math.copysign(tail_of_erfc(1.0 - size), y)
    # A few terms of the series, then Halley's method; for tiny y the first term is exact enough.
    if size < 1e-8:
        return y * 0.886226925452758
    square = y * y
    x = y * (
        0.886226925452758
        + square * (0.2320136665346545 + square * (0.12755617530559793 + square * 0.08655212924154752))
    )
    for _ in range(2):
        error = (math.erf(x) - y) * 0.886226925452758 * math.exp(x * x)
        x -= error / (1.0 + x * error)
    return x


def libdevice_erfcinv(y):
    """`erfcinv`."""
    y = np.float64(y)
    if not (y >= 0.0 and y <= 2.0):
        return math.nan
    if y == 0.0:
        return math.inf
    if y == 2.0:
        return -math.inf
    if y <= 0.5:
        return tail_of_erfc(y)
    return libdevice_erfinv(1.0 - y)


def libdevice_normcdfinv(p):
    """`normcdfinv`."""
    x = libdevice_erfcinv(2.0 * np.float64(p))
    return 0.0 - x * 1.4142135623730951


# ---- Bessel functions -----------------------------------------------------------------------------------------------


def bessel_far(order, x):
    """J and Y of order 0 or 1 for x >= 25: Hankel's expansion."""
    mu = 4.0 * order * order
    p, q, term = 1.0, 0.0, 1.0
    inverse = 0.125 / x
    for k in range(1, 31):
        odd = np.float64(2 * k - 1)
        term *= (mu - odd * odd) * inverse / np.float64(k)
        if k & 1:
            q += -term if k & 2 else term
        else:
            p += -term if k & 2 else term
        if abs(term) < 1e-18:
            break
    sine, cosine = math.sin(x), math.cos(x)
    # The angle is x - pi/4, and for order 1 another pi/2 less.
    a, b = cosine + sine, sine - cosine
    if order == 1.0:
        a, b = b, -a
    scale = 0.5641895835477563 / math.sqrt(x)
    return scale * (p * a - q * b), scale * (p * b + q * a)


def bessel_series(order, x):
    """J of order 0 or 1 for |x| < 1: the power series."""
    square = -0.25 * x * x
    total = 1.0
    for k in range(11, 0, -1):
        total = 1.0 + total * square / (np.float64(k) * (np.float64(k) + order))
    return total if order == 0.0 else 0.5 * x * total


def bessel_near(x):
    """J0, J1, Y0 and Y1 for 1 <= x < 25: Miller's backward recurrence, and Neumann's series of Y."""
    top = 2 * ((np.int64(x) + 34) // 2)
    above, now = 0.0, 1e-300
    sum_of_all, even, odd = 0.0, 0.0, 0.0
    twice = 2.0 / x
    for k in range(top, 0, -1):
        # `now` is proportional to J of order k.
        below = np.float64(k) * twice * now - above
        above, now = now, below
        n = k - 1
        if n > 0:
            half = np.float64(n >> 1)
            if n & 1:
                # The coefficient of order 2j + 1: (-1)^j (2j + 1) / (j (j + 1)).
                if n > 1:
                    weight = np.float64(n) / (half * (half + 1.0)) * now
                    odd += -weight if n & 2 else weight
            else:
                sum_of_all += now
                even += -now / half if n & 2 else now / half
    scale = 1.0 / (now + 2.0 * sum_of_all)
    j0, j1 = now * scale, above * scale
    log = math.log(0.5 * x) + 0.5772156649015329
    y0 = 0.6366197723675814 * (log * j0 - 2.0 * even * scale)
    y1 = 0.6366197723675814 * ((log - 1.0) * j1 - j0 / x - odd * scale)
    return j0, j1, y0, y1


def bessel_y_small(x):
    """Y0 and Y1 for 0 < x < 1: the power series."""
    square = -0.25 * x * x
    # log(x / 2) plus Euler's constant; x / 2 itself would lose digits of the smallest numbers.
    log = math.log(x) - 0.11593151565841245
    harmonic, term, more = 0.0, 1.0, 0.5 * x
    zero, one = 0.0, 0.0
    for k in range(1, 12):
        n = np.float64(k)
        next_harmonic = harmonic + 1.0 / n
        one += (harmonic + next_harmonic) * more
        harmonic = next_harmonic
        term *= square / (n * n)
        more *= square / (n * (n + 1.0))
        zero += harmonic * term
    y0 = 0.6366197723675814 * (log * bessel_series(0.0, x) - zero)
    y1 = 0.6366197723675814 * (log * bessel_series(1.0, x) - 0.5 * one) - 0.6366197723675814 / x
    return y0, y1


def libdevice_j0(x):
    """`j0`."""
    x = abs(np.float64(x))
    if x < 1.0:
        return bessel_series(0.0, x)
    if x < 25.0:
        return bessel_near(x)[0]
    if math.isinf(x):
        return 0.0
    return bessel_far(0.0, x)[0]


def libdevice_j1(x):
    """`j1`."""
    x = np.float64(x)
    size = abs(x)
    if size < 1.0:
        return bessel_series(1.0, x)
    if size < 25.0:
        value = bessel_near(size)[1]
    elif math.isinf(size):
        value = 0.0
    else:
        value = bessel_far(1.0, size)[0]
    return -value if x < 0.0 else value


def libdevice_y0(x):
    """`y0`."""
    x = np.float64(x)
    if x <= 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x < 1.0:
        return bessel_y_small(x)[0]
    if x < 25.0:
        return bessel_near(x)[2]
    if math.isinf(x):
        return 0.0
    return bessel_far(0.0, x)[1]


def libdevice_y1(x):
    """`y1`."""
    x = np.float64(x)
    if x <= 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x < 1.0:
        return bessel_y_small(x)[1]
    if x < 25.0:
        return bessel_near(x)[3]
    if math.isinf(x):
        return 0.0
    return bessel_far(1.0, x)[1]


def bessel_below(n, x):
    """J of order n >= 2 for 0 < x <= n: Miller's backward recurrence."""
    order = np.float64(n)
    # The result underflows, as (x / 2)^n / n! shows.
    if order * math.log(0.5 * x) - math.lgamma(order + 1.0) < -800.0:
        return 0.0
    top = 2 * ((n + np.int64(math.sqrt(160.0 * order))) // 2 + 5)
    above, now = 0.0, 1e-300
    total, found = 0.0, 0.0
    twice = 2.0 / x
    for k in range(top, 0, -1):
        below = np.float64(k) * twice * now - above
        above, now = now, below
        if abs(now) > 1e150:
            above, now, total, found = above * 1e-200, now * 1e-200, total * 1e-200, found * 1e-200
        if k - 1 == n:
            found = now
        if k & 1 and k > 1:
            total += now
    return found / (now + 2.0 * total)


def libdevice_jn(n, x):
    """`jn`."""
    x = np.float64(x)
    if x != x:
        return x
    order = abs(np.int64(n))
    size = abs(x)
    if order == 0:
        return libdevice_j0(x)
    if order == 1:
        value = libdevice_j1(size)
    elif size == 0.0 or math.isinf(size):
        value = 0.0
    elif size <= np.float64(order):
        value = bessel_below(order, size)
    else:
        before, value = libdevice_j0(size), libdevice_j1(size)
        for k in range(1, order):
            before, value = value, np.float64(2 * k) / size * value - before
    odd = order & 1 == 1
    return -value if odd and (n < 0) != (x < 0.0) else value


def libdevice_yn(n, x):
    """`yn`."""
    x = np.float64(x)
    if x < 0.0 or x != x:
        return math.nan
    order = abs(np.int64(n))
    if x == 0.0:
        return math.inf if n < 0 and order & 1 == 1 else -math.inf
    if order == 0:
        return libdevice_y0(x)
    value = libdevice_y1(x)
    if not math.isinf(x):
        before = libdevice_y0(x)
        for k in range(1, order):
            if math.isinf(value):
                break
            before, value = value, np.float64(2 * k) / x * value - before
    return -value if n < 0 and order & 1 == 1 else value
