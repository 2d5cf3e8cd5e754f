"""Unused results of collectives: they must not make the lanes diverge in the following code."""

from __future__ import annotations

import numpy as np
import pytest
from harness import module
from weft import cuda

SOURCE = """
from weft import cuda
import numpy as np

@cuda.jit{options}
def kernel(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    pair = np.uint32(3 << (lane & 30))
    mine = np.int32(x[i])
    {unread}
    here, total = cuda.coop.block.inclusive_sum(x[i], aggregate=True)
    {unread}
    most = cuda.coop.block.max(x[i])
    out[i, 0] = here
    out[i, 1] = total
    out[i, 2] = most
"""

UNREAD = [
    "v = cuda.coop.warp.min(mine, threads=2)",
    "v = cuda.reduce_add_sync(pair, mine)",
    "v = cuda.reduce_or_sync(cuda.match_any_sync(0xFFFFFFFF, lane & 28), np.uint32(i))",
    "v = cuda.ballot_sync(pair, mine > 3)",
    "v = cuda.any_sync(pair, mine > 3)",
    "v = cuda.match_any_sync(pair, mine)",
    "v, w = cuda.match_all_sync(pair, mine)",
    "v = cuda.shfl_sync(pair, mine, 0, 2)",
    "v = cuda.reduce_add_sync(cuda.reduce_or_sync(pair, pair), mine)",
]


@pytest.mark.parametrize("unread", UNREAD)
@pytest.mark.parametrize("options", ["", "(launch_bounds=256)"])
def test_the_barriers_behind_it_hold(unread, options):
    kernel = module(SOURCE.format(unread=unread, options=options)).kernel
    x = np.arange(2048) % 101 * 1.0
    out = cuda.to_device(np.zeros((2048, 3)))
    for _ in range(5):
        kernel[8, 256](cuda.to_device(x), out)
        got = out.copy_to_host().reshape(8, 256, 3)
        blocks = x.reshape(8, 256)
        np.testing.assert_array_equal(got[:, :, 0], np.cumsum(blocks, axis=1))
        np.testing.assert_array_equal(got[:, :, 1], np.repeat(blocks.sum(axis=1)[:, None], 256, axis=1))
        np.testing.assert_array_equal(got[:, :, 2], np.repeat(blocks.max(axis=1)[:, None], 256, axis=1))
    text = kernel.inspect_asm("void(float64[::1], float64[:, ::1])", target="sm_90")
    for mnemonic in ("redux.sync", "vote.sync", "match."):
        assert mnemonic not in text
