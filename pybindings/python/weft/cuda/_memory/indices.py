"""Indices that are arrays, and masks: what NumPy calls advanced indexing, on the device.

A key is split into a view of the axes that it slices and offsets into memory, one for each index of the arrays in
it, whose bounds are checked before anything is read or written. Kernels then read or write words at the offsets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weft.cuda._memory import copies, index_kernels, observed
from weft.cuda._memory.device_array import DeviceNDArray, array_at, is_array_index
from weft.cuda._memory.making import as_cuda_array, device_array, is_cuda_array, to_device
from weft.cuda._memory.masks import true_indices_of
from weft.cuda._memory.ordering import ordered
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import BLOCK, configured, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@dataclass
class Index:
    """One array of a key: indices of one axis, or numbers of elements of several, which a mask gives."""

    array: Any
    # The first axis, and the extents and strides of all indexed axes.
    axis: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    is_mask: bool

    @property
    def on_host(self) -> bool:
        """Whether the indices are in host memory."""
        return isinstance(self.array, np.ndarray)


@dataclass
class Parts:
    """The selection of a key with arrays: the remaining axes, the arrays, and where the axes of these go."""

    # The byte offset of the sliced part's first element.
    start: int
    shape: list[int]
    strides: list[int]
    indices: list[Index]
    # The number of remaining axes before the indices' axes.
    before: int


def as_index(item: Any) -> Any:
    """Give a part of a key as a NumPy or device array of integers or booleans."""
    if isinstance(item, np.ndarray):
        array: Any = np.asarray(item)
    elif is_cuda_array(item):
        array = as_cuda_array(item)
    else:
        array = np.asarray(item)
        if not array.size and array.dtype == np.float64:
            array = array.astype(np.intp)
    if array.dtype.kind not in "biu":
        msg = f"arrays used as indices must be of integer (or boolean) type, not {array.dtype}"
        raise IndexError(msg)
    return array


def split_key(target: DeviceNDArray, key: Any) -> Parts:
    """Split a key that has an array; bounds of the arrays are not checked yet."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [as_index(item) if is_array_index(item) else item for item in items]
    # Even if `...` expands to no axis, it separates the arrays before it from those after it.
    gap = next((at for at, item in enumerate(items) if item is Ellipsis), len(items))
    named = len(items)
    items = target.without_ellipsis(items)
    gap = gap if len(items) < named else len(items)
    start, axis, shape, strides, indices = 0, 0, [], [], []
    # Positions of the arrays among the items; with arrays, an integer also counts as one.
    places: list[int] = []
    before = 0
    for place, item in enumerate(items):
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = target.shape[axis], target.strides[axis]
        if isinstance(item, slice):
            first, count, step = target.sliced(item, axis)
            start += first
            shape.append(count)
            strides.append(step)
            axis += 1
            continue
        if not places:
            before = len(shape)
        places.append(place)
        if not is_array_index(item):
            start += target.whole_index(item, axis) * stride
            axis += 1
            continue
        if item.dtype.kind != "b":
            indices.append(Index(item, axis, (extent,), (stride,), is_mask=False))
            axis += 1
            continue
        extents = target.shape[axis : axis + item.ndim]
        for number, (own, size) in enumerate(zip(item.shape, extents, strict=True), axis):
            if own != size:
                msg = (
                    f"boolean index did not match indexed array along axis {number}; size of axis is {size} but size "
                    f"of corresponding boolean axis is {own}"
                )
                raise IndexError(msg)
        steps = target.strides[axis : axis + item.ndim]
        indices.append(Index(item, axis, extents, steps, is_mask=True))
        axis += item.ndim
    if places[-1] - places[0] >= len(places) or places[0] < gap <= places[-1]:
        before = 0
    return Parts(start, shape, strides, indices, before)


class Selection:
    """The selection of a key with arrays, with its bounds checked: offsets of words into the array's memory.

    Raises
    ------
    IndexError
        An index is out of bounds, or the arrays do not broadcast.
    """

    def __init__(self, target: DeviceNDArray, parts: Parts, stream: Any) -> None:
        self._target, self._parts, self._stream = target, parts, stream
        for index in parts.indices:
            if index.is_mask:
                index.array = np.flatnonzero(index.array) if index.on_host else true_indices_of(index.array, stream)
        try:
            own = np.broadcast_shapes(*(index.array.shape for index in parts.indices))
        except ValueError:
            shapes = " ".join(str(index.array.shape) for index in parts.indices)
            msg = f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
            raise IndexError(msg) from None
        self._count = math.prod(own)
        self.shape = (*parts.shape[: parts.before], *own, *parts.shape[parts.before :])
        word = copies.word_of(target)
        for step in parts.strides:
            word = math.gcd(word, step)
        self._word = word
        first = parts.start - target.span[0]
        host = [index for index in parts.indices if index.on_host]
        if host:
            sums: Any = np.full(own, first // word, np.int64)
            for index in host:
                sums += _host_offsets(index, word, self._count)
            self._offsets = to_device(np.ravel(sums), stream)
        else:
            self._offsets = device_array(self._count, np.int64, stream=stream)
            copies.fill(self._offsets, np.array(first // word), stream)
        device = [index for index in parts.indices if not index.on_host]
        if device and self._count:
            self._add(device, own)

    def _add(self, indices: Sequence[Index], own: tuple[int, ...]) -> None:
        """Add what indices on the device mean; the call waits for the check of their bounds."""
        stream, count = self._stream, self._count
        wrong = to_device(np.full(len(indices), count, np.int64), stream)
        lists = []
        for number, index in enumerate(indices):
            given = index.array
            if given.dtype != np.int64 or given.shape != own or not given.is_c_contiguous():
                fresh = device_array(own, np.int64, stream=stream)
                copies.convert(given, fresh, stream)
                given = fresh
            line = placing.view(given, [count], [8])
            lists.append(line)
            steps = tuple(stride // self._word for stride in index.strides)
            blocks = -(-count // BLOCK)
            if not index.is_mask:
                kernel = configured(index_kernels.add_offsets(), blocks, BLOCK, stream)
                kernel(count, line, index.extents[0], steps[0], self._offsets, wrong, number)
                continue
            extents, (merged,) = placing.joined(index.extents, steps)
            if not extents:
                continue
            _, products, rest = placing.outer_divisors(extents)
            kernel = configured(index_kernels.add_at_indices(), blocks, BLOCK, stream)
            numbers = tuple(np.int64(step) for step in products)
            kernel(count, line, numbers, tuple(np.int64(each) for each in rest), tuple(merged), self._offsets)
        if all(index.is_mask for index in indices):
            return
        for index, line, at in zip(indices, lists, wrong.copy_to_host(stream=stream).tolist(), strict=True):
            if at < count:
                raise _out_of_bounds(int(line.getitem(at, stream=stream)), index)

    def _axes(self, more: Sequence[list[int]]) -> tuple[list[int], list[int], list[list[int]], int]:
        """Give the axes of the result as kernels see them, with the steps of the operands: merged, in words.

        Gives extents, steps in the array, those of `more`, which have all axes of the result, and which axis it is
        that has the offsets.
        """
        parts, word = self._parts, self._word
        before = parts.before
        inner = [*parts.shape[before:]]
        steps = [step // word for step in parts.strides]
        inner_steps = steps[before:]
        if self._target.itemsize != word:
            inner.append(self._target.itemsize // word)
            inner_steps.append(1)
        own = len(self.shape) - len(parts.shape)
        heads = [each[:before] for each in more]
        middles = [each[before : before + own] for each in more]
        tails = [each[before + own :] for each in more]
        first, (of_first, *heads) = placing.joined(parts.shape[:before], steps[:before], *heads)
        last, (of_last, *tails) = placing.joined(inner, inner_steps, *tails)
        middle_extents = self.shape[before : before + own]
        extents, merged = placing.joined(middle_extents, *middles) if middles else ([], [])
        assert len(extents) <= 1, "the source is contiguous, and the target is made contiguous"
        middle = [each or [0] for each in merged] or [[0] for _ in more]
        result = [[*a, *b, *c] for a, b, c in zip(heads, middle, tails, strict=True)]
        return [*first, self._count, *last], [*of_first, 0, *of_last], result, len(first)

    def _line(self) -> DeviceNDArray:
        """Give the array's memory as a line of words."""
        low, high = self._target.span
        target = self._target
        return array_at(
            target.owner, target.address + low, ((high - low) // self._word,), (self._word,),
            np.dtype(f"u{self._word}"), target.device, target.readonly,
        )  # fmt: skip

    def read(self) -> DeviceNDArray:
        """Give a new array of what is selected, in C order."""
        target, stream = self._target, self._stream
        out = device_array(self.shape, target.dtype, stream=stream)
        if not out.size:
            return out
        words = copies.as_unsigned(out, self._word)
        extents, steps, (own,), where = self._axes([list(words.strides)])
        if len(extents) == 1:
            kernel = configured(index_kernels.take_line(), -(-self._count // BLOCK), BLOCK, stream)
            kernel(self._count, self._line(), self._offsets, placing.view(words, extents, own))
            return out
        result = placing.view(words, extents, own)
        self._launch(index_kernels.take(where), extents, steps, result)
        return out

    def write(self, value: Any) -> None:
        """Assign a value, which broadcasts to what is selected. Of several for one element, any is the last."""
        target, stream = self._target, self._stream
        try:
            given = copies.source(value, self.shape, target.dtype)
        except ValueError as error:
            if not str(error).startswith("Can't"):
                raise
            shape = getattr(value, "shape", None) or np.shape(value)
            msg = (
                f"shape mismatch: value array of shape {shape} could not be broadcast to indexing result of shape "
                f"{self.shape}"
            )
            raise ValueError(msg) from None
        if not math.prod(self.shape):
            return
        if not isinstance(given, DeviceNDArray):
            given = to_device(given, stream)
        elif given.dtype != target.dtype:
            fresh = copies.empty_like(given, target.dtype, stream=stream)
            copies.convert(given, fresh, stream)
            given = fresh
        if _overlaps(given, target) or given.address % self._word or any(
            step % self._word for step in given.strides
        ):  # fmt: skip
            given = copies.compact(given, "K", stream)
        own = len(self.shape) - len(self._parts.shape)
        if own > 1:
            given = self._with_one_axis(given, own)
        words = copies.as_unsigned(given, self._word)
        shape = self.shape if target.itemsize == self._word else (*self.shape, target.itemsize // self._word)
        extents, steps, (mine,), where = self._axes([placing.strides_of(words, shape)])
        axes = tuple(axis for axis, step in enumerate(mine) if step)
        many = bool(axes)
        values = placing.view(
            words, [extents[axis] for axis in axes] if many else [1], [mine[axis] for axis in axes] or [self._word]
        )
        if len(extents) == 1:
            kernel = configured(index_kernels.put_line(many), -(-self._count // BLOCK), BLOCK, stream)
            kernel(self._count, self._line(), self._offsets, values)
            return
        self._launch(index_kernels.put(where, axes), extents, steps, values)

    def _with_one_axis(self, given: DeviceNDArray, own: int) -> DeviceNDArray:
        """Return values with one axis, or none, for the axes of the indices, as kernels require."""
        before = self._parts.before
        middles = placing.strides_of(given, self.shape)[before : before + own]
        extents, _ = placing.joined(self.shape[before : before + own], middles)
        if len(extents) <= 1:
            return given
        fresh = device_array(self.shape, given.dtype, stream=self._stream)
        copies.move(given, fresh, self._stream)
        return fresh

    def _launch(self, kernel: Any, extents: Sequence[int], steps: Sequence[int], operand: DeviceNDArray) -> None:
        if len(extents) > placing.MOST_AXES:
            msg = f"the result of the indices has {len(extents)} axes: the limit is {placing.MOST_AXES}"
            raise ValueError(msg)
        columns = extents[-1]
        rows, products, rest = placing.outer_divisors(extents[:-1])
        across = min(BLOCK, 1 << (columns - 1).bit_length())
        down = min(max(BLOCK // across, 1), 64)
        high = -(-int(rows) // down)
        deep = -(-high // 65535)
        blocks = -(-columns // across), -(-high // deep), deep
        strides = tuple(np.int64(step) for step in steps)
        launch = configured(kernel, blocks, (across, down), self._stream)
        launch(rows, columns, products, rest, strides, self._line(), self._offsets, operand)


def _overlaps(array: DeviceNDArray, target: DeviceNDArray) -> bool:
    """Whether two arrays share memory, in whichever order: elements are not written in the one that they lie in."""
    if array.device != target.device or not array.size or not target.size:
        return False
    (low, high), (first, last) = array.span, target.span
    return array.address + low < target.address + last and target.address + first < array.address + high


def _host_offsets(index: Index, word: int, count: int) -> np.ndarray[Any, Any]:
    """Give what indices in host memory mean, in words."""
    indices = index.array.astype(np.int64)
    if index.is_mask:
        total = np.zeros(indices.shape, np.int64)
        for own, stride in zip(np.unravel_index(indices, index.extents), index.strides, strict=True):
            total += own * (stride // word)
        return total
    extent = index.extents[0]
    wrong = (indices < -extent) | (indices >= extent)
    if count and wrong.any():
        raise _out_of_bounds(int(indices[wrong][0]), index)
    found: np.ndarray[Any, Any] = np.where(indices < 0, indices + extent, indices) * (index.strides[0] // word)
    return found


def _out_of_bounds(number: int, index: Index) -> IndexError:
    return IndexError(f"index {number} is out of bounds for axis {index.axis} with size {index.extents[0]}")


def read(target: DeviceNDArray, key: Any, stream: Any = 0) -> DeviceNDArray:
    """Give a new array of what a key with arrays selects."""
    arrays = [item for item in (key if isinstance(key, tuple) else (key,)) if isinstance(item, DeviceNDArray)]
    with ordered([target, *arrays], stream) as chosen:
        return Selection(target, split_key(target, key), chosen).read()


def assign(target: DeviceNDArray, key: Any, value: Any, stream: Any = 0) -> None:
    """Assign a value to what a key with arrays selects."""
    arrays = [item for item in (key if isinstance(key, tuple) else (key,)) if isinstance(item, DeviceNDArray)]
    with ordered([target, *arrays, value], stream) as chosen:
        copies.check_writable(target)
        parts = split_key(target, key)
        with observed.writing(target, observed.UNSEEN, "an assignment by arrays of indices", chosen):
            if not _assigned_where(target, parts, value, chosen):
                Selection(target, parts, chosen).write(value)


def _assigned_where(target: DeviceNDArray, parts: Parts, value: Any, stream: Any) -> bool:
    """Assign where a mask is true, without a list of indices, if the value is the same along the mask's axes."""
    if len(parts.indices) != 1 or not parts.indices[0].is_mask:
        return False
    (index,) = parts.indices
    ndim = getattr(value, "ndim", None)
    ndim = np.ndim(value) if ndim is None else ndim
    if ndim > len(parts.shape) - parts.before or parts.before:
        return False
    shape = (*index.extents, *parts.shape)
    view = array_at(
        target.owner, target.address + parts.start, shape, (*index.strides, *parts.strides), target.dtype,
        target.device, target.readonly,
    )  # fmt: skip
    if not view.size:
        return True
    word = copies.word_of(view)
    words = copies.as_unsigned(view, word)
    given = copies.source(value, tuple(parts.shape), target.dtype)
    if not isinstance(given, DeviceNDArray):
        host = np.ascontiguousarray(given).reshape(-1) if given.size == 1 else given
        if given.size == 1 and host.itemsize == word:
            _run_where(host.view(f"u{word}")[0], index, words, stream)
            return True
        given = to_device(given, stream)
    elif given.dtype != target.dtype:
        fresh = copies.empty_like(given, target.dtype, stream=stream)
        copies.convert(given, fresh, stream)
        given = fresh
    elif placing.clash(given, view) or copies.word_of(given) % word:
        given = copies.compact(given, "K", stream)
    inner = copies.as_unsigned(copies.spread(given, tuple(parts.shape)), word)
    everywhere = placing.view(inner, words.shape, placing.strides_of(inner, words.shape))
    _run_where(everywhere, index, words, stream)
    return True


def _run_where(value: Any, index: Index, words: DeviceNDArray, stream: Any) -> None:
    mask = index.array if isinstance(index.array, DeviceNDArray) else to_device(index.array, stream)
    steps = [*mask.strides, *[0] * (words.ndim - mask.ndim)]
    spread = placing.view(mask, words.shape, steps)
    if placing.clash(spread, words):
        spread = placing.view(copies.compact(mask, "C", stream), words.shape, steps)
    same().run([value, spread], [words], stream, BLOCK, masked=True)
