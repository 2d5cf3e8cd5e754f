"""Photons in layers of tissue by Monte Carlo, as loops for Numba; each thread has arrays of its own."""

import math

import numpy as np
from fourth.radiology import (
    ALMOST_ONE,
    CHANCE,
    LEAST_WEIGHT,
    ONE,
    RING_WIDTH,
    RINGS,
    SCALE,
    SLICE_HEIGHT,
    SLICES,
    TINY,
    TWO,
    TWO_PI,
    ZERO,
)
from numba import get_num_threads

from reference_kernels.jit import alone, loops, prange


@alone
def next_state(state):
    state = np.uint32(state ^ (state << np.uint32(13)))
    state = np.uint32(state ^ (state >> np.uint32(17)))
    return np.uint32(state ^ (state << np.uint32(5)))


@alone
def uniform(state):
    return np.float32(state >> np.uint32(8)) * SCALE + TINY


@alone
def scattered(ux, uy, uz, g, r1, r2):
    ratio = (ONE - g * g) / (ONE - g + TWO * g * r1)
    cosine = (ONE + g * g - ratio * ratio) / (TWO * g)
    sine = math.sqrt(max(ONE - cosine * cosine, ZERO))
    azimuth = TWO_PI * r2
    cp = math.cos(azimuth)
    sp = math.sin(azimuth)
    if abs(uz) > ALMOST_ONE:
        return sine * cp, sine * sp, (cosine if uz > ZERO else -cosine)
    across = math.sqrt(ONE - uz * uz)
    vx = sine * (ux * uz * cp - uy * sp) / across + ux * cosine
    vy = sine * (uy * uz * cp + ux * sp) / across + uy * cosine
    return vx, vy, -sine * cp * across + uz * cosine


@alone
def follow(state, layers, most_steps, absorbed, escaped):
    x, y, z, ux, uy, uz, weight, layer = ZERO, ZERO, ZERO, ZERO, ZERO, ONE, ONE, 0
    for _ in range(most_steps):
        top = layers[layer - 1, 0] if layer > 0 else ZERO
        bottom = layers[layer, 0]
        absorption = layers[layer, 1]
        total = absorption + layers[layer, 2]
        state = next_state(state)
        step = -math.log(uniform(state)) / total
        if z + step * uz >= bottom or z + step * uz < top:
            face = bottom if uz > ZERO else top
            step = (face - z) / uz
            x += step * ux
            y += step * uy
            z = face
            layer = layer + 1 if uz > ZERO else layer - 1
            if layer < 0 or layer >= layers.shape[0]:
                escaped[0 if layer < 0 else 1] += weight
                return
            continue
        x += step * ux
        y += step * uy
        z += step * uz
        lost = weight * absorption / total
        weight -= lost
        ring = min(int(math.sqrt(x * x + y * y) / RING_WIDTH), RINGS - 1)
        cut = min(int(z / SLICE_HEIGHT), SLICES - 1)
        absorbed[cut, ring] += lost
        state = next_state(state)
        r1 = uniform(state)
        state = next_state(state)
        ux, uy, uz = scattered(ux, uy, uz, layers[layer, 3], r1, uniform(state))
        if weight < LEAST_WEIGHT:
            state = next_state(state)
            if uniform(state) > CHANCE:
                return
            weight /= CHANCE


@loops
def photons(seeds, layers, most_steps, absorbed, escaped):
    parts = get_num_threads()
    own = np.zeros((parts, SLICES, RINGS), np.float32)
    left = np.zeros((parts, 2), np.float32)
    for part in prange(parts):
        for i in range(part * seeds.size // parts, (part + 1) * seeds.size // parts):
            follow(seeds[i], layers, most_steps, own[part], left[part])
    for part in range(parts):
        absorbed += own[part]
        escaped += left[part]
