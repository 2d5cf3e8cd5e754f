"""Unknown names: messages suggest a similar name or a replacement."""

import os
import subprocess
import sys

import numpy as np
import pytest
import weft
from weft import cuda


@pytest.mark.parametrize(
    ("owner", "name", "hint"),
    [
        (cuda, "gird", "did you mean `grid`"),
        (cuda, "to_devise", "did you mean `to_device`"),
        (cuda, "set_memory_manger", "did you mean `set_memory_manager`"),
        (cuda, "shfl_down", r"cuda\.shfl_down_sync\("),
        (cuda, "zeros", r"cuda\.device_array\("),
        (cuda.libdevice, "sinnf", "did you mean `sinf`"),
        (cuda.coop.block, "exclusive_sun", "did you mean `exclusive_sum`"),
        (cuda.atomic, "ad", "did you mean `add`"),
        (cuda.shared, "aray", "did you mean `array`"),
        (weft, "njit", r"write `cuda\.jit`"),
        (weft, "vectorise", "did you mean `vectorize`"),
        (weft.errors, "LaunchEror", "did you mean `LaunchError`"),
        (weft.config, "DEBUGG", "did you mean `DEBUG`"),
    ],
)
def test_an_attribute(owner, name, hint):
    with pytest.raises(AttributeError, match=f"{name}.*{hint}"):
        getattr(owner, name)
    assert not hasattr(owner, name)


def test_an_import():
    with pytest.raises(ImportError, match=r"cannot import name 'jit' from 'weft': write `cuda\.jit`"):
        from weft import jit  # noqa: F401
    with pytest.raises(ImportError, match="did you mean `to_device`"):
        from weft.cuda import to_devise  # noqa: F401
    with pytest.raises(ImportError, match="did you mean `sinf`"):
        from weft.cuda.libdevice import sinnf  # noqa: F401


def test_what_is_like_nothing_has_no_hint():
    with pytest.raises(AttributeError) as error:
        _ = cuda.elephant
    assert str(error.value) == "module 'weft.cuda' has no attribute 'elephant'"


def test_a_device_array():
    array = cuda.to_device(np.zeros(3))
    with pytest.raises(AttributeError, match=r"copy_to_hots.*did you mean `copy_to_host`"):
        array.copy_to_hots()
    with pytest.raises(AttributeError, match=r"numpy.*write `\.copy_to_host\(\)`"):
        array.numpy()


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"fastmth": True}, "did you mean 'fastmath'"),
        ({"nopython": True}, "leave it out: a kernel is always compiled"),
        ({"parallel": True}, "leave it out: the threads of a kernel's grid"),
        ({"target": "cuda"}, "leave it out: kernels run on the current device"),
    ],
)
def test_an_option(options, hint):
    with pytest.raises(TypeError, match=hint):
        cuda.jit(**options)


def test_a_variable_of_the_environment_that_is_nearly_a_setting():
    program = (
        "import numpy as np\nfrom weft import cuda\n@cuda.jit\ndef k(x):\n    x[0] = 1\nk[1, 1](np.zeros(1))\n"
        "k[1, 1](np.zeros(1, np.int32))\n"
    )
    variables = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    variables |= {"WEFT_DEVICE": "cpu", "WEFT_CACH": "off", "WEFT_MINE": "1"}
    command = [sys.executable, "-c", "import sys; exec(sys.stdin.read())"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, env=variables, check=True)
    assert done.stderr.count("WEFT_CACH is set, but weft has no such setting; did you mean WEFT_CACHE?") == 1
    assert "WEFT_MINE" not in done.stderr


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cuda.to_device(np.zeros(3)).copy_to_host([0]), TypeError, "must be a NumPy array, not list"),
        (lambda: cuda.to_device(np.zeros(4)).reshape("a"), TypeError, "dimensions of a shape must be integers"),
        (lambda: list(cuda.to_device(np.zeros(4)).split(0)), ValueError, "section"),
        (lambda: cuda.gpus[77], IndexError, "there is no device 77"),
        (lambda: cuda.external_stream(-1), ValueError, "not -1"),
        (lambda: cuda.stream().add_callback(5), TypeError, "callback must be a function"),
        (lambda: cuda.as_cuda_array(np.zeros(3)), TypeError, r"cuda\.to_device"),
        (lambda: cuda.pinned([1]).__enter__(), TypeError, "not list"),
        (lambda: weft.types.Array(weft.float32, -1, "C"), ValueError, "ndim"),
        (lambda: cuda.compile_ptx(lambda x: None, (weft.float32[:],), cc="9.0"), TypeError, "cc must be"),
    ],
)
def test_a_wrong_value_names_the_argument(call, error, text):
    with pytest.raises(error, match=text):
        call()


KERNELS = {
    "cuda.synchronize()": "`cuda.syncthreads()` to wait for the threads of the block",
    "cuda.shfl_down(1.0, 1)": "write `cuda.shfl_down_sync(",
    "cuda.shared(3, np.float32)": "it has `cuda.shared.array`",
    "cuda.device_array(3)": "make the array with `cuda.local.array(shape, dtype)`",
    "cuda.threadIdx.w": "it has `x`, `y` and `z`",
    "cuda.threadIdx + 1": "write `.x`, `.y` or `.z`",
    "np.unique(x)": "call it on the host, or write it as a loop",
    "x.astype(np.int32)": "convert elements by calling the type",
    "x.shpae": "did you mean `.shape`",
    "x.tranpose()": "did you mean `.transpose`",
    "x['a']": "its elements are not records",
    "x[0, 0]": "an element is `a[i]`",
    "len(f'{x[0]}')": "f-strings",
}


@pytest.mark.parametrize("expression", KERNELS)
def test_a_kernel_is_told_what_to_write(expression):
    text = f"def wrong(x):\n    y = {expression}\n"
    names = {"np": np, "cuda": cuda}
    exec(text, names)
    with pytest.raises(weft.CompileError) as error:
        cuda.jit("void(float64[:])", source=text)(names["wrong"])
    assert "help: " in str(error.value)
    assert KERNELS[expression] in " ".join(str(error.value).split())
