"""`cuda.fp8`: floats of 8 bits, as bits."""

import numpy as np
from weft.cuda.fp16 import __ushort_as_half as float16_of_bits
from weft.cuda.libdevice import double2float_rz as single_rz


def fp8_single(x):
    """A float32 that rounds to the same float of 8 bits: rounded to odd, if it is inexact."""
    near, wide = np.float32(x), np.float64(x)
    if np.float64(near) < wide or np.float64(near) > wide:
        return libdevice_as_float(np.int32(libdevice_as_int(single_rz(wide)) | np.int32(1)))
    return near


def fp8_to_e4m3(x):
    """`to_e4m3`."""
    return to_e4m3(fp8_single(x))


def fp8_to_e5m2(x):
    """`to_e5m2`."""
    return to_e5m2(fp8_single(x))


def fp8_from_e5m2(x):
    """`from_e5m2`: the upper byte of a float16."""
    return np.float32(float16_of_bits(np.uint16(np.uint16(x) << np.uint16(8))))
