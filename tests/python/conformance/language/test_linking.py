"""Functions in other languages: declared and linked on a GPU, replaced by Python functions on a CPU."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from harness import module
from weft import CompileError, config, cuda, errors, types

SOURCES = Path(__file__).parents[2] / "linking"
PTX = str(SOURCES / "functions.ptx")
CU = SOURCES / "functions.cu"


@cuda.declare_device("mul", "float32(float32, float32)", link=PTX)
def mul(a, b):
    return a * b


@cuda.declare_device("narrow", "int8(int8, boolean)", link=[PTX], abi="c")
def narrow(a, flag):
    return a - flag


@cuda.declare_device("bump", "void(CPointer(int32))", abi="c")
def bump(place):
    cuda.atomic.add(place, 0, 1)


@cuda.jit(device=True)
def through(a, b):
    return mul(a, b) + mul(b, 2)


@cuda.jit(link=PTX)
def linked(x, b, count):
    i = cuda.grid(1)
    if i < x.size:
        # Arguments are converted to the signature.
        x[i] = through(x[i], i)
        b[i] = narrow(b[i] + 256 * 3, i % 2 == 0)
        bump(count)


@pytest.fixture
def count():
    return cuda.to_device(np.zeros(1, np.int32))


def test_functions_are_linked(count):
    n = 70
    kernel = cuda.jit("void(float32[::1], int8[::1], CPointer(int32))", link=[PTX, PTX])(linked.py_func)
    x, b = np.arange(n, dtype=np.float32) - 30, np.arange(n).astype(np.int8)
    dx, db = cuda.to_device(x), cuda.to_device(b)
    kernel[3, 32](dx, db, count.device_pointer)
    i = np.arange(n, dtype=np.float32)
    assert dx.copy_to_host().tolist() == (x * i + i * np.float32(2)).tolist()
    assert db.copy_to_host().tolist() == (b - (np.arange(n) % 2 == 0)).astype(np.int8).tolist()
    assert count.copy_to_host().tolist() == [n]
    assert ".extern .func" in next(iter(kernel.inspect_asm().values()))


def test_several_kernels_of_one_function():
    for dtype in (np.float32, np.float64):

        @cuda.jit
        def kernel(x):
            x[0] = mul(x[0], 3)

        x = np.ones(1, dtype)
        kernel[1, 1](x)
        assert x[0] == 3


@cuda.declare_device("checked", "int32(int32)", link=PTX)
def checked(a):
    if a < 0:
        raise RuntimeError
    return a


@cuda.jit
def of_checked(x, out):
    i = cuda.grid(1)
    out[i] = 1
    out[i] = 10 + checked(x[i])


def raise_of(kernel, x, out):
    kernel[1, 4](x, out)
    cuda.synchronize()


def test_a_function_that_fails_ends_its_thread():
    x = np.array([3, -1, 0, -7], np.int32)
    out = np.zeros(4, np.int32)
    of_checked[1, 4](x, out)
    assert out.tolist() == [13, 1, 10, 1]
    raising = cuda.jit(exceptions=True)(of_checked.py_func)
    with pytest.raises(RuntimeError):
        raise_of(raising, x, out)


def test_without_python_it_is_a_gpus_alone():
    bar = cuda.declare_device("bar", "int32(int32)", link=PTX)

    @cuda.jit
    def kernel(x):
        x[0] = bar(x[0])

    x = np.array([21], np.int32)
    if on_gpu():
        kernel[1, 1](x)
        assert x[0] == 42
    else:
        with pytest.raises(CompileError, match="`bar` is linked code for GPUs, which a CPU cannot run"):
            kernel[1, 1](x)


def on_gpu() -> bool:
    from weft import _weft

    return _weft.device_kind() == "cuda"


@pytest.mark.cuda
def test_what_is_not_linked_is_an_error_that_says_so():
    nowhere = cuda.declare_device("nowhere", "int32(int32)")

    @cuda.jit
    def kernel(x):
        x[0] = nowhere(x[0])

    with pytest.raises(errors.LinkerError, match="pass its file with `link=`"):
        kernel[1, 1](np.zeros(1, np.int32))
    with pytest.raises(errors.LinkerError, match="nowhere"):
        cuda.jit(link=PTX)(kernel.py_func)[1, 1](np.zeros(1, np.int32))


@pytest.mark.cuda
def test_ptx_with_faults_shows_the_linkers_log():
    broken = cuda.PTXSource(".version 6.3\n.target sm_70\n.address_size 64\nbroken\n", "broken.ptx")

    @cuda.jit(link=broken)
    def kernel(x):
        x[0] = 1

    with pytest.raises(errors.LinkerError, match=r"broken.ptx(.|\n)*line 4"):
        kernel[1, 1](np.zeros(1, np.int32))


def compiled(**signatures) -> dict[str, object]:
    """Functions of functions.cu by name; skips where there is no NVRTC."""
    declared = {}
    for name, sig in signatures.items():
        declared[name] = cuda.declare_device(name, sig, link=CU, abi="c" if name == "raised" else "numba")
    get_calls = cuda.declare_device("get_calls", "int32()", link=CU)

    @cuda.jit
    def probe(x):
        x[0] = get_calls()

    try:
        probe[1, 1](np.zeros(1, np.int32))
    except errors.NvrtcSupportError as error:
        pytest.skip(str(error))
    return declared


class FFI:
    """A replacement for `cffi.FFI`, which need not be installed."""

    __module__ = "cffi.api"


FFI.__qualname__ = "FFI"


@pytest.mark.cuda
@pytest.mark.parametrize("lto", [None, True])
def test_cuda_cpp_is_compiled(lto):
    mul, total, raised = compiled(
        mul="float32(float32, float32)", total="float32(CPointer(float32), int32)", raised="float16(float16)"
    ).values()
    ffi = FFI()

    @cuda.jit(lto=lto)
    def kernel(x, out, halves):
        mine = cuda.local.array(3, np.float32)
        shared = cuda.shared.array(4, np.float32)
        for i in range(3):
            mine[i] = shared[i] = x[i]
        out[0] = mul(x[0], x[1])
        out[1] = total(ffi.from_buffer(x), x.size)
        out[2] = total(ffi.from_buffer(mine), 3)
        out[3] = total(ffi.from_buffer(shared), 2)
        halves[0] = raised(halves[0])

    x = np.array([1, 2, 3, 4], np.float32)
    x.flags.writeable = False
    out, halves = np.zeros(4, np.float32), np.array([1.5], np.float16)
    try:
        kernel[1, 1](x, out, halves)
    except errors.NvrtcSupportError as error:
        pytest.skip(str(error))
    assert out.tolist() == [6, 10, 6, 3]
    assert halves.tolist() == [3]


@pytest.mark.cuda
def test_callbacks_get_the_module():
    compiled()
    told = []

    def setup(code):
        told.append(code.handle)
        address, size = code.get_global("calls")
        assert size == 4
        variable = {"data": (address, False), "shape": (1,), "typestr": "<i4", "version": 3}
        cuda.from_cuda_array_interface(variable)[0] = 42
        with pytest.raises(errors.DriverError, match="there is no variable nothing"):
            code.get_global("nothing")

    def teardown(code):
        told.remove(code.handle)

    code = cuda.CUSource(
        '__device__ int calls = 5; extern "C" __device__ int get_calls(int *r) { *r = calls; return 0; }',
        "calls.cu",
        setup_callback=setup,
        teardown_callback=teardown,
    )
    get_calls = cuda.declare_device("get_calls", "int32()", link=code)

    @cuda.jit
    def kernel(x):
        x[0] = get_calls()

    for dtype in (np.int32, np.int64, np.int32):
        x = np.zeros(1, dtype)
        kernel[1, 1](x)
        assert x[0] == 42
    assert len(told) == 2
    del kernel
    import gc

    gc.collect()
    assert told == []


@pytest.mark.cuda
def test_errors_and_warnings_of_cuda_cpp(tmp_path):
    compiled()

    def kernel(x):
        x[0] = 1

    with pytest.raises(errors.NvrtcCompilationError, match='identifier "SYNTAX" is undefined') as raised:
        cuda.jit("void(int32[::1])", link=cuda.CUSource("__device__ int f() { SYNTAX }", "error.cu"))(kernel)
    assert 'in the compilation of "error.cu"' in raised.value.args[0]
    unused = cuda.CUSource("__device__ int f() { int unused; return 1; }", "warn.cu")
    with pytest.warns(UserWarning, match=r"NVRTC log messages(.|\n)*declared but never referenced"):
        cuda.jit("void(int32[::1])", link=unused)(kernel)
    # Headers are also searched in configured folders, and a file is read for each compilation.
    source = tmp_path / "source.cu"
    source.write_text('#include "elsewhere.cuh"\nextern "C" __device__ int given(int *r) { *r = VALUE; return 0; }\n')
    folder = tmp_path / "headers"
    folder.mkdir()
    given = cuda.declare_device("given", "int32()", link=source)

    @cuda.jit
    def reads(x):
        x[0] = given()

    x = np.zeros(1, np.int64)
    with pytest.raises(errors.NvrtcCompilationError, match=r"elsewhere\.cuh"):
        reads[1, 1](x)
    before = config.CUDA_NVRTC_EXTRA_SEARCH_PATHS
    config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = f"/nowhere:{folder}"
    try:
        for value in (7, 8):
            (folder / "elsewhere.cuh").write_text(f"#define VALUE {value}\n")
            reads[1, 1](x)
            assert x[0] == value
            reads.recompile()
            x = x.astype(np.int32)
    finally:
        config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = before


def test_pointers_of_arrays():
    ffi = FFI()

    @cuda.declare_device("never", "float32(CPointer(float32), int64)", link=PTX)
    def summed(p, n):
        sum_ = types.float32(0)
        for i in range(n):
            sum_ += p[i]
        return sum_

    @cuda.jit
    def kernel(x, out):
        mine = cuda.local.array((2, 3), np.float32)
        for i in range(6):
            mine[i // 3, i % 3] = i
        p = ffi.from_buffer(x[1:])
        p[0] = 5
        out[0] = p[-1] + p[0]
        q = ffi.from_buffer(mine)
        out[1] = q[5] + q[1]

    x, out = np.arange(4, dtype=np.float32), np.zeros(2, np.float32)
    kernel[1, 1](x, out)
    assert x.tolist() == [0, 5, 2, 3]
    assert out.tolist() == [5, 6]
    if not on_gpu():

        @cuda.jit
        def calls(x, out):
            out[0] = summed(ffi.from_buffer(x), x.size)

        calls[1, 1](x, out)
        assert out[0] == 10


def test_the_declaration_is_an_object():
    bar = cuda.declare_device("bar", types.int32(types.float32[:]), link=PTX)
    assert (bar.name, bar.sig.args, bar.sig.return_type) == ("bar", (types.float32[:],), types.int32)
    assert (bar.abi, bar.use_cooperative, bar.link) == ("numba", False, (PTX,))
    assert repr(bar) == "<weft declared function bar(array(float32, 1d, A)) -> int32>"
    again = pickle.loads(pickle.dumps(bar))
    assert (again.name, again.sig, again.link, again.abi) == (bar.name, bar.sig, bar.link, bar.abi)
    assert pickle.loads(pickle.dumps(mul)) is mul
    assert mul.py_func(2, 3) == 6
    with pytest.raises(TypeError, match="`bar` can only be called from kernels"):
        bar(1)
    for sig in ("(float32[:],)", (types.float32,), "(float32)"):
        with pytest.raises(TypeError, match="Return type must be provided for device declarations"):
            cuda.declare_device("bar", sig)
    with pytest.raises(NotImplementedError, match="Unsupported ABI"):
        cuda.declare_device("bar", "int32()", abi="rust")
    for name in ("", "a b", "1a", "_", "a.b", "é"):
        with pytest.raises(ValueError, match="is not a symbol"):
            cuda.declare_device(name, "int32()")
    with pytest.raises(TypeError, match="name must be the name of a function, a str, not int"):
        cuda.declare_device(3, "int32()")
    assert cuda.declare_device("_Z3addii$1", "int32(int32, int32)").name == "_Z3addii$1"


def test_the_launch_is_cooperative_where_a_function_says_so():
    @cuda.declare_device("mul", "float32(float32, float32)", link=PTX, use_cooperative=True)
    def of_grid(a, b):
        return a * b

    @cuda.jit("void(float32[::1])")
    def kernel(x):
        x[0] = of_grid(x[0], 2)

    assert next(iter(kernel.overloads.values())).cooperative == on_gpu()


def test_what_is_linked_is_looked_at_when_a_kernel_is_compiled(tmp_path):
    def kernel():
        pass

    missing = str(tmp_path / "nonexistent.a")
    with pytest.raises(errors.LinkerError) as raised:
        cuda.jit("void()", link=[missing])(kernel)
    assert raised.value.args[0] == f"{missing} not found"
    with pytest.raises(RuntimeError, match=r"Don't know how to link file with extension \.cuh"):
        cuda.jit("void()", link="header.cuh")(kernel)
    with pytest.raises(RuntimeError, match="Don't know how to link file with no extension"):
        cuda.jit("void()", link={"data"})(kernel)
    with pytest.raises(TypeError, match="link takes paths and LinkableCode objects, not int"):
        cuda.jit(link=[3])
    lazy = cuda.jit(link=Path(missing))(kernel)
    with pytest.raises(errors.LinkerError, match="not found"):
        lazy[1, 1]()


def test_linkable_code(tmp_path):
    import io

    kinds = {
        "ptx": cuda.PTXSource,
        "cu": cuda.CUSource,
        "fatbin": cuda.Fatbin,
        "cubin": cuda.Cubin,
        "a": cuda.Archive,
        "o": cuda.Object,
        "ltoir": cuda.LTOIR,
    }
    for extension, kind in kinds.items():
        path = tmp_path / f"code.{extension}"
        path.write_bytes(b"code")
        code = cuda.LinkableCode.from_path(str(path))
        assert type(code) is kind
        assert (code.data, code.name, code.kind) == (b"code", f"code.{extension}", extension)
        assert cuda.LinkableCode.from_path_or_obj(code) is code
        assert type(kind.from_path_or_obj(path)) is kind
        assert kind(io.BytesIO(b"x")).data == b"x"
        assert kind(io.StringIO("x"), name="n").name == "n"
        assert kind("").name.startswith("<unnamed-")
    with pytest.raises(ValueError, match=r"Unknown extension: \.cuh"):
        cuda.LinkableCode.from_path("header.cuh")
    with pytest.raises(TypeError, match="setup_callback must be callable"):
        cuda.CUSource("", setup_callback=1)
    with pytest.raises(NotImplementedError, match="NRT"):
        cuda.CUSource("", nrt=True)


def passed(a, flag, z, pair, p):
    p[0] += 1
    return (a + np.int8(1), z * 2, pair[0] and not flag), p[0] + pair[1][0]


SIGNATURES = {
    "c": "Tuple((Tuple((int8, complex64, boolean)), float64))"
    "(int8, boolean, complex64, Tuple((boolean, Tuple((float64, float16)))), CPointer(int32))",
    "numba": "Tuple((Tuple((int8, complex64, boolean)), float64))"
    "(int8, boolean, complex64, Tuple((boolean, Tuple((float64, float16)))), CPointer(int32))",
}


def caller_of(declared):
    @cuda.jit
    def caller(a, flags, z, p, out, total):
        (b, w, f), t = declared(a[0], flags[0], z[0], (flags[1], (2.5, 1)), p)
        a[0], z[0], flags[0] = b, w, f
        total[0] = t

    return cuda.jit("void(int8[::1], boolean[::1], complex64[::1], CPointer(int32), int32[::1], float64[::1])")(
        caller.py_func
    )


def prototype(ptx: str, start: str) -> str:
    """A function's result and parameters in PTX, without their names."""
    found = re.search(re.escape(start) + r"\s*(\(.*?\))?\s*passed\s*\((.*?)\)", ptx, re.DOTALL)
    return re.sub(r"\s+|(passed|func)_\w+", "", found[0].replace(start, ""))


@pytest.mark.parametrize("abi", ["c", "numba"])
def test_what_is_compiled_can_be_declared(abi):
    if on_gpu():
        code, returns = cuda.compile_for_current_device(passed, SIGNATURES[abi], abi=abi)
    else:
        code, returns = cuda.compile(passed, SIGNATURES[abi], abi=abi)
    link = cuda.PTXSource(code, "passed.ptx")
    declared = cuda.declare_device("passed", SIGNATURES[abi], link=link, abi=abi)(passed)
    assert declared.sig.return_type == returns
    kernel = caller_of(declared)
    calls = kernel.inspect("asm", next(iter(kernel.overloads)), "sm_75")
    assert prototype(calls, ".extern .func") == prototype(code, ".visible .func")
    a, flags, z = np.array([41], np.int8), np.array([False, True]), np.array([1 + 2j], np.complex64)
    p, out, total = cuda.to_device(np.array([6], np.int32)), np.zeros(1, np.int32), np.zeros(1)
    kernel[1, 1](a, flags, z, p.device_pointer, out, total)
    assert (a[0], flags[0], z[0], total[0], p.copy_to_host()[0]) == (42, True, 2 + 4j, 9.5, 7)


def test_all_code_that_a_function_needs():
    code, returns = cuda.compile_all(lambda x: through(x, x), (types.float32,), output="ptx")
    assert ".extern .func" in code[0]
    assert returns == types.float32
    assert [type(item) for item in code[1:]] == [cuda.PTXSource]
    with pytest.raises(TypeError, match="`mul` is linked code: there is nothing to compile"):
        cuda.compile(mul, (types.float32, types.float32))


VALUES = "\n    ".join(f"v{i} = x * {i + 2} + n" for i in range(40))
DEEP = f"""def deep(n, x):
    {VALUES}
    if n <= 0:
        return x
    r = deep(n - 1, x % 7)
    return r + {" + ".join(f"r % (v{i} + {i + 1})" for i in range(40))}
"""


@pytest.mark.parametrize("options", [{"launch_bounds": 1024}, {"launch_bounds": (256, 4)}, {"max_registers": 40}])
def test_functions_have_no_more_registers_than_their_kernel(options):
    """A recursive function is a separate function for the linker, which could use 255 registers."""
    plain, deep = module(DEEP).deep, module(f"from weft import cuda\n@cuda.jit(device=True)\n{DEEP}").deep

    def kernel(x):
        i = cuda.grid(1)
        x[i] = deep(x[i], x[i] + 3) + mul(x[i], 2)

    # Two nested calls: the stack of a GPU thread has a few kilobytes.
    x = np.arange(2)
    cuda.jit(link=PTX, **options)(kernel)[1, 2](x)
    assert x.tolist() == [plain(n, n + 3) + n * 2 for n in range(2)]
