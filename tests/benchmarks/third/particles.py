"""Points and particles after Rodinia: nearest neighbors, a particle filter, streamcluster, lavaMD, an Euler flux."""

from __future__ import annotations

import math

import numpy as np
from suite.case import blocks, random, random_bytes, sized

from third.forms import given, on_cpu

ZERO, ONE, HALF, TWO = np.float32(0), np.float32(1), np.float32(0.5), np.float32(2)


def make_nearest(cuda):
    @cuda.jit
    def euclid(locations, distances, latitude, longitude):
        i = cuda.blockDim.x * (cuda.gridDim.x * cuda.blockIdx.y + cuda.blockIdx.x) + cuda.threadIdx.x
        if i < distances.size:
            dx = latitude - locations[i, 0]
            dy = longitude - locations[i, 1]
            distances[i] = math.sqrt(dx * dx + dy * dy)

    return euclid


def nearest_work(size: str):
    n = sized(size, 1 << 23, 700)
    args = (random(250, n, 2), np.empty(n, np.float32), np.float32(0.3), np.float32(0.7))
    return given((blocks(n, 1024), 4), (256,), args, (1,), (n,))


def nearest_reference(xp, args):
    locations = args[0].astype(xp.float64)
    return (xp.hypot(float(args[2]) - locations[:, 0], float(args[3]) - locations[:, 1]),)


def make_likelihood(cuda):
    @cuda.jit
    def likelihood(array_x, array_y, image, offsets, weights, partial):
        i = cuda.grid(1)
        tid = cuda.threadIdx.x
        buffer = cuda.shared.array(256, np.float32)
        buffer[tid] = ZERO
        cuda.syncthreads()
        height, width = image.shape
        if i < array_x.size:
            total = ZERO
            for k in range(offsets.shape[0]):
                x = int(array_x[i] + HALF) + offsets[k, 1]
                y = int(array_y[i] + HALF) + offsets[k, 0]
                index = abs(y * width + x)
                if index >= height * width:
                    index = 0
                pixel = np.float32(image[index // width, index % width])
                dark = pixel - np.float32(100)
                bright = pixel - np.float32(228)
                total += (dark * dark - bright * bright) / np.float32(5000)
            weight = math.exp(total / np.float32(offsets.shape[0]))
            weights[i] = weight
            buffer[tid] = weight
        cuda.syncthreads()
        stride = cuda.blockDim.x // 2
        while stride > 0:
            if tid < stride:
                buffer[tid] += buffer[tid + stride]
            cuda.syncthreads()
            stride >>= 1
        if tid == 0:
            partial[cuda.blockIdx.x] = buffer[0]

    return likelihood


def likelihood_work(size: str):
    n, height, width = sized(size, (1 << 15, 256, 256), (700, 40, 50))
    disk = np.array([(j, i) for j in range(-4, 5) for i in range(-4, 5) if i * i + j * j < 25], np.int32)
    args = (random(251, n) * np.float32(width), random(252, n) * np.float32(height), random_bytes(253, height, width),
            disk, np.empty(n, np.float32), np.empty(blocks(n, 256), np.float32))  # fmt: skip
    return given((blocks(n, 256),), (256,), args, (4, 5), (n, len(disk), height, width))


def likelihood_reference(xp, args):
    array_x, array_y, image, offsets, _, partial = args
    height, width = image.shape
    x = (array_x + HALF).astype(xp.int32)[:, None] + offsets[:, 1]
    y = (array_y + HALF).astype(xp.int32)[:, None] + offsets[:, 0]
    index = abs(y * width + x)
    index[index >= height * width] = 0
    pixel = image.ravel()[index].astype(xp.float64)
    weights = xp.exp((((pixel - 100) ** 2 - (pixel - 228) ** 2) / 5000).mean(axis=1))
    padded = xp.zeros(partial.size * 256)
    padded[: weights.size] = weights
    return weights, padded.reshape(-1, 256).sum(axis=1)


def make_find_index(cuda):
    @cuda.jit
    def find_index(array_x, array_y, cdf, u, x_new, y_new):
        i = cuda.grid(1)
        n = cdf.size
        if i < n:
            index = -1
            for k in range(n):
                if cdf[k] >= u[i]:
                    index = k
                    break
            if index == -1:
                index = n - 1
            x_new[i] = array_x[index]
            y_new[i] = array_y[index]

    return find_index


def find_index_work(size: str):
    n = sized(size, 4096, 300)
    weights = random(254, n)
    cdf = (weights.cumsum(dtype=np.float64) / weights.sum(dtype=np.float64)).astype(np.float32)
    u = ((np.arange(n) + 0.37) / n).astype(np.float32)
    args = (random(255, n), random(256, n), cdf, u, np.empty(n, np.float32), np.empty(n, np.float32))
    return given((blocks(n, 128),), (128,), args, (4, 5), (n,))


def find_index_reference(xp, args):
    array_x, array_y, cdf, u = args[:4]
    index = xp.minimum(xp.searchsorted(cdf, u), cdf.size - 1)
    return array_x[index], array_y[index]


def make_gain(cuda):
    @cuda.jit
    def compute_cost(coordinates, weight, cost, assign, center_table, candidate, work, switched):
        tid = cuda.grid(1)
        dimensions, n = coordinates.shape
        center = cuda.shared.array(64, np.float32)
        if cuda.threadIdx.x < dimensions:
            center[cuda.threadIdx.x] = coordinates[cuda.threadIdx.x, candidate]
        cuda.syncthreads()
        if tid < n:
            distance = ZERO
            for i in range(dimensions):
                difference = coordinates[i, tid] - center[i]
                distance += difference * difference
            there = distance * weight[tid]
            here = cost[tid] * weight[tid]
            if there < here:
                switched[tid] = 1
                work[tid, work.shape[1] - 1] = there - here
            else:
                work[tid, center_table[assign[tid]]] += here - there

    return compute_cost


def gain_work(size: str):
    n, dimensions, centers = sized(size, (1 << 18, 48, 8), (700, 20, 5))
    numbers = np.random.default_rng(257)
    args = (
        random(258, dimensions, n), random(259, n), random(260, n) * np.float32(dimensions / 3),
        numbers.integers(0, 64, n, dtype=np.int32), numbers.integers(0, centers, 64, dtype=np.int32), np.int32(n // 3),
        np.empty((n, centers + 1), np.float32), np.empty(n, np.int32),
    )  # fmt: skip
    return given((blocks(n, 256),), (256,), args, (6, 7), (dimensions, n, centers + 1))


def gain_reference(xp, args):
    coordinates, weight, cost, assign, table, candidate, work, _ = args
    coordinates = coordinates.astype(xp.float64)
    there = ((coordinates - coordinates[:, candidate, None]) ** 2).sum(axis=0) * weight
    here = cost.astype(xp.float64) * weight
    expected, each = xp.zeros(work.shape), xp.arange(weight.size)
    switched = there < here
    expected[each, xp.where(switched, work.shape[1] - 1, table[assign])] = -abs(there - here)
    return expected, switched.astype(xp.int32)


PER_BOX = 100


def make_lava(cuda):
    @cuda.jit
    def lava(alpha, neighbor_starts, neighbors, rv, charge, out):
        box = cuda.blockIdx.x
        tx = cuda.threadIdx.x
        a = cuda.shared.array((PER_BOX, 4), np.float32)
        b = cuda.shared.array((PER_BOX, 4), np.float32)
        q = cuda.shared.array(PER_BOX, np.float32)
        a2 = TWO * alpha * alpha
        i = tx
        while i < PER_BOX:
            for d in range(4):
                a[i, d] = rv[box * PER_BOX + i, d]
            i += cuda.blockDim.x
        cuda.syncthreads()
        for k in range(neighbor_starts[box], neighbor_starts[box + 1]):
            first = neighbors[k] * PER_BOX
            i = tx
            while i < PER_BOX:
                for d in range(4):
                    b[i, d] = rv[first + i, d]
                q[i] = charge[first + i]
                i += cuda.blockDim.x
            cuda.syncthreads()
            i = tx
            while i < PER_BOX:
                for j in range(PER_BOX):
                    r2 = a[i, 0] + b[j, 0] - (a[i, 1] * b[j, 1] + a[i, 2] * b[j, 2] + a[i, 3] * b[j, 3])
                    vij = math.exp(-a2 * r2)
                    fs = TWO * vij
                    dx = a[i, 1] - b[j, 1]
                    dy = a[i, 2] - b[j, 2]
                    dz = a[i, 3] - b[j, 3]
                    out[box * PER_BOX + i, 0] += q[j] * vij
                    out[box * PER_BOX + i, 1] += q[j] * fs * dx
                    out[box * PER_BOX + i, 2] += q[j] * fs * dy
                    out[box * PER_BOX + i, 3] += q[j] * fs * dz
                i += cuda.blockDim.x
            cuda.syncthreads()

    return lava


def lava_work(size: str):
    edge = sized(size, 3, 2)
    cells = [(z, y, x) for z in range(edge) for y in range(edge) for x in range(edge)]
    near = [[k for k, other in enumerate(cells) if max(abs(a - b) for a, b in zip(cell, other, strict=True)) <= 1]
            for cell in cells]  # fmt: skip
    starts = np.cumsum([0, *map(len, near)], dtype=np.int32)
    n = len(cells) * PER_BOX
    args = (np.float32(0.5), starts, np.concatenate(near).astype(np.int32), random(261, n, 4), random(262, n),
            np.empty((n, 4), np.float32))  # fmt: skip
    return given((len(cells),), (128,), args, (5,), (len(cells),))


def lava_reference(xp, args):
    alpha, starts, neighbors, rv, charge, out = args
    rv, charge = rv.astype(xp.float64), charge.astype(xp.float64)
    expected = xp.zeros(out.shape)
    for box in range(starts.size - 1):
        a = rv[box * PER_BOX : (box + 1) * PER_BOX, None]
        for k in neighbors[starts[box] : starts[box + 1]]:
            b, q = rv[None, k * PER_BOX : (k + 1) * PER_BOX], charge[k * PER_BOX : (k + 1) * PER_BOX]
            v = xp.exp(-2 * float(alpha) ** 2 * (a[..., 0] + b[..., 0] - (a[..., 1:] * b[..., 1:]).sum(axis=2)))
            expected[box * PER_BOX : (box + 1) * PER_BOX, 0] += (q * v).sum(axis=1)
            force = ((2 * q * v)[..., None] * (a[..., 1:] - b[..., 1:])).sum(axis=1)
            expected[box * PER_BOX : (box + 1) * PER_BOX, 1:] += force
    return (expected,)


GAMMA = np.float32(1.4)
SMOOTHING = np.float32(0.2)
WING, FAR_FIELD = -1, -2


def make_flux(cuda):
    @cuda.jit(device=True)
    def pressure_of(density, energy, speed_squared):
        return (GAMMA - ONE) * (energy - HALF * density * speed_squared)

    @cuda.jit
    def compute_flux(elements, normals, variables, far, fluxes):
        i = cuda.grid(1)
        if i < variables.shape[1]:
            density = variables[0, i]
            mx = variables[1, i]
            my = variables[2, i]
            mz = variables[3, i]
            energy = variables[4, i]
            vx = mx / density
            vy = my / density
            vz = mz / density
            speed_squared = vx * vx + vy * vy + vz * vz
            speed = math.sqrt(speed_squared)
            pressure = pressure_of(density, energy, speed_squared)
            sound = math.sqrt(GAMMA * pressure / density)
            flux_density = ZERO
            flux_x = ZERO
            flux_y = ZERO
            flux_z = ZERO
            flux_energy = ZERO
            for j in range(4):
                other = elements[j, i]
                nx = normals[0, j, i]
                ny = normals[1, j, i]
                nz = normals[2, j, i]
                length = math.sqrt(nx * nx + ny * ny + nz * nz)
                if other >= 0:
                    density_nb = variables[0, other]
                    mx_nb = variables[1, other]
                    my_nb = variables[2, other]
                    mz_nb = variables[3, other]
                    energy_nb = variables[4, other]
                    vx_nb = mx_nb / density_nb
                    vy_nb = my_nb / density_nb
                    vz_nb = mz_nb / density_nb
                    squared_nb = vx_nb * vx_nb + vy_nb * vy_nb + vz_nb * vz_nb
                    pressure_nb = pressure_of(density_nb, energy_nb, squared_nb)
                    sound_nb = math.sqrt(GAMMA * pressure_nb / density_nb)
                    factor = -length * SMOOTHING * HALF * (speed + math.sqrt(squared_nb) + sound + sound_nb)
                    flux_density += factor * (density - density_nb)
                    flux_x += factor * (mx - mx_nb)
                    flux_y += factor * (my - my_nb)
                    flux_z += factor * (mz - mz_nb)
                    flux_energy += factor * (energy - energy_nb)
                    through = HALF * (nx * vx + ny * vy + nz * vz)
                    through_nb = HALF * (nx * vx_nb + ny * vy_nb + nz * vz_nb)
                    both = HALF * (pressure + pressure_nb)
                    flux_density += through * density + through_nb * density_nb
                    flux_x += through * mx + through_nb * mx_nb + nx * both
                    flux_y += through * my + through_nb * my_nb + ny * both
                    flux_z += through * mz + through_nb * mz_nb + nz * both
                    flux_energy += through * (energy + pressure) + through_nb * (energy_nb + pressure_nb)
                elif other == WING:
                    flux_x += nx * pressure
                    flux_y += ny * pressure
                    flux_z += nz * pressure
                elif other == FAR_FIELD:
                    through = HALF * (nx * vx + ny * vy + nz * vz)
                    flux_density += through * density + far[0]
                    flux_x += through * mx + HALF * nx * (pressure + far[1])
                    flux_y += through * my + HALF * ny * (pressure + far[1])
                    flux_z += through * mz + HALF * nz * (pressure + far[1])
                    flux_energy += through * (energy + pressure) + far[2]
            fluxes[0, i] = flux_density
            fluxes[1, i] = flux_x
            fluxes[2, i] = flux_y
            fluxes[3, i] = flux_z
            fluxes[4, i] = flux_energy

    return compute_flux


def flux_work(size: str):
    n = sized(size, 1 << 16, 700)
    numbers = np.random.default_rng(263)
    elements = np.clip(np.arange(n) + numbers.integers(-500, 500, (4, n)), 0, n - 1).astype(np.int32)
    at_border = numbers.random((4, n)) < 0.1
    elements[at_border] = numbers.choice(np.array([WING, FAR_FIELD], np.int32), int(at_border.sum()))
    variables = random(264, 5, n) + np.array([[1], [0], [0], [0], [4]], np.float32)
    args = (elements, random(265, 3, 4, n) - HALF, variables, np.array([0.3, 0.7, 1.1], np.float32),
            np.empty((5, n), np.float32))  # fmt: skip
    return given((blocks(n, 192),), (192,), args, (4,), (n,))


def flux_reference(xp, args):
    elements, normals, variables, far, _ = args
    normals, variables, far = (each.astype(xp.float64) for each in (normals, variables, far))

    def derived(v):
        velocity = v[1:4] / v[0]
        squared = (velocity**2).sum(axis=0)
        pressure = 0.4 * (v[4] - 0.5 * v[0] * squared)
        carried = xp.concatenate([v[:4], v[4:] + pressure])
        return velocity, xp.sqrt(squared) + xp.sqrt(1.4 * pressure / v[0]), pressure, carried

    total = xp.zeros(variables.shape)
    velocity, wave, pressure, carried = derived(variables)
    for other, normal in zip(elements, normals.transpose(1, 0, 2), strict=True):
        there = variables[:, xp.maximum(other, 0)]
        velocity_nb, wave_nb, pressure_nb, carried_nb = derived(there)
        through = 0.5 * (normal * velocity).sum(axis=0)
        factor = -xp.sqrt((normal**2).sum(axis=0)) * 0.1 * (wave + wave_nb)
        inside = factor * (variables - there) + through * carried
        inside += 0.5 * (normal * velocity_nb).sum(axis=0) * carried_nb
        inside[1:4] += normal * 0.5 * (pressure + pressure_nb)
        outside = through * carried + xp.array([far[0], 0, 0, 0, far[2]])[:, None]
        outside[1:4] += 0.5 * normal * (pressure + far[1])
        wing = xp.zeros(variables.shape)
        wing[1:4] = normal * pressure
        total += xp.where(other >= 0, inside, xp.where(other == WING, wing, outside))
    return (total,)


CASES = (
    on_cpu("nearest neighbors, distances", make_nearest, nearest_work, nearest_reference),
    on_cpu("particle filter, likelihood", make_likelihood, likelihood_work, likelihood_reference),
    on_cpu("particle filter, search of the index", make_find_index, find_index_work, find_index_reference,
           tolerance=0.0),
    on_cpu("streamcluster, cost", make_gain, gain_work, gain_reference, accumulates=True),
    on_cpu("Euler flux, unstructured", make_flux, flux_work, flux_reference),
    on_cpu("lavaMD", make_lava, lava_work, lava_reference, accumulates=True),
)  # fmt: skip
