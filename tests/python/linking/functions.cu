// Functions that the tests link, which NVRTC compiles.
#include "scale.cuh"

__device__ int calls = 0;

extern "C" __device__ int mul(float *result, float a, float b)
{
    *result = scale(a) * b;
    return 0;
}

extern "C" __device__ int total(float *result, const float *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    *result = sum;
    return 0;
}

// A 16-bit float as `cuda_fp16.h` has it, which need not be there.
struct alignas(2) Half {
    unsigned short bits;
};

extern "C" __device__ Half raised(Half half) { return {static_cast<unsigned short>(half.bits + 0x400)}; }

extern "C" __device__ int get_calls(int *result)
{
    *result = calls;
    return 0;
}
