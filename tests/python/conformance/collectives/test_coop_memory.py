"""`cuda.coop.block.load` and `store`: all algorithms, for all block sizes."""

import numpy as np
import pytest
from harness import launch, module
from weft import CompileError, cuda
from weft.cuda import coop

SIZES = range(1, 1025)
SOME = (1, 2, 31, 32, 33, 63, 96, 255, 256, 257, 511, 992, 1000, 1023, 1024)
ALGORITHMS = ["direct", "striped", "vectorize", "transpose", "warp_transpose"]
FILLER = -7


def kernels(algorithm, count, dtype="int32", most=1024):
    """A kernel that loads items, outputs them, and stores them again, with and without the number of valid items."""
    return module(f"""
        import numpy as np
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit(launch_bounds={most})
        def kernel(x, valid, loaded, stored):
            t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
            items = cuda.local.array({count}, np.{dtype})
            coop.block.load(x, items, algorithm="{algorithm}")
            for k in range({count}):
                loaded[0, t, k] = items[k]
            coop.block.store(stored[0], items, algorithm="{algorithm}")
            for k in range({count}):
                items[k] = {FILLER}
            coop.block.load(x, items, valid, algorithm="{algorithm}")
            for k in range({count}):
                loaded[1, t, k] = items[k]
            coop.block.store(stored[1], items, valid, "{algorithm}")
            coop.block.load(x, items, valid=valid, default=5, algorithm="{algorithm}")
            for k in range({count}):
                loaded[2, t, k] = items[k]
            coop.block.store(stored[2], items, algorithm="{algorithm}")
    """).kernel


def check(kernel, algorithm, count, dtype, block, valid):
    threads = int(np.prod(block))
    total = threads * count
    x = (np.arange(total) % 100 + 1).astype(dtype)
    empty = np.full((3, total), 3, dtype)
    loaded, stored = launch(kernel, 1, block, x, valid, np.zeros((3, threads, count), dtype), empty)[2:]
    counts = np.arange(total) < valid
    flat = [x, np.where(counts, x, np.array(FILLER).astype(dtype)), np.where(counts, x, dtype(5))]
    if algorithm == "striped":
        expected = [of.reshape(count, threads).T for of in flat]
    else:
        expected = [of.reshape(threads, count) for of in flat]
    where = f"{algorithm}, {np.dtype(dtype)}, {count} items, block {block}, {valid} valid"
    np.testing.assert_array_equal(loaded, expected, err_msg=where)
    written = [x, np.where(counts, x, dtype(3)), flat[2]]
    np.testing.assert_array_equal(stored, written, err_msg=where)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_blocks_of_every_size(algorithm):
    kernel = kernels(algorithm, 4)
    draw = np.random.default_rng(1)
    for size in SIZES:
        check(kernel, algorithm, 4, np.int32, size, int(draw.integers(-2, 4 * size + 3)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_any_number_of_items(algorithm, count):
    kernel = kernels(algorithm, count)
    for size in SOME:
        for valid in (0, 1, size * count // 2, size * count - 1, size * count, 10**6):
            check(kernel, algorithm, count, np.int32, size, valid)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "complex64", "bool_"])
def test_items_of_every_type(algorithm, dtype):
    kernel = kernels(algorithm, 4, dtype)
    for size in (1, 33, 256, 1000):
        check(kernel, algorithm, 4, getattr(np, dtype), size, 3 * size)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("block", [(33, 3), (2, 5, 9), (1, 100)])
def test_blocks_of_several_dimensions(algorithm, block):
    check(kernels(algorithm, 3, most=128), algorithm, 3, np.float32, block, 100)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_any_array(algorithm):
    """Views that are misaligned for vector loads, aligned views, and a strided array."""
    kernel = module(f"""
        import numpy as np
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit
        def kernel(x, first, out):
            items = cuda.local.array(4, np.int64)
            coop.block.load(x[first:], items, algorithm="{algorithm}")
            coop.block.store(out[first:], items, algorithm="{algorithm}")
    """).kernel
    x = np.arange(300, dtype=np.int32)
    for first in range(9):
        for given in (x, np.repeat(x, 3)[::3], x[::-1]):
            got = launch(kernel, 1, 37, given, first, np.zeros(300, np.int16))[2]
            expected = np.zeros(300, np.int16)
            expected[first : first + 148] = given[first : first + 148]
            np.testing.assert_array_equal(got, expected)


def test_items_go_through_shared_memory_in_turns():
    kernel = module("""
        import numpy as np
        from weft import cuda
        from weft.cuda import coop

        @cuda.jit(launch_bounds=96)
        def kernel(x, out):
            own = cuda.shared.array(96 * 3, np.float32)
            items = cuda.local.array(3, np.float32)
            for turn in range(4):
                first = turn * 3 * cuda.blockDim.x
                coop.block.load(x[first:], items, algorithm="transpose")
                total = coop.block.sum(items)
                coop.block.load(x[first:], items, algorithm="warp_transpose")
                for k in range(3):
                    items[k] += total
                coop.block.store(own, items, algorithm="warp_transpose")
                cuda.syncthreads()
                coop.block.load(own, items, algorithm="striped")
                coop.block.store(out[first:], items, algorithm="striped")
                cuda.syncthreads()
    """).kernel
    for size in (1, 32, 50, 96):
        x = np.arange(12 * size, dtype=np.float32)
        got = launch(kernel, 1, size, x, np.zeros_like(x))[1]
        rows = x.reshape(4, -1)
        np.testing.assert_array_equal(got, (rows + rows.sum(axis=1, keepdims=True)).ravel())


@cuda.jit
def single(x, out, n):
    coop.block.store(out, x[cuda.threadIdx.x] * 2)
    coop.block.store(out[100:], x[cuda.threadIdx.x], n, "transpose")


def test_one_item():
    x = np.arange(50.0)
    got = launch(single, 1, 50, x, np.zeros(200), 20)[1]
    assert got.tolist() == [*(2 * x).tolist(), *[0] * 50, *x[:20].tolist(), *[0] * 80]


def rejected(body: str) -> str:
    kernel = module(f"""
        import numpy as np
        from weft import cuda
        from weft.cuda import coop

        def kernel(x, name, out):
            items = cuda.local.array(4, np.int32)
            {body}
    """).kernel
    with pytest.raises(CompileError) as raised:
        cuda.jit("void(int32[:], int32, int32[:, :])")(kernel)
    return str(raised.value)


def test_what_is_refused():
    names = '"direct", "striped", "vectorize", "transpose" or "warp_transpose"'
    assert f"`algorithm` must be {names} and a compile-time constant" in rejected(
        'coop.block.load(x, items, algorithm="fast")'
    )
    assert f"`algorithm` must be {names} and a compile-time constant" in rejected(
        "coop.block.store(x, items, algorithm=name)"
    )
    assert "`cuda.coop.block.load` does not take" in rejected("coop.block.load(out, items)")
    assert "`cuda.coop.block.load` does not take" in rejected("coop.block.load(x, name)")
    assert "the number of items of a thread must be a compile-time constant" in rejected("coop.block.load(x, x)")
    assert "takes 2 arguments, not 1" in rejected("coop.block.load(x)")
