"""A hash table of open addresses, by one thread, and CRC-32 of many messages, as loops for Numba."""

import numpy as np
from second.hashing import CRC_TABLE

from reference_kernels.jit import alone, loops, prange


@alone
def insert(keys, table):
    mask = np.uint32(table.size - 1)
    for i in range(keys.size):
        key = keys[i]
        slot = np.uint32((key ^ (key >> np.uint32(15))) * np.uint32(2654435761)) & mask
        while table[slot] != 0 and table[slot] != key:
            slot = (slot + np.uint32(1)) & mask
        table[slot] = key


@loops
def crc32(messages, out):
    for i in prange(messages.shape[0]):
        crc = np.uint32(0xFFFFFFFF)
        for k in range(messages.shape[1]):
            crc = CRC_TABLE[(crc ^ messages[i, k]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        out[i] = crc ^ np.uint32(0xFFFFFFFF)
