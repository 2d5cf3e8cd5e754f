//! Rows of matrix tiles of a warp or a warpgroup, of asynchronous copies, of the barriers that count them, and of clusters.

use super::super::{Custom, Intrinsic, Lowering, Ptx};

const fn tile(path: &'static str, custom: Custom, doc: &'static str) -> Intrinsic {
    Intrinsic { path, signatures: &[], lowering: Lowering::Custom(custom), ptx: Ptx::Computed, doc }
}

const fn method(path: &'static str, doc: &'static str) -> Intrinsic {
    tile(path, Custom::MatrixMethod, doc)
}

pub(super) const MATRIX: &[Intrinsic] = &[
    tile(
        "weft.cuda.copy_async",
        Custom::CopyAsync,
        "`copy_async(to, i, source, j)`: begins to copy the element `source[j]` of an array in global memory to `to[i]` in \
         shared memory. Both have one type, of 4, 8 or 16 bytes: a vector such as `uint32x4` is the fastest. The thread \
         must not access `to[i]` before `copy_wait`, and other threads not before a barrier after it. Elements of other \
         sizes, and copies between other memories, are copied before it returns. `copy_async(to, source, bar)`: begins \
         to copy a C-contiguous array in global memory, or a box `tensor_map[i, j]` of `cuda.tensor_map`, to a \
         C-contiguous array in shared memory with the same type and number of elements. One thread makes the call; the \
         barrier counts the bytes, for which a thread calls `bar.expect`. Addresses and sizes of arrays are multiples \
         of 16 bytes; the address that receives a box is a multiple of 128 bytes. With `multicast=mask`, each block of the \
         cluster whose rank is a bit of the integer `mask` receives the copy, at the same offset in its shared memory, and \
         the barrier at the same offset counts it. `copy_async(to, source)`: begins to copy a C-contiguous array in shared \
         memory to one in global memory, or to a box `tensor_map[i, j]`, whose elements outside of the array are not \
         written and whose first indices are not negative. It belongs to a group of `copy_commit`. Copies of arrays and boxes need compute capability 9.0 or newer.",
    ),
    tile(
        "weft.cuda.barrier",
        Custom::Barrier,
        "`barrier(count, n=None)`: a barrier in shared memory, each of whose phases completes after `count` arrivals and \
         all expected bytes of copies. `barrier(count, n)`: `n` barriers `bars[i]`; `n` is a compile-time constant up to \
         256. All threads of the block make the call, outside of loops: it initializes the barriers and synchronizes \
         the block. Compute capability 8.0 or newer.",
    ),
    tile(
        "weft.cuda.Barrier.arrive",
        Custom::BarrierMethod,
        "`arrive()`: arrives at the barrier. The thread's earlier accesses come before the later accesses of threads that \
         wait for the phase.",
    ),
    tile(
        "weft.cuda.Barrier.expect",
        Custom::BarrierMethod,
        "`expect(bytes)`: arrives at the barrier, whose phase also waits for `bytes` bytes of copies. Compute capability \
         9.0 or newer.",
    ),
    tile(
        "weft.cuda.Barrier.wait",
        Custom::BarrierMethod,
        "`wait(phase)`: waits until the phase has completed. Phases are numbered from 0, and only the number's lowest bit \
         counts: `wait(1)` returns at once for a barrier that has completed no phase. On the CPU, a wait that no thread \
         of the block can end raises a `RuntimeError`.",
    ),
    tile(
        "weft.cuda.copy_commit",
        Custom::CopyCommit,
        "`copy_commit()`: makes a group of the thread's asynchronous copies since its previous group.",
    ),
    tile(
        "weft.cuda.copy_wait",
        Custom::CopyWait,
        "`copy_wait(pending=0, read=False)`: waits until at most `pending` of the thread's latest groups of copies are not \
         complete. With `read=True`, a copy from shared to global memory counts as complete when it has read its source, \
         which may then be overwritten. Both are compile-time constants. A thread that begins copies to global memory waits \
         for their sources before it ends.",
    ),
    tile(
        "weft.cuda.cluster.rank",
        Custom::Cluster,
        "`rank()`: the rank of the thread's block in its cluster, an `int32`: blocks count along `x`, then `y`, then `z`. 0 \
         in a launch without clusters.",
    ),
    tile("weft.cuda.cluster.size", Custom::Cluster, "`size()`: the number of blocks of the cluster, an `int32`."),
    tile(
        "weft.cuda.cluster.sync",
        Custom::Cluster,
        "`sync()`: a barrier of all threads of the cluster. Earlier accesses of each thread come before later ones of all. On \
         the CPU, a `sync()` to which the other threads can never come raises a `RuntimeError`.",
    ),
    tile(
        "weft.cuda.cluster.shared",
        Custom::Cluster,
        "`shared(array, rank)`: the shared array of the block of a rank that has the address of this block's `array`: for \
         loads, stores and atomic operations. `array` is what `cuda.shared.array` returns, or a part of it. \
         `shared(bar, rank)`: the barrier, or several, of that block, for `arrive` and `expect`. That block must have \
         begun, and not end before the access: both follow from a `sync()` before and after. A rank that the cluster does \
         not have raises an `IndexError` on the CPU.",
    ),
    tile(
        "weft.cuda.set_registers",
        Custom::SetRegisters,
        "`set_registers(n)`: changes the registers of the warpgroup's threads to `n`, a constant multiple of 8 from 24 to \
         256. All its 128 threads make the call once, in a kernel with `launch_bounds`. To have more than at the launch, it \
         waits until others have released theirs. No effect on the CPU. PTX ISA, `setmaxnreg`.",
    ),
    tile(
        "weft.cuda.mma.tile",
        Custom::MatrixTile,
        "`tile(m, n, k, a, b, c, threads=32)`: a product of matrices that a warp computes on tensor cores, `m` by `k` of \
         type `a` times `k` by `n` of type `b`, added to `m` by `n` of type `c`. The shape is a multiple of that of an \
         instruction: 16, 8, 16 for `float16` and `bfloat16`, 16, 8, 8 for `\"tf32\"` (arrays of `float32`), each with \
         `float32`; 8, 8, 4 for `float64`; 16, 8, 32 for `int8` and `uint8` with `int32`, and for floats of 8 bits, \
         `\"e4m3\"` and `\"e5m2\"` (arrays of `float8_e4m3fn` and `float8_e5m2`, or of `uint8`, SM 8.9), with `float32`. It can be made outside of \
         kernels, too. With `threads=128` a warpgroup computes it: four consecutive warps, the first one's number a \
         multiple of four, on a GPU of compute capability 9.0. Then `m` is a multiple of 64, `n` at most 256, and \
         operands are in swizzled shared memory. There is no `float64`.",
    ),
    method(
        "weft.cuda.mma.Tile.a",
        "`a(array, i, j)`: loads the left matrix, whose first element is `array[i, j]`. All lanes of the warp pass the \
         same position, which does not count from the end. The array may be in any memory and have any strides. \
         `a(acc)`, for `float16` and `bfloat16`: the matrix in the accumulators of a tile of `m` rows and `k` columns, or \
         in a tuple of as many numbers, rounded to the type of the elements. Of a warpgroup, the array is a swizzled \
         shared one, which `mma` reads, of the shape `(m, k)` or `(panels, m, k)`, or for types of 16 bits the transpose \
         of `(k, m)`. Its rows have the width of the swizzle, and positions along them are multiples of 8.",
    ),
    method(
        "weft.cuda.mma.Tile.b",
        "`b(array, i, j)`: loads the right matrix, whose first element is `array[i, j]`, for `k` rows and `n` columns. \
         For an array that stores it by columns, pass `array.T`. Of a warpgroup, the array is as for `a`: the transpose \
         of `(n, k)`, or for types of 16 bits `(k, n)` or `(panels, k, n)`.",
    ),
    method("weft.cuda.mma.Tile.zeros", "`zeros()`: accumulators that are zero: a tuple of the lane's elements of C."),
    method(
        "weft.cuda.mma.Tile.mma",
        "`mma(a, b, acc, wait=True)`: the product of two matrices plus accumulators, as new accumulators. All lanes of the warp \
         must make the call, of a warpgroup all lanes of its four warps. Matrices in shared memory must be complete: a \
         barrier separates the threads that write them from the call, and the call from those that overwrite them. On \
         the CPU, the result has the bits of a GPU of the compute capability that the CPU reports. With \
         `wait=False`, a warpgroup begins the product and goes on: the result is in flight, and only `mma` of the same tile, \
         as `acc`, and `cuda.mma.wait` take it, once. If the left matrix is in registers, only `cuda.mma.wait` takes it. Until \
         the wait, matrices in shared memory must not be overwritten.",
    ),
    tile(
        "weft.cuda.mma.wait",
        Custom::ProductWait,
        "`wait(n, acc)`: waits until at most the `n` latest products of the warpgroup are in flight, and returns the \
         accumulators `acc` of a product with `wait=False` as a tuple of numbers. `n` is a constant from 0 to 7, and at \
         least `n` products have begun after that of `acc`; each call of `mma` is one. `wait(n)` waits only: `acc` remains \
         in flight, but the matrices in shared memory of complete products may be overwritten. Each product is waited for, \
         or continued, once on each path. One that is in flight where an `if` begins is neither waited for nor continued in it; one \
         that begins in an `if` or an iteration is waited for there, unless the next iteration does so, too.",
    ),
    method(
        "weft.cuda.mma.Tile.store",
        "`store(array, i, j, acc)`: stores accumulators, or a tuple of as many numbers, to the matrix whose first \
         element is `array[i, j]`.",
    ),
    method(
        "weft.cuda.mma.Tile.coord",
        "`coord(r)`: the row and the column of the lane's accumulator `acc[r]` in the tile.",
    ),
];
