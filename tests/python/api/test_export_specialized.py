"""Specialized code of packages: which launches run it, by the runtime in C, and that it computes the same."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from weft import cuda

GCC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(GCC is None, reason="gcc is not installed")

SMALL, NONNEG, DISJOINT, ALIGNED, WARPS = 1, 2, 4, 8, 16
NAMES = ["small", "nonneg", "disjoint", "aligned", "warps"]

# The runtime and the package in one file, so that the test reaches what they do not export.
SHIM = """
#include "weft_launcher.c"
#include "affine.c"

int held(const uint64_t *cells, const int64_t *sizes) {
    int found = 0;
    for (int bit = 1; bit <= WEFT_WARPS; bit *= 2)
        if (holds(&affine_kernel, bit, cells, sizes)) found |= bit;
    return found;
}

int launched(const uint64_t *cells, const int64_t *sizes) {
    const weft_where cpu = {false, NULL};
    if (weft_launch(&affine_kernel, cpu, cells, sizes, 0) != WEFT_OK) return -1;
    return is_specialized(&affine_kernel, cpu, cells, sizes);
}
"""


def affine(n, m, x, table, out, total):
    i = cuda.grid(1)
    if i < out.size:
        value = x[i] * n + table[i % table.shape[0], 1] + x[0]  # x[0] is 0
        out[i] = value + m
        cuda.atomic.add(total, 0, 1)


SIGNATURE = "void(int64, int32, float32[:], float32[:, ::1], float32[::1], int32[::1])"


@pytest.fixture(scope="module")
def export():
    return cuda.jit(affine).export("affine", signatures=SIGNATURE, targets=("sm_75", "host"))


@pytest.fixture(scope="module")
def library(export, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    export.write(folder)
    (folder / "shim.c").write_text(SHIM)
    objects = [str(path) for path in folder.glob("*.o")]
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    command = [GCC, *flags, "-o", str(folder / "shim.so"), str(folder / "shim.c"), *objects, "-ldl"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "shim.so"))


def test_the_container_has_specialized_code_beside_that_for_any_launch(export):
    (kernel,) = export.description["kernels"]
    assert [image["target"] for image in kernel["images"]] == ["sm_75", "x86-64-v3"]
    assert all("assumptions" not in image for image in kernel["images"])
    gpu, cpu = kernel["specialized"]
    assert (gpu["symbol"], gpu["target"]) == ("affine_affine_entry_specialized", "sm_75")
    # Alignment gains nothing on a CPU, and blocks of whole warps nothing on a GPU.
    assert set(gpu["assumptions"]) <= {"small", "nonneg", "disjoint", "aligned"}
    assert {"small", "disjoint"} <= set(gpu["assumptions"])
    assert "aligned" not in cpu["assumptions"]


X = np.arange(64, dtype=np.float32)
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
GRID = (1, 1, 1, 64, 1, 1, 0)


class Launch:
    """The cells of a launch: `x`, `table` and `out` are addresses, extents and strides in bytes."""

    def __init__(self, **changes):
        self.memory = np.zeros(4096, np.float32)
        self.total = np.zeros(4, np.int32)
        base = self.memory.ctypes.data + -self.memory.ctypes.data % 64
        values = {
            "n": 2,
            "m": 3,
            "x": (base, 64, 4),
            "table": (base + 1024, 4, 3, 12, 4),
            "out": (base + 2048, 64, 4),
            "total": (self.total.ctypes.data + -self.total.ctypes.data % 16, 1, 4),
            "sizes": GRID,
        }
        for name, change in changes.items():
            values[name] = change(values) if callable(change) else change
        self.base = base
        self.sizes = (ctypes.c_int64 * 7)(*values.pop("sizes"))
        flat = []
        for value in values.values():
            flat.extend(value if isinstance(value, tuple) else (value,))
        self.cells = (ctypes.c_uint64 * len(flat))(*[value % 2**64 for value in flat])

    def held(self, library):
        return library.held(self.cells, self.sizes)


ALL = SMALL | NONNEG | DISJOINT | ALIGNED | WARPS
MOST_EXTENT = 2**30 - 2**16
CASES = {
    "all hold": ({}, 0),
    "an empty array": ({"x": lambda v: (v["x"][0], 0, 4)}, SMALL),
    "an extent that is too long": ({"x": lambda v: (1 << 40, MOST_EXTENT + 1, 1)}, SMALL),
    "the longest extent": ({"x": lambda v: (1 << 40, MOST_EXTENT, 1)}, 0),
    "strides that reach too far": ({"x": lambda v: (1 << 40, 1 << 20, 1 << 12)}, SMALL),
    "a stride of more than 32 bits": ({"x": lambda v: (1 << 40, 1, 1 << 31)}, SMALL),
    "a negative stride": ({"x": lambda v: (v["x"][0] + 252, 64, -4)}, ALIGNED),
    "too many elements": ({"table": lambda v: (1 << 40, 1 << 16, 1 << 15, 1 << 17, 4)}, SMALL),
    "a long integer": ({"n": 1 << 31}, SMALL),
    "the longest integer": ({"n": (1 << 31) - 1}, 0),
    "a negative integer": ({"n": -1}, NONNEG),
    "a negative int32": ({"m": 2**32 - 7}, NONNEG),
    "an integer below int32": ({"n": -(2**31) - 1}, SMALL | NONNEG),
    "many blocks": ({"sizes": (2**23 - 2**8 + 1, 1, 1, 32, 1, 1, 0)}, SMALL),
    "many threads along x": ({"sizes": (2**22, 1, 1, 1024, 1, 1, 0)}, SMALL),
    "many threads along y": ({"sizes": (1, 65535, 1, 32, 1, 1, 0)}, 0),
    "parts of a warp": ({"sizes": (1, 1, 1, 48, 1, 1, 0)}, WARPS),
    "a misaligned array": ({"x": lambda v: (v["x"][0] + 4, 63, 4)}, ALIGNED),
    "an input in the output": ({"x": lambda v: (v["out"][0], 64, 4)}, DISJOINT),
    "an input that ends in the output": ({"x": lambda v: (v["out"][0] - 252, 64, 4)}, DISJOINT | ALIGNED),
    "an input that ends before the output": ({"x": lambda v: (v["out"][0] - 256, 64, 4)}, 0),
    "an input backwards into the output": ({"x": lambda v: (v["out"][0] + 256, 64, -8)}, DISJOINT),
    "interleaved arrays": ({"x": lambda v: (v["out"][0] - 4, 64, 8)}, DISJOINT | ALIGNED),
    "two inputs that are one": ({"table": lambda v: (v["x"][0], 4, 3, 12, 4)}, 0),
    "an accumulated array in an input": ({"total": lambda v: (v["x"][0], 1, 4)}, DISJOINT),
    "an accumulated array in an output": ({"total": lambda v: (v["out"][0], 1, 4)}, DISJOINT),
    "an extent that no memory has": ({"x": lambda v: (v["x"][0], 1 << 62, 8)}, SMALL | DISJOINT),
}


@pytest.mark.parametrize("case", CASES)
def test_a_launch_runs_specialized_code_only_if_all_assumptions_hold(library, case):
    changes, violated = CASES[case]
    launch = Launch(**changes)
    found = {name for bit, name in enumerate(NAMES) if not launch.held(library) >> bit & 1}
    assert found == {name for bit, name in enumerate(NAMES) if violated >> bit & 1}


@pytest.mark.parametrize(
    ("changes", "is_specialized"),
    [
        ({}, True),
        ({"n": 1 << 33}, False),
        ({"x": lambda v: (v["out"][0], 64, 4)}, False),
        ({"sizes": (2, 1, 1, 48, 1, 1, 0)}, None),
        ({"n": -3, "m": 2**32 - 7}, None),
    ],
)
def test_both_codes_compute_the_same(library, changes, is_specialized):
    launch = Launch(**changes)
    at = (launch.base - launch.memory.ctypes.data) // 4
    x, table, out = (launch.memory[at + first :][:size] for first, size in ((0, 64), (256, 12), (512, 64)))
    x[:], table[:], out[:] = X, TABLE.ravel(), X
    specialized = library.launched(launch.cells, launch.sizes)
    assert specialized >= 0
    if is_specialized is not None:
        assert bool(specialized) == is_specialized
    assert launch.total.sum() == 64
    if launch.cells[2] != launch.base:
        # A thread may read the first element of an input that is the output before or after it is written.
        return
    n, m = (ctypes.c_int64(launch.cells[0]).value, ctypes.c_int32(launch.cells[1]).value)
    np.testing.assert_allclose(out, X.astype(float) * n + TABLE[np.arange(64) % 4, 1] + m, rtol=1e-6)
