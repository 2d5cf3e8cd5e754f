"""Conversions to and from floats of 8 bits, for kernels: `to_e4m3`, `to_e5m2`, `from_e4m3`, `from_e5m2`.

The names are those of the compiler's table, which docs/reference/intrinsics.md lists; each is made when it is used.
"""

from __future__ import annotations

from weft.cuda._kernel_names import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    return member(globals(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *member(globals(), "__all__")})
