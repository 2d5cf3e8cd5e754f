"""PTX for other programs: `cuda.compile` and its relatives."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import weft
import weft.errors
from weft import cuda, types
from weft.cuda import boolean, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8


def add(x, y):
    return x + y


def prototype(code: str) -> str:
    """The first line and the parameters of the visible function, without their names."""
    [found] = re.findall(r"\.visible (.*?\n?\))\n", code, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"\w+_param_\d+|func_retval0", "", found)).strip()


@pytest.mark.parametrize(
    ("signature", "abi", "expected", "returns"),
    [
        (int32(int32, int32), "c", ".func (.param .b32 ) add( .param .b32 , .param .b32 )", int32),
        ("int64(int64, int64)", "c", ".func (.param .b64 ) add( .param .b64 , .param .b64 )", int64),
        ((int8, int8), "c", ".func (.param .b64 ) add( .param .b32 , .param .b32 )", int64),
        (boolean(uint8, int16), "c", ".func (.param .b32 ) add( .param .b32 , .param .b32 )", boolean),
        ((float32, float64), "c", ".func (.param .b64 ) add( .param .b32 , .param .b64 )", float64),
        (
            (float16, float16),
            "c",
            ".func (.param .align 2 .b8 [2]) add( .param .align 2 .b8 [2], .param .align 2 .b8 [2] )",
            float16,
        ),
        (
            (complex64, complex128),
            "c",
            ".func (.param .align 16 .b8 [16]) add( .param .align 8 .b8 [8], .param .align 16 .b8 [16] )",
            complex128,
        ),
        (
            (types.UniTuple(int8, 3), types.Tuple((int8, float64))),
            "c",
            ".func (.param .align 8 .b8 [16]) add( .param .align 1 .b8 [3], .param .align 8 .b8 [16] )",
            types.Tuple((int8, int8, int8, int8, float64)),
        ),
        (int32(int32, int32), "numba", ".func (.param .b32 ) add( .param .b64 , .param .b32 , .param .b32 )", int32),
        (
            (complex64, float16),
            "numba",
            ".func (.param .b32 ) add( .param .b64 , .param .b32 , .param .b32 , .param .b32 )",
            complex64,
        ),
    ],
)
def test_prototypes(signature, abi, expected, returns) -> None:
    code, result = cuda.compile(add, signature, abi=abi)
    assert prototype(code) == expected
    assert result == returns


def test_what_may_be_none() -> None:
    def first(x, y):
        return x if y is None else None

    maybe = types.Optional(float32)
    code, returns = cuda.compile(first, (float32, types.Optional(int8)), abi="numba")
    assert prototype(code) == ".func (.param .b32 ) first( .param .b64 , .param .b32 , .param .b32 , .param .b32 )"
    assert returns == maybe
    assert re.search(r"b32 \t%r\d+, -2;|\[func_retval0\], -2;|, -2, ", code)
    declared, returns = cuda.compile(first, maybe(maybe, types.Optional(int8)), abi="numba")
    assert prototype(declared).count(".param") == 6
    assert returns == maybe
    with pytest.raises(weft.CompileError, match="`first` returns float32 or None, which a C function cannot express"):
        cuda.compile(first, (float32, types.Optional(int8)), abi="c")
    code, returns = cuda.compile(first, float32(float32, types.Optional(int8)), abi="c")
    assert prototype(code) == ".func (.param .b32 ) first( .param .b32 , .param .b32 , .param .b32 )"
    assert returns == float32
    # A thread with None ends; C code gets no error.
    assert "exit;" in code

    def tuples(x):
        return x, x is None

    code, returns = cuda.compile(tuples, (types.Optional(float64),))
    assert prototype(code) == ".func (.param .align 8 .b8 [24]) tuples( .param .b64 , .param .b32 )"
    assert returns == types.Tuple((types.Optional(float64), boolean))


def test_kernels_for_other_code_take_what_may_be_none() -> None:
    def kernel(x, n):
        if x is not None and n is not None:
            x[0] = n

    code, _ = cuda.compile_ptx(kernel, (types.Optional(float32[::1]), types.Optional(float64)))
    assert len(set(re.findall(r"kernel_param_\d+", code))) == 7 + 1 + 1 + 1


def test_arrays_are_descriptors() -> None:
    def head(x):
        return x[0, 1]

    for abi, first in (("c", ""), ("numba", ".param .b64 , ")):
        code, returns = cuda.compile(head, (float32[:, :],), abi=abi)
        assert prototype(code) == f".func (.param .b32 ) head( {first}{', '.join(['.param .b64'] * 9)} )".replace(
            "b64,", "b64 ,"
        )
        assert returns == float32
        # Other code may pass an array in any address space.
        assert "ld.global" not in code
        assert "ld.b32" in code


def test_kernels_take_all_that_numba_passes() -> None:
    def scale(out, x, by):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] * by.real

    code, returns = cuda.compile_ptx(
        scale, "void(float32[::1], float32[:], complex64)", launch_bounds=(128, 2, 4), cc=(9, 0)
    )
    assert returns == weft.void
    assert isinstance(returns, types.NoneType)
    assert code.count("scale_param_") > code.count(".param .u64")
    assert len(set(re.findall(r"scale_param_\d+", code))) == 7 + 7 + 2
    assert ".visible .entry scale(" in code
    assert ".target sm_90\n" in code
    assert ".maxntid 128, 1, 1\n.minnctapersm 2\n.maxclusterrank 4\n" in code
    assert "ld.global" in code
    assert "func_retval" not in code


def test_targets_and_symbols() -> None:
    assert ".target sm_75\n" in cuda.compile(add, (int32, int32))[0]
    assert ".target sm_90a\n" in cuda.compile(add, (int32, int32), cc=(9, 0, "a"))[0]
    code, _ = cuda.compile(lambda x: x, int32(int32), abi_info={"abi_name": "_Z1fi"})
    assert "_Z1fi(" in code
    for wrong in ({"abi_name": "a b"}, {"abi_name": "1"}, {"abi_name": "_"}, {"abi_name": 3}, {"name": "f"}):
        with pytest.raises(ValueError, match="abi_"):
            cuda.compile(add, (int32, int32), abi_info=wrong)
    with pytest.raises(ValueError, match="sm_50"):
        cuda.compile(add, (int32, int32), cc=(5, 0))


def test_options_reach_the_code() -> None:
    def root(x, y, z, d):
        return ((x * y + z) / d) ** 0.5

    four = (float32,) * 4
    exact, fast = cuda.compile(root, four)[0], cuda.compile(root, four, fastmath=True)[0]
    assert "div.rn.f32" in exact
    assert "div.approx.ftz.f32" in fast
    assert ".loc" not in exact
    assert ".loc" in cuda.compile(root, four, lineinfo=True)[0]
    plain = cuda.compile(root, four, debug=True, opt=False)[0]
    assert ".loc" in plain
    assert "call" in plain
    assert "call" in cuda.compile(root, four, opt=False)[0]


def test_the_declared_type_is_returned() -> None:
    def compare(a, b):
        return a == b

    assert cuda.compile(compare, (int32, int32))[1] == boolean
    code, returns = cuda.compile(compare, uint8(int32, int32))
    assert (returns, ".visible .func" in code) == (uint8, True)
    jitted = cuda.jit("float64(float64, float64)", device=True)(compare)
    assert cuda.compile(jitted, (int8, int8))[1] == boolean


def test_exceptions() -> None:
    def positive(x):
        if x < 0:
            raise ValueError
        return x

    assert "exit;" in cuda.compile(positive, (int32,))[0]
    code, _ = cuda.compile(positive, (int32,), abi="numba", debug=True, opt=False)
    assert "exit;" not in code
    # Nothing would read the exception record.
    assert ".global" not in code


def test_functions_that_call_themselves() -> None:
    @cuda.jit(device=True)
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    code, returns = cuda.compile(factorial, (int64,), abi_info={"abi_name": "own"})
    assert returns == int64
    # Other linked code may have functions of the same names.
    assert all(name.startswith("own") for name in re.findall(r"func \(.*?\) (\S+)\(", code))
    assert ") own(\n" in code


def test_ptx_of_intrinsics() -> None:
    @cuda.intrinsic("int32(int32, int32)", "add.sat.s32 %0, %1, %2;", pure=True)
    def saturating(a, b):
        return a + b

    code, returns = cuda.compile(saturating, (int32, int32))
    assert "add.sat.s32" in code
    assert returns == int32


def test_what_cannot_be_compiled() -> None:
    def view(x):
        return x[1:]

    def maybe(x):
        return x if x > 0 else None

    def values(*args):
        return args[0]

    with pytest.raises(weft.errors.CompileError, match=r"`view` returns array\(float32, 1d, C\)"):
        cuda.compile(view, (float32[::1],))
    with pytest.raises(weft.errors.CompileError, match="returns float32 or None, which a C function cannot express"):
        cuda.compile(maybe, (float32,))
    with pytest.raises(TypeError, match=r"has `\*args`"):
        cuda.compile(values, (float32,))
    with pytest.raises(TypeError, match="takes 2 arguments"):
        cuda.compile(add, (float32,))
    with pytest.raises(weft.errors.CompileError, match=r"is compiled for \(array"):
        cuda.compile(lambda x: x.nothing, (float32[:],))
    for arguments, message in (
        ({"abi": "fastcall"}, "Unsupported ABI: fastcall"),
        ({"device": False}, "The C ABI is not supported for kernels"),
        ({"output": "exe"}, "Unsupported output type: exe"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            cuda.compile(add, (int32, int32), **arguments)
    with pytest.raises(ValueError, match="Cannot force-inline kernels"):
        cuda.compile(add, (int32, int32), device=False, abi="numba", output="ltoir", forceinline=True)
    with pytest.raises(ValueError, match="Can only designate forced inlining in LTO-IR"):
        cuda.compile(add, (int32, int32), forceinline=True)
    with pytest.raises(TypeError, match="must have void return type"):
        cuda.compile_ptx(add, int32(int32, int32))


def test_the_relatives() -> None:
    major, minor = cuda.get_current_device().compute_capability
    for compiled in (cuda.compile_for_current_device, cuda.compile_ptx_for_current_device):
        code, returns = compiled(add, (float32, float32), device=True)
        assert f".target sm_{major}{minor}" in code
        assert returns == float32
    codes, returns = cuda.compile_all(add, (float32, float32), output="ptx")
    assert codes == [cuda.compile(add, (float32, float32))[0]]
    assert returns == float32


def test_device_functions_show_their_code() -> None:
    device = cuda.jit(device=True)(add)
    assert prototype(device.inspect_asm((int32, int32))) == ".func (.param .b64 ) add( .param .b32 , .param .b32 )"
    assert "define" in device.inspect_llvm((int32, int32))
    assert device.inspect_ir((int32, int32)).count("fn @add") == 2


def test_it_needs_no_device(tmp_path) -> None:
    (tmp_path / "program.py").write_text("""
import weft
from weft import cuda
cuda.compile(lambda x: x + 1, (weft.int32,))
cuda.compile_ptx(lambda x: None, (weft.int32[:],))
print("done")
""")
    environment = {"PATH": "", "CUDA_VISIBLE_DEVICES": "none", "WEFT_DEVICE": "cuda", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, tmp_path / "program.py"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.stdout == "done\n", ran.stderr


def of_record(r):
    return r.a


def of_tuple(t):
    return t[0][t[1]]


def of_string(s):
    return len(s)


def of_nested(t):
    return t[1][0].a + t[0]


RECORD = weft.typeof(np.zeros(1, np.dtype([("a", "f8"), ("b", "i4")], align=True))[0])


@pytest.mark.parametrize(
    ("function", "argument", "abi", "expected"),
    [
        (of_record, RECORD, "c", ".func (.param .b64 ) of_record( .param .b64 )"),
        (of_record, RECORD, "numba", ".func (.param .b32 ) of_record( .param .b64 , .param .b64 )"),
        (
            of_tuple,
            types.Tuple((float64[::1], int64)),
            "c",
            ".func (.param .b64 ) of_tuple( .param .align 8 .b8 [64] )",
        ),
        (
            of_tuple,
            types.Tuple((float64[::1], int64)),
            "numba",
            ".func (.param .b32 ) of_tuple( " + ", ".join([".param .b64"] * 9) + " )",
        ),
        (of_string, weft.typeof("abc"), "c", ".func (.param .b64 ) of_string( .param .b64 )"),
        (
            of_nested,
            types.Tuple((float64, types.Tuple((RECORD,)))),
            "c",
            ".func (.param .b64 ) of_nested( .param .align 8 .b8 [16] )",
        ),
    ],
)
def test_records_strings_and_arrays_in_tuples_are_parameters(function, argument, abi, expected) -> None:
    code, _ = cuda.compile(function, (argument,), abi=abi, cc=(9, 0))
    assert prototype(code).replace(" ,", ",") == expected.replace(" ,", ",")
    if function is of_record:
        # Through the pointer, in any address space: the field is read in place.
        assert re.search(r"\bld\.(b|f)64", code)


def test_kernels_call_functions_with_signatures_of_records_wherever_these_are() -> None:
    inner = cuda.jit(float64(RECORD), device=True)(of_record)

    @cuda.jit
    def kernel(x, out):
        own = cuda.shared.array(1, RECORD)
        own[0].a = x[0].a
        cuda.syncthreads()
        out[0] = inner(own[0]) + inner(x[0])

    x = np.ones(1, np.dtype([("a", "f8"), ("b", "i4")], align=True))
    out = np.zeros(1)
    kernel[1, 1](x, out)
    assert out[0] == 2


@pytest.mark.parametrize(
    "compile_",
    [
        cuda.compile,
        cuda.compile_ptx,
        cuda.compile_all,
        cuda.compile_for_current_device,
        cuda.compile_ptx_for_current_device,
    ],
)
def test_numpys_typing_is_an_option(compile_) -> None:
    def tenth(x, y):
        y[0] = x[0] * 0.1

    options = {"device": False, "abi": "numba", "typing": "numpy"}
    if compile_ is cuda.compile_all:
        options["output"] = "ptx"
    signature = "void(float32[::1], float32[::1])"
    code = compile_(tenth, signature, **options)[0]
    other = compile_(tenth, signature, **(options | {"typing": "numba"}))[0]
    assert "f64" not in str(code)
    assert "f64" in str(other)
    with pytest.raises((TypeError, ValueError), match="typing"):
        compile_(tenth, signature, **(options | {"typing": "c"}))


@pytest.mark.parametrize("compile_", [cuda.compile, cuda.compile_ptx, cuda.compile_ptx_for_current_device])
def test_a_warning_of_debug_names_the_programs_line(compile_) -> None:
    with pytest.warns(weft.errors.InvalidConfigWarning) as caught:
        compile_(add, (int32, int32), device=True, debug=True)
    assert {warning.filename for warning in caught} == {__file__}
