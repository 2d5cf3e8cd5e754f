// Lists: common neighbors of sorted adjacency lists, and compaction into a queue.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CHUNK = 4096 };

static int min(int a, int b) { return a < b ? a : b; }

static bool contains(const int32_t *values, int start, int stop, int wanted) {
    int low = start, high = stop - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if (values[middle] == wanted) return true;
        if (values[middle] < wanted)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return false;
}

// The number of values that are in both lists, of which the first one is not the longer one.
static int common(const int32_t *values, int a, int a_end, int b, int b_end) {
    int count = 0;
    if (8 * (a_end - a) < b_end - b) {
        for (int k = a; k < a_end; ++k) count += contains(values, b, b_end, values[k]);
        return count;
    }
    while (a < a_end && b < b_end) {
        const int u = values[a], v = values[b];
        count += u == v;
        a += u <= v;
        b += v <= u;
    }
    return count;
}

void common_neighbors(const int32_t *restrict starts, const int32_t *restrict neighbors,
                      const int32_t *restrict sources, const int32_t *restrict targets, int32_t *restrict counts,
                      int n) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int edge = 0; edge < n; ++edge) {
        const int a = starts[sources[edge]], a_end = starts[sources[edge] + 1];
        const int b = starts[targets[edge]], b_end = starts[targets[edge] + 1];
        counts[edge] = a_end - a > b_end - b ? common(neighbors, b, b_end, a, a_end)
                                             : common(neighbors, a, a_end, b, b_end);
    }
}

// Each chunk is gathered first, and then has one part of the queue, or two at its end.
void enqueue(const float *restrict energies, float threshold, float *restrict queue, int32_t *restrict head, int n,
             int length) {
#pragma omp parallel for
    for (int start = 0; start < n; start += CHUNK) {
        float alive[CHUNK];
        int count = 0, base;
        for (int i = start; i < min(start + CHUNK, n); ++i) {
            alive[count] = energies[i];
            count += energies[i] > threshold;
        }
#pragma omp atomic capture
        {
            base = *head;
            *head += count;
        }
        for (int i = 0; i < count;) {
            const int slot = (base + i) & (length - 1), part = min(count - i, length - slot);
            memcpy(queue + slot, alive + i, (size_t)part * sizeof *queue);
            i += part;
        }
    }
}
