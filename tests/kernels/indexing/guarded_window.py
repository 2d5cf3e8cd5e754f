# weft: sig = "void(uint8[:, ::1], float32[:, ::1])", assume = ["disjoint", "nonneg", "small"], show = ["ir", "ptx"]
"""The border of a window is tested for each neighbor; a row of the window has one address."""

import numpy as np

from weft import cuda


@cuda.jit
def guarded_window(image, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        total = np.float32(0)
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                row = y + dy
                column = x + dx
                if 0 <= row < height and 0 <= column < width:
                    total += image[row, column]
        out[y, x] = total
