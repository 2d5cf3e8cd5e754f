"""Arrays, records, vectors and pointers as kernels have them, for kernels that CPython runs.

An array is a view, of NumPy's class with another `[]`: elements come as a kernel's numbers, and what is stored is
converted as weft converts it. Beyond its bounds NumPy raises an `IndexError`, which no other executor does unasked.
"""

from __future__ import annotations

import ctypes
import enum

import numpy as np

from weft import _weft
from weft.cuda._cpython import float8, scalars
from weft.cuda._cpython.promotion import ARITHMETIC, BITS, SHIFTS
from weft.cuda._cpython.scalars import SCALARS, plain, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    _NDArray = np.ndarray[Any, Any]
else:
    _NDArray = np.ndarray

# Called for each load if a kernel's threads may wait for each other, so that a spin loop yields.
on_load: list[Callable[[], None]] = []

# The dtype names of kernels' casts.
_CASTS: dict[Any, str] = {cls: "bool" if name == "boolean" else name for name, cls in SCALARS.items()}

_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "all", "any", "item")


def dtype_of(given: Any) -> np.dtype[Any]:
    """Give NumPy's dtype of what names one in a kernel.

    Raises
    ------
    TypeError
        It names none that NumPy has.
    """
    if isinstance(given, type) and given in _CASTS:
        return _bfloat16() if _CASTS[given] == "bfloat16" else np.dtype(_CASTS[given])
    if isinstance(given, float8.Maker):
        given = _weft.Type(given.name)
    if isinstance(given, _weft.Type):
        made: np.dtype[Any] = _bfloat16() if str(given) == "bfloat16" else _weft.as_dtype(given)
        return made
    dtype: np.dtype[Any] = np.dtype(given)
    return dtype


def _bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes  # type: ignore[import-not-found]  # where it is installed
    except ImportError:
        msg = "NumPy has no bfloat16: install the package ml_dtypes to have arrays of it with WEFT_DEVICE=python"
        raise TypeError(msg) from None
    made: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return made


def cast_dtype(given: type) -> Any:
    """Give NumPy's dtype of a cast; any other class as it is."""
    return dtype_of(given) if given in _CASTS else given


def name_casts(names: dict[Any, str]) -> None:
    """Make further casts the names of dtypes."""
    _CASTS.update(names)


def shown(value: Any) -> Any:
    """Give what NumPy gave as a kernel has it."""
    cls = value.__class__
    if cls is Array:
        return value
    if cls is np.ndarray:
        return value.view(Array)
    if isinstance(value, np.void) and value.dtype.names:
        return Record(value)
    return float8.shown(scalar(value))


def _all_stored(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert the elements of an array: each as a number is, where NumPy's conversion is another."""
    if values.dtype.kind in "fc" and dtype.kind in "iu":
        convert = SCALARS[dtype.name]
        converted = [plain(convert(value)) for value in values.ravel()]
        return np.array(converted, dtype).reshape(values.shape)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def stored(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert what is stored into an array of the dtype.

    Raises
    ------
    TypeError
        There is nothing to be stored.
    """
    if value is None:
        msg = f"None is stored as {dtype}: a compiled kernel ends the thread here"
        raise TypeError(msg)
    kind = dtype.kind
    if dtype.name in float8.FORMATS or isinstance(value, float8.Float8):
        return float8.stored(value, dtype)
    if kind in "iufc":
        if isinstance(value, tuple) and not any(isinstance(item, (tuple, np.ndarray)) for item in value):
            return np.array([stored(item, dtype) for item in value], dtype)
        if isinstance(value, (np.ndarray, tuple, list, Vectors)):
            return _all_stored(np.asarray(value), dtype)
        return plain(SCALARS[dtype.name](value))
    if kind == "b":
        return np.asarray(value).astype(bool) if isinstance(value, (np.ndarray, tuple)) else bool(value)
    if kind == "V" and dtype.names is not None:
        if isinstance(value, Record):
            return value._record
        if isinstance(value, tuple):
            assert dtype.fields is not None
            return tuple(stored(item, dtype.fields[name][0]) for item, name in zip(value, dtype.names, strict=True))
        return value
    if dtype.name == "bfloat16":
        return np.asarray(value).astype(dtype) if isinstance(value, (np.ndarray, tuple)) else dtype.type(float(value))
    return value


def _index(index: Any) -> Any:
    """Give indices as NumPy takes them."""
    if index.__class__ is tuple:
        return tuple(_index(part) for part in index)
    if isinstance(index, np.ndarray) and index.ndim == 0:
        return index[()]
    if isinstance(index, enum.Enum):
        return index.value
    return index


class Array(_NDArray):
    """A view of an array in a kernel."""

    def __getitem__(self, index: Any) -> Any:
        """Give an element as a kernel's number, or a view."""
        if on_load:
            on_load[0]()
        return shown(np.ndarray.__getitem__(self, _index(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Store a value, converted to the dtype."""
        dtype = self.dtype if not isinstance(index, str) else self.dtype[index]
        np.ndarray.__setitem__(self, _index(index), stored(value, dtype))

    def __iter__(self) -> Iterator[Any]:
        """Go over the first axis."""
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        """Give a field of all records."""
        if self.dtype.names and name in self.dtype.names:
            return self[name]
        msg = f"an array has no attribute {name!r}"
        raise AttributeError(msg)

    def __contains__(self, item: Any) -> bool:
        """Look for an element."""
        return any(bool(element == item) for element in self)

    def __repr__(self) -> str:
        """Show it as NumPy shows an array."""
        return repr(np.asarray(self))

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Give the same bytes as elements of another type."""
        given = args[0] if args else kwargs.get("dtype")
        lanes = vector_of(given)
        if lanes is not None:
            return Vectors.viewing(np.asarray(self), lanes)
        if given is None or (isinstance(given, type) and issubclass(given, np.ndarray)):
            return np.ndarray.view(self, *args, **kwargs)
        return np.ndarray.view(self, dtype_of(given))


def _in_place(operator: str) -> Callable[[Any, Any], Any]:
    def update(self: Any, other: Any) -> Any:
        # Elementwise, with the typing rules of the function that has marked the operand.
        return (
            getattr(other, f"__r{operator}__")(self)
            if isinstance(other, scalars.Decider)
            else scalars.Operators.update(operator, self, other)
        )

    return update


def _reduction(name: str) -> Callable[..., Any]:
    numpy = getattr(np.ndarray, name)

    def reduce(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "dtype" in kwargs:
            kwargs["dtype"] = dtype_of(kwargs["dtype"])
        return shown(numpy(np.asarray(self), *args, **kwargs))

    return reduce


for _name in _REDUCTIONS:
    setattr(Array, _name, _reduction(_name))


for _name in (*ARITHMETIC, *BITS, *SHIFTS):
    setattr(Array, f"__i{_name}__", _in_place(_name))


def array(given: np.ndarray[Any, Any]) -> Any:
    """Give a kernel's view of an array."""
    return np.asarray(given).view(Array)


def device_array(given: Any) -> Any:
    """Give a kernel's view of an array on the device, which is memory of the host here."""
    dtype = given.dtype
    low, high = given.span
    if given.size == 0:
        return array(np.empty(given.shape, dtype))
    memory = (ctypes.c_char * (high - low)).from_address(given.address + low)
    made = np.ndarray(given.shape, dtype, memory, -low, given.strides)
    made.flags.writeable = not given.readonly
    return array(made)


class Record:
    """A reference to a record: its fields are read by attribute, by name and by position, and written."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "_record", record)

    _record: Any

    def __getattr__(self, name: str) -> Any:
        if name not in self._record.dtype.names:
            msg = f"the record has no field {name!r}; it has {', '.join(self._record.dtype.names)}"
            raise AttributeError(msg)
        return shown(self._record[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, name: Any) -> Any:
        return shown(self._record[name])

    def __setitem__(self, name: Any, value: Any) -> None:
        names = self._record.dtype.names
        key = name if isinstance(name, str) else names[name]
        if key not in names:
            msg = f"the record has no field {key!r}; it has {', '.join(names)}"
            raise AttributeError(msg)
        field = self._record.dtype[key]
        if field.subdtype is None:
            self._record[key] = stored(value, field)
        else:
            self._record[key][...] = value

    def __iter__(self) -> Iterator[Any]:
        return (shown(self._record[name]) for name in self._record.dtype.names)

    def __len__(self) -> int:
        return len(self._record.dtype.names)

    def __repr__(self) -> str:
        return repr(self._record)


class Pointer:
    """The address of elements: `p[i]` is the element at offset `i`; indices are not checked."""

    def __init__(self, address: int, dtype: np.dtype[Any]) -> None:
        self.address, self.dtype = int(address), dtype

    def _element(self, index: Any) -> Any:
        where = self.address + int(index) * self.dtype.itemsize
        memory: Any = (ctypes.c_char * self.dtype.itemsize).from_address(where)
        return np.ndarray((), self.dtype, memory).view(Array)

    def __getitem__(self, index: Any) -> Any:
        return self._element(index)[()]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._element(index)[()] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"<pointer to {self.dtype} at {self.address:#x}>"


# ---- vectors -------------------------------------------------------------------------------------------------------


def vector_of(given: Any) -> tuple[str, int] | None:
    """Give the number and how many of it a vector type has; None for anything else."""
    text = given.__name__ if isinstance(given, VectorType) else str(given) if isinstance(given, _weft.Type) else ""
    number, cross, count = text.rpartition("x")
    return (number, int(count)) if cross and number in SCALARS and count.isdigit() else None


class VectorType:
    """A type of vectors, which makes them of numbers, smaller vectors and tuples."""

    def __init__(self, number: str, count: int) -> None:
        self.__name__ = f"{number}x{count}"
        self.number, self.count = number, count

    def __call__(self, *parts: Any) -> Vector:
        numbers: list[Any] = []
        for part in parts:
            numbers += list(part) if isinstance(part, (Vector, tuple)) else [part]
        if len(numbers) == 1:
            numbers *= self.count
        if len(numbers) != self.count:
            msg = f"cuda.{self.__name__} takes {self.count} numbers, or one for all, not {len(numbers)}"
            raise TypeError(msg)
        return Vector(self, numbers)

    def __repr__(self) -> str:
        return self.__name__


class Vector:
    """Up to four numbers of one type."""

    __slots__ = ("numbers", "of")

    def __init__(self, of: VectorType, numbers: list[Any]) -> None:
        self.of = of
        self.numbers = [SCALARS[of.number](number) for number in numbers]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return self.of.count

    def __getattr__(self, name: str) -> Any:
        at = "xyzw".find(name) if len(name) == 1 else -1
        if not 0 <= at < self.of.count:
            msg = f"{self.of} has no {name!r}"
            raise AttributeError(msg)
        return self.numbers[at]

    def _each(self, operator: str, other: Any, *, reflected: bool) -> Any:
        others = other.numbers if isinstance(other, Vector) else [other] * self.of.count
        if len(others) != self.of.count:
            return NotImplemented
        pairs = zip(others, self.numbers, strict=True) if reflected else zip(self.numbers, others, strict=True)
        return Vector(self.of, [scalars.Operators.compute(operator, a, b) for a, b in pairs])

    def __neg__(self) -> Vector:
        return Vector(self.of, [-number for number in self.numbers])

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Vector) and all(a == b for a, b in zip(self.numbers, other.numbers, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self.numbers))

    def __repr__(self) -> str:
        return f"{self.of}({', '.join(map(str, self.numbers))})"


def _operator(name: str, *, reflected: bool) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._each(name, other, reflected=reflected)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow"):
    setattr(Vector, f"__{_name}__", _operator(_name, reflected=False))
    setattr(Vector, f"__r{_name}__", _operator(_name, reflected=True))


class Vectors:
    """An array whose elements are vectors: the numbers of each lie along a last axis."""

    def __init__(self, numbers: Any, of: VectorType) -> None:
        self.numbers, self.of = numbers, of
        self.shape = numbers.shape[:-1]
        self.ndim, self.size, self.dtype = len(self.shape), int(np.prod(self.shape)), of

    @staticmethod
    def viewing(given: np.ndarray[Any, Any], lanes: tuple[str, int]) -> Vectors:
        """View an array as one of vectors."""
        number, count = lanes
        # A vector of three numbers has the size of three.
        flat = given.view(np.dtype(number))
        return Vectors(flat.reshape(*flat.shape[:-1], -1, count).view(Array), VectorType(number, count))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Any:
        found = self.numbers[index]
        return Vector(self.of, list(found)) if found.ndim == 1 else Vectors(found, self.of)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.numbers[index] = tuple(value) if isinstance(value, Vector) else value

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))
