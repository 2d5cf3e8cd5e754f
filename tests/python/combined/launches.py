"""The launches of a program: dimensions, blocks, and the values and memory layout of arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import random

    from combined.build import Param
    from combined.programs import Program, Writer

SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 97, 100, 127, 128, 129, 130)
LENGTHS = (1, 2, 3, 4, 5, 8, 11, 15, 16, 17, 18, 31, 32, 33, 34, 40, 47, 48)
BUDGET = 9000  # iterations of inner loops that a launch may cost the reference


@dataclass
class View:
    """An array of a launch: a part of a buffer."""

    buffer: int
    offset: int  # elements
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass
class Launch:
    """Grid, block and arguments."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    buffers: list[np.ndarray] = field(default_factory=list)  # each is one piece of memory, one-dimensional
    args: dict[str, Any] = field(default_factory=dict)  # views and numbers
    at_end: bool = True  # arrays end at the end of the accessible memory, or begin at its start


def launches(writer: Writer, kind: str, program: Program) -> None:
    """Creates the launches of a program."""
    rng = writer.rng
    shared = {} if kind.startswith(("block", "warp")) else shared_rows(writer)
    at_end = rng.random() < 0.75
    for number in range(rng.choice((2, 3, 3))):
        dims, grid, block = shape(writer, kind)
        shrink(writer, dims, grid, block, kind)
        made = Launch(grid, block, at_end=at_end)
        fill(made, program.params, dims, rng, shared)
        program.launches.append(made)
        threads = math.prod(block)
        if threads % 32 and "shuffle" in writer.features:
            program.missing_lanes = True
        if dims["M"] == 0 or dims["K"] == 0:
            writer.features.add("empty rows")
        del number
    program.features |= writer.features


def size(rng: random.Random, largest: int = 130) -> int:
    """How many elements there are."""
    if rng.random() < 0.6:
        return min(rng.choice(SIZES), largest)
    return rng.randint(1, largest)


def shape(writer: Writer, kind: str) -> tuple[dict[str, int], tuple[int, int, int], tuple[int, int, int]]:
    """The dimensions of a launch, its grid and its block."""
    rng = writer.rng
    dims = {key: rng.choice(LENGTHS) if rng.random() < 0.8 else rng.randint(1, 60) for key in ("M", "K")}
    dims["C"] = rng.choice((3, 3, 4, 2))
    for key in ("M", "K"):
        if key not in writer.positive and rng.random() < 0.06:
            dims[key] = 0
    from combined.programs import BLOCKS, BLOCKS_2D

    if kind in ("one", "strided"):
        dims["N"] = size(rng)
        threads = rng.choice(BLOCKS)
        if kind == "one":
            blocks = -(-dims["N"] // threads)
            if blocks > 40:
                threads, blocks = 32, -(-dims["N"] // 32)
            if writer.exact:
                dims["N"] = blocks * threads
                while dims["N"] > 130 and blocks > 1:
                    blocks -= 1
                    dims["N"] = blocks * threads
            elif rng.random() < 0.2:
                blocks += 1
        else:
            blocks = rng.randint(1, 3)
            threads = rng.choice((1, 5, 16, 32, 33, 64))
        grid, block = (blocks, 1, 1), (threads, 1, 1)
    elif kind in ("two", "plane", "block two"):
        width, height = writer.blocks[0] if writer.blocks else rng.choice(BLOCKS_2D)
        along, across = rng.choice((1, 2, 3, 5, 7, 16, 17, 31, 33, 40)), rng.choice((1, 2, 3, 4, 5, 9))
        if along * across > 130:
            across = max(1, 130 // along)
        dims["W"], dims["H"] = (along, across) if rng.random() < 0.7 else (across, along)
        dims["N"] = dims["W"] * dims["H"]
        if writer.blocks and writer.rng.random() < 0.5:  # mostly whole blocks
            dims["W"], dims["H"] = (
                min(130, width * writer.rng.choice((1, 1, 2))),
                min(130, height * writer.rng.choice((1, 2))),
            )
            dims["H"] = max(1, min(dims["H"], 130 // dims["W"]))
            dims["N"] = dims["W"] * dims["H"]
        if writer.blocks and width * height > 128:  # threads are generators there, which are slower in the reference
            dims["W"], dims["H"] = min(dims["W"], width), min(dims["H"], 2 * height)
            dims["N"] = dims["W"] * dims["H"]
        extent_x, extent_y = (dims["H"], dims["W"]) if "axes exchanged" in writer.features else (dims["W"], dims["H"])
        grid, block = (-(-extent_x // width), -(-extent_y // height), 1), (width, height, 1)
        if kind == "plane":
            grid = (grid[0], rng.randint(1, 2), 1)
    elif kind == "block":
        limit = writer.limit
        dims["N"] = size(rng, max(130, limit))
        threads = limit if writer.exact or rng.random() < 0.4 else rng.randint(1, limit)
        if dims["N"] > 3 * threads:
            dims["N"] = rng.randint(1, 3 * threads)
        grid, block = (-(-dims["N"] // threads), 1, 1), (threads, 1, 1)
    else:
        threads = rng.choice(writer.blocks)[0]
        dims["N"] = rng.randint(1, 9)
        grid, block = (-(-dims["N"] * 32 // threads), 1, 1), (threads, 1, 1)
    dims["G"] = grid[0]
    return dims, grid, block


def shrink(writer: Writer, dims: dict[str, int], grid: tuple[int, ...], block: tuple[int, ...], kind: str) -> None:
    """Makes rows shorter until the reference is fast enough."""
    threads = math.prod(grid) * math.prod(block) if kind in ("block", "block two", "warp") else dims["N"]
    while True:
        cost = sum(times * math.prod(dims.get(key, 1) for key in keys) for keys, times in writer.cost.items())
        if cost * threads <= BUDGET or max(dims["M"], dims["K"]) <= 2:
            return
        key = "M" if dims["M"] >= dims["K"] else "K"
        # Lengths close to a vector of 16 lanes test more than others.
        dims[key] = max(1, 17 if dims[key] > 34 else 16 if dims[key] == 17 else dims[key] * 2 // 3)


def shared_rows(writer: Writer) -> dict[str, tuple[str, int]]:
    """Arrays whose rows overlap those of other arrays: each thread accesses only its own rows."""
    shared: dict[str, tuple[str, int]] = {}
    for param in writer.params.values():
        if (
            len(param.extents) != 2
            or param.extents[0] != "N"
            or param.name[0] != "o"
            or param.layout == "F"
            or param.name in writer.growing
        ):
            continue
        for other in writer.params.values():
            same = other.extents == param.extents and other.dtype == param.dtype and other.name[0] in "ag"
            if same and other.layout != "F" and other.name not in shared and writer.maybe(0.3):
                param.layout = other.layout = "A"
                shared[param.name] = (other.name, writer.rng.choice((0, 0, 1, 3, 15, 16, 17)))
                writer.use("arrays that overlap")
                break
    return shared


def extents_of(param: Param, dims: dict[str, int]) -> tuple[int, ...]:
    found = []
    for extent in param.extents:
        if isinstance(extent, int):
            found.append(extent)
        else:
            text, _, more = extent.partition("+")
            size = math.prod(dims[part] if part in dims else int(part) for part in text.split("*"))
            found.append(size + int(more or 0))
    return tuple(found)


ROOM = 20  # elements of padding after a row of an array


def fill(
    launch: Launch,
    params: dict[str, Param],
    dims: dict[str, int],
    rng: random.Random,
    shared: dict[str, tuple[str, int]],
) -> None:
    """Draws the arguments."""
    draw = np.random.Generator(np.random.PCG64(rng.getrandbits(32)))
    for param in params.values():
        if param.name in shared:
            continue
        if not param.extents:
            low, high = param.values[1:]
            launch.args[param.name] = dims[param.key] if param.values[0] == "key" else rng.randint(low, high)
            continue
        shape = extents_of(param, dims)
        if param.layout == "A" and len(shape) == 1:
            strides: tuple[int, ...] = (2,)
            size = max(2 * shape[0] - 1, 0)
        elif param.layout == "A":
            wide = any(param.name == other for other, _ in shared.values())
            row = shape[-1] + (ROOM if wide else 3)
            strides = (row, 1)
            size = (shape[0] - 1) * row + shape[1] + (ROOM if wide else 0) if 0 not in shape else (ROOM if wide else 0)
        elif param.layout == "F":
            strides = (1, shape[0])
            size = math.prod(shape)
        else:
            strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
            size = math.prod(shape)
        memory = values(param, draw, size, dims)
        launch.args[param.name] = View(len(launch.buffers), 0, shape, strides)
        launch.buffers.append(memory)
    for name, (other, shift) in shared.items():
        view = launch.args[other]
        launch.args[name] = View(view.buffer, shift, view.shape, view.strides)
    launch.args = {name: launch.args[name] for name in params}


def values(param: Param, draw: np.random.Generator, size: int, dims: dict[str, int]) -> np.ndarray:
    """The initial values of an array."""
    kind, low, high = param.values
    dtype = np.dtype(param.dtype)
    if kind == "ints":
        return draw.integers(low, high + 1, size).astype(dtype)
    if kind == "sorted":
        return np.sort(draw.integers(low, high + 1, size)).astype(dtype)
    if kind == "next":
        at = np.arange(size)
        following = at + draw.integers(1, 9, size)
        return (
            np.where(following < dims["M"] * (2 if param.layout == "A" else 1), following, -1).astype(dtype)
            if param.layout != "A"
            else links(draw, size, dtype)
        )
    word, key = kind.split()[0], kind.split()[-1]
    if word == "starts":
        return np.sort(draw.integers(0, dims[key] + 1, size)).astype(dtype)
    if word == "up":
        return draw.integers(0, dims[key] + 1, size).astype(dtype)
    return draw.integers(0, dims[key], size).astype(dtype)


def links(draw: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """A linked list in every other element."""
    count = (size + 1) // 2
    following = np.arange(count) + draw.integers(1, 9, count)
    made = np.full(size, -1, dtype)
    made[::2] = np.where(following < count, following, -1)
    return made
