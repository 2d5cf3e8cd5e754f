# weft: sig = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1])", adjoint = ["u", "out"], show = ["ir"]
"""Lanes of a warp add to adjacent elements: sums slide from lane to lane. Those of other rows are added as they are."""

from weft import cuda


@cuda.jit
def adjacent_adjoint(u, out):
    x, y = cuda.grid(2)
    if 0 < x < u.shape[1] - 3 and 0 < y < u.shape[0] - 1:
        out[y, x] = u[y, x - 1] + 2.0 * u[y, x] + u[y, x + 3] * u[y + 1, x]
