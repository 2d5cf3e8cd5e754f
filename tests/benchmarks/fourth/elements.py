"""Finite elements of float64: the residual of a diffusion problem over triangles, with atomics to the nodes."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, sized


def make_assembly(cuda):
    @cuda.jit(device=True)
    def gradients(x, y):
        twice_area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        b = (y[1] - y[2], y[2] - y[0], y[0] - y[1])
        c = (x[2] - x[1], x[0] - x[2], x[1] - x[0])
        return twice_area, b, c

    @cuda.jit
    def assemble(points, triangles, conductivity, u, residual, diagonal):
        e = cuda.grid(1)
        if e < triangles.shape[0]:
            nodes = cuda.local.array(3, np.int32)
            x = cuda.local.array(3, np.float64)
            y = cuda.local.array(3, np.float64)
            values = cuda.local.array(3, np.float64)
            for k in range(3):
                node = triangles[e, k]
                nodes[k] = node
                x[k] = points[node, 0]
                y[k] = points[node, 1]
                values[k] = u[node]
            twice_area, b, c = gradients(x, y)
            scale = conductivity[e] / (2.0 * twice_area)
            for i in range(3):
                flow = 0.0
                for j in range(3):
                    stiffness = scale * (b[i] * b[j] + c[i] * c[j])
                    flow += stiffness * values[j]
                    if i == j:
                        cuda.atomic.add(diagonal, nodes[i], stiffness)
                cuda.atomic.add(residual, nodes[i], flow)

    return assemble


ASSEMBLY_CPP = """
__device__ double gradients(const double x[3], const double y[3], double b[3], double c[3]) {
    b[0] = y[1] - y[2], b[1] = y[2] - y[0], b[2] = y[0] - y[1];
    c[0] = x[2] - x[1], c[1] = x[0] - x[2], c[2] = x[1] - x[0];
    return (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]);
}

extern "C" __global__ void peer(const double* points, const int* triangles, const double* conductivity,
                                const double* u, double* residual, double* diagonal, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < n) {
        int nodes[3];
        double x[3], y[3], values[3], b[3], c[3];
        for (int k = 0; k < 3; ++k) {
            int node = triangles[3 * e + k];
            nodes[k] = node;
            x[k] = points[2 * node];
            y[k] = points[2 * node + 1];
            values[k] = u[node];
        }
        double twice_area = gradients(x, y, b, c);
        double scale = conductivity[e] / (2.0 * twice_area);
        for (int i = 0; i < 3; ++i) {
            double flow = 0.0;
            for (int j = 0; j < 3; ++j) {
                double stiffness = scale * (b[i] * b[j] + c[i] * c[j]);
                flow += stiffness * values[j];
                if (i == j) atomicAdd(&diagonal[nodes[i]], stiffness);
            }
            atomicAdd(&residual[nodes[i]], flow);
        }
    }
}
"""


def assembly_work(size: str) -> Work:
    height, width = sized(size, (1025, 1025), (14, 18), cpu=(513, 1025))
    numbers = np.random.default_rng(450)
    rows, columns = np.mgrid[:height, :width]
    points = np.stack([columns, rows], axis=-1).reshape(-1, 2) + numbers.uniform(-0.2, 0.2, (height * width, 2))
    corner = (rows * width + columns)[:-1, :-1].ravel()
    lower = np.stack([corner, corner + 1, corner + width], axis=1)
    upper = np.stack([corner + 1, corner + width + 1, corner + width], axis=1)
    triangles = np.stack([lower, upper], axis=1).reshape(-1, 3).astype(np.int32)
    # The order of a mesh generator: neighbors are near each other, but not adjacent.
    n = len(triangles)
    triangles = triangles[np.argsort(np.arange(n) + numbers.uniform(0, 512, n))]
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(
            points, triangles, numbers.uniform(1, 2, n), numbers.random(len(points)), np.zeros(len(points)),
            np.zeros(len(points)),
        ),
        outputs=(4, 5),
        extents=(n,),
        n_bytes=20 * n + 56 * len(points),
        flops=60 * n,
    )  # fmt: skip


def assembly_reference(xp, args):
    points, triangles, conductivity, u, residual, _ = args
    x, y = points[triangles, 0], points[triangles, 1]
    b = xp.stack([y[:, 1] - y[:, 2], y[:, 2] - y[:, 0], y[:, 0] - y[:, 1]], axis=1)
    c = xp.stack([x[:, 2] - x[:, 1], x[:, 0] - x[:, 2], x[:, 1] - x[:, 0]], axis=1)
    twice_area = b[:, 1] * -c[:, 2] + c[:, 1] * b[:, 2]
    stiffness = b[:, :, None] * b[:, None, :] + c[:, :, None] * c[:, None, :]
    stiffness *= (conductivity / (2 * xp.abs(twice_area)))[:, None, None]
    flow = (stiffness * u[triangles][:, None, :]).sum(axis=2)
    nodes = triangles.ravel()
    own = xp.stack([stiffness[:, k, k] for k in range(3)], axis=1)
    return tuple(xp.bincount(nodes, each.ravel(), minlength=residual.size) for each in (flow, own))


CASES = (
    Case(
        "finite elements, a thread a triangle",
        make_assembly,
        "void(float64[:, ::1], int32[:, ::1], float64[::1], float64[::1], float64[::1], float64[::1])",
        ASSEMBLY_CPP,
        assembly_work,
        assembly_reference,
        tolerance=1e-11,
        accumulates=True,
    ),
)
