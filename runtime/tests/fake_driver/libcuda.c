/* A fake CUDA driver without a GPU, for tests. Device memory is host memory, kernels are a few lines of C, and environment
 * variables make calls fail. It implements only the functions that weft calls.
 *
 *   FAKE_INIT=code       cuInit fails
 *   FAKE_VERSION=12040   the result of cuDriverGetVersion
 *   FAKE_DEVICES=2       the number of devices
 *   FAKE_CC=90           their compute capability, times ten
 *   FAKE_CC1=90          the compute capability of the second device
 *   FAKE_POOLS=0         no stream-ordered allocation
 *   FAKE_HMM=1           the device accesses pageable host memory
 *   FAKE_ATS=1           it uses the host's page tables for that
 *   FAKE_LAUNCH=code     cuLaunchKernel and cuLaunchCooperativeKernel fail
 *   FAKE_NODES=code      cuGraphAddKernelNode fails
 *   FAKE_STREAMS=code    cuStreamCreate fails
 *   FAKE_LINK=code       cuLinkComplete fails
 *   FAKE_CUBIN=code      loading linked code fails
 *   FAKE_LAZY=code       getting a function of linked code fails
 *   FAKE_PARAMS=code     cuFuncGetParamInfo fails
 *   FAKE_SLOW=ms         the duration of a copy to a variable of a module
 *   FAKE_RACES=trace     freeing memory that may be in use is traced; otherwise it aborts the process
 *   FAKE_BUSY=1          streams and events are not ready until the host has waited for them
 *   FAKE_LATE=1          copies of page-locked memory are delayed until the host waits for them
 *   FAKE_SHARED=folder   cuMemAlloc maps files in this folder, which other processes can open
 *   FAKE_TIMES=32:5,64:9 launches with 32 threads per block take 5 ms more, with 64 threads 9 ms more
 *   FAKE_PEERS=1         devices can access each other's memory
 *   FAKE_CONCURRENT=0    devices and the host cannot access managed memory concurrently
 *   FAKE_TRACE=path      the name of each call except those for error strings is appended to this file
 *
 * Work is executed immediately, but the driver tracks which orders a GPU is allowed to choose: see "Order".
 *
 * `fake_no_memory(at, times)` makes `times` allocations fail, beginning with number `at` from now on, counted from 1.
 *
 * Kernels, by name: "sum<n>" adds slots 1 to n-1 and stores the sum where slot 0 points. "new<n>" does the same, and
 * requires that all earlier uses of slot 0's memory happen before, as for a reused allocation. "fault" breaks the context.
 * "prints" prints "<i> says hello to a host of letters" as many times as slot 0 says; "prints_and_faults" then breaks the
 * context. "store_4_1" has a pointer and parameters of 4 bytes and 1 byte, and stores their bytes, one after the other, where
 * the pointer points. All other kernels do nothing. A launch of a kernel of an unloaded module aborts the process.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
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

/* The start of most calls: traces the call, and fails without a context or after a fault. */
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
    case 217: *text = "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"; return OK;
    case 704: *text = "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"; return OK;
    case 100: *text = "CUDA_ERROR_NO_DEVICE"; return OK;
    case 201: *text = "CUDA_ERROR_INVALID_CONTEXT"; return OK;
    case 218: *text = "CUDA_ERROR_INVALID_PTX"; return OK;
    case 222: *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return OK;
    case 400: *text = "CUDA_ERROR_INVALID_HANDLE"; return OK;
    case NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; return OK;
    case NOT_READY: *text = "CUDA_ERROR_NOT_READY"; return OK;
    case 900: *text = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return OK;
    case 901: *text = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; return OK;
    case 905: *text = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"; return OK;
    case 906: *text = "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"; return OK;
    case 907: *text = "CUDA_ERROR_CAPTURED_EVENT"; return OK;
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
    long capability = number("FAKE_CC", 90);
    if (device)
        capability = number("FAKE_CC1", capability);
    switch (attribute) {
    case 1: *value = 1024; return OK;                       /* threads a block */
    case 2: case 3: *value = 1024; return OK;               /* block in x, y */
    case 4: *value = 64; return OK;                         /* block in z */
    case 5: *value = 2147483647; return OK;                 /* grid in x */
    case 6: case 7: *value = 65535; return OK;              /* grid in y, z */
    case 8: *value = 49152; return OK;                      /* shared memory */
    case 10: *value = 32; return OK;                        /* warp */
    case 12: *value = 65536; return OK;                     /* registers a block */
    case 17: *value = 0; return OK;                         /* time limit of kernels */
    case 87: *value = 2; return OK;                         /* float32 to float64 */
    case 16: *value = 132; return OK;                       /* multiprocessors */
    case 33: *value = device; return OK;                    /* PCI bus, device, domain */
    case 34: *value = 5; return OK;
    case 50: *value = 0; return OK;
    case 75: *value = capability / 10; return OK;           /* compute capability */
    case 76: *value = capability % 10; return OK;
    case 89: *value = number("FAKE_CONCURRENT", 1); return OK;  /* managed memory at any time */
    case 88: *value = number("FAKE_HMM", 0); return OK;     /* reads host memory */
    case 100: *value = number("FAKE_ATS", 0); return OK;   /* by the host's page tables */
    case 97: *value = 232448; return OK;                    /* shared memory with opting in */
    case 120: *value = capability >= 90; return OK;         /* clusters */
    case 115: *value = number("FAKE_POOLS", 1); return OK;  /* stream-ordered memory */
    default: return INVALID;
    }
}

/* Order: each stream has a vector clock. Its entry i is the last step of stream i that happens before the stream's next
 * step. Steps of one stream are in order. The default stream is ordered with all blocking streams. An event passes its
 * stream's clock to the streams that wait for it, and all later steps happen after the host's clock. An unknown handle is
 * a non-blocking stream of another library; handle 2 is the per-thread default stream. */
enum { STREAMS = 256 };
typedef struct { unsigned step[STREAMS]; } clocks;
struct graph;
/* A stream under capture has a graph. A call that captures do not allow invalidates it. */
struct stream { uint64_t handle; int blocking, live, time; clocks at; struct graph *captured; int invalid, mode; pthread_t by; };
static struct stream streams[STREAMS] = {{.blocking = 1, .live = 1}};
static int n_streams = 1;
static clocks host;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static __thread char own;

static void follow(clocks *one, const clocks *other)
{
    for (int i = 0; i < STREAMS; i++)
        if (one->step[i] < other->step[i])
            one->step[i] = other->step[i];
}

static struct stream *find_stream(void *handle)
{
    uint64_t key = (uint64_t)handle == 1 ? 0 : (uint64_t)handle == 2 ? (uint64_t)&own : (uint64_t)handle;
    for (int i = 0; i < n_streams; i++)
        if (streams[i].handle == key && streams[i].live)
            return &streams[i];
    if (n_streams == STREAMS)
        abort();
    streams[n_streams] = (struct stream){.handle = key, .live = 1};
    return &streams[n_streams++];
}

/* Starts the next step of a stream. Returns its clock: the steps that happen before it. */
static clocks step(void *handle)
{
    pthread_mutex_lock(&order);
    struct stream *stream = find_stream(handle);
    follow(&stream->at, &host);
    for (int i = 0; i < n_streams && stream->blocking; i++)
        if (streams[i].blocking && (stream == streams || i == 0))
            follow(&stream->at, &streams[i].at);
    stream->at.step[stream - streams]++;
    clocks now = stream->at;
    pthread_mutex_unlock(&order);
    return now;
}

static void make_late_copies(const clocks *behind);

static void host_waits_for(const clocks *one)
{
    pthread_mutex_lock(&order);
    follow(&host, one);
    make_late_copies(&host);
    pthread_mutex_unlock(&order);
}

static void host_waits_for_all(void)
{
    for (int i = 0; i < n_streams; i++)
        host_waits_for(&streams[i].at);
}

#include "captures.c"

/* An allocation: its size, and the latest use by each stream. */
struct memory { uint64_t start; size_t bytes; clocks used; void *context; int pooled, managed; struct memory *next; };
static struct memory *memories;

static struct memory **find_memory(uint64_t address)
{
    struct memory **at = &memories;
    while (*at && !((*at)->start <= address && address < (*at)->start + (*at)->bytes))
        at = &(*at)->next;
    return at;
}

static void use(uint64_t address, const clocks *now)
{
    pthread_mutex_lock(&order);
    struct memory *memory = *find_memory(address);
    if (memory)
        follow(&memory->used, now);
    pthread_mutex_unlock(&order);
}

static int is_behind(const clocks *now, const clocks *used)
{
    for (int i = 0; i < n_streams; i++)
        if (used->step[i] > now->step[i])
            return 0;
    return 1;
}

/* Checks memory to be freed: all its uses must happen before. */
static int check_freed(uint64_t address, const clocks *now)
{
    pthread_mutex_lock(&order);
    struct memory **at = find_memory(address), *memory = *at;
    if (!memory || memory->start != address)
        abort();
    if (!is_behind(now, &memory->used)) {
        trace("freed while in use");
        if (!getenv("FAKE_RACES")) {
            fprintf(stderr, "memory is freed while it may be in use\n");
            abort();
        }
    }
    /* Pending copies must happen before as well. */
    make_late_copies(now);
    int pooled = memory->pooled;
    *at = memory->next;
    free(memory);
    pthread_mutex_unlock(&order);
    return pooled;
}

/* Checks memory to be reused: all earlier uses must happen before. */
static void check_new(uint64_t address, const clocks *now)
{
    pthread_mutex_lock(&order);
    struct memory *memory = *find_memory(address);
    if (memory && !is_behind(now, &memory->used)) {
        trace("given out while in use");
        if (!getenv("FAKE_RACES")) {
            fprintf(stderr, "memory is given out while it may be in use\n");
            abort();
        }
    }
    pthread_mutex_unlock(&order);
}

result cuDevicePrimaryCtxRetain(void **context, int device) { trace(__func__); *context = (void *)(0x1000l + device); return OK; }
result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; trace(__func__); return OK; }
result cuCtxGetCurrent(void **context) { trace(__func__); *context = current; return forked() ? 3 : OK; }
result cuCtxSetCurrent(void *context) { trace(__func__); current = context; return OK; }
result cuCtxGetDevice(int *device) { trace(__func__); *device = (int)((uint64_t)current - 0x1000); return current ? OK : 201; }
result cuProfilerStart(void) { ENTER(); return OK; }
result cuProfilerStop(void) { ENTER(); return OK; }
result cuCtxSynchronize(void) { ENTER(); REFUSE(device_call()); host_waits_for_all(); return OK; }

/* The stack size of a thread. */
static size_t stack_bytes = 1024;
result cuCtxGetLimit(size_t *value, unsigned limit) { trace(__func__); *value = stack_bytes; return limit == 0 ? OK : 1; }
result cuCtxSetLimit(unsigned limit, size_t value) { trace(__func__); stack_bytes = value; return limit == 0 ? OK : 1; }

/* Tests push at most one context. */
static __thread void *below;
result cuCtxPushCurrent_v2(void *context) { trace(__func__); below = current; current = context; return OK; }
result cuCtxPopCurrent_v2(void **context) { trace(__func__); *context = current; current = below; return OK; }

#include "memory.c"

/* Executes a step of a stream that uses memory at two addresses, which may be equal. */
static void touch(void *stream, uint64_t one, uint64_t other)
{
    clocks now = step(stream);
    use(one, &now);
    use(other, &now);
}

static void synchronize(void *stream)
{
    clocks now = step(stream);
    host_waits_for(&now);
}

/* Variables of a module in device memory. They are preserved when it is unloaded, to detect later writes. */
struct words { uint64_t at[3]; char *module; struct words *next; };
static struct words *_Atomic all_words;

static struct words *words_of(const char *module)
{
    struct words *words = all_words;
    while (words && words->module != module)
        words = words->next;
    return words;
}

static struct words *words_at(uint64_t address)
{
    struct words *words = all_words;
    while (words && (address < (uint64_t)words->at || address >= (uint64_t)(words->at + 3)))
        words = words->next;
    return words;
}

static void write_word(struct words *words)
{
    usleep(1000 * number("FAKE_SLOW", 0));
    if (words->module)
        return;
    fprintf(stderr, "a global variable of an unloaded module is written\n");
    abort();
}

#include "late.c"

result cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n)
{
    ENTER(); REFUSE(default_stream(NULL)); REFUSE(unsafe_call());
    if (words_at(to))
        write_word(words_at(to));
    memcpy((void *)to, from, n);
    touch(NULL, to, to);
    synchronize(NULL);
    return OK;
}

result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream) { ENTER(); REFUSE(stream_call(stream)); touch(stream, to, to); copy_async((void *)to, from, n, from, stream); return OK; }
result cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { ENTER(); REFUSE(default_stream(NULL)); REFUSE(unsafe_call()); touch(NULL, from, from); synchronize(NULL); memcpy(to, (void *)from, n); return OK; }
result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream) { ENTER(); REFUSE(stream_call(stream)); touch(stream, from, from); copy_async(to, (void *)from, n, to, stream); return OK; }
result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream) { ENTER(); REFUSE(default_stream(stream)); if (captured(stream)) return captured(stream)->invalid ? INVALIDATED : capture_copy(captured(stream)->captured, to, from, n); touch(stream, to, from); memmove((void *)to, (void *)from, n); return OK; }
result cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream) { ENTER(); REFUSE(default_stream(stream)); if (captured(stream)) return captured(stream)->invalid ? INVALIDATED : capture_fill(captured(stream)->captured, to, value, n); touch(stream, to, to); memset((void *)to, value, n); return OK; }

/* Knows only the device of an address, and whether the current device can access it. */
result cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    trace(__func__);
    pthread_mutex_lock(&order);
    struct memory *memory = *find_memory(address);
    void *context = memory ? memory->context : NULL;
    int pooled = memory && memory->pooled;
    pthread_mutex_unlock(&order);
    if (attribute == 10 && context)
        return *(int *)value = !pooled, OK;
    if (attribute == 9 && context)
        return *(int *)value = (int)((uint64_t)context - 0x1000), OK;
    if (attribute == 2 && context)
        return *(int *)value = 2, OK;
    if (attribute == 3 && context == current)
        return *(uint64_t *)value = address, OK;
    return INVALID;
}

/* Copies rows from the host (memory type 1) to the device (2). */
struct copy_2d {
    size_t from_x, from_y; int from_type; const char *from_host; uint64_t from_device; void *from_array; size_t from_pitch;
    size_t to_x, to_y; int to_type; char *to_host; uint64_t to_device; void *to_array; size_t to_pitch;
    size_t width, height;
};

result cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream)
{
    ENTER(); REFUSE(stream_call(stream));
    if (copy->from_type != 1 || copy->to_type != 2 || copy->from_x || copy->from_y || copy->to_x || copy->to_y
        || copy->to_pitch < copy->width || copy->from_pitch < copy->width || copy->to_pitch > 2147483647)
        return INVALID;
    touch(stream, copy->to_device, copy->to_device);
    for (size_t row = 0; row < copy->height; row++)
        memcpy((char *)copy->to_device + row * copy->to_pitch, copy->from_host + row * copy->from_pitch, copy->width);
    return OK;
}

#include "streams.c"
#include "code.c"

result cuMemAllocManaged(uint64_t *address, size_t n, unsigned flags)
{
    ENTER(); REFUSE(unsafe_call());
    (void)flags;
    result done = take(address, n, &host, 0);
    if (done == OK)
        (*find_memory(*address))->managed = 1;
    return done;
}

result cuMemHostRegister_v2(void *memory, size_t n, unsigned flags) { ENTER(); REFUSE(unsafe_call()); (void)memory; (void)flags; return n ? OK : INVALID; }
result cuMemHostUnregister(void *memory) { ENTER(); REFUSE(unsafe_call()); (void)memory; return OK; }
result cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags) { ENTER(); (void)flags; *address = (uint64_t)memory; return OK; }

struct function {
    char name[64];
    int dynamic, large_clusters;
    struct words *words;
    const char *module;  /* NULL after it is unloaded */
    struct function *next;
};
static struct function *all_functions;
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

/* The size of a parameter; 0 after the last one. */
static size_t parameter_size(const struct function *function, size_t index)
{
    if (!strncmp(function->name, "sum", 3))
        return index < (size_t)atol(function->name + 3) ? 8 : 0;
    if (strncmp(function->name, "store", 5))
        return 0;
    const char *at = function->name;
    for (size_t i = 0; at && i < index; i++)
        at = strchr(at + 1, '_');
    return !index ? 8 : at ? (size_t)atol(at + 1) : 0;
}

#ifndef WITHOUT_LIBRARIES
result cuFuncGetParamInfo(struct function *function, size_t index, size_t *offset, size_t *size)
{
    if (number("FAKE_PARAMS", 0))
        return number("FAKE_PARAMS", 0);
    *size = parameter_size(function, index);
    *offset = 0;
    return *size ? OK : INVALID;
}
#endif

result cuFuncSetCacheConfig(struct function *function, int preference)
{
    (void)function;
    char text[64];
    snprintf(text, sizeof text, "cuFuncSetCacheConfig(%d)", preference);
    trace(text);
    return preference >= 0 && preference <= 3 ? OK : INVALID;
}

result cuModuleGetFunction(struct function **function, const char *module, const char *name)
{
    ENTER();
    if (!strstr(module, name))
        return NOT_FOUND;
    if (is_cubin(module) && number("FAKE_LAZY", 0))
        return number("FAKE_LAZY", 0);
    *function = calloc(1, sizeof **function);  /* lives as long as the process */
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    (*function)->dynamic = 49152 - 4096;
    (*function)->words = words_of(module);
    (*function)->module = module;
    pthread_mutex_lock(&functions_lock);
    (*function)->next = all_functions;
    all_functions = *function;
    pthread_mutex_unlock(&functions_lock);
    return OK;
}

static void forget_functions(const char *module)
{
    pthread_mutex_lock(&functions_lock);
    for (struct function *function = all_functions; function; function = function->next)
        if (function->module == module)
            function->module = NULL;
    pthread_mutex_unlock(&functions_lock);
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
    if (attribute == 14) {
        function->large_clusters = value;
        return OK;
    }
    if (attribute == 9 && value >= -1 && value <= 100) {
        char text[64];
        snprintf(text, sizeof text, "cuFuncSetAttribute(carveout %d)", value);
        trace(text);
        return OK;
    }
    if (attribute != 8 || value > 232448 - 4096)
        return INVALID;
    function->dynamic = value;
    return OK;
}

result cuKernelSetAttribute(int attribute, int value, struct function *kernel, int device)
{
    (void)device;
    return cuFuncSetAttribute(kernel, attribute, value);
}

/* Prints one record, as compiled code stores it for the host. */
static void print(uint64_t *page, uint64_t number)
{
    static const char format[] = "%lld says hello to %s\n", text[] = "a host of letters";
    uint64_t record[16] = {0}, length = sizeof format - 1, at = 2;
    uint64_t *head = (uint64_t *)page[2], room = page[3] / 8;
    record[1] = (uint64_t)2 << 32 | length;
    memcpy(record + at, format, length);
    at += (length + 7) / 8;
    record[at++] = number;
    record[at++] = strlen(text);
    memcpy(record + at, text, strlen(text));
    at += (strlen(text) + 7) / 8;
    if (head[0] + 8 * at > page[0] + page[3]) {
        page[1] = ++head[1];
        return;
    }
    for (uint64_t i = 1; i < at; i++)
        page[8 + (head[0] / 8 + i) % room] = record[i];
    __atomic_store_n(&page[8 + head[0] / 8 % room], 8 * at, __ATOMIC_RELEASE);
    head[0] += 8 * at;
}

/* Advances the clock of the events by the time of a launch. */
static void take_time(void *stream, unsigned threads)
{
    for (const char *at = getenv("FAKE_TIMES"); at && *at; at += strcspn(at, ","), at += *at == ',') {
        unsigned of, ms;
        if (sscanf(at, "%u:%u", &of, &ms) == 2 && of == threads)
            pass_time(stream, ms, NULL);
    }
}

result cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    ENTER();
    (void)extra;
    if (!function->module) {
        fprintf(stderr, "a kernel of an unloaded module is launched: %s\n", function->name);
        abort();
    }
    if (number("FAKE_LAUNCH", 0))
        return number("FAKE_LAUNCH", 0);
    if (!gx || !gy || !gz || bx * by * bz > 640 || (int)shared > function->dynamic)
        return INVALID;
    REFUSE(default_stream(stream));
    if (captured(stream)) {
        unsigned sizes[] = {gx, gy, gz, bx, by, bz, shared};
        return captured(stream)->invalid ? INVALIDATED : capture_kernel(captured(stream)->captured, function, sizes, params);
    }
    take_time(stream, bx * by * bz);
    if (!strcmp(function->name, "fault")) {
        fault = ILLEGAL_ADDRESS;
        return OK;
    }
    if (!strcmp(function->name, "prints") || !strcmp(function->name, "prints_and_faults")) {
        for (uint64_t i = 0; i < *(uint64_t *)params[0]; i++)
            print((uint64_t *)function->words->at[2], i);
        if (function->name[6])
            fault = ILLEGAL_ADDRESS;
        return OK;
    }
    if (!strcmp(function->name, "raises")) {
        uint64_t *words = function->words->at, *record = (uint64_t *)words[1];
        /* The first launch claims the fault: fault 1 of thread 3 of block (0, 2), through call 0. */
        if (!words[0]) {
            words[0] = 1;
            record[1] = 1, record[2] = 3, record[6] = 2, record[8] = (uint64_t)-5, record[9] = 4, record[10] = 1, record[11] = 0;
            record[0] = 1;
        }
        return OK;
    }
    if (!strncmp(function->name, "store", 5)) {
        char *to = *(char **)params[0];
        for (size_t i = 1; parameter_size(function, i); to += parameter_size(function, i++))
            memcpy(to, params[i], parameter_size(function, i));
        return OK;
    }
    clocks now = step(stream);
    int is_new = !strncmp(function->name, "new", 3);
    /* Other kernels do nothing, for example weft's own for device arrays. */
    if ((strncmp(function->name, "sum", 3) && !is_new) || function->name[3] < '1' || function->name[3] > '9')
        return OK;
    if (is_new)
        check_new(*(uint64_t *)params[0], &now);
    for (int i = 0; i < atoi(function->name + 3); i++)
        use(*(uint64_t *)params[i], &now);
    uint64_t sum = 0;
    for (int i = 1; i < atoi(function->name + 3); i++)
        sum += *(uint64_t *)params[i];
    **(uint64_t **)params[0] = sum;
    return OK;
}

struct launch_attribute { int id, pad; union { char all[64]; int cooperative; unsigned cluster[3]; } value; };
struct launch_config { unsigned grid[3], block[3], shared; void *stream; struct launch_attribute *attributes; unsigned n; };

result cuLaunchKernelEx(const struct launch_config *config, struct function *function, void **params, void **extra)
{
    char told[128] = "cuLaunchKernelEx";
    for (unsigned i = 0; i < config->n; i++) {
        struct launch_attribute *given = &config->attributes[i];
        unsigned *size = given->value.cluster;
        if (given->id == 4)
            snprintf(told + strlen(told), sizeof told - strlen(told), " cluster %u %u %u", size[0], size[1], size[2]);
        else if (given->id == 2)
            snprintf(told + strlen(told), sizeof told - strlen(told), " cooperative %d", given->value.cooperative);
        else
            return INVALID;
        if (given->id == 4 && size[0] * size[1] * size[2] > (function->large_clusters ? 16 : 8))
            return 912;
    }
    trace(told);
    const unsigned *g = config->grid, *b = config->block;
    return cuLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2], config->shared, config->stream, params, extra);
}

result cuLaunchCooperativeKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, void *stream, void **params)
{
    ENTER();
    if (gx * gy * gz > 8)
        return 720;
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct function *function, int threads, size_t shared)
{
    ENTER();
    if (!function || threads <= 0)
        return INVALID;
    /* The limits: 96 registers per thread, 4 KiB of static shared memory plus 1 KiB reserved by the driver, 2048
       threads, 32 blocks. */
    int most = 65536 / (96 * ((threads + 31) / 32 * 32));
    if (most > (int)(233472 / (shared + 4096 + 1024)))
        most = 233472 / (shared + 4096 + 1024);
    if (most > 2048 / threads)
        most = 2048 / threads;
    *blocks = most > 32 ? 32 : most;
    return OK;
}

#include "graphs.c"
