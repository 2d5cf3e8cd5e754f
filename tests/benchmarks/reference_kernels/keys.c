// Integers as keys: k-mers of DNA counted in a hash table, and xxHash of records of different lengths.
#include <stdint.h>
#include <string.h>

enum { K = 15, CHUNK = 1 << 13 };
#define EMPTY 0xffffffffu
#define PRIME1 2654435761u
#define PRIME2 2246822519u
#define PRIME3 3266489917u
#define PRIME4 668265263u
#define PRIME5 374761393u

static int min(int a, int b) { return a < b ? a : b; }

static uint32_t mixed(uint32_t key) {
    key = (key ^ (key >> 16)) * 0x85ebca6bu;
    key = (key ^ (key >> 13)) * 0xc2b2ae35u;
    return key ^ (key >> 16);
}

static void count(uint32_t key, uint32_t *keys, uint32_t *counts, uint32_t mask) {
    for (uint32_t slot = mixed(key) & mask;; slot = (slot + 1) & mask) {
        uint32_t old = EMPTY;
        if (__atomic_compare_exchange_n(&keys[slot], &old, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || old == key) {
#pragma omp atomic
            ++counts[slot];
            return;
        }
    }
}

// Chunks with the letters before them that their first k-mers need.
void count_kmers(const uint8_t *restrict letters, uint32_t *keys, uint32_t *counts, int n, int slots) {
    const uint32_t most = (1u << 2 * K) - 1, mask = (uint32_t)slots - 1;
#pragma omp parallel for
    for (int start = 0; start < n; start += CHUNK) {
        uint32_t forward = 0, backward = 0;
        int length = 0;
        for (int i = start; i < min(start + CHUNK + K - 1, n); ++i) {
            const uint32_t letter = letters[i];
            if (letter > 3) {
                length = 0;
                continue;
            }
            forward = (forward << 2 | letter) & most;
            backward = backward >> 2 | (3 - letter) << (2 * K - 2);
            if (++length >= K) count(forward < backward ? forward : backward, keys, counts, mask);
        }
    }
}

static inline uint32_t rotated(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

static inline uint32_t rounded(uint32_t accumulator, uint32_t word) {
    return rotated(accumulator + word * PRIME2, 13) * PRIME1;
}

static inline uint32_t word_at(const uint8_t *data) {
    return data[0] | data[1] << 8 | data[2] << 16 | (uint32_t)data[3] << 24;
}

void xxhash32(const uint8_t *restrict data, const int32_t *restrict offsets, uint32_t seed, uint32_t *restrict out,
              int n) {
#pragma omp parallel for
    for (int record = 0; record < n; ++record) {
        const int end = offsets[record + 1], length = end - offsets[record];
        int i = offsets[record];
        uint32_t h = seed + PRIME5;
        if (length >= 16) {
            uint32_t a = seed + PRIME1 + PRIME2, b = seed + PRIME2, c = seed, d = seed - PRIME1;
            for (; i + 16 <= end; i += 16) {
                a = rounded(a, word_at(data + i));
                b = rounded(b, word_at(data + i + 4));
                c = rounded(c, word_at(data + i + 8));
                d = rounded(d, word_at(data + i + 12));
            }
            h = rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18);
        }
        h += (uint32_t)length;
        for (; i + 4 <= end; i += 4) h = rotated(h + word_at(data + i) * PRIME3, 17) * PRIME4;
        for (; i < end; ++i) h = rotated(h + data[i] * PRIME5, 11) * PRIME1;
        h = (h ^ (h >> 15)) * PRIME2;
        h = (h ^ (h >> 13)) * PRIME3;
        out[record] = h ^ (h >> 16);
    }
}
