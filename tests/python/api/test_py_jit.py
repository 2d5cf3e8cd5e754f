"""`cuda.jit`: call shapes, options, signatures, captured values, pickling."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import textwrap
import types as pytypes

import numpy as np
import pytest
import weft
from weft import cuda

SCALE = 3


def fill_function(out, value):
    """Fills an array."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = value


@cuda.jit
def module_kernel(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = SCALE * i


def run(kernel, *args, threads=32):
    kernel[1, threads](*args)
    cuda.synchronize()


def test_call_shapes() -> None:
    shapes = [
        cuda.jit(fill_function),
        cuda.jit()(fill_function),
        cuda.jit(fastmath=True)(fill_function),
        cuda.jit("void(float32[:], int32)")(fill_function),
        cuda.jit("(f4[:], i4)")(fill_function),
        cuda.jit(weft.void(weft.float32[:], weft.int32))(fill_function),
        cuda.jit((weft.float32[:], weft.int32))(fill_function),
        cuda.jit(["void(float32[:], int32)", (weft.float64[:], weft.float64)])(fill_function),
        cuda.jit(cuda.jit(fill_function)),
    ]
    for kernel in shapes:
        out = np.zeros(5, np.float32)
        run(kernel, out, 7)
        assert out.tolist() == [7] * 5


def test_a_dispatcher_looks_like_its_function() -> None:
    kernel = cuda.jit(fill_function)
    assert kernel.py_func is fill_function
    assert kernel.__name__ == "fill_function"
    assert kernel.__doc__ == "Fills an array."
    assert kernel.__module__ == __name__
    assert list(inspect.signature(kernel).parameters) == ["out", "value"]
    assert repr(kernel) == "<weft kernel fill_function(out, value)>"


def test_unknown_options_are_named() -> None:
    with pytest.raises(TypeError, match="'nopython'"):
        cuda.jit(nopython=True)
    with pytest.raises(TypeError, match="'argtypes': pass a signature"):
        cuda.jit(argtypes=[])
    with pytest.raises(NotImplementedError, match="bounds checking"):
        cuda.jit(boundscheck=True)
    with pytest.raises(NotImplementedError, match="linking"):
        cuda.jit(link=["a.cu"])
    with pytest.raises(ValueError, match="inline"):
        cuda.jit(inline="sometimes")
    with pytest.raises(ValueError, match="Got 4 launch bounds"):
        cuda.jit(launch_bounds=(1, 2, 3, 4))
    for wrong in (-1, 0, 2**40, (128, -1), (0, 2)):
        with pytest.raises(ValueError, match="launch_bounds must be"):
            cuda.jit(launch_bounds=wrong)
    for wrong in ("x", 1.5, True, (128, "x"), {}):
        with pytest.raises(TypeError, match="launch_bounds must be"):
            cuda.jit(launch_bounds=wrong)
    for wrong in (1000, -1, 0):
        with pytest.raises(ValueError, match="max_registers must be"):
            cuda.jit(max_registers=wrong)
    for wrong in ("x", 32.0, True):
        with pytest.raises(TypeError, match="max_registers must be"):
            cuda.jit(max_registers=wrong)
    with pytest.raises(ValueError, match="carveout"):
        cuda.jit(shared_memory_carveout="MaxShard")
    with pytest.warns(weft.errors.InvalidConfigWarning, match="not checked yet"):
        cuda.jit(debug=True, opt=False)


def test_what_cannot_be_jitted() -> None:
    with pytest.raises(TypeError, match="not of int"):
        cuda.jit(3)
    with pytest.raises(TypeError, match="use def"):
        cuda.jit(lambda x: None)[1, 1](np.zeros(1))


def test_options_reach_the_code() -> None:
    sig = "void(float32[:], float32)"
    assert ".maxntid 128" in cuda.jit(launch_bounds=128)(fill_function).inspect_asm(sig)
    assert ".minnctapersm 3" in cuda.jit(launch_bounds=(128, 3))(fill_function).inspect_asm(sig)
    assert ".maxntid 64" in cuda.jit(launch_bounds=np.int64(64))(fill_function).inspect_asm(sig)
    assert ".maxnreg 40" in cuda.jit(max_registers=40)(fill_function).inspect_asm(sig)
    lines = cuda.jit(lineinfo=True)(fill_function).inspect_asm(sig)
    start = inspect.getsourcelines(fill_function)[1]
    assert f".loc\t1 {start + 3} " in lines
    assert ".loc" not in cuda.jit(fill_function).inspect_asm(sig)


def test_launch_bounds_bound_the_block() -> None:
    kernel = cuda.jit(launch_bounds=(64, 1))(fill_function)
    out = np.zeros(96, np.float32)
    kernel[2, 64](out, 1.5)
    assert out.tolist() == [1.5] * 96
    assert [compiled.max_threads_per_block for compiled in kernel.overloads.values()] == [64]
    for block in (65, (8, 9), 1024):
        with pytest.raises(weft.errors.LaunchError, match="this kernel can have 64 a block"):
            kernel[1, block](out, 2.5)
    kernel.forall(96)(out, 3.5)
    assert out.tolist() == [3.5] * 96
    # A bound beyond what a block can have is none.
    cuda.jit(launch_bounds=4096)(fill_function)[1, 1024](out, 4.5)
    assert out.tolist() == [4.5] * 96


def test_inspect() -> None:
    kernel = cuda.jit(fill_function)
    assert kernel.inspect_asm() == {}
    run(kernel, np.zeros(3, np.float32), 1.5)
    types = (weft.float32[::1], weft.float64)
    assert kernel.signatures == [types]
    assert list(kernel.overloads) == [types]
    assert list(kernel.inspect_asm()) == [types]
    major, minor = cuda.get_current_device().compute_capability
    asm = kernel.inspect_asm(types)
    assert f".target sm_{major}{minor}" in asm
    assert ".entry" in asm
    assert asm == kernel.inspect_asm()[types]
    assert ".target sm_75" in kernel.inspect_asm(types, target="sm_75")
    assert ".text" in kernel.inspect_asm(types, target="host")
    assert "define" in kernel.inspect_llvm(types)
    assert "kernel @fill_function" in kernel.inspect_ir(types)
    with pytest.raises(ValueError, match="there is no target `gpu`"):
        kernel.inspect_asm(types, target="gpu")
    with pytest.raises(TypeError, match="takes 2 arguments"):
        kernel.inspect_asm((weft.int32,))


def test_compiled_kernels_know_their_resources() -> None:
    kernel = cuda.jit("void(float32[:], float32)")(fill_function)
    [compiled] = kernel.overloads.values()
    assert compiled.argument_types == (weft.float32[:], weft.float32)
    assert kernel.get_max_threads_per_block() == compiled.max_threads_per_block >= 32
    assert kernel.get_shared_mem_per_block() == 0
    assert isinstance(kernel.get_regs_per_thread(), int)
    assert compiled.access == [("out", False, True), ("value", False, False)]
    lazy = cuda.jit(fill_function)
    run(lazy, np.zeros(1), 1)
    assert list(lazy.get_local_mem_per_thread()) == lazy.signatures


# --- Signatures ---


def test_one_signature_converts_numbers() -> None:
    kernel = cuda.jit("void(complex64[:], complex64)")(fill_function)
    out = np.zeros(2, np.complex64)
    for value in (3, 2.5, 1j, np.int8(-1), True, np.uint64(2**63)):
        run(kernel, out, value)
        assert out.tolist() == [np.complex64(value)] * 2
    wrapping = cuda.jit("void(int32[:], int32)")(fill_function)
    ints = np.zeros(2, np.int32)
    run(wrapping, ints, 2**32 + 5)
    assert ints.tolist() == [5, 5]


def test_integers_as_a_declared_boolean() -> None:
    @cuda.jit("void(boolean, int32[::1])")
    def kernel(flag, out):
        out[0] = 1 if flag else 2

    for value, expected in ((0, 2), (1, 1), (256, 1), (-1, 1), (True, 1), (np.uint64(2**63), 1), (np.int8(0), 2)):
        out = np.zeros(1, np.int32)
        run(kernel, value, out)
        assert out[0] == expected
    with pytest.raises(TypeError, match="declares boolean, but it is float64"):
        run(kernel, 1.0, np.zeros(1, np.int32))


def test_one_signature_checks_arrays() -> None:
    kernel = cuda.jit("void(float32[::1], int32)")(fill_function)
    cases = [
        ((np.zeros(2), 1), r"argument 1 \(`out`\) of kernel `fill_function`: .* declares array\(float32, 1d, C\)"),
        ((np.zeros(2), 1), r"but it is array\(float64, 1d, C\)"),
        ((np.zeros(4, np.float32)[::2], 1), "1d, A"),
        ((np.zeros((2, 2), np.float32), 1), "2d, C"),
        ((np.zeros(2, np.float32), 1.5), r"argument 2 \(`value`\) .* declares int32, but it is float64"),
        ((3, 1), "but it is int64"),
    ]
    for args, text in cases:
        with pytest.raises(TypeError, match=text):
            run(kernel, *args)
    locked = np.zeros(2, np.float32)
    locked.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        run(kernel, locked, 1)


def test_several_signatures_choose_the_best() -> None:
    kernel = cuda.jit(["void(float32[:], float32)", "void(float32[:], int64)"])(fill_function)
    assert len(kernel.overloads) == 2
    out = np.zeros(1, np.float32)
    run(kernel, out, 3)
    run(kernel, out, np.float32(2.5))
    assert out.tolist() == [2.5]
    with pytest.raises(TypeError, match=r"No matching definition for .* array\(float64, 1d, C\), int64"):
        run(kernel, np.zeros(1), 3)
    ambiguous = cuda.jit(["void(float32[:], float32)", "void(float32[:], int32)"])(fill_function)
    with pytest.raises(TypeError, match="Ambiguous overloading"):
        run(ambiguous, out, 3)


def test_numbas_ranks_decide_between_signatures() -> None:
    kernel = cuda.jit(["void(float64[:], float32)", "void(float64[:], float64)"])(fill_function)
    out = np.zeros(1)
    # Numba counts uint16 to float32 as unsafe.
    run(kernel, out, np.uint16(3))
    assert out.tolist() == [3.0]
    # A more general array is a safe conversion, which is worse than a promotion.
    kernel = cuda.jit(["void(float64[:], float32)", "void(float64[::1], float64)"])(fill_function)
    run(kernel, out, np.float32(0.5))
    assert out.tolist() == [0.5]


def test_signatures_are_compiled_at_once() -> None:
    with pytest.raises(weft.CompileError, match="E0201"):

        @cuda.jit("void(float32[:])")
        def wrong(x):
            x[0] = no_such_name  # noqa: F821

    with pytest.raises(TypeError, match="must have void return type"):
        cuda.jit("float32(float32[:], int32)")(fill_function)
    with pytest.raises(weft.CompileError, match="E0301"):
        cuda.jit("void(flot32[:])")


def test_specialize() -> None:
    kernel = cuda.jit(fill_function)
    special = kernel.specialize(np.zeros(1, np.float32), weft.float64)
    assert special.specialized
    assert not kernel.specialized
    out = np.zeros(2, np.float32)
    run(special, out, 4)
    assert out.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="already specialized"):
        special.specialize(1)


def test_disable_compile_and_recompile() -> None:
    kernel = cuda.jit(fill_function)
    run(kernel, np.zeros(1), 1.0)
    kernel.disable_compile()
    with pytest.raises(TypeError, match="No matching definition"):
        run(kernel, np.zeros(1, np.float32), 1.0)
    kernel.recompile()
    assert kernel.signatures == [(weft.float64[::1], weft.float64)]


# --- Captured values ---


def test_a_compiled_kernel_keeps_its_globals() -> None:
    global SCALE
    kernel = cuda.jit(module_kernel.py_func)
    out = np.zeros(3, np.int64)
    run(kernel, out)
    try:
        SCALE = 10
        run(kernel, out)
        assert out.tolist() == [0, 3, 6]
        run(cuda.jit(module_kernel.py_func), out)
        assert out.tolist() == [0, 10, 20]
    finally:
        SCALE = 3


def test_star_parameters_are_named() -> None:
    @cuda.jit
    def positional(x, *rest):
        x[0] = 1

    @cuda.jit
    def keywords(x, *, y=1, **more):
        x[0] = 1

    with pytest.raises(TypeError, match=r"kernel `positional` has `\*rest`, which a kernel cannot have"):
        run(positional, np.zeros(1), 2)
    with pytest.raises(TypeError, match=r"kernel `keywords` has `\*\*more`, which a kernel cannot have"):
        keywords.compile("void(float64[::1])")


def test_a_failed_compilation_freezes_nothing() -> None:
    def plain():
        return 4

    helper = plain

    @cuda.jit
    def kernel(out):
        out[0] = LATE + helper()  # noqa: F821

    out = np.zeros(1)
    try:
        with pytest.raises(weft.CompileError, match="LATE"):
            run(kernel, out)
        globals()["LATE"] = 9
        with pytest.raises(weft.CompileError, match="function"):
            run(kernel, out)
        helper = cuda.jit(helper)
        run(kernel, out)
        assert out[0] == 13
    finally:
        globals().pop("LATE", None)


def test_names_of_device_functions_are_read_with_those_of_the_kernel() -> None:
    value = 1

    @cuda.jit(device=True)
    def inner():
        return value

    @cuda.jit(device=True)
    def outer():
        return inner() * 10 + value

    @cuda.jit
    def kernel(out):
        out[0] = outer() + inner() * 100

    first, second = np.zeros(1), np.zeros(1, np.float32)
    run(kernel, first)
    value = 2
    run(kernel, second)
    run(kernel, first)
    assert (first[0], second[0]) == (111, 222)
    # Texts are of what was compiled, and of the present where nothing was.
    texts = [kernel.inspect_llvm(signature) for signature in ("void(float64[::1])", "void(float32[::1])")]
    assert "1.110000e+02" in texts[0]
    assert "2.220000e+02" in texts[1]
    value = 3
    assert kernel.inspect_llvm("void(float64[::1])") == texts[0]
    kernel.recompile()
    run(kernel, first)
    assert first[0] == 333


def test_many_kinds_of_captured_values() -> None:
    box = pytypes.SimpleNamespace(inner=pytypes.SimpleNamespace(factor=2), pair=(1, 2.5))
    module = pytypes.ModuleType("settings")
    module.OFFSET = np.int16(4)
    dtype = np.dtype(np.float64)
    alias = cuda
    grid = cuda.grid
    flag, big, z = True, 2**63, 1 + 2j

    @cuda.jit(device=True)
    def helper(x, step=box.pair[0]):
        return x + step

    @cuda.jit
    def kernel(out):
        i = grid(1) + alias.threadIdx.y
        one = cuda.local.array(1, dtype)
        one[0] = 0.5
        if i < out.size and flag:
            out[i] = helper(box.inner.factor * i) + box.pair[1] + module.OFFSET + one[0] + z.imag
            out[i] += helper(0, step=weft.int32(big > 5))

    out = np.zeros(2)
    run(kernel, out)
    assert out.tolist() == [1 + 2.5 + 4 + 0.5 + 2 + 1, 2 + 1 + 2.5 + 4 + 0.5 + 2 + 1]


def test_values_that_kernels_cannot_have_are_named() -> None:
    values = {"a": 1}

    @cuda.jit
    def kernel(out):
        out[0] = values["a"]

    with pytest.raises(weft.CompileError, match="dict"):
        run(kernel, np.zeros(1))

    def plain():
        return 1

    @cuda.jit
    def caller(out):
        out[0] = plain()

    with pytest.raises(weft.CompileError, match="function"):
        run(caller, np.zeros(1))


def test_recursion_is_an_error() -> None:
    @cuda.jit(device=True)
    def down(n):
        return down(n - 1) if n > 0 else 0

    @cuda.jit
    def kernel(out):
        out[0] = down(3)

    with pytest.raises(weft.CompileError, match="recurs"):
        run(kernel, np.zeros(1))


def test_a_kernel_in_a_class_with_text_at_the_margin() -> None:
    class Holder:
        @staticmethod
        @cuda.jit
        def kernel(out):
            """A text
            at the margin."""
            # A comment at the margin.
            out[0] = 5

    out = np.zeros(1)
    run(Holder.kernel, out)
    assert out[0] == 5


def test_source_for_functions_without_a_file() -> None:
    text = "def made(out):\n    out[0] = 6\n"
    scope: dict = {}
    exec(text, scope)
    with pytest.raises(OSError, match=r"cuda.jit\(source=text\)"):
        run(cuda.jit(scope["made"]), np.zeros(1))
    out = np.zeros(1)
    run(cuda.jit(source=text)(scope["made"]), out)
    assert out[0] == 6


def test_diagnostics_name_this_file_and_line() -> None:
    @cuda.jit
    def wrong(out):
        out[0] = undefined_value  # noqa: F821

    with pytest.raises(weft.CompileError) as caught:
        run(wrong, np.zeros(1))
    line = inspect.getsourcelines(wrong.py_func)[1] + 2
    [diagnostic] = caught.value.diagnostics
    assert (diagnostic["code"], diagnostic["file"], diagnostic["line"]) == ("E0201", __file__, line)
    assert "undefined_value" in str(caught.value)
    assert "^^^^" in str(caught.value)
    assert caught.value.__cause__ is None
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.diagnostics == caught.value.diagnostics


# --- Pickling ---


def test_pickle_by_reference_and_by_value() -> None:
    assert pickle.loads(pickle.dumps(module_kernel)) is module_kernel
    factor = 4

    @cuda.jit(fastmath=True)
    def local(out):
        out[0] = factor * SCALE

    copy = pickle.loads(pickle.dumps(local))
    assert copy.targetoptions["fastmath"] is True
    configured = pickle.loads(pickle.dumps(copy[(2, 1), 8, 0, 64]))
    assert (configured.griddim, configured.blockdim, configured.sharedmem) == ((2, 1, 1), (8, 1, 1), 64)
    out = np.zeros(1)
    configured(out)
    cuda.synchronize()
    assert out[0] == 12


def test_pickle_to_another_process(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, pickle
            import numpy as np
            from weft import cuda

            OFFSET = 2

            @cuda.jit(device=True)
            def plus(x):
                return x + OFFSET

            @cuda.jit
            def kernel(out):
                out[cuda.grid(1)] = plus(cuda.grid(1))

            def work(text):
                out = np.zeros(3)
                pickle.loads(text)(out)
                cuda.synchronize()
                return out.tolist()

            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.apply(work, (pickle.dumps(kernel[1, 3]),)))
            """
        )
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert result.stdout == "[2.0, 3.0, 4.0]\n", result.stderr


# --- Names of kernels ---


def test_kernel_names_refuse_to_run_outside() -> None:
    for name in (cuda.grid, cuda.syncthreads, cuda.shared.array, cuda.atomic.add):
        with pytest.raises(RuntimeError, match="can only be used in a kernel"):
            name(1)
    with pytest.raises(RuntimeError, match=r"cuda.threadIdx can only"):
        _ = cuda.threadIdx.x
    assert cuda.grid.__doc__.startswith("Position of the thread")


def test_every_intrinsic_has_a_name_and_every_name_an_intrinsic() -> None:
    from weft._weft import intrinsics

    rows = {path for path, _ in intrinsics() if path.startswith("weft.cuda.")}
    names = set()
    for value in vars(cuda).values():
        path = getattr(value, "_weft_path", None)
        if path is None:
            continue
        members = [getattr(value, name) for name in ("array", "add") if hasattr(value, name)]
        if path in ("weft.cuda.threadIdx", "weft.cuda.blockIdx", "weft.cuda.blockDim", "weft.cuda.gridDim"):
            names |= {f"{path}.{part}" for part in "xyz"}
        elif members:
            names |= {member._weft_path for member in members}
        else:
            names.add(path)
    assert names == rows
