"""Convert a color image to gray: a two-dimensional grid, uint8 arrays, and a PNG file if Pillow is installed."""

from pathlib import Path

import numpy as np
from weft import cuda


@cuda.jit
def grey(image, out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        r, g, b = image[y, x, 0], image[y, x, 1], image[y, x, 2]
        out[y, x] = np.float32(0.299) * r + np.float32(0.587) * g + np.float32(0.114) * b


def picture(height, width):
    """Rings over a slope of colors."""
    y, x = np.mgrid[0:height, 0:width]
    radius = np.hypot(y - height / 2, x - width / 2)
    image = np.empty((height, width, 3), np.uint8)
    image[..., 0] = 255 * x / width
    image[..., 1] = 255 * y / height
    image[..., 2] = 127.5 + 127.5 * np.sin(radius / 12)
    return image


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
    image = picture(720, 1280)
    out = np.zeros(image.shape[:2], np.uint8)
    threads = (16, 16)
    blocks = ((out.shape[1] + 15) // 16, (out.shape[0] + 15) // 16)
    grey[blocks, threads](image, out)

    expected = image @ np.array([0.299, 0.587, 0.114])
    assert np.abs(out - expected).max() <= 1.001
    save(image, "color.png")
    print(f"02_grey: {out.shape[1]} x {out.shape[0]} pixels: ok, {save(out, 'grey.png')}")


if __name__ == "__main__":
    main()
