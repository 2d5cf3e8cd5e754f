/* Streams that are captured for a graph, and the calls that this does not allow: they fail and make the capture invalid. The
 * driver's own rules are these (CUDA programming guide, "Stream capture"), and stricter where weft must be: no memory comes or
 * goes in a stream that is captured, and none is copied from or to the host.
 */
enum { NOT_ALLOWED = 900, INVALIDATED = 901, ISOLATION = 905, IMPLICIT = 906, CAPTURED_EVENT = 907 };
enum { GLOBAL, THREAD_LOCAL, RELAXED };

static __thread int capture_mode = GLOBAL;

static result capture_kernel(struct graph *graph, void *function, const unsigned *sizes, void **params);
static result capture_copy(struct graph *graph, uint64_t to, uint64_t from, size_t n);
static result capture_fill(struct graph *graph, uint64_t to, unsigned char value, size_t n);
static struct graph *new_graph(void);

static result end_capture(struct stream *stream, result code)
{
    stream->invalid = 1;
    trace("a capture is invalid");
    return code;
}

/* The default stream follows every blocking one, which must not be captured then. */
static result default_stream(void *handle)
{
    for (int i = 0; i < n_streams && (uint64_t)handle <= 1; i++)
        if (streams[i].captured && streams[i].blocking)
            return end_capture(&streams[i], IMPLICIT);
    return OK;
}

/* A call that may affect any stream: an error while one is captured, unless the thread has relaxed its capture mode. */
static result unsafe_call(void)
{
    for (int i = 0; i < n_streams; i++) {
        struct stream *stream = &streams[i];
        int own = stream->captured && pthread_equal(stream->by, pthread_self());
        if (stream->captured && stream->mode != RELAXED && capture_mode != RELAXED
            && (own || (stream->mode == GLOBAL && capture_mode == GLOBAL)))
            return end_capture(stream, NOT_ALLOWED);
    }
    return OK;
}

/* A call that waits for the whole device. */
static result device_call(void)
{
    for (int i = 0; i < n_streams; i++)
        if (streams[i].captured)
            return end_capture(&streams[i], NOT_ALLOWED);
    return OK;
}

/* The stream, if it is captured. */
static struct stream *captured(void *handle)
{
    pthread_mutex_lock(&order);
    struct stream *stream = find_stream(handle);
    pthread_mutex_unlock(&order);
    return stream->captured ? stream : NULL;
}

/* A call that is never captured. */
static result stream_call(void *handle)
{
    struct stream *stream = captured(handle);
    return stream ? end_capture(stream, NOT_ALLOWED) : default_stream(handle);
}

#define REFUSE(call)            \
    do {                        \
        result refused = call;  \
        if (refused)            \
            return refused;     \
    } while (0)

result cuStreamBeginCapture_v2(void *handle, int mode)
{
    ENTER();
    struct stream *stream = find_stream(handle);
    if (stream == streams || stream->captured)
        return NOT_ALLOWED;
    stream->captured = new_graph();
    stream->invalid = 0;
    stream->mode = mode;
    stream->by = pthread_self();
    return OK;
}

result cuStreamEndCapture(void *handle, struct graph **graph)
{
    ENTER();
    struct stream *stream = find_stream(handle);
    *graph = stream->invalid ? NULL : stream->captured;
    stream->captured = NULL;
    return stream->invalid ? INVALIDATED : OK;
}

result cuStreamIsCapturing(void *handle, int *status)
{
    if (!current)
        return 201;
    struct stream *stream = find_stream(handle);
    for (int i = 0; i < n_streams && stream == streams; i++)
        if (streams[i].captured && streams[i].blocking)
            return IMPLICIT;
    *status = !stream->captured ? 0 : stream->invalid ? 2 : 1;
    return OK;
}

result cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return OK;
}
