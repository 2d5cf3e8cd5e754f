/* Streams and events. Part of libcuda.c. */

result cuStreamCreate(void **stream, unsigned flags)
{
    ENTER();
    if (number("FAKE_STREAMS", 0))
        return number("FAKE_STREAMS", 0);
    *stream = malloc(8);
    pthread_mutex_lock(&order);
    find_stream(*stream)->blocking = flags == 0;
    pthread_mutex_unlock(&order);
    return OK;
}

/* The handle may be given out again, for another stream. */
result cuStreamDestroy_v2(void *stream)
{
    ENTER();
    pthread_mutex_lock(&order);
    find_stream(stream)->live = 0;
    pthread_mutex_unlock(&order);
    free(stream);
    return OK;
}

/* 0x99 is a stream of the second device. */
result cuStreamGetCtx(void *stream, void **context) { ENTER(); *context = stream == (void *)0x99 ? (void *)0x1001l : current; return OK; }
result cuStreamSynchronize(void *stream) { ENTER(); REFUSE(stream_call(stream)); synchronize(stream); return OK; }

/* 0x77 is always busy. */
result cuStreamQuery(void *stream)
{
    ENTER(); REFUSE(stream_call(stream));
    if (stream == (void *)0x77)
        return NOT_READY;
    if (number("FAKE_BUSY", 0)) {
        pthread_mutex_lock(&order);
        int ready = is_behind(&host, &find_stream(stream)->at);
        pthread_mutex_unlock(&order);
        return ready ? OK : NOT_READY;
    }
    synchronize(stream);
    return OK;
}

/* An event is a time in milliseconds, and the work that it follows. Time passes by a millisecond at each record, and at
 * each launch. Streams run at the same time: between two events of one stream, only its own work takes time. */
struct event { int time, timed; struct stream *stream; int of_stream; clocks at; struct stream *captured; };
static int time_now;

static void pass_time(void *handle, int ms, struct event *event)
{
    pthread_mutex_lock(&order);
    struct stream *stream = find_stream(handle);
    time_now += ms;
    stream->time += ms;
    if (event)
        event->time = time_now, event->of_stream = stream->time, event->stream = stream;
    pthread_mutex_unlock(&order);
}

result cuEventCreate(struct event **event, unsigned flags) { ENTER(); *event = calloc(1, sizeof **event); (*event)->timed = !(flags & 2); return OK; }
result cuEventDestroy_v2(struct event *event) { ENTER(); free(event); return OK; }
result cuEventRecord(struct event *event, void *stream)
{
    ENTER();
    REFUSE(default_stream(stream));
    if ((event->captured = captured(stream)))
        return OK;
    event->at = step(stream);
    pass_time(stream, 1, event);
    return OK;
}

static result event_call(struct event *event) { return event->captured ? end_capture(event->captured, CAPTURED_EVENT) : OK; }

result cuEventQuery(struct event *event)
{
    ENTER();
    REFUSE(event_call(event));
    REFUSE(unsafe_call());
    if (number("FAKE_BUSY", 0))
        return is_behind(&host, &event->at) ? OK : NOT_READY;
    host_waits_for(&event->at);
    return OK;
}

result cuEventSynchronize(struct event *event) { ENTER(); REFUSE(event_call(event)); REFUSE(unsafe_call()); host_waits_for(&event->at); return OK; }

result cuStreamWaitEvent(void *stream, struct event *event, unsigned flags)
{
    ENTER();
    if (!stream)
        trace(current == (void *)0x1000l ? "cuStreamWaitEvent 0" : "cuStreamWaitEvent 1");
    (void)flags;
    REFUSE(default_stream(stream));
    struct stream *here = captured(stream);
    /* No stream of weft's joins a capture by itself. */
    if (here != event->captured)
        return end_capture(here ? here : event->captured, here ? ISOLATION : NOT_ALLOWED);
    if (here)
        return OK;
    pthread_mutex_lock(&order);
    follow(&find_stream(stream)->at, &event->at);
    pthread_mutex_unlock(&order);
    return OK;
}

result cuEventElapsedTime(float *ms, struct event *start, struct event *end)
{
    ENTER();
    if (!start->time || !end->time || !start->timed || !end->timed)
        return 400;
    *ms = start->stream == end->stream ? end->of_stream - start->of_stream : end->time - start->time;
    return OK;
}
