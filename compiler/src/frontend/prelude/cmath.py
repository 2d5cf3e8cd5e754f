"""`cmath`, and NumPy's functions of complex numbers: special values and branch cuts are those of C99's Annex G.

All functions compute in float64, whatever the argument's type: a complex64 result is rounded once, at the end. If only
one part may be NaN, a comment says for which arguments.
"""

import cmath
import math

import numpy as np


def cmath_isfinite(z):
    """`cmath.isfinite`."""
    return math.isfinite(z.real) and math.isfinite(z.imag)


def cmath_isinf(z):
    """`cmath.isinf`."""
    return math.isinf(z.real) or math.isinf(z.imag)


def cmath_isnan(z):
    """`cmath.isnan`."""
    return math.isnan(z.real) or math.isnan(z.imag)


def cmath_phase(z):
    """`cmath.phase`."""
    return math.atan2(np.float64(z.imag), np.float64(z.real))


def cmath_polar(z):
    """`cmath.polar`."""
    x, y = np.float64(z.real), np.float64(z.imag)
    return math.hypot(x, y), math.atan2(y, x)


def cmath_rect(r, phi):
    """`cmath.rect`."""
    r, phi = np.float64(r), np.float64(phi)
    if phi == 0:
        # This also covers an infinite r, whose product with 0 would be NaN.
        return complex(r, 0.0 if math.isnan(r) else math.copysign(0.0, r) * math.copysign(1.0, phi))
    if not math.isfinite(phi):
        if r == 0:
            return complex(0.0, 0.0)
        return complex(math.inf if math.isinf(r) else math.nan, math.nan)
    return complex(r * math.cos(phi), r * math.sin(phi))


def cmath_isclose(a, b, rel_tol=1e-09, abs_tol=0.0):
    """`cmath.isclose`."""
    if a == b:
        return True
    if cmath_isinf(a) or cmath_isinf(b):
        return False
    apart = abs(a - b)
    return apart <= rel_tol * abs(b) or apart <= rel_tol * abs(a) or apart <= abs_tol


def cmath_sqrt(z):
    """`cmath.sqrt`: scaled by an even power of 2 if a square would overflow or underflow."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if math.isinf(y):
        return complex(math.inf, y)
    if math.isinf(x):
        if x > 0:
            return complex(x, y if math.isnan(y) else math.copysign(0.0, y))
        return complex(y if math.isnan(y) else 0.0, math.inf if math.isnan(y) else math.copysign(math.inf, y))
    if math.isnan(x) or math.isnan(y):
        return complex(math.nan, math.nan)
    if x == 0 and y == 0:
        return complex(0.0, y)
    largest = max(abs(x), abs(y))
    up, down = 1.0, 1.0
    if largest < 9.332636185032189e-302:
        up, down = 3.2451855365842673e32, 5.551115123125783e-17
    elif largest > 1.0715086071862673e301:
        up, down = 0.00390625, 16.0
    ax, ay = abs(x) * up, abs(y) * up
    size = math.sqrt((ax + math.hypot(ax, ay)) * 0.5)
    other = ay / (2.0 * size) * down
    size = size * down
    if x >= 0:
        return complex(size, math.copysign(other, y))
    return complex(other, math.copysign(size, y))


def cmath_exp(z):
    """`cmath.exp`: if only the product is finite, e is the last factor."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if math.isfinite(x) and math.isfinite(y):
        if x > 708:
            size = math.exp(x - 1.0)
            return complex(size * math.cos(y) * math.e, size * math.sin(y) * math.e)
        size = math.exp(x)
        return complex(size * math.cos(y), size * math.sin(y))
    if y == 0:
        # exp(inf), exp(-inf), NaN.
        return complex(math.exp(x), y)
    if math.isfinite(y):
        size = math.exp(x)
        return complex(size * math.cos(y), size * math.sin(y))
    if x == -math.inf:
        return complex(0.0, 0.0)
    return complex(math.inf if x == math.inf else math.nan, math.nan)


def log_of_size(x, y):
    """The logarithm of the modulus: near 1 computed from the distance to 1, so that no digits are lost."""
    ax, ay = abs(x), abs(y)
    large, small = max(ax, ay), min(ax, ay)
    if math.isinf(ax) or math.isinf(ay):
        return math.inf
    if large > 1.0715086071862673e301:
        return math.log(math.hypot(ax * 0.5, ay * 0.5)) + 0.6931471805599453
    if 0 < large < 9.332636185032189e-302:
        return math.log(math.hypot(ax * 1.8014398509481984e16, ay * 1.8014398509481984e16)) - 54 * 0.6931471805599453
    size = math.hypot(ax, ay)
    if 0.71 <= size <= 1.73:
        return math.log1p((large - 1.0) * (large + 1.0) + small * small) * 0.5
    return math.log(size)


def cmath_log1(z):
    """`cmath.log` to the base e."""
    x, y = np.float64(z.real), np.float64(z.imag)
    return complex(log_of_size(x, y), math.atan2(y, x))


def cmath_log(z, base=None):
    """`cmath.log`."""
    if base is None:
        return cmath_log1(z)
    return cmath_log1(z) / cmath_log1(base)


def cmath_log10(z):
    """`cmath.log10`."""
    log = cmath_log1(z)
    return complex(log.real / 2.302585092994046, log.imag / 2.302585092994046)


def cmath_log2(z):
    """`np.log2`."""
    log = cmath_log1(z)
    return complex(log.real / 0.6931471805599453, log.imag / 0.6931471805599453)


def cmath_log1p(z):
    """`np.log1p`: near 0 computed from the distance of the modulus to 1."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if abs(x) < 0.5 and abs(y) < 0.5:
        return complex(math.log1p(x * (2.0 + x) + y * y) * 0.5, math.atan2(y, 1.0 + x))
    return cmath_log1(complex(1.0 + x, y))


def cmath_expm1(z):
    """`np.expm1`: `cos(y) - 1` is `-2 * sin(y/2)**2`."""
    x, y = np.float64(z.real), np.float64(z.imag)
    half = math.sin(y * 0.5)
    return complex(math.expm1(x) * math.cos(y) - 2.0 * half * half, math.exp(x) * math.sin(y))


def cmath_exp2(z):
    """`np.exp2`."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if math.isfinite(x) and math.isfinite(y):
        size, angle = math.exp2(x), y * 0.6931471805599453
        return complex(size * math.cos(angle), size * math.sin(angle))
    return cmath_exp(complex(x * 0.6931471805599453, y * 0.6931471805599453))


def sinh_of(x, y):
    """Real and imaginary part of `sinh`."""
    if math.isfinite(x) and math.isfinite(y):
        if abs(x) > 708:
            less = x - math.copysign(1.0, x)
            return math.cos(y) * math.sinh(less) * math.e, math.sin(y) * math.cosh(less) * math.e
        return math.cos(y) * math.sinh(x), math.sin(y) * math.cosh(x)
    if y == 0:
        return x, y
    if math.isinf(x):
        if math.isfinite(y):
            return math.copysign(math.inf, math.cos(y)) * math.copysign(1.0, x), math.copysign(math.inf, math.sin(y))
        return math.inf, math.nan
    # The sign of a zero part is unspecified if the other part is not finite.
    return 0.0 if x == 0 else math.nan, math.nan


def cosh_of(x, y):
    """Real and imaginary part of `cosh`."""
    if math.isfinite(x) and math.isfinite(y):
        if abs(x) > 708:
            less = x - math.copysign(1.0, x)
            return math.cos(y) * math.cosh(less) * math.e, math.sin(y) * math.sinh(less) * math.e
        return math.cos(y) * math.cosh(x), math.sin(y) * math.sinh(x)
    if y == 0:
        if math.isnan(x):
            return x, 0.0
        return math.inf, math.copysign(y, math.copysign(1.0, x) * math.copysign(1.0, y))
    if math.isinf(x):
        if math.isfinite(y):
            return math.copysign(math.inf, math.cos(y)), math.copysign(math.inf, math.sin(y)) * math.copysign(1.0, x)
        return math.inf, math.nan
    return math.nan, 0.0 if x == 0 else math.nan


def tanh_of(x, y):
    """Real and imaginary part of `tanh`."""
    if math.isfinite(x) and math.isfinite(y):
        if abs(x) > 354:
            return math.copysign(1.0, x), 4.0 * math.sin(y) * math.cos(y) * math.exp(-2.0 * abs(x))
        tx, ty, cx = math.tanh(x), math.tan(y), 1.0 / math.cosh(x)
        product = tx * ty
        denominator = 1.0 + product * product
        return tx * (1.0 + ty * ty) / denominator, ty / denominator * cx * cx
    if math.isinf(x):
        if math.isfinite(y):
            return math.copysign(1.0, x), math.copysign(0.0, y if y == 0 else math.sin(y) * math.cos(y))
        return math.copysign(1.0, x), 0.0
    if y == 0:
        return x, y
    return math.nan, math.nan


def asinh_of(x, y):
    """Real and imaginary part of `asinh`."""
    if not (math.isfinite(x) and math.isfinite(y)):
        if math.isinf(x):
            if math.isinf(y):
                return x, math.copysign(math.pi / 4, y)
            return x, y if math.isnan(y) else math.copysign(0.0, y)
        if math.isinf(y):
            if math.isnan(x):
                return math.inf, x
            return math.copysign(math.inf, x), math.copysign(math.pi / 2, y)
        return math.nan, y if y == 0 else math.nan
    if abs(x) > 1.0715086071862673e301 or abs(y) > 1.0715086071862673e301:
        size = math.log(math.hypot(x * 0.5, y * 0.5)) + 1.3862943611198906
        return math.copysign(size, x), math.atan2(y, abs(x))
    up, down = cmath_sqrt(complex(1.0 + y, -x)), cmath_sqrt(complex(1.0 - y, x))
    real = math.asinh(up.real * down.imag - down.real * up.imag)
    return real, math.atan2(y, up.real * down.real - up.imag * down.imag)


def atanh_right(x, y):
    """Real and imaginary part of `atanh` of a finite number whose real part is not negative."""
    ay = abs(y)
    if x > 3.3519519824856493e153 or ay > 3.3519519824856493e153:
        # Computed from half the value, so that nothing overflows.
        size = math.hypot(x * 0.5, y * 0.5)
        return x / 4.0 / size / size, math.copysign(math.pi / 2, y)
    if x == 1 and ay < 1.4916681462400413e-154:
        if ay == 0:
            return math.inf, y
        real = -math.log(math.sqrt(ay) / math.sqrt(math.hypot(ay, 2.0)))
        return real, math.copysign(math.atan2(2.0, -ay) * 0.5, y)
    left = 1.0 - x
    real = math.log1p(4.0 * x / (left * left + ay * ay)) * 0.25
    return real, -math.atan2(-2.0 * y, left * (1.0 + x) - ay * ay) * 0.5


def atanh_of(x, y):
    """Real and imaginary part of `atanh`."""
    if not (math.isfinite(x) and math.isfinite(y)):
        if math.isinf(x):
            return math.copysign(0.0, x), y if math.isnan(y) else math.copysign(math.pi / 2, y)
        if math.isinf(y):
            return 0.0 if math.isnan(x) else math.copysign(0.0, x), math.copysign(math.pi / 2, y)
        return x if x == 0 else math.nan, math.nan
    if math.copysign(1.0, x) < 0:
        real, imag = atanh_right(-x, -y)
        return -real, -imag
    return atanh_right(x, y)


def cmath_sinh(z):
    """`cmath.sinh`."""
    real, imag = sinh_of(np.float64(z.real), np.float64(z.imag))
    return complex(real, imag)


def cmath_cosh(z):
    """`cmath.cosh`."""
    real, imag = cosh_of(np.float64(z.real), np.float64(z.imag))
    return complex(real, imag)


def cmath_tanh(z):
    """`cmath.tanh`."""
    real, imag = tanh_of(np.float64(z.real), np.float64(z.imag))
    return complex(real, imag)


def cmath_asinh(z):
    """`cmath.asinh`."""
    real, imag = asinh_of(np.float64(z.real), np.float64(z.imag))
    return complex(real, imag)


def cmath_atanh(z):
    """`cmath.atanh`."""
    real, imag = atanh_of(np.float64(z.real), np.float64(z.imag))
    return complex(real, imag)


def cmath_sin(z):
    """`cmath.sin`: `-i * sinh(i * z)`."""
    real, imag = sinh_of(-np.float64(z.imag), np.float64(z.real))
    return complex(imag, -real)


def cmath_cos(z):
    """`cmath.cos`: `cosh(i * z)`."""
    real, imag = cosh_of(-np.float64(z.imag), np.float64(z.real))
    return complex(real, imag)


def cmath_tan(z):
    """`cmath.tan`: `-i * tanh(i * z)`."""
    real, imag = tanh_of(-np.float64(z.imag), np.float64(z.real))
    return complex(imag, -real)


def cmath_asin(z):
    """`cmath.asin`: `-i * asinh(i * z)`."""
    real, imag = asinh_of(-np.float64(z.imag), np.float64(z.real))
    return complex(imag, -real)


def cmath_atan(z):
    """`cmath.atan`: `-i * atanh(i * z)`."""
    real, imag = atanh_of(-np.float64(z.imag), np.float64(z.real))
    return complex(imag, -real)


def cmath_acos(z):
    """`cmath.acos`."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if not (math.isfinite(x) and math.isfinite(y)):
        if math.isinf(x) and math.isnan(y):
            return complex(y, math.inf)
        if math.isinf(y):
            return complex(math.atan2(abs(y), x), -y)
        if math.isinf(x):
            return complex(math.atan2(abs(y), x), math.copysign(x, -y))
        return complex(math.pi / 2 if x == 0 else math.nan, math.nan)
    if abs(x) > 1.0715086071862673e301 or abs(y) > 1.0715086071862673e301:
        size = math.log(math.hypot(x * 0.5, y * 0.5)) + 1.3862943611198906
        return complex(math.atan2(abs(y), x), math.copysign(size, -y))
    left, right = cmath_sqrt(complex(1.0 - x, -y)), cmath_sqrt(complex(1.0 + x, y))
    imag = math.asinh(right.real * left.imag - right.imag * left.real)
    return complex(2.0 * math.atan2(left.real, right.real), imag)


def cmath_acosh(z):
    """`cmath.acosh`."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if not (math.isfinite(x) and math.isfinite(y)):
        if math.isinf(x) or math.isinf(y):
            return complex(math.inf, math.atan2(y, x))
        return complex(math.nan, math.nan)
    if abs(x) > 1.0715086071862673e301 or abs(y) > 1.0715086071862673e301:
        return complex(math.log(math.hypot(x * 0.5, y * 0.5)) + 1.3862943611198906, math.atan2(y, x))
    left, right = cmath_sqrt(complex(x - 1.0, y)), cmath_sqrt(complex(x + 1.0, y))
    real = math.asinh(left.real * right.real + left.imag * right.imag)
    return complex(real, 2.0 * math.atan2(left.imag, right.real))
