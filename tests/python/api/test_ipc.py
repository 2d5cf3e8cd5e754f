"""IPC memory handles that no other process opens. `test_fake_memory.py` tests opened handles."""

from __future__ import annotations

import ctypes
import pickle

import numpy as np
import pytest
from weft import cuda

driver, devicearray = cuda.cudadrv.driver, cuda.cudadrv.devicearray


@pytest.mark.cpu
def test_memory_of_the_cpu_has_handles_that_no_process_opens() -> None:
    array = cuda.to_device(np.arange(3))
    context = cuda.current_context()
    # A program may create handles for all its arrays without another process.
    handle, part = array.get_ipc_handle(), context.get_ipc_handle(context.memalloc(24).view(8))
    with pytest.raises(ValueError, match="from original process"):
        handle.open()
    with pytest.raises(ValueError, match="from original process"):
        part.open(context)
    assert (part.size, part.offset, len(part.handle)) == (16, 0, 64)
    assert part.handle != handle._ipc_handle.handle
    elsewhere = pickle.loads(pickle.dumps(handle))
    for use in (
        elsewhere.open,
        lambda: pickle.loads(pickle.dumps(part)).open(context),
        lambda: context.open_ipc_handle(bytes(64), 8),
        lambda: cuda.open_ipc_array(bytes(64), 3, np.float32).__enter__(),
        lambda: driver.device_extents(array.gpu_data),
    ):
        with pytest.raises(cuda.CudaAPIError, match="the CPU") as raised:
            use()
        assert raised.value.code == 801


def test_handles() -> None:
    class Reserved:
        reserved = bytes(range(64))

    given = [
        bytes(range(64)),
        tuple(range(64)),
        (ctypes.c_byte * 64)(*range(64)),
        np.arange(64, dtype=np.int8),
        Reserved(),
        bytearray(range(64)),
    ]
    for handle in given:
        assert cuda.IpcHandle(None, handle, 8).handle == bytes(range(64))
    assert cuda.IpcHandle(None, [-1] * 64, 8).handle == b"\xff" * 64
    identity = cuda.get_current_device().get_device_identity()
    handle = pickle.loads(pickle.dumps(cuda.IpcHandle("the memory", bytes(64), 8, identity, offset=3)))
    assert (handle.base, handle.handle, handle.size, handle.offset) == (None, bytes(64), 8, 3)
    assert handle.source_info == identity
    assert handle.handle.reserved == bytes(64)
    assert handle.can_access_peer(cuda.current_context())
    array = devicearray.IpcArrayHandle(handle, {"start": 0, "shape": (1,), "strides": (8,), "dtype": np.dtype(int)})
    assert isinstance(pickle.loads(pickle.dumps(array)), devicearray.IpcArrayHandle)
    with pytest.raises(ValueError, match="from original process"):
        cuda.IpcHandle("the memory", bytes(64), 8).open(cuda.current_context())
    with pytest.raises(ValueError, match="not opened"):
        handle.close()
    with pytest.raises(ValueError, match="must have 64 bytes, not 3"):
        cuda.IpcHandle(None, b"abc", 8)
    with pytest.raises(TypeError, match="handle must be a handle of 64 bytes, not int"):
        cuda.IpcHandle(None, 64, 8)
    with pytest.raises(ValueError, match="size must be a number of bytes"):
        cuda.current_context().open_ipc_handle(bytes(64), -1)


def test_arrays_for_the_device_by_an_inner_name() -> None:
    host = np.arange(3)
    array, is_new = cuda._auto_device(host, user_explicit=True)
    assert is_new
    assert array.copy_to_host().tolist() == [0, 1, 2]
    again, is_new = devicearray.auto_device(array)
    assert again is array
    assert not is_new
