"""A kernel as an operator of PyTorch: `kernel.as_torch_op("namespace::name", launch=…, out=…)`.

torch.library has the schema, the fake implementation and the rule for `torch.vmap`; the implementation for the CPU and
for CUDA is native code, which torch calls without Python. libtorch's C ABI cannot change version counters or see
gradients: the callable object increments the counter of an array that the kernel writes, and refuses one whose gradient
is recorded.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft._operators import symbolic, torch_scratch
from weft._operators.automatic import torch_backward
from weft._operators.description import AUTO, BOOL, FLOAT, INT, TENSOR, backward_of, describe, gradients
from weft._weft import DirectCall, torch_lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft._operators.automatic import Adjoint
    from weft._operators.description import Backward, Description
    from weft._weft import Dispatcher

# The least version with the functions of libtorch that are used.
LEAST_VERSION = (2, 8)
_TYPES = {TENSOR: "Tensor", INT: "int", FLOAT: "float", BOOL: "bool"}
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


@dataclass
class _Registered:
    """An operator that torch has."""

    schema: str
    # The numbers of its native implementations: for a call, and for a batch.
    native: tuple[int, int]
    # What the fake implementation and the rule for vmap use.
    current: Description
    # torch takes the operator away with its library.
    libraries: list[Any] = field(default_factory=list)


_REGISTERED: dict[str, _Registered] = {}


def as_torch_op(
    kernel: Dispatcher[..., Any], name: Any, launch: Any, out: Any, backward: Any, signature: Any
) -> TorchOperator:
    """Make an operator of PyTorch of a kernel."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        msg = f'an operator of PyTorch has a name such as "mylib::{kernel.__name__}", not {name!r}'
        raise ValueError(msg)
    torch = _torch(name)
    description = describe(name, kernel, launch, out, signature)
    if backward is not None and description.written:
        wrong = description.written[0].name
        msg = (
            f"{name}: backward= needs an operator that writes no array of its caller, but the kernel writes `{wrong}`: "
            f'give it an output rule, such as out=cuda.like("{description.inputs[0].name}")'
        )
        raise ValueError(msg)
    if backward == AUTO:
        backward = torch_backward(torch, description, lambda adjoint: _adjoint_operator(torch, adjoint), _functions)
    gradient = backward_of(name, backward)
    _register(torch, description, is_differentiable=gradient is not None)
    return TorchOperator(torch, description, gradient)


def _adjoint_operator(torch: Any, adjoint: Adjoint) -> Any:
    """Register an adjoint operator; return torch's operator."""
    if not adjoint.needs_scratch():
        return _opaque(torch, adjoint.description)

    def part(description: Description) -> Any:
        return _opaque(torch, description)

    return torch_scratch.register(torch, adjoint, schema(adjoint.description), part, _results)


def _opaque(torch: Any, description: Description) -> Any:
    """Register an operator that autograd does not see; return torch's operator."""
    _register(torch, description, is_differentiable=True)
    namespace, _, short = description.name.partition("::")
    return getattr(getattr(torch.ops, namespace), short).default


def _torch(name: str) -> Any:
    """Return the module, if it is one that operators work with."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        msg = f"{name}: PyTorch is not installed, which an operator of PyTorch needs: pip install torch"
        raise ImportError(msg) from error
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    lacks = torch_lacks()
    if version < LEAST_VERSION or lacks is not None:
        least = ".".join(map(str, LEAST_VERSION))
        missing = f" (it has no {lacks})" if lacks else ""
        msg = f"{name}: PyTorch {torch.__version__} is too old{missing}: operators need PyTorch {least} or newer"
        raise ImportError(msg)
    return torch


def schema(description: Description) -> str:
    """Return the operator's schema without its name: `(Tensor x, float a, Tensor(a!) out) -> ()`."""
    parts = []
    aliases = iter("abcdefghijklmnopqrstuvwxyz")
    for parameter in description.inputs:
        kind = _TYPES[parameter.kind]
        if parameter in description.written:
            kind = f"Tensor({next(aliases)}!)"
        default = "" if parameter.is_required else f"={_default(description, parameter)}"
        parts.append(f"{kind} {parameter.name}{default}")
    results = ["Tensor"] * len(description.results)
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join(parts)}) -> {returned}"


def _default(description: Description, parameter: Any) -> str:
    value = parameter.default
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and parameter.kind == INT:
        return str(value)
    if isinstance(value, (int, float)) and parameter.kind == FLOAT:
        return repr(float(value))
    msg = f"{description.name}: the default {value!r} of `{parameter.name}` is not {_TYPES[parameter.kind]}"
    raise TypeError(msg)


def _register(torch: Any, description: Description, *, is_differentiable: bool) -> None:
    name = description.name
    text = schema(description)
    known = _REGISTERED.get(name)
    if known is not None:
        if known.schema != text:
            msg = (
                f"{name}: the operator exists with the schema {known.schema}, and the new one is {text}: choose "
                "another name, or restart Python"
            )
            raise ValueError(msg)
        # A cell of a notebook that runs again: torch's operator stays, with the new kernel.
        call, batch = known.native
        description.native.replace_torch(call, False)
        description.native.replace_torch(batch, True)
        known.current = description
        return
    namespace, _, short = name.partition("::")
    if hasattr(getattr(torch.ops, namespace), short):
        msg = f"{name}: PyTorch has an operator of this name already: choose another one"
        raise ValueError(msg)
    library = torch.library.Library(namespace, "FRAGMENT")
    batched = f"_{short}_batched"
    tags = (torch.Tag.pt2_compliant_tag,)
    library.define(short + text, tags=tags)
    library.define(f"{batched}(int batched, int items, {text[1:]}", tags=tags)
    registered = _Registered(
        text,
        (
            description.native.register_torch(namespace, short, False),
            description.native.register_torch(namespace, batched, True),
        ),
        description,
        [library],
    )
    _REGISTERED[name] = registered
    _fakes(torch, registered, namespace, short, batched, library)
    if is_differentiable:
        library.impl(short, torch.library.fallthrough_kernel, "Autograd")
    Batching(torch, registered, namespace, short, batched).register(library)


def _fakes(torch: Any, registered: _Registered, namespace: str, short: str, batched: str, library: Any) -> None:
    def fake(*args: Any, **kwargs: Any) -> Any:
        return _results(torch, registered.current, _bound(registered.current, args, kwargs), None)

    def fake_batch(mask: int, items: Any, *args: Any) -> Any:
        description = registered.current
        single = [
            arg[0] if isinstance(arg, torch.Tensor) and mask >> index & 1 else arg
            for index, arg in _numbered(description, args)
        ]
        return _results(torch, description, single, items)

    torch.library.register_fake(f"{namespace}::{short}", fake, lib=library)
    torch.library.register_fake(f"{namespace}::{batched}", fake_batch, lib=library)


def _bound(description: Description, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the values of a call, in the order of the inputs."""
    rest = description.inputs[len(args) :]
    return [*args, *(kwargs.get(parameter.name, parameter.default) for parameter in rest)]


def _numbered(description: Description, args: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the values of the inputs, each with the number of its parameter."""
    places = [index for index, parameter in enumerate(description.parameters) if parameter in description.inputs]
    return list(zip(places, args, strict=True))


def _results(torch: Any, description: Description, args: Sequence[Any], items: Any) -> Any:
    """Empty arrays for the results of a call, each with a batch in front if there are items."""
    values: list[Any] = [None] * len(description.parameters)
    for index, arg in _numbered(description, args):
        values[index] = arg
    device = _device(torch, description, values)
    made = []
    for parameter in description.results:
        rule = symbolic.parse(description.outputs[parameter.name])
        extents = symbolic.shape(rule, values)
        how, of = symbolic.dtype_of(rule)
        if how == "like":
            dtype = values[int(of)].dtype
        else:
            element = str(parameter.dtype) if how == "declared" else str(of)
            dtype = getattr(torch, "bool" if element == "boolean" else element)
        shape = extents if items is None else (items, *extents)
        made.append(torch.empty(shape, dtype=dtype, device=device))
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def _device(torch: Any, description: Description, values: Sequence[Any]) -> Any:
    """Return the device that all arrays are on."""
    device, first = None, ""
    for parameter, value in zip(description.parameters, values, strict=True):
        if not isinstance(value, torch.Tensor):
            continue
        if device is None:
            device, first = value.device, parameter.name
        elif value.device != device:
            msg = (
                f"{description.name}: `{parameter.name}` is on {value.device}, but `{first}` is on {device}: move it "
                f'with `{parameter.name}.to("{device}")`'
            )
            raise RuntimeError(msg)
    return device


class Batching:
    """The rules of an operator for `torch.vmap`: one call for all items of a batch."""

    def __init__(self, torch: Any, registered: _Registered, namespace: str, short: str, batched: str) -> None:
        self.torch = torch
        self.registered = registered
        self.names = f"{namespace}::{short}", f"{namespace}::{batched}"
        self.batched = getattr(getattr(torch.ops, namespace), batched).default

    def register(self, library: Any) -> None:
        """Register the rules."""
        self.torch.library.register_vmap(self.names[0], self.rule, lib=library)
        self.torch.library.register_vmap(self.names[1], self.rule_for_batches, lib=library)

    def rule(self, info: Any, dims: Sequence[int | None], *args: Any) -> Any:
        """Return the rule of the operator itself."""
        description = self.registered.current
        mask, values = 0, []
        for (index, arg), dim in zip(_numbered(description, args), dims, strict=True):
            parameter = description.parameters[index]
            if dim is None and parameter in description.written and description.discards:
                mask |= 1 << index
                values.append(arg.expand(info.batch_size, *arg.shape).clone())
            elif dim is None:
                if parameter in description.written:
                    msg = (
                        f"{description.name}: vmap cannot write `{parameter.name}`, which has no batch: give it one "
                        "with in_dims, or make the operator functional with out="
                    )
                    raise RuntimeError(msg)
                values.append(arg)
            else:
                mask |= 1 << index
                values.append(arg.movedim(dim, 0))
        return self._with_dims(self.batched(mask, info.batch_size, *values))

    def rule_for_batches(self, info: Any, dims: Sequence[int | None], mask: int, items: int, *args: Any) -> Any:
        """Return the rule for a batch of batches: one batch of all their items."""
        description, size = self.registered.current, info.batch_size
        outer, values, copies = 0, [], []
        for (index, arg), dim in zip(_numbered(description, args), dims[2:], strict=True):
            if not isinstance(arg, self.torch.Tensor):
                values.append(arg)
                continue
            parameter = description.parameters[index]
            both = arg.movedim(dim, 0) if dim is not None else arg.expand(size, *arg.shape)
            if not mask >> index & 1:
                both = both.unsqueeze(1).expand(size, items, *both.shape[1:])
            flat = both.reshape(size * items, *both.shape[2:])
            if parameter in description.written and description.discards:
                flat = flat.clone()
            elif parameter in description.written:
                if dim is None or not mask >> index & 1:
                    msg = f"{description.name}: vmap cannot write `{parameter.name}`, which has no batch"
                    raise RuntimeError(msg)
                copies.append((both, flat))
            outer |= 1 << index
            values.append(flat)
        results = self.batched(outer, size * items, *values)
        for both, flat in copies:
            # `reshape` has made a copy where the dimensions cannot be one.
            if both.data_ptr() != flat.data_ptr():
                both.copy_(flat.reshape(both.shape))
        if results is None:
            return None, None
        several = results if isinstance(results, (tuple, list)) else [results]
        split = tuple(result.reshape(size, items, *result.shape[1:]) for result in several)
        return self._with_dims(split if isinstance(results, (tuple, list)) else split[0])

    @staticmethod
    def _with_dims(results: Any) -> Any:
        if results is None:
            return None, None
        return results, tuple(0 for _ in results) if isinstance(results, (tuple, list)) else 0


class TorchOperator:
    """Return a kernel as an operator of PyTorch.

    Calling it launches the kernel in torch's current stream, or on the CPU where the arrays are there. It works under
    `torch.compile`, `torch.export` and `torch.vmap`.

    Attributes
    ----------
    op
        torch's own operator, `torch.ops.namespace.name.default`. A call of it neither counts a change of an array that
        the kernel writes, nor refuses one whose gradient is recorded.
    """

    def __init__(self, torch: Any, description: Description, backward: Backward | None) -> None:
        namespace, _, short = description.name.partition("::")
        self.op = getattr(getattr(torch.ops, namespace), short).default
        self.name = description.name
        self.schema = schema(description)
        self.kernel = description.kernel
        self.__name__ = short
        self.__doc__ = description.kernel.__doc__
        self._torch = torch
        self._description = description
        self._is_compiling = torch.compiler.is_compiling
        self._is_traced = torch.compiler.is_dynamo_compiling
        self._written = [
            (index, parameter.name)
            for index, parameter in enumerate(description.inputs)
            if parameter in description.written
        ]
        self._increment_version = torch.autograd.graph.increment_version
        self._function: Any = None
        self._traced: Any = None
        if backward is not None:
            self._function, self._traced = _functions(torch, description, self.op, backward)
        self._road = self.op if self._function is None else self._function.apply
        self._direct = _direct(torch, description)
        self._arity = len(description.inputs)
        self._has_results = bool(description.results)
        self._launch = None if self._has_results else self._direct

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator."""
        if kwargs or len(args) != self._arity:
            args = self._description.complete(args, kwargs)
        # The shortest road: its test of modes covers all that trace calls but torch.compile.
        if self._launch is not None and not self._is_traced() and self._launch(args):
            return None
        # torch.compile traces these calls, in this form.
        if self._is_compiling():
            return self.op(*args) if self._traced is None else self._traced.apply(*args)
        if self._has_results and self._direct is not None and self._direct.is_plain(args):
            return self._dispatched(args, self.op)
        if self._function is None and self._torch.is_grad_enabled():
            self._refuse_gradients(args)
        return self._dispatched(args, self._road)

    def _dispatched(self, args: tuple[Any, ...], road: Callable[..., Any]) -> Any:
        """Return the result of a call that PyTorch dispatches."""
        for index, name in self._written:
            array = args[index]
            # PyTorch's own fallback for these corrupts its memory.
            if isinstance(array, self._torch.Tensor) and (array.is_neg() or array.is_conj()):
                msg = (
                    f"{self.name}: `{name}` is written, but is a conjugated or negated view: pass "
                    f"`{name}.resolve_conj().resolve_neg()`"
                )
                raise RuntimeError(msg)
        try:
            results = road(*args)
        except RuntimeError as error:
            raise self._explained(error, args) from None
        for index, _ in self._written:
            self._increment_version(args[index])
        return results

    def _refuse_gradients(self, args: Sequence[Any]) -> None:
        """Refuse arrays whose gradients are recorded: the operator has none."""
        for parameter, arg in zip(self._description.inputs, args, strict=True):
            if parameter.kind == TENSOR and getattr(arg, "requires_grad", False):
                if parameter in self._description.written:
                    fix = f"pass `{parameter.name}.detach()`, or call it under torch.no_grad()"
                    msg = f"{self.name}: `{parameter.name}` is written, and requires grad: {fix}"
                else:
                    fix = f"give as_torch_op a backward=, pass `{parameter.name}.detach()`, or use torch.no_grad()"
                    msg = f"{self.name}: `{parameter.name}` requires grad, but the operator has no backward: {fix}"
                raise RuntimeError(msg)

    def _explained(self, error: RuntimeError, args: Sequence[Any]) -> Exception:
        """Return an error of a call, in the words of this operator where torch's own do not say what is wrong."""
        text = str(error)
        for parameter, arg in zip(self._description.inputs, args, strict=True):
            if parameter.kind != TENSOR:
                continue
            if not isinstance(arg, self._torch.Tensor):
                kind = f"{type(arg).__module__}.{type(arg).__name__}".removeprefix("builtins.")
                return TypeError(
                    f"{self.name}: `{parameter.name}` is a {kind}, not a torch.Tensor: convert it with "
                    "torch.as_tensor(…)"
                )
            if arg.layout != self._torch.strided:
                return TypeError(f"{self.name}: `{parameter.name}` is {arg.layout}: convert it with `.to_dense()`")
        if text.startswith(f"{self.name}: "):
            return RuntimeError(text)
        for parameter, arg in zip(self._description.inputs, args, strict=True):
            if parameter.kind != TENSOR and isinstance(arg, self._torch.Tensor):
                return TypeError(f"{self.name}: `{parameter.name}` is a tensor, not a number: pass `x.item()`")
            if parameter.kind != TENSOR and not isinstance(arg, (bool, int, float)):
                return TypeError(
                    f"{self.name}: `{parameter.name}` is a {type(arg).__name__}, not {_TYPES[parameter.kind]}"
                )
            if parameter.kind in {INT, BOOL} and isinstance(arg, float):
                return TypeError(
                    f"{self.name}: `{parameter.name}` is the float {arg}, not {_TYPES[parameter.kind]}: pass int({arg})"
                )
        return error

    def __repr__(self) -> str:
        return f"<operator {self.name}{self.schema} of kernel {self.kernel.__name__}>"


def _direct(torch: Any, description: Description) -> DirectCall | None:
    """Return the road past PyTorch's dispatcher, where this version says which modes change what calls do."""
    private = torch._C
    states = [
        getattr(private, "_len_torch_dispatch_stack", None),
        getattr(private, "_len_torch_function_stack", None),
        getattr(private, "_get_tracing_state", None),
        getattr(getattr(private, "_functorch", None), "peek_interpreter_stack", None),
    ]
    increment = getattr(private, "_increment_version", None)
    known = [state for state in states if state is not None]
    if increment is None or len(known) < len(states):
        return None
    classes = [torch.Tensor, torch.nn.Parameter]
    return DirectCall(description.native, classes, known, torch.is_grad_enabled, increment)


def _functions(torch: Any, description: Description, op: Any, backward: Backward) -> tuple[Any, Any]:
    """Return autograd functions around an operator, for calls and for torch.compile: outside of it, they cost least.

    torch.compile traces the methods, whose closures are therefore constants, functions and tuples. Some versions do not
    trace `setup_context`, which `torch.func` needs.
    """
    name, inputs = description.name, description.arrays
    takes_results = backward[1]

    def keep(ctx: Any, args: Any, output: Any) -> None:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if takes_results:
            tensors.extend(output if isinstance(output, tuple) else (output,))
        ctx.numbers = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        ctx.save_for_backward(*tensors)

    def pull_back(ctx: Any, *grads: Any) -> Any:
        saved = list(ctx.saved_tensors)
        args = []
        for (_, is_array), number in zip(inputs, ctx.numbers, strict=True):
            args.append(saved.pop(0) if is_array else number)
        results = saved[0] if len(saved) == 1 else tuple(saved)
        return tuple(gradients(name, inputs, backward, grads, args, results))

    class Function(torch.autograd.Function):  # type: ignore[misc]  # torch is not there for mypy
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            return op(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            keep(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return pull_back(ctx, *grads)

    class Traced(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output = op(*args)
            keep(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return pull_back(ctx, *grads)

    # Some versions find out by the number of parameters whether `forward` takes the context.
    parameters = [inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_ONLY) for parameter, _ in inputs]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)
    Function.forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    Traced.forward.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    Function.__name__ = Traced.__name__ = name.replace("::", "_")
    return Function, Traced
