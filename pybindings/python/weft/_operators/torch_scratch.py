"""Adjoint operators of PyTorch whose kernels take scratch memory: values of loops without a constant bound.

The implementation is Python: an operator counts the bytes that a thread stores, the call waits for it, torch allocates
the memory, and another operator has it. To torch it is one operator, which `torch.compile` does not look into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft._operators import symbolic
from weft._operators.description import RESULT, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft._operators.automatic import Adjoint


@dataclass
class _Made:
    """An operator that torch has."""

    schema: str
    # The implementation, which a later operator of the same name replaces.
    run: Callable[..., Any]
    adjoint: Adjoint
    # torch takes the operator away with its library.
    library: Any


_MADE: dict[str, _Made] = {}


def register(torch: Any, adjoint: Adjoint, schema: str, part: Callable[[Any], Any], results: Callable[..., Any]) -> Any:
    """Register an adjoint operator with scratch memory; return torch's operator.

    Parameters
    ----------
    torch
        The module.
    adjoint
        The operator.
    schema
        Its schema.
    part
        Registers an operator of which it consists, and returns it.
    results
        Makes empty arrays for the results of a description and the values of its inputs.
    """
    namespace, _, short = adjoint.description.name.partition("::")
    short += "_with_scratch"
    name = f"{namespace}::{short}"
    run = _implementation(torch, adjoint, part)
    known = _MADE.get(name)
    if known is not None and known.schema == schema:
        known.run, known.adjoint = run, adjoint
    elif known is not None:
        msg = f"{adjoint.of.name}: the operator exists with other arguments: choose another name, or restart Python"
        raise ValueError(msg)
    else:
        library = torch.library.Library(namespace, "FRAGMENT")
        made = _MADE[name] = _Made(schema, run, adjoint, library)
        library.define(short + schema, tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(short, lambda *args: made.run(*args), "CompositeExplicitAutograd")
        library.impl(short, torch.library.fallthrough_kernel, "Autograd")
        torch.library.register_fake(
            name, lambda *args: results(torch, made.adjoint.description, args, None), lib=library
        )
        op = getattr(getattr(torch.ops, namespace), short).default
        torch.library.register_vmap(name, lambda *given: _each(torch, made, op, *given), lib=library)
    return getattr(getattr(torch.ops, namespace), short).default


def _implementation(torch: Any, adjoint: Adjoint, part: Callable[[Any], Any]) -> Callable[..., Any]:
    parts = adjoint.parts()
    count, store = part(parts.counting), part(parts.storing)
    of, launch = adjoint.of, symbolic.parse(parts.launch)
    numbers = range(len(of.parameters))
    is_result = [parameter.role == RESULT for parameter in of.parameters]

    def run(*args: Any) -> Any:
        own, grads = list(args[: len(of.parameters)]), list(args[len(of.parameters) :])
        fresh = [torch.zeros_like(own[i]) if is_result[i] else own[i] for i in numbers]
        device = next(arg.device for arg in args if isinstance(arg, torch.Tensor))
        counted = torch.zeros(1, dtype=torch.int64, device=device)
        count(*fresh, *(own[i] for i in adjoint.numbers), counted)
        # Waits for the kernel.
        each, threads = int(counted.item()), symbolic.threads(launch, own)
        try:
            scratch = torch.empty(max(1, each * threads // 8), dtype=torch.int64, device=device)
        except RuntimeError as error:
            msg = (
                f"{of.name}: the gradient needs {each * threads} bytes of scratch memory, {each} for each of {threads} "
                "threads: launch fewer threads, or give the loop a constant trip count"
            )
            raise MemoryError(msg) from error
        return store(*fresh, *grads, scratch)

    return run


def _each(torch: Any, made: _Made, op: Any, info: Any, dims: Any, *args: Any) -> Any:
    """Call the operator for each item of a batch."""
    description = made.adjoint.description
    is_written = [parameter.role == WRITTEN for parameter in description.inputs]
    found = []
    for item in range(info.batch_size):
        own = [arg if dim is None else arg.select(dim, item) for arg, dim in zip(args, dims, strict=True)]
        own = [arg.contiguous() if isinstance(arg, torch.Tensor) else arg for arg in own]
        result = op(*(arg.clone() if written else arg for arg, written in zip(own, is_written, strict=True)))
        found.append(result if isinstance(result, tuple) else (result,))
    stacked = tuple(map(torch.stack, zip(*found, strict=True)))
    several = len(stacked) > 1
    return (stacked, (0,) * len(stacked)) if several else (stacked[0], 0)
