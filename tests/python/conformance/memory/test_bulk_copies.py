"""Barriers in shared memory, and the copies that they count. About 5 seconds."""

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda
from weft.errors import CompileError

STAGES = 3


@cuda.jit
def handed_on(x, out):
    """The first warp hands elements to the second one, one after the other."""
    full, empty = cuda.barrier(32, 2), cuda.barrier(32, 2)
    cell = cuda.shared.array((2, 32), np.float32)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    for s in range(x.shape[0]):
        if warp == 0:
            empty[s % 2].wait(s // 2 & 1 ^ 1)
            cell[s % 2, lane] = x[s, lane]
            full[s % 2].arrive()
        else:
            full[s % 2].wait(s // 2 & 1)
            out[s, lane] = cell[s % 2, 31 - lane]
            empty[s % 2].arrive()


def test_warps_hand_on_elements():
    x = np.random.default_rng(1).random((7, 32), np.float32)
    np.testing.assert_array_equal(launch(handed_on, 1, 64, x, np.zeros_like(x))[1], x[:, ::-1])


@cuda.jit
def row_sums(x, out):
    """Sums rows of 256 elements; the rows of a block are copied one ahead."""
    rows = cuda.shared.array((2, 256), np.float32)
    full = cuda.barrier(1, 2)
    partial = cuda.shared.array(8, np.float32)
    t, first, step = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    if t == 0:
        full[0].expect(1024)
        cuda.copy_async(rows[0], x[first], full[0])
    n = 0
    for row in range(first, x.shape[0], step):
        if t == 0 and row + step < x.shape[0]:
            bar = full[(n + 1) % 2]
            bar.expect(1024)
            cuda.copy_async(rows[(n + 1) % 2], x[row + step], bar)
        full[n % 2].wait(n // 2)
        value = rows[n % 2, t]
        for k in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, k)
        if t % 32 == 0:
            partial[t // 32] = value
        cuda.syncthreads()
        if t == 0:
            total = np.float32(0)
            for k in range(8):
                total += partial[k]
            out[row] = total
        cuda.syncthreads()
        n += 1


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_rows_are_copied_ahead(n):
    x = np.random.default_rng(n).integers(0, 100, (n, 256)).astype(np.float32)
    np.testing.assert_array_equal(launch(row_sums, 2 if n > 1 else 1, 256, x, np.zeros(n, np.float32))[1], x.sum(1))


@cuda.jit
def reads_early(x, out):
    to = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    to[t] = -1
    bar = cuda.barrier(1)
    if t == 0:
        bar.expect(256)
        cuda.copy_async(to, x, bar)
    cuda.syncthreads()
    out[0, t] = to[t]
    cuda.syncthreads()
    bar.wait(0)
    out[1, t] = to[t]


@pytest.mark.cpu
def test_a_copy_is_made_where_a_thread_waits_for_it():
    x = np.arange(64, dtype=np.int32)
    out = launch(reads_early, 1, 64, x, np.zeros((2, 64), np.int32))[1]
    np.testing.assert_array_equal(out, [np.full(64, -1), x])


@cuda.jit
def waits_for_ever(x, wrong):
    to = cuda.shared.array(64, np.int32)
    bar = cuda.barrier(1)
    if cuda.threadIdx.x == 0:
        bar.expect(256 + wrong)
        cuda.copy_async(to, x, bar)
    bar.wait(0)  # no thread can end this
    x[0] = to[0]


@pytest.mark.cpu
def test_a_wait_without_an_end_is_an_error():
    x = np.arange(64, dtype=np.int32)
    launch(waits_for_ever, 3, 64, x, 0)
    with pytest.raises(RuntimeError, match="no thread can complete this phase"):
        launch(waits_for_ever, 3, 64, x, 16)


@cuda.jit
def of_any_size(x, n, first):
    to = cuda.shared.array(64, np.int32)
    bar = cuda.barrier(1)
    if cuda.threadIdx.x == 0:
        bar.expect(4 * n)
        cuda.copy_async(to[:n], x[first : first + 16], bar)
        bar.wait(0)
        x[0] = to[n - 1]


@pytest.mark.cpu
def test_sizes_and_addresses_are_checked():
    x = np.arange(64, dtype=np.int32)
    assert launch(of_any_size, 1, 1, x, 16, 8)[0][0] == 23
    with pytest.raises(ValueError, match="multiples of 16 bytes"):
        launch(of_any_size, 1, 1, x, 16, 7)
    with pytest.raises(ValueError, match="cannot reshape array of size 16 into a shape of 20 elements"):
        launch(of_any_size, 1, 1, x, 20, 8)


@cuda.jit
def handle(bar, source, to):
    bar.expect(to.nbytes)
    cuda.copy_async(to, source, bar)


@cuda.jit
def through_functions(x, out):
    bar = cuda.barrier(cuda.blockDim.x)
    to = cuda.shared.array((64, 4), np.float64)
    t = cuda.threadIdx.x
    handle(bar, x[t], to[t])
    bar.wait(0)
    for k in range(4):
        out[t, k] = to[63 - t, k]


def test_each_thread_copies_its_part():
    x = np.random.default_rng(3).random((64, 4))
    np.testing.assert_array_equal(launch(through_functions, 1, 64, x, np.zeros_like(x))[1], x[::-1])


@cuda.jit
def mean_of_neighbors(image, out):
    """Each block's tile and its halo come as one box; outside of the image are zeros."""
    tile = cuda.shared.array((10, 24), np.float32)
    bar = cuda.barrier(1)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.y * 8, cuda.blockIdx.x * 16
    if x == 0 and y == 0:
        bar.expect(tile.nbytes)
        cuda.copy_async(tile, image[i - 1, j - 4], bar)
    bar.wait(0)
    if i + y < out.shape[0] and j + x < out.shape[1]:
        total = np.float32(0)
        for di in range(3):
            for dj in range(3):
                total += tile[y + di, x + 3 + dj]
        out[i + y, j + x] = total


@pytest.mark.parametrize("shape", [(8, 16), (21, 36), (40, 64)])
def test_a_stencil_reads_zeros_outside(shape):
    image = np.random.default_rng(5).integers(0, 100, shape).astype(np.float32)
    boxes = cuda.tensor_map(cuda.to_device(image), (10, 24))
    out = np.zeros(shape, np.float32)
    mean_of_neighbors[(-(-shape[1] // 16), -(-shape[0] // 8)), (16, 8)](boxes, out)
    padded = np.pad(image, 1)
    expected = sum(padded[a : a + shape[0], b : b + shape[1]] for a in range(3) for b in range(3))
    np.testing.assert_array_equal(out, expected)


BOXES = """
import numpy as np
from weft import cuda

@cuda.jit
def kernel(boxes, first, out):
    to = cuda.shared.array({shape}, np.{dtype}{swizzle})
    bar = cuda.barrier(1)
    if cuda.threadIdx.x == 0:
        bar.expect({nbytes})
        cuda.copy_async(to, boxes[first], bar)
    bar.wait(0)
    if cuda.threadIdx.x == 0:
        for index in np.ndindex({shape}):
            out[index] = to[index]
"""


@pytest.mark.parametrize(
    ("extents", "box", "first", "dtype", "swizzle"),
    [
        ((300,), (160,), (208,), "uint8", None),
        ((9, 24), (8, 16), (-2, 16), "int16", None),
        ((20, 64), (16, 32), (7, 32), "float32", 128),
        ((20, 64), (16, 32), (7, 40), "float16", 64),
        ((40, 16), (16, 4), (3, -2), "float64", 32),
        ((4, 5, 12), (2, 3, 8), (3, -1, 8), "int32", None),
        ((3, 4, 5, 8), (2, 2, 3, 4), (0, 1, 4, 6), "uint64", None),
        ((3, 2, 4, 5, 16), (2, 1, 2, 3, 16), (-1, 1, 3, 0, 0), "int8", None),
        # Boxes of 16 to 112 bytes.
        ((48,), (16,), (16,), "uint8", None),
        ((6, 16), (2, 8), (1, 8), "int16", None),
        ((9, 8), (3, 8), (7, 0), "float32", None),
        ((9, 8), (7, 2), (-1, 4), "float64", None),
    ],
)
def test_boxes_of_each_type(extents, box, first, dtype, swizzle):
    x = np.random.default_rng(7).integers(1, 100, extents).astype(dtype)
    text = "" if swizzle is None else f", swizzle={swizzle}"
    nbytes = int(np.prod(box)) * x.itemsize
    kernel = module(BOXES.format(shape=box, dtype=dtype, swizzle=text, nbytes=nbytes)).kernel
    device = cuda.to_device(x)
    out = np.zeros(box, dtype)
    kernel[1, 32](cuda.tensor_map(device, box, swizzle), first, out)
    expected = np.zeros(box, dtype)
    for index in np.ndindex(box):
        place = tuple(a + b for a, b in zip(first, index, strict=True))
        if all(0 <= at < extent for at, extent in zip(place, extents, strict=True)):
            expected[index] = x[place]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.cpu
def test_a_part_of_a_small_box_begins_inside_of_128_bytes():
    @cuda.jit
    def kernel(boxes, out):
        to = cuda.shared.array((2, 4, 4), np.float32)
        bar = cuda.barrier(1)
        if cuda.threadIdx.x == 0:
            bar.expect(64)
            cuda.copy_async(to[1], boxes[0, 0], bar)
        bar.wait(0)
        out[0] = to[1, 0, 0]

    boxes = cuda.tensor_map(cuda.to_device(np.zeros((8, 16), np.float32)), (4, 4))
    with pytest.raises(ValueError, match="must be a multiple of 128 bytes"):
        kernel[1, 32](boxes, np.zeros(1, np.float32))


@pytest.mark.cpu
def test_a_box_that_begins_inside_of_a_part_of_16_bytes():
    kernel = module(BOXES.format(shape=(4, 8), dtype="float32", swizzle="", nbytes=128)).kernel
    boxes = cuda.tensor_map(cuda.to_device(np.zeros((8, 16), np.float32)), (4, 8))
    with pytest.raises(ValueError, match="last dimension must be a multiple of 16 bytes"):
        kernel[1, 32](boxes, (1, 2), np.zeros((4, 8), np.float32))


def test_a_map_of_a_view():
    x = np.arange(48 * 64, dtype=np.float32).reshape(48, 64)
    view = cuda.to_device(x)[4::3, 8:40]
    out = np.zeros((4, 8), np.float32)
    kernel = module(BOXES.format(shape=(4, 8), dtype="float32", swizzle="", nbytes=128)).kernel
    kernel[1, 32](cuda.tensor_map(view, (4, 8)), (2, 28), out)
    expected = np.zeros((4, 8), np.float32)
    expected[:, :4] = x[4::3, 8:40][2:6, 28:32]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("shape", "dtype", "box", "swizzle", "message"),
    [
        ((8, 16), "float32", (4,), None, "has 2 dimensions, and the box has 1"),
        ((8, 16), "float32", (4, 300), None, "an integer from 1 to 256"),
        ((8, 16), "float32", (4, 6), None, "a multiple of 16 bytes, not 24"),
        ((8, 15), "float32", (4, 8), None, "multiples of 16 bytes: pad its rows"),
        ((8, 16), "complex64", (4, 8), None, "of real numbers, not of complex64"),
        ((8, 16), "float32", (4, 8), 64, "has 32 bytes, but the swizzle 64"),
        ((8, 16), "float32", (4, 8), 48, "32, 64 or 128 bytes wide, not 48"),
    ],
)
def test_maps_that_there_are_not(shape, dtype, box, swizzle, message):
    with pytest.raises(ValueError, match=message):
        cuda.tensor_map(cuda.to_device(np.zeros(shape, dtype)), box, swizzle)


T = cuda.mma.tile(32, 32, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit
def product(a, b, c, n_steps):
    """One warp copies boxes of A and B, three stages ahead; four warps multiply them."""
    x = cuda.shared.array((STAGES, 64, 32), np.float16)
    y = cuda.shared.array((STAGES, 32, 64), np.float16)
    full, empty = cuda.barrier(1, STAGES), cuda.barrier(4, STAGES)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    i, j = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    if warp == 4:
        if lane == 0:
            for s in range(n_steps):
                empty[s % STAGES].wait(s // STAGES & 1 ^ 1)
                bar = full[s % STAGES]
                bar.expect(x[0].nbytes + y[0].nbytes)
                cuda.copy_async(x[s % STAGES], a[i, s * 32], bar)
                cuda.copy_async(y[s % STAGES], b[s * 32, j], bar)
    else:
        row, column = warp // 2 * 32, warp % 2 * 32
        acc = T.zeros()
        for s in range(n_steps):
            full[s % STAGES].wait(s // STAGES & 1)
            for k in range(0, 32, 16):
                acc = T.mma(T.a(x[s % STAGES], row, k), T.b(y[s % STAGES], k, column), acc)
            cuda.syncwarp()
            if lane == 0:
                empty[s % STAGES].arrive()
        T.store(c, i + row, j + column, acc)


@pytest.mark.parametrize("k", [32, 160, 256])
def test_a_producer_and_four_consumers(k):
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((128, k), (k, 192)))
    maps = cuda.tensor_map(cuda.to_device(a), (64, 32)), cuda.tensor_map(cuda.to_device(b), (32, 64))
    c = np.zeros((128, 192), np.float32)
    product[(3, 2), 160](*maps, c, k // 32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_sms_without_the_instructions_are_an_error():
    types = (weft.float32[:, ::1], weft.float32[:, ::1])
    assert "mbarrier.test_wait" in cuda.compile_ptx(handed_on.py_func, types, cc=(8, 0))[0]
    assert "mbarrier.try_wait" in cuda.compile_ptx(handed_on.py_func, types, cc=(9, 0))[0]
    with pytest.raises(CompileError, match=r"`mbarrier.* needs `sm_80` or newer"):
        cuda.compile_ptx(handed_on.py_func, types, cc=(7, 5))
    types = (weft.float32[:, ::1], weft.float32[::1])
    with pytest.raises(CompileError, match=r"`mbarrier\.arrive\.expect_tx.* needs `sm_90` or newer"):
        cuda.compile_ptx(row_sums.py_func, types, cc=(8, 0))


def test_maps_of_equal_boxes_have_one_place_in_memory():
    x = cuda.to_device(np.zeros((8, 64), np.float32))
    one, same, other = cuda.tensor_map(x, (4, 32)), cuda.tensor_map(x[:], (4, 32)), cuda.tensor_map(x[4:], (4, 32))
    assert one.words is same.words
    assert one.words is not other.words
    for first in range(100):  # more than weft remembers
        cuda.tensor_map(x[first % 4 :], (4, 8 + 4 * (first // 4)))
    cuda.get_current_device().reset()
    out = np.full((4, 32), -1, np.float32)
    kernel = module(BOXES.format(shape=(4, 32), dtype="float32", swizzle="", nbytes=512)).kernel
    kernel[1, 32](cuda.tensor_map(x, (4, 32)), (0, 0), out)
    np.testing.assert_array_equal(out, 0)
