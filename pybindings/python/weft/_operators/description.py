"""The description of an operator of another library: the kernel's parameters, its effects on them, and its rules."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

from weft import types
from weft._weft import Operator, parse_signature
from weft.cuda._code.annotations import signature_of
from weft.cuda._rules import rules_of
from weft.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft._weft import Dispatcher, Signature, Type

    # What to call for the gradients, and whether it takes the results.
    Backward = tuple[Callable[..., Any], bool]

READ, WRITTEN, RESULT = "r", "w", "o"
TENSOR, INT, FLOAT, BOOL = "T", "i", "f", "b"
# The value of `backward` for which the compiler derives the gradients.
AUTO = "auto"


class _Required:
    """The default of a parameter without one."""


@dataclass
class Parameter:
    """A parameter of an operator's kernel."""

    name: str
    kind: str
    role: str
    dtype: Type
    default: Any = _Required

    @property
    def is_required(self) -> bool:
        """Whether a call must pass it."""
        return self.default is _Required


@dataclass
class Description:
    """A kernel as an operator."""

    name: str
    kernel: Dispatcher[..., Any]
    signatures: Sequence[Signature]
    parameters: list[Parameter]
    launch: str
    outputs: dict[str, str]
    # Callers do not use what the kernel leaves in the arrays that it writes.
    discards: bool = False
    native: Operator = field(init=False)

    def __post_init__(self) -> None:
        self.native = Operator(
            self.name,
            self.kernel,
            [(parameter.name, parameter.kind, parameter.role) for parameter in self.parameters],
            self.launch,
            [self.outputs.get(parameter.name) for parameter in self.parameters],
            [parameter.dtype for parameter in self.parameters],
        )

    @property
    def inputs(self) -> list[Parameter]:
        """Return the parameters that a call passes."""
        return [parameter for parameter in self.parameters if parameter.role != RESULT]

    @property
    def arrays(self) -> tuple[tuple[str, bool], ...]:
        """Return the names of the inputs, and whether each is an array."""
        return tuple((parameter.name, parameter.kind == TENSOR) for parameter in self.inputs)

    def complete(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of all inputs of a call, in their order.

        Raises
        ------
        TypeError
            One is missing, is given twice, or does not exist.
        """
        inputs = self.inputs
        names = ", ".join(parameter.name for parameter in inputs)
        if len(args) > len(inputs):
            msg = f"{self.name}: it takes {len(inputs)} arguments ({names}), but {len(args)} were given"
            raise TypeError(msg)
        values = list(args)
        for parameter in inputs[len(args) :]:
            if parameter.name in kwargs:
                values.append(kwargs.pop(parameter.name))
            elif parameter.is_required:
                msg = f"{self.name}: the argument `{parameter.name}` is missing; its arguments are {names}"
                raise TypeError(msg)
            else:
                values.append(parameter.default)
        if kwargs:
            name = next(iter(kwargs))
            known = any(parameter.name == name for parameter in inputs)
            what = f"`{name}` is given twice" if known else f"there is no argument `{name}`"
            msg = f"{self.name}: {what}; its arguments are {names}"
            raise TypeError(msg)
        return tuple(values)

    @property
    def written(self) -> list[Parameter]:
        """Return the arrays of the caller that the kernel writes."""
        return [parameter for parameter in self.parameters if parameter.role == WRITTEN]

    @property
    def results(self) -> list[Parameter]:
        """Return the arrays that the operator allocates."""
        return [parameter for parameter in self.parameters if parameter.role == RESULT]


def describe(name: str, kernel: Dispatcher[..., Any], launch: Any, out: Any, signature: Any) -> Description:
    """Read a kernel's signature, its effects and its rules.

    Raises
    ------
    TypeError
        The kernel's types are not known, or are none that operators take.
    ValueError
        There is no launch rule.
    CompileError
        A rule cannot be translated.
    """
    if kernel.device:
        msg = f"{name}: `{kernel.__name__}` is a device function; an operator is made of a kernel"
        raise TypeError(msg)
    signatures = _signatures(name, kernel, signature)
    kinds = _kinds(name, kernel, signatures)
    try:
        rules = rules_of(kernel, launch, out, signatures[0])
    except (TypeError, ValueError) as error:
        if isinstance(error, CompileError):
            raise
        msg = f"{name}: {error}"
        raise type(error)(msg) from None
    if rules.launch is None:
        first = next(iter(inspect.signature(kernel.py_func).parameters), "x")
        msg = (
            f"{name}: the kernel has no launch rule; write one, such as "
            f"launch=lambda {first}: (({first}.size + 255) // 256, 256)"
        )
        raise ValueError(msg)
    parameters = _parameters(name, kernel, signatures, kinds, set(rules.outputs))
    outputs = {parameter: str(rule) for parameter, rule in rules.outputs.items()}
    return Description(name, kernel, signatures, parameters, str(rules.launch), outputs)


def _signatures(name: str, kernel: Dispatcher[..., Any], signature: Any) -> list[Signature]:
    """Return the signatures that say what the parameters are."""
    if signature is not None:
        given = signature if isinstance(signature, list) else [signature]
        return [parse_signature(one) for one in given]
    if kernel.declared_signatures:
        return list(kernel.declared_signatures)
    try:
        return [signature_of(kernel.py_func)]
    except TypeError as error:
        names = ", ".join("float32[:]" for _ in inspect.signature(kernel.py_func).parameters)
        msg = (
            f"{name}: the types of `{kernel.__name__}` are not known, so neither are the operator's parameters: write "
            f'them, such as signature="void({names})"'
        )
        raise TypeError(msg) from error


def _kinds(name: str, kernel: Dispatcher[..., Any], signatures: Sequence[Signature]) -> list[str]:
    """Return what is passed for each parameter."""
    names = list(inspect.signature(kernel.py_func).parameters)
    kinds = []
    for signature in signatures:
        if len(signature.args) != len(names):
            msg = (
                f"{name}: the signature {signature} has {len(signature.args)} types, but `{kernel.__name__}` has "
                f"{len(names)} parameters"
            )
            raise TypeError(msg)
    for index, parameter in enumerate(names):
        found = {_kind(name, parameter, signature.args[index]) for signature in signatures}
        if len(found) > 1:
            msg = f"{name}: `{parameter}` is an array in one signature and a number in another: make two operators"
            raise TypeError(msg)
        kinds.append(found.pop())
    return kinds


def _parameters(
    name: str,
    kernel: Dispatcher[..., Any],
    signatures: Sequence[Signature],
    kinds: Sequence[str],
    outputs: set[str],
) -> list[Parameter]:
    declared = inspect.signature(kernel.py_func).parameters.values()
    effects = [kernel.effects(signature) for signature in signatures]
    parameters = []
    for index, (of, kind) in enumerate(zip(declared, kinds, strict=True)):
        role = READ
        if of.name in outputs:
            role = RESULT
        elif any(effect[of.name].writes for effect in effects):
            role = WRITTEN
        default = _Required if of.default is inspect.Parameter.empty or role == RESULT else of.default
        if kind == TENSOR and default is not _Required:
            msg = f"{name}: `{of.name}` is an array and has a default; an operator takes all arrays"
            raise TypeError(msg)
        parameters.append(Parameter(of.name, kind, role, _element(signatures[0].args[index]), default))
    return parameters


def _element(ty: Type) -> Type:
    return ty.dtype if ty.kind == "array" else ty


def _kind(name: str, parameter: str, ty: Type) -> str:
    if ty.kind == "array" and ty.dtype.kind == "number":
        return TENSOR
    if ty.kind == "number":
        if ty == types.boolean:
            return BOOL
        if ty in types.integer_domain:
            return INT
        if ty in types.real_domain or str(ty) in {"float16", "bfloat16"}:
            return FLOAT
    msg = (
        f"{name}: `{parameter}` is {ty}, which an operator cannot take: it takes arrays of numbers, integers, floats "
        "and booleans"
    )
    raise TypeError(msg)


def backward_of(name: str, backward: Any) -> Backward | None:
    """Return a function that computes gradients, and whether it takes the results."""
    if backward is None:
        return None
    if not callable(backward):
        msg = (
            f"{name}: backward= takes a function of the gradients and the operator's arguments, or 'auto', not "
            f"{backward!r}"
        )
        raise TypeError(msg)
    try:
        takes_results = "results" in inspect.signature(backward).parameters
    except (TypeError, ValueError):
        takes_results = False
    return backward, takes_results


def gradients(
    name: str, inputs: Sequence[tuple[str, bool]], backward: Backward, grads: Any, args: Sequence[Any], results: Any
) -> list[Any]:
    """Call a function for the gradients of an operator's inputs; one for each, or None.

    `inputs` has the name of each, and whether it is an array. torch.compile traces this function.

    Raises
    ------
    TypeError
        It returns another number of them.
    """
    function, takes_results = backward
    given = function(*grads, *args, results=results) if takes_results else function(*grads, *args)
    given = list(given) if isinstance(given, (tuple, list)) else [given]
    arrays = [parameter for parameter, is_array in inputs if is_array]
    if len(given) != len(arrays):
        msg = (
            f"{name}: backward= returned {len(given)} gradients, but there are {len(arrays)} arrays: return one or "
            f"None for each of {', '.join(arrays)}"
        )
        raise TypeError(msg)
    found, at = [], 0
    for _, is_array in inputs:
        found.append(given[at] if is_array else None)
        at += is_array
    return found
