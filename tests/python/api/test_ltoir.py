"""LTO-IR for other programs: `cuda.compile(output="ltoir")`. NVIDIA's libraries compile and link it without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import weft
import weft._source
import weft.errors
from weft import cuda, types
from weft.cuda import boolean, complex64, complex128, float16, float32, float64, int8, int32, int64, uint16

KERNELS = Path(__file__).parents[2] / "kernels"

# Kinds of input of nvJitLink.
LTOIR = 3


def library(name: str, setting: str) -> ctypes.CDLL:
    """A library of NVIDIA's from the Python packages of this environment."""
    for root in weft._source.site_packages():
        for file in sorted(Path(root, "nvidia").rglob(f"{name}.so.*[0-9]")):
            return ctypes.CDLL(str(file))
    pytest.skip(f"{name} is in no Python package of this environment ({setting})")


@pytest.fixture(scope="module")
def nvjitlink() -> ctypes.CDLL:
    """The linker. libNVVM must be there, too, and not be newer."""
    library("libnvvm", "nvidia-nvvm")
    return library("libnvJitLink", "nvidia-nvjitlink")


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    return library("libnvrtc", "nvidia-cuda-nvrtc")


def strings(options: list[str]) -> tuple[int, ctypes.Array]:
    return len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))


def link(nvjitlink: ctypes.CDLL, codes: list[bytes], sm: int = 90, form: str = "Cubin") -> bytes:
    """Link LTO-IR to a cubin, or to the PTX of all of it."""
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"-arch=sm_{sm}", "-lto", *(["-ptx"] if form == "Ptx" else [])]
    assert nvjitlink.nvJitLinkCreate(ctypes.byref(handle), *strings(options)) == 0
    try:
        failed = False
        for code in codes:
            failed |= nvjitlink.nvJitLinkAddData(handle, LTOIR, code, ctypes.c_size_t(len(code)), b"code") != 0
        failed |= nvjitlink.nvJitLinkComplete(handle) != 0
        nvjitlink.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        nvjitlink.nvJitLinkGetErrorLog(handle, log)
        assert not failed, log.value.decode()
        assert getattr(nvjitlink, f"nvJitLinkGetLinked{form}Size")(handle, ctypes.byref(size)) == 0
        linked = ctypes.create_string_buffer(size.value)
        assert getattr(nvjitlink, f"nvJitLinkGetLinked{form}")(handle, linked) == 0
        return linked.raw
    finally:
        nvjitlink.nvJitLinkDestroy(ctypes.byref(handle))


def linked_ptx(nvjitlink: ctypes.CDLL, *codes: bytes, sm: int = 90) -> str:
    return link(nvjitlink, list(codes), sm, "Ptx").rstrip(b"\0").decode()


def cuda_cpp(nvrtc: ctypes.CDLL, source: str, sm: int = 90) -> bytes:
    """CUDA C++ as LTO-IR."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"caller.cu", 0, None, None)
    assert made == 0
    compiled = nvrtc.nvrtcCompileProgram(program, *strings([f"--gpu-architecture=sm_{sm}", "-rdc=true", "-dlto"]))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert compiled == 0, log.value.decode()
    assert nvrtc.nvrtcGetLTOIRSize(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetLTOIR(program, code) == 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def ltoir(function, signature, *, name: str = "f", sm: int = 90, **options) -> bytes:
    options.setdefault("abi_info", {"abi_name": name})
    code, _ = cuda.compile(function, signature, cc=(sm // 10, sm % 10), output="ltoir", **options)
    assert isinstance(code, bytes)
    return code


def header(path: Path, key: str) -> str | None:
    """A value of the first line of a file of tests/kernels."""
    found = re.search(rf'\b{key} = "([^"]*)"', path.read_text(encoding="utf-8").partition("\n")[0])
    return found and found[1]


def needs_suffix(path: Path) -> bool:
    """Whether a file of tests/kernels is for targets with a suffix alone, such as sm_90a."""
    found = re.search(r"\btargets = \[([^]]*)\]", path.read_text(encoding="utf-8").partition("\n")[0])
    return found is not None and all(target.strip('" ')[-1] in "af" for target in found[1].split(","))


# Without adjoint kernels: `cuda.compile` takes the parameters of the Python function, without adjoints. And it takes a
# compute capability, which has no suffix.
COMPILED = sorted(
    path for path in KERNELS.rglob("*.py") if path.parent.name != "derivatives" and not needs_suffix(path)
)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_kernel_is_linked_to_a_cubin(path, nvjitlink) -> None:
    spec = importlib.util.spec_from_file_location(f"kernels_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError) as error:
        # A kernel of a newer Python, or with a package that is not installed.
        pytest.skip(str(error))
    kernel = getattr(module, path.stem)
    abi, signature = header(path, "abi") or "kernel", header(path, "sig")
    signature = signature or kernel.signatures[0]
    if abi != "kernel":
        code = ltoir(kernel, signature, name=path.stem, abi=abi)
        # The linker drops functions that nothing calls. `test_functions_are_inlined_into_cuda_cpp` has callers.
        assert link(nvjitlink, [code]).startswith(b"\x7fELF")
        return
    code = ltoir(kernel, signature, name=path.stem, device=False, abi="numba")
    # libNVVM takes a call of an intrinsic that it does not know as one of a function of another module, which ptxas
    # does not find.
    assert f".text.{path.stem}\0".encode() in link(nvjitlink, [code])


def scalar(x, y):
    return x * y + x


def small(x, y, z):
    return y if z else x


def product(x, y):
    return x * y


def nested(pair, x):
    return pair[1] * x, pair[0] + x


def half(x):
    return x + x


def write(x, i, value):
    x[i] = value


@pytest.mark.parametrize("sm", [75, 90, 100])
@pytest.mark.parametrize(
    ("function", "signature", "caller"),
    [
        (scalar, (float32, float32), "float f(float, float); KERNEL(float *x) { x[0] = f(x[1], x[2]); }"),
        (scalar, (float64, int64), "double f(double, long long); KERNEL(double *x) { x[0] = f(x[1], 3); }"),
        (
            small,
            int8(int8, uint16, boolean),
            "signed char f(signed char, unsigned short, bool); KERNEL(int *x) { x[0] = f(x[1], x[2], x[3]); }",
        ),
        (product, (complex64, complex64), "float2 f(float2, float2); KERNEL(float2 *x) { x[0] = f(x[1], x[2]); }"),
        (
            product,
            (complex128, complex128),
            "double2 f(double2, double2); KERNEL(double2 *x) { x[0] = f(x[1], x[2]); }",
        ),
        (
            nested,
            (types.Tuple((int8, float64)), float64),
            "struct P { signed char a; double b; }; struct R { double a, b; };"
            'extern "C" __device__ R f(P, double); KERNEL(double *x) { x[0] = f({3, x[1]}, x[2]).a; }',
        ),
    ],
    ids=["floats", "doubles", "small", "float2", "double2", "structs"],
)
def test_functions_are_inlined_into_cuda_cpp(function, signature, caller, sm, nvjitlink, nvrtc) -> None:
    caller = caller.replace("KERNEL", 'extern "C" __global__ void kernel')
    if not caller.startswith("struct"):
        caller = f'extern "C" __device__ {caller}'
    codes = [cuda_cpp(nvrtc, caller, sm), ltoir(function, signature, sm=sm)]
    ptx = linked_ptx(nvjitlink, *codes, sm=sm)
    assert ".entry kernel(" in ptx
    assert "call" not in ptx
    assert ".func" not in ptx
    assert link(nvjitlink, codes, sm).startswith(b"\x7fELF")


def test_arrays_and_the_abi_of_numba(nvjitlink, nvrtc) -> None:
    caller = """
    extern "C" __device__ int f(void *result, void *, void *, long long, long long, float *x, long long, long long,
                                int, float);
    extern "C" __global__ void kernel(float *x) {
        void *result;
        if (f(&result, 0, 0, 8, 4, x, 8, 4, threadIdx.x, 2)) x[9] = 1;
    }
    """
    code = ltoir(write, (float32[::1], int32, float32), abi="numba")
    ptx = linked_ptx(nvjitlink, cuda_cpp(nvrtc, caller), code)
    assert "call" not in ptx
    assert "st.global" in ptx


def test_a_half_is_the_struct_of_cuda(nvjitlink, nvrtc) -> None:
    caller = """
    struct alignas(2) Half { unsigned short bits; };
    extern "C" __device__ Half f(Half);
    extern "C" __global__ void kernel(Half *x) { x[0] = f(x[1]); }
    """
    for signature in (float16(float16), types.bfloat16(types.bfloat16)):
        ptx = linked_ptx(nvjitlink, cuda_cpp(nvrtc, caller), ltoir(half, signature))
        assert "add" in ptx
        assert "call" not in ptx


def test_options_reach_the_code(nvjitlink) -> None:
    def quotient(out, x, y):
        out[0] = math.sqrt(x[0] / y[0])

    def ptx(**options) -> str:
        code = ltoir(quotient, (float32[::1],) * 3, device=False, abi="numba", **options)
        return linked_ptx(nvjitlink, code)

    assert re.search(r"div\.rn\.f32(.|\n)*sqrt\.rn\.f", ptx())
    fast = ptx(fastmath=True)
    assert "div.approx.ftz.f32" in fast
    assert "sqrt.approx.ftz.f32" in fast
    bounds = ptx(launch_bounds=(128, 2))
    assert ".maxntid 128, 1, 1" in bounds
    assert ".minnctapersm 2" in bounds
    assert ".entry f(" in ptx(lineinfo=True)
    with pytest.warns(weft.errors.InvalidConfigWarning):
        assert ".entry f(" in ptx(debug=True, opt=True)
    assert ".entry f(" in ptx(opt=False)


def test_forceinline(nvjitlink, nvrtc) -> None:
    """A function that the linker would not inline because of its size and its two calls."""

    @cuda.jit(device=True)
    def large(x, n):
        total = x
        for i in range(n):
            total = total * total + np.float32(1) / (total + np.float32(i))
            for j in range(n):
                total = (total - np.float32(j)) * np.float32(0.5) / (total * total + np.float32(3))
                total = total / (x + np.float32(i)) + x / (total + np.float32(j))
        return total

    caller = """
    extern "C" __device__ float f(float, long long);
    extern "C" __global__ void kernel(float *x, int n) { x[0] = f(x[1], n); x[2] = f(x[3], n + 1); x[4] = f(x[5], 9); }
    """
    caller = cuda_cpp(nvrtc, caller)
    inlined = ltoir(large, float32(float32, int64), forceinline=True)
    assert "call" not in linked_ptx(nvjitlink, caller, inlined)
    assert ltoir(large, float32(float32, int64)) != inlined


def test_compile_all_makes_lto_ir_as_numba_does(nvjitlink) -> None:
    codes, returns = cuda.compile_all(scalar, (float32, float32), cc=(9, 0))
    assert [type(code) for code in codes] == [bytes]
    assert returns == float32
    assert link(nvjitlink, codes).startswith(b"\x7fELF")


def test_functions_that_call_themselves(nvjitlink, nvrtc) -> None:
    @cuda.jit(device=True)
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    caller = """
    extern "C" __device__ long long own(long long);
    extern "C" __global__ void kernel(long long *x) { x[0] = own(x[1]); }
    """
    codes = [cuda_cpp(nvrtc, caller), ltoir(factorial, int64(int64), name="own")]
    # Other linked code may have functions of the same names.
    assert all(name.startswith("own") for name in re.findall(r"func \(.*?\) (\S+)\(", linked_ptx(nvjitlink, *codes)))
    assert link(nvjitlink, codes).startswith(b"\x7fELF")


def test_without_libnvvm_the_message_says_what_to_install(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import weft
from weft import cuda
try:
    cuda.compile(lambda x: x + 1, (weft.int32,), output="ltoir")
except NotImplementedError as error:
    print(error)
""")

    def said_with(value: str) -> str:
        environment = {"PATH": "", "WEFT_DEVICE": "cpu", "PYTHONPATH": ":".join(sys.path), "WEFT_LIBNVVM": value}
        command = [sys.executable, program]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    said = said_with("none")
    assert "only NVIDIA's compilers can produce LTO-IR" in said
    assert 'WEFT_LIBNVVM is "none"' in said
    assert "output='ptx'" in said
    assert "WEFT_LIBNVVM names a file that cannot be opened" in said_with("/nowhere/libnvvm.so")
