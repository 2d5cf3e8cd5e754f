"""A stencil over several GPUs and processes with Dask: each worker keeps a band of rows, and neighbors share edges.

The bands overlap by HALO rows. A worker can apply the stencil HALO times before the missing rows affect its own rows;
then it gets its neighbors' rows again.

    python 13_dask_stencil.py [workers]
"""

import sys
from itertools import pairwise

import numpy as np
from distributed import Client, LocalCluster, WorkerPlugin
from weft import cuda, workers

HALO = 4
ROUNDS = 5


class OneGpu(WorkerPlugin):
    """Gives each worker one of the machine's GPUs, before it uses any."""

    def setup(self, worker):
        """Choose by the worker's number in its cluster."""
        workers.select_gpu(int(worker.name))


@cuda.jit
def blur(source, target):
    j, i = cuda.grid(2)
    rows, cols = source.shape
    if 0 < i < rows - 1 and 0 < j < cols - 1:
        around = source[i - 1, j] + source[i + 1, j] + source[i, j - 1] + source[i, j + 1]
        target[i, j] = np.float32(0.5) * source[i, j] + np.float32(0.125) * around


class Band:
    """Rows on a worker's device; `above` and `below` are the numbers of its neighbors' rows."""

    def __init__(self, rows, above, below):
        self.above, self.below = above, below
        self.source, self.target = cuda.to_device(rows), cuda.to_device(rows)

    def advance(self, times):
        """Apply the stencil so often."""
        blocks = ((self.source.shape[1] + 31) // 32, (self.source.shape[0] + 7) // 8)
        for _ in range(times):
            blur[blocks, (32, 8)](self.source, self.target)
            self.source, self.target = self.target, self.source

    def own(self):
        """Give its own rows."""
        return self.source[self.above : self.source.shape[0] - self.below].copy_to_host()

    def edges(self):
        """Give the first and the last of its own rows, which its neighbors need."""
        own = self.source[self.above : self.source.shape[0] - self.below]
        return own[:HALO].copy_to_host(), own[own.shape[0] - HALO :].copy_to_host()

    def take(self, above, below):
        """Put the neighbors' rows around its own."""
        for array in (self.source, self.target):
            if self.above:
                array[: self.above].copy_to_device(above)
            if self.below:
                array[array.shape[0] - self.below :].copy_to_device(below)


def shared(client, image, count):
    """Compute the image after the rounds, in bands, by this number of workers."""
    cuts = [round(number * image.shape[0] / count) for number in range(count + 1)]
    names = sorted(client.scheduler_info()["workers"])
    bands = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        above, below = HALO if number else 0, HALO if number < count - 1 else 0
        rows = image[first - above : last + below]
        where = names[number % len(names)]
        bands.append(client.submit(Band, rows, above, below, actor=True, workers=where, pure=False))
    bands = client.gather(bands)
    for _ in range(ROUNDS):
        for done in [band.advance(HALO) for band in bands]:
            done.result()
        edges = [(None, None), *(found.result() for found in [band.edges() for band in bands]), (None, None)]
        exchanged = [band.take(edges[n][1], edges[n + 2][0]) for n, band in enumerate(bands)]
        for done in exchanged:
            done.result()
    return np.concatenate([found.result() for found in [band.own() for band in bands]])


def blurred(x):
    y = x.copy()
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    y[1:-1, 1:-1] = np.float32(0.5) * x[1:-1, 1:-1] + np.float32(0.125) * around
    return y


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    image = np.random.default_rng(0).random((401, 600), np.float32)
    with (
        LocalCluster(count, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(OneGpu())
        found = shared(client, image, count)
    expected = image
    for _ in range(ROUNDS * HALO):
        expected = blurred(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    print(f"13_dask_stencil: {ROUNDS * HALO} rounds over {image.shape} in {count} workers: ok")


if __name__ == "__main__":
    main()
