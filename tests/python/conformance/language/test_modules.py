"""Modules of a context on a GPU: PTX and cubins that are launched with raw arguments, compared with NumPy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from weft import cuda, errors
from weft.cuda.cudadrv.driver import device_to_host, host_to_device, launch_kernel

pytestmark = pytest.mark.cuda

# Each thread of `numbers` stores its number.
NUMBERS = """
.version 6.3
.target sm_75
.address_size 64
.visible .global .align 4 .u32 limit = 7;
.visible .entry numbers(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.u32 [%rd2], %r1;
    ret;
}
// Each block stores its threads' values in reverse, through dynamic shared memory.
.extern .shared .align 4 .b8 buffer[];
.visible .entry reversed(.param .u64 x, .param .u32 n)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r3, [%rd4];
    mov.u32 %r4, buffer;
    shl.b32 %r5, %r2, 2;
    add.u32 %r5, %r4, %r5;
    st.shared.u32 [%r5], %r3;
    bar.sync 0;
    sub.u32 %r6, %r1, %r2;
    sub.u32 %r6, %r6, 1;
    shl.b32 %r6, %r6, 2;
    add.u32 %r6, %r4, %r6;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd4], %r7;
    ret;
}
.visible .entry read_limit(.param .u64 out, .param .u8 added)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u8 %r1, [added];
    ld.global.u32 %r2, [limit];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd2], %r3;
    ret;
}
// Stores 1 after 200 ms.
.visible .entry slow(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<6>;
    .reg .pred %p;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u64 %rd3, %globaltimer;
again:
    mov.u64 %rd4, %globaltimer;
    sub.u64 %rd5, %rd4, %rd3;
    setp.lt.u64 %p, %rd5, 200000000;
    @%p bra again;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


@pytest.fixture
def context():
    return cuda.current_context()


@pytest.fixture
def module(context):
    return context.create_module_ptx(NUMBERS)


def scale(out, x, factor, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] * factor + n


SIGNATURE = "void(CPointer(float32), CPointer(float32), float32, int32)"


def ptx_of(function, signature, name):
    device = cuda.get_current_device()
    return cuda.compile_ptx(function, signature, cc=device.compute_capability, abi_info={"abi_name": name})[0]


def entry_of(ptx):
    return ptx.split(".entry ", 1)[1].split("(", 1)[0].strip()


def check_scale(function, stream=None):
    n = 1000
    x, out = np.random.default_rng(0).random(n, np.float32), cuda.device_array(n, np.float32)
    function.launch((out, cuda.to_device(x, stream=stream or 0), ctypes.c_float(2.5), np.int32(n)), 4, 256, stream)
    expected = x * np.float32(2.5) + np.float32(n)
    np.testing.assert_allclose(out.copy_to_host(stream=stream or 0), expected, rtol=1e-6)


def test_memory_of_the_context_is_written(context, module):
    function = module.get_function("numbers")
    array = (ctypes.c_int * 100)()
    memory = context.memalloc(ctypes.sizeof(array))
    host_to_device(memory, array, ctypes.sizeof(array))
    launch_kernel(function.handle, 1, 1, 1, 100, 1, 1, 0, 0, [memory.device_ctypes_pointer])
    device_to_host(array, memory, ctypes.sizeof(array))
    assert list(array) == list(range(100))
    stream = context.create_stream()
    with stream.auto_synchronize():
        host_to_device(memory, (ctypes.c_int * 100)(), ctypes.sizeof(array), stream=stream)
        launch_kernel(function.handle, 1, 1, 1, 100, 1, 1, 0, stream.handle, [memory.device_ctypes_pointer])
    device_to_host(array, memory, ctypes.sizeof(array), stream=stream)
    assert list(array) == list(range(100))
    module.unload()


def test_ptx_of_weft_is_loaded_again(context):
    ptx = ptx_of(scale, SIGNATURE, "scale")
    check_scale(context.create_module_ptx(ptx).get_function(entry_of(ptx)))
    check_scale(context.create_module_ptx(ptx.encode()).get_function(entry_of(ptx)), cuda.stream())


def test_arrays_are_numbas_seven_parameters(context):
    def add_one(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 1

    ptx = ptx_of(add_one, "void(int64[:])", "add_one")
    function = context.create_module_ptx(ptx).get_function(entry_of(ptx))
    x = cuda.to_device(np.arange(20))
    none = ctypes.c_void_p()
    sizes = [np.int64(number) for number in (x.size, 8)]
    function.launch([none, none, *sizes, x, np.int64(10), np.int64(16)], 1, 32)
    expected = np.arange(20)
    expected[::2] += 1
    assert x.copy_to_host().tolist() == expected.tolist()


def test_ptx_of_the_command(context, tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text(
        "from weft import cuda\n\n\n"
        "@cuda.jit\n"
        "def scale(out, x, factor, n):\n"
        "    i = cuda.grid(1)\n"
        "    if i < n:\n"
        "        out[i] = x[i] * factor + n\n"
    )
    major, minor = cuda.get_current_device().compute_capability
    options = ["--target", f"sm_{major}{minor}", "--abi", "numba", "--sig", SIGNATURE]
    command = [sys.executable, "-m", "weft", "emit", source, *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    check_scale(context.create_module_ptx(ran.stdout).get_function(entry_of(ran.stdout)))


def test_a_cubin_is_loaded(context, tmp_path):
    ptxas = shutil.which("ptxas") or next((str(path) for path in Path("/usr/local").glob("cuda*/bin/ptxas")), None)
    if ptxas is None:
        pytest.skip("no ptxas")
    major, minor = cuda.get_current_device().compute_capability
    source, cubin = tmp_path / "numbers.ptx", tmp_path / "numbers.cubin"
    source.write_text(NUMBERS)
    subprocess.run([ptxas, f"-arch=sm_{major}{minor}", source, "-o", cubin], check=True)
    image = cubin.read_bytes()
    out = cuda.to_device(np.zeros(64, np.int32))
    context.create_module_image(image).get_function("numbers").launch([out], 1, 64)
    assert out.copy_to_host().tolist() == list(range(64))
    for end in (6, 40, len(image) // 2, len(image) - 1):
        with pytest.raises(ValueError, match="truncated"):
            context.create_module_image(image[:end])


def test_dynamic_shared_memory(context, module):
    function = module.get_function("reversed")
    for n, extra in ((32, 0), (1024, 0), (256, 60_000)):
        x = np.arange(n, dtype=np.uint32) * 3
        on_device = cuda.to_device(x)
        function.launch([on_device, np.uint32(n)], 1, n, sharedmem=4 * n + extra)
        assert on_device.copy_to_host().tolist() == x[::-1].tolist()
    with pytest.raises(cuda.LaunchError, match="bytes of shared memory"):
        function.launch([on_device, np.uint32(n)], 1, n, sharedmem=10**6)


def test_cooperative_launches(context, module):
    function, out = module.get_function("numbers"), cuda.to_device(np.zeros(64, np.int32))
    function.launch([out], 2, 64, cooperative=True)
    assert out.copy_to_host().tolist() == list(range(64))
    device = cuda.get_current_device()
    active = context.get_active_blocks_per_multiprocessor(function, 64, 0)
    with pytest.raises(cuda.LaunchError, match="at the same time"):
        function.launch([out], active * device.MULTIPROCESSOR_COUNT + 1, 64, cooperative=True)


def test_variables(context, module):
    pointer, size = module.get_global_symbol("limit")
    assert size == 4
    function, out = module.get_function("read_limit"), cuda.to_device(np.zeros(1, np.uint32))
    function.launch([out, ctypes.c_uint8(3)], 1, 1)
    assert out.copy_to_host()[0] == 10
    host_to_device(pointer, np.array([100], np.uint32), 4)
    function.launch([out, ctypes.c_uint8(200)], 1, 1)
    assert out.copy_to_host()[0] == 300
    module.unload()
    with pytest.raises(RuntimeError, match="was unloaded"):
        pointer.memset(0)
    with pytest.raises(RuntimeError, match="was unloaded"):
        device_to_host(np.zeros(1, np.uint32), pointer, 4)


def test_resources(context, module):
    function = module.get_function("numbers")
    attrs = function.attrs
    assert attrs == function.attributes
    assert attrs.regs > 0
    assert attrs.shared == 0
    assert attrs.maxthreads >= 512
    assert context.get_active_blocks_per_multiprocessor(function, 128, 128) > 0
    grid, block = context.get_max_potential_block_size(function, None, 0, 0)
    assert grid > 0
    assert 0 < block <= attrs.maxthreads
    assert function.parameter_sizes in (None, (8,))
    for preference in ({}, {"prefer_shared": True}, {"prefer_cache": True}, {"prefer_equal": True}):
        function.cache_config(**preference)
    for percent in (-1, 0, 50, 100):
        function.set_shared_memory_carveout(percent)
    out = cuda.to_device(np.zeros(64, np.int32))
    function.launch([out], 1, 64)
    assert out.copy_to_host().tolist() == list(range(64))


def test_wrong_arguments(context, module):
    function, out = module.get_function("reversed"), cuda.to_device(np.zeros(32, np.uint32))
    if function.parameter_sizes is not None:
        assert function.parameter_sizes == (8, 4)
        with pytest.raises(ValueError, match="args has 1 value, but `reversed` has 2 parameters"):
            function.launch([out], 1, 32)
        with pytest.raises(ValueError, match=r"args\[1\] has 8 bytes, but parameter 1 of `reversed` has 4"):
            function.launch([out, np.int64(32)], 1, 32)
    with pytest.raises(TypeError, match=r"args\[0\] is a NumPy array"):
        function.launch([np.zeros(32, np.uint32), np.int32(32)], 1, 32)
    with pytest.raises(cuda.CudaAPIError, match="the module has no kernel `absent`"):
        module.get_function("absent")
    with pytest.raises(cuda.CudaAPIError, match="there is no variable absent"):
        module.get_global_symbol("absent")


def test_wrong_code(context):
    with pytest.raises(cuda.CudaAPIError, match=r"cannot load the module(.|\n)*line 4"):
        context.create_module_ptx(".version 6.3\n.target sm_75\n.address_size 64\nbroken\n")
    call = ".extern .func nowhere;\n.visible .entry f()\n{\n    call nowhere;\n    ret;\n}\n"
    with pytest.raises(errors.LinkerError, match=r"must contain all functions that it calls(.|\n)*nowhere"):
        context.create_module_ptx(f".version 6.3\n.target sm_75\n.address_size 64\n{call}")
    # The context is still usable.
    out = cuda.to_device(np.zeros(4, np.int32))
    context.create_module_ptx(NUMBERS).get_function("numbers").launch([out], 1, 4)
    assert out.copy_to_host().tolist() == [0, 1, 2, 3]


def test_use_after_unload(context):
    out = cuda.to_device(np.zeros(4, np.int32))
    for unload in ("module.unload()", "context.unload_module(module)", "context.reset()", "cuda.close()"):
        module = context.create_module_ptx(NUMBERS)
        function = module.get_function("numbers")
        handle = function.handle
        function.launch([out], 1, 4)
        exec(unload, {"module": module, "context": context, "cuda": cuda})
        for use in (
            lambda function=function: function.launch([out], 1, 4),
            lambda handle=handle: launch_kernel(handle, 1, 1, 1, 4, 1, 1, 0, 0, [out]),
            lambda module=module: module.get_function("numbers"),
            lambda module=module: module.unload(),
        ):
            with pytest.raises(RuntimeError, match="was unloaded"):
                use()
    assert out.copy_to_host().tolist() == [0, 1, 2, 3]


def test_a_running_kernel_ends_before_its_module_is_unloaded(context):
    for unload in (True, False):
        out = cuda.to_device(np.zeros(1, np.uint32))
        module = context.create_module_ptx(NUMBERS)
        module.get_function("slow").launch([out], 1, 1)
        if unload:
            module.unload()
        del module
        assert out.copy_to_host()[0] == 1


def test_two_threads(context):
    errors = []

    def work(number):
        try:
            ptx = ptx_of(scale, SIGNATURE, f"scale_{number}")
            function, stream = context.create_module_ptx(ptx).get_function(entry_of(ptx)), cuda.stream()
            for _ in range(20):
                check_scale(function, stream)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_cuda_core_launches_its_kernel(context, module):
    core = pytest.importorskip("cuda.core")
    function, out = module.get_function("numbers"), cuda.to_device(np.zeros(32, np.int32))
    core.Device(0).set_current()
    config = core.LaunchConfig(grid=(1, 1, 1), block=(32, 1, 1))
    core.launch(core.Stream.from_handle(0), config, function.kernel, ctypes.c_size_t(int(out.device_pointer)))
    assert out.copy_to_host().tolist() == list(range(32))
