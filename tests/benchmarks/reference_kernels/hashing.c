// Keys into a hash table of open addresses, and CRC-32 of many messages by a constant table.
#include <stdint.h>

#include "constants.h"

void insert(const uint32_t *restrict keys, uint32_t *table, int n, int size) {
    const uint32_t mask = (uint32_t)size - 1;
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const uint32_t key = keys[i];
        uint32_t slot = (key ^ (key >> 15)) * 2654435761u & mask;
        for (;;) {
            uint32_t old = 0;
            if (__atomic_compare_exchange_n(&table[slot], &old, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
            if (old == key) break;
            slot = (slot + 1) & mask;
        }
    }
}

void crc32(const uint8_t *restrict messages, uint32_t *restrict out, int n, int length) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        uint32_t crc = 0xffffffffu;
        for (int k = 0; k < length; ++k) crc = CRC_TABLE[(crc ^ messages[i * length + k]) & 0xff] ^ (crc >> 8);
        out[i] = crc ^ 0xffffffffu;
    }
}
