"""Matrix tiles of a warp or a warpgroup, for kernels that CPython runs: `cuda.mma`.

A fragment has the bits of the elements that a lane holds. The lanes of a warp bring theirs to a product, which the
runtime computes as the CPU executor does. The warps of a warpgroup compute their rows independently, from matrices in
shared memory.
"""

from __future__ import annotations

import numpy as np

from weft import _weft
from weft.cuda._cpython import threads
from weft.cuda._cpython.names import INT64, NAMES, meet, site
from weft.cuda._cpython.scalars import SCALARS
from weft.cuda._cpython.warps import ALL, Collective
from weft.cuda._devices import get_current_device
from weft.cuda.mma import Tile, tile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Place = tuple[int, int]

_LANES = 32
# The types of arrays of other formats.
_ARRAYS = {"tf32": "float32", "e4m3": "uint8", "e5m2": "uint8"}
_FLOATS8 = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
# The dimensions of an array of panels.
_PANELS = 3
# The most products that a wait leaves in flight.
_MOST_PENDING = 7


class Fragment:
    """A lane's elements of A or B, as bits, in the order of its registers."""

    def __init__(self, tile: MatrixTile, part: str, bits: list[int]) -> None:
        self.tile, self.part, self.bits = tile, part, bits


class Shared:
    """A matrix in shared memory, for a tile of a warpgroup: an array, and the position of the first element."""

    def __init__(self, tile: MatrixTile, part: str, array: Any, place: Place) -> None:
        self.tile, self.part, self.array, self.place = tile, part, array, place

    def bits(self) -> list[list[int]]:
        """Give the bits of the elements: of A by rows, of B by columns."""
        m, n, k = self.tile.shape
        rows, columns = (m, k) if self.part == "a" else (k, n)
        plain = np.asarray(self.array)
        if plain.ndim == _PANELS:
            plain = plain.transpose(1, 0, 2).reshape(plain.shape[1], -1)
        i, j = self.place
        found = np.ascontiguousarray(plain[i : i + rows, j : j + columns])
        bits = found.view(f"u{found.itemsize}")
        made: list[list[int]] = (bits if self.part == "a" else bits.T).tolist()
        return made


class InFlight:
    """The accumulators of a warpgroup's product in flight. They are taken once."""

    def __init__(self, tile: MatrixTile, values: tuple[Any, ...], number: int, is_left_in_registers: bool) -> None:
        self.tile, self.values, self.number = tile, values, number
        self.is_left_in_registers, self.is_taken = is_left_in_registers, False

    def take(self) -> tuple[Any, ...]:
        """Give the accumulators."""
        if self.is_taken:
            msg = "these accumulators in flight were used before: each product is waited for or continued once"
            raise TypeError(msg)
        self.is_taken = True
        return self.values

    def _refuse(self, *_: Any) -> Any:
        msg = "accumulators in flight cannot be used: wait for the product first, acc = cuda.mma.wait(0, acc)"
        raise TypeError(msg)

    __getitem__ = __len__ = __iter__ = __add__ = __radd__ = __mul__ = __rmul__ = __eq__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class MatrixTile:
    """A tile, with its methods."""

    def __init__(self, name: Tile) -> None:
        self.path = name._weft_path
        self.shape, self.types, self.per_register, places, self.threads = _weft.matrix_layout(self.path)
        self.places = dict(zip("abc", places, strict=True))
        self.scalar = SCALARS[self.types[2]]

    def _elements(self, part: str, lane: int) -> list[Place]:
        """Give the positions of a lane's elements: the row, of B the column, and the position along k."""
        row, at = lane // 4, lane % 4 * self.per_register
        registers = self.places[part]
        return [(row + r, at + k + element) for r, k in registers for element in range(self.per_register)]

    def _values(self, lane: int, warp: int) -> list[Place]:
        return [(row + warp * 16 + lane // 4, column + lane % 4 * 2) for row, column in self.places["c"]]

    def _own_values(self) -> list[Place]:
        thread = threads.current()
        return self._values(thread.lane, 0 if self.threads == _LANES else thread.rank // _LANES % 4)

    def _rows(self, warp: int) -> list[int]:
        """Give the rows of a warp of a warpgroup."""
        return [first + warp * 16 + row for first in range(0, self.shape[0], 64) for row in range(16)]

    def _load(self, part: str, array: Any, i: int, j: int) -> Fragment | Shared:
        wanted = self.types["ab".index(part)]
        if isinstance(array, np.ndarray) and array.dtype.name == _FLOATS8.get(wanted):
            array = array.view(np.uint8)
        wanted = _ARRAYS.get(wanted, wanted)
        if self.threads > _LANES:
            if not isinstance(array, np.ndarray) or array.ndim not in (2, _PANELS) or array.dtype.name != wanted:
                msg = f"cuda.mma.Tile.{part} takes a swizzled shared array of two or three dimensions of {wanted}"
                raise TypeError(msg)
            return Shared(self, part, array, (int(i), int(j)))
        if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.name != wanted:
            msg = f"cuda.mma.Tile.{part} takes an array of two dimensions of {wanted}"
            raise TypeError(msg)
        plain = np.asarray(array)
        bits = []
        for row, at in self._elements(part, threads.current().lane):
            y, x = (int(i) + row, int(j) + at) if part == "a" else (int(i) + at, int(j) + row)
            bits.append(_bits(plain[y, x]))
        return Fragment(self, part, bits)

    def a(self, array: Any, *place: int) -> Fragment | Shared:
        """Load the left matrix, or take it from accumulators."""
        if place or not isinstance(array, tuple):
            return self._load("a", array, *place)
        m, _, k = self.shape
        element = self.types[0]
        if element not in ("float16", "bfloat16") or len(array) != m * k // self.threads:
            msg = f"cuda.mma.Tile.a takes the accumulators of a tile of {m} rows and {k} columns of {element}"
            raise TypeError(msg)
        # A block of accumulators has 16 rows and 8 columns: two of a row of 8, and two of the row 8 below.
        rounded = [_bits(SCALARS[element](value)) for value in array]
        bits = []
        for row, at in self.places["a"]:
            first = (row // 16 * (k // 8) + at // 8) * 4 + row % 16 // 8 * 2
            bits += rounded[first : first + 2]
        return Fragment(self, "a", bits)

    def b(self, array: Any, i: int, j: int) -> Fragment | Shared:
        """Load the right matrix."""
        return self._load("b", array, i, j)

    def zeros(self) -> tuple[Any, ...]:
        """Give accumulators that are zero."""
        return tuple(self.scalar(0) for _ in self.places["c"])

    def mma(self, a: Any, b: Any, acc: Any, wait: bool = True) -> tuple[Any, ...] | InFlight:
        """Multiply matrices; without `wait`, the product of a warpgroup remains in flight."""
        if not wait and self.threads == _LANES:
            msg = "cuda.mma.Tile.mma has no wait=False for a tile of a warp: make it with threads=128"
            raise TypeError(msg)
        if isinstance(acc, InFlight) and acc.tile.path == self.path and not acc.is_left_in_registers:
            acc = acc.take()
        fits = all(
            isinstance(x, (Fragment, Shared)) and (x.tile.path, x.part) == (self.path, part)
            for x, part in ((a, "a"), (b, "b"))
        )
        if not fits or not isinstance(acc, tuple) or len(acc) != len(self.places["c"]):
            msg = f"cuda.mma.Tile.mma takes what a and b return, and a tuple of {len(self.places['c'])} {self.types[2]}"
            raise TypeError(msg)
        brought = (a, b, [_bits(self.scalar(value)) for value in acc])
        warp = threads.current().rank // _LANES % 4 if self.threads > _LANES else 0

        def combine(lane: int, of_all: dict[int, Any]) -> tuple[Any, ...]:
            # The first lane computes the product for all.
            if -1 not in of_all:
                of_all[-1] = self._product(of_all, warp)
            found = of_all[-1]
            n = self.shape[1]
            values = self._values_of_warp(lane)
            return tuple(_number(self.scalar, found[row * n + column]) for row, column in values)

        made: tuple[Any, ...] = meet(Collective("warp", "mma", site(), combine, brought, ALL))
        if self.threads == _LANES:
            return made
        thread = threads.current()
        thread.products += 1
        if wait:
            thread.complete = thread.products
            return made
        return InFlight(self, made, thread.products, isinstance(a, Fragment))

    def _values_of_warp(self, lane: int) -> list[Place]:
        """Give the positions of a lane's accumulators among the rows of its warp."""
        if self.threads == _LANES:
            return self._values(lane, 0)
        return [(row // 64 * 16 + row % 64, column) for row, column in self._values(lane, 0)]

    def _product(self, of_all: dict[int, Any], warp: int) -> list[int]:
        m, n, k = self.shape
        m = m * _LANES // self.threads
        a, b, c = [0] * (m * k), [0] * (n * k), [0] * (m * n)
        first = next(lane for lane in range(_LANES) if lane in of_all)
        for matrix, part, of_first in ((a, "a", of_all[first][0]), (b, "b", of_all[first][1])):
            if isinstance(of_first, Shared):
                bits = of_first.bits()
                rows = [bits[row] for row in self._rows(warp)] if part == "a" else bits
                matrix[:] = [value for row in rows for value in row]
        for lane in range(_LANES):
            if lane not in of_all:
                continue
            of_a, of_b, of_c = of_all[lane]
            for matrix, part, bits in ((a, "a", of_a), (b, "b", of_b)):
                if isinstance(bits, Fragment):
                    for (row, at), value in zip(self._elements(part, lane), bits.bits, strict=True):
                        matrix[row * k + at] = value
            for (row, column), value in zip(self._values_of_warp(lane), of_c, strict=True):
                c[row * n + column] = value
        return _weft.matrix_product(self.path, get_current_device().compute_capability, a, b, c)

    def store(self, array: Any, i: int, j: int, acc: tuple[Any, ...]) -> None:
        """Store accumulators."""
        for (row, column), value in zip(self._own_values(), acc, strict=True):
            array[int(i) + row, int(j) + column] = value

    def coord(self, r: int) -> tuple[Any, Any]:
        """Give the position of an accumulator."""
        row, column = self._own_values()[int(r)]
        return INT64(row), INT64(column)


def _bits(value: Any) -> int:
    plain = np.asarray(value)
    return int.from_bytes(plain.tobytes(), "little")


def _number(scalar: Any, bits: int) -> Any:
    dtype = np.dtype(scalar.__name__)
    return scalar(np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0])


def of_host(name: Tile) -> MatrixTile:
    """Give what a tile of the host's is in a kernel."""
    return MatrixTile(name)


def set_registers(n: int) -> None:
    """Do nothing: CPython has no registers."""
    del n


def wait(n: int, acc: Any = None) -> tuple[Any, ...] | None:
    """Take the accumulators of a product; here it is complete."""
    if not 0 <= n <= _MOST_PENDING:
        msg = f"cuda.mma.wait takes an integer from 0 to {_MOST_PENDING} as n, not {n}"
        raise ValueError(msg)
    thread = threads.current()
    thread.complete = max(thread.complete, thread.products - n)
    if acc is None:
        return None
    if not isinstance(acc, InFlight):
        msg = "cuda.mma.wait takes what T.mma(..., wait=False) returns as acc; leave acc out to wait only"
        raise TypeError(msg)
    if acc.number > thread.complete:
        after = thread.products - acc.number
        msg = f"cuda.mma.wait({n}, acc) may leave this product in flight: {after} have begun after it"
        raise ValueError(msg)
    return acc.take()


NAMES["weft.cuda.set_registers"] = set_registers
NAMES["weft.cuda.mma.wait"] = wait
NAMES["weft.cuda.mma.tile"] = lambda *args, **names: MatrixTile(tile(*args, **names))
