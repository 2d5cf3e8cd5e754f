// saxpy on persistent threads, each with one contiguous share: what weft's CPU executor is compared with.
#include <pthread.h>
#include <stddef.h>

enum { MOST_THREADS = 1024 };

static struct {
    float a;
    const float *x, *y;
    float *out;
    ptrdiff_t n;
} job;
static int n_threads;
static pthread_t threads[MOST_THREADS];
static pthread_barrier_t begin, end;
static int stopping;

static void share(ptrdiff_t rank) {
    // Shares start at multiples of 16 elements, a cache line.
    ptrdiff_t lines = (job.n + 15) / 16;
    ptrdiff_t first = 16 * (lines * rank / n_threads), last = 16 * (lines * (rank + 1) / n_threads);
    if (last > job.n) last = job.n;
    const float a = job.a, *restrict x = job.x, *restrict y = job.y;
    float *restrict out = job.out;
    for (ptrdiff_t i = first; i < last; ++i) out[i] = a * x[i] + y[i];
}

static void *worker(void *rank) {
    for (;;) {
        pthread_barrier_wait(&begin);
        if (stopping) return NULL;
        share((ptrdiff_t)rank);
        pthread_barrier_wait(&end);
    }
}

// Starts all threads but the caller's own, which takes share 0. Gives 0, or an error number.
int saxpy_start(int count) {
    if (count < 1 || count > MOST_THREADS) return -1;
    n_threads = count;
    stopping = 0;
    int status = pthread_barrier_init(&begin, NULL, (unsigned)count);
    if (!status) status = pthread_barrier_init(&end, NULL, (unsigned)count);
    for (ptrdiff_t rank = 1; rank < count && !status; ++rank)
        status = pthread_create(&threads[rank], NULL, worker, (void *)rank);
    return status;
}

void saxpy_run(float a, const float *x, const float *y, float *out, ptrdiff_t n) {
    job.a = a, job.x = x, job.y = y, job.out = out, job.n = n;
    pthread_barrier_wait(&begin);
    share(0);
    pthread_barrier_wait(&end);
}

void saxpy_stop(void) {
    stopping = 1;
    pthread_barrier_wait(&begin);
    for (int rank = 1; rank < n_threads; ++rank) pthread_join(threads[rank], NULL);
}
