"""Floats of 8 bits of kernels that CPython runs: elements of arrays, which have conversions and no arithmetic."""

from __future__ import annotations

import math

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The bits of the fraction, the bias of the exponent, and the bits of the largest number, by the dtype's name.
FORMATS = {"float8_e4m3fn": (3, 7, 0x7E), "float8_e5m2": (2, 15, 0x7B)}
_INFINITY = 0x7C
_NAN = 0x7F
_SIGN = 0x80


class Float8:
    """A float of 8 bits."""

    __slots__ = ("bits", "name")

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits = name, bits

    def __float__(self) -> float:
        """Give its value."""
        n_fraction, bias, largest = FORMATS[self.name]
        magnitude = self.bits & ~_SIGN
        field, fraction = magnitude >> n_fraction, magnitude & ((1 << n_fraction) - 1)
        if magnitude > largest:
            value = math.inf if self.name == "float8_e5m2" and magnitude == _INFINITY else math.nan
        else:
            leading = 1 << n_fraction if field else 0
            value = math.ldexp(fraction + leading, max(field, 1) - bias - n_fraction)
        return -value if self.bits & _SIGN else value

    def __repr__(self) -> str:
        return f"{self.name}({float(self)})"


class Maker:
    """A type of floats of 8 bits, which makes them of numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any) -> Float8:
        """Round a number."""
        return rounded(self.name, value)


MAKERS = {name: Maker(name) for name in FORMATS}


def rounded(name: str, value: Any) -> Float8:
    """Give the nearest number of a format, ties to even; one beyond the largest becomes the largest."""
    if isinstance(value, Float8) and value.name == name:
        return value
    n_fraction, bias, largest = FORMATS[name]
    number = float(value)
    if math.isnan(number):
        return Float8(name, _NAN)
    bits = largest if number else 0
    if number and not math.isinf(number):
        exponent = max(math.frexp(number)[1] - 1, 1 - bias)
        quotient = round(math.ldexp(abs(number), n_fraction - exponent))
        bits = min((exponent + bias - 1 << n_fraction) + quotient, largest)
    return Float8(name, bits | (_SIGN if math.copysign(1, number) < 0 else 0))


def shown(value: Any) -> Any:
    """Give an element that NumPy gave as a float of 8 bits, if it is one."""
    name = value.__class__.__name__
    return Float8(name, int(np.asarray(value).view(np.uint8))) if name in FORMATS else value


def stored(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert what is stored into an array of floats of 8 bits.

    Raises
    ------
    TypeError
        It is a float of 8 bits of another format.
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    if isinstance(value, (np.ndarray, tuple, list)):
        found = [rounded(dtype.name, each).bits for each in np.asarray(value).ravel()]
        return np.array(found, np.uint8).view(dtype).reshape(np.shape(value))
    if isinstance(value, Float8) and value.name != dtype.name:
        msg = f"{value.name} cannot be stored into an array of {dtype.name}: convert it, `np.float32(x)`"
        raise TypeError(msg)
    return np.array(rounded(dtype.name, value).bits, np.uint8).view(dtype)[()]
