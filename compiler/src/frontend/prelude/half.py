"""`cuda.fp16` and `cuda.bf16`: one function for both types, but where a number of one of them is made.

The result of a function is converted to the type that its row declares.
"""

import math

import numpy as np
from weft import bfloat16
from weft.cuda.bf16 import bfloat16_as_ushort as bfloat16_bits
from weft.cuda.bf16 import ushort_as_bfloat16 as bfloat16_of_bits
from weft.cuda.fp16 import __half_as_ushort as float16_bits
from weft.cuda.fp16 import __ushort_as_half as float16_of_bits


def half_same(x):
    """A conversion to the nearest number."""
    return x


def half_add(a, b):
    """`hadd`."""
    return a + b


def half_sub(a, b):
    """`hsub`."""
    return a - b


def half_mul(a, b):
    """`hmul`."""
    return a * b


def half_div(a, b):
    """`hdiv`."""
    return a / b


def half_neg(a):
    """`hneg`."""
    return -a


def half_abs(a):
    """`habs`."""
    return abs(a)


def half_add_rn(a, b):
    """`hadd_rn`: a product by 1 is exact, and what is fused already is not fused again."""
    return math.fma(a, type(a)(1), b)


def half_sub_rn(a, b):
    """`hsub_rn`."""
    return math.fma(b, type(a)(-1), a)


def half_mul_rn(a, b):
    """`hmul_rn`: a product plus -0 is the product."""
    return math.fma(a, b, -type(a)(0))


def half_saturated(x):
    """Between 0 and 1; NaN is passed over, and -0 is less than 0."""
    return min(max(x, type(x)(0)), type(x)(1))


def half_add_sat(a, b):
    """`hadd_sat`."""
    return half_saturated(a + b)


def half_sub_sat(a, b):
    """`hsub_sat`."""
    return half_saturated(a - b)


def half_mul_sat(a, b):
    """`hmul_sat`."""
    return half_saturated(a * b)


def half_fma_sat(a, b, c):
    """`hfma_sat`."""
    return half_saturated(math.fma(a, b, c))


def half_fma_relu(a, b, c):
    """`hfma_relu`."""
    x = math.fma(a, b, c)
    return type(x)(0) if x <= 0 else x


def half_eq(a, b):
    """`heq`."""
    return a == b


def half_lt(a, b):
    """`hlt`."""
    return a < b


def half_le(a, b):
    """`hle`."""
    return a <= b


def half_gt(a, b):
    """`hgt`."""
    return a > b


def half_ge(a, b):
    """`hge`."""
    return a >= b


def half_ne(a, b):
    """`hne`."""
    return a < b or a > b


def half_equ(a, b):
    """`hequ`."""
    return not (a < b or a > b)


def half_neu(a, b):
    """`hneu`."""
    return a != b


def half_ltu(a, b):
    """`hltu`."""
    return not a >= b


def half_leu(a, b):
    """`hleu`."""
    return not a > b


def half_gtu(a, b):
    """`hgtu`."""
    return not a <= b


def half_geu(a, b):
    """`hgeu`."""
    return not a < b


def half_max(a, b):
    """`hmax`."""
    return max(a, b)


def half_min(a, b):
    """`hmin`."""
    return min(a, b)


def half_max_nan(a, b):
    """`hmax_nan`."""
    return type(a)(math.nan) if math.isnan(a) or math.isnan(b) else max(a, b)


def half_min_nan(a, b):
    """`hmin_nan`."""
    return type(a)(math.nan) if math.isnan(a) or math.isnan(b) else min(a, b)


def half_isinf(a):
    """`hisinf`."""
    return np.int32(int(a == math.inf) - int(a == -math.inf))


def half_exp10(a):
    """`hexp10`."""
    return math.pow(np.float32(10), np.float32(a))


def half_rsqrt(a):
    """`hrsqrt`: computed in float64, so that there is only one visible rounding."""
    return 1 / math.sqrt(np.float64(a))


def half_rcp(a):
    """`hrcp`."""
    return type(a)(1) / a


def float16_as_short(a):
    """`half_as_short`."""
    return np.int16(float16_bits(a))


def bfloat16_as_short(a):
    """`bfloat16_as_short`."""
    return np.int16(bfloat16_bits(a))


def short_as_float16(a):
    """`short_as_half`."""
    return float16_of_bits(np.uint16(a))


def short_as_bfloat16(a):
    """`short_as_bfloat16`."""
    return bfloat16_of_bits(np.uint16(a))


def half_exact(x):
    """A float64 that is between the same two halves as the number, or equal to the same half."""
    if isinstance(x, float):
        return np.float64(x)
    # For a large integer, the bits beyond the 53rd set the last one (a sticky bit).
    rest = x & type(x)(0x7FF)
    if rest != 0 and (x >= 4294967296 or x <= -4294967296):
        return np.float64((x - rest) | type(x)(0x800))
    return np.float64(x)


def half_stepped(found, near, exact, upward):
    """The bits of a half, or of its neighbor if it was rounded in the wrong direction."""
    if upward and near < exact:
        return found - np.uint16(1) if found & np.uint16(0x8000) else found + np.uint16(1)
    if not upward and near > exact:
        return found + np.uint16(1) if found & np.uint16(0x8000) else found - np.uint16(1)
    return found


def float16_rounded(x, upward):
    """A `float16` rounded up or down."""
    exact = half_exact(x)
    near = np.float16(exact)
    return float16_of_bits(np.uint16(half_stepped(float16_bits(near), np.float64(near), exact, upward)))


def float16_rd(x):
    """Rounded down."""
    return float16_rounded(x, False)


def float16_ru(x):
    """Rounded up."""
    return float16_rounded(x, True)


def float16_rz(x):
    """Rounded to zero."""
    return float16_rounded(x, x < 0)


def bfloat16_rounded(x, upward):
    """A `bfloat16` rounded up or down."""
    exact = half_exact(x)
    near = bfloat16(exact)
    return bfloat16_of_bits(np.uint16(half_stepped(bfloat16_bits(near), np.float64(near), exact, upward)))


def bfloat16_rd(x):
    """Rounded down."""
    return bfloat16_rounded(x, False)


def bfloat16_ru(x):
    """Rounded up."""
    return bfloat16_rounded(x, True)


def bfloat16_rz(x):
    """Rounded to zero."""
    return bfloat16_rounded(x, x < 0)


def half_int_rn(a):
    """A 32-bit integer, rounded to nearest even."""
    return np.rint(np.float32(a))


def half_int_rz(a):
    """Rounded to zero."""
    return math.trunc(np.float32(a))


def half_int_rd(a):
    """Rounded down."""
    return math.floor(np.float32(a))


def half_int_ru(a):
    """Rounded up."""
    return math.ceil(np.float32(a))


def half_within(a, low, high):
    """A float32 clamped between two others; 0 for NaN."""
    return np.float32(0) if math.isnan(a) else min(max(a, np.float32(low)), np.float32(high))


def half_or(a, other):
    """A float32, or a replacement for NaN."""
    return np.float32(other) if math.isnan(a) else a


def half_short_rn(a):
    """`short`."""
    return half_within(half_int_rn(a), -32768, 32767)


def half_ushort_rn(a):
    """`unsigned short`."""
    return half_within(half_int_rn(a), 0, 65535)


def half_ll_rn(a):
    """`long long`."""
    return half_or(half_int_rn(a), -9223372036854775808)


def half_ull_rn(a):
    """`unsigned long long`."""
    return half_or(half_int_rn(a), 9223372036854775808)


def half_short_rz(a):
    """`short`."""
    return half_within(half_int_rz(a), -32768, 32767)


def half_ushort_rz(a):
    """`unsigned short`."""
    return half_within(half_int_rz(a), 0, 65535)


def half_ll_rz(a):
    """`long long`."""
    return half_or(half_int_rz(a), -9223372036854775808)


def half_ull_rz(a):
    """`unsigned long long`."""
    return half_or(half_int_rz(a), 9223372036854775808)


def half_short_rd(a):
    """`short`."""
    return half_within(half_int_rd(a), -32768, 32767)


def half_ushort_rd(a):
    """`unsigned short`."""
    return half_within(half_int_rd(a), 0, 65535)


def half_ll_rd(a):
    """`long long`."""
    return half_or(half_int_rd(a), -9223372036854775808)


def half_ull_rd(a):
    """`unsigned long long`."""
    return half_or(half_int_rd(a), 9223372036854775808)


def half_short_ru(a):
    """`short`."""
    return half_within(half_int_ru(a), -32768, 32767)


def half_ushort_ru(a):
    """`unsigned short`."""
    return half_within(half_int_ru(a), 0, 65535)


def half_ll_ru(a):
    """`long long`."""
    return half_or(half_int_ru(a), -9223372036854775808)


def half_ull_ru(a):
    """`unsigned long long`."""
    return half_or(half_int_ru(a), 9223372036854775808)


def half_char_rz(a):
    """`char`."""
    return half_within(half_int_rz(a), -128, 127)


def half_uchar_rz(a):
    """`unsigned char`."""
    return half_within(half_int_rz(a), 0, 255)
