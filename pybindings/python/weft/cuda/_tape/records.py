"""The records of a tape: launches, copies, and writes without a known derivative; each runs its reverse."""

from __future__ import annotations

import contextlib
import functools
import weakref

from weft import _weft
from weft.cuda._derivatives import FLOATS
from weft.cuda._derived_kernel import DerivedKernel, shared_bytes
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._tape.memory import Adjoints, Contents, add, add_reduced, copied, overlap, range_of, zeros_like
from weft.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from weft._weft import Dispatcher, Type


class Plan:
    """The effects of a kernel and its adjoint kernel, for some argument types."""

    def __init__(self, kernel: Dispatcher, types: tuple[Type, ...], arrays: tuple[int, ...]) -> None:
        self._kernel, self._types = kernel, types
        effects = kernel.effects(types)
        self.params = list(effects)
        self.writes = [number for number, effect in enumerate(effects.values()) if effect.writes]
        # The parameters with adjoints: device arrays.
        self.numbers = [number for number in arrays if is_float_array(types[number])]
        self.has_outputs = any(number in self.writes for number in self.numbers)

    @functools.cached_property
    def _derived(self) -> tuple[DerivedKernel | None, list[int], Exception | None]:
        types = self._types
        try:
            derived = DerivedKernel(self._kernel, self.numbers)
            _, effects = derived.dispatcher(types)
        except (CompileError, NotImplementedError) as error:
            return None, [], error
        reads = [number for number, effect in enumerate(list(effects.values())[: len(types)]) if effect.reads]
        return derived, reads, None

    @property
    def derived(self) -> DerivedKernel:
        """The adjoint kernel.

        Raises
        ------
        CompileError, NotImplementedError
            The kernel has none.
        """
        derived, _, error = self._derived
        if derived is None:
            assert error is not None
            raise error
        return derived

    @property
    def needs(self) -> list[int]:
        """The parameters whose contents the adjoint kernel reads."""
        return self._derived[1] if self.has_outputs else []


_plans: weakref.WeakKeyDictionary[Dispatcher, dict[Any, Plan]] = weakref.WeakKeyDictionary()


def plan_of(kernel: Dispatcher, args: Sequence[Any]) -> Plan:
    types = tuple(map(_weft.typeof_value, args))
    arrays = tuple(number for number, arg in enumerate(args) if isinstance(arg, DeviceNDArray))
    plans = _plans.setdefault(kernel, {})
    plan = plans.get((types, arrays))
    if plan is None:
        plan = plans[types, arrays] = Plan(kernel, types, arrays)
    return plan


def _captured(kernel: Dispatcher) -> list[DeviceNDArray]:
    """Give the device arrays of floats that a kernel's own statements name and that are no arguments."""
    function = kernel.py_func
    code = function.__code__
    values = [function.__globals__.get(name) for name in code.co_names]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            values.append(cell.cell_contents)
    return [value for value in values if isinstance(value, DeviceNDArray) and str(value.dtype) in FLOATS]


def is_float_array(ty: Any) -> bool:
    return hasattr(ty, "ndim") and str(getattr(ty, "dtype", None)) in FLOATS


def has_floats(dtype: Any) -> bool:
    """Whether elements of a dtype, or a part of them, are floats."""
    if dtype.subdtype is not None:
        return has_floats(dtype.subdtype[0])
    if dtype.names is not None:
        return any(has_floats(dtype.fields[name][0]) for name in dtype.names)
    return dtype.kind not in "biuMmSU"


class Launch:
    """A launch of a kernel."""

    def __init__(self, kernel: Dispatcher, launcher: Any, args: list[Any], plan: Plan) -> None:
        self.kernel, self.args, self.plan = kernel, args, plan
        self.grid, self.block, self.stream = launcher.griddim, launcher.blockdim, launcher.stream
        self.shared, self.cluster = launcher.sharedmem, launcher.cluster
        self.contents: dict[int, Contents] = {}
        self._captured = _captured(kernel)

    def arrays(self) -> Iterator[DeviceNDArray]:
        return (arg for number in self.plan.numbers if isinstance(arg := self.args[number], DeviceNDArray))

    def reverse(self, adjoints: Adjoints) -> None:
        plan = self.plan
        outputs = [self.args[number] for number in plan.numbers if number in plan.writes]
        if not any(map(adjoints.has, outputs)):
            return
        if any(adjoints.merged_range(array) is not None for array in self._captured):
            msg = f"`{self.kernel.__name__}` captures an array that the tape follows: pass it as an argument"
            raise RuntimeError(msg)
        derived = plan.derived
        given, added = [], []
        taken: list[tuple[int, int]] = []
        for number in plan.numbers:
            array = self.args[number]
            view = adjoints.of(array)
            if any(overlap(range_of(array), other) for other in taken):
                added.append((view, fresh := zeros_like(view, self.stream)))
                view = fresh
            taken.append(range_of(array))
            given.append(view)
        args = [
            self.contents[number].view(arg) if number in self.contents else arg for number, arg in enumerate(self.args)
        ]
        shared = shared_bytes(self.shared)
        derived.launch((self.grid, self.block, self.stream, shared, self.cluster), (*args, *given))
        for view, fresh in added:
            add(view, fresh, self.stream)


class Copy:
    """A copy from one array to another, or of values of the host to an array."""

    def __init__(self, to: DeviceNDArray, source: DeviceNDArray | None, stream: Any) -> None:
        self.to, self.source, self.stream = to, source, stream

    def arrays(self) -> Iterator[DeviceNDArray]:
        yield self.to
        if self.source is not None:
            yield self.source

    def reverse(self, adjoints: Adjoints) -> None:
        if not adjoints.has(self.to):
            return
        view = adjoints.of(self.to)
        given = copied(view, self.stream)
        view.setitem(..., 0, self.stream)
        if self.source is not None:
            add_reduced(adjoints.of(self.source), given, self.stream)


class Unseen:
    """A write that has no derivative on the tape."""

    def __init__(self, to: DeviceNDArray, what: str) -> None:
        self.to, self._what = to, what

    def arrays(self) -> Iterator[DeviceNDArray]:
        return iter(())

    def reverse(self, adjoints: Adjoints) -> None:
        if adjoints.has(self.to):
            msg = (
                f"a gradient flows into an array that {self._what} has written, whose derivative the tape does not "
                "know: write the array by a kernel, or outside of the tape's block"
            )
            raise RuntimeError(msg)
