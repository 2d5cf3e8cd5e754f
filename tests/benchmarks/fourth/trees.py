"""Gravity by Barnes and Hut: each thread traverses an octree with a stack of its own."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, sized

ZERO, ONE = np.float32(0), np.float32(1)
SOFTENING = np.float32(1e-4)
BUCKET = 8
DEEPEST = 10
STACK = 7 * DEEPEST + 8


def make_gravity(cuda):
    @cuda.jit(device=True)
    def pull(dx, dy, dz, squared, mass):
        inverse = ONE / math.sqrt(squared + SOFTENING)
        strength = mass * inverse * inverse * inverse
        return strength * dx, strength * dy, strength * dz

    @cuda.jit
    def gravity(bodies, nodes, widths, children, ranges, theta, accelerations):
        i = cuda.grid(1)
        if i >= bodies.shape[0]:
            return
        stack = cuda.local.array(STACK, np.int32)
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
                px, py, pz = pull(dx, dy, dz, squared, nodes[node, 3])
                ax += px
                ay += py
                az += pz
            elif last > first:
                for j in range(first, last):
                    if j != i:
                        dx = bodies[j, 0] - x
                        dy = bodies[j, 1] - y
                        dz = bodies[j, 2] - z
                        squared = dx * dx + dy * dy + dz * dz
                        px, py, pz = pull(dx, dy, dz, squared, bodies[j, 3])
                        ax += px
                        ay += py
                        az += pz
            else:
                for c in range(8):
                    child = children[node, c]
                    if child >= 0:
                        stack[top] = child
                        top += 1
        accelerations[i, 0] = ax
        accelerations[i, 1] = ay
        accelerations[i, 2] = az

    return gravity


GRAVITY_CPP = f"""
__device__ void pull(float dx, float dy, float dz, float squared, float mass, float& ax, float& ay, float& az) {{
    float inverse = 1.0f / sqrtf(squared + 1e-4f);
    float strength = mass * inverse * inverse * inverse;
    ax += strength * dx;
    ay += strength * dy;
    az += strength * dz;
}}

extern "C" __global__ void peer(const float4* bodies, const float4* nodes, const float* widths, const int* children,
                                const int2* ranges, float theta, float* accelerations, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[{STACK}];
    float x = bodies[i].x, y = bodies[i].y, z = bodies[i].z;
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    stack[0] = 0;
    int top = 1;
    while (top > 0) {{
        int node = stack[--top];
        float4 mean = nodes[node];
        float dx = mean.x - x, dy = mean.y - y, dz = mean.z - z;
        float squared = dx * dx + dy * dy + dz * dz;
        int2 range = ranges[node];
        if (widths[node] * widths[node] < theta * theta * squared) {{
            pull(dx, dy, dz, squared, mean.w, ax, ay, az);
        }} else if (range.y > range.x) {{
            for (int j = range.x; j < range.y; ++j) {{
                if (j != i) {{
                    float4 other = bodies[j];
                    dx = other.x - x;
                    dy = other.y - y;
                    dz = other.z - z;
                    squared = dx * dx + dy * dy + dz * dz;
                    pull(dx, dy, dz, squared, other.w, ax, ay, az);
                }}
            }}
        }} else {{
            for (int c = 0; c < 8; ++c) {{
                int child = children[8 * node + c];
                if (child >= 0) stack[top++] = child;
            }}
        }}
    }}
    accelerations[3 * i] = ax;
    accelerations[3 * i + 1] = ay;
    accelerations[3 * i + 2] = az;
}}
"""


def octree(bodies: np.ndarray) -> tuple[np.ndarray, ...]:
    """The bodies in the order of the leaves; of each node its center of mass and mass, width, children, and bodies.

    Only leaves have bodies. They hold at most BUCKET of them, except at the greatest depth.
    """
    scaled = (bodies[:, :3] * (1 << DEEPEST)).astype(np.int64).clip(0, (1 << DEEPEST) - 1)
    code = np.zeros(len(bodies), np.int64)
    for bit in range(DEEPEST):
        for axis in range(3):
            code |= ((scaled[:, axis] >> bit) & 1) << (3 * bit + axis)
    order = np.argsort(code, kind="stable")
    bodies, code = bodies[order], code[order]
    masses = np.append(0, np.cumsum(bodies[:, 3], dtype=np.float64))
    moments = np.cumsum(np.vstack([np.zeros(3), bodies[:, :3].astype(np.float64) * bodies[:, 3:]]), axis=0)
    nodes, widths, children, ranges = [], [], [], []
    first, last = np.array([0]), np.array([len(bodies)])
    n_nodes = 0
    for depth in range(DEEPEST + 1):
        mass = masses[last] - masses[first]
        nodes.append(np.column_stack([(moments[last] - moments[first]) / mass[:, None], mass]))
        widths.append(np.full(first.size, 2.0**-depth))
        n_nodes += first.size
        leaf = (last - first <= BUCKET) | (depth == DEEPEST)
        ranges.append(np.where(leaf[:, None], np.column_stack([first, last]), 0))
        own = np.full((first.size, 8), -1)
        shift = 3 * (DEEPEST - depth - 1)
        if shift < 0:
            children.append(own)
            break
        parent = np.flatnonzero(~leaf)
        base = (code[first[parent]] >> (shift + 3)) << (shift + 3)
        edges = base[:, None] + (np.arange(9) << shift)
        starts = np.searchsorted(code, edges)
        filled = starts[:, 1:] > starts[:, :-1]
        numbers = np.full(filled.shape, -1)
        numbers[filled] = n_nodes + np.arange(int(filled.sum()))
        own[parent] = numbers
        children.append(own)
        first, last = starts[:, :-1][filled], starts[:, 1:][filled]
        if first.size == 0:
            break
    tree = (np.concatenate(each) for each in (nodes, widths, children, ranges))
    kinds = (np.float32, np.float32, np.int32, np.int32)
    return bodies, *(each.astype(kind) for each, kind in zip(tree, kinds, strict=True))


def gravity_work(size: str) -> Work:
    n = sized(size, 1 << 16, 700, cpu=1 << 13)
    numbers = np.random.default_rng(370)
    # Bodies around some centers, in the unit cube
    centers = 0.2 + 0.6 * numbers.random((16, 3))
    positions = centers[numbers.integers(0, 16, n)] + numbers.normal(scale=0.06, size=(n, 3))
    mass = 0.5 + numbers.random((n, 1))
    bodies, *tree = octree(np.hstack([positions.clip(0, 0.9999), mass / n]).astype(np.float32))
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(bodies, *tree, np.float32(0.6), np.empty((n, 3), np.float32)),
        outputs=(6,),
        extents=(n,),
        n_bytes=28 * n + sum(each.nbytes for each in tree),
        flops=20 * 300 * n,
    )


def gravity_reference(xp, args):
    bodies, nodes, widths, children, ranges = args[:5]
    bodies, nodes, widths, theta = *(each.astype(xp.float64) for each in (bodies, nodes, widths)), float(args[5])
    n = len(bodies)
    accelerations = xp.zeros((3, n))

    def pull(target, source):
        d = source[:, :3] - bodies[target, :3]
        strength = source[:, 3] * ((d * d).sum(axis=1) + float(SOFTENING)) ** -1.5
        for axis in range(3):
            accelerations[axis] += xp.bincount(target, weights=strength * d[:, axis], minlength=n)

    # All pairs of a body and a node, one depth of the tree after the other
    target, node = xp.arange(n), xp.zeros(n, xp.int64)
    while target.size:
        squared = ((nodes[node, :3] - bodies[target, :3]) ** 2).sum(axis=1)
        far = widths[node] ** 2 < theta**2 * squared
        pull(target[far], nodes[node[far]])
        target, node = target[~far], node[~far]
        first, last = ranges[node].T.astype(xp.int64)
        leaf = last > first
        for k in range(int((last - first).max()) if node.size else 0):
            chosen = (first + k < last) & (first + k != target)
            pull(target[chosen], bodies[first[chosen] + k])
        below = children[node[~leaf]]
        target = xp.repeat(target[~leaf], 8)[below.ravel() >= 0]
        node = below.ravel()[below.ravel() >= 0].astype(xp.int64)
    return (accelerations.T,)


CASES = (
    Case(
        "gravity by Barnes and Hut",
        make_gravity,
        "void(float32[:, ::1], float32[:, ::1], float32[::1], int32[:, ::1], int32[:, ::1], float32, float32[:, ::1])",
        GRAVITY_CPP,
        gravity_work,
        gravity_reference,
        # In float64, a few cells are on the other side of the criterion of the angle.
        tolerance=1e-3,
    ),
)
