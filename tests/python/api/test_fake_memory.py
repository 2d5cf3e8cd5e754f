"""Out-of-memory, memory managers, and memory of other processes and devices, over the fake driver."""

from __future__ import annotations


def test_out_of_memory_at_every_allocation_in_turn(run) -> None:
    run(
        """
        import ctypes
        import gc

        fail = ctypes.CDLL("libcuda.so.1").fake_no_memory
        context = cuda.current_context()
        stream = cuda.stream()

        def program():
            x = cuda.to_device(np.arange(4))
            host = np.zeros(1, int)
            sum3[1, 1](host, 1, 2)
            sum3[1, 1, stream](x, 3, 4)
            y = cuda.device_array(1000, stream=stream)
            m = context.memalloc(100)
            p = cuda.pinned_array(10)
            z = cuda.managed_array(10)
            big = cuda.device_array(9 << 20)
            assert host[0] == 3 and x.copy_to_host().tolist() == [7, 1, 2, 3]

        program()
        gc.collect()
        context.deallocations.clear()
        free = context.get_memory_info().free
        failed = 0
        for at in range(1, 100):
            # Once: freeing cached memory makes room, and the caller sees no error.
            context.deallocations.clear()
            fail(at, 1)
            program()
            # Twice: a MemoryError, and everything is as before.
            context.deallocations.clear()
            fail(at, 2)
            try:
                program()
            except MemoryError as error:
                assert isinstance(error, weft.errors.DeviceMemoryError) and error.code == 2, error
                failed += 1
            else:
                break
            finally:
                fail(0, 0)
            gc.collect()
            context.deallocations.clear()
            assert context.get_memory_info().free == free, at
            program()
        assert failed >= 7, failed
        """,
        FAKE_BUSY="1",
    )


def test_an_array_that_comes_and_goes_costs_no_call(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        for _ in range(100):
            cuda.device_array(1 << 17)
        """,
        FAKE_TRACE=str(calls),
    )
    told = calls.read_text().splitlines()
    assert told.count("cuMemAllocAsync") == 1
    assert told.count("cuMemFreeAsync") == 0


def test_memory_of_a_manager_goes_back_behind_the_streams_that_use_it(run) -> None:
    run(
        """
        import ctypes

        live = []

        class Manager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
            def initialize(self):
                live.append("initialized")

            def memalloc(self, size):
                block = (ctypes.c_uint64 * (size // 8 + 1))()
                address = ctypes.addressof(block)
                live.append(address)
                self.allocations[address] = block

                def free():
                    live.remove(address)
                    del self.allocations[address]

                return cuda.MemoryPointer(self.context, ctypes.c_uint64(address), size, finalizer=free)

            def get_memory_info(self):
                raise NotImplementedError

            interface_version = 1

        cuda.set_memory_manager(Manager)
        context, streams = cuda.current_context(), [cuda.stream(), cuda.stream()]
        x = cuda.device_array(1, int)
        assert live == ["initialized", x.address]
        for stream in streams:
            sum3[1, 1, stream](x, 1, 2)
        del x
        # The work goes on.
        assert len(live) == 2 and len(context.deallocations) == 1
        assert repr(context.deallocations) == "<1 pending deallocations>"
        streams[0].synchronize()
        y = cuda.device_array(1, int)
        assert len(context.deallocations) == 1
        streams[1].synchronize()
        cuda.synchronize()
        z = cuda.device_array(1, int)
        assert len(context.deallocations) == 0 and live == ["initialized", y.address, z.address]
        # Arrays of the host are staged in it, too.
        host = np.zeros(1, int)
        sum3[1, 1](host, 3, 4)
        assert host[0] == 7
        sum3[1, 1, streams[0]](y, 1, 2)
        del y, z
        assert len(live) > 1
        context.deallocations.clear()
        assert live == ["initialized"] and len(context.deallocations) == 0
        cuda.set_memory_manager(cuda.cudadrv.driver.NumbaCUDAMemoryManager)
        assert cuda.to_device(host).copy_to_host()[0] == 7 and live == ["initialized"]
        """,
        FAKE_BUSY="1",
    )


OTHER = """
import pickle
import subprocess
import sys

def other(*given, code):
    script = "import pickle, sys\\nimport numpy as np\\nimport weft\\nfrom weft import cuda\\n"
    script += "given = pickle.load(sys.stdin.buffer)\\n" + code
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(given), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
"""


def test_arrays_of_other_processes(run, tmp_path) -> None:
    run(
        OTHER
        + """
array = cuda.to_device(np.arange(12).reshape(3, 4))
handle = array.get_ipc_handle()
part = array[1:, ::2].get_ipc_handle()
raw = cuda.current_context().get_ipc_handle(array.gpu_data)
assert (raw.size, raw.offset, len(raw.handle)) == (96, 0, 64)
sliced = cuda.current_context().get_ipc_handle(array[1:].gpu_data)
assert (sliced.size, sliced.offset) == (64, 32)
other(handle, part, raw.handle, code='''
handle, part, raw = given
with handle as array:
    assert array.copy_to_host().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    array[0, 0] = 77
view = part.open()
assert view.strides == (32, 16) and view.copy_to_host().tolist() == [[4, 6], [8, 10]], view.copy_to_host()
view[1, 1] = 88
try:
    part.open()
except ValueError as error:
    assert "already opened" in str(error)
else:
    raise AssertionError
part.close()
# A mapping that is still used is not closed.
assert view[0, 0] == 4
try:
    part.close()
except ValueError as error:
    assert "not opened" in str(error)
else:
    raise AssertionError
with cuda.open_ipc_array(raw, (2, 2), np.int64, offset=8) as array:
    assert array.copy_to_host().tolist() == [[1, 2], [3, 4]]
with cuda.open_ipc_array(tuple(raw), 2, np.int64, strides=(80,)) as array:
    assert array.copy_to_host().tolist() == [77, 88]
pointer = cuda.current_context().open_ipc_handle(raw, 96)
assert isinstance(pointer.owner, cuda.MemoryPointer) and pointer.size == 96
pointer.view(8, 16).memset(0)
cuda.synchronize()
for wrong, error in ((b"x", ValueError), (7, TypeError)):
    try:
        cuda.IpcHandle(None, wrong, 8)
    except error as raised:
        assert "handle must" in str(raised)
    else:
        raise AssertionError
''')
assert array.copy_to_host().tolist() == [[77, 0, 2, 3], [4, 5, 6, 7], [8, 9, 88, 11]][:2] + [[8, 9, 88, 11]]
try:
    handle.open()
except ValueError as error:
    assert "original process" in str(error)
else:
    raise AssertionError
""",
        FAKE_SHARED=str(tmp_path),
        WEFT_MEMORY_POOL="0",
    )


def test_memory_in_the_pool_is_not_for_other_processes(run, tmp_path) -> None:
    run(
        OTHER
        + """
array = cuda.to_device(np.arange(3))
try:
    array.get_ipc_handle()
except cuda.CudaAPIError as error:
    assert error.code == 801 and "WEFT_MEMORY_POOL=0" in str(error) and "memalloc" in str(error), error
else:
    raise AssertionError
memory = cuda.current_context().memalloc(24)
start, end = cuda.cudadrv.driver.device_extents(memory.view(8))
assert (start, end - start) == (int(memory), 24)
memory.memset(1)
handle = cuda.current_context().get_ipc_handle(memory.view(8))
assert handle.offset == 8 and handle.size == 16
assert handle.source_info == cuda.get_current_device().get_device_identity()
other(handle, code='''
handle, = given
array = handle.open_array(cuda.current_context(), (2,), np.int64)
assert array.copy_to_host().tolist() == [0x0101010101010101] * 2
array[1] = 5
''')
view = cuda.DeviceNDArray((3,), (8,), np.int64, gpu_data=memory)
assert view.copy_to_host().tolist() == [0x0101010101010101] * 2 + [5]
""",
        FAKE_SHARED=str(tmp_path),
    )


def test_memory_of_another_process_on_another_device(run, tmp_path) -> None:
    code = """
with cuda.gpus[1]:
    array = cuda.to_device(np.arange(4))
    handle = array.get_ipc_handle()
other(handle, code='''
handle, = given
array = handle.open()
assert array.device == 0 and array.copy_to_host().tolist() == [0, 1, 2, 3]
array[0] = 9
''')
print(array.copy_to_host().tolist())
"""
    env = {"FAKE_SHARED": str(tmp_path), "WEFT_MEMORY_POOL": "0", "FAKE_DEVICES": "2"}
    # Without peer access, it is a copy.
    assert run(OTHER + code, **env).split("\n")[0] == "[0, 1, 2, 3]"
    assert run(OTHER + code, **env, FAKE_PEERS="1").split("\n")[0] == "[9, 1, 2, 3]"


def test_reaching_other_devices(run) -> None:
    run(
        """
        first, second = cuda.gpus[0].get_primary_context(), cuda.gpus[1].get_primary_context()
        assert first.can_access_peer(1) and not first.can_access_peer(0)
        first.enable_peer_access(second)
        try:
            first.enable_peer_access(second)
        except cuda.CudaAPIError as error:
            assert error.code == 704
        second.push()
        assert cuda.get_current_device().id == 1
        first.push()
        try:
            second.pop()
        except RuntimeError as error:
            assert "device 1 is not the current one" in str(error)
        first.pop()
        second.pop()
        assert cuda.get_current_device().id == 0
        assert int(second.memalloc(8)) and second.create_stream().synchronize() is None
        here, there = cuda.gpus[0].get_device_identity(), cuda.gpus[1].get_device_identity()
        assert there == {"pci_domain_id": 0, "pci_bus_id": 1, "pci_device_id": 5}
        assert cuda.Device.from_identity(there).id == 1 and cuda.Device.from_identity(here).id == 0
        """,
        FAKE_PEERS="1",
        FAKE_DEVICES="2",
    )
