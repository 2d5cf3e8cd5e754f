"""Updates of views, functions of whole arrays along an axis, and iterators, for the oracle of the random programs.

`typed_arrays.py` writes calls of these functions, as `cuda.own_update`, ….
"""

from __future__ import annotations

import numpy as np

from oracle import numeric


def update(array: np.ndarray, symbol: str, value: object) -> None:
    """`array[...] op= value`, one element after the other."""
    if isinstance(value, np.ndarray):
        value = np.broadcast_to(value, array.shape)
    for index in np.ndindex(array.shape):
        item = value
        if isinstance(value, np.ndarray):
            item = value[index]
        elif isinstance(value, tuple):
            item = value[index[-1] if len(value) > 1 else 0]
        array[index] = numeric.cast(numeric.binary(symbol, array[index], item), array.dtype.type)


def total(name: str, items: np.ndarray, dtype: object, initial: object) -> list:
    """The running sums or products, starting with the initial value."""
    found = items.dtype if items.dtype.kind in "fc" else np.dtype("uint64" if items.dtype.kind == "u" else "int64")
    found = found if dtype is None else np.dtype(dtype)
    half = found == np.float16  # accumulated as float32
    kind = np.float32 if half else found.type
    start = (1 if name.endswith("prod") else 0) if initial is None else initial
    sums = [numeric.cast(start, kind)]
    for item in items:
        item = numeric.cast(numeric.cast(item, found.type), kind)
        symbol = "*" if name.endswith("prod") else "+"
        sums.append(numeric._BINARY[symbol](sums[-1], item, np.dtype(kind)))
    return [numeric.cast(each, found.type) for each in sums]


def of_items(name: str, items: np.ndarray, dtype: object, initial: object) -> object:
    """The result of a function for some elements."""
    with np.errstate(all="ignore"):
        if name in ("sum", "prod"):
            return total(name, items, dtype, initial)[-1]
        if name == "mean":
            of = items.dtype if items.dtype.kind in "fc" else np.dtype("float64")
            if of == np.float16:
                return np.float16(np.float32(sum(np.float32(item) for item in items)) / np.float32(len(items)))
            found = total("sum", items, of, None)[-1]
            return found / found.real.dtype.type(len(items))
        found = getattr(np, name)(items)
        return np.int64(found) if name in ("argmin", "argmax", "count_nonzero") else found


def reduced(name, array, axis, dtype, out, keepdims, initial):
    """`np.sum(array, axis, dtype, out, keepdims, initial)` and its like."""
    if axis is None:
        items = np.asarray(array).reshape(-1)
        if name.startswith("cum"):
            out[...] = np.array(total(name, items, dtype, initial)[1:]).reshape(out.shape)
            return out
        found = of_items(name, items, dtype, initial)
        if out is None:
            return found
        out[(0,) * out.ndim] = found
        return out
    axis = int(axis)
    whole = np.moveaxis(np.asarray(array), axis, -1)
    into = np.moveaxis(out, axis, -1) if keepdims or name.startswith("cum") else out
    for index in np.ndindex(whole.shape[:-1]):
        items = whole[index]
        if name.startswith("cum"):
            for at, each in enumerate(total(name, items.copy(), dtype, initial)[1:]):
                into[(*index, at)] = each
        else:
            into[(*index, 0) if keepdims else index] = of_items(name, items, dtype, initial)
    return out


def there(item):
    """The value; ends the thread if it is None."""
    from oracle.emulate import Left

    if item is None:
        raise Left
    return item


def following(iterator, *default):
    """`next(iterator)`; ends the thread if there is no item."""
    from oracle.emulate import Left

    try:
        return next(iterator)
    except StopIteration:
        if default:
            return default[0]
        raise Left from None
