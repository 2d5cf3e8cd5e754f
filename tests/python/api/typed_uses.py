"""Right and wrong uses of weft, for type checkers: a line with `# wrong` is an error, every other line none."""

import math
from typing import assert_type

import numpy as np
import weft
from numpy.typing import NDArray
from weft import cuda, types


@cuda.jit
def scale(factor: float, x, n: int = 0) -> None:
    i = cuda.grid(1)
    if i < x.size:
        x[i] = factor * x[i] + n


@cuda.jit("void(float32[:], int32)", fastmath=True)
def declared(x, n: int) -> None:
    x[0] = n


@cuda.jit(types.void(types.float32[:]))
def typed(x) -> None:
    x[0] = 1


@cuda.jit(device=True)
def twice(a: float) -> float:
    return a + a


@cuda.jit
def names(x) -> None:
    i, j = cuda.grid(2)
    t = cuda.threadIdx.x + cuda.blockIdx.y * cuda.blockDim.z + cuda.gridDim.x
    tile = cuda.shared.array((16, 17), dtype=np.float32)
    own = cuda.local.array(4, types.int32)
    tile[t, 0] = twice(2.0)
    own[0] = cuda.popc(t) + cuda.laneid + cuda.warpsize + i + j
    cuda.syncthreads()
    cuda.atomic.add(x, 0, cuda.shfl_down_sync(0xFFFFFFFF, 1.5, 1))
    cuda.atomic.cas(x, (0, 1), 1, 2)
    sine, cosine = cuda.libdevice.sincosf(np.float32(0.5))
    x[1] = math.sqrt(sine) + cosine + cuda.fma(1.0, 2, np.float64(3))
    x[2] = cuda.coop.block.sum(x[0], broadcast=False) + cuda.coop.warp.max(x[1], threads=16)
    group = cuda.cg.tiled_partition(cuda.cg.this_thread_block(), 8)
    x[3] = group.thread_rank() + group.shfl(x[0], 0) + cuda.cg.this_grid().num_blocks()
    x[4] = cuda.random.philox_uniform_float32(1, 2, 3)
    matrices = cuda.mma.tile(16, 8, 16, a=np.float16, b=cuda.float16, c=np.float32)
    matrices.store(x, 0, 0, matrices.mma(matrices.a(x, 0, 0), matrices.b(x, 0, 0), matrices.zeros()))
    matrices.load(x)  # wrong
    cuda.gird(1)  # wrong
    cuda.grid(4)  # wrong
    cuda.threadIdx.w  # wrong
    cuda.syncthreads(1)  # wrong
    cuda.libdevice.sinnf(1.0)  # wrong
    cuda.libdevice.sinf("a")  # wrong
    cuda.atomic.ad(x, 0, 1)  # wrong
    cuda.coop.block.sun(x[0])  # wrong
    cuda.cg.this_grid().snyc()  # wrong
    cuda.shared.array(16)  # wrong
    twice("a")  # wrong


array = np.zeros(8, np.float32)
stream = cuda.stream()
scale[1, 8](2.0, array)
scale[1, 8](2, cuda.to_device(array), n=3)
scale[(1, 1), (8, 1, 1), stream, 0](2.0, array)
scale[np.int64(1), 8](2.0, array)
scale.forall(8)(2.0, array)
scale[1, 8].prepare(2.0, array)()
declared[1, 1](array, 3)
typed[1, 1](array)
name: str = scale.__name__

scale[1](2.0, array)  # wrong
scale[1.5, 8](2.0, array)  # wrong
scale[1, "8"](2.0, array)  # wrong
scale[1, 8]("a", array)  # wrong
scale[1, 8](2.0)  # wrong
scale[1, 8](2.0, array, 1, 2)  # wrong
scale[1, 8](2.0, array, m=1)  # wrong
scale.forall(8)(2.0)  # wrong
declared[1, 1](array, "a")  # wrong
cuda.jit(fastmth=True)  # wrong
cuda.jit(nopython=True)  # wrong
cuda.jit(typing="python")  # wrong
cuda.jit(5)  # wrong
cuda.to_devise(array)  # wrong
weft.njit  # wrong


@cuda.vectorize(["float32(float32, float32)"])
def add(a, b):
    return a + b


@weft.vectorize
def double(a):
    return 2 * a


def halves(x: cuda.DeviceNDArray[np.float32]) -> cuda.DeviceNDArray[np.float16]:
    return x.astype(np.float16)


singles = np.zeros((4, 8), np.float32)
d = cuda.to_device(singles)
assert_type(d, cuda.DeviceNDArray[np.float32])
assert_type(d.copy_to_host(), NDArray[np.float32])
assert_type(d.dtype, np.dtype[np.float32])
assert_type(d.reshape(-1).T.ravel().squeeze(), cuda.DeviceNDArray[np.float32])
assert_type(d.astype(np.dtype(np.int8)), cuda.DeviceNDArray[np.int8])
assert_type(d.view(np.uint32).max(), cuda.DeviceNDArray[np.uint32])
assert_type(d.argmin(axis=0), cuda.DeviceNDArray[np.int64])
assert_type(cuda.device_array(4), cuda.DeviceNDArray[np.float64])
assert_type(cuda.device_array((4, 2), np.complex64), cuda.DeviceNDArray[np.complex64])
assert_type(cuda.device_array_like(singles), cuda.DeviceNDArray[np.float32])
assert_type(cuda.device_array_like(d), cuda.DeviceNDArray[np.float32])
assert_type(cuda.to_device(d), cuda.DeviceNDArray[np.float32])
assert_type(cuda.pinned_array(4, np.int32), NDArray[np.int32])
assert_type(cuda.pinned_array_like(singles), NDArray[np.float32])
anything: cuda.DeviceNDArray = cuda.to_device([1, 2])
anything = d
text_array: cuda.DeviceNDArray[np.generic] = d
halves(d)
halves(cuda.to_device([1.0, 2.0]))
wide = cuda.to_device(singles.astype(np.float64))
halves(wide)  # wrong
halves(cuda.device_array(4))  # wrong
halves(singles)  # wrong
doubles: cuda.DeviceNDArray[np.float64] = d  # wrong
on_host: NDArray[np.float64] = d.copy_to_host()  # wrong
(d + d).copy_to_hots()  # wrong
d.reshape(2, order="X")  # wrong

module = cuda.current_context().create_module_ptx(".version 8.0")
assert_type(module, cuda.Module)
assert_type(module.get_function("f"), cuda.Function)
module.get_function("f").launch([d, np.float32(2)], (1, 1), 32, cuda.stream())
module.get_function(5)  # wrong
module.get_functoin("f")  # wrong

total = add(array, array)
most: int = add.nin
add.nim  # wrong
double.nout
cuda.vectorize(["float32(float32)"], target="gpu")  # wrong
cuda.to_device(array).copy_to_hots()  # wrong
