"""Types and signatures of Numba's own: a program may go on importing them beside weft. They become weft's.

They are recognized by their module and class and read by their attributes, so Numba is not imported here.
"""

from __future__ import annotations

from weft._weft import Signature, Type, as_dtype, from_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Strings of a fixed length, with NumPy's letter for them.
_TEXTS = {"CharSeq": "S", "UnicodeCharSeq": "U"}

# Dates and durations, with NumPy's code for them.
_TIMES = {"NPDatetime": "M8", "NPTimedelta": "m8"}

_OTHER_NAMES = {"none": "void", "bool": "boolean"}


def is_numbas(value: Any) -> bool:
    """Whether the class of a value is Numba's."""
    return type(value).__module__.partition(".")[0] == "numba"


def is_signature(value: Any) -> bool:
    """Whether a value is a signature of Numba's."""
    return is_numbas(value) and hasattr(value, "return_type") and hasattr(value, "args")


def own_signature(value: Any) -> Signature:
    """Give weft's signature for one of Numba's."""
    if not is_signature(value):
        msg = f"{value!r} is not a signature"
        raise TypeError(msg)
    return Signature(own_type(value.return_type), [own_type(arg) for arg in value.args])


def own_type(value: Any) -> Any:
    """Give weft's type for one of Numba's, and anything else as it is."""
    if not is_numbas(value):
        return value
    kind = type(value).__name__
    if kind == "Array":
        # The alignment of records is that of their own type.
        if not value.aligned and type(value.dtype).__name__ != "Record":
            msg = f"unaligned arrays are not supported in signatures: {value}"
            raise NotImplementedError(msg)
        return Type.make_array(own_type(value.dtype), value.ndim, value.layout, not value.mutable)
    if kind in ("UniTuple", "Tuple"):
        return Type.make_tuple([own_type(item) for item in value.types])
    if kind in ("Record", "NestedArray", *_TEXTS, *_TIMES):
        return from_dtype(_dtype(value))
    name = str(value)
    return Type(_OTHER_NAMES.get(name, name))


def _dtype(value: Any) -> Any:
    """NumPy's dtype of a field, or of a record."""
    import numpy as np

    kind = type(value).__name__
    if kind in _TEXTS:
        return np.dtype((_TEXTS[kind], value.count))
    if kind in _TIMES:
        return np.dtype(f"{_TIMES[kind]}[{value.unit}]" if value.unit else _TIMES[kind])
    if kind == "NestedArray":
        return np.dtype((_dtype(value.dtype), value.shape))
    if kind == "Record":
        fields = value.fields
        return np.dtype(
            {
                "names": list(fields),
                "formats": [_dtype(field.type) for field in fields.values()],
                "offsets": [field.offset for field in fields.values()],
                "itemsize": value.size,
                "aligned": value.aligned,
            }
        )
    return as_dtype(own_type(value))
