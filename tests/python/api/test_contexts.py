"""Contexts, and pointers into the memory that they allocate."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest
from weft import cuda
from weft.cuda._memory.device_array import array_at

driver = cuda.cudadrv.driver


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def array_in(pointer, dtype, owner):
    """An array in the memory of a pointer, as other libraries create one."""
    count = pointer.size // np.dtype(dtype).itemsize
    address = int(pointer.device_pointer)
    device = cuda.get_current_device().id
    return array_at(owner, address, (count,), (np.dtype(dtype).itemsize,), dtype, device)


def test_memory_of_a_context() -> None:
    context = cuda.current_context()
    memory = context.memalloc(800)
    assert isinstance(memory, driver.OwnedPointer)
    assert isinstance(memory.owner, driver.AutoFreePointer)
    assert memory.size == 800
    assert memory.context == context
    assert memory.owner.owner is memory.owner
    assert int(memory) == int(memory.device_pointer) == memory.device_pointer_value == memory.handle.value
    assert isinstance(memory.device_ctypes_pointer, ctypes.c_size_t)
    assert memory.device_ctypes_pointer.value == int(memory)
    memory.memset(0)
    memory.memset(1, count=8)
    array = array_in(memory, np.int64, memory)
    add_one[1, 128](array)
    assert array.copy_to_host().tolist() == [0x0101010101010101 + 1] + [1] * 99
    stream = cuda.stream()
    memory.view(8, 16).memset(2, stream=stream)
    stream.synchronize()
    assert array[1] == 0x0202020202020202
    assert array.gpu_data.owner is memory
    assert int(array[2:].gpu_data.handle) == int(memory) + 16
    for wrong in (
        lambda: memory.memset(256),
        lambda: memory.memset(-1),
        lambda: memory.memset(0, count=801),
        lambda: context.memalloc(-1),
        lambda: cuda.MemoryPointer(context, 0, -1),
    ):
        with pytest.raises(ValueError, match=r"byte|count|size"):
            wrong()
    with pytest.raises(TypeError, match="pointer must be"):
        cuda.MemoryPointer(context, "here", 8)
    with pytest.raises(MemoryError) as raised:
        context.memalloc(1 << 60)
    assert isinstance(raised.value, cuda.CudaAPIError)
    # The only reference to the pointer lives as long as the call of its method.
    context.memalloc(8).memset(0)
    assert context.memalloc(8).view(2).view(1).size == 5
    assert context.memalloc(8).size == 8


def test_views_of_memory() -> None:
    memory = cuda.current_context().memalloc(100)
    view = memory.view(10, 60)
    assert (int(view) - int(memory), view.size) == (10, 50)
    inner = view.view(5)
    # The memory is reference-counted.
    assert inner.owner is view.owner is memory.owner
    assert memory.refct == 3
    assert (int(inner) - int(memory), inner.size) == (15, 45)
    assert memory.view(100).size == 0
    for start, stop in ((-1, None), (101, None), (0, 101), (10, 5)):
        with pytest.raises(ValueError, match="outside the 100 bytes"):
            memory.view(start, stop)
    nothing = cuda.current_context().memalloc(0)
    assert nothing.device_pointer_value is None
    assert nothing.view(3).size == 0
    address = int(inner)
    del memory, view
    gc.collect()
    inner.memset(3)
    assert int(inner) == address


def test_memory_that_is_freed() -> None:
    memory = cuda.current_context().memalloc(64)
    view = memory.view(8)
    array = array_in(memory, np.uint8, memory._memory())
    memory.memset(7)
    memory.free()
    for use in (lambda: memory.memset(0), lambda: view.memset(0), lambda: memory.view(0), memory.free):
        with pytest.raises(RuntimeError, match=r"freed|Freeing dead pointer"):
            use()
    # An array that owns the memory keeps it alive.
    assert (array.copy_to_host() == 7).all()


def test_finalizers() -> None:
    context, calls = cuda.current_context(), []
    pointer = cuda.MemoryPointer(context, ctypes.c_uint64(0x1000), 16, finalizer=lambda: calls.append("free"))
    assert pointer.is_managed
    assert int(pointer.device_pointer) == 0x1000
    view = pointer.view(4)
    del pointer
    gc.collect()
    assert calls == []
    del view
    gc.collect()
    assert calls == ["free"]

    pointer = cuda.MemoryPointer(context, 0x1000, 16, finalizer=lambda: calls.append("again"))
    pointer.free()
    assert calls == ["free", "again"]
    with pytest.raises(RuntimeError, match="Freeing dead pointer"):
        pointer.free()
    del pointer
    assert calls == ["free", "again"]
    # Without a finalizer, another object owns the memory: `free` only invalidates the pointer.
    cuda.MemoryPointer(context, 0x1000, 16).free()

    pointer = cuda.MemoryPointer(context, 0x1000, 16, finalizer=lambda: calls.append("owned"))
    # A `MemoryPointer` holds its own reference: dropping owned pointers does not free the memory.
    first, second = pointer.own(), pointer.own()
    third = second.view(8)
    assert isinstance(third, driver.OwnedPointer)
    assert (third.size, int(third), third.context) == (8, 0x1008, context)
    assert pointer.refct == 4
    del first, second, third
    gc.collect()
    assert (pointer.refct, calls[2:]) == (1, [])
    del pointer
    gc.collect()
    assert calls[2:] == ["owned"]

    # An `AutoFreePointer` holds none: the last owned pointer frees the memory,
    pointer = driver.AutoFreePointer(context, 0x1000, 16, finalizer=lambda: calls.append("auto"))
    first, second = pointer.own(), pointer.own()
    del first
    gc.collect()
    assert calls[3:] == []
    del second
    gc.collect()
    assert calls[3:] == ["auto"]
    assert not pointer.is_alive
    # or, without owned pointers, the pointer itself.
    pointer = driver.AutoFreePointer(context, 0x1000, 16, finalizer=lambda: calls.append("alone"))
    del pointer
    gc.collect()
    assert calls[4:] == ["alone"]


def test_the_memory_of_an_array() -> None:
    array = cuda.to_device(np.arange(10, dtype=np.float32))
    data = array[2:].gpu_data
    assert isinstance(data, cuda.MemoryPointer)
    assert (data.size, int(data.device_pointer)) == (32, array.address + 8)
    # Views of the same bytes have equal pointers.
    assert data == array[2:].view(np.int32).gpu_data
    assert hash(data) == hash(array[2:].gpu_data)
    assert data != array.gpu_data
    assert data != int(data.device_pointer)
    assert array.gpu_data.device_pointer_value == array.device_ctypes_pointer.value
    array.gpu_data.view(4, 12).memset(0)
    data.view(0, 4).memset(0)
    del data
    assert array.copy_to_host().tolist() == [0, 0, 0, 3, 4, 5, 6, 7, 8, 9]


def test_memory_of_the_host() -> None:
    context = cuda.current_context()
    mapped = context.memhostalloc(80, mapped=True, portable=True, wc=True)
    assert isinstance(mapped.owner, cuda.MappedMemory)
    assert mapped.size == 80
    host = np.asarray(mapped).view(np.int64)
    host[:] = np.arange(10)
    array = array_in(mapped, np.int64, mapped)
    add_one[1, 32](array)
    cuda.synchronize()
    assert host.tolist() == list(range(1, 11))
    assert mapped.host_pointer.value == host.__array_interface__["data"][0]

    pinned = context.memhostalloc(16)
    assert isinstance(pinned, cuda.PinnedMemory)
    assert pinned.own() is pinned
    np.asarray(pinned)[:] = 5
    assert pinned.size == 16

    managed = context.memallocmanaged(80, attach_global=True)
    assert isinstance(managed.owner, driver.ManagedMemory)
    host = np.asarray(managed).view(np.int64)
    host[:] = 1
    add_one[1, 32](array_in(managed, np.int64, managed))
    cuda.synchronize()
    assert host.tolist() == [2] * 10


def test_bytes_of_memory_of_the_host() -> None:
    context = cuda.current_context()
    for memory in (context.memhostalloc(8), context.memhostalloc(8, mapped=True), context.memallocmanaged(8)):
        np.asarray(memory)[:] = range(8)
        view = memory.__buffer__(0)
        assert view.tolist() == list(range(8))
        view[0] = 9
        assert np.asarray(memory)[0] == 9
        if sys.version_info >= (3, 12):
            assert np.frombuffer(memory, np.uint8)[0] == 9
    with pytest.raises(BufferError):
        context.memalloc(8).__buffer__(0)


def test_copies_by_pointers() -> None:
    context = cuda.cudadrv.devices.get_context()
    host, back = np.arange(100, dtype=np.uint32), np.zeros(100, np.uint32)
    one, other = context.memalloc(host.nbytes), context.memalloc(host.nbytes)
    assert driver.device_memory_size(one) == host.nbytes
    stream = cuda.stream()
    driver.host_to_device(one, host, host.nbytes, stream)
    driver.device_to_device(other, one.view(8), host.nbytes - 8, stream)
    driver.device_to_host(back, other, host.nbytes - 8, stream)
    assert back.tolist() == [*range(2, 100), 0, 0]
    driver.device_memset(other, 0xAB, 8)
    driver.device_to_host(back.ctypes.data, other, 16)
    assert back[:4].tolist() == [0xABABABAB, 0xABABABAB, 4, 5]
    array = cuda.to_device(host)
    driver.host_to_device(array, bytes(8), 8)
    driver.device_memset(array[50:], 0, 40)
    assert array.copy_to_host().tolist() == [0, 0, *range(2, 50), *([0] * 10), *range(60, 100)]
    for wrong in (
        lambda: driver.host_to_device(one, host[:5], 24),
        lambda: driver.host_to_device(one, host, 401),
        lambda: driver.device_to_host(np.zeros(500), one, 401),
        lambda: driver.device_to_device(one.view(4), other, 400),
        lambda: driver.device_memset(one, 0, 401),
    ):
        with pytest.raises(ValueError, match=r"bytes"):
            wrong()
    with pytest.raises(TypeError, match="not device memory: ndarray"):
        driver.device_to_host(host, host, 8)
    assert driver.is_device_memory(one.view(3))
    assert driver.is_device_memory(array)
    mapped = cuda.mapped_array(10, np.uint8)
    driver.device_memset(mapped, 7, 10)
    cuda.synchronize()
    assert driver.is_device_memory(mapped)
    assert (np.asarray(mapped) == 7).all()
    assert not driver.is_device_memory(host)


def test_extents_of_memory_of_the_host() -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))

    array = np.arange(100)
    for view in (array, np.asfortranarray(array.reshape(2, 50)), np.asarray(np.uint32(5))):
        start, end = driver.host_memory_extents(view)
        assert start == view.ctypes.data
        assert end - start == driver.host_memory_size(view) == view.nbytes
    assert driver.host_memory_extents(array[::-2])[1] - array.ctypes.data == 800
    assert driver.host_memory_size(Pair(1, 2)) == 8
    assert driver.host_memory_size(ctypes.c_double(1)) == 8
    assert driver.host_memory_size(b"abc") == 3


def test_locking_memory_of_the_host() -> None:
    context = cuda.current_context()
    host = np.arange(1000)
    for mapped, of in ((True, cuda.MappedMemory), (False, cuda.PinnedMemory)):
        locked = context.mempin(host, ctypes.c_void_p(host.ctypes.data), host.nbytes, mapped=mapped)
        assert type(locked.owner) is of
        assert locked.host_pointer.value == host.ctypes.data
        if mapped:
            add_one[8, 128](array_in(locked, host.dtype, locked))
            cuda.synchronize()
        del locked
    assert host.tolist() == list(range(1, 1001))


def test_streams_and_events_of_a_context() -> None:
    context = cuda.current_context()
    context.prepare_for_use()
    stream = context.create_stream()
    event = context.create_event()
    event.record(stream)
    event.synchronize()
    with pytest.raises(weft_errors().EventError):
        event.elapsed_time(context.create_event(timing=False))
    handles = [
        context.get_default_stream(),
        context.get_legacy_default_stream(),
        context.get_per_thread_default_stream(),
    ]
    assert [int(stream) for stream in handles] == [0, 1, 2]
    assert int(context.create_external_stream(int(stream))) == int(stream)
    assert context.create_external_stream(int(stream)).external


def weft_errors():
    from weft import errors

    return errors


def test_pushing_contexts() -> None:
    context = cuda.current_context()
    context.push()
    assert cuda.current_context() == context
    context.pop()
    assert cuda.current_context() == context
    with pytest.raises(RuntimeError, match="no context was pushed"):
        context.pop()


def test_what_is_pending() -> None:
    context = cuda.current_context()
    assert len(context.deallocations) == 0
    assert repr(context.deallocations) == "<no pending deallocations>"
    cuda.to_device(np.zeros(1 << 20))
    before = context.get_memory_info()
    assert isinstance(before, cuda.MemoryInfo)
    assert isinstance(before, driver.MemoryInfo)
    assert tuple(before) == (before.free, before.total)
    context.deallocations.clear()
    with cuda.defer_cleanup(), context.defer_cleanup():
        assert cuda.to_device([1]).copy_to_host().tolist() == [1]


def test_how_many_blocks_run() -> None:
    context = cuda.current_context()
    x = cuda.to_device(np.zeros(4))
    add_one[1, 4](x)
    (kernel,) = [kernel for kernel in add_one.overloads.values() if kernel.argument_types[0] == cuda.typeof(x)]
    assert context.get_active_blocks_per_multiprocessor(kernel, 128, 0) >= 1
    blocks, threads = context.get_max_potential_block_size(kernel, None, 0, 0)
    assert blocks >= context.device.MULTIPROCESSOR_COUNT
    assert 1 <= threads <= kernel.max_threads_per_block
    running = context.get_active_blocks_per_multiprocessor(kernel, threads, 0)
    assert blocks == running * context.device.MULTIPROCESSOR_COUNT
    for fewer in range(32, kernel.max_threads_per_block + 1, 32):
        assert context.get_active_blocks_per_multiprocessor(kernel, fewer, 0) * fewer <= running * threads
    assert context.get_max_potential_block_size(kernel, lambda _: 0, 0, 64)[1] == 64
    asked = []
    assert context.get_max_potential_block_size(kernel, lambda threads: asked.append(threads) or 8, 0, 100)[1] <= 100
    assert sorted(asked) == [32, 64, 96, 100]
    assert context.get_active_blocks_per_multiprocessor(kernel, 2048, 0) == 0
    too_much = context.device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN + 1
    assert context.get_active_blocks_per_multiprocessor(kernel, 64, too_much) == 0
    assert context.get_max_potential_block_size(kernel, None, too_much, 0) == (0, 0)
    with pytest.raises(TypeError, match="func must be a compiled kernel"):
        context.get_active_blocks_per_multiprocessor(add_one.py_func, 128, 0)
    with pytest.raises(ValueError, match="flags must be"):
        context.get_active_blocks_per_multiprocessor(kernel, 128, 0, flags=1)


def test_other_devices() -> None:
    context = cuda.current_context()
    assert not context.can_access_peer(cuda.get_current_device().id)
    with pytest.raises((ValueError, IndexError), match=r"no .*device 77"):
        context.can_access_peer(77)
    with pytest.raises(cuda.CudaAPIError):
        context.enable_peer_access(context)
    with pytest.raises(ValueError, match="flags must be 0"):
        context.enable_peer_access(context, flags=1)


def test_devices_by_their_place() -> None:
    device = cuda.get_current_device()
    identity = device.get_device_identity()
    assert set(identity) == {"pci_domain_id", "pci_bus_id", "pci_device_id"}
    assert cuda.Device.from_identity(identity) == device
    with pytest.raises(RuntimeError, match="no device with the identity"):
        cuda.Device.from_identity({**identity, "pci_bus_id": 9999})
    device.release_primary_context()
    assert driver.driver.get_device_count() == len(cuda.gpus)
    assert device.supports_fp8 == (device.compute_capability >= (8, 9))
    assert cuda.select_device(None) == device
    for name in (
        "MAX_BLOCKS_PER_MULTIPROCESSOR",
        "MAXIMUM_TEXTURE1D_WIDTH",
        "CLUSTER_LAUNCH",
        "MEMORY_POOLS_SUPPORTED",
    ):
        assert isinstance(getattr(device, name), int)
    assert device.MAX_THREADS_PER_MULTI_PROCESSOR == device.MAX_THREADS_PER_MULTIPROCESSOR
    assert device.MAX_BLOCKS_PER_MULTIPROCESSOR >= 1


@pytest.mark.cpu
def test_modules_need_a_gpu() -> None:
    context = cuda.current_context()
    for create in (context.create_module_ptx, context.create_module_image):
        for image in (".version 8.0", b".version 8.0"):
            with pytest.raises(cuda.CudaSupportError, match=r"run on GPUs only.*`cuda\.jit`.*`cuda\.declare_device`"):
                create(image)
        with pytest.raises(TypeError, match="must be code as a string or bytes"):
            create(5)
