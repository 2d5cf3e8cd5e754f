"""`backward="auto"`: an operator's gradients by the adjoint kernel of its kernel, which is an operator itself.

The adjoint operator takes the operator's arguments, its results, and their gradients; it returns an array of zeros to
which the kernel has added the gradient, for each array of floats that the operator takes.

If the reverse sweep needs values of loops without a constant bound, an adjoint operator consists of two operators: one
counts the bytes that a thread stores, and the other takes the memory.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft._operators.description import READ, RESULT, TENSOR, WRITTEN, Description, Parameter
from weft._weft import Type, parse_signature, typeof_value
from weft.cuda._derivatives import FLOATS
from weft.cuda._derived_kernel import COUNTED, GIVEN, NEEDS_SCRATCH, derived_kernel, has_code
from weft.cuda._rules import like, translated
from weft.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


@dataclass
class Parts:
    """The operators that an adjoint operator with scratch memory consists of.

    Both take its arguments and an array of `int64`, the last one: the one that counts leaves the most bytes of a thread
    in its only element, the other one has it as scratch memory. They overwrite the arguments in place of results, which
    are 0 as results are before the kernel; the one that counts takes the operator's arrays in place of their gradients.
    """

    counting: Description
    storing: Description
    # The launch rule.
    launch: str


class Adjoint:
    """The adjoint operator of an operator.

    Attributes
    ----------
    description
        The adjoint operator.
    numbers
        The parameters of the kernel that have adjoints.
    """

    def __init__(self, of: Description, first: Adjoint | None = None) -> None:
        # For a second derivative, the operator is that of the first one.
        self.first = first
        if of.written and first is None:
            msg = (
                f'{of.name}: backward="auto" needs an operator that writes no array of its caller, but the kernel '
                f"writes `{of.written[0].name}`: give it an output rule"
            )
            raise ValueError(msg)
        self.of = of
        self.numbers = [i for i, parameter in enumerate(of.parameters) if _has_derivative(parameter)]
        for role, what in ((READ, "takes"), (RESULT, "returns")):
            if not any(of.parameters[number].role == role for number in self.numbers):
                msg = (
                    f'{of.name}: backward="auto" needs gradients, but the operator {what} no array of floats or '
                    "complex numbers"
                )
                raise TypeError(msg)
        self.description = self._described()

    def _described(self) -> Description:
        of = self.of
        names = {parameter.name for parameter in of.parameters}
        parameters = [Parameter(p.name, p.kind, READ, p.dtype, p.default) for p in of.parameters]
        outputs = {}
        for number in self.numbers:
            parameter = of.parameters[number]
            name = f"{parameter.name}_adjoint"
            while name in names:
                name += "_"
            names.add(name)
            role = WRITTEN if parameter.role == RESULT else RESULT
            parameters.append(Parameter(name, TENSOR, role, parameter.dtype))
            if role == RESULT:
                rule = like(self._like(number), fill=0)
                (made,) = translated(of.kernel.py_func, None, rule)["out"].values()
                outputs[name] = str(made)
        signatures = [parse_signature(self._types(signature.args)) for signature in of.signatures]
        namespace, colons, short = of.name.rpartition("::")
        name = f"{namespace}{colons}_{short}_adjoint"
        return Description(name, self._kernel(0), signatures, parameters, of.launch, outputs, discards=True)

    def _kernel(self, scratch: int) -> Any:
        # The first adjoint operator takes the gradients before its kernel overwrites them. With scratch memory, the
        # call passes new arrays in place of results.
        has_old_contents = self.first is not None or scratch != 0
        return derived_kernel(self.of.kernel, self.numbers, has_old_contents=has_old_contents, scratch=scratch)

    def needs_scratch(self) -> bool:
        """Whether the adjoint kernel takes scratch memory."""
        if self.first is not None:
            return False
        memory = typeof_value(np.zeros(1, np.int64))
        for signature in self.description.signatures:
            try:
                self.description.kernel.effects(tuple(signature.args))
            except CompileError as error:
                # Other errors are those of a call.
                if not has_code(error, NEEDS_SCRATCH):
                    return False
                try:
                    self._kernel(GIVEN).effects((*signature.args, memory))
                except CompileError:
                    return False
                return True
        return False

    def parts(self) -> Parts:
        """Return the operators with scratch memory."""
        own, memory = self.description, typeof_value(np.zeros(1, np.int64))
        name = "scratch"
        while any(parameter.name == name for parameter in own.parameters):
            name += "_"
        scratch = Parameter(name, TENSOR, WRITTEN, memory.dtype)
        signatures = [parse_signature((*signature.args, memory)) for signature in own.signatures]
        count = len(self.of.parameters)
        stands_in = {parameter.name for parameter in self.of.results}

        def made(scratch_of: int, name: str, roles: list[str], outputs: dict[str, str]) -> Description:
            parameters = [
                Parameter(p.name, p.kind, role, p.dtype, p.default)
                for p, role in zip(own.parameters, roles, strict=True)
            ]
            kernel = self._kernel(scratch_of)
            return Description(
                own.name + name, kernel, signatures, [*parameters, scratch], own.launch, outputs, discards=True
            )

        roles = [WRITTEN if parameter.name in stands_in else parameter.role for parameter in own.parameters]
        counted = [*roles[:count], *(READ for _ in roles[count:])]
        return Parts(made(COUNTED, "_count", counted, {}), made(GIVEN, "_store", roles, own.outputs), own.launch)

    def _like(self, number: int) -> str:
        """Give the parameter of the program's kernel that has the shape of a parameter."""
        if self.first is not None and number >= len(self.first.of.parameters):
            number = self.first.numbers[number - len(self.first.of.parameters)]
        return self.of.parameters[number].name

    def _types(self, args: Sequence[Type]) -> tuple[Type, ...]:
        adjoints = (Type.make_array(args[i].dtype, args[i].ndim, args[i].layout, False) for i in self.numbers)
        return (*args, *adjoints)

    @property
    def takes_results(self) -> bool:
        """Whether a result has no gradient that stands for it: the kernel reads the extents of its results."""
        results = [i for i, parameter in enumerate(self.of.parameters) if parameter.role == RESULT]
        return not set(results) <= set(self.numbers)

    def arguments(self, given: Sequence[Any], results: Any) -> list[Any]:
        """Return the arguments of the adjoint operator.

        Parameters
        ----------
        given
            The gradients of the results, and the operator's arguments.
        results
            The results, or None if their gradients stand for them.
        """
        parameters = self.of.parameters
        count = len(self.of.results)
        grads, inputs = list(given[:count]), iter(given[count:])
        made = grads if results is None else list(results) if isinstance(results, (tuple, list)) else [results]
        stand_ins = iter(made)
        args = [next(stand_ins if parameter.role == RESULT else inputs) for parameter in parameters]
        by_result = [i for i, parameter in enumerate(parameters) if parameter.role == RESULT]
        return [*args, *(grad for i, grad in zip(by_result, grads, strict=True) if i in self.numbers)]

    def gradients(self, found: Any) -> list[Any]:
        """Return the gradients of the operator's arrays, None for those without one.

        Parameters
        ----------
        found
            The gradients of those that have one, in order.
        """
        rest = iter(found if isinstance(found, (tuple, list)) else (found,))
        arrays = [i for i, p in enumerate(self.of.parameters) if p.role != RESULT and p.kind == TENSOR]
        return [next(rest) if i in self.numbers else None for i in arrays]


def _has_derivative(parameter: Parameter) -> bool:
    return parameter.kind == TENSOR and str(parameter.dtype) in FLOATS


def _no_third_derivative(name: str) -> str:
    """Return the message about a gradient of the adjoint operator of an adjoint operator."""
    return (
        f'{name}: backward="auto" has no third derivative: give the operator a backward= function of differentiable '
        "operations"
    )


def torch_backward(torch: Any, of: Description, register: Callable[[Adjoint], Any], functions: Any) -> Any:
    """Return the function for the gradients of an operator of PyTorch.

    Parameters
    ----------
    torch
        The module.
    of
        The operator.
    register
        Registers an adjoint operator, and returns it.
    functions
        Makes autograd functions around an operator.
    """
    first = Adjoint(of)

    def refuse(*_args: Any) -> Any:
        raise RuntimeError(_no_third_derivative(of.name))

    @functools.cache
    def of_second() -> Any:
        return _torch_function(torch, Adjoint(first.description, first), register, functions, refuse)

    return _torch_function(torch, first, register, functions, lambda *given: of_second()(*given))


def _torch_function(torch: Any, adjoint: Adjoint, register: Any, functions: Any, further: Callable[..., Any]) -> Any:
    """Return the function for the gradients of an operator, and of these by a further one."""
    op = register(adjoint)
    is_compiling = torch.compiler.is_compiling
    written = len([p for p in adjoint.description.parameters if p.role == WRITTEN])

    def functional(*args: Any) -> Any:
        plain = [
            arg.resolve_conj().resolve_neg().contiguous() if isinstance(arg, torch.Tensor) else arg for arg in args
        ]
        # The kernel overwrites these.
        plain[-written:] = [grad.clone() for grad in plain[-written:]]
        return op(*plain)

    function, _ = functions(torch, adjoint.description, functional, (further, False))

    def backward(*given: Any) -> list[Any]:
        args = adjoint.arguments(given, None)
        return adjoint.gradients(functional(*args) if is_compiling() else function.apply(*args))

    def backward_of_results(*given: Any, results: Any) -> list[Any]:
        args = adjoint.arguments(given, results)
        return adjoint.gradients(functional(*args) if is_compiling() else function.apply(*args))

    return backward_of_results if adjoint.takes_results else backward


def jax_backward(jax: Any, of: Description, make: Callable[[Adjoint, Any], Any]) -> Any:
    """Return the function for the gradients of a call of JAX.

    Parameters
    ----------
    jax
        The module.
    of
        The call.
    make
        Makes a call of JAX of an adjoint operator and of the function for its gradients.
    """
    first = Adjoint(of)

    @functools.cache
    def of_second() -> Any:
        return _jax_function(jax, Adjoint(first.description, first), make, refuse)

    def refuse(*_given: Any) -> Any:
        raise ValueError(_no_third_derivative(of.name))

    def further(*given: Any, results: Any) -> Any:
        return of_second()(*given, results=results)

    return _jax_function(jax, first, make, further)


def _jax_function(jax: Any, adjoint: Adjoint, make: Callable[[Adjoint, Any], Any], further: Any) -> Any:
    """Return the function for the gradients of a call, and of these by a further one."""
    of = adjoint.of
    call = make(adjoint, further)
    roles = [p.role for p in adjoint.description.parameters if p.role != READ]
    # A call also returns the arrays that it writes. Those of an adjoint call have no gradients.
    returned_roles = [p.role for p in of.parameters if p.role != READ]

    def conjugate(value: Any) -> Any:
        return jax.numpy.conj(value) if jax.numpy.iscomplexobj(value) else value

    def backward(*given: Any, results: Any) -> list[Any]:
        count = len(returned_roles)
        grads = [conjugate(grad) for grad, role in zip(given[:count], returned_roles, strict=True) if role == RESULT]
        for parameter, value in zip(of.inputs, given[count:], strict=True):
            if parameter.kind != TENSOR and hasattr(value, "aval"):
                msg = (
                    f'{of.name}: backward="auto" needs the value of `{parameter.name}` when JAX traces the call: make '
                    "it a static argument, or pass an array of one element"
                )
                raise TypeError(msg)
        returned = call(*adjoint.arguments([*grads, *given[count:]], results if adjoint.takes_results else None))
        several = returned if isinstance(returned, (tuple, list)) else (returned,)
        found = [conjugate(one) for one, role in zip(several, roles, strict=True) if role == RESULT]
        return adjoint.gradients(found)

    return backward
