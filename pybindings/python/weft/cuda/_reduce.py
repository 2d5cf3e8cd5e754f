"""Reductions: an array to one value, by any function of two that may be applied in any order.

A first launch leaves as many values as it has blocks, a second one makes one of them. On a GPU neighboring threads read
neighboring elements, several each before the first is needed; on the CPU a thread goes over a piece of the array, and
keeps as many values as the machine computes at once. Where bits are to be the same everywhere, a thread of the CPU does
what the threads of a GPU's block do, as if each device had the same number of multiprocessors.
"""

from __future__ import annotations

import functools
import operator

from weft import _weft, config, cuda
from weft._weft import Signature
from weft.cuda._devices import get_current_device
from weft.cuda._jit import device_function, jit
from weft.cuda._memory.making import device_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np

    from weft._weft import Dispatcher

# On a GPU: threads per block, and blocks per multiprocessor. Together they fill a multiprocessor.
THREADS = 512
_TILE = 8 * THREADS
BLOCKS = 4

# On the CPU: accumulators per thread; pieces per core; the fewest elements of a piece.
LANES = 256
PIECES = 4
LEAST = 1 << 14

# For reproducible results: the number of multiprocessors that determines the order of operations on all devices.
_REPRODUCIBLE_CORES = 128


def block_reduction(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the function by which the values of a block's threads become one, which the first thread gets."""

    @jit(device=True, inline=True)
    def combine_block(value, t):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        shared = cuda.shared.array(THREADS, dtype)
        shared[t] = value
        cuda.syncthreads()
        active = cuda.blockDim.x
        while active > 1:
            half = (active + 1) // 2
            if t + half < active:
                shared[t] = core(shared[t], shared[t + half])
            cuda.syncthreads()
            active = half
        return shared[0]

    made: Dispatcher = combine_block
    return made


def piece_by_piece(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the function by which one thread reduces an array of one dimension on a CPU.

    `lanes` is `LANES`, but not known to be: loops with a known count are unrolled before they could be vectorized.
    """

    @jit(device=True, inline=True)
    def reduced(piece, lanes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        value = piece[0]
        done = 1
        if piece.size > 2 * lanes:
            kept = cuda.local.array(LANES, dtype)
            for lane in range(lanes):
                kept[lane] = piece[lane]
            rounds = piece.size // lanes
            for number in range(1, rounds):
                row = piece[number * lanes :]
                for lane in range(lanes):
                    kept[lane] = core(kept[lane], row[lane])
            value = kept[0]
            for lane in range(1, lanes):
                value = core(value, kept[lane])
            done = rounds * lanes
        for i in range(done, piece.size):
            value = core(value, piece[i])
        return value

    made: Dispatcher = reduced
    return made


def _tiles(core: Dispatcher, dtype: Any, reproducible: bool) -> Dispatcher:
    """Make the kernel for GPUs: a block goes from tile to tile, and a thread reads eight elements of each.

    A block has `THREADS` threads and a tile of its own at least; or it is the only one, with no more threads than
    elements.
    """
    combine_block = block_reduction(core, dtype)

    @jit(device=True, inline=True)
    def eight(tile, t):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # Issue all loads before the first use.
        a = core(tile[t], tile[t + THREADS])
        b = core(tile[t + 2 * THREADS], tile[t + 3 * THREADS])
        c = core(tile[t + 4 * THREADS], tile[t + 5 * THREADS])
        d = core(tile[t + 6 * THREADS], tile[t + 7 * THREADS])
        return core(core(a, b), core(c, d))

    def reduce_tiles(count, array, partials, start, ends):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        t, block, blocks = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
        full = count // _TILE
        first = 0
        if block < full:
            value = eight(array[block * _TILE :], t)
            for number in range(block + blocks, full, blocks):
                value = core(value, eight(array[number * _TILE :], t))
        else:
            value = array[t]
            first = 1
        if block == full % blocks:
            rest = array[full * _TILE :]
            for k in range(first, 8):
                if t + k * THREADS < rest.size:
                    value = core(value, rest[t + k * THREADS])
        value = combine_block(value, t)
        if t == 0:
            partials[cuda.blockIdx.x] = core(value, start) if ends else value

    made: Dispatcher = jit(reduce_tiles, reproducible=reproducible)
    return made


def _tiles_by_one(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the kernel for the CPU that takes the steps of `_tiles` in their order: one thread is a block of `lanes`."""

    @jit(device=True, inline=True)
    def fold(kept, tile, lanes, begins):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # Slices, whose indices start at 0, so that loops over them are vectorized.
        a, b, c, d = tile, tile[THREADS:], tile[2 * THREADS :], tile[3 * THREADS :]
        e, f, g, h = tile[4 * THREADS :], tile[5 * THREADS :], tile[6 * THREADS :], tile[7 * THREADS :]
        if begins:
            for t in range(lanes):
                left = core(core(a[t], b[t]), core(c[t], d[t]))
                kept[t] = core(left, core(core(e[t], f[t]), core(g[t], h[t])))
        else:
            for t in range(lanes):
                left = core(core(a[t], b[t]), core(c[t], d[t]))
                kept[t] = core(kept[t], core(left, core(core(e[t], f[t]), core(g[t], h[t]))))

    def reduce_tiles(count, array, partials, start, ends, lanes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        block, blocks = cuda.blockIdx.x, cuda.gridDim.x
        kept = cuda.local.array(THREADS, dtype)
        full = count // _TILE
        first = 0
        if block < full:
            fold(kept, array[block * _TILE :], lanes, True)
            for number in range(block + blocks, full, blocks):
                fold(kept, array[number * _TILE :], lanes, False)
        else:
            for t in range(lanes):
                kept[t] = array[t]
            first = 1
        if block == full % blocks:
            rest = array[full * _TILE :]
            for k in range(first, 8):
                for t in range(min(lanes, rest.size - k * THREADS)):
                    kept[t] = core(kept[t], rest[t + k * THREADS])
        active = lanes
        while active > 1:
            half = (active + 1) // 2
            for t in range(active - half):
                kept[t] = core(kept[t], kept[t + half])
            active = half
        partials[block] = core(kept[0], start) if ends else kept[0]

    made: Dispatcher = jit(reduce_tiles, reproducible=True)
    return made


def _pieces(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the kernel for the CPU: one thread a block, each with a piece of the array."""
    reduced = piece_by_piece(core, dtype)

    def reduce_pieces(count, array, partials, start, ends, lanes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        block, blocks = cuda.blockIdx.x, cuda.gridDim.x
        # Indices into slices start at 0, so the compiler knows that they are nonnegative and omits a test per access.
        value = reduced(array[count * block // blocks : count * (block + 1) // blocks], lanes)
        partials[block] = core(value, start) if ends else value

    made: Dispatcher = jit(reduce_pieces, reproducible=False)
    return made


class Reduce:
    """A reduction of arrays of one dimension by a function of two values; `cuda.reduce` is the same, as a decorator.

    Parameters
    ----------
    functor
        A function of two elements, which must be associative and commutative: the order in which it is applied is not
        said, and differs between devices. Also one that kernels know, such as ``max`` or ``operator.mul``.
    reproducible
        Whether the order is one for all devices, and the function gives the same bits on all of them; if it is None, as
        ``weft.config.REPRODUCIBLE`` says when the reduction is called.

    Examples
    --------
    >>> total = cuda.Reduce(lambda a, b: a + b)
    >>> total(np.arange(5.0))  # doctest: +SKIP
    np.float64(10.0)
    """

    def __init__(self, functor: Callable[[Any, Any], Any], *, reproducible: bool | None = None) -> None:
        self._functor = device_function(_defined(functor))
        self._reproducible = reproducible
        self._kernels: dict[tuple[Any, bool, bool], Dispatcher] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Reduce, reproducible=self._reproducible), (self._functor,)

    def _kernel(self, dtype: np.dtype[Any], pieces: bool, reproducible: bool) -> Dispatcher:
        kernel = self._kernels.get((dtype, pieces, reproducible))
        if kernel is None:
            ty = _weft.from_dtype(dtype)
            core = jit([Signature(ty, (ty, ty))], device=True, inline=True)(self._functor)
            core.result_type((ty, ty))  # reports the function's errors before the kernel's
            if pieces:
                kernel = _tiles_by_one(core, ty) if reproducible else _pieces(core, ty)
            else:
                kernel = _tiles(core, ty, reproducible)
            self._kernels[dtype, pieces, reproducible] = kernel
        return kernel

    def __call__(self, arr: Any, size: int | None = None, res: Any = None, init: Any = None, stream: Any = 0) -> Any:
        """Reduce an array.

        Parameters
        ----------
        arr
            A NumPy or device array of one dimension.
        size
            How many of its elements count, from the first on; all unless given.
        res
            A device array, whose first element becomes the result: nothing is copied to the host then.
        init
            A value that counts as one more element. Without it the elements alone count, and those of an empty array
            are 0.
        stream
            The stream to compute in.

        Returns
        -------
        number or None
            The result, of the array's dtype; None if ``res`` was given.
        """
        import numpy as np

        from weft.cuda._ufunc import placing

        array = placing.read(arr)
        if placing.is_number(array) or array.ndim != 1:
            msg = "only support 1D array"
            raise TypeError(msg)
        if size is not None:
            count = operator.index(size)
            if not 0 <= count <= array.size:
                msg = f"size {count} is larger than the array, which has {array.size} elements"
                raise ValueError(msg)
            array = array[:count]
        if res is not None and not (getattr(res, "ndim", 0) == 1 and res.size):
            msg = "res must be a one-dimensional array with at least one element"
            raise ValueError(msg)
        start = array.dtype.type(0 if init is None else init)
        if not array.size:
            if res is None:
                return start
            if isinstance(res, np.ndarray):
                res[0] = start
            else:
                placing.read(res)[:1].copy_to_device(np.array([start], res.dtype), stream=stream)
            return None
        return self.run(array, start, init is not None, res, stream)

    def run(self, array: Any, start: Any, ends: bool, res: Any, stream: Any, dtype: Any = None) -> Any:
        """Reduce an array with an element or more, and `start` with it if `ends`.

        With a `dtype`, that of `start` and of the result, elements are converted to it as they are read.
        """
        from weft.cuda._ufunc import placing

        array = placing.on_device(array, None, stream)
        count = array.size
        reproducible = bool(config.REPRODUCIBLE if self._reproducible is None else self._reproducible)
        pieces = on_cpu()
        dtype = array.dtype if dtype is None else dtype
        kernel = self._kernel(dtype, pieces, reproducible)
        if pieces and not reproducible:
            blocks = min(PIECES * cores(), -(-count // LEAST))
            threads, last = 1, 1
        else:
            blocks = min(BLOCKS * (_REPRODUCIBLE_CORES if reproducible else cores()), max(count // _TILE, 1))
            threads, last = min(count, THREADS), min(blocks, THREADS)
        launched = functools.partial(_launched, kernel, stream, pieces, reproducible)
        own = res is None
        out = device_array(1, dtype, stream=stream) if own else placing.read(res)
        if blocks == 1:
            launched(1, threads, count, array, out, start, ends)
        else:
            partials = device_array(blocks, dtype, stream=stream)
            launched(blocks, threads, count, array, partials, start, False)
            launched(1, last, blocks, partials, out, start, ends)
        return out.getitem(0, stream=stream) if own else None


def _launched(
    kernel: Dispatcher, stream: Any, by_one: bool, reproducible: bool, blocks: int, threads: int, *args: Any
) -> None:
    """Launch a kernel of a reduction; one thread of the CPU has the lanes, or does what a block's threads do."""
    if by_one:
        lanes = threads if reproducible else LANES
        kernel.configure(blocks, 1, stream, advise=False)(*args, lanes)
    else:
        kernel.configure(blocks, threads, stream, advise=False)(*args)


def _defined(functor: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Give a function that calls one which is no Python function, such as `operator.add`."""
    if hasattr(functor, "__code__") or hasattr(functor, "py_func") or not callable(functor):
        return functor

    def applied(a, b):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return functor(a, b)

    return applied


def on_cpu() -> bool:
    return _weft.device_kind() == "cpu"


def in_pieces() -> bool:
    """Whether one thread has a piece of the array for itself, as on the CPU, if it may go its own way."""
    return on_cpu() and not config.REPRODUCIBLE


@functools.cache
def _cores_of(device: int) -> int:
    del device
    return int(get_current_device().MULTIPROCESSOR_COUNT)


def cores() -> int:
    """How many multiprocessors the device has, or is taken to have."""
    return _REPRODUCIBLE_CORES if config.REPRODUCIBLE else _cores_of(_weft.current_device_id())


reduce = Reduce
