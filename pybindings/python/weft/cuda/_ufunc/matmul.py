"""Products of matrices and vectors on the device: `@` and `np.matmul` of arrays with one or two dimensions.

On a GPU a block computes a tile of the result from tiles of both factors in shared memory. On the CPU a thread has a
piece of a row of the result, and adds to it a row of the second factor after the other, in a loop that is vectorized.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from weft import _weft, cuda
from weft.cuda._jit import jit
from weft.cuda._memory import copies
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import as_cuda_array, device_array, is_cuda_array, to_device
from weft.cuda._memory.ordering import ordered
from weft.cuda._reduce import on_cpu
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import configured
from weft.cuda._ufunc.results import writable

if TYPE_CHECKING:
    from typing import Any

    from weft._weft import Dispatcher

# Rows and columns of a tile, and columns per thread on the CPU.
TILE = 16
ABREAST = 64


@functools.cache
def _tiles(ty: Any, wide: Any) -> Dispatcher:
    """Make the kernel for GPUs: sums are added up as `wide`."""

    def multiply(rows, columns, count, a, b, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        of_a, of_b = cuda.shared.array((TILE, TILE), ty), cuda.shared.array((TILE, TILE), ty)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        i, j = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
        total = wide(0)
        for start in range(0, count, TILE):
            of_a[y, x] = a[i, start + x] if i < rows and start + x < count else ty(0)
            of_b[y, x] = b[start + y, j] if start + y < count and j < columns else ty(0)
            cuda.syncthreads()
            for k in range(TILE):
                total += wide(of_a[y, k]) * wide(of_b[k, x])
            cuda.syncthreads()
        if i < rows and j < columns:
            # An underflow leaves -0, but 0 in a padded tile, whose zeros are added: add 0 in all cases.
            out[i, j] = total + wide(0)

    made: Dispatcher = jit(multiply)
    return made


@functools.cache
def _pieces(wide: Any) -> Dispatcher:
    """Make the kernel for the CPU: one thread a block; `lanes` is `ABREAST`, but not known to be."""

    def multiply(columns, count, a, b, out, lanes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        first, i = cuda.blockIdx.x * ABREAST, cuda.blockIdx.y * cuda.gridDim.z + cuda.blockIdx.z
        if i < out.shape[0]:
            sums = cuda.local.array(ABREAST, wide)
            wanted = min(lanes, columns - first)
            for lane in range(wanted):
                sums[lane] = wide(0)
            for k in range(count):
                factor = wide(a[i, k])
                row = b[k, first : first + wanted]
                for lane in range(wanted):
                    sums[lane] += factor * wide(row[lane])
            into = out[i, first : first + wanted]
            for lane in range(wanted):
                into[lane] = sums[lane] + wide(0)

    made: Dispatcher = jit(multiply)
    return made


def matmul(a: Any, b: Any, /, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind", **rest: Any) -> Any:
    """Multiply matrices and vectors, of which one at least is on the device, as `np.matmul` does.

    Parameters
    ----------
    a, b
        Arrays of one or two dimensions; those of the host are brought to the device.
    out
        An array for the result.
    dtype
        The dtype to compute in.
    casting
        The casting rule, as in NumPy.

    Raises
    ------
    ValueError
        The shapes do not fit, or there are more than two dimensions, or none.
    TypeError
        The product of the dtypes is not supported.
    """
    if rest:
        keyword = next(iter(rest))
        msg = f"np.matmul of device arrays does not support the keyword {keyword!r}. Copy the arrays to the host first"
        raise TypeError(msg)
    if isinstance(out, tuple):
        (out,) = out
    with ordered([out, a, b], 0) as stream:
        factors = [_factor(each, number, stream) for number, each in enumerate((a, b), 1)]
        asked: dict[str, Any] = {} if dtype is None else {"signature": (None, None, np.dtype(dtype))}
        found = np.matmul.resolve_dtypes((factors[0].dtype, factors[1].dtype, None), casting=casting, **asked)
        if found[2].kind not in "biufc":
            msg = f"np.matmul of device arrays does not support {found[2]}. Copy the arrays to the host first"
            raise TypeError(msg)
        first, second = (_as(each, of, stream) for each, of in zip(factors, found, strict=False))
        m, k = first.shape if first.ndim == 2 else (1, first.shape[0])
        k2, n = second.shape if second.ndim == 2 else (second.shape[0], 1)
        if k != k2:
            msg = (
                f"matmul: argument 2 has {k2} elements along its first dimension, argument 1 has {k} along its last: "
                f"shapes {first.shape} and {second.shape} do not fit"
            )
            raise ValueError(msg)
        shape = (*([m] if first.ndim == 2 else []), *([n] if second.ndim == 2 else []))
        own = None if out is None else writable("matmul", out)
        if own is not None:
            _check(own, shape, found[2], casting)
        result = device_array(shape, found[2], stream=stream)
        rows = placing.view(first, (m, k), first.strides if first.ndim == 2 else (0, first.strides[0]))
        lines = placing.view(second, (k, n), second.strides if second.ndim == 2 else (second.strides[0], 0))
        _launch(rows, lines, placing.view(result, (m, n), (n * result.itemsize, result.itemsize)), stream)
        if own is None:
            return result
        if isinstance(own, np.ndarray):
            own[...] = result.copy_to_host(stream=stream)
        else:
            copies.convert(result, own, stream)
        return out


def _factor(value: Any, number: int, stream: Any) -> DeviceNDArray:
    array = as_cuda_array(value) if is_cuda_array(value) else np.asarray(value)
    if not 1 <= array.ndim <= 2:
        msg = (
            f"matmul: argument {number} has {array.ndim} dimensions; products of device arrays need one or two "
            "dimensions"
        )
        raise ValueError(msg)
    return copies.aligned(array, stream) if isinstance(array, DeviceNDArray) else to_device(array, stream)


def _as(array: DeviceNDArray, dtype: np.dtype[Any], stream: Any) -> DeviceNDArray:
    return array if array.dtype == dtype else array.astype(dtype, stream=stream)


def _check(own: Any, shape: tuple[int, ...], dtype: np.dtype[Any], casting: Any) -> None:
    if own.shape != shape:
        msg = f"matmul: the result has shape {shape}, the array for it, `out`, has {own.shape}"
        raise ValueError(msg)
    if not np.can_cast(dtype, own.dtype, casting):
        msg = f"matmul: the result is {dtype}, which `out`, an array of {own.dtype}, cannot hold"
        raise TypeError(msg)


def _launch(a: DeviceNDArray, b: DeviceNDArray, out: DeviceNDArray, stream: Any) -> None:
    """Compute a product; the array for it shares no memory with the factors."""
    if not out.size:
        return
    (rows, count), columns, dtype = a.shape, b.shape[1], out.dtype
    # Bools: a product is `and`, a sum is `or`. Sum in int64, so that more than 255 terms do not wrap.
    wide = {"b": np.dtype(np.int64)}.get(dtype.kind, np.dtype(np.float32) if dtype == np.float16 else dtype)
    ty, sums = _weft.from_dtype(dtype), _weft.from_dtype(wide)
    if on_cpu():
        high = -(-rows // 65535)
        grid = (-(-columns // ABREAST), -(-rows // high), high)
        configured(_pieces(sums), grid, 1, stream)(columns, count, a, b, out, ABREAST)
        return
    across, down = -(-columns // TILE), -(-rows // TILE)
    for start in range(0, down, 65535):
        part, into = a[start * TILE :], out[start * TILE :]
        configured(_tiles(ty, sums), (across, min(down - start, 65535)), (TILE, TILE), stream)(
            part.shape[0], columns, count, part, b, into
        )
