"""Records as values: long ones, packed ones, tuples into them, their fields in loops, in shared and in local memory."""

from __future__ import annotations

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda

MISALIGNED = np.dtype([("tag", "u1"), ("x", "f8"), ("y", "i4"), ("z", "c8"), ("w", "i8", (2,))])
LUCKY = np.dtype([("x", "f8"), ("y", "i4"), ("tag", "u4"), ("z", "c8"), ("w", "i8", (2,))])
ALIGNED = np.dtype([("tag", "u1"), ("x", "f8"), ("y", "i4"), ("z", "c8"), ("w", "i8", (2,))], align=True)
LAYOUTS = {"misaligned": MISALIGNED, "lucky": LUCKY, "aligned": ALIGNED}
PAIR = np.dtype([("a", "i4"), ("b", "f4")])


def filled(dtype, count=4):
    array = np.zeros(count, dtype)
    array["tag"] = np.arange(count) + 200
    array["x"] = np.arange(count) / 4 - 1
    array["y"] = np.arange(count) * -3
    array["z"] = np.arange(count) * (1 - 2j)
    array["w"] = np.arange(count * 2).reshape(count, 2) << 40
    return array


@cuda.jit
def every_field(records, sums):
    for i in range(records.size):
        r = records[i]
        r["x"] += r["y"]
        r["y"] *= 2
        r["tag"] -= 1
        r["z"] *= 1j
        r["w"][0] += r["w"][1]
        r["w"][-1] ^= 1
        sums[i] = r["x"] + r["z"].imag + r["w"][0] % 7


@pytest.mark.parametrize("dtype", LAYOUTS.values(), ids=LAYOUTS)
def test_fields_are_assigned_in_place(dtype):
    like_python(every_field, filled(dtype), np.zeros(4))


@cuda.jit
def rotate(records, spare):
    last = records.shape[0] - 1
    spare[0] = records[last]
    for i in range(last, 0, -1):
        records[i] = records[i - 1]
    records[0] = spare[0]


LONG = {
    "bytes": [("b", "u1", (77,))],
    "words": [("tag", "i4"), ("w", "f8", (100,)), ("end", "i2")],
    "packed and long": [("tag", "u1"), ("w", "i8", (90,))],
    "one byte": [("b", "i1")],
    "three": [("b", "i1"), ("h", "i2")],
}


@pytest.mark.parametrize("fields", LONG.values(), ids=LONG)
@pytest.mark.parametrize("align", [False, True])
def test_records_of_any_length_are_copied_whole(fields, align):
    dtype = np.dtype(fields, align=align)
    memory = np.random.default_rng(5).integers(0, 255, 5 * dtype.itemsize, np.uint8)
    array = np.zeros(5, dtype)
    for name in dtype.names:
        size = array[name].nbytes
        array[name] = memory[:size].view("u1")[: array[name].size].reshape(array[name].shape)
    records, _ = like_python(rotate, array, np.zeros(1, dtype))
    assert (records == np.roll(array, 1)).all()


@cuda.jit
def from_tuples(records, n):
    for i in range(records.size):
        records[i] = (i, n / (i + 1))
    records[0] = (n, records[1]["b"])


def test_a_tuple_is_a_record():
    like_python(from_tuples, np.zeros(4, PAIR), 7)


@cuda.jit
def swapped_through_tuple(records):
    r = records[0]
    records[0] = (r["b"], r["a"])


def test_a_tuple_of_the_fields_is_read_before_it_is_stored():
    like_python(swapped_through_tuple, np.array([(3, 8.0)], PAIR))


@cuda.jit
def columns(records, out):
    ws = records["w"]
    xs = records["x"]
    for i in range(xs.size):
        xs[i] = xs[i] * 2 + 1
        ws[i, 1] = ws[i, 0] + i
        out[i] = xs[-1 - i]
    records["y"][1:3] = 9
    records["w"][0] = ws[2]
    tail = records[1:]["x"]
    tail[0] = -0.5
    out[0] = ws.shape[0] * 10 + ws.shape[1]


@pytest.mark.parametrize("dtype", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(None, None, -1)])
def test_a_field_of_all_records_is_a_view(dtype, part):
    records = filled(dtype, 8)[part]
    like_python(columns, records, np.zeros(records.size))


def test_views_of_fields_of_several_dimensions():
    @cuda.jit
    def kernel(records, out):
        a = records["a"]
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] += 10 * i + j
        out[0] = records["b"].T[1, 0]
        out[1] = records[1, 2]["a"]

    records = np.zeros((2, 3), PAIR)
    records["b"] = np.arange(6).reshape(2, 3) / 2
    like_python(kernel, records, np.zeros(2))
    like_python(kernel, np.asfortranarray(records), np.zeros(2))


@cuda.jit
def unpacked(records, out):
    for i in range(records.size):
        a, b = records[i]
        out[i, 0] = a
        out[i, 1] = b
        out[i, 2] = records[i][0] + records[i][-1]


def test_records_are_unpacked_and_indexed():
    records = np.array([(1, 0.5), (-2, 1.25), (3, 8)], PAIR)
    like_python(unpacked, records, np.zeros((3, 3)))


@cuda.jit
def over(records, out):
    n = 0
    for record in records:
        out[n] = record["a"] * record["b"]
        record["a"] += 1
        n += 1
    for i, record in enumerate(records):
        out[i] += i + record["a"]


def test_loops_over_records():
    like_python(over, np.array([(1, 0.5), (-2, 1.25), (3, 8)], PAIR), np.zeros(3))


@cuda.jit
def in_shared_memory(records, out):
    shared = cuda.shared.array(8, dtype=MISALIGNED)
    i = cuda.threadIdx.x
    shared[i] = records[i]
    cuda.syncthreads()
    other = shared[7 - i]
    other["x"] += other["y"]
    cuda.syncthreads()
    out[i] = shared[i]
    out[i]["w"][1] = i


def test_records_in_shared_memory():
    records, out = filled(MISALIGNED, 8), np.zeros(8, MISALIGNED)
    in_shared_memory[1, 8](records, out)
    records["x"] += records["y"]
    records["w"][:, 1] = np.arange(8)
    assert (out == records).all()


@cuda.jit
def in_local_memory(records, out):
    i = cuda.grid(1)
    local = cuda.local.array(2, dtype=PAIR)
    local[0] = records[i]
    local[1] = (i, 0.25)
    local[0]["a"] += local[1]["a"]
    local["b"][0] *= 2
    out[i] = local[0]


def test_records_in_local_memory():
    records, out = np.array([(n, n / 2) for n in range(64)], PAIR), np.zeros(64, PAIR)
    in_local_memory[2, 32](records, out)
    assert out.tolist() == [(2 * n, float(n)) for n in range(64)]


@cuda.jit
def one_record(record, out):
    record["a"] += 5
    record["b"] = record["a"] / 2
    out[0] = record


def test_a_record_argument_is_written_back():
    records = np.array([(1, 0.5), (-2, 1.25)], PAIR)
    alone = records[1].copy()
    out = np.zeros(1, PAIR)
    one_record[1, 1](alone, out)
    assert alone.tolist() == (3, 1.5)
    assert out[0] == alone
    one_record[1, 1](records[0], out)
    assert records.tolist() == [(6, 3.0), (-2, 1.25)]


def test_what_is_read_only_stays():
    records = np.zeros(2, PAIR)
    records.flags.writeable = False

    @cuda.jit
    def field(records):
        records[0]["a"] = 1

    @cuda.jit
    def whole(records):
        records[0] = records[1]

    @cuda.jit
    def column(records):
        records["a"][0] = 1

    for kernel in (field, whole, column):
        with pytest.raises(weft.CompileError, match="read-only"):
            kernel[1, 1](records)


def test_unknown_fields():
    @cuda.jit
    def by_name(records):
        records[0]["weigth"] = 1

    @cuda.jit
    def by_attribute(records, out):
        out[0] = records[0].c

    @cuda.jit
    def by_position(records, out):
        out[0] = records[0][2]

    @cuda.jit
    def too_many(records):
        records[0] = (1, 2, 3)

    records, out = np.zeros(2, PAIR), np.zeros(1)
    weighed = np.zeros(2, [("weight", "f8"), ("height", "f8")])
    with pytest.raises(weft.CompileError, match=r"no field `weigth`(.|\n)*did you mean `weight`"):
        by_name[1, 1](weighed)
    with pytest.raises(weft.CompileError, match="`c`"):
        by_attribute[1, 1](records, out)
    with pytest.raises(weft.CompileError, match="number 2"):
        by_position[1, 1](records, out)
    with pytest.raises(weft.CompileError, match="2 fields"):
        too_many[1, 1](records)
