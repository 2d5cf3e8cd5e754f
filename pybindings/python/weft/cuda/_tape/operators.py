"""The derivatives of operators of device arrays, for `cuda.tape`: one row for each of NumPy's ufuncs, and sums."""

# Every term takes all values, and uses some.
# ruff: noqa: ARG005

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.cuda._derivatives import FLOATS
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._tape.memory import add_reduced, copied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft.cuda._tape.memory import Adjoints, Contents


def _c(value: Any) -> Any:
    """Give the conjugate."""
    complex_ = value.dtype.kind == "c" if hasattr(value, "dtype") else isinstance(value, complex)
    return np.conjugate(value) if complex_ else value


def _wins(one: Any, other: Any) -> Any:
    """Give 1 where the first is greater, and half at a tie."""
    return (one > other) * 1.0 + (one == other) * 0.5


# By the ufunc's name: the values that the terms use (operands by number, and the result), and for each operand the
# adjoint by that of the result `g`, the result `y` and the operands.
RULES: dict[str, tuple[str, tuple[Callable[..., Any], ...]]] = {
    "absolute": ("0", (lambda g, y, a: g * np.sign(a),)),
    "add": ("", (lambda g, y, a, b: g, lambda g, y, a, b: g)),
    "arctan": ("0", (lambda g, y, a: g / _c(1.0 + a * a),)),
    "cos": ("0", (lambda g, y, a: -g * np.sin(_c(a)),)),
    "cosh": ("0", (lambda g, y, a: g * np.sinh(_c(a)),)),
    "divide": ("1y", (lambda g, y, a, b: g / _c(b), lambda g, y, a, b: -g * _c(y) / _c(b))),
    "exp": ("y", (lambda g, y, a: g * _c(y),)),
    "expm1": ("y", (lambda g, y, a: g * _c(y + 1.0),)),
    "log": ("0", (lambda g, y, a: g / _c(a),)),
    "log1p": ("0", (lambda g, y, a: g / _c(1.0 + a),)),
    "maximum": ("01", (lambda g, y, a, b: g * _wins(a, b), lambda g, y, a, b: g * _wins(b, a))),
    "minimum": ("01", (lambda g, y, a, b: g * _wins(b, a), lambda g, y, a, b: g * _wins(a, b))),
    "multiply": ("01", (lambda g, y, a, b: g * _c(b), lambda g, y, a, b: g * _c(a))),
    "negative": ("", (lambda g, y, a: -g,)),
    "positive": ("", (lambda g, y, a: g,)),
    "power": ("01y", (lambda g, y, a, b: g * _c(b * a ** (b - 1)), lambda g, y, a, b: g * _c(y * np.log(a)))),
    "reciprocal": ("y", (lambda g, y, a: -g * _c(y * y),)),
    "sin": ("0", (lambda g, y, a: g * np.cos(_c(a)),)),
    "sinh": ("0", (lambda g, y, a: g * np.cosh(_c(a)),)),
    "sqrt": ("y", (lambda g, y, a: 0.5 * g / _c(y),)),
    "square": ("0", (lambda g, y, a: 2.0 * g * _c(a),)),
    "subtract": ("", (lambda g, y, a, b: g, lambda g, y, a, b: -g)),
    "tan": ("y", (lambda g, y, a: g * _c(1.0 + y * y),)),
    "tanh": ("y", (lambda g, y, a: g * _c(1.0 - y * y),)),
}
# Rules for real numbers only.
_REAL = {"absolute", "maximum", "minimum"}


def has_rule(name: str, operands: Sequence[Any], out: Any) -> bool:
    """Whether the derivative of an operator is known."""
    dtypes = [operand.dtype for operand in operands if hasattr(operand, "dtype")]
    is_known = all(str(dtype) in FLOATS or dtype.kind in "biu" for dtype in dtypes)
    if name in _REAL:
        is_known &= all(dtype.kind != "c" for dtype in dtypes)
    own = out[0] if isinstance(out, tuple) else out
    return is_known and (own is None or isinstance(own, DeviceNDArray))


class Operation:
    """An operator or a sum of device arrays."""

    def __init__(self, name: str, operands: Sequence[Any], axis: Any, keepdims: bool, stream: Any) -> None:
        self._name, self._axis, self._keepdims, self._stream = name, axis, keepdims, stream
        self._operands = list(operands)
        self._contents: dict[int, Contents] = {}
        self._result: Any = None
        self._known: Contents | None = None

    def prepare(self, contents_of: Callable[[DeviceNDArray], Contents]) -> None:
        """Note the contents of operands that the derivative needs, before the operator runs."""
        needs = "" if self._name == "sum" else RULES[self._name][0]
        for number, operand in enumerate(self._operands):
            if str(number) not in needs:
                continue
            if isinstance(operand, DeviceNDArray) and operand.size:
                self._contents[number] = contents_of(operand)
            elif isinstance(operand, np.ndarray):
                self._operands[number] = operand.copy()

    def finish(self, result: DeviceNDArray, contents_of: Callable[[DeviceNDArray], Contents]) -> None:
        """Note the result, after the operator has run."""
        self._result = result
        if self._name != "sum" and "y" in RULES[self._name][0] and result.size:
            self._known = contents_of(result)

    def arrays(self) -> list[DeviceNDArray]:
        """Give the arrays that have adjoints."""
        floats = [operand for operand in self._operands if _has_adjoint(operand)]
        return [*floats, self._result]

    def reverse(self, adjoints: Adjoints) -> None:
        """Add to the adjoints of the operands."""
        if not adjoints.has(self._result):
            return
        view = adjoints.of(self._result)
        g = copied(view, self._stream)
        view.setitem(..., 0, self._stream)
        y = self._result if self._known is None else self._known.view(self._result)
        values = [
            self._contents[number].view(operand) if number in self._contents else operand
            for number, operand in enumerate(self._operands)
        ]
        for number, operand in enumerate(self._operands):
            if _has_adjoint(operand):
                term = self._spread(g, operand) if self._name == "sum" else RULES[self._name][1][number](g, y, *values)
                add_reduced(adjoints.of(operand), term, self._stream)

    def _spread(self, g: DeviceNDArray, operand: DeviceNDArray) -> DeviceNDArray:
        """Give the adjoint of a sum for each of its elements."""
        from weft.cuda._memory.copies import spread
        from weft.cuda._ufunc.reductions import axes_of

        axes = axes_of(self._axis, operand.ndim)
        shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(operand.shape))
        return spread(g.reshape(shape), operand.shape)


def _has_adjoint(operand: Any) -> bool:
    return isinstance(operand, DeviceNDArray) and str(operand.dtype) in FLOATS
