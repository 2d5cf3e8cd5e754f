"""A 5-point stencil, applied repeatedly: two device arrays that are swapped after each step."""

import numpy as np
from weft import cuda


@cuda.jit
def blur(source, target):
    j, i = cuda.grid(2)
    rows, cols = source.shape
    if 0 < i < rows - 1 and 0 < j < cols - 1:
        around = source[i - 1, j] + source[i + 1, j] + source[i, j - 1] + source[i, j + 1]
        target[i, j] = np.float32(0.5) * source[i, j] + np.float32(0.125) * around


def blurred(x):
    y = x.copy()
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    y[1:-1, 1:-1] = np.float32(0.5) * x[1:-1, 1:-1] + np.float32(0.125) * around
    return y


def main():
    image = np.random.default_rng(0).random((400, 600), np.float32)
    source, target = cuda.to_device(image), cuda.to_device(image)
    blocks = ((image.shape[1] + 31) // 32, (image.shape[0] + 7) // 8)
    expected = image
    rounds = 20
    for _ in range(rounds):
        blur[blocks, (32, 8)](source, target)
        source, target = target, source
        expected = blurred(expected)
    np.testing.assert_allclose(source.copy_to_host(), expected, rtol=1e-5)
    print(f"07_stencil_blur: {rounds} rounds over {image.shape}: ok")


if __name__ == "__main__":
    main()
