"""Where an image has certain colors, against NumPy."""

import numpy as np
from locate_pixelcolor_numbacuda import search_colors


def test_colors_are_found():
    image = np.random.default_rng(5).integers(0, 4, (60, 45, 3)).astype(np.uint8)
    colors = np.array([[1, 2, 3], [0, 0, 0], [3, 3, 1]], np.uint8)
    # One block in z: in more the kernel finds each pixel once for each of their threads.
    found = search_colors(image, colors, threadsperblock=(8, 8, 3))
    expected = {(x, y) for color in colors for x, y in np.argwhere((image == color).all(axis=2))}
    assert {tuple(pair) for pair in found.reshape(-1, 2)} == expected
    assert len(expected) > 50
