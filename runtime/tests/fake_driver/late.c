/* With FAKE_LATE=1 copies between the device and page-locked memory are made when the host has waited for them, and no sooner:
 * who uses the memory before has what was there. Part of libcuda.c. */
struct locked { char *start; size_t bytes; struct locked *next; };
static struct locked *all_locked;
struct late { char *to; const char *from; size_t bytes; clocks at; struct late *next; };
static struct late *all_late;

static int is_locked(const void *address)
{
    for (struct locked *at = all_locked; at; at = at->next)
        if (at->start <= (const char *)address && (const char *)address < at->start + at->bytes)
            return 1;
    return 0;
}

/* Those that come before a point, in their order. The lock is held. */
static void make_late_copies(const clocks *behind)
{
    for (struct late **at = &all_late; *at;) {
        struct late *one = *at;
        if (!is_behind(behind, &one->at)) {
            at = &one->next;
            continue;
        }
        memcpy(one->to, one->from, one->bytes);
        *at = one->next;
        free(one);
    }
}

static void copy_async(void *to, const void *from, size_t bytes, const void *of_host, void *stream)
{
    clocks now = step(stream);
    pthread_mutex_lock(&order);
    if (number("FAKE_LATE", 0) && is_locked(of_host)) {
        struct late **end = &all_late;
        while (*end)
            end = &(*end)->next;
        *end = malloc(sizeof **end);
        **end = (struct late){to, from, bytes, now, NULL};
    } else {
        memcpy(to, from, bytes);
    }
    pthread_mutex_unlock(&order);
}

result cuMemHostAlloc(void **memory, size_t n, unsigned flags)
{
    ENTER(); REFUSE(unsafe_call());
    (void)flags;
    if (has_failed())
        return NO_MEMORY;
    struct locked *one = malloc(sizeof *one);
    *memory = calloc(1, n);
    pthread_mutex_lock(&order);
    *one = (struct locked){*memory, n, all_locked};
    all_locked = one;
    pthread_mutex_unlock(&order);
    return OK;
}

result cuMemFreeHost(void *memory)
{
    ENTER(); REFUSE(unsafe_call());
    pthread_mutex_lock(&order);
    for (struct late *at = all_late; at; at = at->next)
        if (at->to == memory || at->from == memory)
            abort();
    for (struct locked **at = &all_locked; *at; at = &(*at)->next)
        if ((*at)->start == memory) {
            struct locked *gone = *at;
            *at = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&order);
    free(memory);
    return OK;
}
