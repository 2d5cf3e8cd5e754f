# weft: sig = "void(float32[:, ::1], TensorMap(float32, (4, 32), 128), int32, float64)"
"""Operations of clusters with wrong operands."""

from weft import cuda, float32


@cuda.jit
def clusters(a, boxes, n, x):
    s = cuda.shared.array(32, float32)
    box = cuda.shared.array((4, 32), float32, swizzle=128)
    plain = cuda.shared.array((4, 32), float32)
    bar, bars = cuda.barrier(1), cuda.barrier(1, 2)
    cuda.cluster.sync(1)  # error: [E0206] "takes 0 arguments"
    cuda.cluster.rank(0)  # error: [E0206] "takes 0 arguments"
    cuda.cluster.sink()  # error: [E0207] "sink"
    cuda.cluster.shared(s)  # error: [E0206] "takes 2 arguments"
    cuda.cluster.shared(a, 0)  # error: [E0205] "takes an array in the block's shared memory"
    cuda.cluster.shared(s, 16)  # error: [E0205] "from 0 to 15, not 16"
    cuda.cluster.shared(s, x)  # error: [E0205] "no overload"
    cuda.cluster.shared(cuda.cluster.shared(s, 0), 1)  # error: [E0205] "takes an array in the block's shared memory"
    cuda.cluster.shared(bar, 0).wait(0)  # error: [E0205] "only wait for barriers of its own block"
    cuda.cluster.shared(bars, 0).arrive()  # error: [E0205] "a method of one barrier"
    cuda.copy_async(s, a[0], cuda.cluster.shared(bar, 0))  # error: [E0205] "that of the thread's own block"
    cuda.copy_async(s, a[0], bar, multicast=0)  # error: [E0205] "a bit for each block"
    cuda.copy_async(s, a[0], bar, multicast=x)  # error: [E0205] "a bit for each block"
    cuda.copy_async(cuda.cluster.shared(s, 1), a[0], bar)  # error: [E0205] "in shared memory"
    cuda.copy_async(s, 0, a[0], 0, multicast=1)  # error: [E0206] "no parameter `multicast`"
    cuda.copy_async(boxes[0, 0], plain)  # error: [E0205] "swizzle is not that of the tensor map"
    cuda.copy_async(boxes, box)  # error: [E0205] "a box of the tensor map"
    cuda.copy_async(a, box)  # error: [E0205] "no overload"
    cuda.copy_async(boxes[0, n], box)
