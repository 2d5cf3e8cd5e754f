// CUB's block collectives, for coop.py: a library that nvcc makes (`nvcc -O3 -arch=native -shared -Xcompiler -fPIC`), and
// whose one function runs a kernel and says how long it took. The kernels do what those of coop.py do.

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda_runtime.h>

template <typename T, int Threads, int Items>
__device__ void load(const T *x, T (&items)[Items]) {
#pragma unroll
    for (int k = 0; k < Items; ++k) items[k] = x[(blockIdx.x * Threads + threadIdx.x) * Items + k];
}

template <typename T, int Threads, int Items>
__global__ void __launch_bounds__(Threads) sums(const T *x, T *out, int turns) {
    using Block = cub::BlockReduce<T, Threads>;
    __shared__ typename Block::TempStorage storage;
    T items[Items], total = 0;
    load<T, Threads, Items>(x, items);
    for (int turn = 0; turn < turns; ++turn) {
        T sum = Block(storage).Sum(items);
        __syncthreads();
        total += sum;
        // A turn needs the last one's result, and each item one of its own: equal items need no adding up.
        if (threadIdx.x == 0) {
#pragma unroll
            for (int k = 0; k < Items; ++k) items[k] = sum > T(k) ? T(1) : T(2);
        }
    }
    // Only the first thread of a block has the sums.
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

template <typename T, int Threads, int Items, cub::BlockScanAlgorithm Algorithm>
__global__ void __launch_bounds__(Threads) scans(const T *x, T *out, int turns) {
    using Block = cub::BlockScan<T, Threads, Algorithm>;
    __shared__ typename Block::TempStorage storage;
    T items[Items], total = 0;
    load<T, Threads, Items>(x, items);
    for (int turn = 0; turn < turns; ++turn) {
        Block(storage).ExclusiveSum(items, items);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < Items; ++k) items[k] = min(items[k], T(1)) + T(1);
    }
#pragma unroll
    for (int k = 0; k < Items; ++k) total += items[k];
    out[blockIdx.x * Threads + threadIdx.x] = total;
}

template <typename T, int Threads, int Items>
void launch(int what, const void *x, void *out, int blocks, int turns) {
    auto from = static_cast<const T *>(x);
    auto to = static_cast<T *>(out);
    if (what == 0) sums<T, Threads, Items><<<blocks, Threads>>>(from, to, turns);
    if (what == 1) scans<T, Threads, Items, cub::BLOCK_SCAN_RAKING><<<blocks, Threads>>>(from, to, turns);
    if (what == 2) scans<T, Threads, Items, cub::BLOCK_SCAN_WARP_SCANS><<<blocks, Threads>>>(from, to, turns);
}

template <typename T, int Threads>
bool with_items(int what, int items, const void *x, void *out, int blocks, int turns) {
    switch (items) {
    case 1: launch<T, Threads, 1>(what, x, out, blocks, turns); return true;
    case 4: launch<T, Threads, 4>(what, x, out, blocks, turns); return true;
    case 16: launch<T, Threads, 16>(what, x, out, blocks, turns); return true;
    default: return false;
    }
}

template <typename T>
bool with_threads(int what, int threads, int items, const void *x, void *out, int blocks, int turns) {
    switch (threads) {
    case 128: return with_items<T, 128>(what, items, x, out, blocks, turns);
    case 256: return with_items<T, 256>(what, items, x, out, blocks, turns);
    case 1024: return with_items<T, 1024>(what, items, x, out, blocks, turns);
    default: return false;
    }
}

// Milliseconds of a launch; negative where there is no such kernel or it failed. `what`: 0 a sum, 1 a scan by raking (what
// CUB does if not told), 2 a scan by warps. `kind`: 0 float32, 1 int32.
extern "C" float run(int what, int kind, int threads, int items, const void *x, void *out, int blocks, int turns) {
    cudaEvent_t begin, end;
    if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) return -1;
    cudaEventRecord(begin);
    bool known = kind == 0 ? with_threads<float>(what, threads, items, x, out, blocks, turns)
                           : with_threads<int>(what, threads, items, x, out, blocks, turns);
    cudaEventRecord(end);
    float elapsed = -1;
    cudaError_t fault = cudaEventSynchronize(end);
    if (fault == cudaSuccess) fault = cudaGetLastError();
    if (fault == cudaSuccess) fault = cudaEventElapsedTime(&elapsed, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return known && fault == cudaSuccess ? elapsed : -1;
}
