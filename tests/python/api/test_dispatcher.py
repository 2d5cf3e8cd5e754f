"""Dispatchers: specialisations, signatures, inspection, options, pickling and warnings."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda


@cuda.jit
def scale(x, a):
    """Multiplies in place."""
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


def test_the_function_is_kept():
    assert scale.py_func.__name__ == "scale"
    assert scale.__name__ == "scale"
    assert scale.__doc__ == "Multiplies in place."


def fresh(source="    x[0] = 1\n", decorator="@cuda.jit", head=""):
    return module(f"import numpy as np\nfrom weft import cuda\n{head}\n{decorator}\ndef kernel(x):\n{source}").kernel


def test_one_specialisation_for_each_tuple_of_types():
    kernel = fresh()
    assert len(kernel.overloads) == 0
    arrays = (np.zeros(4), np.zeros(9), np.zeros(4, np.float32), np.zeros((2, 2))[0], np.zeros(8)[::2])
    for array, count in zip(arrays, (1, 1, 2, 2, 3), strict=True):
        kernel[1, 1](array)
        assert len(kernel.overloads) == count
        assert len(kernel.signatures) == count


def test_inspection():
    kernel = fresh("    i = cuda.grid(1)\n    if i < x.size:\n        x[i] = i\n")
    kernel[1, 4](np.zeros(4, np.float32))
    (signature,) = kernel.signatures
    assembly = kernel.inspect_asm(signature)
    assert ".entry" in assembly
    assert ".target sm_" in assembly
    assert kernel.inspect_asm() == {signature: assembly}
    text = kernel.inspect_llvm(signature)
    assert "define" in text
    assert kernel.inspect_llvm() == {signature: text}


SIGNATURES = ["void(float32[:])", "(float32[:],)", "void(f4[::1])", (weft.float32[:],), weft.void(weft.float32[::1])]


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_one_signature_is_compiled_at_once(signature):
    @cuda.jit(signature)
    def kernel(x):
        x[0] = 3.5

    assert len(kernel.overloads) == 1
    x = np.zeros(2, np.float32)
    kernel[1, 1](x)
    assert x[0] == 3.5


def test_a_list_of_signatures():
    @cuda.jit(["void(float32[:])", "void(int64[:])"])
    def kernel(x):
        x[0] = 3

    assert len(kernel.overloads) == 2
    for dtype in (np.float32, np.int64):
        x = np.zeros(1, dtype)
        kernel[1, 1](x)
        assert x[0] == 3
    with pytest.raises(TypeError, match="No matching definition"):
        kernel[1, 1](np.zeros(1, np.complex64))


def test_scalars_are_converted_to_the_signature():
    @cuda.jit("void(float64[:], int32, float32)")
    def kernel(x, n, a):
        x[0] = n
        x[1] = a

    x = np.zeros(2)
    kernel[1, 1](x, np.int64(5), 0.1)
    assert x.tolist() == [5, np.float32(0.1)]


def test_a_kernel_with_a_result_in_its_signature():
    with pytest.raises(TypeError, match="void return type"):
        cuda.jit("float32(float32[:])")(scale.py_func)


def test_options():
    kernel = fresh(decorator="@cuda.jit(fastmath=True, lineinfo=True, max_registers=64, launch_bounds=128)")
    x = np.zeros(1)
    kernel[1, 1](x)
    assert x[0] == 1
    with pytest.raises(TypeError, match="no_such_option"):
        fresh(decorator="@cuda.jit(no_such_option=1)")[1, 1](x)


def test_jit_called_on_a_function_and_on_a_dispatcher():
    x = np.ones(3)
    cuda.jit(scale.py_func)[1, 3](x, 2.0)
    cuda.jit(scale)[1, 3](x, 2.0)
    assert x.tolist() == [4] * 3


def test_configured_kernels_are_reusable():
    x = np.ones(3)
    launch = scale[1, 3]
    launch(x, 2.0)
    launch(x, 3.0)
    assert x.tolist() == [6] * 3
    assert scale.configure(1, 3)(x, 0.5) is None
    assert x.tolist() == [3] * 3


def test_forall():
    x = np.ones(1000)
    scale.forall(x.size)(x, 2.0)
    assert (x == 2).all()
    scale.forall(0)(x, 2.0)
    assert (x == 2).all()
    with pytest.raises(ValueError, match="negative"):
        scale.forall(-1)


def test_a_kernel_pickles():
    again = pickle.loads(pickle.dumps(scale))
    x = np.ones(2)
    again[1, 2](x, 5.0)
    assert x.tolist() == [5] * 2


OTHER_PROCESS = """
import pickle, sys
import numpy as np
configured = pickle.load(open(sys.argv[1], "rb"))
x = np.ones(4)
configured(x, 3.0)
print(x.tolist())
"""


def test_a_configured_kernel_runs_in_another_process(tmp_path):
    source = "from weft import cuda\n\n@cuda.jit\ndef kernel(x, a):\n    i = cuda.grid(1)\n    x[i] *= a\n"
    (tmp_path / "kernels_to_pickle.py").write_text(source)
    dump = "import pickle, sys, kernels_to_pickle as k\npickle.dump(k.kernel[1, 4], open(sys.argv[1], 'wb'))"
    file = tmp_path / "kernel.pickle"
    command = [sys.executable, "-W", "ignore", "-c"]
    subprocess.run([*command, dump, str(file)], cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run(
        [*command, OTHER_PROCESS, str(file)], cwd=tmp_path, check=True, timeout=120, capture_output=True
    )
    assert done.stdout.decode().strip() == "[3.0, 3.0, 3.0, 3.0]"


@pytest.mark.cuda
def test_host_arrays_warn():
    with pytest.warns(weft.errors.NumbaPerformanceWarning, match="Host array used in CUDA kernel"):
        scale[1, 4](np.ones(4), 2.0)


def test_device_arrays_do_not_warn():
    x = cuda.to_device(np.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Grid size")
        scale[1, 4](x, 2.0)


def test_threads_may_launch_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    kernel = fresh("    i = cuda.grid(1)\n    if i < x.size:\n        x[i] = x[i] * 2 + 1\n")

    def work(number):
        x = np.full(500, float(number))
        for _ in range(5):
            kernel[4, 128](x)
        return x

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(8)))
    for number, result in enumerate(results):
        expected = float(number)
        for _ in range(5):
            expected = expected * 2 + 1
        assert (result == expected).all()
