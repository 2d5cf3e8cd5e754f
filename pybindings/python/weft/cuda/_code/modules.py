"""Modules of any compiler: PTX, cubins and fatbins that a context loads, and launches of their functions.

The driver runs such code as it is: weft knows neither the types of its parameters nor what it accesses. Only GPUs run
it.
"""

from __future__ import annotations

import weakref
from collections import namedtuple

from weft import _weft
from weft.cuda._streams import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from weft.cuda._contexts import Context
    from weft.cuda._devices import Device
    from weft.cuda._memory.pointers import MemoryPointer

FuncAttr = namedtuple("FuncAttr", ("regs", "shared", "local", "const", "maxthreads"))  # noqa: PYI024 (typing takes long to import)
FuncAttr.__doc__ = "Resources of a function: registers of a thread, bytes of memory, and the most threads of a block."

_LOADED: weakref.WeakSet[Module] = weakref.WeakSet()

# The values of the driver's `CUfunc_cache`.
_PREFER_NONE, _PREFER_SHARED, _PREFER_L1, _PREFER_EQUAL = range(4)


class Module:
    """Code of any compiler that was loaded on a device: see `Context.create_module_ptx`.

    It remains loaded while it or one of its functions exists, unless it is unloaded before: by `unload`, by
    `Context.reset` or by `cuda.close`. After that its functions and variables raise a `RuntimeError`.

    Examples
    --------
    >>> module = cuda.current_context().create_module_ptx(ptx)  # doctest: +SKIP
    >>> function = module.get_function("add")  # doctest: +SKIP
    """

    def __init__(
        self,
        context: Context,
        image: bytes,
        setup_callbacks: Sequence[Callable[[Any], object]] | None = None,
        teardown_callbacks: Sequence[Callable[[Any], object]] | None = None,
    ) -> None:
        from weft.cuda._contexts import Context

        if not isinstance(context, Context):
            msg = f"context must be a context, such as `cuda.current_context()`, not {type(context).__name__}"
            raise TypeError(msg)
        before = _callbacks(setup_callbacks, "setup_callbacks")
        after = _callbacks(teardown_callbacks, "teardown_callbacks")
        self.context = context
        self.initialized = False
        self._loaded = _weft.LoadedModule(context.device.id, image)
        self._setup = before
        self._teardown = weakref.finalize(self, _call_each, after, self._loaded) if after else None
        _LOADED.add(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from weft._missing import missing

            raise missing("a module", f"weft.cuda.Module.{name}", dir(type(self)))

    @property
    def handle(self) -> Handle:
        """The driver's handle: a ``CUlibrary``, or a ``CUmodule`` where the driver is older than CUDA 12.0."""
        return Handle(self._loaded.handle)

    def get_function(self, name: str) -> Function:
        """Return the kernel with a symbol.

        Parameters
        ----------
        name
            The name of an ``.entry`` of PTX. That of a ``__global__`` function of CUDA C++ is mangled, unless it is
            ``extern "C"``.

        Raises
        ------
        DriverError
            The module has no such kernel (code 500).
        RuntimeError
            The module was unloaded.
        """
        return Function(self, name)

    def get_global_symbol(self, name: str) -> tuple[MemoryPointer, int]:
        """Return a pointer to a global variable, which keeps the module loaded, and its size in bytes.

        Parameters
        ----------
        name
            The name of a ``.global`` or ``.const`` variable.

        Raises
        ------
        DriverError
            The module has no such variable (code 500).
        RuntimeError
            The module was unloaded.
        """
        from weft.cuda._memory.pointers import MemoryPointer

        _check_name(name)
        address, size = self._loaded.get_global(name)
        return MemoryPointer(self.context, address, size, self._loaded), size

    def setup(self) -> None:
        """Call the setup callbacks that the module was created with.

        Raises
        ------
        RuntimeError
            They were called before, or the module was unloaded.
        """
        if self.initialized:
            msg = "The module has already been initialized."
            raise RuntimeError(msg)
        if self._setup:
            _ = self._loaded.handle
            _call_each(self._setup, self._loaded)
            self.initialized = True

    def unload(self) -> None:
        """Unload the module now, after its teardown callbacks.

        A graph of the driver that contains launches of its functions must not run afterwards.

        Raises
        ------
        RuntimeError
            It was unloaded before.
        """
        if self._teardown is not None and self._loaded.is_loaded:
            self._teardown()
        self._loaded.unload()

    def __repr__(self) -> str:
        state = f"{self._loaded.handle:#x} of device {self.context.device.id}" if self._loaded.is_loaded else "unloaded"
        return f"<CUDA module {state}>"


class Function:
    """A kernel of a `Module`, which it keeps loaded.

    Examples
    --------
    >>> x = cuda.to_device(np.ones(100, np.float32))  # doctest: +SKIP
    >>> function.launch((x, np.float32(2), np.int32(x.size)), 1, 128)  # doctest: +SKIP
    """

    def __init__(self, module: Module, name: str) -> None:
        if not isinstance(module, Module):
            msg = f"module must be a module of a context, not {type(module).__name__}"
            raise TypeError(msg)
        _check_name(name)
        self.module = module
        self.name = name
        self._loaded = module._loaded.function(name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from weft._missing import missing

            raise missing("a function of a module", f"weft.cuda.Function.{name}", dir(type(self)))

    @property
    def handle(self) -> FunctionHandle:
        """The driver's handle, which `launch_kernel` takes: a ``CUkernel``, or a ``CUfunction`` of older drivers.

        It keeps the function.
        """
        handle = FunctionHandle(self._loaded.handle)
        handle.function = self
        return handle

    @property
    def kernel(self) -> Any:
        """The function as a ``Kernel`` of `cuda.core`, for its ``launch``. It does not keep the module loaded.

        Raises
        ------
        ImportError
            The package ``cuda-core`` is not installed.
        """
        import importlib

        return importlib.import_module("cuda.core").Kernel.from_handle(int(self.handle))

    @property
    def device(self) -> Device:
        """The device that it is loaded on."""
        return self.module.context.device

    @property
    def attrs(self) -> FuncAttr:
        """Its resources: ``regs``, ``shared``, ``local``, ``const`` and ``maxthreads``."""
        return FuncAttr(*self._loaded.attributes)

    @property
    def attributes(self) -> FuncAttr:
        """The same as `attrs`."""
        return self.attrs

    @property
    def parameter_sizes(self) -> tuple[int, ...] | None:
        """The size of each parameter in bytes; None where the driver is older than CUDA 12.4."""
        sizes = self._loaded.parameter_sizes
        return None if sizes is None else tuple(sizes)

    def cache_config(self, prefer_equal: bool = False, prefer_cache: bool = False, prefer_shared: bool = False) -> None:
        """Set how launches prefer to divide the memory that is shared memory and L1 cache; no preference by default.

        Parameters
        ----------
        prefer_equal
            The same of both. So do the other two together.
        prefer_cache
            More L1 cache.
        prefer_shared
            More shared memory.
        """
        if prefer_equal or (prefer_cache and prefer_shared):
            preference = _PREFER_EQUAL
        elif prefer_cache:
            preference = _PREFER_L1
        else:
            preference = _PREFER_SHARED if prefer_shared else _PREFER_NONE
        self._loaded.prefer_cache(preference)

    def set_shared_memory_carveout(self, carveout: int) -> None:
        """Set which percentage of that memory launches prefer as shared memory.

        Parameters
        ----------
        carveout
            From 0 to 100, or -1 for the driver's choice.

        Raises
        ------
        ValueError
            It is another number.
        """
        percent = int(carveout)
        if not -1 <= percent <= 100:
            msg = f"carveout must be -1 or a percentage from 0 to 100, got {carveout}"
            raise ValueError(msg)
        self._loaded.prefer_shared(percent)

    def active_blocks_per_multiprocessor(self, blockdim: int, dynsmemsize: int = 0) -> int:
        """Return how many blocks of this many threads run on a multiprocessor at a time."""
        return self._loaded.active_blocks_per_multiprocessor(blockdim, dynsmemsize)

    def max_potential_block_size(
        self, dynsmemsize: int | Callable[[int], int] | None = None, limit: int = 0
    ) -> tuple[int, int]:
        """Return how many blocks fill the device, and the block size with which that are the most threads.

        Parameters
        ----------
        dynsmemsize
            Dynamic shared memory of a block in bytes, or a function that gives it for the threads of a block.
        limit
            The most threads that a block is to have, unless it is 0.
        """
        return self._loaded.max_potential_block_size(dynsmemsize, limit)

    def launch(
        self,
        args: Iterable[Any],
        griddim: int | tuple[int, ...],
        blockdim: int | tuple[int, ...],
        stream: Any = None,
        sharedmem: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Launch it, and do not wait for it.

        Where the driver reports the parameters (CUDA 12.4 or newer), the number and the sizes of the arguments are
        checked. Their types cannot be: a wrong one is undefined behavior, as in CUDA.

        Parameters
        ----------
        args
            A value for each parameter. A device array, memory of a context and an object with
            ``__cuda_array_interface__`` are the address of their first byte; a ``ctypes`` object and a NumPy scalar are
            their bytes. A Python number has no size of its own: write ``ctypes.c_int(3)`` or ``np.float32(3)``.
        griddim
            Blocks of the grid: an integer, or up to three.
        blockdim
            Threads of a block, likewise.
        stream
            A stream of the function's device; its default stream if None or 0.
        sharedmem
            Dynamic shared memory of a block in bytes.
        cooperative
            All blocks must run at the same time, so that they can wait for each other.

        Raises
        ------
        TypeError
            An argument is none of these.
        ValueError
            The number or the size of the arguments is not that of the parameters.
        LaunchError
            The device cannot run such a launch.
        RuntimeError
            The module was unloaded.
        """
        if isinstance(args, (str, bytes)) or not hasattr(args, "__iter__"):
            msg = f"args must be a sequence with a value for each parameter, not {type(args).__name__}"
            raise TypeError(msg)
        values = [_argument(value, number) for number, value in enumerate(args)]
        self._loaded.launch(values, griddim, blockdim, stream, sharedmem, bool(cooperative))

    def __repr__(self) -> str:
        return f"<CUDA function {self.name}>"


class FunctionHandle(Handle):
    """The driver's handle of a function, an integer. It keeps the function."""

    function: Function


def launch_kernel(
    cufunc_handle: FunctionHandle | Function,
    gx: int,
    gy: int,
    gz: int,
    bx: int,
    by: int,
    bz: int,
    sharedmem: int,
    hstream: Any,
    args: Iterable[Any],
    cooperative: bool = False,
) -> None:
    """Launch a function of a module; see `Function.launch`.

    Parameters
    ----------
    cufunc_handle
        The function's ``handle``, or the function.
    gx, gy, gz
        Blocks of the grid.
    bx, by, bz
        Threads of a block.
    sharedmem
        Dynamic shared memory of a block in bytes.
    hstream
        A stream, or its handle; 0 or None for the default stream.
    args
        A value for each parameter.
    cooperative
        All blocks must run at the same time.
    """
    function = cufunc_handle.function if isinstance(cufunc_handle, FunctionHandle) else cufunc_handle
    if not isinstance(function, Function):
        msg = (
            "cufunc_handle must be a function of a module, or its `handle` as it is, which keeps the module loaded, "
            f"not {type(cufunc_handle).__name__}"
        )
        raise TypeError(msg)
    function.launch(args, (gx, gy, gz), (bx, by, bz), _stream(hstream), sharedmem, cooperative)


def image_of(image: Any, name: str) -> bytes:
    """Return the bytes of code: a string, an object with a buffer, or the ``code`` of an object of `cuda.core`.

    Raises
    ------
    TypeError
        It is none of these.
    """
    code = getattr(image, "code", image)
    if isinstance(code, str):
        return code.encode()
    try:
        return bytes(memoryview(code))
    except TypeError:
        msg = (
            f"{name} must be code as a string or bytes (PTX, a cubin or a fatbin), not {type(image).__name__}: read a "
            "file with `pathlib.Path(path).read_bytes()`"
        )
        raise TypeError(msg) from None


def unload_all(device: int) -> None:
    """Unload the modules of a device."""
    for module in list(_LOADED):
        if module.context.device.id == device and module._loaded.is_loaded:
            module.unload()


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        msg = f"name must be a symbol of the module, a string, not {type(name).__name__}"
        raise TypeError(msg)


def _callbacks(callbacks: Any, name: str) -> tuple[Callable[[Any], object], ...]:
    if callbacks is None:
        return ()
    found: tuple[Any, ...] = tuple(callbacks) if isinstance(callbacks, (tuple, list)) else (callbacks,)
    for callback in found:
        if not callable(callback):
            msg = f"{name} must be functions of a module's object code, not {type(callback).__name__}"
            raise TypeError(msg)
    return found


def _call_each(callbacks: Sequence[Callable[[Any], object]], code: Any) -> None:
    for callback in callbacks:
        callback(code)


def _stream(hstream: Any) -> Any:
    """Return the stream of a handle; every other object as it is."""
    if isinstance(hstream, _weft.StreamBase):
        return hstream
    value = getattr(hstream, "value", hstream)
    if isinstance(value, int) and value:
        from weft.cuda._streams import external_stream

        return external_stream(int(value))
    return value


def _argument(value: Any, number: int) -> Any:
    """Return the bytes of an argument; of memory the address, the number of the device, and weft's owner of it."""
    import ctypes

    import numpy as np

    from weft.cuda._memory.pointers import MemoryPointer, OwnedPointer
    from weft.cuda._memory.transfers import on_device

    value = on_device(value)
    if not isinstance(value, _weft.DeviceArrayBase) and hasattr(value, "__cuda_array_interface__"):
        from weft.cuda._memory.making import as_cuda_array

        value = as_cuda_array(value)
    if isinstance(value, _weft.DeviceArrayBase):
        return value.address, value.device, value
    if isinstance(value, (MemoryPointer, OwnedPointer)):
        value._check_alive()
        return int(value), value.context.device.id, value._memory()
    if isinstance(value, Handle):
        return int(value).to_bytes(8, "little")
    if isinstance(value, (np.number, np.bool_, np.void, np.datetime64, np.timedelta64)):
        return value.tobytes()
    objects = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._Pointer)
    # These are pointers to objects of the host.
    of_host = (ctypes.py_object, ctypes.c_char_p, ctypes.c_wchar_p)
    if isinstance(value, objects) and not isinstance(value, of_host):
        return bytes(value)
    raise TypeError(f"args[{number}] " + _why_none(value))


def _why_none(value: Any) -> str:
    """Say why a value is no argument, and what to write."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return "is a NumPy array in the memory of the host: pass a copy on the device, `cuda.to_device(array)`"
    if isinstance(value, (int, float)):
        small, large = ("c_int", "int64") if isinstance(value, int) else ("c_float", "float64")
        return (
            f"is a Python {type(value).__name__}, whose size in the kernel is unknown: write "
            f"`ctypes.{small}({value})`, `np.{large}({value})` or the like, as the parameter is declared"
        )
    return (
        f"must be a device array, memory of a device, a `ctypes` object or a NumPy scalar, not {type(value).__name__}"
    )
