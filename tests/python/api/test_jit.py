"""`cuda.jit`: call shapes, options, specializations, inspection, and the names that kernels use."""

from __future__ import annotations

import copy
import inspect
import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda


def fill_function(out, value):
    """Fills an array."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = value


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
    for options in ({}, {"opt": True}):
        with pytest.warns(weft.errors.InvalidConfigWarning, match="not supported by CUDA's debuggers"):
            cuda.jit(debug=True, **options)


def test_what_cannot_be_jitted() -> None:
    with pytest.raises(TypeError, match="not int"):
        cuda.jit(3)
    with pytest.raises(weft.errors.SourceError, match="use def"):
        cuda.jit(eval("lambda x: None"))


def test_a_lambda() -> None:
    times = cuda.jit(device=True)(lambda x, y=2: x * y)
    declared = cuda.jit("int32(float64)", device=True)(lambda x: x)

    @cuda.jit
    def kernel(x):
        x[0] = times(1.5)
        x[1] = times(0.5, 3)
        x[2] = declared(2.75)

    x = np.zeros(3)
    kernel[1, 1](x)
    assert x.tolist() == [3.0, 1.5, 2.0]


class Lambdas:
    listed = [cuda.jit(device=True)(lambda x, k=k: x + k) for k in range(2)]  # noqa: RUF012
    __private = 3

    def bound(self):
        return [cuda.jit(device=True)(lambda x: x + k + 1) for k in (self.__private,)]  # noqa: B023


def lambdas():
    jit = cuda.jit(device=True)

    def given(function):
        return lambda _: function

    @given(jit(lambda x: x * 7))
    def decorated(x):
        return x

    yield [jit(lambda x, k=k: x + k) for k in range(3)], [2, 3, 4]
    yield [jit(lambda x: x + k) for k in range(3)], [4, 4, 4]  # noqa: B023
    yield list(jit(lambda x, k=k: x * k) for k in range(3)), [0, 2, 4]  # noqa: C400
    yield list({k: jit(lambda x, k=k: x - k) for k in range(3)}.values()), [2, 1, 0]
    yield list({jit(lambda x: x - 1) for _ in range(1)}), [1]
    yield (
        [f for row in [[jit(lambda x, i=i, j=j: x + i * 10 + j) for j in (1, 2)] for i in (1,)] for f in row],
        [13, 14],
    )
    yield [jit(lambda x: x + 1), jit(lambda x: x + 1.5), jit(lambda y: y + 1)], [3, 3.5, 3]
    yield (lambda q: [jit(lambda x: x + q + k) for k in (1,)])(4), [7]  # noqa: B023
    yield Lambdas.listed, [2, 3]
    yield Lambdas().bound(), [6]
    yield [decorated], [14]


def test_lambdas_wherever_they_stand() -> None:
    for functions, wanted in lambdas():
        for function, expected in zip(functions, wanted, strict=True):

            @cuda.jit
            def kernel(x):
                x[0] = function(x[0])  # noqa: B023

            x = np.full(1, 2.0)
            kernel[1, 1](x)
            assert x[0] == expected


def test_an_error_in_a_lambda_has_its_line() -> None:
    wrong = cuda.jit(device=True)(lambda x: x.missing)
    line = test_an_error_in_a_lambda_has_its_line.__code__.co_firstlineno + 1

    @cuda.jit
    def kernel(x):
        x[0] = wrong(x)

    with pytest.raises(weft.CompileError, match=rf"no attribute `missing`\n.*test_jit\.py:{line}:"):
        kernel[1, 1](np.zeros(1))


def fresh(source="    x[0] = 1\n", decorator="@cuda.jit", head=""):
    return module(f"import numpy as np\nfrom weft import cuda\n{head}\n{decorator}\ndef kernel(x):\n{source}").kernel


def test_options_together():
    kernel = fresh(decorator="@cuda.jit(fastmath=True, lineinfo=True, max_registers=64, launch_bounds=128)")
    x = np.zeros(1)
    kernel[1, 1](x)
    assert x[0] == 1


def test_options_reach_the_code() -> None:
    sig = "void(float32[:], float32)"
    assert ".maxntid 128" in cuda.jit(launch_bounds=128)(fill_function).inspect_asm(sig)
    assert ".maxclusterrank 4" in cuda.jit(launch_bounds=(128, None, 4))(fill_function).inspect_asm(sig, target="sm_90")
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
        with pytest.raises(weft.errors.LaunchError, match="this kernel allows 64 per block"):
            kernel[1, block](out, 2.5)
    kernel.forall(96)(out, 3.5)
    assert out.tolist() == [3.5] * 96
    # A bound above the maximal block size is ignored.
    cuda.jit(launch_bounds=4096)(fill_function)[1, 1024](out, 4.5)
    assert out.tolist() == [4.5] * 96


def test_one_specialisation_for_each_tuple_of_types():
    kernel = fresh()
    assert len(kernel.overloads) == 0
    arrays = (np.zeros(4), np.zeros(9), np.zeros(4, np.float32), np.zeros((2, 2))[0], np.zeros(8)[::2])
    for array, count in zip(arrays, (1, 1, 2, 2, 3), strict=True):
        kernel[1, 1](array)
        assert len(kernel.overloads) == count
        assert len(kernel.signatures) == count


def test_inspect() -> None:
    kernel = cuda.jit(fill_function)
    with pytest.raises(NotImplementedError, match="use `inspect_asm` for the kernel's PTX"):
        kernel.inspect_lto_ptx()
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
    assert kernel.inspect_llvm() == {types: kernel.inspect_llvm(types)}
    assert "kernel @fill_function" in kernel.inspect_ir(types)
    file = io.StringIO()
    kernel.inspect_types(file)
    assert file.getvalue().startswith("fill_function (array(float32, 1d, C), float64)\n---")
    # On a GPU it fits 32 bits.
    assert "$i: int" in file.getvalue()
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


def test_specialize() -> None:
    kernel = cuda.jit(fill_function)
    special = kernel.specialize(np.zeros(1, np.float32), weft.float64)
    assert special.specialized
    assert not kernel.specialized
    out = np.zeros(2, np.float32)
    run(special, out, 4)
    assert out.tolist() == [4, 4]
    assert kernel.specialize(weft.float32[::1], 1.5) is special
    other = kernel.specialize(weft.float32[:], weft.float64)
    assert other is not special
    capability = cuda.get_current_device().compute_capability
    assert kernel.specializations == {
        (capability, (weft.float32[::1], weft.float64)): special,
        (capability, (weft.float32[:], weft.float64)): other,
    }
    assert special.specializations == {}
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


def test_a_kernel_in_a_class_with_text_at_the_margin() -> None:
    class Holder:
        @staticmethod
        @cuda.jit
        def kernel(out):
            """A string
            at the margin."""
            # A comment at the margin.
            out[0] = 5

    out = np.zeros(1)
    run(Holder.kernel, out)
    assert out[0] == 5


def test_source_for_functions_without_a_file() -> None:
    lines = ("def made(out):", "    while out[0] < 6:", "        out[0] += 1")
    scope: dict = {}

    def define() -> None:
        # Its source text no longer exists after it returns.
        exec("\n".join(lines), scope)

    define()
    with pytest.raises(OSError, match=r"cuda.jit\(source=text\)"):
        run(cuda.jit(scope["made"]), np.zeros(1))
    out = np.zeros(1)
    run(cuda.jit(source="\n".join(lines))(scope["made"]), out)
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


TABLE = np.arange(32)


def test_memory_of_a_thread_and_constants() -> None:
    @cuda.jit("void(int64[::1], int64)")
    def kernel(x, n):
        own = cuda.local.array(1000, np.float64)
        constant = cuda.const.array_like(TABLE)
        i = cuda.grid(1)
        for k in range(1000):
            own[k] = x[i] + k
        x[i] = own[n] + constant[i]

    # The driver of a GPU may report more.
    assert kernel.get_local_mem_per_thread() >= 8000
    assert kernel.get_const_mem_size() >= TABLE.nbytes
    assert next(iter(kernel.overloads.values())).local_mem_per_thread == kernel.get_local_mem_per_thread()


def test_the_parameters_of_jit_are_the_options() -> None:
    from weft._weft import jit_options

    options = jit_options()
    parameters = list(inspect.signature(cuda.jit).parameters.values())
    assert [parameter.name for parameter in parameters] == ["func_or_sig", *(name for name, *_ in options), "unknown"]
    assert [repr(parameter.default) for parameter in parameters[1:-1]] == [default for _, default, *_ in options]
    for name, _, allowed, doc in options:
        assert f"\n{name} : {allowed}" in inspect.getdoc(cuda.jit) or not allowed
        assert f"\n    {doc}\n" in inspect.getdoc(cuda.jit)


def test_whether_negative_indices_wrap_is_a_bool() -> None:
    for wrong in (None, 0, 1, "no", 1.0, ()):
        with pytest.raises(TypeError, match="wraparound must be True or False"):
            cuda.jit(wraparound=wrong)
    # The assumption changes GPU code: no index reads the extent.
    texts = []
    for wraps in (True, False):

        @cuda.jit(wraparound=wraps)
        def kernel(x, i):
            x[i - 5] = 1

        texts.append(kernel.inspect_asm("void(float32[::1], int64)", target="sm_75"))
    assert ["kernel_param_2" in text for text in texts] == [True, False]


def test_options_mean_the_same_to_the_command(tmp_path) -> None:
    text = """
import warnings
from weft import cuda

warnings.simplefilter("ignore")

@cuda.jit("void(float32[::1])", {options})
def kernel(r):
    r[cuda.grid(1)] = 1 / r.size

if __name__ == "__main__":
    print(kernel.inspect_asm("void(float32[::1])", target="sm_75"), end="")
"""
    environment = os.environ | {"WEFT_LIBDEVICE": "none", "WEFT_DEVICE": "cpu"}

    def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, *command)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=check)

    file = tmp_path / "program.py"
    emit = ("-m", "weft", "emit", str(file), "--target", "sm_75")
    for options in (
        "debug=True",
        "debug=True, opt=True",
        "lineinfo=True, max_registers=64",
        "launch_bounds=(128, 2)",
        "wraparound=False",
    ):
        file.write_text(text.replace("{options}", options))
        assert run(*emit).stdout == run(str(file)).stdout, options
    # A flag is the same option.
    file.write_text(text.replace("{options}", "max_registers=64"))
    told = run(*emit).stdout
    file.write_text(text.replace("{options}", ""))
    assert run(*emit, "--max-registers", "64").stdout == told != run(*emit).stdout
    wrong = run(*emit, "--max-registers", "5", check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "max_registers must be an integer from 16 to 255, not 5" in wrong.stderr


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
    # Methods of groups, matrix tiles and barriers are reached through the function that returns one.
    rows -= {path for path in rows if path.startswith(("weft.cuda.cg.", "weft.cuda.mma.")) and path.count(".") > 3}
    rows -= {path for path in rows if path.startswith("weft.cuda.Barrier.")}
    names = set()
    for value in vars(cuda).values():
        path = getattr(value, "_weft_path", None)
        if path is None:
            continue
        members = [member for member in vars(value).values() if hasattr(member, "_weft_path")]
        if path in ("weft.cuda.threadIdx", "weft.cuda.blockIdx", "weft.cuda.blockDim", "weft.cuda.gridDim"):
            names |= {f"{path}.{part}" for part in "xyz"}
        elif members:
            names |= {member._weft_path for member in members}
        else:
            names.add(path)
    of_kernels = (
        cuda.fp8,
        cuda.fp16,
        cuda.bf16,
        cuda.cg,
        cuda.cluster,
        cuda.coop.block,
        cuda.coop.warp,
        cuda.libdevice,
        cuda.mma,
        cuda.random,
    )
    for group in of_kernels:
        members = [getattr(group, name) for name in group.__all__]
        names |= {member._weft_path for member in members if hasattr(member, "_weft_path")}
        with pytest.raises(AttributeError, match="no attribute 'hwhat'"):
            _ = group.hwhat
    assert pickle.loads(pickle.dumps(cuda.fp16.hadd)) is cuda.fp16.hadd
    assert pickle.loads(pickle.dumps(cuda.mma.tile)) is cuda.mma.tile
    assert names == rows


def test_compiled_kernels_show_their_code() -> None:
    sig = "void(float32[:], float32)"
    kernel = cuda.jit(sig, lineinfo=True)(fill_function)
    [compiled] = kernel.overloads.values()
    assert compiled.signature == weft.void(weft.float32[:], weft.float32)
    assert (compiled.lineinfo, compiled.debug) == (True, False)
    major, minor = cuda.get_current_device().compute_capability
    assert f".target sm_{major}{minor}" in compiled.inspect_asm()
    assert ".loc" in compiled.inspect_asm()
    assert ".target sm_80\n" in compiled.inspect_asm((8, 0))
    assert "define" in compiled.inspect_llvm()
    assert compiled.inspect_asm() == kernel.inspect_asm(sig)


def test_sass_is_shown_by_nvidias_tools(tmp_path, monkeypatch) -> None:
    kernel = cuda.jit("void(float32[:], float32)")(fill_function)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="ptxas and nvdisasm not found"):
        kernel.inspect_sass()
    with pytest.raises(RuntimeError, match="Cannot inspect SASS of a device function"):
        cuda.jit(device=True)(fill_function).inspect_sass((weft.float32[:], weft.float32))
    for tool, script in (
        ("ptxas", 'read line < "$2"; echo "$1" > "$4"'),
        ("nvdisasm", 'read line < "$2"; echo "$1 of $line"'),
    ):
        (tmp_path / tool).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / tool).chmod(0o755)
    major, minor = cuda.get_current_device().compute_capability
    [(types, text)] = kernel.inspect_sass().items()
    assert types == (weft.float32[:], weft.float32)
    assert text == f"-gi of -arch=sm_{major}{minor}\n"
    assert kernel.inspect_sass_cfg(types) == f"-cfg of -arch=sm_{major}{minor}\n"
    (tmp_path / "nvdisasm").write_text("#!/bin/sh\necho no cubin >&2; exit 1\n")
    with pytest.raises(RuntimeError, match="nvdisasm failed: no cubin"):
        kernel.inspect_sass(types)


def test_a_copy_of_a_kernel_is_itself():
    """As a copy of a function is."""

    @cuda.jit
    def kernel(x):
        x[0] = 1

    assert copy.copy(kernel) is kernel
    assert copy.deepcopy({"step": [kernel]})["step"][0] is kernel


@pytest.mark.parametrize("configured", [False, True])
def test_attributes_that_a_kernel_does_not_have(configured):
    @cuda.jit
    def kernel(x):
        x[0] = 1

    owner = kernel[1, 1] if configured else kernel
    with pytest.raises(AttributeError, match=r"has no attribute 'launch': write `kernel\[griddim, blockdim"):
        owner.launch()
    assert not hasattr(owner, "__array__")
    assert not hasattr(owner, "nothing_like_it")
