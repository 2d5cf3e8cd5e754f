"""The picture of the first page, which is what the program on that page computes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

PLACE = "<!-- picture -->"


def add_picture(page: Path) -> None:
    """Run the program of the page, and show its array `image`."""
    from PIL import Image

    text = page.read_text()
    program = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if program is None or PLACE not in text:
        raise SystemExit(f"{page.name} has no program or no marker for its picture")
    source = page.with_name("home.py")
    source.write_text(program[1])  # a file, in which the compiler finds the kernel's text
    names: dict[str, Any] = {}
    exec(compile(program[1], source, "exec"), names)
    source.unlink()
    Image.fromarray(colored(names["image"])).save(page.with_name("home.png"))
    shown = "```{image} home.png\n:alt: What the kernel computes, the Mandelbrot set\n```"
    page.write_text(text.replace(PLACE, shown))


def colored(steps: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Colors for counts: dark where points escape at once, and inside the set."""
    scale = np.log1p(steps) / np.log1p(steps.max())
    scale = np.where(steps == steps.max(), 0, scale)[..., None]
    dark, middle, bright = np.array([18, 22, 58]), np.array([9, 105, 218]), np.array([255, 244, 214])
    low, high = np.clip(2 * scale, 0, 1), np.clip(2 * scale - 1, 0, 1)
    return np.asarray(dark + (middle - dark) * low + (bright - middle) * high, np.uint8)
