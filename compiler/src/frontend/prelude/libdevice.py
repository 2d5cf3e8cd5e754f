"""`cuda.libdevice`: what CUDA's library of the device has and no back end, but for the special functions.

Unsigned numbers come as signed ones, as in Numba. The result of a function is converted to the type of its row.
"""

import math

import numpy as np

# ---- numbers as they are --------------------------------------------------------------------------------------------


def libdevice_same(x):
    """A conversion to the nearest number; a number of the type itself is unchanged."""
    return x


def libdevice_abs(x):
    """`abs`, `llabs`, `fabs`: the minimum integer wraps to itself."""
    return abs(x)


def libdevice_ffs(x):
    """`ffs`: the index of the lowest bit that is set, from 1 on; 0 for 0."""
    return 0 if x == 0 else int(trailing_zeros(x)) + 1


def libdevice_clz(x):
    """`clz`."""
    return leading_zeros(x)


def libdevice_popc(x):
    """`popc`."""
    return popcount(x)


def libdevice_mul_high(x, y):
    """`mulhi` and similar functions."""
    return mul_high(x, y)


def libdevice_selp(p, x, y):
    """`selp`: both operands are evaluated."""
    return x if p else y


def libdevice_funnel_left(low, high, shift):
    """`funnelshift_l`: concatenates both, shifts left by the amount modulo 32, and returns the upper 32 bits."""
    return funnel_left(high, low, shift)


def libdevice_funnel_left_clamped(low, high, shift):
    """`funnelshift_lc`: by at most 32."""
    return low if shift >= np.uint32(32) else funnel_left(high, low, shift)


def libdevice_funnel_right(low, high, shift):
    """`funnelshift_r`: concatenates both, shifts right by the amount modulo 32, and returns the lower 32 bits."""
    return funnel_right(high, low, shift)


def libdevice_funnel_right_clamped(low, high, shift):
    """`funnelshift_rc`: by at most 32."""
    return high if shift >= np.uint32(32) else funnel_right(high, low, shift)


def libdevice_byte_perm(x, y, s):
    """`byte_perm`."""
    return byte_perm(np.uint32(x), np.uint32(y), np.uint32(s) & np.uint32(0x7777))


def libdevice_sad(x, y, z):
    """`sad`: the absolute difference of 32-bit integers plus a third one; wraps."""
    return np.uint32(max(x, y)) - np.uint32(min(x, y)) + np.uint32(z)


def libdevice_mul24(x, y):
    """`mul24`: the lower 32 bits of the product of the lower 24 bits."""
    x = (np.int32(x) << 8) >> 8
    y = (np.int32(y) << 8) >> 8
    return ((x << 40) >> 40) * ((y << 40) >> 40)


def libdevice_umul24(x, y):
    """`umul24`."""
    return (np.uint64(x) & np.uint64(0xFFFFFF)) * (np.uint64(y) & np.uint64(0xFFFFFF))


def libdevice_hadd(x, y):
    """`hadd`, `uhadd`: the mean, rounded down."""
    return (np.int64(x) + np.int64(y)) >> 1


def libdevice_rhadd(x, y):
    """`rhadd`, `urhadd`: the mean, rounded up."""
    return (np.int64(x) + np.int64(y) + 1) >> 1


def libdevice_min(x, y):
    """`min` and similar functions."""
    return min(x, y)


def libdevice_max(x, y):
    """`max` and similar functions."""
    return max(x, y)


def libdevice_fmin(x, y):
    """`fmin`: if one argument is NaN, the other one."""
    return np.fmin(x, y)


def libdevice_fmax(x, y):
    """`fmax`."""
    return np.fmax(x, y)


def libdevice_saturate(x):
    """`saturatef`: clamps to 0 and 1; NaN and -0 give 0."""
    return min(max(x, type(x)(0)), type(x)(1))


def libdevice_as_int(x):
    """`float_as_int`."""
    return x.view(np.int32)


def libdevice_as_long(x):
    """`double_as_longlong`."""
    return x.view(np.int64)


def libdevice_as_float(n):
    """`int_as_float`."""
    return n.view(np.float32)


def libdevice_as_double(n):
    """`longlong_as_double`."""
    return n.view(np.float64)


def libdevice_high(x):
    """`double2hiint`."""
    return x.view(np.int64) >> 32


def libdevice_low(x):
    """`double2loint`."""
    return np.int32(x.view(np.int64))


def libdevice_of_words(high, low):
    """`hiloint2double`."""
    return ((np.int64(high) << 32) | np.int64(np.uint32(low))).view(np.float64)


def libdevice_half_bits(x):
    """`float2half_rn`."""
    return float16_bits(np.float16(x))


def libdevice_of_half_bits(h):
    """`half2float`."""
    return float16_of_bits(np.uint16(h))


def libdevice_signbit(x):
    """`signbitd`, `signbitf`."""
    return math.copysign(type(x)(1), x) < 0


# ---- rounding -------------------------------------------------------------------------------------------------------


def libdevice_round(x):
    """`round`: halves away from zero."""
    whole = math.trunc(x)
    if abs(x - whole) >= type(x)(0.5):
        whole += math.copysign(type(x)(1), x)
    return math.copysign(whole, x)


def libdevice_to_int(x):
    """`double2int_rz` and similar functions: toward zero."""
    return np.int32(x)


def libdevice_to_int_rn(x):
    """To nearest even."""
    return np.int32(np.rint(x))


def libdevice_to_int_rd(x):
    """Down."""
    return np.int32(math.floor(x))


def libdevice_to_int_ru(x):
    """Up."""
    return np.int32(math.ceil(x))


def libdevice_to_uint(x):
    """`double2uint_rz`."""
    return np.uint32(x)


def libdevice_to_uint_rn(x):
    """To nearest even."""
    return np.uint32(np.rint(x))


def libdevice_to_uint_rd(x):
    """Down."""
    return np.uint32(math.floor(x))


def libdevice_to_uint_ru(x):
    """Up."""
    return np.uint32(math.ceil(x))


def libdevice_to_long(x):
    """`double2ll_rz`."""
    return np.int64(x)


def libdevice_to_long_rn(x):
    """To nearest even."""
    return np.int64(np.rint(x))


def libdevice_to_long_rd(x):
    """Down."""
    return np.int64(math.floor(x))


def libdevice_to_long_ru(x):
    """Up."""
    return np.int64(math.ceil(x))


def libdevice_to_long_away(x):
    """`llround`: halves away from zero."""
    return np.int64(libdevice_round(x))


def libdevice_to_ulong(x):
    """`double2ull_rz`."""
    return np.uint64(x)


def libdevice_to_ulong_rn(x):
    """To nearest even."""
    return np.uint64(np.rint(x))


def libdevice_to_ulong_rd(x):
    """Down."""
    return np.uint64(math.floor(x))


def libdevice_to_ulong_ru(x):
    """Up."""
    return np.uint64(math.ceil(x))


def libdevice_sub_rn(x, y):
    """`fsub_rn`."""
    return add_rn(x, -y)


def libdevice_sub_rz(x, y):
    """`fsub_rz`."""
    return add_rz(x, -y)


def libdevice_sub_rd(x, y):
    """`fsub_rd`."""
    return add_rd(x, -y)


def libdevice_sub_ru(x, y):
    """`fsub_ru`."""
    return add_ru(x, -y)


def libdevice_rcp_rn(x):
    """`drcp_rn`."""
    return div_rn(type(x)(1), x)


def libdevice_rcp_rz(x):
    """`drcp_rz`."""
    return div_rz(type(x)(1), x)


def libdevice_rcp_rd(x):
    """`drcp_rd`."""
    return div_rd(type(x)(1), x)


def libdevice_rcp_ru(x):
    """`drcp_ru`."""
    return div_ru(type(x)(1), x)


def libdevice_rsqrt_rn(x):
    """`frsqrt_rn`: root and quotient in `float64` are exact enough, which was verified for all arguments."""
    return 1.0 / math.sqrt(np.float64(x))


# ---- elementary functions -------------------------------------------------------------------------------------------


def libdevice_rsqrt(x):
    """`rsqrt`."""
    if isinstance(x, np.float32):
        return 1.0 / math.sqrt(np.float64(x))
    return 1.0 / math.sqrt(x)


def libdevice_rcbrt(x):
    """`rcbrt`."""
    return type(x)(1) / math.cbrt(x)


def libdevice_exp10(x):
    """`exp10`."""
    return math.pow(10.0, np.float64(x))


def libdevice_dim(x, y):
    """`fdim`."""
    return type(x)(0) if x <= y else x - y


def libdevice_logb(x):
    """`logb`: the exponent; -infinity for 0."""
    if not math.isfinite(x):
        return abs(x)
    if x == 0:
        return type(x)(-math.inf)
    return type(x)(math.frexp(x)[1] - 1)


def libdevice_ilogb(x):
    """`ilogb`: the minimum integer for 0 and NaN, the maximum for infinity."""
    if math.isinf(x):
        return np.int32(0x7FFFFFFF)
    if x == 0 or x != x:
        return np.int32(-0x80000000)
    return np.int32(math.frexp(x)[1] - 1)


def libdevice_frexp(x):
    """`frexp`."""
    return math.frexp(x)


def libdevice_modf(x):
    """`modf`."""
    return math.modf(x)


def libdevice_powi(x, n):
    """`powi`: by the power of floats, which represent all 32-bit integers."""
    return math.pow(np.float64(x), np.float64(n))


def libdevice_remquo(x, y):
    """`remquo`: the IEEE remainder, and the last three bits of the quotient with its sign."""
    a, b = abs(x), abs(y)
    if x != x or y != y or math.isinf(a) or b == 0:
        return type(x)(math.nan), np.int32(0)
    if math.isinf(b):
        return x, np.int32(0)
    quotient = np.int32(0)
    eight = type(x)(8) * b
    rest = math.fmod(a, eight) if math.isfinite(eight) else a
    for k in range(2):
        step = type(x)(4 >> k) * b
        if rest >= step:
            rest -= step
            quotient += np.int32(4 >> k)
    half = type(x)(0.5) * b
    # For the smallest numbers, half of the divisor is not exact, but twice the remainder is.
    if rest > half if b > type(x)(1) else rest + rest > b:
        rest -= b
        quotient += np.int32(1)
        if rest >= half if b > type(x)(1) else rest + rest >= b:
            rest -= b
            quotient += np.int32(1)
    quotient &= np.int32(7)
    negative = math.copysign(type(x)(1), x) < 0
    apart = negative != (math.copysign(type(x)(1), y) < 0)
    # A remainder of zero has the sign of the first argument.
    rest = -rest if negative else rest
    return rest, -quotient if apart else quotient


def libdevice_sincos(x):
    """`sincos`."""
    return math.sin(x), math.cos(x)


def sine_of_pi(t):
    """The sine of pi * t in [-pi/4, pi/4], with the error of the product."""
    angle = t * math.pi
    rest = math.fma(t, math.pi, -angle) + t * 1.2246467991473532e-16
    return math.sin(angle) + math.cos(angle) * rest


def cosine_of_pi(t):
    """The cosine of pi * t in [-pi/4, pi/4]."""
    angle = t * math.pi
    rest = math.fma(t, math.pi, -angle) + t * 1.2246467991473532e-16
    return math.cos(angle) - math.sin(angle) * rest


def libdevice_sinpi(x):
    """`sinpi`: first reduced exactly by multiples of a half."""
    x = np.float64(x)
    if not math.isfinite(x):
        return math.nan
    turn = math.fmod(x, 2.0)
    quarter = np.rint(turn * 2.0)
    t = turn - quarter * 0.5
    n = np.int64(quarter) & 3
    if t == 0 and n & 1 == 0:
        return math.copysign(0.0, x)
    if n == 0:
        return sine_of_pi(t)
    if n == 1:
        return cosine_of_pi(t)
    if n == 2:
        return -sine_of_pi(t)
    return -cosine_of_pi(t)


def libdevice_cospi(x):
    """`cospi`."""
    x = np.float64(x)
    if not math.isfinite(x):
        return math.nan
    turn = math.fmod(abs(x), 2.0)
    quarter = np.rint(turn * 2.0)
    t = turn - quarter * 0.5
    n = np.int64(quarter) & 3
    if t == 0 and n & 1 == 1:
        return 0.0
    if n == 0:
        return cosine_of_pi(t)
    if n == 1:
        return -sine_of_pi(t)
    if n == 2:
        return -cosine_of_pi(t)
    return sine_of_pi(t)


def libdevice_sincospi(x):
    """`sincospi`."""
    return libdevice_sinpi(x), libdevice_cospi(x)


# ---- approximations -------------------------------------------------------------------------------------------------


def libdevice_fast_tan(x):
    """`fast_tanf`."""
    return fast_div(fast_sin(x), fast_cos(x))


def libdevice_fast_exp(x):
    """`fast_expf`."""
    return fast_exp2(x * np.float32(1.4426950408889634))


def libdevice_fast_exp10(x):
    """`fast_exp10f`."""
    return fast_exp2(x * np.float32(3.3219280948873623))


def libdevice_fast_log(x):
    """`fast_logf`."""
    return fast_log2(x) * np.float32(0.6931471805599453)


def libdevice_fast_log10(x):
    """`fast_log10f`."""
    return fast_log2(x) * np.float32(0.3010299956639812)


def libdevice_fast_pow(x, y):
    """`fast_powf`."""
    return fast_exp2(y * fast_log2(x))


def libdevice_fast_sincos(x):
    """`fast_sincosf`."""
    return fast_sin(x), fast_cos(x)
