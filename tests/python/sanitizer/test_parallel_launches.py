"""A sanitized launch that runs on several system threads has the same findings and results as on one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.cpu

PROGRAM = '''
import hashlib
import numpy as np
from weft import cuda
from weft.errors import LaunchError, SanitizerError

MANY, SOME = 1 << 16, 1 << 13

@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    y[i] = 3 * x[i]

@cuda.jit
def in_place(x, y):
    i = cuda.grid(1)
    for _ in range(3):
        x[i] = x[i] * y[i % 7] + 1

@cuda.jit
def columns(x, y):
    """Pages are met by all, and no byte of them by two."""
    i = cuda.grid(1)
    rows = x.size // 64
    x[i % rows * 64 + i // rows] += y[i % 7]

@cuda.jit
def counts(x, y):
    i = cuda.grid(1)
    cuda.atomic.add(x, i % 50, 1)
    cuda.atomic.max(x, 50 + i % 33, i % 1000)

@cuda.jit
def races(x, y):
    """Each element is of sixteen threads of different blocks."""
    i = cuda.grid(1)
    x[i % (x.size // 16)] += 1

@cuda.jit
def races_once(x, y):
    i = cuda.grid(1)
    x[i] += y[i % 5]
    if i == x.size - 3:
        x[17] += 1

@cuda.jit
def reads_of_others(x, y):
    i = cuda.grid(1)
    x[i] = x[(i + 256) % x.size] + 1

@cuda.jit
def counts_and_reads(x, y):
    i = cuda.grid(1)
    cuda.atomic.add(x, i % 50, 1)
    if i == 6000:
        y[0] = x[i % 50]

@cuda.jit
def same_value(x, y):
    i = cuda.grid(1)
    x[i % 100] = 7

@cuda.jit
def unwritten(x, y):
    """The last element of each block of x is read before anybody writes it."""
    i = cuda.grid(1)
    if cuda.threadIdx.x < 255:
        x[i] = i
    cuda.syncthreads()
    y[i % y.size] = y[i % y.size]
    x[i] = x[i] + 1

@cuda.jit
def behind(x, y):
    i = cuda.grid(1)
    x[i + 5] = i

@cuda.jit
def copies(x, y):
    i = cuda.grid(1)
    x[i] = y[i]

@cuda.jit
def escapes(x, y):
    s = cuda.shared.array(256, np.int32)
    t = cuda.threadIdx.x
    if t < 200:
        s[t] = t
    cuda.syncthreads()
    x[cuda.grid(1)] = s[t]

@cuda.jit
def neighbors(x, y):
    s = cuda.shared.array(256, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    x[cuda.grid(1)] = s[255 - t]

@cuda.jit("void(CPointer(float32), float32[::1])")
def wild(place, y):
    i = cuda.grid(1)
    y[i] = place[i] if i > 300 else 5

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]

def findings(do, *args):
    try:
        do(*args)
        return "nothing"
    except SanitizerError as error:
        return [(f.tool, f.kind, f.help, f.count, [(a.line, a.what, a.index, a.thread, a.block) for a in f.accesses])
                for f in error.findings]

def tell(kernel, x, y, digests=True):
    for _ in range(2):
        found = findings(kernel[x.size // 256, 256], x, y)
        if kernel is escapes and not isinstance(x, np.ndarray):
            print("escapes to the host", findings(x.copy_to_host))
        host = [] if not digests else [a if isinstance(a, np.ndarray) else a.copy_to_host() for a in (x, y)]
        print(kernel.py_func.__name__, x.dtype, type(x).__name__, found, *(digest(array) for array in host))

for n, dtypes, kernels in (
    (MANY, (np.float32, np.uint8), (scale, in_place, columns, copies)),
    (SOME, (np.float32, np.int64, np.uint8), (races, races_once, reads_of_others, same_value)),
):
    for dtype in dtypes:
        x, y = (np.arange(n) % 91).astype(dtype), (np.arange(n) % 13).astype(dtype)
        for kernel in kernels:
            tell(kernel, cuda.to_device(x), cuda.to_device(y))
            tell(kernel, x.copy(), y.copy())
for dtype in (np.int32, np.int64):
    for n, kernel in ((MANY, counts), (SOME, counts_and_reads)):
        tell(kernel, cuda.to_device(np.zeros(n, dtype)), cuda.to_device(np.zeros(8, dtype)))
for kernel in (unwritten, behind, copies):
    x, y = cuda.device_array(SOME, np.int32), cuda.to_device(np.zeros(1000, np.int32))
    x[:100] = 0
    tell(kernel, x, cuda.device_array(SOME, np.int32) if kernel is copies else y, digests=False)
for kernel in (escapes, neighbors):
    x, y = (np.arange(n) % 91).astype(np.int32), np.zeros(8, np.int32)
    # They store what was in shared memory before.
    tell(kernel, cuda.to_device(x), cuda.to_device(y), digests=False)
    tell(kernel, x.copy(), y, digests=False)
for place in (0x123456789000, 16):
    y = np.zeros(MANY, np.float32)
    try:
        wild[MANY // 256, 256](place, y)
    except LaunchError as error:
        print("wild", error, y[:300].sum())
'''


def told(tmp_path, threads: int) -> list[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    env = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_SANITIZE": "all", "WEFT_CPU_THREADS": str(threads)}
    argv = [sys.executable, "-W", "ignore", str(program)]
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_what_several_threads_find_and_write_is_what_one_does(tmp_path) -> None:
    alone = told(tmp_path, 1)
    for name in ("scale", "in_place", "columns", "counts"):
        assert all(" nothing " in line for line in alone if line.startswith(name + " "))
    for name in ("races", "races_once", "reads_of_others", "counts_and_reads", "same_value", "unwritten", "behind"):
        assert any("Array" in line and "check" in line for line in alone if line.startswith(name + " ")), name
    reads = [line for line in alone if line.startswith("escapes to the host")]
    assert len(reads) == 2
    assert all("initcheck" in line for line in reads)
    assert sum(line.startswith("escapes ") and "initcheck" in line for line in alone) == 2 + 2
    assert sum(line.startswith("neighbors ") and "cuda.syncthreads()" in line for line in alone) == 4
    assert all("cuda.atomic.add(x, i % (x.size // 16), …)" in line for line in alone if line.startswith("races "))
    assert sum("read memory that does not exist" in line for line in alone if line.startswith("wild")) == 2
    for threads in (2, 5):
        assert told(tmp_path, threads) == alone
