"""Keys into a hash table of open addresses, and CRC-32 of many messages by a constant table."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from suite.case import Case, Work, blocks, random_bytes, sized


def crc_of_each_byte() -> np.ndarray:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(0xEDB88320), values >> 1)
    return values


CRC_TABLE = crc_of_each_byte()


@dataclass(frozen=True)
class AnyOrder(Case):
    """A case whose output elements are in an order that depends on the order of the threads."""

    def error(self, xp, outputs, expected):
        return super().error(xp, tuple(map(xp.sort, outputs)), tuple(map(xp.sort, expected)))


def make_insert(cuda):
    @cuda.jit
    def insert(keys, table):
        i = cuda.grid(1)
        if i < keys.size:
            key = keys[i]
            mask = table.size - 1
            slot = (key ^ (key >> 15)) * 2654435761 & mask
            while True:
                old = cuda.atomic.cas(table, slot, 0, key)
                if old == 0 or old == key:
                    break
                slot = (slot + 1) & mask

    return insert


INSERT_CPP = """
extern "C" __global__ void peer(const unsigned int* keys, unsigned int* table, int n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int key = keys[i], mask = size - 1, slot = (key ^ (key >> 15)) * 2654435761u & mask;
        while (true) {
            unsigned int old = atomicCAS(&table[slot], 0u, key);
            if (old == 0 || old == key) break;
            slot = (slot + 1) & mask;
        }
    }
}
"""


def insert_work(size: str) -> Work:
    n, slots = sized(size, (1 << 21, 1 << 22), (600, 1024), cpu=(1 << 20, 1 << 21))
    keys = np.random.default_rng(95).integers(1, 1 << 31, n, dtype=np.uint32)
    keys[::10] = keys[1::10][: len(keys[::10])]  # some keys occur twice
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(keys, np.zeros(slots, np.uint32)),
        outputs=(1,),
        extents=(n, slots),
        n_bytes=4 * n + 4 * slots,
    )


def insert_reference(xp, args):
    keys, table = xp.unique(args[0]), xp.zeros(args[1].shape, xp.uint32)
    table[: keys.size] = keys
    return (table,)


def make_crc(cuda):
    @cuda.jit
    def crc32(messages, out):
        table = cuda.const.array_like(CRC_TABLE)
        i = cuda.grid(1)
        if i < messages.shape[0]:
            crc = 0xFFFFFFFF
            for k in range(messages.shape[1]):
                crc = table[(crc ^ messages[i, k]) & 0xFF] ^ (crc >> 8)
            out[i] = crc ^ 0xFFFFFFFF

    return crc32


def make_crc_narrow(cuda):
    @cuda.jit
    def crc32(messages, out):
        table = cuda.const.array_like(CRC_TABLE)
        i = cuda.grid(1)
        if i < messages.shape[0]:
            crc = np.uint32(0xFFFFFFFF)
            for k in range(messages.shape[1]):
                crc = table[(crc ^ messages[i, k]) & 0xFF] ^ (crc >> 8)
            out[i] = crc ^ 0xFFFFFFFF

    return crc32


CRC_CPP = f"""
__constant__ unsigned int table[256] = {{{", ".join(f"{value}u" for value in CRC_TABLE)}}};
extern "C" __global__ void peer(const unsigned char* messages, unsigned int* out, int n, int length) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{
        unsigned int crc = 0xffffffffu;
        for (int k = 0; k < length; ++k) crc = table[(crc ^ messages[i * length + k]) & 0xff] ^ (crc >> 8);
        out[i] = crc ^ 0xffffffffu;
    }}
}}
"""


def crc_work(size: str) -> Work:
    n, length = sized(size, (1 << 17, 256), (150, 33), cpu=(1 << 14, 256))
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(random_bytes(96, n, length), np.empty(n, np.uint32)),
        outputs=(1,),
        extents=(n, length),
        n_bytes=n * (length + 4),
        flops=4 * n * length,
    )


def crc_reference(xp, args):
    messages = args[0] if xp is np else args[0].get()
    return (xp.asarray([zlib.crc32(message) for message in messages], dtype=xp.uint32),)


CASES = (
    AnyOrder(
        "hash table, inserting",
        make_insert,
        "void(uint32[::1], uint32[::1])",
        INSERT_CPP,
        insert_work,
        insert_reference,
        tolerance=0.0,
        accumulates=True,
        wider=True,
    ),
    Case(
        "CRC-32 of messages",
        make_crc,
        "void(uint8[:, ::1], uint32[::1])",
        CRC_CPP,
        crc_work,
        crc_reference,
        tolerance=0.0,
        wider=True,
        narrow=make_crc_narrow,
    ),
)
