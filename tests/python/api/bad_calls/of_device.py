"""Wrong uses of devices, streams, events, graphs, handles of other processes, random states and settings."""

from __future__ import annotations

from bad_calls.cases import call

CASES = [
    # Devices and contexts.
    call("cuda.select_device(99)", "IndexError|ValueError", "99"),
    call("cuda.select_device(-1)", "IndexError|ValueError|OverflowError", "-1"),
    call("cuda.select_device('0')", "TypeError", "str", "integer|number|device"),
    call("cuda.select_device(0.0)", "TypeError", "float", "integer|number|device"),
    call("cuda.select_device()", "TypeError", "device|argument"),
    call("cuda.gpus[7]", "IndexError", "7|device"),
    call("cuda.gpus['a']", "TypeError", "str|integer"),
    call("cuda.gpus.curent", "AttributeError", "curent", "current"),
    call("cuda.get_current_device().NO_SUCH", "AttributeError", "NO_SUCH"),
    call("cuda.get_current_device().WARP_SIZ", "AttributeError", "WARP_SIZ", "WARP_SIZE"),
    call("cuda.get_current_device(3)", "TypeError", "argument"),
    call("cuda.current_context(9)", "IndexError|ValueError", "9"),
    call("cuda.current_context().get_memry_info()", "AttributeError", "get_memry_info", "get_memory_info"),
    call("cuda.current_context().memalloc(-1)", "ValueError|OverflowError|TypeError", "-1|bytes|negative"),
    call("cuda.current_context().memalloc('a')", "TypeError", "bytesize|str|integer"),
    # Modules.
    call("cuda.current_context().create_module_ptx(5)", "TypeError", "ptx", "string|bytes"),
    call("cuda.current_context().create_module_ptx(None)", "TypeError", "ptx", "string|bytes"),
    call("cuda.current_context().create_module_ptx('.version 8.0')", "CudaSupportError", "PTX|GPU", "cuda.jit"),
    call("cuda.current_context().create_module_image(x())", "CudaSupportError", "PTX|GPU", "cuda.jit"),
    call("cuda.current_context().create_module_image(b'')", "CudaSupportError", "PTX|GPU", "declare_device"),
    call("cuda.current_context().create_module_image(['a'])", "TypeError", "image", "read_bytes"),
    call("cuda.current_context().create_module_image(b'a', 5)", "TypeError", "setup_callbacks|iterable|int"),
    call("cuda.current_context().create_module_image(b'a', [5])", "TypeError", "setup_callbacks", "functions"),
    call("cuda.current_context().create_module_ptxx('a')", "AttributeError", "create_module_ptxx", "create_module_ptx"),
    call("cuda.current_context().unload_module(5)", "TypeError", "module", "module"),
    call("cuda.driver.launch_kernel(5, 1, 1, 1, 1, 1, 1, 0, 0, [])", "TypeError", "cufunc_handle", "handle"),
    call("cuda.driver.launch_kernel(5)", "TypeError", "argument"),
    call("cuda.Module()", "TypeError", "argument"),
    call("cuda.Module(5, b'a')", "TypeError", "context", "current_context"),
    call("cuda.Function(5, 'f')", "TypeError", "module"),
    call(
        "cuda.current_context().get_active_blocks_per_multiprocessor(5, 32, 0)", "TypeError", "func", "kernel|function"
    ),
    # Streams.
    call("cuda.external_stream(-1)", "ValueError|TypeError|OverflowError", "-1|stream|ptr"),
    call("cuda.external_stream('a')", "TypeError", "str|ptr|stream"),
    call("cuda.external_stream()", "TypeError", "ptr|argument"),
    call("cuda.stream(5, 6)", "TypeError", "argument"),
    call("cuda.stream().sync()", "AttributeError", "sync", "synchronize"),
    call("cuda.stream().add_callback(5)", "TypeError", "call"),
    call("cuda.stream().add_callback()", "TypeError", "callback|argument"),
    call("cuda.stream().auto_syncronize()", "AttributeError", "auto_syncronize", "auto_synchronize"),
    call("with cuda.stream(): pass", "TypeError|AttributeError", "context|__enter__|auto_synchronize"),
    call("__import__('pickle').dumps(cuda.stream())", "TypeError", "Stream"),
    call("__import__('copy').deepcopy(cuda.stream())", "TypeError", "Stream"),
    call("cuda.to_device(x(), stream='s')", "TypeError", "stream"),
    call("dev(3).copy_to_host(stream=cuda.event())", "TypeError", "stream"),
    # Events.
    call("cuda.event().record('x')", "TypeError", "stream"),
    call("cuda.event().wait('x')", "TypeError", "stream"),
    call("cuda.event().elapsed_time(cuda.event())", "ValueError|RuntimeError", "record", "record"),
    call("cuda.event().elapsed_time(5)", "TypeError", "[Ee]vent"),
    call("cuda.event().elapsed_time()", "TypeError", "argument"),
    call("cuda.event_elapsed_time(cuda.event(), 5)", "TypeError", "[Ee]vent"),
    call(
        "a, b = cuda.event(False), cuda.event(False); a.record(); b.record(); a.elapsed_time(b)",
        "ValueError|RuntimeError",
        "timing",
    ),
    call("cuda.event(timming=True)", "TypeError", "timming"),
    call("__import__('pickle').dumps(cuda.event())", "TypeError", "Event"),
    # Graphs.
    call("with cuda.graph() as g: raise KeyError('own')", "KeyError", "own"),
    call("cuda.graph().launch()", "RuntimeError|ValueError|TypeError|AttributeError", "graph|record|with"),
    call("cuda.graph(5)", "TypeError", "int|stream|argument"),
    call(
        "with cuda.graph() as g: dev(3).copy_to_host()",
        "RuntimeError|ValueError|NotImplementedError|LaunchError|DriverError",
        "graph|record|captur",
    ),
    call(
        "with cuda.graph() as g:\n    cuda.synchronize()",
        "RuntimeError|ValueError|LaunchError|DriverError",
        "graph|record|captur",
    ),
    call(
        "with cuda.graph() as g:\n    with cuda.graph() as h: pass",
        "RuntimeError|ValueError|DriverError",
        "graph|record|captur",
    ),
    call("__import__('pickle').dumps(cuda.graph())", "TypeError", "[Gg]raph"),
    # Handles for other processes.
    call(
        "dev(3).get_ipc_handle().__enter__()",
        "NotImplementedError|RuntimeError|DriverError|ValueError",
        "CPU|device|process",
    ),
    call(
        "cuda.open_ipc_array(b'a', 3, 'f4').__enter__()",
        "TypeError|ValueError|NotImplementedError|RuntimeError|DriverError",
        "handle|64|CPU",
    ),
    call("cuda.open_ipc_array()", "TypeError", "handle|argument"),
    # Memory managers.
    call("cuda.set_memory_manager(5)", "TypeError", "int|class|manager"),
    call("cuda.set_memory_manager(int)", "TypeError", "int|BaseCUDAMemoryManager"),
    call("cuda.set_memory_manager()", "TypeError", "argument"),
    # States of random numbers.
    call("cuda.random.create_xoroshiro128p_states(-1, seed=1)", "ValueError|OverflowError", "-1|negative|n"),
    call("cuda.random.create_xoroshiro128p_states('a', seed=1)", "TypeError", "str|integer|n"),
    call("cuda.random.create_xoroshiro128p_states(2.5, seed=1)", "TypeError", "float|integer|n"),
    call("cuda.random.create_xoroshiro128p_states(2)", "TypeError", "seed"),
    call("cuda.random.create_xoroshiro128p_states(2, 'a')", "TypeError", "seed|str"),
    call(
        "cuda.random.init_xoroshiro128p_states(x(), 1)", "TypeError|ValueError", "states|dtype|float32", "xoroshiro128p"
    ),
    call(
        "cuda.random.init_xoroshiro128p_states(dev(3), 1)",
        "TypeError|ValueError",
        "states|dtype|float32",
        "xoroshiro128p",
    ),
    call("cuda.random.xoroshiro128p_uniform_float16", "AttributeError", "float16", "float32"),
    call("cuda.random.rand", "AttributeError", "rand", "philox_uniform_float32"),
    # Misspelt names.
    call("cuda.gird", "AttributeError", "gird", "`grid`"),
    call("cuda.to_devise", "AttributeError", "to_devise", "`to_device`"),
    call("cuda.syncthread", "AttributeError", "syncthread", "`syncthreads`"),
    call("cuda.blockdim", "AttributeError", "blockdim", "`blockDim`"),
    call("cuda.zeros(3)", "AttributeError", "zeros", "device_array"),
    call("cuda.array([1])", "AttributeError", "array", "to_device"),
    call("cuda.empty(3)", "AttributeError", "empty", "device_array"),
    call("cuda.sync()", "AttributeError", "sync", "synchronize"),
    call("cuda.njit", "AttributeError", "njit", r"cuda\.jit"),
    call("cuda.prange", "AttributeError", "prange", "grid"),
    call("cuda.shfl", "AttributeError", "shfl", "shfl_sync"),
    call("cuda.float23", "AttributeError", "float23", "float"),
    call("cuda.coop.blok", "AttributeError", "blok", "block"),
    call("cuda.coop.warp.summ", "AttributeError", "summ", "`sum`"),
    call("cuda.cg.this_gird", "AttributeError", "this_gird", "this_grid"),
    call("cuda.libdevice.sin_f", "AttributeError", "sin_f", "sinf"),
    call("cuda.atomic.ad", "AttributeError", r"\bad\b", "add"),
    call("cuda.const.array", "AttributeError", "array", "array_like"),
    call("cuda.local.aray", "AttributeError", "aray", "array"),
    call("cuda.extending.overlaod", "AttributeError", "overlaod", "overload"),
    call("cuda.launchconfig.nope", "AttributeError", "nope"),
    call("weft.jit", "AttributeError", "jit", r"cuda\.jit"),
    call("weft.njit", "AttributeError", "njit", r"cuda\.jit"),
    call("weft.prange", "AttributeError", "prange", "grid"),
    call("weft.types.flot32", "AttributeError", "flot32", "float32"),
    call("weft.errors.LaunchErorr", "AttributeError", "LaunchErorr", "LaunchError"),
    call("weft.config.NOPE", "AttributeError", "NOPE"),
    call("from weft import jit", "ImportError", "jit", r"cuda\.jit"),
    call("from weft.cuda import gird", "ImportError", "gird", "grid"),
    call("import weft.cdua", "ImportError", "cdua"),
    # Environment variables.
    *(
        call(
            "import subprocess, sys, os\n"
            "text = 'import numpy as np; from weft import cuda; cuda.to_device(np.zeros(1))'\n"
            f"env = {{**os.environ, {name!r}: {value!r}}}\n"
            "done = subprocess.run([sys.executable, '-c', text], capture_output=True, text=True, env=env)\n"
            "if done.returncode: raise SystemExit(done.stderr.strip().splitlines()[-1])",
            "SystemExit",
            name,
            remedy,
        )
        for name, value, remedy in [
            ("WEFT_DEVICE", "gpu", "cpu"),
            ("WEFT_CPU_STRATEGY", "foo", "loops|fibers"),
            ("WEFT_CPU_THREADS", "many", "number|integer|[0-9]"),
            ("WEFT_BOUNDSCHECK", "maybe", "0|1"),
        ]
    ),
]
