/* The runtime of kernels exported by weft: checks of arguments, launches on GPUs through the driver, which is opened at
 * run time, and launches on the CPU by a pool of threads. It links the C library only.
 */
#define _GNU_SOURCE
#include "weft_launcher.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Messages */

static __thread char message[512];

const char *weft_message(void) { return message; }

__attribute__((format(printf, 2, 3))) static weft_status fail(weft_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return status;
}

/* Arguments */

/* The bytes that an array covers, from the lowest address to the one past the highest. Empty arrays cover none. False
 * if no memory has so many. */
static bool extent_of(const weft_param *param, const uint64_t *cells, uint64_t *low, uint64_t *high) {
    const int64_t *shape = (const int64_t *)cells + 1, *strides = shape + param->ndim;
    *low = cells[0];
    *high = cells[0] + param->item;
    for (int dim = 0; dim < param->ndim; dim++) {
        if (shape[dim] == 0) {
            *high = *low = cells[0];
            return true;
        }
        int64_t length;
        if (__builtin_mul_overflow(shape[dim] - 1, strides[dim], &length)) return false;
        if (__builtin_add_overflow(length < 0 ? *low : *high, length, length < 0 ? low : high)) return false;
    }
    return true;
}

static weft_status too_long(const weft_kernel *kernel, const weft_param *param) {
    return fail(WEFT_BAD_SHAPE, "%s: argument `%s` has more than 2^63 bytes", kernel->name, param->name);
}

/* Computes the strides of an array without strides, and checks those of others. */
static weft_status check_strides(const weft_kernel *kernel, const weft_param *param, uint64_t *cells, bool *is_empty) {
    const int ndim = param->ndim;
    const int64_t *shape = (const int64_t *)cells + 1;
    int64_t *strides = (int64_t *)cells + 1 + ndim;
    bool has_strides = false;
    *is_empty = false;
    for (int dim = 0; dim < ndim; dim++) {
        if (shape[dim] < 0)
            return fail(WEFT_BAD_SHAPE, "%s: the extent %lld of dimension %d of argument `%s` is negative", kernel->name,
                        (long long)shape[dim], dim, param->name);
        if (shape[dim] == 0) *is_empty = true;
        if (strides[dim] != 0) has_strides = true;
    }
    int64_t stride = param->item;
    for (int step = 0; step < ndim; step++) {
        int dim = param->layout == 'F' ? step : ndim - 1 - step;
        bool matters = shape[dim] > 1 && !*is_empty;
        if (!has_strides)
            strides[dim] = stride;
        else if (param->layout != 'A' && matters && strides[dim] != stride)
            return fail(WEFT_BAD_STRIDES,
                        "%s: argument `%s` must be contiguous in %s order: the stride of dimension %d is %lld bytes, not "
                        "%lld. Leave the strides zero for a contiguous array",
                        kernel->name, param->name, param->layout == 'F' ? "Fortran's" : "C's", dim,
                        (long long)strides[dim], (long long)stride);
        else if (param->writes && matters && strides[dim] == 0)
            return fail(WEFT_OVERLAP,
                        "%s: argument `%s` is written, but its stride in dimension %d is 0: its elements have the same "
                        "address",
                        kernel->name, param->name, dim);
        if (__builtin_mul_overflow(stride, shape[dim] > 0 ? shape[dim] : 1, &stride))
            return too_long(kernel, param);
    }
    return WEFT_OK;
}

static weft_status current_gpu(int *device);
static weft_status check_memory(const weft_kernel *kernel, const weft_param *param, uint64_t address, int device);
static volatile bool checks_memory = true;

void weft_check_memory(bool on) { checks_memory = on; }

weft_status weft_check(const weft_kernel *kernel, weft_where where, uint64_t *cells) {
    const bool queries_driver = where.gpu && checks_memory;
    int device = 0;
    if (queries_driver) {
        weft_status status = current_gpu(&device);
        if (status != WEFT_OK) return status;
    }
    for (int i = 0; i < kernel->n_params; i++) {
        const weft_param *param = &kernel->params[i];
        if (!param->is_array) continue;
        uint64_t *own = cells + param->cell;
        bool is_empty;
        weft_status status = check_strides(kernel, param, own, &is_empty);
        if (status != WEFT_OK) return status;
        if (is_empty) continue;
        if (own[0] == 0)
            return fail(WEFT_NULL_POINTER, "%s: argument `%s` is a null pointer", kernel->name, param->name);
        if (own[0] % param->align != 0)
            return fail(WEFT_MISALIGNED, "%s: the address of argument `%s` is not a multiple of %d bytes", kernel->name,
                        param->name, param->align);
        if (queries_driver) {
            status = check_memory(kernel, param, own[0], device);
            if (status != WEFT_OK) return status;
        }
    }
    for (int i = 0; i < kernel->n_params; i++) {
        const weft_param *output = &kernel->params[i];
        if (!output->is_output) continue;
        uint64_t low, high;
        if (!extent_of(output, cells + output->cell, &low, &high)) return too_long(kernel, output);
        for (int j = 0; j < kernel->n_params; j++) {
            const weft_param *other = &kernel->params[j];
            if (j == i || !other->is_array) continue;
            uint64_t other_low, other_high;
            if (!extent_of(other, cells + other->cell, &other_low, &other_high)) return too_long(kernel, other);
            if (low < other_high && other_low < high)
                return fail(WEFT_OVERLAP, "%s: the output `%s` shares memory with argument `%s`: pass other memory",
                            kernel->name, output->name, other->name);
        }
    }
    return WEFT_OK;
}

/* Rules */

static const char *rule_problem(int why) {
    switch (why) {
    case WEFT_RULE_DIVISION:
        return "a division by zero";
    case WEFT_RULE_SHIFT:
        return "a shift by a negative count";
    default:
        return "a value does not fit in 64 bits";
    }
}

weft_status weft_shape(const weft_kernel *kernel, const char *output, int64_t *shape, int ndim, int rule_error) {
    if (rule_error != 0)
        return fail(WEFT_BAD_SHAPE, "%s: the rule for the shape of output `%s` fails: %s", kernel->name, output,
                    rule_problem(rule_error));
    for (int dim = 0; dim < ndim; dim++)
        if (shape[dim] < 0)
            return fail(WEFT_BAD_SHAPE, "%s: the rule gives output `%s` the negative extent %lld in dimension %d",
                        kernel->name, output, (long long)shape[dim], dim);
    return WEFT_OK;
}

static weft_status check_sizes(const weft_kernel *kernel, const int64_t *sizes, int rule_error) {
    static const struct {
        const char *name;
        int64_t least, most;
    } limits[WEFT_SIZES] = {
        {"gridDim.x", 0, 2147483647},
        {"gridDim.y", 0, 65535},
        {"gridDim.z", 0, 65535},
        {"blockDim.x", 1, 1024},
        {"blockDim.y", 1, 1024},
        {"blockDim.z", 1, 64},
        {"the dynamic shared memory in bytes", 0, 1 << 30},
    };
    if (rule_error != 0)
        return fail(WEFT_BAD_LAUNCH, "%s: the launch rule fails: %s", kernel->name, rule_problem(rule_error));
    for (int i = 0; i < WEFT_SIZES; i++)
        if (sizes[i] < limits[i].least || sizes[i] > limits[i].most)
            return fail(WEFT_BAD_LAUNCH, "%s: %s is %lld; it must be from %lld to %lld", kernel->name, limits[i].name,
                        (long long)sizes[i], (long long)limits[i].least, (long long)limits[i].most);
    int64_t threads = sizes[3] * sizes[4] * sizes[5];
    if (threads > kernel->max_threads)
        return fail(WEFT_BAD_LAUNCH, "%s: a block of %lld x %lld x %lld has %lld threads; the kernel allows %u",
                    kernel->name, (long long)sizes[3], (long long)sizes[4], (long long)sizes[5], (long long)threads,
                    kernel->max_threads);
    return WEFT_OK;
}

/* Assumptions of code about its launches. The dispatcher of weft for Python tests the same. */

/* The limits of WEFT_SMALL, the alignment of WEFT_ALIGNED in bytes, and the most arrays that WEFT_DISJOINT compares. A
 * test of the crate has the same numbers. */
#define MOST_EXTENT 1073676288
#define MOST_ELEMENTS 2147418111
#define MOST_BLOCKS 8388352
#define ALIGNED 16
#define MOST_ARRAYS 16

static bool is_small_array(const weft_param *param, const uint64_t *own) {
    uint64_t elements = 1, bytes = 0;
    for (int dim = 0; dim < param->ndim; dim++) {
        int64_t extent = (int64_t)own[1 + dim], stride = (int64_t)own[1 + param->ndim + dim];
        if (extent < 1 || extent > MOST_EXTENT || stride < INT32_MIN || stride > INT32_MAX) return false;
        elements *= (uint64_t)extent;
        bytes += (uint64_t)extent * (uint64_t)(stride < 0 ? -stride : stride);
        if (elements > MOST_ELEMENTS || (param->layout == 'A' && bytes > INT32_MAX)) return false;
        if (bytes > INT64_MAX) bytes = INT64_MAX;
    }
    return true;
}

static bool is_small(const weft_kernel *kernel, const uint64_t *cells, const int64_t *sizes) {
    for (int axis = 0; axis < 3; axis++)
        if (sizes[axis] * sizes[3 + axis] > MOST_EXTENT) return false;
    if (sizes[0] > MOST_BLOCKS) return false;
    for (int i = 0; i < kernel->n_params; i++) {
        const weft_param *param = &kernel->params[i];
        int64_t value = (int64_t)cells[param->cell];
        if (param->is_array) {
            if (!is_small_array(param, cells + param->cell)) return false;
        } else if (param->item == 8 && param->kind != 'f') {
            if (value > INT32_MAX || value < (param->kind == 'i' ? INT32_MIN : 0)) return false;
        }
    }
    return true;
}

static bool is_nonneg(const weft_kernel *kernel, const uint64_t *cells) {
    for (int i = 0; i < kernel->n_params; i++) {
        const weft_param *param = &kernel->params[i];
        if (!param->is_array && param->kind == 'i' && cells[param->cell] >> (8 * param->item - 1) & 1) return false;
    }
    return true;
}

static bool is_aligned(const weft_kernel *kernel, const uint64_t *cells) {
    for (int i = 0; i < kernel->n_params; i++)
        if (kernel->params[i].is_array && cells[kernel->params[i].cell] % ALIGNED != 0) return false;
    return true;
}

/* Whether code may rely on it that two arrays share no memory. */
static bool must_be_disjoint(const weft_param *one, const weft_param *other) {
    return (one->writes && other->is_read_only) || (one->is_read_only && other->writes) || one->accumulates ||
           other->accumulates;
}

static bool is_disjoint(const weft_kernel *kernel, const uint64_t *cells) {
    uint64_t lows[MOST_ARRAYS], highs[MOST_ARRAYS];
    const weft_param *arrays[MOST_ARRAYS];
    int n = 0;
    for (int i = 0; i < kernel->n_params; i++) {
        const weft_param *param = &kernel->params[i];
        if (!param->is_array) continue;
        if (n == MOST_ARRAYS || !extent_of(param, cells + param->cell, &lows[n], &highs[n])) return false;
        arrays[n] = param;
        for (int j = 0; j < n; j++)
            if (lows[n] < highs[j] && lows[j] < highs[n] && must_be_disjoint(param, arrays[j])) return false;
        n++;
    }
    return true;
}

/* Whether all of the assumptions hold for a launch. */
static bool holds(const weft_kernel *kernel, int needs, const uint64_t *cells, const int64_t *sizes) {
    return (!(needs & WEFT_SMALL) || is_small(kernel, cells, sizes)) &&
           (!(needs & WEFT_NONNEG) || is_nonneg(kernel, cells)) &&
           (!(needs & WEFT_ALIGNED) || is_aligned(kernel, cells)) &&
           (!(needs & WEFT_WARPS) || sizes[3] % 32 == 0) && (!(needs & WEFT_DISJOINT) || is_disjoint(kernel, cells));
}

/* Whether a launch runs specialized code. */
static bool is_specialized(const weft_kernel *kernel, weft_where where, const uint64_t *cells, const int64_t *sizes) {
    if (where.gpu) return kernel->gpu_needs != 0 && holds(kernel, kernel->gpu_needs, cells, sizes);
    return kernel->specialized_host != NULL && holds(kernel, kernel->specialized_host->needs, cells, sizes);
}

/* The driver */

/* Each function of libcuda: its name here, its symbol, and its parameters. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(init, "cuInit", (unsigned))                                                                                      \
    X(error_name, "cuGetErrorName", (int, const char **))                                                              \
    X(device_count, "cuDeviceGetCount", (int *))                                                                       \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                                     \
    X(retain, "cuDevicePrimaryCtxRetain", (void **, int))                                                              \
    X(set_current, "cuCtxSetCurrent", (void *))                                                                        \
    X(get_current, "cuCtxGetCurrent", (void **))                                                                       \
    X(current_device, "cuCtxGetDevice", (int *))                                                                       \
    X(allocate, "cuMemAlloc_v2", (uint64_t *, size_t))                                                                 \
    X(release, "cuMemFree_v2", (uint64_t))                                                                             \
    X(upload, "cuMemcpyHtoDAsync_v2", (uint64_t, const void *, size_t, void *))                                        \
    X(download, "cuMemcpyDtoHAsync_v2", (void *, uint64_t, size_t, void *))                                            \
    X(fill, "cuMemsetD8Async", (uint64_t, unsigned char, size_t, void *))                                              \
    X(synchronize, "cuStreamSynchronize", (void *))                                                                    \
    X(pointer_attribute, "cuPointerGetAttribute", (void *, int, uint64_t))                                             \
    X(load, "cuLibraryLoadData", (void **, const void *, void *, void *, unsigned, void *, void *, unsigned))          \
    X(kernel, "cuLibraryGetKernel", (void **, void *, const char *))                                                   \
    X(kernel_attribute, "cuKernelSetAttribute", (int, int, void *, int))                                               \
    X(launch, "cuLaunchKernel",                                                                                        \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))        \
    X(launch_cooperative, "cuLaunchCooperativeKernel",                                                                 \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **))

#define DECLARE(name, symbol, params) int(*name) params;
static struct {
    DRIVER_FUNCTIONS(DECLARE)
} driver;
#undef DECLARE

/* Why there is no driver; null if there is one. */
static const char *no_driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        no_driver = "there is no NVIDIA driver: libcuda.so.1 was not found";
        return;
    }
#define RESOLVE(name, symbol, params)                                                                                  \
    *(void **)&driver.name = dlsym(library, symbol);                                                                   \
    if (driver.name == NULL) {                                                                                         \
        no_driver = "the NVIDIA driver is older than CUDA 12: it has no function " symbol;                             \
        return;                                                                                                        \
    }
    DRIVER_FUNCTIONS(RESOLVE)
#undef RESOLVE
    if (driver.init(0) != 0) no_driver = "the NVIDIA driver finds no GPU";
}

static weft_status need_driver(void) {
    pthread_once(&driver_once, open_driver);
    return no_driver == NULL ? WEFT_OK : fail(WEFT_NO_DRIVER, "%s", no_driver);
}

static weft_status driver_failed(const char *what, int error) {
    const char *name = NULL;
    if (driver.error_name(error, &name) != 0 || name == NULL) name = "an unknown error";
    /* CUDA_ERROR_OUT_OF_MEMORY */
    return fail(error == 2 ? WEFT_NO_MEMORY : WEFT_DRIVER_ERROR, "%s: the driver reports %s (%d)", what, name, error);
}

int weft_gpu_count(void) {
    int count = 0;
    if (need_driver() != WEFT_OK || driver.device_count(&count) != 0) return 0;
    return count;
}

weft_status weft_use_gpu(int device) {
    weft_status status = need_driver();
    if (status != WEFT_OK) return status;
    void *context;
    int error = driver.retain(&context, device);
    if (error == 0) error = driver.set_current(context);
    return error == 0 ? WEFT_OK : driver_failed("selecting the GPU", error);
}

/* The device of the current context. */
static weft_status current_gpu(int *device) {
    weft_status status = need_driver();
    if (status != WEFT_OK) return status;
    void *context = NULL;
    int error = driver.get_current(&context);
    if (error == 0 && context == NULL) {
        status = weft_use_gpu(0);
        if (status != WEFT_OK) return status;
    }
    if (error == 0) error = driver.current_device(device);
    return error == 0 ? WEFT_OK : driver_failed("querying the current GPU", error);
}

static weft_status check_memory(const weft_kernel *kernel, const weft_param *param, uint64_t address, int device) {
    /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
    unsigned type = 0;
    int owner = device, pageable = 0;
    int error = driver.pointer_attribute(&type, 2, address);
    if (error == 0 && type == 2) error = driver.pointer_attribute(&owner, 9, address);
    if (error != 0) {
        /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */
        driver.device_attribute(&pageable, 88, device);
        if (pageable) return WEFT_OK;
        return fail(WEFT_WRONG_DEVICE,
                    "%s: argument `%s` is in the memory of the process, which the GPU does not reach: copy it with "
                    "weft_upload",
                    kernel->name, param->name);
    }
    if (owner != device)
        return fail(WEFT_WRONG_DEVICE, "%s: argument `%s` is on GPU %d, but the kernel runs on GPU %d", kernel->name,
                    param->name, owner, device);
    return WEFT_OK;
}

/* How good code is among what a GPU runs: a cubin before PTX, the highest compute capability, code for that one only,
 * and specialized code. */
static int rank(const weft_image *image) {
    return (!image->is_ptx << 18) | (image->sm << 2) | ((image->variant != 0) << 1) | (image->needs != 0);
}

/* The best code for a compute capability: a cubin, else PTX, each for the highest that the GPU runs; specialized code
 * where it may be. */
static const weft_image *choose_image(const weft_kernel *kernel, int sm, bool specialized) {
    const weft_image *best = NULL;
    for (int i = 0; i < kernel->n_images; i++) {
        const weft_image *image = &kernel->images[i];
        bool same_major = image->sm / 10 == sm / 10;
        bool runs = image->variant == 'a' ? image->sm == sm
                    : image->variant == 'f' || !image->is_ptx ? same_major && image->sm <= sm
                                                              : image->sm <= sm;
        if (!runs || (image->needs != 0 && !specialized)) continue;
        if (best == NULL || rank(image) > rank(best)) best = image;
    }
    return best;
}

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static weft_status load_locked(const weft_kernel *kernel, int device, bool specialized, struct weft_loaded *loaded) {
    int major = 0, minor = 0;
    /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR */
    int error = driver.device_attribute(&major, 75, device);
    if (error == 0) error = driver.device_attribute(&minor, 76, device);
    if (error != 0) return driver_failed("querying the GPU", error);
    const weft_image *image = choose_image(kernel, major * 10 + minor, specialized);
    if (image == NULL)
        return fail(WEFT_NO_CODE,
                    "%s: the package has no code for this GPU (sm_%d%d): build it with --target sm_%d%d, or with PTX for "
                    "an older one",
                    kernel->name, major, minor, major, minor);
    void *library, *function;
    error = driver.load(&library, image->code, NULL, NULL, 0, NULL, NULL, 0);
    if (error == 0) error = driver.kernel(&function, library, image->symbol);
    if (error != 0) return driver_failed(kernel->name, error);
    loaded->image = image;
    __atomic_store_n(&loaded->function, function, __ATOMIC_RELEASE);
    return WEFT_OK;
}

/* The loaded kernel of a device. */
static weft_status load(const weft_kernel *kernel, int device, bool specialized, struct weft_loaded **loaded) {
    if (device < 0 || device >= WEFT_DEVICES)
        return fail(WEFT_NO_CODE, "%s: the GPU has the number %d; at most %d are supported", kernel->name, device,
                    WEFT_DEVICES);
    *loaded = &kernel->loaded[2 * device + specialized];
    if (__atomic_load_n(&(*loaded)->function, __ATOMIC_ACQUIRE) != NULL) return WEFT_OK;
    pthread_mutex_lock(&load_lock);
    weft_status status = (*loaded)->function == NULL ? load_locked(kernel, device, specialized, *loaded) : WEFT_OK;
    pthread_mutex_unlock(&load_lock);
    return status;
}

static weft_status launch_gpu(const weft_kernel *kernel, bool specialized, void *stream, const uint64_t *cells,
                              const int64_t *sizes) {
    int device;
    struct weft_loaded *loaded;
    weft_status status = current_gpu(&device);
    if (status == WEFT_OK) status = load(kernel, device, specialized, &loaded);
    if (status != WEFT_OK) return status;
    const weft_image *image = loaded->image;
    void *params[image->n_slots + 1];
    for (int i = 0; i < image->n_slots; i++) params[i] = (void *)&cells[image->slots[i]];
    unsigned shared = (unsigned)sizes[6];
    if (shared > __atomic_load_n(&loaded->shared_bytes, __ATOMIC_RELAXED)) {
        /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
        int error = driver.kernel_attribute(8, (int)shared, loaded->function, device);
        if (error != 0) return driver_failed(kernel->name, error);
        __atomic_store_n(&loaded->shared_bytes, shared, __ATOMIC_RELAXED);
    }
    const unsigned *size = (unsigned[]){(unsigned)sizes[0], (unsigned)sizes[1], (unsigned)sizes[2],
                                        (unsigned)sizes[3], (unsigned)sizes[4], (unsigned)sizes[5]};
    int error = kernel->cooperative
                    ? driver.launch_cooperative(loaded->function, size[0], size[1], size[2], size[3], size[4], size[5],
                                                shared, stream, params)
                    : driver.launch(loaded->function, size[0], size[1], size[2], size[3], size[4], size[5], shared,
                                    stream, params, NULL);
    return error == 0 ? WEFT_OK : driver_failed(kernel->name, error);
}

/* Threads of the CPU */

/* The state of a launch that code polls: it is never cancelled. */
struct watch {
    const uint32_t *flag;
    uint32_t (*look)(const struct watch *);
    void (*give_up)(const struct watch *);
};

struct config {
    uint32_t words[8];
    const struct watch *watch;
};

/* The argument of an entry. The runtime of weft for Python has the same. */
struct context {
    const uint64_t *slots;
    const struct config *config;
    uint64_t first_block, last_block;
    uint8_t *scratch;
    uint64_t thread, iterations;
    void (*wait)(void), (*pause)(void);
    uint64_t lowest;
    void (*deep)(void), (*print)(void);
    uint32_t lanes;
    uint32_t (*fault)(void);
    void (*called)(void);
    const void *record;
    void (*access)(void), (*event)(void);
    uint32_t unwritten;
    const void *seen;
    void (*multiply)(void), (*copy)(void);
    uint32_t cluster_rank, cluster_size;
    uint8_t *const *cluster;
};

/* A test of the crate has the same numbers. */
_Static_assert(offsetof(struct context, scratch) == 32 && offsetof(struct context, lowest) == 72, "the layout");
_Static_assert(offsetof(struct context, fault) == 104 && offsetof(struct context, access) == 128, "the layout");
_Static_assert(offsetof(struct context, seen) == 152 && sizeof(struct context) == 192, "the layout");
_Static_assert(offsetof(struct config, watch) == 32 && offsetof(struct watch, give_up) == 16, "the layout");

static uint32_t goes_on(const struct watch *watch) {
    (void)watch;
    return 0;
}

static void never(const struct watch *watch) { (void)watch; }

/* Kernels that call these are not exported. */
static void unreachable_call(void) { abort(); }

static uint32_t no_fault(void) { return 1; }

/* One launch, shared by the threads that run it. */
struct work {
    const weft_host_image *image;
    const uint64_t *slots;
    const struct config *config;
    uint64_t n_blocks, chunk, next;
    size_t scratch_bytes;
    bool out_of_memory;
};

static void run_blocks(struct work *work) {
    static __thread uint8_t *scratch;
    static __thread size_t scratch_bytes;
    if (scratch_bytes < work->scratch_bytes) {
        free(scratch);
        scratch_bytes = (work->scratch_bytes + 4095) / 4096 * 4096;
        scratch = aligned_alloc(64, scratch_bytes);
        if (scratch == NULL) {
            scratch_bytes = 0;
            __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
            return;
        }
    }
    for (;;) {
        uint64_t first = __atomic_fetch_add(&work->next, work->chunk, __ATOMIC_RELAXED);
        if (first >= work->n_blocks) return;
        uint64_t last = work->n_blocks - first < work->chunk ? work->n_blocks : first + work->chunk;
        struct context context = {
            .slots = work->slots,
            .config = work->config,
            .first_block = first,
            .last_block = last,
            .scratch = scratch,
            .wait = unreachable_call,
            .pause = unreachable_call,
            .deep = unreachable_call,
            .print = unreachable_call,
            .fault = no_fault,
            .called = unreachable_call,
            .access = unreachable_call,
            .event = unreachable_call,
            .multiply = unreachable_call,
            .copy = unreachable_call,
            .cluster_size = 1,
        };
        work->image->entry(&context);
    }
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begins, ends;
    struct work *work;
    /* The number of launches so far, so that each thread takes part in each once. */
    uint64_t launches;
    int n_threads, running;
    bool started;
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0, false};

/* Held by the launch that uses the pool. Others meanwhile run on their own thread. */
static pthread_mutex_t pool_user = PTHREAD_MUTEX_INITIALIZER;
static int wanted_threads;

void weft_cpu_threads(int threads) { wanted_threads = threads; }

static void *pool_thread(void *unused) {
    (void)unused;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.launches == seen) pthread_cond_wait(&pool.begins, &pool.lock);
        seen = pool.launches;
        struct work *work = pool.work;
        pthread_mutex_unlock(&pool.lock);
        run_blocks(work);
        pthread_mutex_lock(&pool.lock);
        if (--pool.running == 0) pthread_cond_signal(&pool.ends);
    }
    return NULL;
}

/* In the child of a fork only the calling thread exists. */
static void after_fork(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begins, NULL);
    pthread_cond_init(&pool.ends, NULL);
    pthread_mutex_init(&pool_user, NULL);
    pool.n_threads = pool.running = 0;
    pool.launches = 0;
    pool.started = false;
}

/* Starts the threads beside the calling one. The caller holds `pool_user`. */
static void start_pool(void) {
    long cores = wanted_threads > 0 ? wanted_threads : sysconf(_SC_NPROCESSORS_ONLN);
    static bool handles_fork;
    if (!handles_fork) {
        pthread_atfork(NULL, NULL, after_fork);
        handles_fork = true;
    }
    pool.started = true;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (long i = 1; i < cores; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, pool_thread, NULL) != 0) break;
        pool.n_threads++;
    }
    pthread_attr_destroy(&attributes);
}

static void run_in_pool(struct work *work) {
    if (!pool.started) start_pool();
    uint64_t chunks = (uint64_t)(pool.n_threads + 1) * 8;
    work->chunk = work->n_blocks / chunks + 1;
    pthread_mutex_lock(&pool.lock);
    pool.work = work;
    pool.running = pool.n_threads;
    pool.launches++;
    pthread_cond_broadcast(&pool.begins);
    pthread_mutex_unlock(&pool.lock);
    run_blocks(work);
    pthread_mutex_lock(&pool.lock);
    while (pool.running > 0) pthread_cond_wait(&pool.ends, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

static bool has_feature(const char *name) {
    if (strcmp(name, "avx2") == 0) return __builtin_cpu_supports("avx2");
    if (strcmp(name, "fma") == 0) return __builtin_cpu_supports("fma");
    if (strcmp(name, "avx512f") == 0) return __builtin_cpu_supports("avx512f");
    if (strcmp(name, "sse4.2") == 0) return __builtin_cpu_supports("sse4.2");
    return true;
}

static weft_status load_cpu(const weft_kernel *kernel) {
    /* Specialized code needs the same CPU. */
    if (kernel->host == NULL)
        return fail(WEFT_NO_CODE, "%s: the package has no code for the CPU: build it with --target host", kernel->name);
    for (const char *const *feature = kernel->host->features; *feature != NULL; feature++)
        if (!has_feature(*feature))
            return fail(WEFT_UNSUPPORTED_CPU, "%s: the code needs a CPU with %s, which this one lacks", kernel->name,
                        *feature);
    return WEFT_OK;
}

/* A launch of fewer threads runs on the calling thread: waking others takes longer. */
#define LITTLE_WORK 4096

static weft_status launch_cpu(const weft_kernel *kernel, bool specialized, const uint64_t *cells,
                              const int64_t *sizes) {
    weft_status status = load_cpu(kernel);
    if (status != WEFT_OK) return status;
    const weft_host_image *image = specialized ? kernel->specialized_host : kernel->host;
    uint64_t slots[image->n_slots + 1];
    for (int i = 0; i < image->n_slots; i++) slots[i] = cells[image->slots[i]];
    static const uint32_t flag = 0;
    const struct watch watch = {&flag, goes_on, never};
    struct config config = {{0}, &watch};
    for (int i = 0; i < WEFT_SIZES; i++) config.words[i] = (uint32_t)sizes[i];
    for (int part = 0; part < 6; part += 3) {
        uint32_t x = config.words[part];
        config.words[part] = config.words[part + image->x_axis];
        config.words[part + image->x_axis] = x;
    }
    struct work work = {.image = image, .slots = slots, .config = &config, .chunk = 1};
    work.n_blocks = (uint64_t)sizes[0] * (uint64_t)sizes[1] * (uint64_t)sizes[2];
    work.chunk = work.n_blocks;
    work.scratch_bytes = (size_t)image->dynamic_offset + (size_t)sizes[6] + 64;
    uint64_t block = (uint64_t)(sizes[3] * sizes[4] * sizes[5]);
    bool is_little = work.n_blocks < 2 || work.n_blocks < LITTLE_WORK / block;
    if (!is_little && pthread_mutex_trylock(&pool_user) == 0) {
        run_in_pool(&work);
        pthread_mutex_unlock(&pool_user);
    } else {
        run_blocks(&work);
    }
    if (work.out_of_memory) return fail(WEFT_NO_MEMORY, "%s: there is no memory for the blocks", kernel->name);
    return WEFT_OK;
}

/* Both */

/* Sets an output, which is contiguous, to zeros. */
static weft_status zero(const weft_kernel *kernel, const weft_param *param, weft_where where, const uint64_t *cells) {
    uint64_t low, high;
    if (!extent_of(param, cells + param->cell, &low, &high)) return too_long(kernel, param);
    if (low == high) return WEFT_OK;
    if (!where.gpu) {
        memset((void *)(uintptr_t)low, 0, (size_t)(high - low));
        return WEFT_OK;
    }
    int error = driver.fill(low, 0, (size_t)(high - low), where.stream);
    return error == 0 ? WEFT_OK : driver_failed(kernel->name, error);
}

static weft_status load_variant(const weft_kernel *kernel, weft_where where, bool specialized) {
    if (!where.gpu) return load_cpu(kernel);
    int device;
    struct weft_loaded *loaded;
    weft_status status = current_gpu(&device);
    return status == WEFT_OK ? load(kernel, device, specialized, &loaded) : status;
}

weft_status weft_launch(const weft_kernel *kernel, weft_where where, const uint64_t *cells, const int64_t *sizes,
                        int rule_error) {
    weft_status status = check_sizes(kernel, sizes, rule_error);
    if (status != WEFT_OK) return status;
    bool specialized = is_specialized(kernel, where, cells, sizes);
    for (int i = 0; i < kernel->n_params && status == WEFT_OK; i++) {
        if (!kernel->params[i].zeroed) continue;
        /* A launch that fails changes nothing. */
        status = load_variant(kernel, where, specialized);
        if (status == WEFT_OK) status = zero(kernel, &kernel->params[i], where, cells);
    }
    if (status != WEFT_OK) return status;
    if (sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0) return WEFT_OK;
    return where.gpu ? launch_gpu(kernel, specialized, where.stream, cells, sizes)
                     : launch_cpu(kernel, specialized, cells, sizes);
}

weft_status weft_load(const weft_kernel *kernel, weft_where where) {
    weft_status status = load_variant(kernel, where, false);
    if (status == WEFT_OK && where.gpu && kernel->gpu_needs != 0) status = load_variant(kernel, where, true);
    return status;
}

weft_status weft_allocate(weft_where where, size_t bytes, void **memory) {
    *memory = NULL;
    if (!where.gpu) {
        *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
        return *memory != NULL ? WEFT_OK : fail(WEFT_NO_MEMORY, "there is no memory for %zu bytes", bytes);
    }
    int device;
    weft_status status = current_gpu(&device);
    if (status != WEFT_OK) return status;
    uint64_t address = 0;
    int error = driver.allocate(&address, bytes > 0 ? bytes : 1);
    if (error != 0) return driver_failed("weft_allocate", error);
    *memory = (void *)(uintptr_t)address;
    return WEFT_OK;
}

weft_status weft_synchronize(weft_where where) {
    if (!where.gpu) return WEFT_OK;
    int device;
    weft_status status = current_gpu(&device);
    if (status != WEFT_OK) return status;
    int error = driver.synchronize(where.stream);
    return error == 0 ? WEFT_OK : driver_failed("waiting for the GPU", error);
}

weft_status weft_free(weft_where where, void *memory) {
    if (memory == NULL) return WEFT_OK;
    if (!where.gpu) {
        free(memory);
        return WEFT_OK;
    }
    weft_status status = weft_synchronize(where);
    if (status != WEFT_OK) return status;
    int error = driver.release((uint64_t)(uintptr_t)memory);
    return error == 0 ? WEFT_OK : driver_failed("weft_free", error);
}

weft_status weft_upload(weft_where where, void *to, const void *from, size_t bytes) {
    if (bytes == 0) return WEFT_OK;
    if (!where.gpu) {
        memcpy(to, from, bytes);
        return WEFT_OK;
    }
    int device;
    weft_status status = current_gpu(&device);
    if (status != WEFT_OK) return status;
    int error = driver.upload((uint64_t)(uintptr_t)to, from, bytes, where.stream);
    if (error == 0) error = driver.synchronize(where.stream);
    return error == 0 ? WEFT_OK : driver_failed("weft_upload", error);
}

weft_status weft_download(weft_where where, void *to, const void *from, size_t bytes) {
    if (bytes == 0) return WEFT_OK;
    if (!where.gpu) {
        memcpy(to, from, bytes);
        return WEFT_OK;
    }
    int device;
    weft_status status = current_gpu(&device);
    if (status != WEFT_OK) return status;
    int error = driver.download(to, (uint64_t)(uintptr_t)from, bytes, where.stream);
    if (error == 0) error = driver.synchronize(where.stream);
    return error == 0 ? WEFT_OK : driver_failed("weft_download", error);
}
