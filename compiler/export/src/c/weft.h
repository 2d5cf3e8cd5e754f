/* Kernels exported by weft: where they run, the status of calls, and memory.
 *
 * Every package has the same copy of this file. Nothing here needs CUDA to build: the driver, libcuda.so.1, is opened at
 * the first use of a GPU. All functions may be called from any thread.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_FORMAT 2

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call. `weft_message` says what is wrong, with the names of the kernel and the argument. */
typedef enum weft_status {
    WEFT_OK = 0,
    /* An array has elements, but no address. */
    WEFT_NULL_POINTER = 1,
    /* An extent of an array is negative. */
    WEFT_BAD_SHAPE = 2,
    /* The strides are not those that the kernel was compiled for. */
    WEFT_BAD_STRIDES = 3,
    /* The address is not a multiple of the size of an element. */
    WEFT_MISALIGNED = 4,
    /* An output shares memory with another array, or two elements of a written array have the same address. */
    WEFT_OVERLAP = 5,
    /* The memory of an array is not accessible where the kernel runs. */
    WEFT_WRONG_DEVICE = 6,
    /* The launch rule has no value for the arguments, or the grid or the block is out of range. */
    WEFT_BAD_LAUNCH = 7,
    /* There is no NVIDIA driver, or it is too old. */
    WEFT_NO_DRIVER = 8,
    /* The package has no code for this GPU, or none for the CPU. */
    WEFT_NO_CODE = 9,
    /* This CPU lacks instructions that the code for the CPU uses. */
    WEFT_UNSUPPORTED_CPU = 10,
    /* There is not enough memory. */
    WEFT_NO_MEMORY = 11,
    /* A call of the driver failed. */
    WEFT_DRIVER_ERROR = 12
} weft_status;

/* What is wrong with the last call of this thread that did not return WEFT_OK. Valid until its next call. */
const char *weft_message(void);

/* Where a kernel runs. */
typedef struct weft_where {
    /* On a GPU; otherwise on the CPU. */
    bool gpu;
    /* The stream on the GPU, a CUstream or a cudaStream_t; null for the default stream. */
    void *stream;
} weft_where;

/* On the CPU, on all cores. A launch returns when it has finished. */
static inline weft_where weft_on_cpu(void) {
    weft_where where = {false, NULL};
    return where;
}

/* On the GPU of the current context, in a stream. If there is no current context, device 0's primary one becomes it. */
static inline weft_where weft_on_gpu(void *stream) {
    weft_where where = {true, NULL};
    where.stream = stream;
    return where;
}

/* The number of GPUs; 0 if there is no driver. */
int weft_gpu_count(void);

/* Makes the primary context of a GPU the current one of this thread. */
weft_status weft_use_gpu(int device);

/* Allocates memory, on the GPU or on the CPU, aligned to 64 bytes. */
weft_status weft_allocate(weft_where where, size_t bytes, void **memory);

/* Frees memory of `weft_allocate`, after all work in the stream. */
weft_status weft_free(weft_where where, void *memory);

/* Copies from the memory of the process to `to`, in the stream. Returns when `from` may be changed. */
weft_status weft_upload(weft_where where, void *to, const void *from, size_t bytes);

/* Copies from `from` to the memory of the process, after all work in the stream. Returns when the copy is complete. */
weft_status weft_download(weft_where where, void *to, const void *from, size_t bytes);

/* Waits for all work in the stream. */
weft_status weft_synchronize(weft_where where);

/* Whether launches on a GPU query the driver where the memory of each array is. On at first. */
void weft_check_memory(bool on);

/* The number of threads that run kernels on the CPU; 0 for one per core. Takes effect before the first launch only. */
void weft_cpu_threads(int threads);

/* An extent of a launch. */
typedef struct weft_dim3 {
    uint32_t x, y, z;
} weft_dim3;

/* Numbers that C does not have. */
typedef struct weft_float16 {
    uint16_t bits;
} weft_float16;
typedef struct weft_bfloat16 {
    uint16_t bits;
} weft_bfloat16;
typedef struct weft_complex64 {
    float real, imag;
} weft_complex64;
typedef struct weft_complex128 {
    double real, imag;
} weft_complex128;

#ifdef __cplusplus
}
#endif

#endif
