"""The counter-based generator compared with cuRAND's device functions, a million numbers each. Needs a GPU and nvcc."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from weft import cuda
from weft.cuda import random

pytestmark = pytest.mark.cuda

DRAWS = 1_000_000
SEED = 0x123456789ABCDEF0

# The name in cuRAND, the function, the dtype, the number of values, and the largest difference. cuRAND uses the fast
# approximate sine for float32.
FUNCTIONS = {
    "philox_uint32": ("curand", "unsigned", "u4", 1, 0),
    "philox_uint32x4": ("curand4", "uint4", "u4", 4, 0),
    "philox_uniform_float32": ("curand_uniform", "float", "f4", 1, 0),
    "philox_uniform_float32x4": ("curand_uniform4", "float4", "f4", 4, 0),
    "philox_uniform_float64": ("curand_uniform_double", "double", "f8", 1, 0),
    "philox_uniform_float64x2": ("curand_uniform2_double", "double2", "f8", 2, 0),
    "philox_normal_float32": ("curand_normal", "float", "f4", 1, 2e-5),
    "philox_normal_float32x2": ("curand_normal2", "float2", "f4", 2, 2e-5),
    "philox_normal_float32x4": ("curand_normal4", "float4", "f4", 4, 2e-5),
    "philox_normal_float64": ("curand_normal_double", "double", "f8", 1, 1e-14),
    "philox_normal_float64x2": ("curand_normal2_double", "double2", "f8", 2, 1e-14),
}

SOURCE = """
#include <curand_kernel.h>
#include <cuda_runtime.h>

// A sequence a thread, and offsets that are no multiples of 4 too, nor below 2^32.
template <typename T, T (*Draw)(curandStatePhilox4_32_10_t *)>
__global__ void draw(unsigned long long seed, int n, T *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, i * 0x9e3779b97f4a7c15ull, i % 11 + (i % 3 == 0 ? 1ull << 34 : 0), &state);
    out[i] = Draw(&state);
}
"""
ENTRY = """
__device__ TYPE draw_NAME(curandStatePhilox4_32_10_t *state) { return NAME(state); }
extern "C" int run_NAME(unsigned long long seed, int n, void *out) {
    draw<TYPE, draw_NAME><<<(n + 127) / 128, 128>>>(seed, n, static_cast<TYPE *>(out));
    return cudaDeviceSynchronize();
}
"""


@pytest.fixture(scope="module")
def curand(tmp_path_factory):
    nvcc = shutil.which("nvcc") or next(iter(Path("/usr/local").glob("cuda*/bin/nvcc")), None)
    if nvcc is None:
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("curand")
    source, made = folder / "draws.cu", folder / "draws.so"
    entries = (ENTRY.replace("NAME", name).replace("TYPE", ty) for name, ty, *_ in FUNCTIONS.values())
    source.write_text(SOURCE + "".join(entries))
    command = [nvcc, "-O2", "-arch=native", "-shared", "-Xcompiler", "-fPIC", source, "-o", made]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "curand_kernel.h: No such file" in done.stderr:
        pytest.skip("nvcc is here, cuRAND's headers are not")
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


def ours(name, count):
    """A kernel that draws the same numbers as cuRAND's kernel."""
    function = getattr(random, name)

    @cuda.jit
    def kernel(seed, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            offset = np.uint64(i % 11)
            if i % 3 == 0:
                offset += np.uint64(1 << 34)
            drawn = function(seed, np.uint64(i) * np.uint64(0x9E3779B97F4A7C15), offset)
            if count == 1:
                out[i, 0] = drawn
            else:
                for k in range(count):
                    out[i, k] = drawn[k]

    return kernel


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_million_draws_are_those_of_curand(name, curand):
    theirs, _, dtype, count, apart = FUNCTIONS[name]
    got, expected = (cuda.to_device(np.full((DRAWS, count), 7, dtype)) for _ in range(2))
    ours(name, count)[(DRAWS + 127) // 128, 128](np.uint64(SEED), got)
    cuda.synchronize()
    address = ctypes.c_void_p(expected.__cuda_array_interface__["data"][0])
    assert curand[f"run_{theirs}"](ctypes.c_ulonglong(SEED), DRAWS, address) == 0
    got, expected = got.copy_to_host(), expected.copy_to_host()
    if apart == 0:
        np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), expected.view(f"u{got.itemsize}"))
    else:
        np.testing.assert_allclose(got, expected, rtol=apart, atol=apart)
        # The numbers are normally distributed, not all near one.
        assert abs(float(expected.astype(float).std()) - 1) < 0.01
