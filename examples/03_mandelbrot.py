"""The Mandelbrot set: complex numbers, a device function, and a while loop whose length differs between threads."""

from pathlib import Path

import numpy as np
from weft import cuda

LIMIT = 200


@cuda.jit
def escape_time(c, limit):
    """Count the steps after which z = z * z + c leaves the circle of radius 2."""
    z = 0j
    count = 0
    while count < limit and z.real * z.real + z.imag * z.imag < 4:
        z = z * z + c
        count += 1
    return count


@cuda.jit
def mandelbrot(left, top, step, out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = escape_time(complex(left + x * step, top - y * step), LIMIT)


def colored(counts):
    """Turn counts into colors: black inside, bands of blue and gold outside."""
    t = np.where(counts == LIMIT, 0, np.log1p(counts) / np.log1p(LIMIT))[..., None]
    phase = np.array([0.0, 0.55, 1.1])
    color = 0.5 - 0.5 * np.cos(2 * np.pi * (1.3 * t + phase * t))
    return np.where(counts[..., None] == LIMIT, 0, 255 * color).astype(np.uint8)


def save(pixels, name):
    """Write a PNG into examples/out if Pillow is installed, and say where."""
    try:
        from PIL import Image
    except ImportError:
        return "no picture: Pillow is not installed"
    folder = Path(__file__).parent / "out"
    folder.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(folder / name)
    return f"see examples/out/{name}"


def main():
    height, width = 600, 900
    counts = cuda.device_array((height, width), np.int32)
    mandelbrot[((width + 15) // 16, (height + 15) // 16), (16, 16)](-2.25, 1.0, 3.0 / width, counts)
    counts = counts.copy_to_host()

    # A few pixels whose fate is known: the origin never leaves, 1 + 1j leaves after two steps.
    at = {
        c: counts[round((1.0 - c.imag) * width / 3), round((c.real + 2.25) * width / 3)]
        for c in (0j, -1 + 0j, 0.5 + 0.9j)
    }
    assert at[0j] == LIMIT
    assert at[-1 + 0j] == LIMIT
    assert at[0.5 + 0.9j] < 10
    inside = (counts == LIMIT).mean() * 6.0  # the picture shows 3 x 2 units
    assert 1.45 < inside < 1.60, inside  # the set's area is about 1.507
    print(f"03_mandelbrot: {width} x {height} pixels, area {inside:.3f}: ok, {save(colored(counts), 'mandelbrot.png')}")


if __name__ == "__main__":
    main()
