"""Modules of a context and launches of their functions, over the fake driver: the bytes that arrive, and the errors.

The fake driver does not execute PTX: a kernel named `store_4_1` has a pointer, 4 bytes and 1 byte as parameters, and
stores the bytes where the pointer points. It ends the process when a kernel of an unloaded module is launched.
"""

from __future__ import annotations

import textwrap

import pytest

MODULE = """
import ctypes
import pytest

context = cuda.current_context()


def module_of(name):
    return context.create_module_ptx(f".entry {name} .global limit")


def function_of(name):
    return module_of(name).get_function(name)
"""


@pytest.fixture
def run_on_context(run):
    return lambda code, **env: run(MODULE + textwrap.dedent(code), **env)


def test_arguments_arrive(run_on_context) -> None:
    run_on_context(
        """
        class Pair(ctypes.Structure):
            _fields_ = [("x", ctypes.c_short), ("y", ctypes.c_longlong)]

        store = function_of("store_4_1_8_16_8_3_2")
        assert store.parameter_sizes == (8, 4, 1, 8, 16, 8, 3, 2)
        out, other = cuda.to_device(np.zeros(42, np.uint8)), cuda.device_array(4)
        args = (
            out, ctypes.c_int(-2), np.bool_(True), np.float64(2.5), Pair(3, 4), other, (ctypes.c_ubyte * 3)(5, 6, 7),
            np.float16(1.5),
        )
        store.launch(args, 1, 1)
        got = out.copy_to_host().tobytes()
        assert got[:4] == np.int32(-2).tobytes() and got[4] == 1
        assert got[5:13] == np.float64(2.5).tobytes()
        assert got[13:15] == np.int16(3).tobytes() and got[21:29] == np.int64(4).tobytes()
        assert got[29:37] == np.int64(other.device_pointer).tobytes()
        assert got[37:40] == bytes([5, 6, 7]) and got[40:] == np.float16(1.5).tobytes()
        # An iterator, and a view that begins later.
        one = function_of("store_4")
        one.launch(iter([out[8:], np.int32(7)]), (1, 1), (1, 1, 1))
        assert out.copy_to_host()[8:12].view(np.int32).tolist() == [7]
        """
    )


def test_memory_is_its_address(run_on_context) -> None:
    run_on_context(
        """
        store = function_of("store_4")
        memory = context.memalloc(8)
        host = np.zeros(2, np.int32)

        def value():
            cuda.driver.device_to_host(host, memory, 8)
            return host[0]

        class Foreign:
            __cuda_array_interface__ = {
                "version": 3, "shape": (8,), "typestr": "|u1", "data": (int(memory), False), "strides": None,
            }

        pointers = [
            memory, memory.view(0, 4), memory.device_ctypes_pointer, memory.handle, ctypes.c_void_p(int(memory)),
            np.uint64(int(memory)), Foreign(),
        ]
        for number, pointer in enumerate(pointers):
            store.launch([pointer, ctypes.c_int(number)], 1, 1)
            assert value() == number
        memory.free()
        with pytest.raises(RuntimeError, match="memory of this pointer was freed"):
            store.launch([memory, ctypes.c_int(1)], 1, 1)
        mapped = cuda.mapped_array(1, np.int32)
        store.launch([mapped, ctypes.c_int(11)], 1, 1)
        cuda.synchronize()
        assert mapped[0] == 11
        """
    )


def test_it_is_launched_as_numba_does(run_on_context) -> None:
    run_on_context(
        """
        from weft.cuda.cudadrv.driver import launch_kernel

        store = function_of("store_4")
        out = cuda.to_device(np.zeros(1, np.int32))
        stream = cuda.stream()
        streams = [0, None, stream, stream.handle, int(stream), ctypes.c_void_p(int(stream))]
        for number, hstream in enumerate(streams):
            launch_kernel(store.handle, 1, 1, 1, 1, 1, 1, 0, hstream, [out, ctypes.c_int(number)])
            stream.synchronize()
            assert out.copy_to_host()[0] == number
        launch_kernel(store, 2, 1, 1, 1, 1, 1, 60000, 0, [out, ctypes.c_int(50)], cooperative=True)
        assert out.copy_to_host()[0] == 50
        # The handle keeps the function, and that the module.
        handle = function_of("store_4").handle
        launch_kernel(handle, 1, 1, 1, 1, 1, 1, 0, 0, [out, ctypes.c_int(51)])
        assert out.copy_to_host()[0] == 51
        for wrong in (int(handle), "store_4", None):
            with pytest.raises(TypeError, match="cufunc_handle must be a function of a module"):
                launch_kernel(wrong, 1, 1, 1, 1, 1, 1, 0, 0, [])
        with pytest.raises(TypeError, match="a stream must be"):
            launch_kernel(handle, 1, 1, 1, 1, 1, 1, 0, "stream", [out, ctypes.c_int(51)])
        """
    )


def test_memory_in_use_by_another_stream_is_not_reused(run_on_context) -> None:
    # The fake driver aborts the process where memory is freed or reused that a launch in another stream may still use.
    run_on_context(
        """
        sum2 = function_of("sum2")
        streams = [cuda.stream(), cuda.stream()]
        for number in range(20):
            out = cuda.device_array(1, np.int64)
            sum2.launch([out, np.int64(number)], 1, 1, streams[number % 2])
            del out
            cuda.to_device(np.zeros(1, np.int64))
        cuda.synchronize()
        """,
        FAKE_BUSY="1",
    )


def test_a_module_is_loaded_as_long_as_it_is_used(run_on_context, tmp_path) -> None:
    calls = tmp_path / "calls"
    run_on_context(
        """
        import gc, os

        def unloads():
            gc.collect()
            return open(os.environ["FAKE_TRACE"]).read().split().count("cuLibraryUnload")

        out = cuda.to_device(np.zeros(1, np.int32))
        module = module_of("store_4")
        function = module.get_function("store_4")
        again = module.get_function("store_4")
        assert function.module is module and function.name == "store_4"
        assert function.device == cuda.get_current_device() == module.context.device
        del module
        assert unloads() == 0
        function.launch([out, ctypes.c_int(1)], 1, 1)
        del function
        assert unloads() == 0
        again.launch([out, ctypes.c_int(2)], 1, 1)
        del again
        assert unloads() == 1
        pointer, size = module_of("store_4").get_global_symbol("limit")
        assert unloads() == 1 and size == pointer.size == 8
        pointer.memset(1)
        part = pointer.view(0, 4)
        del pointer
        assert unloads() == 1
        part.memset(0)
        del part
        assert unloads() == 2
        """,
        FAKE_TRACE=str(calls),
    )


def test_use_after_unload_is_an_error(run_on_context) -> None:
    run_on_context(
        """
        out = cuda.to_device(np.zeros(1, np.int32))

        def by_context(module):
            context.unload_module(module)

        def by_reset(module):
            context.reset()

        def by_device(module):
            cuda.get_current_device().reset()

        def by_close(module):
            cuda.close()

        for unload in (type(module_of("store_4")).unload, by_context, by_reset, by_device, by_close):
            module = module_of("store_4")
            function = module.get_function("store_4")
            pointer, _ = module.get_global_symbol("limit")
            handle = function.handle
            assert "0x" in repr(module)
            unload(module)
            assert repr(module) == "<CUDA module unloaded>"
            assert repr(function) == "<CUDA function store_4>" and function.attrs.regs == 96
            for use in (
                lambda: function.launch([out, ctypes.c_int(1)], 1, 1),
                lambda: cuda.driver.launch_kernel(handle, 1, 1, 1, 1, 1, 1, 0, 0, [out, ctypes.c_int(1)]),
                lambda: function.cache_config(prefer_cache=True),
                lambda: function.set_shared_memory_carveout(10),
                lambda: function.handle,
                lambda: function.parameter_sizes,
                lambda: context.get_active_blocks_per_multiprocessor(function, 32, 0),
                lambda: context.get_max_potential_block_size(function, None, 0, 0),
                lambda: module.handle,
                lambda: module.get_function("store_4"),
                lambda: module.get_global_symbol("limit"),
                lambda: pointer.memset(0),
                lambda: module.unload(),
                lambda: context.unload_module(module),
            ):
                with pytest.raises(RuntimeError, match="was unloaded"):
                    use()
            # Other modules can be loaded.
            function_of("store_4").launch([out, ctypes.c_int(5)], 1, 1)
            assert out.copy_to_host()[0] == 5
        """
    )


def test_callbacks(run_on_context) -> None:
    run_on_context(
        """
        calls = []

        def before(code):
            calls.append(("before", code.handle, code.get_global("limit")[1]))

        def after(code):
            calls.append(("after", code.handle, code.get_module() != 0))

        module = context.create_module_image(b".entry store_4 .global limit", [before, before], [after])
        assert calls == []
        module.setup()
        handle = module.handle
        assert calls == [("before", handle, 8)] * 2
        with pytest.raises(RuntimeError, match="already been initialized"):
            module.setup()
        del module
        assert calls[2:] == [("after", handle, True)]
        calls.clear()
        module = context.create_module_image(b".entry store_4", None, [after])
        module.unload()
        assert len(calls) == 1
        del module
        assert len(calls) == 1
        with pytest.raises(TypeError, match="teardown_callbacks must be functions"):
            context.create_module_image(b".entry store_4", None, [5])
        """
    )


def test_resources_and_occupancy(run_on_context, tmp_path) -> None:
    calls = tmp_path / "calls"
    run_on_context(
        """
        store = function_of("store_4")
        assert store.attrs == store.attributes == (96, 4096, 24, 12, 640)
        assert store.attrs._fields == ("regs", "shared", "local", "const", "maxthreads")
        assert context.get_active_blocks_per_multiprocessor(store, 128, 128) == 5
        grid, block = context.get_max_potential_block_size(store, None, 0, 0)
        assert grid > 0 and block <= 640
        assert context.get_max_potential_block_size(store, lambda threads: 4 * threads, 0, 64)[1] == 32
        store.cache_config()
        store.cache_config(prefer_shared=True)
        store.cache_config(prefer_cache=True)
        store.cache_config(prefer_equal=True)
        store.cache_config(prefer_cache=True, prefer_shared=True)
        for percent in (-1, 0, 100):
            store.set_shared_memory_carveout(percent)
        for percent in (-2, 101):
            with pytest.raises(ValueError, match="carveout must be"):
                store.set_shared_memory_carveout(percent)
        """,
        FAKE_TRACE=str(calls),
    )
    set_to = [call for call in calls.read_text().splitlines() if call.startswith("cuFuncSet") and "(" in call]
    preferences = [f"cuFuncSetCacheConfig({value})" for value in (0, 1, 2, 3, 3)]
    assert set_to == preferences + [f"cuFuncSetAttribute(carveout {percent})" for percent in (-1, 0, 100)]


def test_wrong_arguments(run_on_context) -> None:
    run_on_context(
        """
        store, out = function_of("store_4"), cuda.to_device(np.zeros(1, np.int32))
        int32 = ctypes.c_int(1)
        wrong = {
            "args[0] is a NumPy array in the memory of the host": [np.zeros(1), int32],
            "args[1] is a Python int, whose size in the kernel is unknown: write `ctypes.c_int(3)`": [out, 3],
            "args[1] is a Python bool": [out, True],
            "args[1] is a Python float, whose size in the kernel is unknown: write `ctypes.c_float(3.5)`": [out, 3.5],
            "args[1] must be a device array, memory of a device, a `ctypes` object": [out, "text"],
            "args[1] must be a device": [out, ctypes.c_char_p(b"text")],
            "args[0] must be a device": [None, int32],
            "args must be a sequence": 5,
            "args must be a sequence with a value": "text",
        }
        for message, args in wrong.items():
            with pytest.raises(TypeError) as caught:
                store.launch(args, 1, 1)
            assert message in str(caught.value), caught.value
        values = {
            "args has 1 value, but `store_4` has 2 parameters": [out],
            "args has 3 values, but `store_4` has 2 parameters": [out, int32, int32],
            "args[1] has 8 bytes, but parameter 1 of `store_4` has 4": [out, np.float64(1)],
        }
        for message, args in values.items():
            with pytest.raises(ValueError) as caught:
                store.launch(args, 1, 1)
            assert message in str(caught.value), caught.value
        for config, error, message in (
            ((1, 1024), cuda.LaunchError, "this kernel allows 640 per block"),
            ((0, 1), cuda.LaunchError, "has no blocks"),
            ((1, 1, None, 10**6), cuda.LaunchError, "bytes of shared memory"),
            (("a", 1), TypeError, "griddim"),
            ((1, 1, None, -1), ValueError, "sharedmem"),
            ((1, 1, "stream"), TypeError, "a stream must be"),
        ):
            with pytest.raises(error, match=message):
                store.launch([out, int32], *config)
        with pytest.raises(cuda.LaunchError, match="must run at the same time"):
            store.launch([out, int32], 9, 1, cooperative=True)
        with cuda.graph(), pytest.raises(RuntimeError, match="while a graph is recorded"):
            store.launch([out, int32], 1, 1)
        """
    )


def test_wrong_code(run_on_context) -> None:
    run_on_context(
        """
        for image, error, message in (
            ("wrong", cuda.CudaAPIError, "Unknown modifier"),
            ("newer", cuda.CudaAPIError, "older than this PTX"),
            ("", ValueError, "the image is empty"),
            (b"\\x7fELF\\x02\\x01", ValueError, "the image is truncated"),
            (b"BC\\0\\0text", ValueError, "neither PTX, nor a cubin, nor a fatbin"),
            (5, TypeError, "must be code as a string or bytes"),
            (["text"], TypeError, "not list"),
        ):
            for create in (context.create_module_ptx, context.create_module_image):
                with pytest.raises(error, match=message):
                    create(image)
        class Code:
            code = b".entry a"

        for image in (".entry a", b".entry a", bytearray(b".entry a"), memoryview(b".entry a\\0"), Code()):
            context.create_module_image(image).get_function("a")
        module = module_of("store_4")
        with pytest.raises(cuda.CudaAPIError, match="the module has no kernel `absent`") as caught:
            module.get_function("absent")
        assert caught.value.code == 500
        with pytest.raises(cuda.CudaAPIError, match="there is no variable absent"):
            module.get_global_symbol("absent")
        for wrong in (5, b"store_4", None):
            with pytest.raises(TypeError, match="name must be a symbol"):
                module.get_function(wrong)
            with pytest.raises(TypeError, match="name must be a symbol"):
                module.get_global_symbol(wrong)
        with pytest.raises(TypeError, match="module must be a module of the context"):
            context.unload_module(5)
        with pytest.raises(AttributeError, match="get_function"):
            module.get_functoin
        """
    )


def test_modules_are_of_their_device(run_on_context) -> None:
    run_on_context(
        """
        other = cuda.current_context(1)
        store = other.create_module_ptx(".entry store_4").get_function("store_4")
        assert store.device.id == 1
        with cuda.gpus[1]:
            out = cuda.to_device(np.zeros(1, np.int32))
        # Whichever device is current.
        store.launch([out, ctypes.c_int(6)], 1, 1)
        assert out.copy_to_host()[0] == 6
        with pytest.raises(ValueError, match="the stream belongs to device 0"):
            store.launch([out, ctypes.c_int(6)], 1, 1, cuda.stream())
        with pytest.raises(ValueError, match="module is loaded on device 1, not on device 0"):
            context.unload_module(store.module)
        context.reset()
        store.launch([out, ctypes.c_int(7)], 1, 1)
        assert out.copy_to_host()[0] == 7
        here = cuda.to_device(np.zeros(1, np.int32))
        with pytest.raises(ValueError, match=r"args\\[0\\] is memory of device 0, which kernels of device 1"):
            store.launch([here, ctypes.c_int(8)], 1, 1)
        """,
        FAKE_DEVICES="2",
    )


def test_threads_share_a_module(run_on_context) -> None:
    run_on_context(
        """
        import threading

        module = module_of("store_4")
        errors = []

        def work(number):
            try:
                function = module.get_function("store_4")
                out = cuda.to_device(np.zeros(1, np.int32))
                stream = cuda.stream()
                for step in range(50):
                    function.launch([out, ctypes.c_int(number * step)], 1, 1, stream)
                    stream.synchronize()
                    assert out.copy_to_host()[0] == number * step
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []

        # Unloading while another thread launches: each launch is done or refused.
        def launch_until_unloaded():
            function, out = module.get_function("store_4"), cuda.to_device(np.zeros(1, np.int32))
            started.set()
            try:
                while True:
                    function.launch([out, ctypes.c_int(1)], 1, 1)
            except RuntimeError as error:
                errors.append(str(error))

        started = threading.Event()
        thread = threading.Thread(target=launch_until_unloaded)
        thread.start()
        started.wait()
        module.unload()
        thread.join()
        assert len(errors) == 1 and "was unloaded" in errors[0]
        """
    )


def test_a_forked_process_cannot_use_it(run_on_context, tmp_path) -> None:
    calls = tmp_path / "calls"
    run_on_context(
        """
        import os

        warnings.simplefilter("ignore", DeprecationWarning)
        out, module = cuda.to_device(np.zeros(1, np.int32)), module_of("store_4")
        function = module.get_function("store_4")
        process = os.fork()
        if process == 0:
            try:
                with pytest.raises(cuda.CudaAPIError, match="CUDA initialized before forking"):
                    function.launch([out, ctypes.c_int(1)], 1, 1)
                module.unload()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(process, 0)[1] == 0
        function.launch([out, ctypes.c_int(2)], 1, 1)
        assert out.copy_to_host()[0] == 2
        assert "cuLibraryUnload" not in open(os.environ["FAKE_TRACE"]).read().split()
        """,
        FAKE_TRACE=str(calls),
    )


def test_a_driver_that_reports_no_parameters(run_on_context) -> None:
    run_on_context(
        """
        store = function_of("store_4")
        assert store.parameter_sizes is None
        out = cuda.to_device(np.zeros(1, np.int32))
        store.launch([out, ctypes.c_int(9)], 1, 1)
        assert out.copy_to_host()[0] == 9
        """,
        FAKE_PARAMS="801",
    )


def test_the_drop_in_has_the_names(run) -> None:
    run(
        """
        import weft.numba
        weft.numba.install()
        from ctypes import c_int, sizeof
        from numba import cuda
        from numba.cuda.cudadrv import devices
        from numba.cuda.cudadrv.driver import CudaPythonFunction, Function, launch_kernel
        from numba.cuda.cudadrv.driver import device_to_host, host_to_device

        context = devices.get_context()
        module = context.create_module_ptx(".entry store_4")
        function = module.get_function("store_4")
        assert isinstance(function, Function) and Function is CudaPythonFunction
        array = (c_int * 100)()
        memory = context.memalloc(sizeof(array))
        host_to_device(memory, array, sizeof(array))
        stream = context.create_stream()
        with stream.auto_synchronize():
            args = [memory.device_ctypes_pointer, c_int(3)]
            launch_kernel(function.handle, 1, 1, 1, 100, 1, 1, 0, stream.handle, args)
        device_to_host(array, memory, sizeof(array))
        assert array[0] == 3
        assert context.get_active_blocks_per_multiprocessor(function, 128, 128) > 0
        module.unload()
        """
    )
