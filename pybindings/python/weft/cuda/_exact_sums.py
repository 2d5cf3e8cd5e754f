"""Exact sums of gradients, whose bits do not depend on the order of the threads.

The adjoint kernel of a reproducible kernel adds each term to words of `int64`, as `exact_sums.rs` in the compiler
describes: digits to the base 2^26. Here a launch allocates the words, and rounds each sum once after the kernel.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from weft import _weft, cuda
from weft.cuda._jit import jit
from weft.cuda._memory.device_array import DeviceNDArray, array_at
from weft.cuda._memory.making import as_cuda_array, device_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from weft._weft import Dispatcher

_DIGIT = 26
_MASK = (1 << _DIGIT) - 1
_THREADS = 128
# The copies of the words of adjoints with as many elements, as the compiler has them.
_COPIES = 64


class ExactSums:
    """The words of one launch for the sums of some adjoints.

    Attributes
    ----------
    words
        The array of the words. Its first elements are, for each adjoint, the index of its first word and the distance
        of its copies.
    """

    def __init__(self, adjoints: Sequence[Any], summed: Sequence[int], stream: Any, why: str) -> None:
        self._stream = stream
        self._sums: list[_Sum] = []
        places = np.zeros(2 * len(adjoints), np.int64)
        count = places.size
        for number in summed:
            made = _Sum(adjoints[number], number, count)
            places[2 * number : 2 * number + 2] = count, made.count if made.copies > 1 else 0
            count += made.count * made.copies
            self._sums.append(made)
        if count * 8 > _weft.memory_info(_weft.current_device_id())[0]:
            msg = f"{why} needs {count * 8} bytes for exact sums of gradients: make it without `reproducible`"
            raise MemoryError(msg)
        self.words = device_array(count, np.int64, stream=stream)
        self.words.setitem(..., 0, stream)
        self.words.setitem(slice(0, places.size), places, stream)

    def adjoints(self, given: Sequence[Any]) -> list[Any]:
        """Give the adjoints of the launch: those with sums are not accessed, and have no gaps."""
        adjoints = list(given)
        for made in self._sums:
            adjoints[made.number] = made.stand_in(self._stream)
        return adjoints

    def round(self) -> None:
        """Add the sums to their adjoints."""
        for made in self._sums:
            made.add(self.words, self._stream)


class _Sum:
    """The words of an adjoint, from a start on."""

    def __init__(self, adjoint: Any, number: int, start: int) -> None:
        if not isinstance(adjoint, DeviceNDArray) and hasattr(adjoint, "__cuda_array_interface__"):
            adjoint = as_cuda_array(adjoint)
        self.number = number
        self._adjoint, self._start = adjoint, start
        self._layout = _weft.typeof_value(adjoint).layout
        self._dtype = np.dtype(adjoint.dtype)
        # A complex number has two sums.
        self._parts = 2 if self._dtype.kind == "c" else 1
        # The stand-in of an array with gaps has one after each element, because its type has gaps.
        self._pad = 1 if self._layout in ("C", "F") else 2
        is_double = self._dtype in (np.float64, np.complex128)
        self.count = adjoint.size * self._parts * self._pad * _words(is_double=is_double)
        self.copies = _COPIES if adjoint.size <= _COPIES else 1

    def stand_in(self, stream: Any) -> Any:
        if self._pad == 1:
            return self._adjoint
        *rest, last = self._adjoint.shape
        return device_array((*rest, 2 * last), self._dtype, stream=stream)[..., ::2]

    def add(self, words: DeviceNDArray, stream: Any) -> None:
        """Add the sums to the adjoint."""
        if not self._adjoint.size:
            return
        order: Literal["C", "F"] = "F" if self._layout == "F" else "C"
        found = device_array(self._adjoint.shape, self._dtype, order=order, stream=stream)
        scalar = np.zeros(0, self._dtype).real.dtype
        count = found.size * self._parts
        flat = array_at(found.owner, found.address, (count,), (scalar.itemsize,), scalar, found.device)
        merge, kernel = _rounding(is_double=scalar == np.float64)
        if self.copies > 1:
            merge[-(-self.count // _THREADS), _THREADS, stream](words, self._start, self.count)
        kernel[-(-count // _THREADS), _THREADS, stream](words, self._start, self._pad, self._parts, flat)
        if isinstance(self._adjoint, DeviceNDArray):
            from weft.cuda._tape.memory import add

            add(self._adjoint, found, stream)
        else:
            self._adjoint[...] += found.copy_to_host(stream=stream)


def _words(*, is_double: bool) -> int:
    """Give the words of an element: its digits, and one for the kinds of terms that are not finite."""
    return 82 if is_double else 13


@functools.cache
def _rounding(*, is_double: bool) -> tuple[Dispatcher, Dispatcher]:
    """Make the kernels that add copies and that round sums, of terms of float64 or of smaller floats."""
    each = _words(is_double=is_double)
    # The exponent of the first bit of the first word.
    lowest = -1074 if is_double else -172
    rounded = np.float64 if is_double else np.float32

    @jit(device=True)
    def magnitude(words, first, sign):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        """Give the four highest digits, whether a lower one is not 0, the number of the highest, and the carry."""
        carry = 0
        top = -1
        high = upper = lower = low = 0
        before1 = before2 = before3 = 0
        has_rest = has_lower = False
        for number in range(each - 1):
            total = sign * words[first + number] + carry
            digit = total & _MASK
            carry = total >> _DIGIT
            if digit != 0:
                top = number
                high, upper, lower, low = digit, before1, before2, before3
                has_rest = has_lower
            has_lower = has_lower or before3 != 0
            before3, before2, before1 = before2, before1, digit
        return high, upper, lower, low, has_rest, top, carry

    @jit(device=True)
    def value(words, first):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        kinds = words[first + each - 1]
        if kinds != 0:
            return math.inf if kinds == 2 else -math.inf if kinds == 4 else math.nan
        sign = 1
        high, upper, lower, low, has_rest, top, carry = magnitude(words, first, 1)
        if carry < 0:
            sign = -1
            high, upper, lower, low, has_rest, top, carry = magnitude(words, first, -1)
        if carry != 0:
            return sign * math.inf
        if top < 0:
            return 0.0
        above, below = high << _DIGIT | upper, lower << _DIGIT | low
        # 64 bits from the highest one on; the last one is 1 if a lower one is.
        shift = cuda.clz(above)
        rest = 2 * _DIGIT - shift
        bits = np.uint64(above) << np.uint64(shift) | np.uint64(below >> rest)
        if has_rest or (below & ((1 << rest) - 1)) != 0:
            bits = bits | np.uint64(1)
        return sign * math.ldexp(np.float64(rounded(bits)), (top - 3) * _DIGIT + lowest + rest)

    @jit(reproducible=True)
    def round_sums(words, start, pad, parts, found):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < found.size:
            found[i] = value(words, start + (i // parts * pad * parts + i % parts) * each)

    @jit(reproducible=True)
    def merge_copies(words, start, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            total = words[start + i]
            for copy in range(1, _COPIES):
                word = words[start + copy * count + i]
                total = total | word if i % each == each - 1 else total + word
            words[start + i] = total

    return merge_copies, round_sums
