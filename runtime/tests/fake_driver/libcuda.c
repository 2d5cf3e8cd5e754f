/* A CUDA driver without a GPU, for tests: memory is the host's, a kernel is a few C lines, and environment variables make
 * calls fail. Only what weft calls is here.
 *
 *   FAKE_INIT=code       cuInit fails
 *   FAKE_VERSION=12040   what cuDriverGetVersion answers
 *   FAKE_DEVICES=2       how many devices there are
 *   FAKE_POOLS=0         no stream-ordered memory
 *   FAKE_HMM=1           the device reads host memory
 *   FAKE_LAUNCH=code     cuLaunchKernel fails
 *   FAKE_TRACE=path      the name of each call but the error texts is appended there, one a line
 *
 * Kernels, by name: "sum<n>" adds slots 1 to n-1 and stores the sum where slot 0 points; "fault" breaks the context.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int result;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

static _Atomic result fault;
static __thread void *current;

static long number(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value ? atol(value) : otherwise;
}

static void trace(const char *call)
{
    const char *path = getenv("FAKE_TRACE");
    if (!path)
        return;
    FILE *file = fopen(path, "a");
    if (file) {
        fprintf(file, "%s\n", call);
        fclose(file);
    }
}

/* A forked process has no driver. */
static pid_t process;
static int forked(void) { return process && process != getpid(); }

/* Most calls: noted, refused without a context, and after a fault they all fail alike. */
#define ENTER()                 \
    do {                        \
        trace(__func__);        \
        if (!current)           \
            return 201;         \
        if (fault)              \
            return fault;       \
    } while (0)

result cuGetErrorName(result code, const char **text)
{
    switch (code) {
    case INVALID: *text = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case NO_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case 34: *text = "CUDA_ERROR_STUB_LIBRARY"; return OK;
    case 100: *text = "CUDA_ERROR_NO_DEVICE"; return OK;
    case 201: *text = "CUDA_ERROR_INVALID_CONTEXT"; return OK;
    case 218: *text = "CUDA_ERROR_INVALID_PTX"; return OK;
    case 222: *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return OK;
    case 400: *text = "CUDA_ERROR_INVALID_HANDLE"; return OK;
    case NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; return OK;
    case NOT_READY: *text = "CUDA_ERROR_NOT_READY"; return OK;
    case ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return OK;
    case 701: *text = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; return OK;
    default: *text = NULL; return INVALID;
    }
}

result cuGetErrorString(result code, const char **text)
{
    switch (code) {
    case INVALID: *text = "invalid argument"; return OK;
    case NO_MEMORY: *text = "out of memory"; return OK;
    case 34: *text = "CUDA driver is a stub library"; return OK;
    case 100: *text = "no CUDA-capable device is detected"; return OK;
    case 201: *text = "invalid device context"; return OK;
    case 218: *text = "a PTX JIT compilation failed"; return OK;
    case 222: *text = "the provided PTX was compiled with an unsupported toolchain."; return OK;
    case 400: *text = "invalid resource handle"; return OK;
    case NOT_FOUND: *text = "named symbol not found"; return OK;
    case NOT_READY: *text = "device not ready"; return OK;
    case ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; return OK;
    case 701: *text = "too many resources requested for launch"; return OK;
    default: *text = NULL; return INVALID;
    }
}

result cuInit(unsigned flags)
{
    trace(__func__);
    process = getpid();
    return flags ? INVALID : number("FAKE_INIT", 0);
}

result cuDriverGetVersion(int *version) { *version = number("FAKE_VERSION", 12040); return OK; }
result cuDeviceGetCount(int *count) { *count = number("FAKE_DEVICES", 2); return OK; }
result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }

result cuDeviceGetName(char *name, int len, int device) { snprintf(name, len, "Fake GPU %d", device); return OK; }
result cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 1ul << 30; return OK; }
result cuDeviceGetPCIBusId(char *id, int len, int device) { snprintf(id, len, "0000:%02x:05.0", device); return OK; }

result cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = 16 * device + i;
    return OK;
}

result cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    switch (attribute) {
    case 1: *value = 1024; return OK;                       /* threads a block */
    case 2: case 3: *value = 1024; return OK;               /* block in x, y */
    case 4: *value = 64; return OK;                         /* block in z */
    case 5: *value = 2147483647; return OK;                 /* grid in x */
    case 6: case 7: *value = 65535; return OK;              /* grid in y, z */
    case 8: *value = 49152; return OK;                      /* shared memory */
    case 10: *value = 32; return OK;                        /* warp */
    case 12: *value = 65536; return OK;                     /* registers a block */
    case 16: *value = 132; return OK;                       /* multiprocessors */
    case 75: *value = 9; return OK;                         /* compute capability */
    case 76: *value = 0; return OK;
    case 88: *value = number("FAKE_HMM", 0); return OK;     /* reads host memory */
    case 97: *value = 232448; return OK;                    /* shared memory with opting in */
    case 115: *value = number("FAKE_POOLS", 1); return OK;  /* stream-ordered memory */
    default: return INVALID;
    }
}

result cuDevicePrimaryCtxRetain(void **context, int device) { trace(__func__); *context = (void *)(0x1000l + device); return OK; }
result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; trace(__func__); return OK; }
result cuCtxGetCurrent(void **context) { trace(__func__); *context = current; return forked() ? 3 : OK; }
result cuCtxSetCurrent(void *context) { trace(__func__); current = context; return OK; }
result cuCtxSynchronize(void) { ENTER(); return OK; }

/* One level is enough. */
static __thread void *below;
result cuCtxPushCurrent_v2(void *context) { trace(__func__); below = current; current = context; return OK; }
result cuCtxPopCurrent_v2(void **context) { trace(__func__); *context = current; current = below; return OK; }

/* Memory: a gibibyte, counted. Each allocation has its size before it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t used, reserved;
static uint64_t threshold;

static result take(uint64_t *address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    int fits = used + bytes <= 1ul << 30;
    if (fits)
        used += bytes;
    if (used > reserved)
        reserved = used;
    pthread_mutex_unlock(&lock);
    if (!fits)
        return NO_MEMORY;
    size_t *start = malloc(bytes + 16);
    *start = bytes;
    *address = (uint64_t)(start + 2);
    return OK;
}

static result give(uint64_t address)
{
    size_t *start = (size_t *)address - 2;
    pthread_mutex_lock(&lock);
    used -= *start;
    pthread_mutex_unlock(&lock);
    free(start);
    return OK;
}

result cuMemAlloc_v2(uint64_t *address, size_t bytes) { ENTER(); return take(address, bytes); }
result cuMemFree_v2(uint64_t address) { ENTER(); return give(address); }
#ifndef WITHOUT_POOLS
result cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) { ENTER(); (void)stream; return take(address, bytes); }
#endif
result cuMemFreeAsync(uint64_t address, void *stream) { ENTER(); (void)stream; return give(address); }

/* What the pool keeps is not free. */
result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER();
    *total = 1ul << 30;
    *free_bytes = *total - (number("FAKE_POOLS", 1) ? reserved : used);
    return OK;
}

result cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = (void *)(0x2000l + device); return OK; }

result cuMemPoolGetAttribute(void *pool, int attribute, uint64_t *value)
{
    (void)pool;
    *value = attribute == 4 ? threshold : attribute == 5 ? reserved : used;
    return OK;
}

result cuMemPoolSetAttribute(void *pool, int attribute, uint64_t *value)
{
    (void)pool;
    trace(*value == UINT64_MAX ? "cuMemPoolSetAttribute(keep all)" : "cuMemPoolSetAttribute(other)");
    threshold = *value;
    return attribute == 4 ? OK : INVALID;
}

result cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) { ENTER(); memcpy((void *)to, from, n); return OK; }
result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream) { ENTER(); (void)stream; memcpy((void *)to, from, n); return OK; }
result cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { ENTER(); memcpy(to, (void *)from, n); return OK; }
result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream) { ENTER(); (void)stream; memcpy(to, (void *)from, n); return OK; }
result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream) { ENTER(); (void)stream; memmove((void *)to, (void *)from, n); return OK; }
result cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream) { ENTER(); (void)stream; memset((void *)to, value, n); return OK; }
result cuPointerGetAttribute(void *value, int attribute, uint64_t address) { trace(__func__); (void)value; (void)attribute; (void)address; return INVALID; }

result cuStreamCreate(void **stream, unsigned flags) { ENTER(); (void)flags; *stream = malloc(8); return OK; }
result cuStreamDestroy_v2(void *stream) { ENTER(); free(stream); return OK; }
result cuStreamSynchronize(void *stream) { ENTER(); (void)stream; return OK; }
result cuStreamQuery(void *stream) { ENTER(); return stream == (void *)0x77 ? NOT_READY : OK; }
result cuStreamWaitEvent(void *stream, void *event, unsigned flags) { ENTER(); (void)stream; (void)event; (void)flags; return OK; }

/* An event is the number of records so far; time goes by a millisecond a record. */
static _Atomic int records;
result cuEventCreate(void **event, unsigned flags) { ENTER(); (void)flags; *event = calloc(1, sizeof(int)); return OK; }
result cuEventDestroy_v2(void *event) { ENTER(); free(event); return OK; }
result cuEventRecord(void *event, void *stream) { ENTER(); (void)stream; *(int *)event = ++records; return OK; }
result cuEventQuery(void *event) { ENTER(); (void)event; return OK; }
result cuEventSynchronize(void *event) { ENTER(); (void)event; return OK; }

result cuEventElapsedTime(float *ms, int *start, int *end)
{
    ENTER();
    if (!*start || !*end)
        return 400;
    *ms = *end - *start;
    return OK;
}

/* PTX with "wrong" in it does not compile, with "newer" it is not understood. */
result cuModuleLoadDataEx(void **module, const char *image, unsigned n, const int *options, void **values)
{
    ENTER();
    if (strstr(image, "newer"))
        return 222;
    if (strstr(image, "wrong")) {
        for (unsigned i = 0; i + 1 < n; i++)
            if (options[i] == 5 && options[i + 1] == 6) {
                size_t room = (size_t)values[i + 1];
                char *log = values[i];
                size_t at = 0;
                for (int line = 1; line <= 20; line++)
                    at += snprintf(log + at, room - at, "ptxas application ptx input, line %d; error   : Unknown modifier\n", line);
                values[i + 1] = (void *)at;
            }
        return 218;
    }
    *module = strdup(image);
    return OK;
}

result cuModuleUnload(void *module) { ENTER(); free(module); return OK; }

struct function { char name[64]; int dynamic; };

result cuModuleGetFunction(struct function **function, const char *module, const char *name)
{
    ENTER();
    if (!strstr(module, name))
        return NOT_FOUND;
    *function = calloc(1, sizeof **function);  /* lives as long as the process */
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    (*function)->dynamic = 49152 - 4096;
    return OK;
}

result cuFuncGetAttribute(int *value, int attribute, struct function *function)
{
    ENTER();
    static const int plain[] = {640, 4096, 12, 24, 96};  /* threads, shared, constant, local, registers */
    if (attribute == 8)
        *value = function->dynamic;
    else if (attribute <= 4)
        *value = plain[attribute];
    else
        return INVALID;
    return OK;
}

result cuFuncSetAttribute(struct function *function, int attribute, int value)
{
    ENTER();
    if (attribute != 8 || value > 232448 - 4096)
        return INVALID;
    function->dynamic = value;
    return OK;
}

result cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    ENTER();
    (void)stream; (void)extra;
    if (number("FAKE_LAUNCH", 0))
        return number("FAKE_LAUNCH", 0);
    if (!gx || !gy || !gz || bx * by * bz > 640 || (int)shared > function->dynamic)
        return INVALID;
    if (!strcmp(function->name, "fault")) {
        fault = ILLEGAL_ADDRESS;
        return OK;
    }
    uint64_t sum = 0;
    for (int i = 1; i < atoi(function->name + 3); i++)
        sum += *(uint64_t *)params[i];
    **(uint64_t **)params[0] = sum;
    return OK;
}
