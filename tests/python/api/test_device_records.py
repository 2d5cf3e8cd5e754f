"""Records and arrays of records in device memory, dates and time differences: copies, views, fields, elements."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import weft
from weft import cuda, types

INNER = np.dtype([("x", "c8"), ("y", "i2", (3,))])
RECORD = np.dtype([("a", "i1"), ("b", "f8"), ("c", "f4", (2, 3)), ("d", INNER), ("s", "U5"), ("t", "M8[s]")])
ALIGNED = np.dtype([("a", "i1"), ("b", "f8"), ("c", "f4", (3,))], align=True)


def sample(dtype=RECORD, count: int = 4):
    host = np.zeros(count, dtype)
    host["a"] = np.arange(count)
    host["b"] = np.arange(count) / 2
    host["c"] = np.arange(host["c"].size).reshape(host["c"].shape)
    return host


@pytest.mark.parametrize("dtype", [RECORD, ALIGNED])
@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, 1)])
def test_arrays_of_records_are_copied(dtype, part) -> None:
    host = sample(dtype)
    device = cuda.to_device(host)
    assert device.dtype == dtype
    assert (device[part].copy_to_host() == host[part]).all()
    device[part] = host[part][::-1].copy()
    host[part] = host[part][::-1].copy()
    assert (device.copy_to_host() == host).all()
    same = cuda.device_array_like(device)
    same.copy_to_device(device)
    assert (np.asarray(same) == host).all()


def test_a_field_of_an_array_is_a_view() -> None:
    host = sample()
    device = cuda.to_device(host)
    assert (device["b"].copy_to_host() == host["b"]).all()
    assert device["c"].shape == (4, 2, 3)
    assert device["d"]["y"].shape == (4, 3)
    device["b"][1] = 7
    device["c"][2, :, 1] = 8
    device[1:3]["d"]["y"][:, 2] = 9
    host["b"][1] = 7
    host["c"][2, :, 1] = 8
    host[1:3]["d"]["y"][:, 2] = 9
    assert (device.copy_to_host() == host).all()
    with pytest.raises(ValueError, match="no field named e"):
        device["e"]
    with pytest.raises(TypeError, match="must be made of integers"):
        device["b"]["e"]


def test_an_element_is_a_record() -> None:
    host = sample()
    device = cuda.to_device(host)
    record = device[1]
    assert isinstance(record, cuda.DeviceRecord)
    assert weft.typeof(record) == weft.from_dtype(RECORD)
    assert weft.typeof(record) != weft.typeof(device[1:2].reshape(()))
    assert record.copy_to_host() == host[1]
    for element in (record, host[1]):
        element["a"] = -3
        element["s"] = "text"
        element["t"] = np.datetime64("2021-05-06")
        element["c"][:] = 2
        element["d"]["x"] = 1 + 2j
        element["d"]["y"][1] = 5
    assert (device.copy_to_host() == host).all()
    assert type(record["a"]) is np.int8
    assert (record["s"], record["t"], record["d"]["x"]) == ("text", np.datetime64("2021-05-06"), 1 + 2j)
    device[0] = host[1]
    device[2] = record
    assert device[0].copy_to_host() == device[2].copy_to_host() == host[1]
    record[...] = host[3]
    assert device[1].copy_to_host() == host[3]
    with pytest.raises(ValueError, match="no field named e"):
        record["e"] = 1


def test_a_record_alone() -> None:
    host = sample()
    record = cuda.to_device(host[2])
    assert record.shape == record.strides == ()
    assert record.copy_to_host() == host[2]
    record["b"] = 9
    assert host[2]["b"] == 1
    record.copy_to_host(host[0])
    assert host[0]["b"] == 9
    assert host[0]["a"] == 2
    record.copy_to_device(host[3])
    assert pickle.loads(pickle.dumps(record)).copy_to_host() == host[3]
    empty = cuda.device_array_like(host[0])
    assert isinstance(empty, cuda.DeviceRecord)
    empty.copy_to_device(record)
    assert empty.copy_to_host() == host[3]
    with pytest.raises(TypeError, match="is not a record dtype"):
        cuda.DeviceRecord(np.float32)


@cuda.jit
def take(value):
    pass


def test_elements_that_are_not_aligned_are_refused() -> None:
    device = cuda.to_device(sample())
    with pytest.raises(TypeError, match=r"argument 1 \(`value`\) .*float64 elements are not aligned"):
        take[1, 1](device["b"])
    take[1, 1](device["a"])
    take[1, 1](cuda.to_device(sample(ALIGNED))["b"])
    # Packed records are also accessed with the alignment of their fields where possible.
    outer = np.zeros(2, [("tag", "i1"), ("inner", [("x", "i4"), ("y", "f4")])])
    device = cuda.to_device(outer)
    for part in (device["inner"], device[1]["inner"]):
        with pytest.raises(TypeError, match="are not aligned to 4 bytes"):
            take[1, 1](part)
    take[1, 1](device[1])
    take[1, 1](cuda.to_device(outer["inner"].copy()))
    # The copy to the device makes a host array contiguous.
    take[1, 1](sample()["b"])


def test_dates_and_spans() -> None:
    dates = np.array(["2020-01-01", "NaT", "1969-12-31"], "M8[D]")
    assert (cuda.to_device(dates).copy_to_host().view("i8") == dates.view("i8")).all()
    assert weft.typeof(dates) == types.NPDatetime("D")[::1]
    assert weft.typeof(np.zeros((), "m8[ns]")).dtype == types.NPTimedelta("ns")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 deprecates time differences without a unit
        for value in (
            np.datetime64("2020-01-01", "us"),
            np.timedelta64(5, "h"),
            np.timedelta64(5),
            np.datetime64("NaT"),
        ):
            ty = weft.typeof(value)
            assert str(ty) == str(value.dtype).removeprefix("<")
            assert pickle.loads(pickle.dumps(ty)) == ty
            assert weft.as_dtype(ty) == value.dtype
    with pytest.raises(TypeError, match="not supported"):
        weft.typeof(np.zeros(1, "m8[25s]")[0])
