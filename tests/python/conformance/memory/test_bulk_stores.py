"""Copies from shared to global memory, in groups. About 5 seconds."""

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda
from weft.errors import CompileError


@cuda.jit
def reversed_rows(x, out):
    """Each block reverses rows of 128 elements; one row is written while the next one is computed."""
    rows = cuda.shared.array((2, 128), np.float32)
    t, n = cuda.threadIdx.x, 0
    for row in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
        if t == 0:
            cuda.copy_wait(1, read=True)
        cuda.syncthreads()
        rows[n % 2, 127 - t] = x[row, t]
        cuda.syncthreads()
        if t == 0:
            cuda.copy_async(out[row], rows[n % 2])
            cuda.copy_commit()
        n += 1
    if t == 0:
        cuda.copy_wait(0, read=True)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_rows_are_written_late(n):
    x = np.random.default_rng(n).random((n, 128), np.float32)
    np.testing.assert_array_equal(launch(reversed_rows, 2, 128, x, np.zeros_like(x))[1], x[:, ::-1])


@cuda.jit
def written(out, order):
    cell = cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    cell[t] = t
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out[0], cell)
        cuda.copy_commit()
        order[0] = out[0, 5]
        cuda.copy_wait(read=True)
        order[1] = out[0, 5]
    cuda.syncthreads()
    cell[t] = -1
    cuda.syncthreads()
    if t == 0:
        cuda.copy_wait()
        order[2] = out[0, 5]
        cuda.copy_async(out[1], cell)
        cuda.copy_commit()
        cell[7] = 70
        cuda.copy_wait()


@pytest.mark.cpu
def test_a_copy_is_made_where_its_thread_waits():
    out, order = launch(written, 1, 32, np.full((2, 32), -9, np.int32), np.zeros(3, np.int32))
    np.testing.assert_array_equal(order, [-9, -9, 5])
    np.testing.assert_array_equal(out[0], np.arange(32))
    # The source is read as late as the program allows.
    np.testing.assert_array_equal(out[1], [70 if t == 7 else -1 for t in range(32)])


@cuda.jit
def never(out):
    cell = cuda.shared.array(32, np.int32)
    cell[cuda.threadIdx.x] = 1
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.copy_async(out, cell)
        cuda.copy_commit()


@pytest.mark.cpu
def test_a_copy_whose_source_no_thread_waits_for_is_never_made():
    np.testing.assert_array_equal(launch(never, 1, 32, np.zeros(32, np.int32))[0], 0)


@cuda.jit
def both_kinds(x, out):
    """A group has copies to and from shared memory."""
    cell, other = cuda.shared.array(32, np.int32), cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    cell[t] = 3 * t
    cuda.syncthreads()
    cuda.copy_async(other, t, x, t)
    if t == 0:
        cuda.copy_async(out[0], cell)
    cuda.copy_commit()
    cuda.copy_wait(0)
    cuda.syncthreads()
    out[1, t] = other[31 - t] + out[0, t]


def test_a_group_of_both_kinds():
    x = np.random.default_rng(1).integers(0, 100, 32).astype(np.int32)
    out = launch(both_kinds, 1, 32, x, np.zeros((2, 32), np.int32))[1]
    np.testing.assert_array_equal(out, [3 * np.arange(32), x[::-1] + 3 * np.arange(32)])


BOXES = """
import numpy as np
from weft import cuda

@cuda.jit
def kernel(boxes, first, given):
    source = cuda.shared.array({shape}, np.{dtype}{swizzle})
    if cuda.threadIdx.x == 0:
        for index in np.ndindex({shape}):
            source[index] = given[index]
        cuda.copy_async(boxes[first], source)
        cuda.copy_commit()
        cuda.copy_wait()
"""


@pytest.mark.parametrize(
    ("extents", "box", "first", "dtype", "swizzle"),
    [
        ((300,), (160,), (208,), "uint8", None),
        ((9, 24), (8, 16), (3, 16), "int16", None),
        ((20, 64), (16, 32), (7, 32), "float32", 128),
        ((20, 64), (16, 32), (7, 40), "float16", 64),
        ((40, 16), (16, 4), (3, 14), "float64", 32),
        ((4, 5, 12), (2, 3, 8), (3, 4, 8), "int32", None),
        ((3, 4, 5, 8), (2, 2, 3, 4), (0, 1, 4, 6), "uint64", None),
    ],
)
def test_boxes_of_each_type(extents, box, first, dtype, swizzle):
    given = np.random.default_rng(7).integers(1, 100, box).astype(dtype)
    device = cuda.to_device(np.zeros(extents, dtype))
    text = "" if swizzle is None else f", swizzle={swizzle}"
    kernel = module(BOXES.format(shape=box, dtype=dtype, swizzle=text)).kernel
    kernel[1, 32](cuda.tensor_map(device, box, swizzle), first, given)
    expected = np.zeros(extents, dtype)
    for index in np.ndindex(box):
        place = tuple(a + b for a, b in zip(first, index, strict=True))
        if all(0 <= at < extent for at, extent in zip(place, extents, strict=True)):
            expected[place] = given[index]
    np.testing.assert_array_equal(device.copy_to_host(), expected)


@pytest.mark.cpu
def test_a_box_that_begins_before_the_array_cannot_be_written():
    kernel = module(BOXES.format(shape=(4, 32), dtype="float32", swizzle="")).kernel
    boxes = cuda.tensor_map(cuda.to_device(np.zeros((8, 64), np.float32)), (4, 32))
    with pytest.raises(ValueError, match="must not be negative"):
        kernel[1, 1](boxes, (-1, 0), np.zeros((4, 32), np.float32))


@cuda.jit
def transposed(source, target):
    """Each block transposes a box."""
    box, other = cuda.shared.array((32, 32), np.float32), cuda.shared.array((32, 32), np.float32)
    bar = cuda.barrier(1)
    i, j, t = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32, cuda.threadIdx.x
    if t == 0:
        bar.expect(box.nbytes)
        cuda.copy_async(box, source[i, j], bar)
    bar.wait(0)
    for k in range(32):
        other[k, t] = box[t, k]
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(target[j, i], other)
        cuda.copy_commit()
        cuda.copy_wait(read=True)


def test_a_transpose_by_boxes():
    x = np.random.default_rng(8).random((70, 100), np.float32)
    out = cuda.to_device(np.zeros((100, 72), np.float32))
    transposed[(4, 3), 32](cuda.tensor_map(cuda.to_device(x), (32, 32)), cuda.tensor_map(out[:, :72], (32, 32)))
    np.testing.assert_array_equal(out.copy_to_host()[:, :70], x.T)


@cuda.jit
def of_any_size(out, n, first):
    cell = cuda.shared.array(64, np.int32)
    for i in range(64):
        cell[i] = i
    cuda.copy_async(out[first : first + 16], cell[:n])
    cuda.copy_commit()
    cuda.copy_wait()


@pytest.mark.cpu
def test_sizes_and_addresses_are_checked():
    out = np.zeros(64, np.int32)
    np.testing.assert_array_equal(launch(of_any_size, 1, 1, out, 16, 8)[0][8:24], np.arange(16))
    with pytest.raises(ValueError, match="multiples of 16 bytes"):
        launch(of_any_size, 1, 1, out, 16, 7)
    with pytest.raises(ValueError, match="cannot reshape array of size 20 into a shape of 16 elements"):
        launch(of_any_size, 1, 1, out, 20, 8)


def test_ptx_and_sms():
    types = (weft.float32[:, ::1], weft.float32[:, ::1])
    ptx = cuda.compile_ptx(reversed_rows.py_func, types, cc=(9, 0))[0]
    assert "cp.async.bulk.wait_group.read 1;" in ptx
    assert "cp.async.wait_group" not in ptx
    # The threads write what the copy reads through the async proxy.
    assert ptx.index("fence.proxy.async.shared::cta") < ptx.index("cp.async.bulk.global.shared::cta.bulk_group")
    ptx = cuda.compile_ptx(both_kinds.py_func, (weft.int32[::1], weft.int32[:, ::1]), cc=(9, 0))[0]
    assert "cp.async.bulk.commit_group" in ptx
    assert "cp.async.commit_group" in ptx
    with pytest.raises(CompileError, match=r"`cp\.async\.bulk.* needs `sm_90` or newer"):
        cuda.compile_ptx(reversed_rows.py_func, types, cc=(8, 0))
