"""The adjoint or tangent kernel of a kernel, and launches of it with the memory that it needs.

Most adjoint kernels need none. One whose reverse sweep needs values of loops without a constant bound takes scratch
memory: a launch of another kernel counts its bytes first. One that needs elements which the kernel has overwritten
executes these writes, so it takes copies of the arrays. One of a reproducible kernel, in which threads add to the same
gradients, takes memory for exact sums.

On the CPU, threads may gather gradients: they read incoming gradients of other threads. A launch of another kernel then
sets those of overwritten elements to 0.
"""

from __future__ import annotations

import functools
import math
import weakref

import numpy as np

from weft import _weft
from weft._weft import Dispatcher, Type
from weft.cuda._exact_sums import ExactSums
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import as_cuda_array, device_array
from weft.cuda._reduce import on_cpu
from weft.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft.cuda._rules import Effect

# Options of the kernel that its adjoint kernel does not have. The kernel has raised its exceptions; its rules and
# coarsening factors are for its own arguments and code.
_DROPPED = {
    "debug": False,
    "exceptions": False,
    "boundscheck": False,
    "coarsen": None,
    "coarsen_blocks": None,
    "tune": False,
    "launch": None,
    "out": None,
}

# The derivatives that each derived kernel is made by, from the first one on.
_derivatives: weakref.WeakKeyDictionary[Dispatcher, list[Any]] = weakref.WeakKeyDictionary()

# The codes of errors about values that the reverse sweep cannot compute again, and about sums without an order.
NEEDS_SCRATCH, NEEDS_SUMS = "E0403", "E0404"
# The numbers of `Scratch` in the compiler.
GIVEN, COUNTED = 1, 2
# The numbers of `Incoming`: gradients may be gathered; the kernel that sets incoming gradients to 0 then.
INCOMING_READ, INCOMING_CLEARED = 1, 2


class _WithMemory:
    """An adjoint kernel that takes scratch memory, copies of arrays or exact sums, for arguments of some types."""

    def __init__(self, of: DerivedKernel, types: tuple[Type, ...], error: CompileError) -> None:
        self._has_scratch = has_code(error, NEEDS_SCRATCH)
        self.incoming = 0 if self._has_scratch else of.incoming
        scratch = GIVEN if self._has_scratch else 0
        self.kernel = of.derived(scratch, has_sums=of.is_ordered, incoming=self.incoming)
        memory = _weft.typeof_value(np.zeros(1, np.int64))
        self.effects = self.kernel.effects((*types, *[memory] * (self._has_scratch + of.is_ordered)))
        effects = list(self.effects.values())
        self.stores = self._has_scratch and effects[len(types)].writes
        # The kernel's own parameters come first.
        self._first = of.count
        self.copied = [number for number in range(of.count) if effects[number].writes]
        self._counting = of.derived(COUNTED) if self.stores else None
        self._counted: list[int] = []
        if self._counting is not None:
            counts = list(self._counting.effects((*types, memory)).values())
            self._counted = [number for number in range(of.count) if counts[number].writes]
        # The kernel does not access an adjoint with exact sums.
        adjoints = enumerate(effects[of.count : len(types)])
        self._summed = [number for number, own in adjoints if of.is_ordered and not (own.reads or own.writes)]
        self._numbers, self._is_ordered = of.numbers, of.is_ordered
        self._reason = _reason(error)
        self._name = of.kernel.__name__

    def launch(self, configuration: Any, args: Sequence[Any]) -> None:
        name = self._name
        if _weft.is_recording():
            msg = (
                f"the adjoint kernel of `{name}` needs memory that a launch allocates, which a graph cannot record: "
                f"launch it outside of the graph. {self._reason}"
            )
            raise RuntimeError(msg)
        launcher = self.kernel[configuration]
        memory = []
        if self._has_scratch:
            memory.append(self._scratch(configuration, args, launcher))
        given = _copied(args, self.copied, launcher.stream)
        if not self._is_ordered:
            self.kernel[configuration](*given, *memory)
            return
        why = f"the adjoint kernel of `{name}`"
        sums = ExactSums(given[self._first :], self._summed, launcher.stream, why)
        adjoints = sums.adjoints(given[self._first :])
        self.kernel[configuration](*given[: self._first], *adjoints, *memory, sums.words)
        sums.round()

    def explanation(self, params: Sequence[str]) -> str:
        """Say which memory a launch takes."""
        lines = []
        if self.stores:
            lines.append("each launch takes scratch memory for values of loops, which another launch counts first")
        if self.copied:
            names = ", ".join(f"`{params[number]}`" for number in self.copied)
            lines.append(f"each launch takes copies of {names}, whose elements the kernel overwrites")
        if self._summed:
            names = ", ".join(f"`{params[self._numbers[number]]}`" for number in self._summed)
            lines.append(
                f"each launch takes words for exact sums of the gradients of {names}: the kernel is reproducible"
            )
        return "\n".join([*lines, self._reason, ""])

    def _scratch(self, configuration: Any, args: Sequence[Any], launcher: Any) -> DeviceNDArray:
        """Give the scratch memory of a launch."""
        scratch = device_array(1, np.int64, stream=launcher.stream)
        if self._counting is None:
            return scratch
        scratch.setitem(..., 0, launcher.stream)
        self._counting[configuration](*_copied(args, self._counted, launcher.stream), scratch)
        each = int(scratch.copy_to_host(stream=launcher.stream)[0])
        count = math.prod(launcher.griddim) * math.prod(launcher.blockdim)
        return self._allocated(each, count, launcher.stream)

    def _allocated(self, each: int, threads: int, stream: Any) -> DeviceNDArray:
        size = each * threads
        msg = (
            f"the adjoint kernel of `{self._name}` needs {size} bytes of scratch memory, {each} for each of {threads} "
            f"threads: launch fewer threads, or give the loop a constant trip count. {self._reason}"
        )
        if size > _weft.memory_info(_weft.current_device_id())[0]:
            raise MemoryError(msg)
        return device_array(max(1, size // 8), np.int64, stream=stream)


class DerivedKernel:
    """The adjoint or tangent kernel of a kernel, for arguments of any types.

    Attributes
    ----------
    kernel
        The kernel, or a derived one.
    count
        The number of its parameters.
    numbers
        Those that have adjoints or tangents.
    is_ordered
        The bits of gradients must not depend on the order of the threads.
    incoming
        0, or `INCOMING_READ` if its threads may gather gradients.
    plain
        The derived kernel without memory, whose derivative can be taken.
    """

    def __init__(
        self, kernel: Dispatcher, numbers: Sequence[int], wrt: Sequence[int] = (), is_forward: bool = False
    ) -> None:
        code = kernel.py_func.__code__
        added = sum(len(derivative[0]) for derivative in _derivatives.get(kernel, ()))
        self.kernel, self.count = kernel, code.co_argcount + code.co_kwonlyargcount + added
        self.numbers, self._wrt, self._is_forward = numbers, wrt, is_forward
        self.is_ordered = bool(kernel.targetoptions.get("reproducible"))
        gathers = on_cpu() and not is_forward and kernel not in _derivatives
        self.incoming = INCOMING_READ if gathers else 0
        self.plain = self.derived(0)
        self._launched = self.derived(0, incoming=INCOMING_READ) if self.incoming else self.plain
        # By the types of the arguments and the adjoints.
        self._with_memory: dict[tuple[Type, ...], _WithMemory] = {}
        self._clearing: dict[tuple[Type, ...], Dispatcher | None] = {}

    def derived(self, scratch: int, *, has_sums: bool = False, incoming: int = 0) -> Dispatcher:
        return derived_kernel(
            self.kernel,
            self.numbers,
            self._wrt,
            has_old_contents=True,
            is_forward=self._is_forward,
            scratch=scratch,
            has_sums=has_sums,
            incoming=incoming,
        )

    def launch(self, configuration: Any, args: Sequence[Any]) -> None:
        """Launch it.

        Parameters
        ----------
        configuration
            As for a kernel; the dynamic shared memory includes that of the adjoints.
        args
            The arguments and the adjoints.

        Raises
        ------
        CompileError
            The kernel has no derivative.
        MemoryError
            There is too little memory for values of loops.
        RuntimeError
            A graph is recorded, and the kernel needs memory.
        """
        needs_types = bool(self._with_memory or self.incoming)
        types = tuple(map(_weft.typeof_value, args)) if needs_types else ()
        if (known := self._with_memory.get(types)) is not None:
            known.launch(configuration, args)
        else:
            try:
                self._launched[configuration](*args)
            except CompileError as error:
                self._remade(types or tuple(map(_weft.typeof_value, args)), error).launch(configuration, args)
        if self.incoming and (clearing := self._clearing_kernel(types)) is not None:
            clearing[configuration](*args)

    def dispatcher(self, types: tuple[Type, ...]) -> tuple[Dispatcher, dict[str, Effect]]:
        """Give the kernel that is launched for types of arguments, and its effects.

        Raises
        ------
        CompileError
            The kernel has no derivative.
        """
        types = self._with_adjoints(types)
        try:
            if types not in self._with_memory:
                return self._launched, self._launched.effects(types)
        except CompileError as error:
            self._remade(types, error)
        known = self._with_memory[types]
        return known.kernel, known.effects

    def explained(self, types: tuple[Type, ...], params: Sequence[str]) -> str:
        """Say which memory a launch takes for types of arguments, and which variants it runs."""
        kernel, _ = self.dispatcher(types)
        types = self._with_adjoints(types)
        known = self._with_memory.get(types)
        clearing = self._clearing_kernel(types)
        cleared = ""
        if clearing is not None:
            effects = list(clearing.effects(types).values())
            written = [params[self.numbers[i]] for i, effect in enumerate(effects[self.count :]) if effect.writes]
            names = ", ".join(f"`{name}`" for name in written)
            cleared = f"threads gather gradients; another launch sets gradients of {names} to 0\n"
        return f"{'' if known is None else known.explanation(params)}{cleared}{kernel.explain()}"

    def _clearing_kernel(self, types: tuple[Type, ...]) -> Dispatcher | None:
        """Give the kernel that sets incoming gradients to 0 after the adjoint kernel, if that does not."""
        known = self._with_memory.get(types)
        if not (self.incoming if known is None else known.incoming):
            return None
        if types not in self._clearing:
            self._clearing[types] = self._clearing_for(types)
        return self._clearing[types]

    def _clearing_for(self, types: tuple[Type, ...]) -> Dispatcher | None:
        known = self._with_memory.get(types)
        try:
            effects = self._launched.effects(types) if known is None else known.effects
        except CompileError:
            # Only variants for special launches have a derivative: these do not gather.
            return None
        adjoints = list(effects.values())[self.count : len(types)]
        # The adjoints of arrays that the kernel only adds to are not overwritten, either.
        if any(effect.reads and not effect.writes for effect in adjoints):
            clearing = self.derived(0, incoming=INCOMING_CLEARED)
            if any(effect.writes for effect in clearing.effects(types).values()):
                return clearing
        return None

    def _with_adjoints(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        return (*types, *(self._adjoint_type(types[number]) for number in self.numbers))

    @staticmethod
    def _adjoint_type(ty: Type) -> Type:
        dtype = getattr(ty, "dtype", None)
        if dtype is None:
            return Type.make_array(ty, 1, "C", False)
        return Type.make_array(dtype, ty.ndim, ty.layout, False)

    def _remade(self, types: tuple[Type, ...], error: CompileError) -> _WithMemory:
        """Make the adjoint kernel with memory, where it is needed."""
        if self._is_forward or not (has_code(error, NEEDS_SCRATCH) or has_code(error, NEEDS_SUMS)):
            raise error
        made = self._with_memory[types] = _WithMemory(self, types, error)
        return made


def has_code(error: CompileError, code: str) -> bool:
    """Whether one of the diagnostics of an error has a code."""
    return any(found["code"] == code for found in error.diagnostics)


def _reason(error: CompileError) -> str:
    """Say which value needs memory."""
    found = error.diagnostics[0]
    return f"{found['file']}:{found['line']}: {found['message']}"


def _copied(args: Sequence[Any], numbers: Sequence[int], stream: Any) -> list[Any]:
    """Give arguments, with copies of some of them."""
    given = list(args)
    for number in numbers:
        given[number] = _copy(given[number], stream)
    return given


def _copy(array: Any, stream: Any) -> Any:
    """Copy an array, with its strides."""
    from weft.cuda._tape.memory import Contents

    if not isinstance(array, DeviceNDArray) and hasattr(array, "__cuda_array_interface__"):
        array = as_cuda_array(array)
    if isinstance(array, DeviceNDArray):
        if not array.size:
            return array
        contents = Contents(array)
        contents.save(stream)
        return contents.view(array)
    array = np.asarray(array)
    spans = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    if not array.size:
        return array
    first = -sum(min(span, 0) for span in spans)
    memory = np.empty(sum(map(abs, spans)) + array.itemsize, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, memory, first, array.strides)
    copy[...] = array
    return copy


def derived_kernel(
    kernel: Dispatcher,
    numbers: Sequence[int],
    wrt: Sequence[int] = (),
    *,
    has_old_contents: bool = False,
    is_forward: bool = False,
    scratch: int = 0,
    has_sums: bool = False,
    incoming: int = 0,
) -> Dispatcher:
    """Make the adjoint kernel with adjoints of some parameters, which are its last parameters.

    Parameters
    ----------
    kernel
        The kernel, which may be a derived one that takes no scratch memory.
    numbers
        The parameters that have adjoints.
    wrt
        Those whose gradients are requested: it is an error if a derivative by one of them reaches no output.
    has_old_contents
        Arguments that the kernel writes have the contents from before the kernel's launch.
    is_forward
        Make the tangent kernel, with tangents instead of adjoints.
    scratch
        1: it takes scratch memory after the adjoints. 2: make the kernel that counts the bytes of it.
    has_sums
        It takes an array of words after the scratch memory, and adds gradients to exact sums in it.
    incoming
        0: it sets the adjoints of overwritten elements to 0. 1: it may leave them to the kernel with 2.

    Raises
    ------
    NotImplementedError
        The kernel takes scratch memory.
    """
    inner = _derivatives.get(kernel, ())
    if any(derivative[4] for derivative in inner):
        msg = (
            f"the adjoint kernel of `{kernel.__name__}` takes scratch memory, so it has no derivative: give the loops "
            "whose values it stores a constant trip count, so that local arrays have them, or derive a kernel of one "
            "iteration"
        )
        raise NotImplementedError(msg)
    own = (list(numbers), list(wrt), has_old_contents, is_forward, scratch, has_sums, incoming)
    # The derivative of an adjoint kernel is that of the one without gathers.
    derivatives = [*((*derivative[:-1], 0) for derivative in inner), own]
    options = {**kernel.targetoptions, **_DROPPED}
    if scratch:
        # Both kernels compute the same trip counts, so no operations are fused or reordered.
        options.update(reproducible=True, fastmath=False)
    made = Dispatcher(
        kernel.py_func,
        options,
        [],
        kernel.given_source,
        kernel.cached_source,
        derivatives,
    )
    functools.update_wrapper(made, kernel.py_func)
    _derivatives[made] = derivatives
    return made


def shared_bytes(given: Any) -> Any:
    """Give the dynamic shared memory of a launch of a derived kernel: the kernel's, and that of the adjoints."""
    if not hasattr(given, "__index__") or (count := given.__index__()) < 0:
        # The launch raises the error.
        return given
    return -(-count // 16) * 16 + count
