"""`numba.cuda.cudadecl` and `cudaimpl`: registries of functions for llvmlite. They can be imported, not used."""

from __future__ import annotations

from weft.cuda.extending import Refused

_FUNCTION = (
    "implement the function in kernel Python with `numba.cuda.extending.overload`, or in PTX with `weft.cuda.intrinsic`"
)
_ATTRIBUTE = "use `numba.cuda.extending.overload_attribute` with kernel Python"

registry = Refused("registry", _FUNCTION)
register = Refused("register", _FUNCTION)
register_global = Refused("register_global", _FUNCTION)
register_attr = Refused("register_attr", _ATTRIBUTE)
lower = Refused("lower", _FUNCTION)
lower_attr = Refused("lower_attr", _ATTRIBUTE)
lower_constant = Refused("lower_constant", "pass named tuples, dataclasses or records")

__all__ = ["lower", "lower_attr", "lower_constant", "register", "register_attr", "register_global", "registry"]
