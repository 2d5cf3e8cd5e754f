"""One launch on this process's GPU and on the CPU, and where the results differ.

A process has one kind of device, so the CPU's launch is a process of its own: ``python -m weft._compare IN OUT`` reads
a pickled launch, makes it, and writes what its arguments hold then.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

from weft import _weft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    import numpy as np

_SHOWN = 5
"""The maximum number of differing elements that are reported for an argument, the first ones."""

_NO_GPU = (
    "compare() launches on a GPU and on the CPU, but this process has no GPU: {device} runs its kernels. Run it "
    "on a machine with a GPU and without WEFT_DEVICE=cpu; or keep the results of this machine in a file (np.savez), "
    "those of the other in another one, and compare these."
)


@dataclasses.dataclass(frozen=True)
class Difference:
    """An element that differs.

    Attributes
    ----------
    index
        Its index, a number for each axis; empty for a value that is not an array.
    gpu, cpu
        The values from the GPU and from the CPU.
    ulps
        How many floats of its type one is away from the other; of integers the distance. None where one of two floats
        is NaN, or both are, with other bits.
    """

    index: tuple[int, ...]
    gpu: Any
    cpu: Any
    ulps: int | None


@dataclasses.dataclass(frozen=True)
class Argument:
    """An array of an argument that differs.

    Attributes
    ----------
    name
        The parameter, with what leads to the array: ``x``, ``pair[1]``, ``points.mass``.
    dtype, shape
        Those of the array.
    count
        How many of its elements differ.
    largest
        The most ulps of them, None if there is none with a number.
    first
        The first that differ, in the order of their indices.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    count: int
    largest: int | None
    first: tuple[Difference, ...]

    def __str__(self) -> str:
        size = 1
        for extent in self.shape:
            size *= extent
        most = "" if self.largest is None else f", by at most {self.largest:,} {self._unit(self.largest)}"
        lines = [f"{self.name}: {self.dtype}{list(self.shape)}, {self.count:,} of {size:,} differ{most}"]
        rows = [(f"{self.name}{list(each.index) or ''}", *map(_text, (each.gpu, each.cpu))) for each in self.first]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for each, row in zip(self.first, rows, strict=True):
            apart = "NaN" if each.ulps is None else f"{each.ulps:,} {self._unit(each.ulps)}"
            place, gpu, cpu = (text.ljust(width) for text, width in zip(row, widths, strict=True))
            lines.append(f"    {place}  GPU {gpu}  CPU {cpu}  {apart}")
        if self.count > len(self.first):
            lines.append(f"    … and {self.count - len(self.first):,} more")
        return "\n".join(lines)

    def _unit(self, number: int) -> str:
        if self.dtype.kind in "iub":
            return "apart"
        return "ulp" if number == 1 else "ulps"


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """The result of `kernel[grid, block].compare(…)`; prints as a table.

    Attributes
    ----------
    kernel
        The kernel's name.
    gpu, cpu
        The devices' names.
    reproducible
        Whether the kernel has ``reproducible=True``: then nothing should differ.
    arguments
        The arrays that differ, in the order of the parameters; none where all bits are the same.
    compared
        How many arrays were compared.
    """

    kernel: str
    gpu: str
    cpu: str
    reproducible: bool
    arguments: tuple[Argument, ...]
    compared: int

    @property
    def same(self) -> bool:
        """Whether all bits are the same."""
        return not self.arguments

    def __str__(self) -> str:
        where = f"kernel `{self.kernel}` on {self.gpu} (GPU) and on {self.cpu} (CPU)"
        if self.same:
            count = f"{self.compared} array" + "s" * (self.compared != 1)
            return f"{where}: the bits of {count} are the same"
        parts = [f"{where}:", *map(str, self.arguments)]
        if not self.reproducible:
            parts.append("The kernel is not `reproducible`: with `cuda.jit(reproducible=True)` the bits are the same.")
        return "\n".join(parts)

    __repr__ = __str__


def _text(value: Any) -> str:
    return str(value) if not hasattr(value, "dtype") else str(value[()])


def compare(launcher: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Comparison:
    """Make a launch on the GPU and on the CPU; see `_LaunchConfiguration.compare`."""
    attributes = _weft.device_attributes(_weft.current_device_id())
    if _weft.device_kind() == "cpu":
        raise RuntimeError(_NO_GPU.format(device=attributes["name"]))
    return run(launcher, args, kwargs, {"WEFT_DEVICE": "cpu"})


def run(launcher: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], settings: Mapping[str, str]) -> Comparison:
    """Make a launch here and in a process with these settings, both from copies of the arguments.

    Raises
    ------
    TypeError
        An argument cannot be given to another process; the message has its name.
    RuntimeError
        The other process made no launch; the message says why.
    """
    dispatcher = launcher.dispatcher
    names = [*list(inspect.signature(dispatcher.py_func).parameters)[: len(args)], *kwargs]
    values = [_own(value) for value in (*args, *kwargs.values())]
    config = dispatcher, launcher.griddim, launcher.blockdim, launcher.sharedmem, launcher.cluster
    given = _pickled(config, values, names)
    # The launch on this device also uses copies, so the caller's arrays are unchanged.
    _, mine = pickle.loads(given)
    count = len(args)
    configured = dispatcher.configure(
        launcher.griddim, launcher.blockdim, sharedmem=launcher.sharedmem, cluster=launcher.cluster, advise=False
    )
    configured(*mine[:count], **dict(zip(names[count:], mine[count:], strict=True)))
    here = _arrays(names, mine)
    there, cpu = _elsewhere(pickle.dumps((given, names, count), pickle.HIGHEST_PROTOCOL), settings)
    found = [_argument(name, array, there[name]) for name, array in here.items()]
    return Comparison(
        kernel=dispatcher.__name__,
        gpu=_weft.device_attributes(_weft.current_device_id())["name"],
        cpu=cpu,
        reproducible=bool(dispatcher.targetoptions.get("reproducible")),
        arguments=tuple(argument for argument in found if argument is not None),
        compared=len(here),
    )


def _own(value: Any) -> Any:
    """Give arrays of other libraries as weft's, which go to another process through the host."""
    import numpy as np

    from weft.cuda._memory.device_array import DeviceNDArray
    from weft.cuda._ufunc import placing

    if isinstance(value, (np.ndarray, DeviceNDArray)):
        return value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(_own, value))
    return placing.read(value) if placing.is_foreign(value) else value


def _pickled(config: Any, values: list[Any], names: list[str]) -> bytes:
    try:
        return pickle.dumps((config, values), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        for name, value in zip(names, values, strict=True):
            try:
                pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            except Exception as why:
                msg = (
                    "compare() passes the arguments to a process that runs the kernel on the CPU, "
                    f"but `{name}` cannot be pickled: {why}"
                )
                raise TypeError(msg) from why
        msg = f"compare() passes the kernel to a process that runs it on the CPU, but it cannot be pickled: {error}"
        raise TypeError(msg) from error


def _elsewhere(given: bytes, settings: Mapping[str, str]) -> tuple[dict[str, np.ndarray], str]:
    """Make the launch in a process of its own: what its arguments hold, and its device's name."""
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    environment.pop("WEFT_SANITIZE", None)
    with tempfile.TemporaryDirectory(prefix="weft-compare-") as folder:
        asked, answer = Path(folder, "asked"), Path(folder, "answer")
        asked.write_bytes(given)
        command = [sys.executable, "-m", "weft._compare", str(asked), str(answer)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or not answer.exists():
            lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
            msg = f"compare(): the launch on the CPU failed: {lines[-1]}"
            error = RuntimeError(msg)
            if hasattr(error, "add_note"):
                error.add_note("\n".join(lines))
            raise error
        found: tuple[dict[str, np.ndarray], str] = pickle.loads(answer.read_bytes())
        return found


def _arrays(names: list[str], values: list[Any]) -> dict[str, np.ndarray]:
    """Give the arrays in arguments by what leads to them, on the host."""
    return {label: array for name, value in zip(names, values, strict=True) for label, array in _of(name, value)}


def _of(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    import numpy as np

    if isinstance(value, tuple) and hasattr(value, "_fields"):
        for field, item in zip(value._fields, value, strict=True):
            yield from _of(f"{name}.{field}", item)
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _of(f"{name}[{number}]", item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _of(f"{name}.{field.name}", getattr(value, field.name))
    elif hasattr(value, "copy_to_host"):
        yield from _of(name, np.asarray(value.copy_to_host()))
    elif isinstance(value, (np.ndarray, np.void)):
        if value.dtype.names:
            for field in value.dtype.names:
                yield from _of(f"{name}.{field}", np.asarray(value[field]))
        else:
            yield name, np.asarray(value)


def _argument(name: str, gpu: np.ndarray, cpu: np.ndarray) -> Argument | None:
    """Say where two arrays differ; None if nowhere."""
    import numpy as np

    ours, theirs = (np.ascontiguousarray(array).reshape(-1) for array in (gpu, cpu))
    width = gpu.dtype.itemsize
    if not ours.size or not width:
        return None
    bits = [array.view(np.uint8).reshape(array.size, width) for array in (ours, theirs)]
    places = np.flatnonzero((bits[0] != bits[1]).any(axis=1))
    if not places.size:
        return None
    apart = [_ulps(ours[at], theirs[at]) for at in places[:_SHOWN]]
    first = tuple(
        Difference(tuple(map(int, np.unravel_index(at, gpu.shape))), ours[at], theirs[at], ulps)
        for at, ulps in zip(places, apart, strict=False)
    )
    return Argument(name, gpu.dtype, gpu.shape, int(places.size), _largest(ours[places], theirs[places]), first)


def _steps(array: np.ndarray) -> np.ndarray | None:
    """Give numbers of which neighbors, floats or integers, differ by 1; None of what has no order."""
    import numpy as np

    if array.dtype.kind == "c":
        array = array.view(np.float32 if array.dtype.itemsize == 8 else np.float64)
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        size = array.dtype.itemsize
        if size not in (2, 4, 8):
            return None
        words = array.view(f"i{size}").astype(object)
        lowest = -(1 << (8 * size - 1))
        return np.where(words < 0, lowest - words, words)
    return array.astype(object) if array.dtype.kind in "iub" else None


def _distances(gpu: np.ndarray, cpu: np.ndarray) -> list[int | None]:
    import numpy as np

    one, two = _steps(np.atleast_1d(gpu)), _steps(np.atleast_1d(cpu))
    if one is None or two is None:
        return [None] * np.atleast_1d(gpu).size
    parts = one.size // np.atleast_1d(gpu).size
    known = ~(_is_nan(np.atleast_1d(gpu), parts) | _is_nan(np.atleast_1d(cpu), parts))
    apart = [abs(int(a) - int(b)) if real else None for a, b, real in zip(one, two, known, strict=True)]
    if parts == 1:
        return apart
    pairs = zip(apart[::2], apart[1::2], strict=True)
    return [None if a is None or b is None else max(a, b) for a, b in pairs]


def _is_nan(array: np.ndarray, parts: int) -> np.ndarray:
    import numpy as np

    if array.dtype.kind not in "fc" and array.dtype.name != "bfloat16":
        return np.zeros(array.size * parts, bool)
    flat = array.view(np.float32 if array.dtype.itemsize == 8 else np.float64) if array.dtype.kind == "c" else array
    found: np.ndarray = np.isnan(flat)
    return found


def _ulps(gpu: Any, cpu: Any) -> int | None:
    return _distances(gpu, cpu)[0]


def _largest(gpu: np.ndarray, cpu: np.ndarray) -> int | None:
    return max((each for each in _distances(gpu, cpu) if each is not None), default=None)


def _main() -> None:
    """Make the launch that another process has requested."""
    asked, answer = map(Path, sys.argv[1:])
    given, names, count = pickle.loads(asked.read_bytes())
    (dispatcher, grid, block, sharedmem, cluster), values = pickle.loads(given)
    configured = dispatcher.configure(grid, block, sharedmem=sharedmem, cluster=cluster, advise=False)
    configured(*values[:count], **dict(zip(names[count:], values[count:], strict=True)))
    name = _weft.device_attributes(_weft.current_device_id())["name"]
    answer.write_bytes(pickle.dumps((_arrays(names, values), name), pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    _main()
