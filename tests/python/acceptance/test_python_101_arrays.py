"""An introduction to GPU programming in Python: arrays of other libraries, other processes, histograms, errors."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda


def size(device, full, small):
    return full if device == "cuda" else small


class Exported:
    """An array of another library, as weft sees it: an object with a `__cuda_array_interface__`."""

    def __init__(self, array):
        self.owner = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@cuda.jit
def double(a):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        a[i, j] *= 2


@pytest.mark.cuda
def test_another_librarys_array_is_not_copied():
    memory = cuda.to_device(np.arange(12.0).reshape(3, 4))
    exported = Exported(memory)
    double[1, (3, 4)](exported)
    view = cuda.to_device(exported)
    assert view.__cuda_array_interface__["data"][0] == memory.__cuda_array_interface__["data"][0]
    double[1, (3, 4)](view)
    np.testing.assert_array_equal(memory.copy_to_host(), np.arange(12.0).reshape(3, 4) * 4)


@pytest.mark.cuda
def test_a_cupy_array_and_back():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    a = cupy.arange(2_000.0).reshape(1, 2, 1000)[0]
    view = cuda.to_device(a)
    assert view.__cuda_array_interface__["data"][0] == a.data.ptr
    double[(1, 32), (2, 32)](view)
    cuda.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(a), np.arange(2_000.0).reshape(2, 1000) * 2)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(view)), np.arange(2_000.0).reshape(2, 1000) * 2)


@pytest.mark.cuda
def test_a_device_array_as_a_tensor():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    array = cuda.to_device(np.arange(6.0).reshape(2, 3))
    tensor = torch.as_tensor(array, device="cuda")
    assert tensor.data_ptr() == array.__cuda_array_interface__["data"][0]
    double[1, (2, 3)](tensor)
    cuda.synchronize()
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(6.0).reshape(2, 3) * 2)


@cuda.jit
def multiply(in_col, out_col, multiplier):
    i = cuda.grid(1)
    if i < in_col.size:
        out_col[i] = in_col[i] * multiplier


def test_a_column_for_all():
    column = cuda.to_device(np.arange(1001.0))
    out = cuda.device_array_like(column)
    multiply.forall(column.size)(column, out, 10.0)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(1001.0) * 10)


BUSY = """
from weft import cuda

@cuda.jit
def busy():
    i = 0
    while i < 1_000_000:
        i += 1

@cuda.jit
def mark(out):
    out[cuda.grid(1)] = cuda.blockDim.x
"""


def test_a_configured_kernel_runs_in_another_process(tmp_path):
    (tmp_path / "work.py").write_text(BUSY, encoding="utf-8")
    script = """
import pickle, sys
import numpy as np
busy, mark = pickle.load(open(sys.argv[1], "rb"))
out = np.zeros(64, np.int64)
mark(out)
print(busy(), out.sum())
"""
    dump = """
import pickle, sys
sys.path.insert(0, sys.argv[2])
import work
pickle.dump((work.busy[1024 * 4, 1024], work.mark[2, 32]), open(sys.argv[1], "wb"))
"""
    kernels = tmp_path / "kernels"
    for text in (dump, "import sys; sys.path.insert(0, sys.argv[2])\n" + script):
        done = subprocess.run(
            [sys.executable, "-c", text, str(kernels), str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None", str(64 * 32)]


def test_a_configured_kernel_of_this_module_is_pickled():
    configured = pickle.loads(pickle.dumps(multiply[2, 32]))
    out = np.zeros(50)
    configured(np.arange(50.0), out, 3)
    np.testing.assert_array_equal(out, np.arange(50.0) * 3)


ITEMS = 64
COPIES = """
from weft import cuda

items_per_thread = 64

@cuda.jit
def copy_blocked(src, dst):
 base = cuda.grid(1) * items_per_thread
 for i in range(items_per_thread):
  if base + i < src.size:
   dst[base + i] = src[base + i]

@cuda.jit
def copy_strided(src, dst):
 base = cuda.blockIdx.x * cuda.blockDim.x * items_per_thread + cuda.threadIdx.x
 for i in range(items_per_thread):
  at = base + i * cuda.blockDim.x
  if at < src.size:
   dst[at] = src[at]
"""


@cuda.jit
def fill(src, dst):
    for i in range(cuda.grid(1), src.size, cuda.gridsize(1)):
        src[i] = i * 2654435761 ^ i >> 7
        dst[i] = -1


@cuda.jit
def differ(src, dst, count):
    mine = 0
    for i in range(cuda.grid(1), src.size, cuda.gridsize(1)):
        if dst[i] != i * 2654435761 ^ i >> 7 or src[i] != dst[i]:
            mine += 1
    cuda.atomic.add(count, 0, mine)


@pytest.mark.parametrize("name", ["copy_blocked", "copy_strided"])
def test_many_items_a_thread(device, name):
    kernel = getattr(module(COPIES), name)
    # On a GPU, only device arrays: 2 GiB each.
    n = size(device, 1 << 28, (1 << 18) + 100)
    d_src, d_dst = cuda.device_array(n, np.int64), cuda.device_array(n, np.int64)
    fill[512, 256](d_src, d_dst)
    kernel[-(-n // (256 * ITEMS)), 256](d_src, d_dst)
    count = cuda.to_device(np.zeros(1, np.int64))
    differ[512, 256](d_src, d_dst, count)
    assert count.copy_to_host()[0] == 0
    assert d_dst[n - 1] == (n - 1) * 2654435761 ^ (n - 1) >> 7
    # A profiler shows the kernel by the name of its function.
    (text,) = kernel.inspect_llvm().values()
    assert f"{name}" in text
    if device == "cuda":
        (ptx,) = kernel.inspect_asm().values()
        assert any(name in line for line in ptx.splitlines() if ".entry" in line)


BINS = 256
PER_THREAD = 16


@cuda.jit
def histogram_global(values, histogram):
    first = cuda.grid(1) * PER_THREAD
    mine = cuda.local.array(PER_THREAD, values.dtype)
    count = min(PER_THREAD, values.size - first)
    for i in range(count):
        mine[i] = values[first + i]
    for i in range(count):
        cuda.atomic.add(histogram, mine[i], 1)


@cuda.jit
def histogram_shared(values, histogram):
    counts = cuda.shared.array(BINS, np.int32)
    for i in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        counts[i] = 0
    cuda.syncthreads()
    first = cuda.grid(1) * PER_THREAD
    for i in range(first, min(first + PER_THREAD, values.size)):
        cuda.atomic.add(counts, values[i], 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(histogram, i, counts[i])


@pytest.mark.parametrize("kernel", [histogram_global, histogram_shared], ids=["global", "shared"])
def test_histograms_of_bytes(device, kernel):
    n = size(device, 15_000_000, 200_001)
    text = np.random.default_rng(42).integers(0, 256, n, dtype=np.uint8)
    counts = cuda.to_device(np.zeros(BINS, np.int32))
    kernel[-(-n // (512 * PER_THREAD)), 512](cuda.to_device(text), counts)
    np.testing.assert_array_equal(counts.copy_to_host(), np.bincount(text, minlength=BINS))


def test_undefined_globals_are_named_with_their_line():
    program = module("""
from weft import cuda

@cuda.jit
def fill(out):
    i = cuda.grid(1)
    out[i] = an_array[i]

@cuda.jit
def shift(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i
        out[i] += x
""")
    for kernel, name, line in [(program.fill, "an_array", 7), (program.shift, "x", 14)]:
        with pytest.raises(weft.CompileError) as caught:
            kernel[1, 4](np.zeros(4))
        assert f"`{name}`" in str(caught.value)
        assert f"{program.__file__}:{line}:" in str(caught.value)
        (found,) = caught.value.diagnostics
        assert found["code"] == "E0201"
