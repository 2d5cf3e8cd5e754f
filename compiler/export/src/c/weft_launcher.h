/* What the generated sources use of the runtime. Programs include the header of their package instead. */
#ifndef WEFT_LAUNCHER_H
#define WEFT_LAUNCHER_H

#include "weft.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A parameter of a kernel. An array has 1 + 2 * ndim cells: address, extents, strides in bytes. */
typedef struct weft_param {
    const char *name;
    /* The first of its cells. */
    uint16_t cell;
    bool is_array;
    bool writes;
    /* Some code of the kernel only reads it, or only accumulates in it. */
    bool is_read_only;
    bool accumulates;
    /* An array that must share no memory with others. */
    bool is_output;
    /* An output that is set to zeros before the launch. */
    bool zeroed;
    uint8_t ndim;
    /* 'C', 'F', or 'A' for any strides. */
    char layout;
    /* Of a number: 'i' and 'u' for signed and unsigned integers, 'f' for others. */
    char kind;
    /* The size of an element, and its alignment. */
    uint8_t item;
    uint8_t align;
} weft_param;

/* What code assumes about its launches. `docs/design/launch-specialization.md` of weft defines it. */
enum { WEFT_SMALL = 1, WEFT_NONNEG = 2, WEFT_DISJOINT = 4, WEFT_ALIGNED = 8, WEFT_WARPS = 16 };

/* Code of a kernel for GPUs. */
typedef struct weft_image {
    /* The compute capability: 90 for sm_90. */
    uint16_t sm;
    /* 0, 'a' for code that runs on this compute capability only, or 'f' for its family. */
    char variant;
    /* PTX, which newer GPUs run too; otherwise a cubin. */
    bool is_ptx;
    /* What it assumes; 0 for any launch. */
    uint8_t needs;
    const void *code;
    const char *symbol;
    const uint16_t *slots;
    uint16_t n_slots;
} weft_image;

/* Code of a kernel for CPUs. */
typedef struct weft_host_image {
    void (*entry)(void *context);
    const uint16_t *slots;
    uint16_t n_slots;
    /* The instructions that it needs, as gcc names them; ends with a null pointer. */
    const char *const *features;
    /* Scratch memory before the dynamic shared memory, in bytes. */
    uint64_t dynamic_offset;
    /* The axis that is exchanged with x. */
    uint8_t x_axis;
    /* What it assumes; 0 for any launch. */
    uint8_t needs;
} weft_host_image;

/* The most devices of a machine. */
#define WEFT_DEVICES 64

/* A kernel. */
typedef struct weft_kernel {
    const char *name;
    const weft_param *params;
    uint16_t n_params;
    const weft_image *images;
    uint16_t n_images;
    /* What the code for GPUs assumes that is not for any launch. */
    uint8_t gpu_needs;
    /* For any launch, and for those for which its assumptions hold. */
    const weft_host_image *host;
    const weft_host_image *specialized_host;
    uint32_t max_threads;
    /* All blocks must be resident. */
    bool cooperative;
    /* The loaded kernel and its image: for each device, for any launch, and then specialized. */
    struct weft_loaded {
        void *function;
        const weft_image *image;
        uint32_t shared_bytes;
    } *loaded;
} weft_kernel;

/* The configuration of a launch: grid x, y, z, block x, y, z, dynamic shared memory in bytes. */
#define WEFT_SIZES 7

/* Why a rule has no value. */
enum { WEFT_RULE_OVERFLOW = 1, WEFT_RULE_DIVISION = 2, WEFT_RULE_SHIFT = 3 };

weft_status weft_check(const weft_kernel *kernel, weft_where where, uint64_t *cells);
weft_status weft_launch(const weft_kernel *kernel, weft_where where, const uint64_t *cells, const int64_t *sizes,
                        int rule_error);
weft_status weft_load(const weft_kernel *kernel, weft_where where);
weft_status weft_shape(const weft_kernel *kernel, const char *output, int64_t *shape, int ndim, int rule_error);

/* Cells */

static inline void weft_put(uint64_t *cell, const void *value, size_t bytes) {
    *cell = 0;
    memcpy(cell, value, bytes);
}

static inline void weft_put_array(uint64_t *cells, const void *data, const int64_t *shape, const int64_t *strides,
                                  int ndim) {
    cells[0] = (uint64_t)(uintptr_t)data;
    for (int dim = 0; dim < ndim; dim++) {
        cells[1 + dim] = (uint64_t)shape[dim];
        cells[1 + ndim + dim] = (uint64_t)strides[dim];
    }
}

/* Integers of rules: Python's, of 64 bits. What does not fit sets the error. */

static inline int64_t weft_rule_failed(int *error, int why) {
    if (*error == 0) *error = why;
    return 0;
}

static inline int64_t weft_rule_unsigned(int *error, uint64_t a) {
    return a <= (uint64_t)INT64_MAX ? (int64_t)a : weft_rule_failed(error, WEFT_RULE_OVERFLOW);
}

static inline int64_t weft_rule_add(int *error, int64_t a, int64_t b) {
    int64_t result;
    return __builtin_add_overflow(a, b, &result) ? weft_rule_failed(error, WEFT_RULE_OVERFLOW) : result;
}

static inline int64_t weft_rule_sub(int *error, int64_t a, int64_t b) {
    int64_t result;
    return __builtin_sub_overflow(a, b, &result) ? weft_rule_failed(error, WEFT_RULE_OVERFLOW) : result;
}

static inline int64_t weft_rule_mul(int *error, int64_t a, int64_t b) {
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? weft_rule_failed(error, WEFT_RULE_OVERFLOW) : result;
}

static inline int64_t weft_rule_neg(int *error, int64_t a) { return weft_rule_sub(error, 0, a); }

static inline int64_t weft_rule_abs(int *error, int64_t a) { return a < 0 ? weft_rule_neg(error, a) : a; }

static inline int64_t weft_rule_floordiv(int *error, int64_t a, int64_t b) {
    if (b == 0) return weft_rule_failed(error, WEFT_RULE_DIVISION);
    if (b == -1) return weft_rule_neg(error, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t weft_rule_mod(int *error, int64_t a, int64_t b) {
    if (b == 0) return weft_rule_failed(error, WEFT_RULE_DIVISION);
    if (b == -1) return 0;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline int64_t weft_rule_shl(int *error, int64_t a, int64_t b) {
    if (b < 0) return weft_rule_failed(error, WEFT_RULE_SHIFT);
    if (a == 0) return 0;
    if (b > 62) return weft_rule_failed(error, WEFT_RULE_OVERFLOW);
    return weft_rule_mul(error, a, (int64_t)1 << b);
}

static inline int64_t weft_rule_shr(int *error, int64_t a, int64_t b) {
    if (b < 0) return weft_rule_failed(error, WEFT_RULE_SHIFT);
    return a >> (b > 63 ? 63 : b);
}

static inline int64_t weft_rule_min(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t weft_rule_max(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t weft_rule_size(int *error, const uint64_t *extents, int ndim) {
    int64_t size = 1;
    for (int dim = 0; dim < ndim; dim++)
        if (extents[dim] == 0) return 0;
    for (int dim = 0; dim < ndim; dim++) size = weft_rule_mul(error, size, (int64_t)extents[dim]);
    return size;
}

#ifdef __cplusplus
}
#endif

#endif
