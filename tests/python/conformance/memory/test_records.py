"""Records and arrays of records: a thread has the same results as the function in CPython with NumPy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from weft import cuda

INNER = [("x", "c8"), ("y", "i2", (3,))]
FIELDS = [("a", "i1"), ("b", "f8"), ("c", "f4", (2, 3)), ("d", INNER), ("e", "?"), ("f", "u2")]
LAYOUTS = {
    "packed": np.dtype(FIELDS),
    "aligned": np.dtype(FIELDS, align=True),
    "placed": np.dtype(
        {"names": ["b", "a", "f"], "formats": ["f8", "i1", "u2"], "offsets": [8, 3, 20], "itemsize": 32}
    ),
}


def sample(dtype: np.dtype[Any], shape: Any = 5) -> Any:
    """An array with a different value in each number."""
    memory = np.random.default_rng(7).integers(0, 100, size=np.zeros(shape, dtype).nbytes, dtype="u1")
    array = memory.view(dtype).reshape(shape)
    for name in dtype.names or ():
        # Other bytes are invalid bools, and few bit patterns are useful floats.
        array[name] = np.zeros(array[name].shape, dtype[name].base) if dtype[name].base.names else 0
    array["a"] = np.arange(array.size).reshape(shape) - 2
    array["b"] = array["a"] / 4
    array["f"] = 65535 - np.arange(array.size).reshape(shape)
    return array


def same(kernel: Any, *args: Any) -> list[Any]:
    """The arguments after a launch of one thread, which must equal those after a call of the Python function."""
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    kernel[1, 1](*mine)
    kernel.py_func(*theirs)
    for got, expected in zip(mine, theirs, strict=True):
        if isinstance(got, (np.ndarray, np.void)):
            assert got.dtype == expected.dtype
            # The padding between fields is unspecified.
            assert (np.asarray(got) == np.asarray(expected)).all()
    return list(mine)


@cuda.jit
def read_fields(out, records):
    for i in range(records.size):
        out[i] = records[i].a + records[i]["b"] * 2 - records[i].f


@cuda.jit
def write_fields(records, values):
    for i in range(records.shape[0]):
        records[i].a = values[i] + 1
        records[i]["b"] = values[i] / 2
        records.f[i] = i
        records["f"][i] += 3


@pytest.mark.parametrize("dtype", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("part", [slice(None), slice(None, None, -2)], ids=["all", "strided"])
def test_fields_by_attribute_and_by_name(dtype, part) -> None:
    records = sample(dtype)[part].view(np.recarray)
    same(read_fields, np.zeros(5), records)
    same(write_fields, records, np.arange(5) * 3 - 4)


@cuda.jit
def nested_fields(records):
    for i in range(records.size):
        records[i].d.x = complex(records[i].a, 2)
        records[i].e = records[i].a > 0
        for j in range(3):
            records[i].d.y[j] = j - records[i]["a"]
            records[i]["c"][1, j] = records[i].d["y"][j] / 4
        records[i].c[0, -1] = records[i].c[1, 0] + records[i].c[1][2]


@pytest.mark.parametrize("layout", ["packed", "aligned"])
def test_records_and_arrays_in_records(layout) -> None:
    same(nested_fields, sample(LAYOUTS[layout]).view(np.recarray))


@cuda.jit
def whole_records(to, source):
    for i in range(to.size):
        to[i] = source[-1 - i]
    to[0] = to[1]


@pytest.mark.parametrize("dtype", LAYOUTS.values(), ids=LAYOUTS)
def test_records_are_assigned_whole(dtype) -> None:
    to = sample(dtype)
    to["a"] = 0
    same(whole_records, to, sample(dtype))


@cuda.jit
def swap(records):
    first = records[0]
    b = first.b
    first.b = records[1].b
    records[1].b = b


@cuda.jit
def rows(records):
    for i in range(records.shape[0]):
        row = records[i]
        for j in range(row.size):
            row[j].b = records.shape[1] * i + j


def test_a_record_that_is_named_is_the_element() -> None:
    same(swap, sample(LAYOUTS["packed"]).view(np.recarray))
    for shape, order in [((2, 3), "C"), ((3, 2), "F")]:
        array = np.asarray(sample(LAYOUTS["aligned"], shape), order=order)
        same(rows, array.view(np.recarray))


@cuda.jit
def update(record, out):
    out[0] = record.a * 2 + record["b"]
    record.b = 7.5
    record.a += 1


@cuda.jit
def only_read(record, out):
    out[0] = record.b


@pytest.mark.parametrize("dtype", LAYOUTS.values(), ids=LAYOUTS)
def test_records_as_arguments(dtype) -> None:
    array = sample(dtype).view(np.recarray)
    same(update, array[3], np.zeros(1))
    # The record's array has the values that the kernel wrote.
    update[1, 1](array[1], np.zeros(1))
    assert array[1].b == 7.5
    assert array[2].b == 0
    device = cuda.to_device(array)
    update[1, 1](device[4], np.zeros(1))
    assert (device[4]["b"], device[4]["a"]) == (7.5, 3)
    assert device[3]["b"] == array[3].b
    alone = cuda.to_device(array[0])
    update[1, 1](alone, np.zeros(1))
    assert alone["b"] == 7.5
    assert array[0].b == -0.5
    frozen = array.copy()
    frozen.flags.writeable = False
    out = np.zeros(1)
    only_read[1, 1](frozen[4], out)
    assert out[0] == 0.5


@cuda.jit
def add(left, right):
    left.b += right.b
    return left.a + right["a"]


@cuda.jit
def through_functions(records, out):
    for i in range(1, records.size):
        out[i] = add(records[0], records[i])


def test_records_go_through_device_functions() -> None:
    array, out = sample(LAYOUTS["packed"]).view(np.recarray), np.zeros(5, np.int64)
    expected = np.array([0, *(int(array[0].a) + array.a[1:])])
    total = array.b.sum()
    through_functions[1, 1](array, out)
    assert (out == expected).all()
    assert array[0].b == total


@cuda.jit
def many(records, out):
    i = cuda.grid(1)
    if i < records.size:
        out[i] = records[i].b
        records[i].f = i


def test_many_threads_share_an_array_of_records() -> None:
    array, out = sample(LAYOUTS["packed"], 1000), np.zeros(1000)
    expected = array.copy()
    expected["f"] = np.arange(1000)
    device = cuda.to_device(array)
    many[8, 128](device, out)
    assert (out == array["b"]).all()
    assert (device.copy_to_host() == expected).all()
