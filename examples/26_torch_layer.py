"""A layer of PyTorch whose gradients weft derives: a network with it learns to separate two spirals."""

import math
import sys
from pathlib import Path

import numpy as np
from weft import cuda

try:
    import torch
except ImportError:
    print("26_torch_layer: PyTorch is not installed; nothing is run")
    sys.exit()

POINTS, BUMPS, ITERATIONS, SIZE = 400, 48, 250, 160


@cuda.jit("void(float32[:, :], float32[:, :], float32[:, :])")
def bumps(points, shapes, out):
    """Evaluate elliptic bumps at points. A bump has a center, the logarithms of two inverse radii, and an angle."""
    point, bump = cuda.grid(2)
    if point < out.shape[0] and bump < out.shape[1]:
        dx, dy = points[point, 0] - shapes[bump, 0], points[point, 1] - shapes[bump, 1]
        c, s = math.cos(shapes[bump, 4]), math.sin(shapes[bump, 4])
        a = (c * dx + s * dy) * math.exp(shapes[bump, 2])
        b = (c * dy - s * dx) * math.exp(shapes[bump, 3])
        out[point, bump] = math.exp(-a * a - b * b)


# No line of a backward pass: the operator launches the adjoint kernel.
bumps_op = bumps.as_torch_op(
    "examples::bumps",
    launch=lambda points, shapes: (((points.shape[0] + 31) // 32, (shapes.shape[0] + 7) // 8), (32, 8)),
    out=cuda.shaped(lambda points, shapes: (points.shape[0], shapes.shape[0])),
    backward="auto",
)


class Bumps(torch.nn.Module):
    """A layer of bumps that move, stretch and rotate."""

    def __init__(self, count):
        super().__init__()
        first = torch.zeros(count, 5)
        first[:, :2] = torch.rand(count, 2) * 2 - 1
        first[:, 2:4] = math.log(4.0)
        self.shapes = torch.nn.Parameter(first)

    def forward(self, points):
        """Return [point, bump]."""
        return bumps_op(points, self.shapes)


def spirals():
    """Make points of two spirals, and the number of each point's spiral."""
    rng = np.random.default_rng(3)
    radius, arm = np.sqrt(rng.random(POINTS)) * 0.9 + 0.05, rng.integers(0, 2, POINTS)
    angle = radius * 9 + arm * math.pi
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points + rng.normal(0, 0.015, points.shape), arm


def picture(network, points, arms, device):
    """Draw what the network says for each pixel, and the points. Needs Pillow; returns what became of it."""
    try:
        from PIL import Image
    except ImportError:
        return "no picture: Pillow is not installed"
    y, x = np.mgrid[:SIZE, :SIZE] / (SIZE / 2.2) - 1.1
    grid = torch.tensor(np.stack([x.ravel(), y.ravel()], axis=1), dtype=torch.float32, device=device)
    with torch.no_grad():
        share = torch.sigmoid(network(grid)[:, 0]).cpu().numpy().reshape(SIZE, SIZE, 1)
    pixels = share * np.array([250, 180, 80]) + (1 - share) * np.array([90, 150, 220])
    for arm, color in enumerate(([20, 40, 110], [140, 50, 0])):
        at = np.rint((points[arms == arm] + 1.1) * (SIZE / 2.2)).astype(int).clip(1, SIZE - 2)
        for step in ((0, 0), (0, 1), (1, 0), (1, 1)):
            pixels[at[:, 1] + step[1], at[:, 0] + step[0]] = color
    folder = Path(__file__).parent / "out"
    folder.mkdir(exist_ok=True)
    Image.fromarray(np.kron(pixels.astype(np.uint8), np.ones((3, 3, 1), np.uint8))).save(folder / "spirals.png")
    return "see examples/out/spirals.png"


def main():
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    points, arms = spirals()
    inputs = torch.tensor(points, dtype=torch.float32, device=device)
    wanted = torch.tensor(arms, dtype=torch.float32, device=device)
    network = torch.nn.Sequential(Bumps(BUMPS), torch.nn.Linear(BUMPS, 1)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    losses = []
    for _ in range(ITERATIONS):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(inputs)[:, 0], wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    with torch.no_grad():
        right = ((network(inputs)[:, 0] > 0) == (wanted > 0.5)).float().mean().item()
    assert losses[-1] < 0.05, losses[-1]
    assert right > 0.98, right
    shown = picture(network, points, arms, device)
    print(f"26_torch_layer: loss {losses[0]:.2f} to {losses[-1]:.3f}, {right:.1%} of points right: ok, {shown}")


if __name__ == "__main__":
    main()
