"""Asynchronous copies to shared memory, of elements of each size; other copies are made at once. About 4 seconds."""

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda
from weft.errors import CompileError

SOURCE = """
import numpy as np
import weft
from weft import cuda

@cuda.jit
def kernel(x, out):
    rows = cuda.shared.array((2, 64), {dtype})
    t = cuda.threadIdx.x
    {view}
    cuda.copy_async(to, (0, t), source, (0, t))
    cuda.copy_commit()
    for i in range(x.shape[0]):
        if i + 1 < x.shape[0]:
            cuda.copy_async(to, ((i + 1) % 2, t), source, (i + 1, t))
        cuda.copy_commit()
        cuda.copy_wait(1)
        cuda.syncthreads()
        for k in range(t, 64, cuda.blockDim.x):
            out[i, k] = rows[i % 2, 63 - k]
        cuda.syncthreads()
    cuda.copy_wait()
"""


NUMBERS = [(name, None) for name in ("int8", "int16", "float32", "float64", "complex128")]
VECTORS = [("float32", "float32x4"), ("uint16", "uint16x4"), ("int32", "int32x2"), ("uint8", "uint8x4")]


@pytest.mark.parametrize(("dtype", "vector"), NUMBERS + VECTORS)
def test_rows_go_to_shared_memory(dtype, vector):
    view = "to, source = rows, x"
    if vector is not None:
        view = f"to, source = rows.view(cuda.{vector}), x.view(cuda.{vector})"
    kernel = module(SOURCE.format(dtype=f"np.{dtype}", view=view)).kernel
    x = np.random.default_rng(1).integers(0, 100, (5, 64)).astype(dtype)
    threads = 64 if vector is None else 64 // int(vector[-1])
    np.testing.assert_array_equal(launch(kernel, 1, threads, x, np.zeros_like(x))[1], x[:, ::-1])


@cuda.jit
def between_other_memories(x, y, out):
    own = cuda.local.array(4, np.float32)
    i = cuda.grid(1)
    cuda.copy_async(own, 1, x, i)
    cuda.copy_async(y, i, own, 1)
    cuda.copy_async(out, (i, -1), y, i)
    cuda.copy_wait(pending=0)


def test_other_memories_are_copied_at_once():
    x = np.arange(32, dtype=np.float32)
    got = launch(between_other_memories, 1, 32, x, np.zeros_like(x), np.zeros((32, 2), np.float32))
    np.testing.assert_array_equal(got[1], x)
    np.testing.assert_array_equal(got[2][:, 1], x)


@cuda.jit
def without_waits(x, out):
    rows = cuda.shared.array((2, 32), np.float32)
    i = cuda.threadIdx.x
    rows[0, i] = rows[1, i] = np.float32(-1)
    for k in range(2):
        cuda.copy_async(rows, (k, i), x, (k, i))
        cuda.copy_commit()
    out[0, i] = rows[0, i]
    cuda.copy_wait(1)
    out[1, i] = rows[0, i]
    out[2, i] = rows[1, i]
    cuda.copy_wait()
    out[3, i] = rows[1, i]


@pytest.mark.cpu
def test_a_copy_is_made_where_the_thread_waits_for_it():
    x = np.arange(64, dtype=np.float32).reshape(2, 32)
    got = launch(without_waits, 1, 32, x, np.zeros((4, 32), np.float32))[1]
    missing = np.full(32, -1, np.float32)
    np.testing.assert_array_equal(got, [missing, x[0], missing, x[1]])


@cuda.jit
def without_a_group(x, out):
    row = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    row[i] = np.float32(-1)
    cuda.copy_async(row, i, x, (cuda.blockIdx.x, i))
    cuda.copy_wait()
    out[cuda.blockIdx.x, i] = row[i]


@pytest.mark.cpu
def test_a_copy_of_no_group_is_never_made():
    x = np.arange(96, dtype=np.float32).reshape(3, 32)
    for _ in range(2):
        got = launch(without_a_group, 3, 32, x, np.zeros_like(x))[1]
        np.testing.assert_array_equal(got, np.full_like(x, -1))


def test_an_sm_without_asynchronous_copies_is_an_error():
    types = (weft.float32[:, ::1], weft.float32[:, ::1])
    with pytest.raises(CompileError, match=r"`cp\.async\.ca\.shared\.global` needs `sm_80` or newer"):
        cuda.compile_ptx(without_a_group.py_func, types, cc=(7, 5))
    assert "cp.async.ca.shared.global" in cuda.compile_ptx(without_a_group.py_func, types, cc=(8, 0))[0]
