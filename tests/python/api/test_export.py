"""Packages of exported kernels: their files, the C sources run on the CPU, and the errors of calls."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from weft import cuda
from weft._weft import run_command

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "cpp"
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")


def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def sums(x, n, out):
    tile = cuda.shared.array(64, np.int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t] = x[i] if i < min(x.size, n) else 0
    cuda.syncthreads()
    s = 32
    while s > 0:
        if t < s:
            tile[t] += tile[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        cuda.atomic.add(out, 0, tile[0])


def mixed(flag, z, half, w, out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = (z.real + z.imag + half[i] + w[i, j]) * flag


SAXPY = {
    "signatures": "void(float32, float32[:], float32[::1], float32[::1])",
    "launch": lambda out: ((out.size + 127) // 128, 128),
    "out": cuda.like("x"),
}
SUMS = {
    "signatures": "void(int32[::1], int64, int32[::1])",
    "launch": lambda x, n: (x.size // n + 1, 64),
    "out": cuda.shaped(lambda n: n + 1, fill=0),
}
MIXED = {
    "signatures": "void(boolean, complex64, float16[::1], float64[:,:], float64[:,::1])",
    "launch": lambda out: ((out.shape[0], out.shape[1]), 1),
}


def package(function, options, **more):
    return cuda.jit(function).export(**{"targets": ("sm_75", "host"), **options, **more})


def built(folder, export):
    """Build a package as a shared library."""
    export.write(folder)
    library = folder / "package.so"
    sources = [str(path) for path in sorted(folder.iterdir()) if path.suffix in (".c", ".o")]
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    subprocess.run([GCC, *flags, "-o", str(library), *sources, "-ldl"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.weft_message.restype = ctypes.c_char_p
    return loaded


class Where(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_bool), ("stream", ctypes.c_void_p)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


CPU = Where(False, None)


def array(value, *, shape=None, strides=None, address=None):
    """An array as its struct in C."""

    class Array(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("shape", ctypes.c_int64 * value.ndim),
            ("strides", ctypes.c_int64 * value.ndim),
        ]

    shape = value.shape if shape is None else shape
    strides = value.strides if strides is None else strides
    address = value.ctypes.data if address is None else address
    return Array(address, (ctypes.c_int64 * value.ndim)(*shape), (ctypes.c_int64 * value.ndim)(*strides))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if GCC is None:
        pytest.skip("gcc is not installed")
    make = tmp_path_factory.mktemp
    exports = {"saxpy": (saxpy, SAXPY), "sums": (sums, SUMS), "mixed": (mixed, MIXED)}
    return SimpleNamespace(**{name: built(make(name), package(*export)) for name, export in exports.items()})


def test_a_package_is_the_same_bit_for_bit():
    first, second = package(saxpy, SAXPY), package(saxpy, SAXPY)
    assert first.files == second.files
    assert set(first.files) == {
        *("saxpy.weft", "saxpy.h", "saxpy.c", "weft.h", "weft_launcher.h", "weft_launcher.c"),
        *("saxpy.x86-64-v3.o", "saxpy.x86-64-v3.specialized.o"),
        *("CMakeLists.txt", "saxpyConfig.cmake", "saxpy_torch.cpp"),
    }


def test_the_container_describes_the_kernel():
    export = package(saxpy, SAXPY)
    container = export.files["saxpy.weft"]
    assert container[:8] == b"weftkern"
    assert int.from_bytes(container[8:12], "little") == export.description["format"] == 1
    (kernel,) = export.description["kernels"]
    assert [param["name"] for param in kernel["params"]] == ["a", "x", "y", "out"]
    assert kernel["params"][1] == {
        "name": "x",
        "kind": "array",
        "dtype": "float32",
        "ndim": 1,
        "layout": "A",
        "reads": True,
        "writes": False,
        "accumulates": False,
    }
    assert kernel["launch"] == "(launch (grid (// (+ (size 3) 127) 128) 1 1) (block 128 1 1) (shared 0))"
    assert kernel["outputs"] == ["(output 3 (like 1) (dtype like 1) empty)"]
    assert export.targets == ["sm_75", "x86-64-v3"]
    assert f".visible .entry {export.symbol()}(".encode() in export.code()
    assert export.code("x86-64-v3").startswith(b"\x7fELF")
    assert (len(container) - 16) % 16 == 0
    assert ("x", "stride", 0) in export.parameters()


def test_values_of_a_launch():
    export = package(saxpy, SAXPY)
    x = np.arange(20, dtype=np.float32)[::2]
    y, out = np.ones(10, np.float32), np.zeros(10, np.float32)
    values = dict(zip([row[:2] for row in export.parameters()], export.arguments(2, x, y, out), strict=True))
    assert values["a", "value"] == np.float32(2)
    assert type(values["a", "value"]) is np.float32
    assert values["x", "data"] is x
    assert values["x", "stride"] == 8
    assert values["out", "shape"] == 10
    for args, message in [
        ((2, x, y), "takes 4 arguments, not 3"),
        ((2, x, y.astype(float), out), "argument `y` of `saxpy` is an array of float32, not of float64"),
        ((2, x, x, out), "argument `y` of `saxpy` must be contiguous"),
        ((2, x, y[:, None], out), "argument `y` of `saxpy` has 1 dimensions, not 2"),
        ((2, 3, y, out), "argument `x` of `saxpy` is an array of float32, not int"),
        ((x, x, y, out), "argument `a` of `saxpy` is float32, not an array"),
    ]:
        with pytest.raises(TypeError, match=message):
            export.arguments(*args)


def test_the_command_exports_the_same(tmp_path):
    text = "import numpy as np\nfrom weft import cuda\n\nB = 128\n\n"
    text += "@cuda.jit('void(float32, float32[:], float32[::1], float32[::1])',\n"
    text += "          launch=lambda out: ((out.size + B - 1) // B, B), out=cuda.like('x'))\n"
    text += "def saxpy(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n        out[i] = a * x[i] + y[i]\n"
    (tmp_path / "kernels.py").write_text(text)
    arguments = ["weft", "build", str(tmp_path / "kernels.py"), "--name", "saxpy", "-o", str(tmp_path / "out")]
    assert run_command(arguments) == 0
    block = 128
    files = package(saxpy, SAXPY, launch=lambda out: ((out.size + block - 1) // block, block)).files
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == files


def test_code_for_cuda_core_and_cupy(monkeypatch):
    """Stand-ins, since both need CUDA: they get the code and the symbol."""
    core = types.ModuleType("cuda.core")
    core.ObjectCode = SimpleNamespace(from_ptx=lambda code: ("ptx", code), from_cubin=None)
    files = []

    class RawModule:
        def __init__(self, path):
            files.append(Path(path).read_bytes())

        def get_function(self, name):
            return name

    cupy = types.ModuleType("cupy")
    cupy.RawModule = RawModule
    for module in (types.ModuleType("cuda"), core, cupy):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    export = package(saxpy, SAXPY)
    assert export.object_code("sm_75") == ("ptx", export.code("sm_75"))
    assert export.raw_kernel() == export.symbol() == "saxpy_saxpy_entry"
    assert files == [export.code()]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 100_000])
def test_a_launch_on_the_cpu(library, size):
    rng = np.random.default_rng(size)
    x = rng.random(3 * size, dtype=np.float32)[::3]
    y, out = rng.random(size, dtype=np.float32), np.full(size, 9, np.float32)
    run = library.saxpy.saxpy_saxpy
    assert run(CPU, ctypes.c_float(2), array(x), array(y, strides=[0]), array(out)) == 0
    np.testing.assert_allclose(out, 2 * x + y, rtol=1e-6)
    shape = (ctypes.c_int64 * 1)()
    assert library.saxpy.saxpy_saxpy_shape_of_out(ctypes.c_float(2), array(x), array(y), shape) == 0
    assert list(shape) == [size]


def test_shared_memory_barriers_and_zeroed_outputs_on_the_cpu(library):
    x, out = np.arange(10_000, dtype=np.int32), np.full(1, 77, np.int32)
    for _ in range(3):
        assert (
            library.sums.sums_sums_with(
                CPU, Dim3(157, 1, 1), Dim3(64, 1, 1), 0, array(x), ctypes.c_int64(9_000), array(out)
            )
            == 0
        )
        assert out[0] == x[:9_000].sum()


def test_numbers_of_all_kinds_on_the_cpu(library):
    class Complex64(ctypes.Structure):
        _fields_ = [("real", ctypes.c_float), ("imag", ctypes.c_float)]

    half, w = np.arange(5, dtype=np.float16), np.asfortranarray(np.arange(35.0).reshape(5, 7))
    out = np.zeros((5, 7))
    run = library.mixed.mixed_mixed
    assert run(CPU, ctypes.c_bool(True), Complex64(1, 2), array(half), array(w), array(out)) == 0
    np.testing.assert_allclose(out, 3 + half[:, None] + w)


def test_launches_from_several_threads(library):
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        x = np.random.default_rng(seed).random(50_000, dtype=np.float32)
        out = np.zeros_like(x)
        for _ in range(20):
            assert library.saxpy.saxpy_saxpy(CPU, ctypes.c_float(3), array(x), array(x), array(out)) == 0
        return np.allclose(out, 4 * x)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


X = np.zeros(100, np.float32)
Y, OUT = np.ones(100, np.float32), np.zeros(100, np.float32)


def call_saxpy(library, x=None, y=None, out=None, where=CPU):
    x, y, out = (array(X) if x is None else x), (array(Y) if y is None else y), (array(OUT) if out is None else out)
    return library.saxpy, library.saxpy.saxpy_saxpy(where, ctypes.c_float(1), x, y, out)


def call_sums(library, n):
    x, out = np.zeros(64, np.int32), np.zeros(2, np.int32)
    return library.sums, library.sums.sums_sums(CPU, array(x), ctypes.c_int64(n), array(out))


def call_with(library, grid, block, shared=0):
    run = library.saxpy.saxpy_saxpy_with
    status = run(
        CPU, Dim3(*grid), Dim3(*block), ctypes.c_uint32(shared), ctypes.c_float(1), array(X), array(Y), array(OUT)
    )
    return library.saxpy, status


def call_shape(library, n):
    shape = (ctypes.c_int64 * 1)()
    x = np.zeros(64, np.int32)
    return library.sums, library.sums.sums_sums_shape_of_out(array(x), ctypes.c_int64(n), shape)


CALLS = {
    "a null pointer": (lambda lib: call_saxpy(lib, x=array(X, address=0)), 1, "saxpy: argument `x` is a null pointer"),
    "a negative extent": (
        lambda lib: call_saxpy(lib, y=array(Y, shape=[-3])),
        2,
        "saxpy: the extent -3 of dimension 0 of argument `y` is negative",
    ),
    "strides": (
        lambda lib: call_saxpy(lib, y=array(Y, shape=[50], strides=[8])),
        3,
        "saxpy: argument `y` must be contiguous in C's order: the stride of dimension 0 is 8 bytes, not 4",
    ),
    "an address": (
        lambda lib: call_saxpy(lib, x=array(X, shape=[50], address=X.ctypes.data + 2)),
        4,
        "saxpy: the address of argument `x` is not a multiple of 4 bytes",
    ),
    "an output that is an input": (
        lambda lib: call_saxpy(lib, out=array(X)),
        5,
        "saxpy: the output `out` shares memory with argument `x`: pass other memory",
    ),
    "an output that overlaps": (
        lambda lib: call_saxpy(lib, y=array(Y, shape=[60]), out=array(Y, shape=[50], address=Y.ctypes.data + 200)),
        5,
        "saxpy: the output `out` shares memory with argument `y`",
    ),
    "too many bytes": (
        lambda lib: call_saxpy(lib, y=array(Y, shape=[2**62])),
        2,
        "saxpy: argument `y` has more than 2^63 bytes",
    ),
    "no driver": (
        lambda lib: call_saxpy(lib, where=Where(True, None)),
        8,
        "there is no NVIDIA driver",
    ),
    "a rule that divides by zero": (
        lambda lib: call_sums(lib, 0),
        7,
        "sums: the launch rule fails: a division by zero",
    ),
    "a rule with a negative grid": (
        lambda lib: call_sums(lib, -2),
        7,
        "sums: gridDim.x is -31; it must be from 0 to 2147483647",
    ),
    "a negative shape": (
        lambda lib: call_shape(lib, -2),
        2,
        "sums: the rule gives output `out` the negative extent -1 in dimension 0",
    ),
    "a block of no threads": (lambda lib: call_with(lib, (1, 1, 1), (0, 1, 1)), 7, "saxpy: blockDim.x is 0"),
    "a large block": (
        lambda lib: call_with(lib, (1, 1, 1), (1024, 2, 1)),
        7,
        "saxpy: a block of 1024 x 2 x 1 has 2048 threads; the kernel allows 1024",
    ),
    "a tall grid": (lambda lib: call_with(lib, (1, 70_000, 1), (1, 1, 1)), 7, "saxpy: gridDim.y is 70000"),
    "shared memory": (
        lambda lib: call_with(lib, (1, 1, 1), (1, 1, 1), 2**31),
        7,
        "saxpy: the dynamic shared memory in bytes is 2147483648",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_wrong_calls_launch_nothing_and_name_the_argument(library, case):
    call, status, message = CALLS[case]
    if case == "no driver":
        with contextlib.suppress(OSError):
            ctypes.CDLL("libcuda.so.1")
            pytest.skip("there is a driver")
    OUT[:] = 5
    called, found = call(library)
    assert (found, called.weft_message().decode()[: len(message)]) == (status, message)
    assert (OUT == 5).all()


ON_A_GPU = """
import ctypes
import sys

class Where(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_bool), ("stream", ctypes.c_void_p)]

class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 1), ("strides", ctypes.c_int64 * 1)]

class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]

library = ctypes.CDLL(sys.argv[1])
library.weft_message.restype = ctypes.c_char_p
gpu = Where(True, None)
assert library.weft_gpu_count() == 2
memory, one = ctypes.c_void_p(), Dim3(1, 1, 1)
result, numbers = ctypes.c_int64(5), (ctypes.c_int64(3), ctypes.c_int64(4))

def calls(*found):
    assert found == (0,) * len(found), library.weft_message()

def fails(status, message, found):
    said = library.weft_message().decode()
    assert (found, said[: len(message)]) == (status, message), (found, said)

calls(library.sum3_k_load(gpu))
calls(library.weft_allocate(gpu, ctypes.c_size_t(8), ctypes.byref(memory)))
out = Array(memory, (1,), (0,))
calls(library.sum3_k(gpu, out, *numbers))
calls(library.weft_download(gpu, ctypes.byref(result), memory, ctypes.c_size_t(8)))
assert result.value == 7
calls(library.weft_upload(gpu, memory, ctypes.byref(ctypes.c_int64(9)), ctypes.c_size_t(8)))
calls(library.weft_download(gpu, ctypes.byref(result), memory, ctypes.c_size_t(8)))
assert result.value == 9
calls(library.sum3_k_with(gpu, one, one, 100_000, out, *numbers))
fails(12, "k: the driver reports", library.sum3_k_with(gpu, one, one, 1 << 29, out, *numbers))
fails(12, "k: the driver reports", library.sum3_k_with(gpu, one, Dim3(1024, 1, 1), 0, out, *numbers))
here = Array(ctypes.addressof(result), (1,), (0,))
fails(6, "k: argument `out` is in the memory of the process", library.sum3_k(gpu, here, *numbers))
calls(library.weft_use_gpu(1))
fails(6, "k: argument `out` is on GPU 0, but the kernel runs on GPU 1", library.sum3_k(gpu, out, *numbers))
calls(library.weft_use_gpu(0), library.weft_synchronize(gpu), library.weft_free(gpu, memory))
"""


@needs_gcc
def test_a_launch_on_a_gpu(driver, tmp_path):
    """Over the fake driver of the runtime tests, in which the kernel `sum3…` adds two numbers."""

    def k(out, a, b):
        out[0] = a + b

    signature = "void(int64[::1], int64, int64)"
    export = cuda.jit(k).export("sum3", signatures=signature, launch=(1, 1), out=cuda.shaped(lambda: 1, fill=0))
    built(tmp_path, export)
    script = [sys.executable, "-c", ON_A_GPU, str(tmp_path / "package.so")]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_DEVICES": "2"}
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    old = subprocess.run(script, env={**environment, "FAKE_CC": "70"}, capture_output=True, text=True, check=False)
    assert "k: the package has no code for this GPU (sm_70): build it with --target sm_70" in old.stderr


def expected_plate():
    """What the example computes, with NumPy."""
    u = np.zeros((300, 500), np.float32)
    u[0] = 100
    for _ in range(200):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += np.float32(0.2) * (around - np.float32(4) * u[1:-1, 1:-1])
    return u


def cmake():
    beside = Path(sys.executable).with_name("cmake")
    return str(beside) if beside.exists() else shutil.which("cmake")


@pytest.mark.skipif(cmake() is None or shutil.which("g++") is None, reason="cmake or g++ is not installed")
def test_the_example_builds_with_cmake_and_computes_what_numpy_computes(tmp_path):
    """It takes about 10 s."""
    for name in ("main.cpp", "CMakeLists.txt"):
        shutil.copy(EXAMPLE / name, tmp_path)
    targets = ["--target", "sm_80,sm_90,host", "--name", "heat", "-o", str(tmp_path / "heat")]
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_command(["weft", "build", str(EXAMPLE / "kernels.py"), *targets]) == 0
    environment = {**os.environ, "CFLAGS": "-Wall -Wextra -Werror", "CXXFLAGS": "-Wall -Wextra -Werror"}
    captured = {"check": True, "capture_output": True, "text": True, "env": environment}
    subprocess.run([cmake(), "-S", str(tmp_path), "-B", str(tmp_path / "build")], **captured)
    subprocess.run([cmake(), "--build", str(tmp_path / "build")], **captured)
    program, result = tmp_path / "build" / "plate", tmp_path / "result"
    assert "cuda" not in subprocess.run(["ldd", str(program)], **captured).stdout
    assert subprocess.run([str(program), "cpu", str(result)], **captured).stdout.startswith("CPU: mean ")
    found = result.read_bytes()
    temperatures = np.frombuffer(found[:-256], np.float32)
    # The kernel fuses a multiplication and an addition.
    np.testing.assert_allclose(temperatures.reshape(300, 500), expected_plate(), atol=1e-3)
    bins = (temperatures / np.float32(100) * np.float32(64)).astype(int).clip(0, 63)
    np.testing.assert_array_equal(np.frombuffer(found[-256:], np.int32), np.bincount(bins, minlength=64))
