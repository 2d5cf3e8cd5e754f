"""Loops that count through a ring of buffers, `counter % m`, for trip counts around multiples of its size."""

import numpy as np
import pytest
from harness import assert_exact, launch, module, run
from weft import cuda

TRIPS = np.array([0, 1, 2, 3, 5, 6, 7, 12, 13, -2, -(2**40)])
THREADS = 2

KERNEL = """
import numpy as np
from weft import cuda

@cuda.jit
def kernel(n, rows, counts, out):
    tiles = cuda.{memory}.array((7, 2), np.int64)
    t = cuda.threadIdx.x
    for k in range(7):
        {fill}
    cuda.syncthreads()
    s = 0
    now = 5
    {start}
    {loop}
        s += 3 * now
        now = {now}
        later = {later}
        s = (s * 7 + tiles[now, {there}]) % 10007
        cuda.syncthreads()
        tiles[later, t] = s * 16 + d
        cuda.syncthreads()
        {step}
    out[cuda.blockIdx.x, t, 0] = s
    for k in range(7):
        out[cuda.blockIdx.x, t, 1] = out[cuda.blockIdx.x, t, 1] * 3 + tiles[k, t]
    out[cuda.blockIdx.x, t, 2] = {after}
"""

LOOPS = {
    "argument": ("", "for d in range(n):", ""),
    "from_one": ("", "for d in range(1, n):", ""),
    "from_four": ("", "for d in range(4, n + 4):", ""),
    "extent": ("", "for d in range(rows.shape[0]):", ""),
    "local": ("most = rows.shape[0] - 1", "for d in range(most):", ""),
    "loaded": ("", "for d in range(counts[cuda.blockIdx.x]):", ""),
    "loaded_before": ("most = counts[cuda.blockIdx.x] + 1", "for d in range(most):", ""),
    "while": ("d = 0", "while d < 2 * n - 1:", "d += 1"),
    "while_from_three": ("d = 3", "while d < n + 2:", "d = d + 1"),
    "while_loaded": ("d = 0", "while d < counts[cuda.blockIdx.x]:", "d += 1"),
    "by_two": ("", "for d in range(0, n, 2):", ""),
    "down": ("", "for d in range(n, 0, -1):", ""),
    "from_argument": ("", "for d in range(n % 3, n):", ""),
}

RINGS = {
    "two": ("d % 2", "(d + 1) % 2"),
    "three": ("d % 3", "(d - 1) % 3"),
    "three_ahead": ("(d + 2) % 3", "(d - 5) % 3"),
    "four": ("(d - 1) % 4", "(d + 3) % 4"),
    "six": ("d % 6", "(7 + d) % 6"),
    "two_and_three": ("d % 2", "(d + 1) % 3"),
    "four_and_six": ("(d - 3) % 4", "d % 6"),
    "seven": ("d % 7", "(d - 1) % 7"),
}


CASES = [
    *((loop, ring, "shared") for loop in LOOPS for ring in ("three", "two_and_three")),
    *(("argument", ring, memory) for ring in RINGS for memory in ("shared", "local")),
    *((loop, "three_ahead", "local") for loop in LOOPS),
]


@pytest.mark.parametrize(("loop", "ring", "memory"), CASES)
def test_rings(loop, ring, memory):
    start, head, step = LOOPS[loop]
    now, later = RINGS[ring]
    is_shared = memory == "shared"
    text = KERNEL.format(
        memory=memory,
        fill="tiles[k, t] = k * 10 + t" if is_shared else "for j in range(2): tiles[k, j] = k * 10 + t + j",
        start=start,
        loop=head,
        now=now,
        later=later,
        there="1 - t" if is_shared else "t",
        step=step,
        after="d" if "while" in loop else "now",
    )
    kernel = module(text).kernel
    counts = np.maximum(TRIPS, -3)
    out = np.zeros((len(TRIPS), THREADS, 3), np.int64)
    for n in [0] if "loaded" in loop else TRIPS:
        of_rows = np.zeros(max(n, 0))
        blocks = len(TRIPS) if "loaded" in loop else 1
        run(kernel, blocks, THREADS, n, of_rows, counts, out)


BODIES = {
    "locals": "a = d + 2; b = a - 3; s = s * 5 + t[a % 3] + 2 * t[b % 3] + t[(b + 1) % 3]; t[b % 3] = s % 97",
    "last_iteration": "s = s * 5 + t[last % 3] + t[(last + 1) % 2]; last = d; t[last % 3] += 1",
    "conditional_local": "if d > 3: last = d - 1\n        s = s * 5 + t[last % 3] + t[d % 3]",
    "reassigned": "e = d + 1; s = s * 5 + t[e % 3]; e = e * 2; s += t[e % 3] * 11 + t[d % 3]",
    "under_a_test": (
        "if x[d % 5] > 2:\n            t[d % 3] += d\n        else:\n            s = s * 3 + t[(d - 1) % 3]"
    ),
    "inner_break": (
        "for k in range(5):\n            if k == d % 3: break\n            s = s * 3 + t[(d + k) % 3]\n        "
        "t[d % 3] = k"
    ),
    "inner_while": (
        "k = d % 3\n        while k < 4:\n            k += 1\n            if k == 2: continue\n            "
        "s = s * 3 + t[k % 3]"
    ),
    "inner_ring": "for e in range(d):\n            s = s * 3 + t[e % 3] + t[(d + e) % 2] + d % 2",
    "continue": "if d % 3 == 1: continue\n        s = s * 3 + t[d % 3]; t[(d + 1) % 3] += 1",
    "break": "s = s * 3 + t[d % 3]\n        if s > 4000: break\n        t[(d + 1) % 3] += 1",
    "return": "s = s * 3 + t[d % 3]; out[i] = s\n        if d % 4 == 3: return\n        t[(d + 1) % 3] += 1",
    "negated": "s = s * 3 + t[(5 - d) % 3] + t[-d % 3] + (2 * d) % 3 + d // 3 + (d - 4) // 3",
    "signs": "s = s * 3 + d % -3 + (d - 4) % -2 + (d + 1) % 3",
    "unsigned": "s = s * 3 + np.uint32(d - 1) % np.uint32(3) + np.int64(np.uint64(d - 1) % np.uint64(3)) + d % 3",
    "narrowed": "s = s * 3 + (np.int32(d + 2**40) - 2**40) % 3 + np.int8(d * 50) % 3 + d % 2",
    "far": "s = s * 3 + (d + 65535) % 3 + (d - 65536) % 3 + (d + 2**31) % 3 + (d - 2**45) % 3",
    "two_counters": "s = s * 3 + t[d % 3] + other % 2\n        other += 1",
    "floats": "s = s * 3 + (d * 1.0 + 0.5) % 3 + (d - 1) % 3",
    "sums": "s += d % 2 + d % 3 + d % 4 + d % 5 + d % 6 + d % 8",
}
LINES = """
import numpy as np
from weft import cuda

@cuda.jit(device=True)
def of(d, k):
    return (d + k) % 3 + d % 2

@cuda.jit{options}
def kernel(n, x, out):
    i = cuda.grid(1)
    t = cuda.local.array(5, np.int64)
    for j in range(5):
        t[j] = j + i
    s = x[0] * 0
    last = 0
    other = 4
    for d in range(n{bound}):
        {body}
        s = s % 5003
    out[i] = s * 10 + t[0] + 3 * t[1] + 5 * t[2] + last
"""


@pytest.mark.parametrize("bound", ["", " + i"])
@pytest.mark.parametrize("body", BODIES)
def test_bodies(body, bound):
    kernel = module(LINES.format(body=BODIES[body], bound=bound, options="")).kernel
    x = np.array([1, 2, 3, 4, 0], np.float64 if body == "floats" else np.int64)
    for n in TRIPS[:-1]:
        run(kernel, 1, 2, n, x, np.zeros(2, np.int64))


@pytest.mark.parametrize("bound", ["", " + i"])
def test_a_function_of_the_counter(bound):
    body = "s = s * 5 + of(d, 1) + of(d - 1, 0)"
    kernel = module(LINES.format(body=body, bound=bound, options="")).kernel
    for n in TRIPS[:-1]:
        run(kernel, 1, 2, n, np.zeros(5, np.int64), np.zeros(2, np.int64))


@cuda.jit(typing="numpy")
def of_int32(n, out):
    t = cuda.local.array(3, np.int32)
    for i in range(3):
        t[i] = i + 1
    s = np.int64(0)
    for d in range(n):
        s = s * np.int64(5) + np.int64(t[d % 3] + d % np.int32(2))
        s = s * np.int64(5) + np.int64((np.uint32(d) - np.uint32(1)) % np.uint32(3))
        s = s % np.int64(10**9)
        t[(d - 1) % 3] += d
    out[0] = s
    out[1] = t[0] * 100 + t[1] * 10 + t[2]


@pytest.mark.parametrize("n", TRIPS[:-1])
def test_int32_counters(n):
    got = launch(of_int32, 1, 1, np.int32(n), np.zeros(2, np.int64))[1]
    s, t = 0, [1, 2, 3]
    for d in range(n):
        s = s * 5 + t[d % 3] + d % 2
        s = (s * 5 + (d - 1) % 2**32 % 3) % 10**9
        t[(d - 1) % 3] += d
    assert_exact(got, np.array([s, t[0] * 100 + t[1] * 10 + t[2]], np.int64))
