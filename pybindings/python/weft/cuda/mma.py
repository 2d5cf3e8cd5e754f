"""Matrix tiles of a warp or a warpgroup, for kernels: products of small matrices on tensor cores.

``T = cuda.mma.tile(16, 8, 16, a=cuda.bfloat16, b=cuda.bfloat16, c=cuda.float32)`` is a compile-time value. Its methods
are for kernels; docs/reference/intrinsics.md lists them.
"""

from __future__ import annotations

from weft import _weft
from weft.cuda._kernel_names import KernelName, member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Accumulators = tuple[Any, ...]


_WARP = 32


class Tile(KernelName):
    """A product of matrices that a warp or a warpgroup computes: its shape, and the types of the matrices."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "A matrix tile of a warp or a warpgroup.")
        self._layout = _weft.matrix_layout(path)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The extents m, n and k."""
        m, n, k = self._layout[0]
        return m, n, k

    @property
    def threads(self) -> int:
        """The number of threads that compute it: 32, a warp, or 128, a warpgroup."""
        return self._layout[4]

    if TYPE_CHECKING:

        def a(self, array: Any, i: int = ..., j: int = ...) -> Any:
            """Load the left matrix, whose first element is ``array[i, j]``.

            ``a(acc)`` takes it from the accumulators of another product.
            """

        def b(self, array: Any, i: int, j: int) -> Any:
            """Load the right matrix, whose first element is ``array[i, j]``."""

        def zeros(self) -> Accumulators:
            """Give accumulators that are zero."""

        def mma(self, a: Any, b: Any, acc: Any, wait: bool = True) -> Any:
            """Give the product of two matrices plus accumulators; with ``wait=False``, in flight."""

        def store(self, array: Any, i: int, j: int, acc: Accumulators) -> None:
            """Store accumulators to the matrix whose first element is ``array[i, j]``."""

        def coord(self, r: int) -> tuple[int, int]:
            """Give the row and the column of the lane's accumulator ``acc[r]``."""

    else:

        def __getattr__(self, name: str) -> Any:
            row = f"weft.cuda.mma.Tile.{name}"
            return KernelName(row) if row in _METHODS else super().__getattr__(name)

    def __reduce__(self) -> Any:
        return Tile, (self._weft_path,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tile) and self._weft_path == other._weft_path

    def __hash__(self) -> int:
        return hash(self._weft_path)

    def __repr__(self) -> str:
        (m, n, k), (a, b, c) = self.shape, self._layout[1]
        threads = "" if self.threads == _WARP else f", threads={self.threads}"
        return f"cuda.mma.tile({m}, {n}, {k}, a={a}, b={b}, c={c}{threads})"


class _Maker(KernelName):
    """`tile`, which the host can call, too."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.mma.tile")
        self.__module__ = "weft.cuda.mma"

    def __call__(self, m: int, n: int, k: int, a: Any, b: Any, c: Any, threads: int = _WARP) -> Tile:
        """Make a matrix tile of a warp or a warpgroup.

        Parameters
        ----------
        m, n, k
            The shape: the product of an m by k and a k by n matrix. A multiple of that of an instruction.
        a, b, c
            The types of the elements of the left matrix, of the right one, and of the accumulators; ``"tf32"`` for
            arrays of float32 whose elements lose their lower 13 bits, ``"e4m3"`` and ``"e5m2"`` for arrays of
            float8_e4m3fn and float8_e5m2, or of uint8 with their bits (GPUs of compute capability 8.9 and newer).
        threads
            32: a warp, with operands in registers. 128: a warpgroup, four consecutive warps of which the first one's
            number is a multiple of four, with operands in swizzled shared memory. It needs a GPU of compute capability
            9.0.

        Returns
        -------
        Tile
            The tile.

        Raises
        ------
        ValueError
            There is no such tile. The message lists those that there are.
        """
        return Tile(_weft.matrix_tile((m, n, k), (a, b, c), threads))

    def __reduce__(self) -> str:
        return "tile"


tile = _Maker()

if TYPE_CHECKING:

    def wait(n: int, acc: Any = ...) -> Any:
        """Wait until at most ``n`` products of the warpgroup are in flight; give the accumulators ``acc``."""


_METHODS = frozenset(f"weft.cuda.mma.Tile.{name}" for name in ("a", "b", "zeros", "mma", "store", "coord"))


def __getattr__(name: str) -> Any:
    return member(globals(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *member(globals(), "__all__")})
