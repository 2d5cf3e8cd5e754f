"""Windows of constant size over images, with tests of the image's borders for each element."""

import numpy as np
import pytest
from harness import assert_exact, launch, module
from weft import cuda

SHAPES = [(1, 1), (2, 5), (3, 3), (7, 4), (9, 13)]
# By name: the loops and tests, ending where `row` and `column` are in the image, and whether these are locals there.
TESTS = {
    "chained": (
        "for dy in range({y0}, {y1}):\n for dx in range({x0}, {x1}):\n"
        "  row = y + dy\n  column = x + dx\n  if 0 <= row < h and 0 <= column < w:\n   "
    ),
    "direct": (
        "for dy in range({y0}, {y1}):\n for dx in range({x0}, {x1}):\n  if 0 <= y + dy < h and 0 <= x + dx < w:\n   "
    ),
    "continue": (
        "for dy in range({y0}, {y1}):\n for dx in range({x0}, {x1}):\n  row = y + dy\n  column = x + dx\n"
        "  if row < 0 or row >= h or column < 0 or column >= w:\n   continue\n  "
    ),
    "nested": (
        "for dy in range({y0}, {y1}):\n row = y + dy\n if row >= 0 and row < h:\n"
        "  for dx in range({x0}, {x1}):\n   column = x + dx\n   if column >= 0:\n    if column < w:\n     "
    ),
    "continue_outside": (
        "for dy in range({y0}, {y1}):\n row = dy + y\n if row < 0 or row >= h:\n  continue\n"
        " for dx in range({x0}, {x1}):\n  column = dx + x\n  if column < 0 or column >= w:\n   continue\n  "
    ),
    "columns_outside": (
        "for dx in range({x0}, {x1}):\n column = x + dx\n if 0 <= column < w:\n"
        "  for dy in range({y0}, {y1}):\n   row = y + dy\n   if 0 <= row < h:\n    "
    ),
    "from_zero": (
        "for j in range({y1} - {y0}):\n for i in range({x1} - {x0}):\n  dy = j + {y0}\n  dx = i + {x0}\n"
        "  row = y + dy\n  column = x + i + {x0}\n  if 0 <= row < h and 0 <= column < w:\n   "
    ),
    "while": (
        "for dy in range({y0}, {y1}):\n dx = {x0} - 1\n while dx < {x1} - 1:\n  dx += 1\n  row = y + dy\n"
        "  column = x + dx\n  if 0 <= row < h and 0 <= column < w:\n   "
    ),
    "first_column": (
        "first = x - 1\nfor dy in range({y0}, {y1}):\n for dx in range({x0}, {x1}):\n  row = y + dy\n"
        "  column = first + (dx + 1)\n  if 0 <= row < h and 0 <= first + dx + 1 < w:\n   "
    ),
}
WINDOWS = {
    "3x3": (-1, 2, -1, 2),
    "5x3": (-2, 3, -1, 2),
    "1x5": (0, 1, -2, 3),
    "2x4": (0, 2, -3, 1),
    "7x7": (-3, 4, -3, 4),
}
KERNEL = """
import numpy as np
from weft import cuda

WEIGHTS = np.arange(1, 50).reshape(7, 7)

@cuda.jit
def kernel(image, out):
    table = cuda.const.array_like(WEIGHTS)
    x, y = cuda.grid(2)
    h, w = image.shape
    if x >= w or y >= h:
        return
    s = image[y, x] * 0
    count = 0
    {loops}
    out[y, x, 0] = s
    out[y, x, 1] = count
"""


def image_of(shape, dtype):
    return ((np.arange(shape[0] * shape[1]) * 37 + 11) % 251).reshape(shape).astype(dtype)


def summed(image, window, step=(1, 1)):
    """The sum of weight times element over a window, and the number of its elements."""
    y0, y1, x0, x1 = window
    h, w = image.shape
    out = np.zeros((h, w, 2))
    for dy in range(y0, y1):
        for dx in range(x0, x1):
            rows, columns = np.arange(h) + dy * step[0], np.arange(w) + dx * step[1]
            inside = ((rows >= 0) & (rows < h))[:, None] & ((columns >= 0) & (columns < w))
            taken = image[rows.clip(0, h - 1)][:, columns.clip(0, w - 1)] * ((dy + 3) * 7 + dx + 4.0)
            out += np.stack((np.where(inside, taken, 0), inside), axis=2)
    return out


@pytest.mark.parametrize(
    ("window", "dtype"), [*((window, np.float32) for window in WINDOWS), ("5x3", np.uint8), ("3x3", np.float64)]
)
@pytest.mark.parametrize("test", TESTS)
def test_borders(test, window, dtype):
    y0, y1, x0, x1 = WINDOWS[window]
    head = TESTS[test].format(y0=y0, y1=y1, x0=x0, x1=x1)
    depth = head[head.rindex("\n") + 1 :]
    index = "y + dy, x + dx" if test == "direct" else "row, column"
    lines = head + f"s += table[dy + 3, dx + 3] * image[{index}]\n{depth}count += 1"
    kernel = module(KERNEL.format(loops=lines.replace("\n", "\n    "))).kernel
    for shape in SHAPES:
        image = image_of(shape, dtype)
        (_, got) = launch(kernel, (2, 3), (8, 4), image, np.zeros((*shape, 2)))
        assert_exact(got, summed(image, WINDOWS[window]))


@pytest.mark.parametrize(("by", "index"), [((1, 2), "y + dy, x + 2 * dx"), ((3, 1), "y + dy * 3, dx + x")])
def test_steps(by, index):
    row, column = index.split(", ")
    lines = f"""for dy in range(-1, 2):
        for dx in range(-2, 3):
            if 0 <= {row} < h and 0 <= {column} < w:
                s += table[dy + 3, dx + 3] * image[{index}]
                count += 1"""
    kernel = module(KERNEL.format(loops=lines)).kernel
    for shape in SHAPES:
        image = image_of(shape, np.float32)
        (_, got) = launch(kernel, (2, 3), (8, 4), image, np.zeros((*shape, 2)))
        assert_exact(got, summed(image, (-1, 2, -2, 3), by))


# Addresses whose terms change under the branch, or are only defined there. By name: the lines of the loop over `dx`.
CHANGING = {
    "column_in_branch": "if 0 <= y + dx < h:\n  column = first[y + dx]\n  s += image[y, column + dx]",
    "loaded_column": "if 0 <= y + dx < h:\n  s += image[y, first[y + dx] + dx]",
    "column_by_remainder": "if 0 <= y + dx < h:\n  column = first[y + dx] % (w - 2) + 1\n  s += image[y, column + dx]",
    "row_in_branch": "if 0 <= x + dx < w:\n  row = first[x + dx] % h\n  s += image[row, x + dx]",
    "row_in_loop": "c = x + dx\nr = first[y] % h\nif 0 <= c < w:\n  while r < h:\n    s += image[r, c]\n    r += 2",
    "row_in_for": (
        "c = x + dx\nr = y\nif 0 <= c < w:\n  for k in range(h - y):\n    s += (k + 1) * image[r, c]\n    "
        "r += 1\ns += r"
    ),
    "column_in_loop": "c = first[y]\nif y + dx < h:\n  while c < w - 1:\n    s += image[y, c + dx]\n    c += 3",
    "after_continue": "c = x + dx\nr = y\nif c < 0 or c >= w:\n  continue\nwhile r >= 0:\n  s += image[r, c]\n  r -= 1",
    "row_changes": "c = x + dx\nr = y\nif 0 <= c < w:\n  s += image[r, c]\n  r = h - 1 - y\n  s += 2 * image[r, c]",
    "one_of_two": "r = y\nif dx > 0:\n  r = h - 1\nif 0 <= x + dx < w:\n  s += image[r, x + dx]",
    "else": (
        "c = x + dx\nif c < 0:\n  s += image[y, c + w]\nelif c >= w:\n  s += image[y, c - w]\nelse:\n  s += image[y, c]"
    ),
    "carried": "c = x + dx\nif 0 <= c < w:\n  s += image[row, c]\n  row = (row + 1) % h\nelse:\n  row = 0",
    "conditional_column": (
        "c = x\nif dx == 0:\n  c = w - 1 - x\nelse:\n  c = x + dx\nif 0 <= c < w:\n  s += image[y, c]"
    ),
    "other_row": "c = x + dx\nif 0 <= c < w:\n  s += image[h - 1 - y, c] - 3 * image[y, w - 1 - c] + image[y // 2, c]",
    "stores": "c = x + dx\nif 0 <= c < w and dx != 0:\n  s += image[y, c]\n  out[y, c, 1 + (dx > 0)] = x + 1",
    "break": "c = x + dx\nif c >= w:\n  break\nif c >= 0:\n  s += image[y, c]",
    "late_column": "if 0 <= x + dx < w:\n  s += image[y, late + dx] if late > 0 else 7\n  late = x",
}


@pytest.mark.parametrize("wraparound", [True, False])
@pytest.mark.parametrize("name", CHANGING)
def test_terms_that_change(name, wraparound):
    body = CHANGING[name].replace("\n", "\n        ")
    kernel = module(f"""
from weft import cuda

@cuda.jit(wraparound={wraparound})
def kernel(image, first, out):
    x, y = cuda.grid(2)
    h, w = image.shape
    if x >= w or y >= h:
        return
    s = image[0, 0] * 0
    row = y
    late = 0
    for dx in range(-1, 2):
        {body}
    out[y, x, 0] = 10 * s + row
""").kernel
    plain = {}
    text = (
        "def plain(image, first, out, x, y):\n    h, w = image.shape\n    s = 0\n    c = x\n    row = y\n    late = 0\n"
    )
    exec(f"{text}    for dx in range(-1, 2):\n        {body}\n    out[y, x, 0] = 10 * s + row\n", plain)
    for shape in [(1, 3), (3, 4), (7, 4), (9, 13)]:
        image = image_of(shape, np.float64)
        first = 1 + np.arange(max(shape)) % (shape[1] - 2)
        expected = np.zeros((*shape, 3))
        for y, x in np.ndindex(shape):
            plain["plain"](image, first, expected, x, y)
        (*_, got) = launch(kernel, (2, 3), (8, 4), image, first, np.zeros((*shape, 3)))
        assert_exact(got, expected)


@cuda.jit
def column_afterwards(image, out):
    x, y = cuda.grid(2)
    h, w = image.shape
    if x < w and y < h:
        column = 0
        n = 0
        for dx in range(-2, 3):
            column = x + dx
            if column < 0 or column >= w:
                continue
            n += 1
            if image[y, column] > 100:
                break
        out[y, x] = column * 100 + n


def test_the_column_after_the_loop():
    for shape in SHAPES:
        image = image_of(shape, np.uint8)
        expected = np.zeros(shape, np.int64)
        for y, x in np.ndindex(shape):
            n = 0
            for column in range(x - 2, x + 3):
                n += 0 <= column < shape[1]
                if 0 <= column < shape[1] and image[y, column] > 100:
                    break
            expected[y, x] = column * 100 + n
        assert_exact(launch(column_afterwards, (2, 3), (8, 4), image, np.zeros(shape, np.int64))[1], expected)
