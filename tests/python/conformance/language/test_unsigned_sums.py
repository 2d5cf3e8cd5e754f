"""Sums of small unsigned integers are uint64 by Numba's rules: weft narrows those that fit, not those that wrap."""

import numpy as np
from weft import cuda

ONE, TWO, THREE, FIVE, SEVEN, FIFTEEN, SIXTY = (np.uint64(value) for value in (1, 2, 3, 5, 7, 15, 60))


@cuda.jit
def of_bytes(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        total = a[i] + b[i]
        product = a[i] * b[i]
        out[i, 0] = total
        out[i, 1] = total - b[i]
        out[i, 2] = b[i] - total
        out[i, 3] = product // (b[i] + ONE)
        out[i, 4] = product % (b[i] + ONE)
        out[i, 5] = (total << THREE) ^ (product >> TWO)
        out[i, 6] = min(total, product) | max(total, SEVEN)
        out[i, 7] = (a[i] - b[i]) >> SIXTY
        out[i, 8] = total > product
        out[i, 9] = a[i] - b[i] < total
        out[i, 10] = np.int64(a[i] - b[i])
        out[i, 11] = np.float32(total * THREE)


def test_sums_of_bytes():
    a, b = (x.ravel().astype(np.uint8) for x in np.meshgrid(np.r_[0:256:5, 254, 255], np.r_[0:256:3, 254, 255]))
    out = np.zeros((a.size, 12), np.uint64)
    of_bytes[-(-a.size // 128), 128](a, b, out)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    total, product = x + y, x * y
    expected = [
        total,
        x,
        y - total,
        product // (y + ONE),
        product % (y + ONE),
        (total << THREE) ^ (product >> TWO),
        np.minimum(total, product) | np.maximum(total, SEVEN),
        (x - y) >> SIXTY,
        total > product,
        x - y < total,
        x - y,
        total * THREE,
    ]
    for column, values in enumerate(expected):
        np.testing.assert_array_equal(out[:, column], values.astype(np.uint64), f"column {column}")


@cuda.jit
def carried(a, out, turns):
    i = cuda.grid(1)
    if i < a.size:
        small = np.uint64(0)
        large = np.uint64(1)
        for _ in range(4):
            small += a[i] & FIFTEEN
        for _ in range(turns):
            large = large * FIVE + a[i]
        out[i, 0] = small
        out[i, 1] = large
        out[i, 2] = small * large
        out[i, 3] = large // (small + ONE)


def test_what_is_carried_from_turn_to_turn():
    a = np.arange(0, 65536, 257).astype(np.uint16)
    for turns in (0, 3, 40):
        out = np.zeros((a.size, 4), np.uint64)
        carried[-(-a.size // 64), 64](a, out, turns)
        small = (a.astype(np.uint64) & FIFTEEN) * np.uint64(4)
        large = np.ones(a.size, np.uint64)
        for _ in range(turns):
            large = large * FIVE + a
        expected = np.stack([small, large, small * large, large // (small + ONE)], axis=1)
        np.testing.assert_array_equal(out, expected)
