"""A differentiable renderer: Gaussian splats, drawn over each other, are fitted to an image by gradients."""

import math
from pathlib import Path

import numpy as np
from weft import cuda

SIZE, SPLATS, ITERATIONS = 48, 40, 100
THREADS = (16, 16)
BLOCKS = (SIZE // 16, SIZE // 16)


@cuda.jit
def render(splats, background, image):
    """Draw all splats on a pixel, the first one at the back.

    A splat has a position, the logarithms of two inverse radii, an angle, a color and an opacity.
    """
    x, y = cuda.grid(2)
    red, green, blue = background, background, background
    for n in range(SPLATS):
        dx = (x + cuda.float32(0.5)) / SIZE - splats[n, 0]
        dy = (y + cuda.float32(0.5)) / SIZE - splats[n, 1]
        c, s = math.cos(splats[n, 4]), math.sin(splats[n, 4])
        a = (c * dx + s * dy) * math.exp(splats[n, 2])
        b = (c * dy - s * dx) * math.exp(splats[n, 3])
        alpha = math.exp(-a * a - b * b) / (cuda.float32(1) + math.exp(-splats[n, 8]))
        red += alpha * (splats[n, 5] - red)
        green += alpha * (splats[n, 6] - green)
        blue += alpha * (splats[n, 7] - blue)
    image[y, x, 0] = red
    image[y, x, 1] = green
    image[y, x, 2] = blue


@cuda.jit
def distance(image, target, loss):
    x, y = cuda.grid(2)
    for channel in range(3):
        cuda.atomic.add(loss, 0, (image[y, x, channel] - target[y, x, channel]) ** 2)


@cuda.jit
def adam(values, gradient, mean, square, rate, number):
    """Take a step of the optimizer Adam."""
    n, part = cuda.grid(2)
    if n < values.shape[0] and part < values.shape[1]:
        g = gradient[n, part]
        mean[n, part] = 0.9 * mean[n, part] + 0.1 * g
        square[n, part] = 0.99 * square[n, part] + 0.01 * g * g
        change = mean[n, part] / (1.0 - 0.9**number) / (math.sqrt(square[n, part] / (1.0 - 0.99**number)) + 1e-8)
        values[n, part] -= rate * change


def picture():
    """Make an image to fit: a sun over hills."""
    rows, columns = np.mgrid[:SIZE, :SIZE] / SIZE
    image = np.stack([0.3 + 0.5 * rows, 0.5 + 0.3 * rows, 0.9 - 0.3 * rows], axis=2)
    image[np.hypot(rows - 0.25, columns - 0.7) < 0.15] = 1.0, 0.85, 0.3
    image[rows > 0.65 + 0.1 * np.sin(7 * columns)] = 0.2, 0.55, 0.25
    image[rows > 0.8 + 0.08 * np.cos(9 * columns)] = 0.1, 0.35, 0.2
    return image.astype(np.float32)


def save(pixels, name):
    """Write a PNG into examples/out if Pillow is installed, and say where."""
    try:
        from PIL import Image
    except ImportError:
        return "no picture: Pillow is not installed"
    folder = Path(__file__).parent / "out"
    folder.mkdir(exist_ok=True)
    Image.fromarray(np.kron(pixels, np.ones((5, 5, 1), np.uint8))).save(folder / name)
    return f"see examples/out/{name}"


def main():
    rng = np.random.default_rng(1)
    first = np.zeros((SPLATS, 9), np.float32)
    first[:, :2] = rng.random((SPLATS, 2))
    first[:, 2:4] = math.log(8.0)
    first[:, 4] = rng.random(SPLATS) * math.pi
    first[:, 5:8] = 0.5
    splats, target = cuda.to_device(first), cuda.to_device(picture())
    mean, square = cuda.to_device(np.zeros_like(first)), cuda.to_device(np.zeros_like(first))
    image, loss = cuda.device_array((SIZE, SIZE, 3), np.float32), cuda.to_device(np.zeros(1, np.float32))
    errors = []
    for number in range(1, ITERATIONS + 1):
        loss[0] = 0.0
        with cuda.tape() as tape:
            render[BLOCKS, THREADS](splats, cuda.float32(0.5), image)
            distance[BLOCKS, THREADS](image, target, loss)
        tape.backward(loss)
        adam[(3, 1), (16, 16)](splats, tape.gradient(splats), mean, square, 0.07, number)
        errors.append(math.sqrt(loss.copy_to_host()[0] / image.size))

    assert errors[-1] < 0.25 * errors[0], (errors[0], errors[-1])
    both = np.hstack([target.copy_to_host(), image.copy_to_host()])
    shown = save((255 * both.clip(0, 1)).astype(np.uint8), "splats.png")
    print(f"21_fit_splats: {SPLATS} splats, error {errors[0]:.3f} to {errors[-1]:.3f}: ok, {shown}")


if __name__ == "__main__":
    main()
