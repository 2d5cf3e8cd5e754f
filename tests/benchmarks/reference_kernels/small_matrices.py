"""Many small matrices as loops for Numba: Jacobi's rotations, least squares by QR, Kalman filters, Gram-Schmidt."""

import math

import numpy as np
from fourth.kalman import STATE
from fourth.polybench import LENGTH, VECTORS
from fourth.small_matrices import ONE, ORDER, SAMPLES, SMALL, SWEEPS, TERMS, TWO, ZERO

from reference_kernels.jit import alone, loops, prange


@alone
def rotate(a, p, q):
    if a[p, q] == ZERO:
        return
    theta = (a[q, q] - a[p, p]) / (TWO * a[p, q])
    t = ONE / (abs(theta) + math.sqrt(theta * theta + ONE))
    if theta < ZERO:
        t = -t
    c = ONE / math.sqrt(t * t + ONE)
    s = t * c
    for k in range(ORDER):
        akp = a[k, p]
        akq = a[k, q]
        a[k, p] = c * akp - s * akq
        a[k, q] = s * akp + c * akq
    for k in range(ORDER):
        apk = a[p, k]
        aqk = a[q, k]
        a[p, k] = c * apk - s * aqk
        a[q, k] = s * apk + c * aqk


@alone
def converged(a):
    outside = ZERO
    diagonal = ZERO
    for p in range(ORDER):
        diagonal += a[p, p] * a[p, p]
        for q in range(p + 1, ORDER):
            outside += a[p, q] * a[p, q]
    return outside <= SMALL * diagonal


@loops
def eigenvalues(matrices, out):
    for i in prange(out.shape[1]):
        a = np.empty((ORDER, ORDER), np.float32)
        element = 0
        for p in range(ORDER):
            for q in range(p, ORDER):
                a[p, q] = matrices[element, i]
                a[q, p] = a[p, q]
                element += 1
        sweep = 0
        while sweep < SWEEPS and not converged(a):
            for p in range(ORDER - 1):
                for q in range(p + 1, ORDER):
                    rotate(a, p, q)
            sweep += 1
        for p in range(1, ORDER):
            value = a[p, p]
            k = p - 1
            while k >= 0 and a[k, k] > value:
                a[k + 1, k + 1] = a[k, k]
                k -= 1
            a[k + 1, k + 1] = value
        for p in range(ORDER):
            out[p, i] = a[p, p]


@alone
def reflect(a, c):
    squares = ZERO
    for r in range(c, SAMPLES):
        squares += a[r, c] * a[r, c]
    length = math.sqrt(squares)
    alpha = -length if a[c, c] > ZERO else length
    head = a[c, c] - alpha
    a[c, c] = alpha
    scale = ONE / (-alpha * head)
    for k in range(c + 1, TERMS + 1):
        product = head * a[c, k]
        for r in range(c + 1, SAMPLES):
            product += a[r, c] * a[r, k]
        product *= scale
        a[c, k] -= product * head
        for r in range(c + 1, SAMPLES):
            a[r, k] -= product * a[r, c]


@loops
def fit(times, values, coefficients, residuals):
    for i in prange(residuals.size):
        a = np.empty((SAMPLES, TERMS + 1), np.float32)
        for r in range(SAMPLES):
            t = times[r, i]
            a[r, 0] = ONE
            a[r, 1] = t
            a[r, 2] = t * t
            a[r, TERMS] = values[r, i]
        for c in range(TERMS):
            reflect(a, c)
        for c in range(TERMS - 1, -1, -1):
            value = a[c, TERMS]
            for k in range(c + 1, TERMS):
                value -= a[c, k] * coefficients[k, i]
            coefficients[c, i] = value / a[c, c]
        rest = ZERO
        for r in range(TERMS, SAMPLES):
            rest += a[r, TERMS] * a[r, TERMS]
        residuals[i] = math.sqrt(rest)


@alone
def predict(f, noise, x, p, moved, work):
    for i in range(STATE):
        moved[i] = ZERO
        for j in range(STATE):
            moved[i] += f[i, j] * x[j]
            total = ZERO
            for k in range(STATE):
                total += f[i, k] * p[k, j]
            work[i, j] = total
    for i in range(STATE):
        x[i] = moved[i]
        for j in range(STATE):
            total = ZERO
            for k in range(STATE):
                total += work[i, k] * f[j, k]
            p[i, j] = total + noise[i, j]


@alone
def correct(x, p, work, z0, z1, noise):
    s00 = p[0, 0] + noise
    s01 = p[0, 1]
    s11 = p[1, 1] + noise
    scale = ONE / (s00 * s11 - s01 * s01)
    r0 = z0 - x[0]
    r1 = z1 - x[1]
    for i in range(STATE):
        k0 = (p[i, 0] * s11 - p[i, 1] * s01) * scale
        k1 = (p[i, 1] * s00 - p[i, 0] * s01) * scale
        x[i] += k0 * r0 + k1 * r1
        for j in range(STATE):
            work[i, j] = p[i, j] - k0 * p[0, j] - k1 * p[1, j]
    for i in range(STATE):
        for j in range(STATE):
            p[i, j] = work[i, j]


@loops
def kalman(measured, motion, process_noise, noise, filtered, covariance):
    steps, _, tracks = measured.shape
    for track in prange(tracks):
        x = np.zeros(STATE, np.float32)
        moved = np.empty(STATE, np.float32)
        p = np.zeros((STATE, STATE), np.float32)
        work = np.empty((STATE, STATE), np.float32)
        for i in range(STATE):
            p[i, i] = ONE
        for step in range(steps):
            predict(motion, process_noise, x, p, moved, work)
            if not math.isnan(measured[step, 0, track]):
                correct(x, p, work, measured[step, 0, track], measured[step, 1, track], noise)
            filtered[step, 0, track] = x[0]
            filtered[step, 1, track] = x[1]
        for i in range(STATE):
            for j in range(STATE):
                covariance[i, j, track] = p[i, j]


@loops
def gram_schmidt(matrices, q, r):
    for m in prange(matrices.shape[0]):
        a = np.empty((VECTORS, LENGTH), np.float32)
        for i in range(LENGTH):
            for k in range(VECTORS):
                a[k, i] = matrices[m, i, k]
        for k in range(VECTORS):
            squares = ZERO
            for i in range(LENGTH):
                squares += a[k, i] * a[k, i]
            norm = math.sqrt(squares)
            scale = ONE / norm
            for j in range(k):
                r[m, k, j] = ZERO
            r[m, k, k] = norm
            for i in range(LENGTH):
                a[k, i] *= scale
            for j in range(k + 1, VECTORS):
                dot = ZERO
                for i in range(LENGTH):
                    dot += a[k, i] * a[j, i]
                for i in range(LENGTH):
                    a[j, i] -= dot * a[k, i]
                r[m, k, j] = dot
        for i in range(LENGTH):
            for k in range(VECTORS):
                q[m, i, k] = a[k, i]
