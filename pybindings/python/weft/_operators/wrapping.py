"""Kernels that call a kernel: for each item of a batch, by one more axis of the grid, and with numbers from arrays."""

from __future__ import annotations

import inspect

from weft import cuda
from weft._weft import Dispatcher, Signature, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The options that are the launch's, not the code's.
_OF_LAUNCHES = ("launch", "out", "device")

# What a kernel's argument is made of: the parameter, an item of it, a number in an array of one, and a number in an
# array with one for each item.
PLAIN, ITEM, NUMBER, NUMBER_OF_ITEM = "p", "i", "n", "m"
_CONVERSIONS = {"i": "int", "f": "float", "b": "bool"}


def wrapped(kernel: Dispatcher[..., Any], pattern: str, kinds: str) -> Dispatcher[..., Any]:
    """Make a kernel that calls another one as a device function; `cuda.blockIdx.z` is the number of the item.

    Parameters
    ----------
    kernel
        A kernel that does not read the z axis of the grid.
    pattern
        For each parameter what its argument is.
    kinds
        For each parameter what the operator takes: ``T``, ``i``, ``f`` or ``b``.
    """
    names = list(inspect.signature(kernel.py_func).parameters)
    texts = {PLAIN: "{0}", ITEM: "{0}[_weft_item]", NUMBER: "{1}({0}[0])", NUMBER_OF_ITEM: "{1}({0}[_weft_item])"}
    args = [
        texts[how].format(name, _CONVERSIONS.get(kind, ""))
        for name, how, kind in zip(names, pattern, kinds, strict=True)
    ]
    source = (
        f"def {kernel.__name__}({', '.join(names)}):\n"
        "    _weft_item = _weft_cuda.blockIdx.z\n"
        f"    _weft_kernel({', '.join(args)})\n"
    )
    options = {name: value for name, value in kernel.targetoptions.items() if name not in _OF_LAUNCHES}
    device = Dispatcher(
        kernel.py_func,
        {**options, "device": True},
        kernel.declared_signatures,
        kernel.given_source,
        kernel.cached_source,
    )
    scope: dict[str, Any] = {"_weft_cuda": cuda, "_weft_kernel": device}
    exec(compile(source, f"<items of {kernel.__name__}>", "exec"), scope)
    signatures = [_signature(signature, pattern) for signature in kernel.declared_signatures]
    return Dispatcher(scope[kernel.__name__], {**options, "device": False}, signatures, source, None)


def _signature(signature: Signature, pattern: str) -> Signature:
    """Return the signature of a kernel that calls one of this signature."""
    from weft._weft import parse_signature

    types = []
    for ty, how in zip(signature.args, pattern, strict=True):
        if how == PLAIN:
            types.append(ty)
        elif how == ITEM:
            layout = "C" if ty.layout == "C" else "A"
            types.append(Type.make_array(ty.dtype, ty.ndim + 1, layout, not ty.mutable))
        else:
            types.append(Type.make_array(ty, 1, "A"))
    return parse_signature(tuple(types))
