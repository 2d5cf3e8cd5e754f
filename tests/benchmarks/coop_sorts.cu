// CUB's block-wide sorts and exchanges, for coop_sorts.py: a library that nvcc makes (`nvcc -O3 -arch=native -shared
// -Xcompiler -fPIC`), and whose one function runs a kernel and says how long it took. The kernels do what those of
// coop_sorts.py do.

#include <cub/block/block_exchange.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cuda_runtime.h>

// Numbers of 24 bits in no order, which float32 has exactly.
template <typename T>
__device__ T shuffled(T x) {
    return static_cast<T>((static_cast<unsigned>(x) * 1664525u + 1013904223u) >> 8);
}

struct Less {
    template <typename T>
    __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};

enum What { MergeKeys, MergePairs, RadixKeys, RadixPairs, ToBlocked, ToStriped };

// What is made of a block's items in a turn.
template <What Of, typename T, int Threads, int Items>
struct Turn;

template <typename T, int Threads, int Items>
struct Turn<MergeKeys, T, Threads, Items> {
    using Block = cub::BlockMergeSort<T, Threads, Items>;
    static __device__ void run(typename Block::TempStorage &storage, T (&keys)[Items], int (&)[Items]) {
        Block(storage).Sort(keys, Less());
    }
};

template <typename T, int Threads, int Items>
struct Turn<MergePairs, T, Threads, Items> {
    using Block = cub::BlockMergeSort<T, Threads, Items, int>;
    static __device__ void run(typename Block::TempStorage &storage, T (&keys)[Items], int (&values)[Items]) {
        Block(storage).Sort(keys, values, Less());
    }
};

template <typename T, int Threads, int Items>
struct Turn<RadixKeys, T, Threads, Items> {
    using Block = cub::BlockRadixSort<T, Threads, Items>;
    static __device__ void run(typename Block::TempStorage &storage, T (&keys)[Items], int (&)[Items]) {
        Block(storage).Sort(keys);
    }
};

template <typename T, int Threads, int Items>
struct Turn<RadixPairs, T, Threads, Items> {
    using Block = cub::BlockRadixSort<T, Threads, Items, int>;
    static __device__ void run(typename Block::TempStorage &storage, T (&keys)[Items], int (&values)[Items]) {
        Block(storage).Sort(keys, values);
    }
};

template <typename T, int Threads, int Items>
struct Turn<ToBlocked, T, Threads, Items> {
    using Block = cub::BlockExchange<T, Threads, Items>;
    static __device__ void run(typename Block::TempStorage &storage, T (&keys)[Items], int (&)[Items]) {
        Block(storage).StripedToBlocked(keys, keys);
    }
};

template <typename T, int Threads, int Items>
struct Turn<ToStriped, T, Threads, Items> {
    using Block = cub::BlockExchange<T, Threads, Items>;
    static __device__ void run(typename Block::TempStorage &storage, T (&keys)[Items], int (&)[Items]) {
        Block(storage).BlockedToStriped(keys, keys);
    }
};

template <What Of, typename T, int Threads, int Items>
__global__ void __launch_bounds__(Threads) turns_of(const T *x, T *out, int turns) {
    using One = Turn<Of, T, Threads, Items>;
    __shared__ typename One::Block::TempStorage storage;
    T keys[Items];
    int values[Items];
    const int first = (blockIdx.x * Threads + threadIdx.x) * Items;
#pragma unroll
    for (int k = 0; k < Items; ++k) {
        keys[k] = x[first + k];
        values[k] = threadIdx.x * Items + k;
    }
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int k = 0; k < Items; ++k) keys[k] = shuffled(keys[k]);
        One::run(storage, keys, values);
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < Items; ++k) out[first + k] = Of == MergePairs || Of == RadixPairs ? T(values[k]) : keys[k];
}

template <typename T, int Threads, int Items>
bool launch(int what, const void *x, void *out, int blocks, int turns) {
    auto from = static_cast<const T *>(x);
    auto to = static_cast<T *>(out);
    switch (what) {
    case MergeKeys: turns_of<MergeKeys, T, Threads, Items><<<blocks, Threads>>>(from, to, turns); return true;
    case MergePairs: turns_of<MergePairs, T, Threads, Items><<<blocks, Threads>>>(from, to, turns); return true;
    case RadixKeys: turns_of<RadixKeys, T, Threads, Items><<<blocks, Threads>>>(from, to, turns); return true;
    case RadixPairs: turns_of<RadixPairs, T, Threads, Items><<<blocks, Threads>>>(from, to, turns); return true;
    case ToBlocked: turns_of<ToBlocked, T, Threads, Items><<<blocks, Threads>>>(from, to, turns); return true;
    case ToStriped: turns_of<ToStriped, T, Threads, Items><<<blocks, Threads>>>(from, to, turns); return true;
    default: return false;
    }
}

template <typename T>
bool of_shape(int what, int threads, int items, const void *x, void *out, int blocks, int turns) {
    switch (threads * 100 + items) {
    case 12801: return launch<T, 128, 1>(what, x, out, blocks, turns);
    case 12804: return launch<T, 128, 4>(what, x, out, blocks, turns);
    case 12816: return launch<T, 128, 16>(what, x, out, blocks, turns);
    case 25604: return launch<T, 256, 4>(what, x, out, blocks, turns);
    case 25616: return launch<T, 256, 16>(what, x, out, blocks, turns);
    case 102404: return launch<T, 1024, 4>(what, x, out, blocks, turns);
    default: return false;
    }
}

// Milliseconds of a launch; negative where there is no such kernel or it failed. `kind`: 0 float32, 1 int32.
extern "C" float run(int what, int kind, int threads, int items, const void *x, void *out, int blocks, int turns) {
    cudaEvent_t begin, end;
    if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) return -1;
    cudaEventRecord(begin);
    bool known = kind == 0 ? of_shape<float>(what, threads, items, x, out, blocks, turns)
                           : of_shape<int>(what, threads, items, x, out, blocks, turns);
    cudaEventRecord(end);
    float elapsed = -1;
    cudaError_t fault = cudaEventSynchronize(end);
    if (fault == cudaSuccess) fault = cudaGetLastError();
    if (fault == cudaSuccess) fault = cudaEventElapsedTime(&elapsed, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return known && fault == cudaSuccess ? elapsed : -1;
}
