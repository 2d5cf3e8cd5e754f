"""Device functions of weft's own: operators on complex numbers.

Each is a body without loops that ends in its one `return`. Numbers keep the type of the operands as long as no float
literal is an operand too.
"""

import math


def complex_divide(ar, ai, br, bi):
    """Divide as NumPy does (Smith's method): scaled by the larger part of the divisor.

    A quotient by zero is that of each part, as NumPy's is: an infinity with the part's sign, or NaN.

    Both ways are computed and one is selected, so no thread diverges.
    """
    by_real = abs(br) >= abs(bi)
    large = br if by_real else bi
    not_zero = bool(br) or bool(bi)
    small = bi if by_real else br
    ratio = small / large
    denominator = large + small * ratio if not_zero else abs(large)
    first = ar if by_real else ai
    second = ai if by_real else ar
    real = first + second * ratio if not_zero else ar
    # Each case has its own order of operands: a difference of zero is positive.
    imag = (second if by_real else -second) + (-first if by_real else first) * ratio if not_zero else ai
    return real / denominator, imag / denominator


def complex_power(ar, ai, br, bi):
    """Return `exp(b * log(a))`, where 0 ** 0 is 1 and 0 ** b is 0: log(0) would give NaN."""
    log = math.log(math.hypot(ar, ai))
    angle = math.atan2(ai, ar)
    size = math.exp(br * log - bi * angle)
    turn = bi * log + br * angle
    zero_base = not (bool(ar) or bool(ai))
    zero_power = not (bool(br) or bool(bi))
    real = size * math.cos(turn)
    imag = size * math.sin(turn)
    return zero_power if zero_base else real, False if zero_base else imag
