"""A kernel as a call of JAX: `kernel.as_jax_call(launch=…, out=…)`.

One handler of XLA's foreign function interface runs all kernels; an attribute of the call, a digest of the kernel's
code and rules, says which. Numbers that are known when JAX traces the call are attributes, too.

An adjoint kernel that takes scratch memory is two calls: one counts the bytes that a thread stores, and the handler of
the other one waits for the count, and allocates the memory.
"""

from __future__ import annotations

import functools
import hashlib
import numbers
import re
from typing import TYPE_CHECKING

import numpy as np

from weft._operators.automatic import jax_backward
from weft._operators.description import (
    AUTO,
    BOOL,
    FLOAT,
    INT,
    RESULT,
    TENSOR,
    WRITTEN,
    backward_of,
    describe,
    gradients,
)
from weft._weft import xla_handlers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft._operators.automatic import Adjoint
    from weft._operators.description import Backward, Description
    from weft._weft import Dispatcher

# The least version with `jax.ffi`.
LEAST_VERSION = (0, 5)
_SCALARS = {INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}
_TARGET = "weft"
# The handler of calls that wait for the size of their scratch memory: a command buffer cannot record them.
_WAITING = "weft_waiting"
# What the last parameter of a call is: the counts of bytes, which it writes, or memory of the size that they say.
_COUNTS, _MEMORY = "c", "m"


def as_jax_call(
    kernel: Dispatcher[..., Any], launch: Any, out: Any, backward: Any, signature: Any, name: str | None
) -> JaxCall:
    """Make a call of JAX of a kernel."""
    name = kernel.__name__ if name is None else name
    jax = _jax(name)
    description = describe(name, kernel, launch, out, signature)
    if not description.results and not description.written:
        msg = f"{name}: the kernel writes no array, so that a call of it has no result"
        raise ValueError(msg)
    if backward == AUTO:
        derived = jax_backward(jax, description, functools.partial(_adjoint_call, jax))
        return JaxCall(jax, description, backward_of(name, derived))
    return JaxCall(jax, description, backward_of(name, backward))


def _adjoint_call(jax: Any, adjoint: Adjoint, further: Any) -> JaxCall:
    backward = backward_of(adjoint.description.name, further)
    if adjoint.needs_scratch():
        return _WithScratch(jax, adjoint, backward)
    return JaxCall(jax, adjoint.description, backward)


def _jax(name: str) -> Any:
    """Return the module, if it is one that calls work with."""
    try:
        import jax  # type: ignore[import-not-found,unused-ignore]
        import jax.numpy  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        msg = f"{name}: JAX is not installed, which a call of JAX needs: pip install jax"
        raise ImportError(msg) from error
    version = tuple(int(part) for part in re.findall(r"\d+", jax.__version__)[:2])
    if version < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        msg = f"{name}: JAX {jax.__version__} is too old: calls need JAX {least} or newer"
        raise ImportError(msg)
    _register_handlers(jax)
    return jax


@functools.cache
def _register_handlers(jax: Any) -> None:
    """Register the handlers: that for CUDA does no harm where there is no GPU."""
    cpu, cuda, waiting = map(jax.ffi.pycapsule, xla_handlers())
    for target, of_cuda in ((_TARGET, cuda), (_WAITING, waiting)):
        jax.ffi.register_ffi_target(target, cpu, platform="cpu")
        jax.ffi.register_ffi_target(target, of_cuda, platform="CUDA")


class JaxCall:
    """A kernel as a function of JAX.

    It takes the arrays that the kernel reads and the numbers, and returns the arrays that the kernel writes: one, or a
    tuple in the order of the parameters. An array that the kernel writes in place is passed, and its new contents are
    returned. It works under `jax.jit`, `jax.vmap`, `jax.shard_map`, and `jax.grad` where it has a `backward`.
    """

    def __init__(self, jax: Any, description: Description, backward: Backward | None, scratch: str = "") -> None:
        self.name = description.name
        self.kernel = description.kernel
        self.__name__ = description.kernel.__name__
        self.__doc__ = description.kernel.__doc__
        self._jax = jax
        self._description = description
        self._scratch = {len(description.parameters) - 1: scratch} if scratch else {}
        self._id = self._number()
        description.native.register_xla(self._id)
        call = self._call if backward is None else _differentiable(jax, description, self._call, backward)
        # A call outside of `jit` would compile each time.
        self._jitted = jax.jit(call, static_argnums=0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel."""
        values = self._description.complete(args, kwargs)
        static, arrays = [], []
        for index, (parameter, value) in enumerate(zip(self._description.inputs, values, strict=True)):
            if parameter.kind != TENSOR and isinstance(value, (numbers.Real, np.bool_)):
                static.append((index, _number(self.name, parameter, value)))
            elif parameter.kind == TENSOR and not hasattr(value, "shape"):
                msg = (
                    f"{self.name}: `{parameter.name}` is a {type(value).__name__}, not an array: convert it with "
                    "jax.numpy.asarray(…)"
                )
                raise TypeError(msg)
            elif parameter.kind != TENSOR and getattr(value, "shape", None) != ():
                msg = f"{self.name}: `{parameter.name}` is not a number but a {type(value).__name__}"
                raise TypeError(msg)
            else:
                arrays.append(value)
        try:
            return self._jitted(tuple(static), *arrays)
        except ValueError as error:
            if "cannot be differentiated" not in str(error):
                raise
            msg = f"{self.name}: the call has no backward, so that JAX cannot differentiate it: give as_jax_call one"
            raise ValueError(msg) from None

    def _call(self, static: Sequence[tuple[int, Any]], *arrays: Any) -> Any:
        """Return the traced call."""
        jax, description = self._jax, self._description
        numbers_of = dict(static)
        rest = iter(arrays)
        inputs = [numbers_of[i] if i in numbers_of else next(rest) for i in range(len(description.inputs))]
        given = iter(inputs)
        values: list[Any] = [None if parameter.role == RESULT else next(given) for parameter in description.parameters]
        described = self._described(values)
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        specs: list[Any] = []
        aliases: dict[int, int] = {}
        for index, (parameter, value) in enumerate(zip(description.parameters, values, strict=True)):
            if parameter.role == RESULT:
                shape, dtype = description.native.result(index, described)
                described[index] = (_dtype(dtype), list(shape))
                if _starts_with_zeros(description.outputs[parameter.name]):
                    attributes[f"z{index}"] = True
                    aliases[len(operands)] = len(specs)
                    operands.append(jax.numpy.zeros(shape, _dtype(dtype)))
                specs.append(jax.ShapeDtypeStruct(tuple(shape), _dtype(dtype)))
                continue
            if isinstance(value, np.generic):
                attributes[f"s{index}"] = value.item()
                continue
            if scratch := self._scratch.get(index):
                attributes[f"{scratch}{index}"] = True
            if scratch == _MEMORY:
                operands.append(value)
                continue
            if parameter.role == WRITTEN:
                aliases[len(operands)] = len(specs)
                specs.append(jax.ShapeDtypeStruct(value.shape, value.dtype))
            operands.append(value)
        first = next(
            spec for spec, parameter in zip(described, description.parameters, strict=True) if parameter.kind == TENSOR
        )
        self._prepare(described)
        target = _WAITING if _MEMORY in self._scratch.values() else _TARGET
        call = jax.ffi.ffi_call(target, specs, vmap_method="broadcast_all", input_output_aliases=aliases)
        results = call(*operands, weft=self._id, rank=len(first[1] or ()), **attributes)
        return results[0] if len(results) == 1 else tuple(results)

    def traced(self, values: Sequence[Any]) -> Any:
        """Call the kernel in a function that JAX traces; numbers are of NumPy's types."""
        static = [(index, value) for index, value in enumerate(values) if isinstance(value, np.generic)]
        return self._call(static, *(value for value in values if not isinstance(value, np.generic)))

    def _described(self, values: Sequence[Any]) -> list[tuple[Any, list[int] | None]]:
        """Return the values as native code describes them: dtypes and shapes of arrays, and numbers."""
        described: list[tuple[Any, list[int] | None]] = []
        for index, (parameter, value) in enumerate(zip(self._description.parameters, values, strict=True)):
            if value is None:
                described.append((0, None))
            elif index in self._scratch:
                described.append((np.dtype(np.int64), [1]))
            elif parameter.kind == TENSOR:
                try:
                    shape = [int(extent) for extent in value.shape]
                except Exception as error:
                    msg = f"{self.name}: `{parameter.name}` has the shape {value.shape}: its extents must be integers"
                    raise TypeError(msg) from error
                described.append((np.dtype(value.dtype), shape))
            else:
                # A number that JAX computes: its value is not known.
                described.append((value if isinstance(value, tuple(_SCALARS.values())) else 1, None))
        return described

    def _prepare(self, described: Sequence[Any]) -> None:
        """Compile and load the kernel: an error is one of the line that calls, and a recorded call loads nothing."""
        if self._jax.default_backend() == "gpu":
            for device in self._jax.local_devices():
                self._description.native.prepare(described, device.local_hardware_id)
        else:
            self._description.native.prepare(described)

    def _number(self) -> int:
        """Return the number of the kernel with its rules: the same in every process."""
        description = self._description
        code = description.native.digest(description.signatures[0])
        rules = repr((description.name, description.launch, sorted(description.outputs.items())))
        return int.from_bytes(hashlib.sha256(f"{code} {rules}".encode()).digest()[:8], "little") >> 1  # an int64

    def __repr__(self) -> str:
        return f"<JAX call of kernel {self.kernel.__name__}>"


class _WithScratch(JaxCall):
    """An adjoint call whose kernel takes scratch memory."""

    def __init__(self, jax: Any, adjoint: Adjoint, backward: Backward | None) -> None:
        parts = adjoint.parts()
        self._adjoint = adjoint
        self._counting = JaxCall(jax, parts.counting, None, _COUNTS)
        self._storing = JaxCall(jax, parts.storing, None, _MEMORY)
        super().__init__(jax, adjoint.description, backward)

    def _call(self, static: Sequence[tuple[int, Any]], *arrays: Any) -> Any:
        """Return the traced calls."""
        of, zeros = self._adjoint.of, self._jax.numpy.zeros
        known, rest = dict(static), iter(arrays)
        inputs = [known[i] if i in known else next(rest) for i in range(len(self._description.inputs))]
        own, grads = inputs[: len(of.parameters)], inputs[len(of.parameters) :]
        fresh = [
            zeros(value.shape, value.dtype) if parameter.role == RESULT else value
            for parameter, value in zip(of.parameters, own, strict=True)
        ]
        # An integer of 64 bits, which JAX may not have.
        counts = zeros(2, np.int32)
        counted = self._counting.traced([*fresh, *(own[i] for i in self._adjoint.numbers), counts])
        counts = counted[-1] if isinstance(counted, tuple) else counted
        results = self._storing.traced([*fresh, *grads, counts])
        # The first ones stand in for results.
        results = results[len(of.results) :]
        return results[0] if len(results) == 1 else results


def _starts_with_zeros(rule: str) -> bool:
    """Return whether an output rule fills its array."""
    return rule.endswith(" zeros)")


def _number(name: str, parameter: Any, value: Any) -> Any:
    """Return a number as an attribute."""
    if parameter.kind in {INT, BOOL} and not isinstance(value, (numbers.Integral, np.bool_)):
        msg = f"{name}: `{parameter.name}` is the float {value}, not an integer: pass int({value})"
        raise TypeError(msg)
    return _SCALARS[parameter.kind](value)


def _dtype(dtype: Any) -> Any:
    """NumPy's dtype of a type of weft."""
    if str(dtype) == "bfloat16":
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype("bool" if str(dtype) == "boolean" else str(dtype))


def _differentiable(jax: Any, description: Description, call: Any, backward: Backward) -> Any:
    """Return the call with the gradients of a function."""

    def merged(static: Sequence[tuple[int, Any]], arrays: Sequence[Any]) -> list[Any]:
        known, rest = dict(static), iter(arrays)
        return [known[i].item() if i in known else next(rest) for i in range(len(description.inputs))]

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def function(static: Sequence[tuple[int, Any]], *arrays: Any) -> Any:
        return call(static, *arrays)

    def forward(static: Sequence[tuple[int, Any]], *arrays: Any) -> Any:
        # Not the call itself: a second derivative is that of this function, too.
        results = function(static, *arrays)
        return results, (arrays, results if backward[1] else None)

    def pull_back(static: Sequence[tuple[int, Any]], kept: Any, grads: Any) -> Any:
        arrays, results = kept
        several = grads if isinstance(grads, tuple) else (grads,)
        found = gradients(description.name, description.arrays, backward, several, merged(static, arrays), results)
        known = dict(static)
        of_arrays = [found[i] for i in range(len(description.inputs)) if i not in known]
        return tuple(_cotangent(jax, array, grad) for array, grad in zip(arrays, of_arrays, strict=True))

    function.defvjp(forward, pull_back)
    return function


def _cotangent(jax: Any, array: Any, grad: Any) -> Any:
    """Return a gradient as JAX wants it: for integers there is a type without values."""
    if not jax.numpy.issubdtype(array.dtype, jax.numpy.inexact):
        return np.zeros(array.shape, jax.dtypes.float0)
    return jax.numpy.zeros(array.shape, array.dtype) if grad is None else grad
