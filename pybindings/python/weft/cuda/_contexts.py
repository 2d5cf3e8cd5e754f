"""Contexts: what a device has in use, and the functions that numba-cuda has on them.

Each device has one context, its primary one, which other libraries of the process share. It is there from the first use
of the device to the end of the process: nothing here makes or destroys one.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import threading

from weft import _weft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from weft.cuda._code.modules import Module
    from weft.cuda._devices import Device
    from weft.cuda._memory.ipc import IpcHandle
    from weft.cuda._memory.pointers import OwnedPointer, PinnedMemory
    from weft.cuda._streams import Event, Stream

MemoryInfo = collections.namedtuple("MemoryInfo", ("free", "total"))  # noqa: PYI024 (typing takes long to import)
MemoryInfo.__doc__ = "Memory of a device in bytes."


class _Pushed(threading.local):
    """The devices that were current before `Context.push`, of each thread."""

    def __init__(self) -> None:
        self.outer: list[int] = []


_pushed = _Pushed()


class Deallocations:
    """Memory of a device that is no longer used, but not freed yet.

    Memory of the driver's pool is not included: it is freed with the last array that uses it. Memory of a memory
    manager is freed when the work that uses it is done, and so is memory that several streams used with
    WEFT_MEMORY_POOL=0.
    """

    def __init__(self, device: int) -> None:
        self._device = device

    def clear(self) -> None:
        """Wait for the device, and free all of it; cached memory is returned to the driver."""
        _weft.free_pending(self._device)

    def __len__(self) -> int:
        return _weft.n_pending(self._device)

    def __repr__(self) -> str:
        return f"<{len(self) or 'no'} pending deallocations>"


class Context:
    """The memory in use on a device. Each device has one.

    Examples
    --------
    >>> context = cuda.current_context()
    >>> context.synchronize()
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        with self.device:
            _weft.synchronize()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from weft._missing import missing

            raise missing("a context", f"weft.cuda.Context.{name}", dir(self))

    def prepare_for_use(self) -> None:
        """Open the device, and make its memory manager, if that was not done yet."""
        _weft.n_pending(self.device.id)
        _ = self.memory_manager

    def push(self) -> None:
        """Make the context's device the current one of the calling thread, until `pop`."""
        _pushed.outer.append(_weft.current_device_id())
        _weft.select_device(self.device.id)

    def pop(self) -> None:
        """Make the device the current one again that was it before the last `push` of this thread.

        Raises
        ------
        RuntimeError
            Nothing was pushed, or another device is current.
        """
        if not _pushed.outer:
            msg = "no context was pushed in this thread"
            raise RuntimeError(msg)
        if _weft.current_device_id() != self.device.id:
            msg = f"the context of device {self.device.id} is not the current one"
            raise RuntimeError(msg)
        _weft.select_device(_pushed.outer.pop())

    def reset(self) -> None:
        """Wait for all work on the device, and unload modules and linked code that has a teardown callback.

        Memory of weft's is freed with the arrays that use it; a memory manager is reset, which may free the memory of
        arrays that are still there. A launch loads the code again.
        """
        from weft.cuda._code.link import unload
        from weft.cuda._memory.tensor_maps import forget

        self.synchronize()
        forget(self.device.id)
        self._unload_modules()
        unload(self.device.id)
        manager = self.memory_manager
        if manager is not None:
            manager.reset()

    # --- Memory ---

    @property
    def memory_manager(self) -> Any:
        """The memory manager of this device (`cuda.set_memory_manager`); None where weft allocates."""
        if not _weft.memory_managers()[0]:
            return None
        from weft.cuda._memory.manager import manager_of

        return manager_of(self.device.id)

    @memory_manager.setter
    def memory_manager(self, manager: Any) -> None:
        from weft.cuda._memory.manager import set_manager_of

        set_manager_of(self.device.id, manager)

    def get_memory_info(self) -> MemoryInfo:
        """Free and total memory in bytes; a memory manager may raise `NotImplementedError`."""
        manager = self.memory_manager
        if manager is not None:
            info: MemoryInfo = manager.get_memory_info()
            return info
        return MemoryInfo(*_weft.memory_info(self.device.id))

    @property
    def deallocations(self) -> Deallocations:
        """Memory that is still to be freed."""
        return Deallocations(self.device.id)

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Run a block in which nothing waits for the device to free memory.

        That is so outside of it, too; a memory manager may do more.
        """
        manager = self.memory_manager
        with contextlib.nullcontext() if manager is None else manager.defer_cleanup():
            yield

    def memalloc(self, bytesize: int) -> OwnedPointer:
        """Allocate memory of the device, with undefined contents, that other processes can open (`get_ipc_handle`).

        Raises
        ------
        DeviceMemoryError
            There is not enough memory; it is a `MemoryError`, too.
        """
        from weft.cuda._memory.pointers import allocate

        manager = self.memory_manager
        made: OwnedPointer = allocate(self, bytesize) if manager is None else manager.memalloc(bytesize)
        return made

    def memallocmanaged(self, bytesize: int, attach_global: bool = True) -> OwnedPointer:
        """Allocate memory that moves to where it is used, host or device.

        Parameters
        ----------
        bytesize
            How many bytes.
        attach_global
            False if the host uses it first.
        """
        from weft.cuda._memory.pointers import allocate_managed

        give = getattr(self.memory_manager, "memallocmanaged", None)
        if give is None:
            return allocate_managed(self, bytesize, attach_global)
        made: OwnedPointer = give(bytesize, attach_global)
        return made

    def memhostalloc(
        self,
        bytesize: int,
        mapped: bool = False,
        portable: bool = False,
        wc: bool = False,
    ) -> OwnedPointer | PinnedMemory:
        """Allocate page-locked memory of the host.

        Parameters
        ----------
        bytesize
            How many bytes.
        mapped
            The device reaches it, too: the result is of a `MappedMemory`, which has an address there.
        portable
            Has no effect: it always is.
        wc
            Has no effect: the host can read the memory, too.
        """
        from weft.cuda._memory.pointers import allocate_host

        manager = self.memory_manager
        if manager is not None:
            made: OwnedPointer | PinnedMemory = manager.memhostalloc(bytesize, mapped, portable, wc)
            return made
        return allocate_host(self, bytesize, mapped)

    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool = False) -> OwnedPointer | PinnedMemory:
        """Lock the pages of host memory while the returned object exists.

        Parameters
        ----------
        owner
            The owner of the memory, which the pinned object keeps alive.
        pointer
            The address: an integer, or a ``ctypes`` pointer.
        size
            Bytes.
        mapped
            As in `memhostalloc`.
        """
        from weft.cuda._memory.pointers import lock_host

        manager = self.memory_manager
        if manager is not None:
            made: OwnedPointer | PinnedMemory = manager.mempin(owner, pointer, size, mapped)
            return made
        return lock_host(self, owner, pointer, size, mapped)

    # --- Other processes ---

    def get_ipc_handle(self, memory: Any) -> IpcHandle:
        """Let other processes open memory, while this one holds it.

        Raises
        ------
        DriverError
            No other process can open it (code 801): it is a device array's, in the driver's pool, or the CPU's.
        """
        from weft.cuda._memory.ipc import handle_of

        manager = self.memory_manager
        return handle_of(self, memory) if manager is None else manager.get_ipc_handle(memory)

    def open_ipc_handle(self, handle: Any, size: int) -> OwnedPointer:
        """Open memory of another process by the 64 bytes of its handle, of which ``size`` bytes are used."""
        from weft.cuda._memory.ipc import open_handle

        return open_handle(self, handle, size)

    # --- Other devices ---

    def can_access_peer(self, peer_device: int) -> bool:
        """Whether kernels of this device can be let reach memory of another one, by its number."""
        return _weft.can_access_peer(self.device.id, peer_device)

    def enable_peer_access(self, peer_context: Context | int, flags: int = 0) -> None:
        """Let kernels of this device reach memory of another one, for as long as the process runs.

        Launches on this device then take arrays of the other one. As between streams, nothing orders them with the work
        on the array's own device: wait for that first. Memory of `memalloc` must outlive the launch.

        Parameters
        ----------
        peer_context
            The other device's context.
        flags
            0: the driver knows no others.

        Raises
        ------
        DriverError
            They cannot reach it (code 217), or may already (704).
        """
        if flags:
            msg = f"flags must be 0, got {flags}"
            raise ValueError(msg)
        peer = peer_context.device.id if isinstance(peer_context, Context) else int(peer_context)
        _weft.enable_peer_access(self.device.id, peer)

    # --- Streams and events ---

    def create_stream(self) -> Stream:
        """Make a new stream of this device."""
        from weft.cuda._streams import stream

        with self.device:
            return stream()

    def create_external_stream(self, ptr: int) -> Stream:
        """Wrap a stream of another library, on this device, by its handle."""
        from weft.cuda._streams import external_stream

        with self.device:
            return external_stream(ptr)

    def create_event(self, timing: bool = True) -> Event:
        """Make a new event of this device."""
        from weft.cuda._streams import event

        with self.device:
            return event(timing)

    def get_default_stream(self) -> Stream:
        """Give the default stream, of the device that is current when it is used."""
        from weft.cuda._streams import default_stream

        return default_stream()

    def get_legacy_default_stream(self) -> Stream:
        """Give the default stream that all threads share."""
        from weft.cuda._streams import legacy_default_stream

        return legacy_default_stream()

    def get_per_thread_default_stream(self) -> Stream:
        """Give the default stream of the calling thread."""
        from weft.cuda._streams import per_thread_default_stream

        return per_thread_default_stream()

    # --- Modules ---

    def create_module_ptx(self, ptx: str | bytes) -> Module:
        """Load PTX of any compiler on the device.

        Parameters
        ----------
        ptx
            The text: a string or bytes.

        Returns
        -------
        Module
            Its functions are launched with values of the parameters' types. It is unloaded when it and its functions
            are gone.

        Raises
        ------
        TypeError
            It is no text.
        ValueError
            The text is empty.
        DriverError
            The driver's compiler refuses it; the message has its log.
        LinkerError
            It calls a function that it does not contain.
        CudaSupportError
            Kernels run on the CPU.

        Examples
        --------
        >>> ptx, _ = cuda.compile_ptx(add, "void(float32[::1], float32)")  # doctest: +SKIP
        >>> module = cuda.current_context().create_module_ptx(ptx)  # doctest: +SKIP
        """
        from weft.cuda._code.modules import Module, image_of

        return Module(self, image_of(ptx, "ptx"))

    def create_module_image(
        self,
        image: Any,
        setup_callbacks: Sequence[Callable[[Any], object]] | None = None,
        teardown_callbacks: Sequence[Callable[[Any], object]] | None = None,
    ) -> Module:
        """Load machine code of any compiler on the device.

        Parameters
        ----------
        image
            A cubin, a fatbin or PTX: a string, bytes, or an ``ObjectCode`` of `cuda.core`.
        setup_callbacks
            Functions that `Module.setup` calls with the object code, whose ``handle`` is a ``CUlibrary``.
        teardown_callbacks
            Functions that are called with it before the module is unloaded.

        Returns
        -------
        Module
            As of `create_module_ptx`.

        Raises
        ------
        TypeError
            The image, or a callback, is none.
        ValueError
            The image is empty, truncated, or neither of these.
        DriverError
            The driver refuses it: code for another kind of GPU has the code 209.
        CudaSupportError
            Kernels run on the CPU.
        """
        from weft.cuda._code.modules import Module, image_of

        return Module(self, image_of(image, "image"), setup_callbacks, teardown_callbacks)

    def unload_module(self, module: Module) -> None:
        """Unload a module of this context: see `Module.unload`.

        Raises
        ------
        RuntimeError
            It was unloaded before.
        ValueError
            It is a module of another device.
        """
        from weft.cuda._code.modules import Module

        if not isinstance(module, Module):
            msg = f"module must be a module of the context, not {type(module).__name__}"
            raise TypeError(msg)
        if module.context != self:
            msg = f"module is loaded on device {module.context.device.id}, not on device {self.device.id}"
            raise ValueError(msg)
        module.unload()

    def _unload_modules(self) -> None:
        """Unload all modules; without any, the module for them is not imported."""
        modules = sys.modules.get("weft.cuda._code.modules")
        if modules is not None:
            modules.unload_all(self.device.id)

    # --- Kernels ---

    def get_active_blocks_per_multiprocessor(
        self, func: Any, blocksize: int, memsize: int, flags: int | None = None
    ) -> int:
        """Give how many blocks of a kernel run on a multiprocessor at a time; on the CPU, on a core.

        Parameters
        ----------
        func
            A compiled kernel: a value of ``kernel.overloads``, or a kernel that was compiled for one signature; or a
            `Function` of a module.
        blocksize
            Threads of a block.
        memsize
            Dynamic shared memory of a block in bytes.
        flags
            None or 0: the driver's flags are not passed on.
        """
        _check_flags(flags)
        with self.device:
            active: int = _compiled(func).active_blocks_per_multiprocessor(blocksize, memsize)
        return active

    def get_max_potential_block_size(
        self,
        func: Any,
        b2d_func: Callable[[int], int] | None,
        memsize: int,
        blocksizelimit: int,
        flags: int | None = None,
    ) -> tuple[int, int]:
        """Give the block size with which a multiprocessor runs the most threads of a kernel.

        Of several the largest, as CUDA's ``cuOccupancyMaxPotentialBlockSize`` does. A core of the CPU runs one block
        at a time: there it is the largest that the kernel can have.

        Parameters
        ----------
        func
            As in `get_active_blocks_per_multiprocessor`.
        b2d_func
            Gives the bytes of dynamic shared memory of a block for its threads; None if they are `memsize` for all.
        memsize
            Dynamic shared memory of a block in bytes, where `b2d_func` is None.
        blocksizelimit
            The most threads that a block is to have, unless it is 0.
        flags
            None or 0: the driver's flags are not passed on.

        Returns
        -------
        tuple[int, int]
            The minimum number of blocks that fill all multiprocessors, and the threads per block; both 0 if the shared
            memory is too large for a block.
        """
        _check_flags(flags)
        with self.device:
            found: tuple[int, int] = _compiled(func).max_potential_block_size(b2d_func or memsize, blocksizelimit)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<context of {self.device!r}>"


def _check_flags(flags: int | None) -> None:
    if flags:
        msg = f"flags must be None or 0, got {flags}"
        raise ValueError(msg)


def _compiled(func: Any) -> Any:
    """Give a compiled kernel of what `func` may be."""
    modules = sys.modules.get("weft.cuda._code.modules")
    if isinstance(func, _weft.Kernel) or (modules is not None and isinstance(func, modules.Function)):
        return func
    if isinstance(func, _weft.Dispatcher):
        found = list(func.overloads.values())
        if len(found) == 1:
            return found[0]
        msg = f"func must be compiled for one signature, but {func!r} is for {len(found)}: pass a value of `overloads`"
        raise ValueError(msg)
    msg = (
        "func must be a compiled kernel (a value of `kernel.overloads`) or a function of a module, not "
        f"{type(func).__name__}"
    )
    raise TypeError(msg)
