/* Device memory: allocations, the pool, other processes and devices. Part of libcuda.c. */

/* Memory: a gibibyte, counted. Each allocation has its size before it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of those that are used, the pool has some, and keeps what it had once. */
static size_t used, pool_used, reserved;
static uint64_t threshold;

/* Which allocation fails, counted down, and how many then do. */
static int fails_at, n_fails;

void fake_no_memory(int at, int times)
{
    pthread_mutex_lock(&lock);
    fails_at = at;
    n_fails = times;
    pthread_mutex_unlock(&lock);
}

static int has_failed(void)
{
    pthread_mutex_lock(&lock);
    if (fails_at > 0)
        fails_at--;
    int fails = fails_at == 0 && n_fails > 0;
    if (fails)
        n_fails--;
    pthread_mutex_unlock(&lock);
    return fails;
}

/* Memory that has its size before it: of this process, or a file that other processes open, named by its address. */
static size_t *shared_file(const char *name, size_t bytes, int flags)
{
    int file = open(name, flags, 0600);
    struct stat known = {0};
    if (file < 0 || (bytes && ftruncate(file, (off_t)bytes)) || fstat(file, &known))
        return NULL;
    size_t *start = mmap(NULL, (size_t)known.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return start == MAP_FAILED ? NULL : start;
}

struct file { size_t *start; int opened; char name[52]; struct file *next; };
static struct file *files;

static size_t *room(size_t bytes, int pooled)
{
    if (pooled || !getenv("FAKE_SHARED"))
        return malloc(bytes);
    static int n_files;
    struct file *file = calloc(1, sizeof *file);
    char path[300];
    snprintf(file->name, sizeof file->name, "%d-%d", (int)getpid(), n_files++);
    snprintf(path, sizeof path, "%s/%s", getenv("FAKE_SHARED"), file->name);
    file->start = shared_file(path, bytes, O_RDWR | O_CREAT);
    file->next = files;
    files = file;
    return file->start;
}

static struct file *file_of(uint64_t address)
{
    struct file *file = files;
    while (file && (uint64_t)(file->start + 2) != address)
        file = file->next;
    return file;
}

static result take(uint64_t *address, size_t bytes, const clocks *now, int pooled)
{
    if (has_failed())
        return NO_MEMORY;
    pthread_mutex_lock(&lock);
    int fits = used + bytes <= 1ul << 30;
    if (fits)
        used += bytes, pool_used += pooled ? bytes : 0;
    if (pool_used > reserved)
        reserved = pool_used;
    pthread_mutex_unlock(&lock);
    if (!fits)
        return NO_MEMORY;
    size_t *start = room(bytes + 16, pooled);
    *start = bytes;
    *address = (uint64_t)(start + 2);
    struct memory *memory = malloc(sizeof *memory);
    pthread_mutex_lock(&order);
    *memory = (struct memory){*address, bytes, *now, current, pooled, 0, memories};
    memories = memory;
    pthread_mutex_unlock(&order);
    return OK;
}

static result give(uint64_t address, const clocks *now)
{
    int pooled = check_freed(address, now);
    size_t *start = (size_t *)address - 2;
    pthread_mutex_lock(&lock);
    used -= *start, pool_used -= pooled ? *start : 0;
    pthread_mutex_unlock(&lock);
    struct file *file = file_of(address);
    if (file)
        file->start = NULL;  /* mapped as long as the process lives */
    else
        free(start);
    return OK;
}

result cuMemAlloc_v2(uint64_t *address, size_t bytes) { ENTER(); REFUSE(unsafe_call()); return take(address, bytes, &host, 0); }
result cuMemFree_v2(uint64_t address) { ENTER(); REFUSE(unsafe_call()); return give(address, &host); }
#ifndef WITHOUT_POOLS
result cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) { ENTER(); REFUSE(stream_call(stream)); clocks now = step(stream); return take(address, bytes, &now, 1); }
#endif
result cuMemFreeAsync(uint64_t address, void *stream) { ENTER(); REFUSE(stream_call(stream)); clocks now = step(stream); return give(address, &now); }

/* Memory that the pool caches is not free. */
result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER();
    *total = 1ul << 30;
    *free_bytes = *total - (used - pool_used) - reserved;
    return OK;
}

result cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = (void *)(0x2000l + device); return OK; }

result cuMemPoolGetAttribute(void *pool, int attribute, uint64_t *value)
{
    (void)pool;
    *value = attribute == 4 ? threshold : attribute == 5 ? reserved : pool_used;
    return OK;
}

result cuMemPoolTrimTo(void *pool, size_t keep)
{
    ENTER();
    (void)pool;
    pthread_mutex_lock(&lock);
    reserved = pool_used > keep ? pool_used : keep < reserved ? keep : reserved;
    pthread_mutex_unlock(&lock);
    return OK;
}

struct access { int kind, device, flags; };
result cuMemPoolSetAccess(void *pool, const struct access *access, size_t n)
{
    ENTER();
    char call[100];
    snprintf(call, sizeof call, "cuMemPoolSetAccess %d %d", (int)((uint64_t)pool - 0x2000), access->device);
    trace(call);
    return n == 1 && access->kind == 1 && access->flags == 3 ? OK : INVALID;
}

result cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    trace(__func__);
    *can = device != peer && number("FAKE_PEERS", 0);
    return OK;
}

result cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    ENTER();
    static int enabled[2];
    int here = (int)((uint64_t)current - 0x1000);
    if (flags || peer == current)
        return INVALID;
    if (!number("FAKE_PEERS", 0))
        return 217;
    return enabled[here]++ ? 704 : OK;
}

result cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
    ENTER();
    pthread_mutex_lock(&order);
    struct memory *memory = *find_memory(address);
    if (memory)
        *base = memory->start, *bytes = memory->bytes;
    pthread_mutex_unlock(&order);
    return memory ? OK : NOT_FOUND;
}

/* A handle is the name of the file. */
struct handle { char name[64]; };

result cuIpcGetMemHandle(struct handle *handle, uint64_t address)
{
    ENTER();
    struct file *file = file_of(address);
    if (!file)
        return INVALID;
    memset(handle, 0, sizeof *handle);
    memcpy(handle->name, file->name, sizeof file->name);
    return OK;
}

result cuIpcOpenMemHandle_v2(uint64_t *address, struct handle handle, unsigned flags)
{
    ENTER();
    if (flags != 1 || !getenv("FAKE_SHARED"))
        return INVALID;
    if (atoi(handle.name) == getpid())
        return 201;
    char path[400];
    snprintf(path, sizeof path, "%s/%.63s", getenv("FAKE_SHARED"), handle.name);
    size_t *start = shared_file(path, 0, O_RDWR);
    if (!start)
        return INVALID;
    struct file *file = calloc(1, sizeof *file);
    file->start = start;
    file->opened = 1;
    file->next = files;
    files = file;
    *address = (uint64_t)(start + 2);
    return OK;
}

result cuIpcCloseMemHandle(uint64_t address)
{
    ENTER();
    struct file *file = file_of(address);
    if (!file || !file->opened)
        return INVALID;
    file->start = NULL;
    return OK;
}

result cuMemPoolSetAttribute(void *pool, int attribute, uint64_t *value)
{
    (void)pool;
    trace(*value == UINT64_MAX ? "cuMemPoolSetAttribute(keep all)" : "cuMemPoolSetAttribute(other)");
    threshold = *value;
    return attribute == 4 ? OK : INVALID;
}
