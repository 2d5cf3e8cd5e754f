"""Forces between particles as loops for Numba: Lennard-Jones, a Coulomb potential, and gravity by Barnes and Hut."""

import math

import numpy as np
from fourth.molecules import BIN, DEPTH, ONE, REACH, TWENTY_FOUR, TWO, ZERO
from fourth.trees import SOFTENING, STACK

from reference_kernels.jit import alone, loops, prange


@alone
def nearest_image(d, box):
    if d > box / TWO:
        return d - box
    if d < -box / TWO:
        return d + box
    return d


@loops
def lennard_jones(positions, counts, neighbors, box, cutoff, forces, energies):
    cutoff_squared = cutoff * cutoff
    for i in prange(counts.size):
        fx = ZERO
        fy = ZERO
        fz = ZERO
        energy = ZERO
        for k in range(counts[i]):
            j = neighbors[k, i]
            dx = nearest_image(positions[i, 0] - positions[j, 0], box)
            dy = nearest_image(positions[i, 1] - positions[j, 1], box)
            dz = nearest_image(positions[i, 2] - positions[j, 2], box)
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


@alone
def add_bin(atoms, plane, row, column, spacing, cutoff_squared, energy):
    for a in range(DEPTH):
        charge = atoms[a, 3]
        if charge == ZERO:
            return
        for k in range(BIN):
            dz = np.float32(plane + k) * spacing - atoms[a, 2]
            for j in range(BIN):
                dy = np.float32(row + j) * spacing - atoms[a, 1]
                across = dz * dz + dy * dy
                if across >= cutoff_squared:
                    continue
                for i in range(BIN):
                    dx = np.float32(column + i) * spacing - atoms[a, 0]
                    squared = across + dx * dx
                    s = ONE - squared * (ONE / cutoff_squared)
                    term = charge * s * s / math.sqrt(squared)
                    energy[k, j, i] += term if squared < cutoff_squared else ZERO


@loops
def coulomb(bins, spacing, cutoff, potential):
    planes, rows, columns = potential.shape
    nz, ny, nx = (planes + BIN - 1) // BIN, (rows + BIN - 1) // BIN, (columns + BIN - 1) // BIN
    for b in prange(nz * ny * nx):
        bz = b // (ny * nx)
        by = b // nx % ny
        bx = b % nx
        energy = np.zeros((BIN, BIN, BIN), np.float32)
        for z in range(bz, bz + 2 * REACH + 1):
            for y in range(by, by + 2 * REACH + 1):
                for x in range(bx, bx + 2 * REACH + 1):
                    add_bin(bins[z, y, x], bz * BIN, by * BIN, bx * BIN, spacing, cutoff * cutoff, energy)
        for k in range(min(BIN, planes - bz * BIN)):
            for j in range(min(BIN, rows - by * BIN)):
                for i in range(min(BIN, columns - bx * BIN)):
                    potential[bz * BIN + k, by * BIN + j, bx * BIN + i] = energy[k, j, i]


@loops
def gravity(bodies, nodes, widths, children, ranges, theta, accelerations):
    for i in prange(bodies.shape[0]):
        stack = np.empty(STACK, np.int32)
        x = bodies[i, 0]
        y = bodies[i, 1]
        z = bodies[i, 2]
        ax = ZERO
        ay = ZERO
        az = ZERO
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            dx = nodes[node, 0] - x
            dy = nodes[node, 1] - y
            dz = nodes[node, 2] - z
            squared = dx * dx + dy * dy + dz * dz
            first = ranges[node, 0]
            last = ranges[node, 1]
            if widths[node] * widths[node] < theta * theta * squared:
                inverse = ONE / math.sqrt(squared + SOFTENING)
                strength = nodes[node, 3] * inverse * inverse * inverse
                ax += strength * dx
                ay += strength * dy
                az += strength * dz
            elif last > first:
                for j in range(first, last):
                    dx = bodies[j, 0] - x
                    dy = bodies[j, 1] - y
                    dz = bodies[j, 2] - z
                    inverse = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
                    strength = bodies[j, 3] * inverse * inverse * inverse
                    ax += strength * dx
                    ay += strength * dy
                    az += strength * dz
            else:
                for c in range(8):
                    if children[node, c] >= 0:
                        stack[top] = children[node, c]
                        top += 1
        accelerations[i, 0] = ax
        accelerations[i, 1] = ay
        accelerations[i, 2] = az
