"""The extents of a size, and the arrays of a generated kernel."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from suite.case import Work

if TYPE_CHECKING:
    from generated.build import Param

POOL = 1 << 20
MOST_TRIPS = 9


@dataclass
class Shapes:
    """The launch configuration and the extents of one size."""

    size: str
    extents: dict[str, int] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@functools.cache
def _pool(kind: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    if kind == "float":  # multiples of 1/16, which float32 holds exactly
        return (rng.integers(-32, 33, POOL) / 16).astype(np.float32)
    return rng.integers(0, 1 << 30, POOL)


def _filled(kind: str, shape: tuple[int, ...], offset: int) -> np.ndarray:
    """Values of a pool, repeated."""
    pool = _pool(kind)
    return np.resize(pool[offset % 4096 :], shape)


def _values(param: Param, shape: tuple[int, ...], extents: dict[str, int], offset: int) -> np.ndarray:
    """An array's values: floats in [-2, 2], integers in [0, 100], and indices in bounds."""
    dtype = np.dtype(param.dtype)
    if param.values == "out":
        return np.empty(shape, dtype)
    if param.values == "zeros":
        return np.zeros(shape, dtype)
    if param.values in ("float", "in place", "sorted"):
        if dtype.kind == "f":
            values = _filled("float", shape, offset).astype(dtype)
            return np.sort(values) if param.values == "sorted" else values
        return (_filled("int", shape, offset) % 101).astype(dtype)
    values = _filled("int", shape, offset)
    if param.values == "starts":
        trips = np.cumsum(values % 8) - values[0] % 8
        return np.minimum(trips, 4 * extents["N"]).astype(dtype)
    limit = {"int": 101, "bool": 2, "trips": MOST_TRIPS}.get(param.values) or extents[param.values]
    return (values % limit).astype(dtype)


def _laid_out(values: np.ndarray, layout: str) -> np.ndarray:
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "A":
        whole = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        whole[..., ::2] = values
        return whole[..., ::2]
    return values


def on_device(xp: Any, arg: Any) -> Any:
    """A copy of an argument for the GPU; CuPy's `asarray` makes a strided array contiguous, this does not."""
    if not isinstance(arg, np.ndarray):
        return arg
    if arg.flags.c_contiguous or arg.flags.f_contiguous:
        return xp.asarray(arg)
    step = arg.strides[-1] // arg.itemsize
    whole = xp.zeros((*arg.shape[:-1], step * arg.shape[-1]), arg.dtype)
    view = whole[..., ::step]
    view[...] = xp.asarray(np.ascontiguousarray(arg))
    return view


def work_of(params: dict[str, Param], shapes: Shapes, seed: int) -> Work:
    args: list[Any] = []
    initial: dict[int, np.ndarray] = {}
    for position, param in enumerate(params.values()):
        if not param.shape:
            args.append(np.dtype(param.dtype).type(shapes.extents[param.values]))
            continue
        shape = tuple(eval(size, {}, shapes.extents) for size in param.shape)
        values = _values(param, shape, shapes.extents, 131 * seed + 977 * position)
        if param.values in ("zeros", "in place"):
            initial[position] = values.copy()
        args.append(_laid_out(values, param.layout))
    return Work(
        grid=shapes.grid,
        block=shapes.block,
        args=tuple(args),
        outputs=tuple(position for position, param in enumerate(params.values()) if param.is_output),
        extents=(),
        n_bytes=sum(arg.nbytes for arg in args if isinstance(arg, np.ndarray)),
        initial=initial,
    )
