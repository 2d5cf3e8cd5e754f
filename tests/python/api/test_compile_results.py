"""A dispatcher's compilation results: kernels, device functions, signatures, metadata, and errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import weft
from harness import module
from weft import config, cuda, errors
from weft.types import float32, float64, int32, int64, void


def scale_function(out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] *= factor


def sum_function(a, b):
    return a + b


def test_a_kernel_launches_itself_and_converts_to_its_types() -> None:
    dispatcher = cuda.jit(scale_function)
    wide = dispatcher.compile(void(float64[:], float64))
    dispatcher.compile(void(float64[:], int64))
    x = np.arange(4.0)
    wide.launch((x, 2), (1,), (4,))
    assert x.tolist() == [0, 2, 4, 6]
    stream = cuda.stream()
    device = cuda.to_device(x)
    wide.launch([device, 0.5], (2, 1, 1), (2, 1, 1), stream, 16)
    stream.synchronize()
    assert device.copy_to_host().tolist() == [0, 1, 2, 3]
    assert len(dispatcher.overloads) == 2
    assert wide.bind() is None
    with pytest.raises(TypeError, match=r"argument 1 .`out`. of kernel `scale_function`"):
        wide.launch((np.zeros(4, np.float32), 2), 1, 4)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        wide.launch((x,), 1, 4)
    with pytest.raises(ValueError, match="griddim must be a sequence of 1, 2 or 3 integers"):
        wide.launch((x, 2), (1, 1, 1, 1), 4)


def test_texts_of_a_kernels_library() -> None:
    kernel = cuda.jit(scale_function).compile("void(float32[::1], float32)")
    library = kernel.library
    assert library.name == kernel.entry_name
    assert ".visible .entry" in library.get_asm_str((8, 0))
    assert ".target sm_80" in library.get_asm_str((8, 0))
    assert "define" in library.get_llvm_str()


def test_compile_device_gives_a_result_once_for_each_types() -> None:
    function = cuda.jit(device=True)(sum_function)
    assert function.overloads == {}
    made = function.compile_device((float32, int32))
    assert str(made.signature) == "(float32, int32) -> float64"
    assert ".func" in made.library.get_asm_str()
    assert function.compile_device((float32, int32)) is made
    assert function.overloads == {(float32, int32): made}
    assert function.nopython_signatures == [made.signature]
    assert function.inspect_asm() == {(float32, int32): made.library.get_asm_str()}
    declared = function.compile_device((float64, float64), return_type=float32)
    assert declared.signature.return_type == float32
    assert "b32 func_retval0" in declared.library.get_asm_str()
    # Kernels can also call a kernel's function.
    assert cuda.jit(sum_function).compile_device("(int64, int64)").signature.return_type == int64
    with pytest.raises(errors.CompileError):
        function.compile_device((float32[:], void))
    with pytest.raises(TypeError, match="takes 2 arguments"):
        function.compile_device((float32,))


def test_overloads_of_a_device_function_are_its_signatures() -> None:
    function = cuda.jit(["int64(int64, int64)", "float32(float64, float64)"], device=True)(sum_function)
    assert list(function.overloads) == [(int64, int64), (float64, float64)]
    assert [each.return_type for each in function.nopython_signatures] == [int64, float32]
    assert function.get_overload("(float64, float64)").signature.return_type == float32


def test_results_and_metadata_of_kernels() -> None:
    kernel = cuda.jit(scale_function)
    types = (float32[::1], int64)
    with pytest.raises(KeyError):
        kernel.get_overload(types)
    made = kernel.get_compile_result(void(*types))
    assert made.argument_types == types
    assert kernel.get_overload(types).entry_name == made.entry_name
    assert kernel.nopython_signatures == [void(*types)]
    known = kernel.get_metadata(types)
    assert kernel.get_metadata() == {types: known}
    assert known["symbol"] == made.entry_name
    assert not known["cooperative"]
    kernel.disable_compile()
    with pytest.raises(errors.TypingError, match="not available and compilation disabled"):
        kernel.get_compile_result(void(float64[::1], int64))
    function = cuda.jit(device=True)(sum_function)
    assert function.get_compile_result((int32, int32)).metadata["device"]


def test_compilation_that_is_disabled() -> None:
    kernel = cuda.jit(scale_function)
    with pytest.raises(AssertionError, match="has no compiled kernel yet"):
        kernel.disable_compile()
    kernel.disable_compile(False)
    made = kernel.compile("void(float32[::1], float32)")
    kernel.disable_compile()
    assert kernel.compile("void(float32[::1], float32)").entry_name == made.entry_name
    with pytest.raises(RuntimeError, match="Compilation disabled: `scale_function` has no kernel for"):
        kernel.compile("void(float64[::1], float64)")
    with pytest.raises(TypeError, match="No matching definition for argument type"):
        kernel[1, 1](np.zeros(1), 1.0)


def test_a_kernel_that_returns_a_value_is_a_type_error() -> None:
    @cuda.jit
    def returns(x):
        return x[0]

    with pytest.raises(TypeError, match="CUDA kernel must have void return type") as caught:
        returns[1, 1](np.zeros(1))
    assert isinstance(caught.value, errors.CompileError)
    assert caught.value.diagnostics[0]["code"] == "E0212"


def test_options_that_are_gone_are_deprecation_errors() -> None:
    from weft.numba.errors import DeprecationError

    for options in ({"argtypes": []}, {"restype": float32}, {"bind": True}):
        with pytest.raises(DeprecationError, match="has no option"):
            cuda.jit(**options)
        with pytest.raises(errors.RemovedOptionError):
            cuda.jit("void(float32[:])", **options)


def test_an_inlining_that_a_function_decides_is_left_to_the_compiler() -> None:
    def never(*_):
        raise AssertionError("the compiler does not call it")

    add = cuda.jit(device=True, inline=never)(sum_function)

    @cuda.jit
    def kernel(out):
        out[0] = add(1, 2)

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 3


def test_hints_are_of_numbas_classes() -> None:
    assert issubclass(cuda.InOut, cuda.Out)
    assert not issubclass(cuda.InOut, cuda.In)
    x = np.ones(3)
    cuda.jit(scale_function)[1, 3](cuda.InOut(x), 4)
    assert x.tolist() == [4] * 3


def test_launches_beyond_a_limit_have_the_drivers_number() -> None:
    kernel = cuda.jit(scale_function)
    with pytest.raises(errors.LaunchError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        kernel[1, 2048](np.zeros(1), 1)
    assert caught.value.code == 1
    bounded = cuda.jit(launch_bounds=64)(scale_function)
    with pytest.raises(errors.LaunchError, match=r"allows 64 per block.*CUDA_ERROR_INVALID_VALUE"):
        bounded[1, 128](np.zeros(1), 1)


def test_numbas_further_exceptions_are_in_errors_too() -> None:
    for name in ("NumbaTypeError", "NotDefinedError", "NumbaDeprecationWarning", "ForceLiteralArg"):
        assert inspect.isclass(getattr(errors, name))
    assert not hasattr(errors, "NoSuchError")


def test_what_code_for_other_programs_is_compiled_for(monkeypatch) -> None:
    assert ".target sm_75" in cuda.compile(sum_function, (int32, int32))[0]
    monkeypatch.setattr(config, "CUDA_DEFAULT_PTX_CC", (9, 0))
    assert ".target sm_90" in cuda.compile_ptx(scale_function, (float32[:], int32))[0]
    assert ".target sm_80" in cuda.compile(sum_function, (int32, int32), cc=(8, 0))[0]
    # As in numba: at least the existing overloads.
    monkeypatch.setattr(config, "CUDA_DEFAULT_PTX_CC", (5, 0))
    assert ".target sm_75" in cuda.compile(sum_function, (int32, int32))[0]


# --- Annotations ------------------------------------------------------------------------------------------------------


def annotated(out: float32[:], factor: float32) -> None:
    i = cuda.grid(1)
    if i < out.size:
        out[i] *= factor


def half_annotated(out: float32[:], factor):
    out[0] = factor


def annotated_otherwise(out: np.ndarray, n: int) -> np.ndarray:
    out[0] = 1


def annotated_sum(a: float32, b: weft.float32) -> float64:
    return a + b


def test_launches_do_not_look_at_annotations() -> None:
    """As in numba, annotations have no effect: a kernel is compiled for its arguments."""
    for function in (annotated, half_annotated, annotated_otherwise):
        kernel = cuda.jit(function)
        kernel[1, 4](np.ones(4), 3)
        assert list(kernel.overloads) == [(float64[::1], int64)]


def test_annotations_are_the_signature_of_what_is_compiled_without_one() -> None:
    assert cuda.jit(annotated).compile().argument_types == (float32[:], float32)
    ptx, returned = cuda.compile(annotated_sum)
    assert returned == float64
    assert ".func" in ptx
    assert ".visible .entry" in cuda.compile_ptx(annotated)[0]


def test_annotations_may_be_texts_of_types() -> None:
    """They are evaluated in the scope of the function, or else read as in a signature."""

    def quoted(x: "weft.int32[::1]", n: "f4"):  # noqa: F821, UP037
        x[0] = n

    assert cuda.jit(quoted).compile().argument_types == (int32[::1], float32)
    known = module("""
        from weft import cuda, float32
        def make(of):
            def kernel(x: of[:], n: float32):
                x[0] = n
            return cuda.jit(kernel)
    """)
    assert known.make(int32).compile().argument_types == (int32[:], float32)


def test_annotations_that_are_no_types_are_named() -> None:
    with pytest.raises(TypeError, match=r"`half_annotated`.* parameter `factor` has no annotation"):
        cuda.compile_ptx(half_annotated)

    def kernel(x: unknown[:]):  # noqa: F821
        x[0] = 1

    with pytest.raises(TypeError, match=r"annotation of parameter `x` is not a weft type: 'unknown\[:\]'"):
        cuda.jit(kernel).compile()
    with pytest.raises(TypeError, match=r"annotation of parameter `out` is not a weft type: 'np.ndarray'"):
        cuda.jit(annotated_otherwise).compile()
