"""NumPy's functions of numbers, like its loops: `type(x)(0.5)` is a literal of the argument's type."""

import math

import numpy as np


def np_fabs(x):
    """`np.fabs`."""
    return math.fabs(x)


def np_floor(x):
    """`np.floor`: integers are returned unchanged."""
    if isinstance(x, int):
        return x
    return math.floor(x)


def np_ceil(x):
    """`np.ceil`: integers are returned unchanged."""
    if isinstance(x, int):
        return x
    return math.ceil(x)


def np_trunc(x):
    """`np.trunc`: integers are returned unchanged."""
    if isinstance(x, int):
        return x
    return math.trunc(x)


def np_signbit(x):
    """`np.signbit`."""
    return math.copysign(type(x)(1), x) < 0


def np_spacing(x):
    """`np.spacing`: away from zero, with the sign of `x`; positive for both zeros."""
    if not math.isfinite(x):
        return type(x)(math.nan)
    if x == 0:
        return np.finfo(type(x)).smallest_subnormal
    return math.nextafter(x, math.copysign(type(x)(math.inf), x)) - x


def np_absolute(x):
    """`np.absolute`."""
    return abs(x)


def np_negative(x):
    """`np.negative`."""
    return -x


def np_positive(x):
    """`np.positive`."""
    return x


def np_sign(x):
    """`np.sign`: NaN for NaN."""
    if isinstance(x, complex):
        size = abs(x)
        return x if size == 0 else complex(x.real / size, x.imag / size)
    sign = type(x)(int(x > 0) - int(x < 0))
    if isinstance(x, float):
        return x if math.isnan(x) else sign
    return sign


def np_square(x):
    """`np.square`."""
    return x * x


def np_reciprocal(x):
    """`np.reciprocal`: for integers, the quotient is truncated; 0 for 0."""
    if isinstance(x, int):
        if isinstance(x, np.unsignedinteger):
            return x if x == 1 else type(x)(0)
        return x if x == 1 or x == -1 else type(x)(0)
    if isinstance(x, complex):
        return type(x)(1) / x if x else type(x)(complex(math.nan, math.nan))
    return type(x)(1) / x


def np_conjugate(x):
    """`np.conjugate`."""
    if isinstance(x, complex):
        return complex(x.real, -x.imag)
    return x


def np_bitwise_count(x):
    """`np.bitwise_count`: for the absolute value."""
    if isinstance(x, np.unsignedinteger):
        return popcount(x)
    return popcount(abs(np.int64(x)))


def np_invert(x):
    """`np.invert`."""
    return ~x


def np_logical_not(x):
    """`np.logical_not`."""
    return not x


def np_add(a, b):
    """`np.add`: `or` for bools."""
    if isinstance(a, bool):
        return a or b
    return a + b


def np_multiply(a, b):
    """`np.multiply`: `and` for bools."""
    if isinstance(a, bool):
        return a and b
    return a * b


def np_subtract(a, b):
    """`np.subtract`."""
    return a - b


def np_divide(a, b):
    """`np.divide`."""
    return a / b


def np_floor_divide(a, b):
    """`np.floor_divide`: the minimum divided by -1 wraps to itself."""
    if isinstance(a, np.signedinteger):
        return -a if b == -1 else a // b
    return a // b


def np_remainder(a, b):
    """`np.remainder`."""
    return a % b


def np_divmod(a, b):
    """`np.divmod`."""
    return np_floor_divide(a, b), a % b


def np_fmod(a, b):
    """`np.fmod`: C's remainder."""
    if isinstance(a, float):
        return math.fmod(a, b)
    rest = a % b
    if isinstance(a, np.signedinteger):
        return rest - b if rest != 0 and (a < 0) != (b < 0) else rest
    return rest


def np_power(a, b):
    """`np.power`."""
    return a**b


def np_float_power(a, b):
    """`np.float_power`."""
    return a**b


def at_least(a, b):
    """`a >= b`: complex numbers are compared by their real parts and then by their imaginary parts."""
    if isinstance(a, complex):
        return a.real > b.real or (a.real == b.real and a.imag >= b.imag)
    return a >= b


def np_maximum(a, b):
    """`np.maximum`: the first of two NaNs."""
    return a if at_least(a, b) or a != a else b


def np_minimum(a, b):
    """`np.minimum`: the first of two NaNs."""
    return a if at_least(b, a) or a != a else b


def np_fmax(a, b):
    """`np.fmax`."""
    return a if at_least(a, b) or b != b else b


def np_fmin(a, b):
    """`np.fmin`."""
    return a if at_least(b, a) or b != b else b


def magnitude(x):
    """`abs(x)` as a uint64, which represents that of the minimum, too."""
    if isinstance(x, np.unsignedinteger):
        return np.uint64(x)
    return np.uint64(abs(np.int64(x)))


def math_gcd(a, b):
    """`math.gcd`: Euclid's algorithm."""
    x, y = magnitude(a), magnitude(b)
    while y != 0:
        x, y = y, x % y
    return x


def math_lcm(a, b):
    """`math.lcm`."""
    x, y = magnitude(a), magnitude(b)
    common = math_gcd(x, y)
    return x // common * y if common != 0 else np.uint64(0)


def np_gcd(a, b):
    """`np.gcd`."""
    return math_gcd(a, b)


def np_lcm(a, b):
    """`np.lcm`."""
    return math_lcm(a, b)


def np_left_shift(a, b):
    """`np.left_shift`: a shift by at least the width, or by a negative number, gives 0."""
    return a << b if 0 <= b < np.iinfo(type(a)).bits else type(a)(0)


def np_right_shift(a, b):
    """`np.right_shift`: a shift by at least the width, or by a negative number, gives only the sign."""
    if 0 <= b < np.iinfo(type(a)).bits:
        return a >> b
    if isinstance(a, np.signedinteger):
        return type(a)(-1) if a < 0 else type(a)(0)
    return type(a)(0)


def np_bitwise_and(a, b):
    """`np.bitwise_and`."""
    return a & b


def np_bitwise_or(a, b):
    """`np.bitwise_or`."""
    return a | b


def np_bitwise_xor(a, b):
    """`np.bitwise_xor`."""
    return a ^ b


def np_logical_and(a, b):
    """`np.logical_and`."""
    return bool(a) and bool(b)


def np_logical_or(a, b):
    """`np.logical_or`."""
    return bool(a) or bool(b)


def np_logical_xor(a, b):
    """`np.logical_xor`."""
    return bool(a) != bool(b)


def np_equal(a, b):
    """`np.equal`."""
    return a == b


def np_not_equal(a, b):
    """`np.not_equal`."""
    return a != b


def np_less(a, b):
    """`np.less`: complex numbers by their real parts and then by their imaginary parts."""
    if isinstance(a, complex):
        ordered = a.imag == a.imag and b.imag == b.imag
        return (a.real < b.real and ordered) or (a.real == b.real and a.imag < b.imag)
    return a < b


def np_less_equal(a, b):
    """`np.less_equal`."""
    if isinstance(a, complex):
        ordered = a.imag == a.imag and b.imag == b.imag
        return (a.real < b.real and ordered) or (a.real == b.real and a.imag <= b.imag)
    return a <= b


def np_greater(a, b):
    """`np.greater`."""
    return np_less(b, a)


def np_greater_equal(a, b):
    """`np.greater_equal`."""
    return np_less_equal(b, a)


def np_logaddexp(a, b):
    """`np.logaddexp`: relative to the larger argument, so that nothing overflows."""
    if a == b:
        # Also for infinities of the same sign, whose difference is NaN.
        return a + type(a)(0.6931471805599453)
    apart = a - b
    if apart > 0:
        return a + math.log1p(math.exp(-apart))
    return b + math.log1p(math.exp(apart)) if apart <= 0 else apart


def np_logaddexp2(a, b):
    """`np.logaddexp2`."""
    if a == b:
        return a + type(a)(1)
    apart = a - b
    per_log = type(a)(1.4426950408889634)
    if apart > 0:
        return a + per_log * math.log1p(math.exp2(-apart))
    return b + per_log * math.log1p(math.exp2(apart)) if apart <= 0 else apart


def np_heaviside(a, b):
    """`np.heaviside`."""
    if math.isnan(a):
        return a
    return b if a == 0 else type(a)(a > 0)


def np_ldexp(a, b):
    """`np.ldexp`: the exponent is clamped to the range in which it makes a difference."""
    return math.ldexp(a, np.int32(min(max(b, -3000), 3000)))


def np_clip(x, low, high):
    """`np.clip`."""
    return np_minimum(np_maximum(x, low), high)


def np_where(condition, x, y):
    """`np.where`."""
    return x if condition else y


def np_round(x, decimals=0):
    """`np.round`: scaled by a power of ten, rounded half to even, and scaled back; integers to tens and hundreds."""
    if isinstance(x, int):
        if decimals >= 0:
            return x
        unit = np.float64(10) ** -decimals
        return type(x)(np.rint(x / unit) * unit)
    if decimals == 0:
        return np.rint(x)
    unit = type(x)(np.float64(10) ** abs(decimals))
    return np.rint(x * unit) / unit if decimals > 0 else np.rint(x / unit) * unit


def finite_of(x):
    """A float; for NaN 0, and for an infinity the largest number of its sign."""
    if math.isnan(x):
        return type(x)(0)
    largest = np.finfo(type(x)).max
    return min(max(x, -largest), largest)


def np_nan_to_num(x):
    """`np.nan_to_num`."""
    if isinstance(x, int):
        return x
    if isinstance(x, complex):
        return complex(finite_of(x.real), finite_of(x.imag))
    return finite_of(x)


def np_sinc(x):
    """`np.sinc`."""
    if x == 0:
        return type(x)(1)
    y = type(x)(math.pi) * x
    return np.sin(y) / y


def np_angle(z, deg=False):
    """`np.angle`."""
    angle = math.atan2(z.imag, z.real)
    return math.degrees(angle) if deg else angle


def np_isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """`np.isclose`."""
    if a == b:
        return True
    if equal_nan and a != a and b != b:
        return True
    return np.isfinite(b) and abs(a - b) <= atol + rtol * abs(b)


def np_isneginf(x):
    """`np.isneginf`."""
    return x == -math.inf


def np_isposinf(x):
    """`np.isposinf`."""
    return x == math.inf


def np_isreal(x):
    """`np.isreal`."""
    return x.imag == 0


def np_iscomplex(x):
    """`np.iscomplex`."""
    return x.imag != 0
