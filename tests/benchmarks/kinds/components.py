"""Connected components by union-find: tiles of a picture in shared memory, and a batch of small pictures."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, sized

TILE = 16
TILE_SIZE = TILE * TILE


def make_tiles(cuda):
    @cuda.jit(device=True)
    def find(labels, i):
        while labels[i] != i:
            i = labels[i]
        return i

    @cuda.jit(device=True)
    def union(labels, a, b):
        done = False
        while not done:
            a = find(labels, a)
            b = find(labels, b)
            if a < b:
                old = cuda.atomic.min(labels, b, a)
                done = old == b
                b = old
            elif b < a:
                old = cuda.atomic.min(labels, a, b)
                done = old == a
                a = old
            else:
                done = True

    @cuda.jit
    def label_tiles(picture, threshold, out):
        labels = cuda.shared.array(TILE_SIZE, np.int32)
        bright = cuda.shared.array((TILE, TILE), np.bool_)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x = cuda.blockIdx.x * TILE + tx
        y = cuda.blockIdx.y * TILE + ty
        height, width = picture.shape
        inside = x < width and y < height
        tid = ty * TILE + tx
        labels[tid] = tid
        bright[ty, tx] = inside and picture[y, x] >= threshold
        cuda.syncthreads()
        if bright[ty, tx]:
            if tx > 0 and bright[ty, tx - 1]:
                union(labels, tid, tid - 1)
            if ty > 0 and bright[ty - 1, tx]:
                union(labels, tid, tid - TILE)
        cuda.syncthreads()
        if inside:
            if bright[ty, tx]:
                root = find(labels, tid)
                out[y, x] = (y - ty + root // TILE) * width + x - tx + root % TILE
            else:
                out[y, x] = -1

    return label_tiles


TILES_CPP = """
#define TILE 16
__device__ int find(const int* labels, int i) {
    while (labels[i] != i) i = labels[i];
    return i;
}
__device__ void merge(int* labels, int a, int b) {
    bool done = false;
    while (!done) {
        a = find(labels, a);
        b = find(labels, b);
        if (a < b) {
            int old = atomicMin(&labels[b], a);
            done = old == b;
            b = old;
        } else if (b < a) {
            int old = atomicMin(&labels[a], b);
            done = old == a;
            a = old;
        } else {
            done = true;
        }
    }
}
extern "C" __global__ void peer(const unsigned char* picture, unsigned char threshold, int* out, int height,
                                int width) {
    __shared__ int labels[TILE * TILE];
    __shared__ bool bright[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * TILE + tx, y = blockIdx.y * TILE + ty;
    bool inside = x < width && y < height;
    int tid = ty * TILE + tx;
    labels[tid] = tid;
    bright[ty][tx] = inside && picture[y * width + x] >= threshold;
    __syncthreads();
    if (bright[ty][tx]) {
        if (tx > 0 && bright[ty][tx - 1]) merge(labels, tid, tid - 1);
        if (ty > 0 && bright[ty - 1][tx]) merge(labels, tid, tid - TILE);
    }
    __syncthreads();
    if (inside) {
        if (bright[ty][tx]) {
            int root = find(labels, tid);
            out[y * width + x] = (y - ty + root / TILE) * width + x - tx + root % TILE;
        } else {
            out[y * width + x] = -1;
        }
    }
}
"""


def blobs(seed: int, *shape: int) -> np.ndarray:
    """Bytes with structures of a few pixels: random numbers, averaged along both axes."""
    noise = np.random.default_rng(seed).random(shape, dtype=np.float32)
    for axis in (-2, -1):
        noise = noise + np.roll(noise, 1, axis) + np.roll(noise, 2, axis)
    return (noise * np.float32(255 / 9)).astype(np.uint8)


def tiles_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (37, 53), cpu=(1024, 1024))
    return Work(
        grid=(blocks(width, TILE), blocks(height, TILE)),
        block=(TILE, TILE),
        args=(blobs(140, height, width), np.uint8(126), np.empty((height, width), np.int32)),
        outputs=(2,),
        extents=(height, width),
        n_bytes=5 * height * width,
    )


def spread_minima(xp, labels, joined):
    """The least label of each component: `joined` has pairs of slices of equal shape and masks of connected pairs."""
    while True:
        before = labels.copy()
        for one, other, mask in joined:
            least = xp.minimum(labels[one], labels[other])
            labels[one] = xp.where(mask, least, labels[one])
            labels[other] = xp.where(mask, xp.minimum(least, labels[other]), labels[other])
        if bool((labels == before).all()):
            return labels


def tiles_reference(xp, args):
    picture, threshold, _ = args
    height, width = picture.shape
    bright = picture >= threshold
    labels = xp.where(bright, xp.arange(height * width).reshape(height, width), -1)
    y, x = xp.arange(height)[:, None], xp.arange(width)[None, :]
    left = bright[:, 1:] & bright[:, :-1] & (x[:, 1:] % TILE > 0)
    up = bright[1:] & bright[:-1] & (y[1:] % TILE > 0)
    every = slice(None)
    joined = (
        ((every, slice(1, None)), (every, slice(None, -1)), left),
        ((slice(1, None), every), (slice(None, -1), every), up),
    )
    return (spread_minima(xp, labels, joined),)


def make_batch(cuda):
    @cuda.jit
    def label_pictures(pictures, parent):
        p = cuda.blockIdx.x
        rows = pictures.shape[1]
        columns = pictures.shape[2]
        n = rows * columns
        i = cuda.threadIdx.x
        while i < n:
            parent[p, i] = i
            i += cuda.blockDim.x
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            row = i // columns
            column = i - row * columns
            color = pictures[p, row, column]
            for k in range(4):
                # The neighbors to the upper left, above, to the upper right, and to the left
                r = row - 1 if k < 3 else row
                c = column - 1 + k if k < 3 else column - 1
                if r < 0 or c < 0 or c >= columns or pictures[p, r, c] != color:
                    continue
                a = i
                b = r * columns + c
                while True:
                    while parent[p, a] != a:
                        a = parent[p, a]
                    while parent[p, b] != b:
                        b = parent[p, b]
                    if a == b:
                        break
                    if a < b:
                        a, b = b, a
                    old = cuda.atomic.min(parent, (p, a), b)
                    if old == a:
                        break
                    a = old
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            root = parent[p, i]
            while parent[p, root] != root:
                root = parent[p, root]
            parent[p, i] = root

    return label_pictures


BATCH_CPP = """
extern "C" __global__ void peer(const unsigned char* pictures, int* parents, int rows, int columns) {
    int p = blockIdx.x, n = rows * columns;
    const unsigned char* picture = pictures + p * n;
    int* parent = parents + p * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) parent[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int row = i / columns, column = i - row * columns;
        unsigned char color = picture[row * columns + column];
        for (int k = 0; k < 4; ++k) {
            int r = k < 3 ? row - 1 : row, c = k < 3 ? column - 1 + k : column - 1;
            if (r < 0 || c < 0 || c >= columns || picture[r * columns + c] != color) continue;
            int a = i, b = r * columns + c;
            while (true) {
                while (parent[a] != a) a = parent[a];
                while (parent[b] != b) b = parent[b];
                if (a == b) break;
                if (a < b) {
                    int t = a;
                    a = b;
                    b = t;
                }
                int old = atomicMin(&parent[a], b);
                if (old == a) break;
                a = old;
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int root = parent[i];
        while (parent[root] != root) root = parent[root];
        parent[i] = root;
    }
}
"""


def batch_work(size: str) -> Work:
    n, rows, columns = sized(size, (2048, 64, 64), (3, 19, 23), cpu=(128, 64, 64))
    pictures = blobs(141, n, rows, columns) // np.uint8(48)
    return Work(
        grid=(n,),
        block=(256,),
        args=(pictures, np.empty((n, rows * columns), np.int32)),
        outputs=(1,),
        extents=(rows, columns),
        n_bytes=5 * n * rows * columns,
    )


def batch_reference(xp, args):
    pictures, parent = args
    n, rows, columns = pictures.shape
    labels = xp.zeros((n, 1, 1), xp.int64) + xp.arange(rows * columns).reshape(rows, columns)
    every, later, earlier = slice(None), slice(1, None), slice(None, -1)
    pairs = (
        ((every, later, later), (every, earlier, earlier)),
        ((every, later, every), (every, earlier, every)),
        ((every, later, earlier), (every, earlier, later)),
        ((every, every, later), (every, every, earlier)),
    )
    joined = tuple((one, other, pictures[one] == pictures[other]) for one, other in pairs)
    return (spread_minima(xp, labels, joined).reshape(parent.shape),)


CASES = (
    Case(
        "components of tiles in shared memory",
        make_tiles,
        "void(uint8[:, ::1], uint8, int32[:, ::1])",
        TILES_CPP,
        tiles_work,
        tiles_reference,
        tolerance=0.0,
    ),
    Case(
        "components of a batch of pictures",
        make_batch,
        "void(uint8[:, :, ::1], int32[:, ::1])",
        BATCH_CPP,
        batch_work,
        batch_reference,
        tolerance=0.0,
    ),
)
