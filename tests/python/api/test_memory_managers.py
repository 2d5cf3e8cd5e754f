"""Memory managers: classes that allocate device arrays in place of weft, as in numba-cuda's plugin interface."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
from weft import cuda

driver = cuda.cudadrv.driver


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


class Counting(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
    """Returns the memory of weft's own manager, and records the calls."""

    calls: list = []  # noqa: RUF012 (of all instances, as the tests want it)
    live: dict = {}  # noqa: RUF012

    def initialize(self):
        self.calls.append("initialize")

    def memalloc(self, size):
        if size == 12345:
            msg = "not that one"
            raise KeyError(msg)
        memory = driver.NumbaCUDAMemoryManager(context=self.context).memalloc(size)
        address = int(memory.device_pointer)
        self.allocations[address] = memory
        self.live[address] = size
        self.calls.append(size)
        allocations, live = self.allocations, self.live

        def free():
            if allocations:
                del allocations[address]
            del live[address]

        return cuda.MemoryPointer(self.context, memory.device_pointer, size, finalizer=free)

    def get_memory_info(self):
        return cuda.MemoryInfo(free=1, total=2)

    def defer_cleanup(self):
        self.calls.append("defer_cleanup")
        return super().defer_cleanup()

    @property
    def interface_version(self):
        return 1


@pytest.fixture
def counting():
    gc.collect()
    Counting.calls, Counting.live = [], {}
    cuda.set_memory_manager(Counting)
    try:
        yield Counting
    finally:
        cuda.set_memory_manager(driver.NumbaCUDAMemoryManager)


def settle():
    gc.collect()
    cuda.current_context().deallocations.clear()


def test_device_arrays_are_in_memory_of_the_manager(counting) -> None:
    x = cuda.to_device(np.arange(10))
    assert counting.calls == ["initialize", 80]
    assert counting.live == {x.address: 80}
    add_one[1, 32](x)
    assert x.copy_to_host().tolist() == list(range(1, 11))
    y = cuda.device_array((3, 4), np.float32)
    assert counting.calls[2:] == [48]
    assert cuda.device_array(0).copy_to_host().shape == (0,)
    view = x[3:]
    del x
    settle()
    assert len(counting.live) == 2
    assert view.copy_to_host().tolist() == list(range(4, 11))
    del view, y
    settle()
    assert counting.live == {}


def test_memory_goes_back_behind_the_streams_that_use_it(counting) -> None:
    streams = [cuda.stream() for _ in range(4)]
    for _ in range(5):
        x = cuda.to_device(np.zeros(100), stream=streams[0])
        streams[0].synchronize()
        for stream in streams:
            add_one[1, 128, stream](x)
            stream.synchronize()
        assert (x.copy_to_host(stream=streams[1]) == 4).all()
    del x
    settle()
    assert counting.live == {}


def test_what_a_manager_raises_is_raised(counting) -> None:
    with pytest.raises(KeyError, match="not that one"):
        cuda.device_array(12345, np.uint8)
    with pytest.raises(KeyError, match="not that one"):
        cuda.current_context().memalloc(12345)
    assert cuda.device_array(12344, np.uint8).size == 12344
    settle()
    assert counting.live == {}


def test_a_context_asks_its_manager(counting) -> None:
    context = cuda.current_context()
    assert isinstance(context.memory_manager, counting)
    assert context.memory_manager.context == context
    assert context.get_memory_info() == (1, 2)
    memory = context.memalloc(64)
    assert counting.live == {int(memory.device_pointer): 64}
    assert isinstance(context.memhostalloc(8, mapped=True).owner, cuda.MappedMemory)
    assert isinstance(context.memallocmanaged(8).owner, driver.ManagedMemory)
    host = np.zeros(8)
    assert isinstance(context.mempin(host, host.ctypes.data, host.nbytes), cuda.PinnedMemory)
    with cuda.defer_cleanup():
        pass
    assert counting.calls == ["initialize", 64, "defer_cleanup"]
    memory.free()
    assert counting.live == {}
    context.reset()
    assert context.memory_manager.allocations == {}


def test_one_device_has_a_manager() -> None:
    Counting.calls, Counting.live = [], {}
    context = cuda.current_context()
    assert context.memory_manager is None
    manager = context.memory_manager = Counting(context=context)
    try:
        assert cuda.current_context().memory_manager is manager
        array = cuda.to_device(np.arange(2))
        assert Counting.calls == ["initialize", 16]
        assert manager.get_ipc_handle is not None
    finally:
        context.memory_manager = None
    assert context.memory_manager is None
    assert array.copy_to_host().tolist() == [0, 1]
    assert cuda.to_device(np.arange(2)).copy_to_host().tolist() == [0, 1]
    assert Counting.calls == ["initialize", 16]
    del array
    settle()
    assert Counting.live == {}


def test_arrays_that_were_there_before_stay_weft_s() -> None:
    before = cuda.to_device(np.arange(3))
    Counting.calls, Counting.live = [], {}
    cuda.set_memory_manager(Counting)
    between = cuda.to_device(np.arange(3))
    cuda.set_memory_manager(driver.NumbaCUDAMemoryManager)
    after = cuda.to_device(np.arange(3))
    assert Counting.calls == ["initialize", 24]
    assert cuda.current_context().memory_manager is None
    for array in (before, between, after):
        add_one[1, 3](array)
        assert array.copy_to_host().tolist() == [1, 2, 3]
    del before, between, after, array
    settle()
    assert Counting.live == {}


def test_what_is_no_manager() -> None:
    class Version2(Counting):
        interface_version = 2

    with pytest.raises(RuntimeError, match="version 2 - version 1 required"):
        cuda.set_memory_manager(Version2)
    with pytest.raises(TypeError, match="mm_plugin must be a memory manager class"):
        cuda.set_memory_manager(None)
    with pytest.raises(TypeError, match="abstract"):
        cuda.set_memory_manager(cuda.BaseCUDAMemoryManager)
    with pytest.raises(RuntimeError, match="requires a context"):
        Counting()

    class Wrong(Counting):
        def memalloc(self, size):
            return size

    cuda.set_memory_manager(Wrong)
    try:
        with pytest.raises(TypeError, match="must return a MemoryPointer, not int"):
            cuda.device_array(3)
    finally:
        cuda.set_memory_manager(driver.NumbaCUDAMemoryManager)
    assert cuda.current_context().memory_manager is None


PLUGIN = """
from weft import cuda
from weft.cuda import HostOnlyCUDAMemoryManager, MemoryPointer

sizes = []

class Plugin(HostOnlyCUDAMemoryManager):
    def initialize(self):
        pass

    def memalloc(self, size):
        memory = cuda.cudadrv.driver.NumbaCUDAMemoryManager(context=self.context).memalloc(size)
        sizes.append(size)
        return MemoryPointer(self.context, memory.device_pointer, size, owner=memory)

    def get_ipc_handle(self, memory):
        raise NotImplementedError

    def get_memory_info(self):
        raise NotImplementedError

    @property
    def interface_version(self):
        return 1

_numba_memory_manager = Plugin
"""


@pytest.mark.parametrize("variable", ["WEFT_MEMORY_MANAGER", "NUMBA_CUDA_MEMORY_MANAGER"])
def test_a_setting_names_the_module_of_a_manager(tmp_path, variable) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    code = (
        "import numpy as np, plugin\nfrom weft import cuda\nx = cuda.to_device(np.arange(5.0))\n"
        "assert plugin.sizes == [40], plugin.sizes\nassert x.copy_to_host().tolist() == [0, 1, 2, 3, 4]\n"
        "try:\n    cuda.current_context().get_memory_info()\n"
        "except NotImplementedError:\n    print('good')\n"
    )

    def run(value):
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {**os.environ, "PYTHONPATH": path, variable: value}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, env=env
        )

    done = run("plugin")
    assert done.stdout == "good\n", done.stderr
    for wrong in ("no_such_module", "weft.types"):
        assert f"is '{wrong}', which does not provide a memory manager" in run(wrong).stderr
    assert "AssertionError: []" in run("default").stderr


def test_memory_of_the_host_is_asked_for(managed_hosts):
    asked, gone = managed_hosts
    pinned, mapped = cuda.pinned_array(3), cuda.mapped_array((2, 4), np.float32)
    moving = cuda.managed_array(5, np.int16)
    pinned[:], mapped[:], moving[:] = 1, 2, 3
    add_one[1, 32](mapped.reshape(8))
    add_one[1, 32](moving[1:])
    host, other = np.zeros(6), np.ones(3)
    with cuda.pinned(host), cuda.mapped(other) as device:
        add_one[1, 32](device)
    cuda.synchronize()
    assert (pinned.tolist(), other.tolist()) == ([1.0] * 3, [2.0] * 3)
    assert mapped.tolist() == [[3.0] * 4] * 2
    assert moving.tolist() == [3, 4, 4, 4, 4]
    assert asked == [
        ("memhostalloc", 24, False),
        ("memhostalloc", 32, True),
        ("memallocmanaged", 10, True),
        ("mempin", 48, False),
        ("mempin", 24, True),
    ]
    del device
    gc.collect()
    assert gone == ["mempin", "mempin"]
    part = mapped[1]
    del pinned, mapped, moving
    gc.collect()
    assert gone[2:] == ["memhostalloc", "memallocmanaged"]
    assert part.tolist() == [3.0] * 4
    del part
    gc.collect()
    assert gone.count("memhostalloc") == 2
    assert cuda.pinned_array(0).shape == (0,)


@pytest.fixture
def managed_hosts():
    asked: list = []
    gone: list = []

    class Hosts(Counting):
        def watched(self, name, made, *args):
            asked.append((name, *args))
            # It is called after weft has released the memory.
            weakref.finalize(made, gone.append, name)
            return made

        def memhostalloc(self, size, mapped=False, portable=False, wc=False):
            return self.watched("memhostalloc", super().memhostalloc(size, mapped, portable, wc), size, mapped)

        def mempin(self, owner, pointer, size, mapped=False):
            return self.watched("mempin", super().mempin(owner, pointer, size, mapped), size, mapped)

        def memallocmanaged(self, size, attach_global=True):
            return self.watched("memallocmanaged", super().memallocmanaged(size, attach_global), size, attach_global)

    cuda.set_memory_manager(Hosts)
    yield asked, gone
    cuda.set_memory_manager(driver.NumbaCUDAMemoryManager)
