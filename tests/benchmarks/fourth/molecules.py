"""Molecular dynamics: Lennard-Jones forces from neighbor lists, and the Coulomb potential of binned atoms on a grid."""

from __future__ import annotations

import itertools
import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO, ONE, TWO, FOUR = np.float32(0), np.float32(1), np.float32(2), np.float32(4)
TWENTY_FOUR = np.float32(24)
SPACING = 1.2
SKIN = 2.8
CUTOFF = 2.5


def make_lennard_jones(cuda):
    @cuda.jit(device=True)
    def nearest_image(d, box):
        if d > box / TWO:
            return d - box
        if d < -box / TWO:
            return d + box
        return d

    @cuda.jit
    def lennard_jones(positions, counts, neighbors, box, cutoff, forces, energies):
        i = cuda.grid(1)
        if i < positions.shape[0]:
            x = positions[i, 0]
            y = positions[i, 1]
            z = positions[i, 2]
            fx = ZERO
            fy = ZERO
            fz = ZERO
            energy = ZERO
            cutoff_squared = cutoff * cutoff
            for k in range(counts[i]):
                j = neighbors[k, i]
                dx = nearest_image(x - positions[j, 0], box)
                dy = nearest_image(y - positions[j, 1], box)
                dz = nearest_image(z - positions[j, 2], box)
                squared = dx * dx + dy * dy + dz * dz
                if squared < cutoff_squared:
                    inverse = ONE / squared
                    sixth = inverse * inverse * inverse
                    force = TWENTY_FOUR * sixth * (TWO * sixth - ONE) * inverse
                    fx += force * dx
                    fy += force * dy
                    fz += force * dz
                    energy += TWO * sixth * (sixth - ONE)
            forces[i, 0] = fx
            forces[i, 1] = fy
            forces[i, 2] = fz
            energies[i] = energy

    return lennard_jones


LENNARD_JONES_CPP = """
__device__ float nearest_image(float d, float box) {
    if (d > box / 2.0f) return d - box;
    if (d < -box / 2.0f) return d + box;
    return d;
}

extern "C" __global__ void peer(const float* positions, const int* counts, const int* neighbors, float box,
                                float cutoff, float* forces, float* energies, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = positions[3 * i], y = positions[3 * i + 1], z = positions[3 * i + 2];
        float fx = 0.0f, fy = 0.0f, fz = 0.0f, energy = 0.0f, cutoff_squared = cutoff * cutoff;
        int count = counts[i];
        for (int k = 0; k < count; ++k) {
            int j = neighbors[k * n + i];
            float dx = nearest_image(x - positions[3 * j], box);
            float dy = nearest_image(y - positions[3 * j + 1], box);
            float dz = nearest_image(z - positions[3 * j + 2], box);
            float squared = dx * dx + dy * dy + dz * dz;
            if (squared < cutoff_squared) {
                float inverse = 1.0f / squared;
                float sixth = inverse * inverse * inverse;
                float force = 24.0f * sixth * (2.0f * sixth - 1.0f) * inverse;
                fx += force * dx;
                fy += force * dy;
                fz += force * dz;
                energy += 2.0f * sixth * (sixth - 1.0f);
            }
        }
        forces[3 * i] = fx;
        forces[3 * i + 1] = fy;
        forces[3 * i + 2] = fz;
        energies[i] = energy;
    }
}
"""


def atoms_and_neighbors(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.float32]:
    """Atoms near the points of a periodic cubic lattice, and for each atom those at most SKIN away."""
    cells = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    n, box = len(cells), np.float32(side * SPACING)
    positions = ((cells + (random(300, n, 3) * 0.2 + 0.4)) * SPACING).astype(np.float32)
    counts, neighbors = np.zeros(n, np.int32), np.zeros((90, n), np.int32)
    for offset in itertools.product(range(-2, 3), repeat=3):
        if offset == (0, 0, 0):
            continue
        other = (cells + offset) % side
        other = ((other[:, 0] * side + other[:, 1]) * side + other[:, 2]).astype(np.int32)
        d = positions - positions[other]
        d -= box * np.round(d / box)
        found = np.flatnonzero((d * d).sum(axis=1) < SKIN * SKIN)
        neighbors[counts[found], found] = other[found]
        counts[found] += 1
    return positions, counts, neighbors, box


def lennard_jones_work(size: str) -> Work:
    side = sized(size, 56, 6, cpu=40)
    positions, counts, neighbors, box = atoms_and_neighbors(side)
    n = len(positions)
    pairs = int(counts.sum())
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(positions, counts, neighbors, box, np.float32(CUTOFF), np.empty((n, 3), np.float32),
              np.empty(n, np.float32)),
        outputs=(5, 6),
        extents=(n,),
        n_bytes=4 * pairs + 32 * n,
        flops=25 * pairs,
    )  # fmt: skip


def lennard_jones_reference(xp, args):
    positions, counts, neighbors, box, cutoff = args[:5]
    positions, box = positions.astype(xp.float64), float(box)
    forces, energies = xp.zeros(positions.shape), xp.zeros(counts.shape)
    for k in range(int(counts.max())):
        d = positions - positions[neighbors[k]]
        d -= box * xp.round(d / box)
        squared = (d * d).sum(axis=1)
        near = (counts > k) & (squared < float(cutoff) ** 2)
        sixth = xp.where(near, 1 / xp.where(near, squared, 1) ** 3, 0)
        forces += (24 * sixth * (2 * sixth - 1) / xp.where(near, squared, 1))[:, None] * d
        energies += 2 * sixth * (sixth - 1)
    return forces, energies


BIN = 8  # the lattice points on each side of a bin
DEPTH = 8  # the atoms in a bin
REACH = 2
OFFSETS = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=3)), np.int32)


def make_coulomb(cuda):
    @cuda.jit
    def coulomb(bins, spacing, cutoff, potential):
        offsets = cuda.const.array_like(OFFSETS)
        atoms = cuda.shared.array((DEPTH, 4), np.float32)
        energy = cuda.local.array(4, np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        tz = cuda.threadIdx.z
        tid = (tz * 8 + ty) * 8 + tx
        column = cuda.blockIdx.x * 8 + tx
        row = cuda.blockIdx.y * 8 + ty
        plane = cuda.blockIdx.z * 8 + tz
        x = np.float32(column) * spacing
        y = np.float32(row) * spacing
        cutoff_squared = cutoff * cutoff
        inverse_cutoff = ONE / cutoff_squared
        for m in range(4):
            energy[m] = ZERO
        for k in range(offsets.shape[0]):
            cuda.syncthreads()
            if tid < 4 * DEPTH:
                bz = cuda.blockIdx.z + REACH + offsets[k, 0]
                by = cuda.blockIdx.y + REACH + offsets[k, 1]
                bx = cuda.blockIdx.x + REACH + offsets[k, 2]
                atoms[tid // 4, tid % 4] = bins[bz, by, bx, tid // 4, tid % 4]
            cuda.syncthreads()
            for a in range(DEPTH):
                charge = atoms[a, 3]
                if charge == ZERO:
                    break
                dx = x - atoms[a, 0]
                dy = y - atoms[a, 1]
                in_plane = dx * dx + dy * dy
                if in_plane < cutoff_squared:
                    dz = np.float32(plane) * spacing - atoms[a, 2]
                    for m in range(4):
                        squared = in_plane + dz * dz
                        if squared < cutoff_squared:
                            s = ONE - squared * inverse_cutoff
                            energy[m] += charge * s * s / math.sqrt(squared)
                        dz += TWO * spacing
        if column < potential.shape[2] and row < potential.shape[1]:
            for m in range(4):
                if plane + 2 * m < potential.shape[0]:
                    potential[plane + 2 * m, row, column] = energy[m]

    return coulomb


COULOMB_CPP = f"""
#define DEPTH {DEPTH}
#define REACH {REACH}
#define COUNT {len(OFFSETS)}
__constant__ int offsets[COUNT][3] = {{{", ".join(f"{{{a}, {b}, {c}}}" for a, b, c in OFFSETS.tolist())}}};
extern "C" __global__ void peer(const float* bins, float spacing, float cutoff, float* potential,
                                int planes, int rows, int columns, int bins_y, int bins_x) {{
    __shared__ float atoms[DEPTH][4];
    float energy[4] = {{0.0f, 0.0f, 0.0f, 0.0f}};
    int tid = (threadIdx.z * 8 + threadIdx.y) * 8 + threadIdx.x;
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    int plane = blockIdx.z * 8 + threadIdx.z;
    float x = column * spacing, y = row * spacing;
    float cutoff_squared = cutoff * cutoff, inverse_cutoff = 1.0f / cutoff_squared;
    for (int k = 0; k < COUNT; ++k) {{
        __syncthreads();
        if (tid < 4 * DEPTH) {{
            int bz = blockIdx.z + REACH + offsets[k][0];
            int by = blockIdx.y + REACH + offsets[k][1];
            int bx = blockIdx.x + REACH + offsets[k][2];
            atoms[tid / 4][tid % 4] = bins[((bz * bins_y + by) * bins_x + bx) * 4 * DEPTH + tid];
        }}
        __syncthreads();
        for (int a = 0; a < DEPTH; ++a) {{
            float charge = atoms[a][3];
            if (charge == 0.0f) break;
            float dx = x - atoms[a][0], dy = y - atoms[a][1];
            float in_plane = dx * dx + dy * dy;
            if (in_plane < cutoff_squared) {{
                float dz = plane * spacing - atoms[a][2];
                for (int m = 0; m < 4; ++m) {{
                    float squared = in_plane + dz * dz;
                    if (squared < cutoff_squared) {{
                        float s = 1.0f - squared * inverse_cutoff;
                        energy[m] += charge * s * s / sqrtf(squared);
                    }}
                    dz += 2.0f * spacing;
                }}
            }}
        }}
    }}
    if (column < columns && row < rows)
        for (int m = 0; m < 4; ++m)
            if (plane + 2 * m < planes) potential[((plane + 2 * m) * rows + row) * columns + column] = energy[m];
}}
"""


def coulomb_work(size: str) -> Work:
    planes, rows, columns = sized(size, (128, 128, 128), (11, 16, 21), cpu=(24, 48, 64))
    spacing, cutoff = np.float32(0.5), np.float32(8)
    grid = (blocks(columns, BIN), blocks(rows, BIN), blocks(planes, BIN))
    shape = tuple(extent + 2 * REACH for extent in grid[::-1])
    corner = np.stack(np.meshgrid(*[np.arange(extent) - REACH for extent in shape], indexing="ij"), axis=-1)
    # Each atom is at least a quarter of the spacing away from every lattice point, so no term is huge.
    inside = np.floor(random(301, *shape, DEPTH, 3) * BIN) + np.float32(0.25) + random(302, *shape, DEPTH, 3) / 2
    bins = np.empty((*shape, DEPTH, 4), np.float32)
    bins[..., :3] = ((corner[..., None, :] * BIN + inside) * spacing)[..., ::-1]
    counts = np.random.default_rng(303).integers(2, DEPTH + 1, (*shape, 1))
    bins[..., 3] = np.where(np.arange(DEPTH) < counts, random(304, *shape, DEPTH) - np.float32(0.4), 0)
    points = planes * rows * columns
    return Work(
        grid=grid,
        block=(8, 8, 2),
        args=(bins, spacing, cutoff, np.empty((planes, rows, columns), np.float32)),
        outputs=(3,),
        extents=(planes, rows, columns, shape[1], shape[2]),
        n_bytes=4 * points + bins.nbytes,
        flops=points * float(counts.mean()) * len(OFFSETS) * 6,
    )


def coulomb_reference(xp, args):
    bins, spacing, cutoff, potential = args
    bins, spacing, cutoff = bins.astype(xp.float64), float(spacing), float(cutoff)
    index = [xp.arange(extent) for extent in potential.shape]
    z, y, x = xp.meshgrid(*[spacing * each for each in index], indexing="ij")
    bz, by, bx = xp.meshgrid(*[each // BIN + REACH for each in index], indexing="ij")
    energy = xp.zeros(potential.shape)
    for dz, dy, dx in OFFSETS.tolist():
        for a in range(DEPTH):
            atom = bins[bz + dz, by + dy, bx + dx, a]
            squared = (x - atom[..., 0]) ** 2 + (y - atom[..., 1]) ** 2 + (z - atom[..., 2]) ** 2
            s = xp.maximum(1 - squared / cutoff**2, 0)
            energy += atom[..., 3] * s * s / xp.sqrt(squared)
    return (energy,)


CASES = (
    Case(
        "Lennard-Jones, neighbor lists",
        make_lennard_jones,
        "void(float32[:, ::1], int32[::1], int32[:, ::1], float32, float32, float32[:, ::1], float32[::1])",
        LENNARD_JONES_CPP,
        lennard_jones_work,
        lennard_jones_reference,
        # A pair at the cutoff, where the force is not zero, may be on the other side of it in float64.
        tolerance=1e-3,
    ),
    Case(
        "Coulomb potential, bins within a cutoff",
        make_coulomb,
        "void(float32[:, :, :, :, ::1], float32, float32, float32[:, :, ::1])",
        COULOMB_CPP,
        coulomb_work,
        coulomb_reference,
        tolerance=1e-4,
    ),
)
