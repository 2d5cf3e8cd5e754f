"""Devices and contexts."""

from __future__ import annotations

import atexit
import functools
import os
import threading

from weft import _weft
from weft.cuda._attributes import ATTRIBUTES
from weft.cuda._contexts import Context
from weft.errors import DriverError, WeftError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import contextlib
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self


_held = threading.local()
"""``device``: the one that a thread may not leave, in functions of `require_context`."""

_INVALID_VALUE = 1
"""``CUDA_ERROR_INVALID_VALUE``: what a driver says of an attribute that is newer than it."""

LOWEST_CAPABILITY = (7, 5)
"""The oldest GPUs that weft compiles for."""

_OTHER_NAMES = {
    "IS_MULTI_GPU_BOARD": "MULTI_GPU_BOARD",
    "MAX_THREADS_PER_MULTI_PROCESSOR": "MAX_THREADS_PER_MULTIPROCESSOR",
}
"""Names that Numba had before it took those of ``cuda.h``."""


class Device:
    """A GPU, or the CPU in its place.

    The driver's attributes have the driver's names: ``MAX_THREADS_PER_BLOCK``, ``MULTIPROCESSOR_COUNT``,
    ``WARP_SIZE`` and so on.

    Examples
    --------
    >>> device = cuda.get_current_device()
    >>> device.MAX_THREADS_PER_BLOCK
    1024
    """

    def __init__(self, number: int) -> None:
        self._attributes = _weft.device_attributes(number)
        self.id: int = number
        self._outer: list[int] = []

    @property
    def name(self) -> str:
        """The model."""
        name: str = self._attributes["name"]
        return name

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor; the CPU answers 9.0 unless WEFT_CPU_COMPUTE_CAPABILITY says otherwise."""
        capability: tuple[int, int] = self._attributes["compute_capability"]
        return capability

    @property
    def uuid(self) -> str:
        """GPU-…, or empty on the CPU."""
        uuid: str = self._attributes["uuid"]
        return uuid

    @property
    def supports_float16(self) -> bool:
        """Whether the device computes in 16 bits."""
        return self.compute_capability >= (5, 3)

    @property
    def supports_bfloat16(self) -> bool:
        """Whether the device computes in bfloat16."""
        return self.compute_capability >= (8, 0)

    @property
    def supports_fp8(self) -> bool:
        """Whether the device has 8-bit floating point numbers, which weft does not use."""
        return self.compute_capability >= (8, 9)

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__.get("_attributes", {})
        if name in attributes:
            return attributes[name]
        number = ATTRIBUTES.get(_OTHER_NAMES.get(name, name))
        if number is None:
            from weft._missing import missing

            raise missing("a device", f"weft.cuda.Device.{name}", dir(self))
        try:
            return _weft.device_attribute(self.id, number)
        except DriverError as error:
            if error.code != _INVALID_VALUE:
                raise
            version = ".".join(map(str, attributes["driver_version"]))
            msg = f"the driver, which is for CUDA {version}, does not know the device attribute {name!r}"
            raise AttributeError(msg) from error

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._attributes, *ATTRIBUTES, *_OTHER_NAMES})

    def get_primary_context(self) -> Context:
        """Give the device's context."""
        return Context(self)

    def release_primary_context(self) -> None:
        """Wait for all work on the device. Its context exists as long as the process: arrays and code are in it."""
        self.get_primary_context().synchronize()

    def get_device_identity(self) -> dict[str, int]:
        """Give where the device is on the bus, which is the same in every process; zeros on the CPU."""
        return {
            "pci_domain_id": self.PCI_DOMAIN_ID,
            "pci_bus_id": self.PCI_BUS_ID,
            "pci_device_id": self.PCI_DEVICE_ID,
        }

    @classmethod
    def from_identity(cls, identity: dict[str, int]) -> Device:
        """Give the device of an identity; `RuntimeError` if this process does not see it."""
        for number in range(_weft.device_count()):
            device = cls(number)
            if device.get_device_identity() == identity:
                return device
        msg = f"there is no device with the identity {identity}: CUDA_VISIBLE_DEVICES may hide it from this process"
        raise RuntimeError(msg)

    def reset(self) -> None:
        """Wait for everything on the device; memory is freed with the arrays that use it."""
        self.get_primary_context().reset()

    def __enter__(self) -> Self:
        held = getattr(_held, "device", None)
        if held not in (None, self.id):
            msg = f"Cannot switch CUDA-context. A function of `cuda.require_context` runs on device {held}"
            raise RuntimeError(msg)
        self._outer.append(_weft.current_device_id())
        _weft.select_device(self.id)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _weft.select_device(self._outer.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{'CUDA' if self._attributes['kind'] == 'cuda' else 'CPU'} device {self.id} '{self.name}'>"


class Versions:
    """Of what version CUDA is."""

    def get_version(self) -> tuple[int, int]:
        """Give the version of CUDA that the driver has, such as (13, 0); (0, 0) where kernels run on the CPU."""
        version: tuple[int, int] = _weft.device_attributes(_weft.current_device_id())["driver_version"]
        return version

    def get_device_count(self) -> int:
        """Give how many devices there are; the CPU is one."""
        return _weft.device_count()

    def is_supported_version(self) -> bool:
        """Whether weft works with it."""
        return is_supported_version()


runtime = Versions()
"""CUDA's runtime library, of which weft uses none: its version is that of the driver."""


class DeviceList:
    """All devices: ``cuda.gpus[0]``, ``len(cuda.gpus)``, ``with cuda.gpus[1]: …``."""

    def __len__(self) -> int:
        return _weft.device_count()

    def __getitem__(self, index: Any) -> Any:
        try:
            return self.lst[index]
        except IndexError:
            count = len(self)
            there = f"{count} devices, 0 to {count - 1}" if count > 1 else "one device, 0"
            msg = f"there is no device {index}: this process sees {there}"
            raise IndexError(msg) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.lst)

    @property
    def lst(self) -> list[Any]:
        """The devices as a list."""
        return [Device(number) for number in range(len(self))]

    @property
    def current(self) -> Device:
        """The current device."""
        return get_current_device()

    def __repr__(self) -> str:
        return f"<{len(self)} devices>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from weft._missing import missing

            raise missing("cuda.gpus", f"weft.cuda.gpus.{name}", dir(self))


gpus = DeviceList()

os.register_at_fork(
    before=_weft.before_fork,
    after_in_parent=_weft.after_fork_in_parent,
    after_in_child=_weft.after_fork_in_child,
)
atexit.register(_weft.stop_background)


def list_devices() -> DeviceList:
    """Give all devices.

    Returns
    -------
    DeviceList
        The same as ``cuda.gpus``.

    Examples
    --------
    >>> len(cuda.list_devices()) >= 1
    True
    """
    return gpus


def get_current_device() -> Device:
    """Give the current device of the calling thread.

    Returns
    -------
    Device
        Of a thread that has chosen none, device 0.

    Raises
    ------
    CudaSupportError
        There is no device that can run kernels.

    Examples
    --------
    >>> cuda.get_current_device().WARP_SIZE
    32
    """
    return Device(_weft.current_device_id())


def select_device(device_id: int | None) -> Device:
    """Make a device the current one of the calling thread; None keeps the current one.

    Parameters
    ----------
    device_id
        Its number, from 0; or None.

    Returns
    -------
    Device
        The one that is current now.

    Raises
    ------
    IndexError
        There is no device with that number: ``len(cuda.gpus)`` is the number of devices.

    Examples
    --------
    >>> cuda.select_device(0).id
    0
    """
    if device_id is None:
        return get_current_device()
    if not hasattr(device_id, "__index__"):
        msg = f"device_id must be the number of a device, an integer, not {type(device_id).__name__}"
        raise TypeError(msg)
    if device_id < 0:
        msg = f"there is no device {device_id}"
        raise IndexError(msg)
    _weft.select_device(device_id)
    return get_current_device()


def current_context(devnum: int | None = None) -> Context:
    """Give the context of the current device, or of the one named.

    Parameters
    ----------
    devnum
        The number of a device, from 0; or None for the current one.

    Returns
    -------
    Context
        The memory in use on the device.

    Raises
    ------
    ValueError
        There is no device with that number.

    Examples
    --------
    >>> free, total = cuda.current_context().get_memory_info()  # bytes
    >>> 0 < free <= total
    True
    """
    return Context(get_current_device() if devnum is None else Device(devnum))


def defer_cleanup() -> contextlib.AbstractContextManager[None]:
    """Give a context in which nothing waits for the device to free memory: see `Context.defer_cleanup`.

    Returns
    -------
    context manager
        For a ``with`` block.

    Examples
    --------
    >>> with cuda.defer_cleanup():
    ...     scale[1, 32](cuda.to_device(np.ones(3)), 2.0)
    """
    return current_context().defer_cleanup()


def require_context(function: Any) -> Any:
    """Make a function during which its thread cannot change its device.

    Parameters
    ----------
    function
        Any function.

    Returns
    -------
    function
        It does the same; entering another device in it is a ``RuntimeError``.

    Examples
    --------
    >>> @cuda.require_context
    ... def work():
    ...     return cuda.get_current_device().id
    >>> work()
    0
    """

    @functools.wraps(function)
    def on_one_device(*args: Any, **kwargs: Any) -> Any:
        before = getattr(_held, "device", None)
        _held.device = _weft.current_device_id()
        try:
            return function(*args, **kwargs)
        finally:
            _held.device = before

    return on_one_device


def profile_start() -> None:
    """Have a profiler take down what the device does, if it waits for that (``nsys profile -c cudaProfilerApi``).

    Without a profiler nothing happens, and on the CPU nothing does.

    Examples
    --------
    >>> cuda.profile_start()
    >>> scale[1, 32](np.ones(3), 2.0)
    >>> cuda.profile_stop()
    """
    _weft.profile(True)


def profile_stop() -> None:
    """Have a profiler take down nothing more of what the device does.

    Examples
    --------
    >>> cuda.profile_stop()
    """
    _weft.profile(False)


class profiling:  # its name in numba.cuda
    """``with cuda.profiling():`` a profiler takes down what the device does in the block.

    Examples
    --------
    >>> with cuda.profiling():
    ...     scale[1, 32](np.ones(3), 2.0)
    """

    def __enter__(self) -> None:
        profile_start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        profile_stop()


def synchronize() -> None:
    """Wait for everything on the current device.

    Raises
    ------
    KernelRuntimeError
        A kernel has failed since the last time that the host waited.
    Exception
        The exception that a kernel with ``exceptions=True`` or ``debug=True`` raised.

    Examples
    --------
    >>> scale[1, 32](cuda.to_device(np.ones(3)), 2.0)  # goes on at once
    >>> cuda.synchronize()  # the kernel is done
    """
    _weft.synchronize()


def close() -> None:
    """Wait for everything, unload modules, and make device 0 the current one.

    Memory is freed with the arrays that use it.

    Examples
    --------
    >>> cuda.close()
    """
    for number in range(_weft.device_count()):
        context = Device(number).get_primary_context()
        context.synchronize()
        context._unload_modules()
    _weft.select_device(0)


def is_available() -> bool:
    """Whether kernels can run here: on a GPU, or on the CPU unless WEFT_DEVICE=cuda rules it out.

    Returns
    -------
    bool
        True without a GPU, too, since kernels then run on the CPU.

    Examples
    --------
    >>> cuda.is_available()
    True
    """
    return cuda_error() is None


def cuda_error() -> str | None:
    """Why kernels cannot run here, or None.

    Returns
    -------
    str or None
        The error message.

    Examples
    --------
    >>> cuda.cuda_error() is None
    True
    """
    try:
        _weft.device_attributes(0)
    except (WeftError, ValueError) as error:
        return str(error)
    return None


def is_supported_version() -> bool:
    """Whether the driver is one that weft works with.

    Returns
    -------
    bool
        The same as `is_available`.

    Examples
    --------
    >>> cuda.is_supported_version()
    True
    """
    return is_available()


def is_float16_supported() -> bool:
    """Whether the current device computes in 16 bits.

    Returns
    -------
    bool
        The same as ``cuda.get_current_device().supports_float16``.

    Examples
    --------
    >>> cuda.is_float16_supported() == cuda.get_current_device().supports_float16
    True
    """
    return get_current_device().supports_float16


def is_bfloat16_supported() -> bool:
    """Whether the current device computes in bfloat16.

    Returns
    -------
    bool
        The same as ``cuda.get_current_device().supports_bfloat16``.

    Examples
    --------
    >>> cuda.is_bfloat16_supported() == cuda.get_current_device().supports_bfloat16
    True
    """
    return get_current_device().supports_bfloat16


def is_fp8_supported() -> bool:
    """Whether the current device has 8-bit floating point numbers, which weft does not use.

    Returns
    -------
    bool
        The same as ``cuda.get_current_device().supports_fp8``.

    Examples
    --------
    >>> cuda.is_fp8_supported() == cuda.get_current_device().supports_fp8
    True
    """
    return get_current_device().supports_fp8


def detect() -> bool:
    """Print what devices there are, as Numba does.

    Without a GPU the list has the CPU, which is not a CUDA device.

    Returns
    -------
    bool
        Whether kernels run on one of them.

    Examples
    --------
    >>> cuda.detect()  # doctest: +SKIP
    Found 1 CUDA devices
    id 0    b'NVIDIA H100 80GB HBM3'                              [SUPPORTED]
    """
    import sys

    error = cuda_error()
    if error is not None:
        sys.stdout.write(f"Found 0 CUDA devices\nKernels run nowhere: {error}\n")
        return False
    on_gpu = _weft.device_kind() == "cuda"
    lines = [f"Found {len(gpus) if on_gpu else 0} CUDA devices"]
    if not on_gpu:
        lines.append("Kernels run on the CPU:")
    supported = 0
    for device in gpus:
        is_supported = not on_gpu or device.compute_capability >= LOWEST_CAPABILITY
        supported += is_supported
        support = "[SUPPORTED]" if is_supported else "[NOT SUPPORTED: CC < {}.{}]".format(*LOWEST_CAPABILITY)
        lines.append(f"id {device.id}    {device.name:>20} {support:>40}")
        lines.extend(f"{label:>40}: {value}" for label, value in _described(device, on_gpu))
    lines += ["Summary:", f"\t{supported}/{len(gpus)} devices are supported"]
    sys.stdout.write("\n".join(lines) + "\n")
    return supported > 0


def _described(device: Device, on_gpu: bool) -> Iterator[tuple[str, Any]]:
    """Give what `detect` prints of a device: of the CPU what it has."""
    yield "Compute Capability", "{}.{}".format(*device.compute_capability)
    if on_gpu:
        yield "PCI Device ID", device.PCI_DEVICE_ID
        yield "PCI Bus ID", device.PCI_BUS_ID
        yield "UUID", device.uuid
        yield "Watchdog", "Enabled" if device.KERNEL_EXEC_TIMEOUT else "Disabled"
    yield "Multiprocessors" if on_gpu else "Threads that run blocks", device.MULTIPROCESSOR_COUNT
    yield "Memory", f"{device.total_memory / 2**30:.1f} GiB"
    yield "FP32/FP64 Performance Ratio", device.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    for name in ("float16", "bfloat16", "fp8"):
        yield f"{name} Support", "Yes" if getattr(device, f"supports_{name}") else "No"
