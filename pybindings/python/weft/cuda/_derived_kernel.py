"""The adjoint or tangent kernel of a kernel, and launches of it with the memory that it needs.

Most adjoint kernels need none. One whose reverse sweep needs values of loops without a constant bound takes scratch
memory: a launch of another kernel counts its bytes first. One that needs elements which the kernel has overwritten
executes these writes, so it takes copies of the arrays.
"""

from __future__ import annotations

import functools
import math
import weakref

import numpy as np

from weft import _weft
from weft._weft import Dispatcher, Type
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import as_cuda_array, device_array
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

# The code of errors about values that the reverse sweep cannot compute again.
_NEEDS_MEMORY = "E0403"
# The numbers of `Scratch` in the compiler.
_GIVEN, _COUNTED = 1, 2


class _WithMemory:
    """An adjoint kernel that takes scratch memory or copies of arrays, for arguments of some types."""

    def __init__(self, of: DerivedKernel, types: tuple[Type, ...], error: CompileError) -> None:
        self.kernel = of.derived(_GIVEN)
        signature = (*types, _weft.typeof_value(np.zeros(1, np.int64)))
        self.effects = self.kernel.effects(signature)
        effects = list(self.effects.values())
        self.stores = effects[-1].writes
        # The kernel's own parameters come first.
        self.copied = [number for number in range(of.count) if effects[number].writes]
        self._counting = of.derived(_COUNTED) if self.stores else None
        self._counted: list[int] = []
        if self._counting is not None:
            counts = list(self._counting.effects(signature).values())
            self._counted = [number for number in range(of.count) if counts[number].writes]
        self._reason = _reason(error)
        self._name = of.kernel.__name__

    def launch(self, configuration: Any, args: Sequence[Any]) -> None:
        name = self._name
        if _weft.is_recording():
            msg = (
                f"the adjoint kernel of `{name}` needs memory for values that its reverse sweep needs, which a graph "
                f"cannot record: launch it outside of the graph. {self._reason}"
            )
            raise RuntimeError(msg)
        launcher = self.kernel[configuration]
        scratch = device_array(1, np.int64, stream=launcher.stream)
        if self._counting is not None:
            scratch.setitem(..., 0, launcher.stream)
            self._counting[configuration](*_copied(args, self._counted, launcher.stream), scratch)
            each = int(scratch.copy_to_host(stream=launcher.stream)[0])
            count = math.prod(launcher.griddim) * math.prod(launcher.blockdim)
            scratch = self._allocated(each, count, launcher.stream)
        self.kernel[configuration](*_copied(args, self.copied, launcher.stream), scratch)

    def explanation(self, params: Sequence[str]) -> str:
        """Say which memory a launch takes."""
        lines = []
        if self.stores:
            lines.append("each launch takes scratch memory for values of loops, which another launch counts first")
        if self.copied:
            names = ", ".join(f"`{params[number]}`" for number in self.copied)
            lines.append(f"each launch takes copies of {names}, whose elements the kernel overwrites")
        return "\n".join([*lines, self._reason, ""])

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
    plain
        The derived kernel without memory.
    """

    def __init__(
        self, kernel: Dispatcher, numbers: Sequence[int], wrt: Sequence[int] = (), is_forward: bool = False
    ) -> None:
        code = kernel.py_func.__code__
        added = sum(len(derivative[0]) for derivative in _derivatives.get(kernel, ()))
        self.kernel, self.count = kernel, code.co_argcount + code.co_kwonlyargcount + added
        self._numbers, self._wrt, self._is_forward = numbers, wrt, is_forward
        self.plain = self.derived(0)
        # By the types of the arguments and the adjoints.
        self._with_memory: dict[tuple[Type, ...], _WithMemory] = {}

    def derived(self, scratch: int) -> Dispatcher:
        return derived_kernel(
            self.kernel,
            self._numbers,
            self._wrt,
            has_old_contents=True,
            is_forward=self._is_forward,
            scratch=scratch,
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
        if self._with_memory and (known := self._with_memory.get(tuple(map(_weft.typeof_value, args)))):
            return known.launch(configuration, args)
        try:
            self.plain[configuration](*args)
        except CompileError as error:
            self._remade(tuple(map(_weft.typeof_value, args)), error).launch(configuration, args)

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
                return self.plain, self.plain.effects(types)
        except CompileError as error:
            self._remade(types, error)
        known = self._with_memory[types]
        return known.kernel, known.effects

    def explained(self, types: tuple[Type, ...], params: Sequence[str]) -> str:
        """Say which memory a launch takes for types of arguments, and which variants it runs."""
        kernel, _ = self.dispatcher(types)
        known = self._with_memory.get(self._with_adjoints(types))
        return f"{'' if known is None else known.explanation(params)}{kernel.explain()}"

    def _with_adjoints(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        return (*types, *(self._adjoint_type(types[number]) for number in self._numbers))

    @staticmethod
    def _adjoint_type(ty: Type) -> Type:
        dtype = getattr(ty, "dtype", None)
        if dtype is None:
            return Type.make_array(ty, 1, "C", False)
        return Type.make_array(dtype, ty.ndim, ty.layout, False)

    def _remade(self, types: tuple[Type, ...], error: CompileError) -> _WithMemory:
        """Make the adjoint kernel with memory, where it is needed."""
        if self._is_forward or not any(found["code"] == _NEEDS_MEMORY for found in error.diagnostics):
            raise error
        made = self._with_memory[types] = _WithMemory(self, types, error)
        return made


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

    Raises
    ------
    NotImplementedError
        The kernel takes scratch memory.
    """
    inner = _derivatives.get(kernel, ())
    if any(derivative[-1] for derivative in inner):
        msg = f"the adjoint kernel of `{kernel.__name__}` takes scratch memory: it has no derivative"
        raise NotImplementedError(msg)
    own = (list(numbers), list(wrt), has_old_contents, is_forward, scratch)
    derivatives = [*inner, own]
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
