"""Floats of 8 bits: the types of elements of arrays, `float8_e4m3fn` and `float8_e5m2`, and conversions of bits.

The names are those of the compiler's table, which docs/reference/intrinsics.md lists; each is made when it is used.
"""

from __future__ import annotations

from weft._float8 import float8_e4m3fn as float8_e4m3fn
from weft._float8 import float8_e5m2 as float8_e5m2
from weft.cuda._kernel_names import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    return member(globals(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *member(globals(), "__all__")})
