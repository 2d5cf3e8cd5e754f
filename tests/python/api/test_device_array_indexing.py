"""Device arrays: index arrays, masks, None, and assignments with them, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda
from weft.cuda._memory.device_array import array_at

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
FEW = "bool int8 uint16 int64 uint64 float16 float64 complex64".split()
"""One of each kind and width."""
BASE = np.arange(60).reshape(3, 4, 5)
RECORDS = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2", (2,))])


def orders(host):
    """The same elements in several layouts: C, F, with gaps, with negative steps, of broadcast memory."""
    yield host
    yield np.asfortranarray(host)
    wide = np.zeros([2 * extent for extent in host.shape], host.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in host.shape)]
    view[...] = host
    yield view
    back = tuple(slice(None, None, -1) for _ in host.shape)
    yield host[back].copy()[back]


def on_device(view):
    """A device array of the layout of a NumPy array."""
    base = view
    while base.base is not None:
        base = base.base
    memory = cuda.to_device(np.frombuffer(base.tobytes("A"), np.uint8))
    start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return array_at(memory, memory.address + start, view.shape, view.strides, view.dtype, memory.device)


def moved(key):
    """A key whose arrays are on the device."""
    if isinstance(key, tuple):
        return tuple(map(moved, key))
    return cuda.to_device(key) if isinstance(key, np.ndarray) and key.ndim else key


I = np.array  # noqa: E741
MASK = BASE % 3 == 0
KEYS = [
    I([0, 2]), I([[0, -1], [2, 1]]), [0, 2], [], I([], int), np.s_[[0, 1], [1, 2]], np.s_[:, [3, 0]],
    np.s_[..., [4, -5, 0]], np.s_[1, :, [0, 1]], np.s_[:, 1, [0, 1]],
    np.s_[[0, 1], :, [1, 2]], np.s_[I([[0], [2]]), [1, 3]],
    np.s_[None, [0, 1]], np.s_[[0, 1], None], np.s_[[0, 1], None, [1, 2]], np.s_[::-1, [1, 0]], np.s_[1:, :, [0, 0, 4]],
    np.s_[::2, [3, 1], ::-2], np.s_[I([1]), I([2]), I([3])], np.s_[[[0, 1, 2]], [[1], [3]], 0], np.s_[None],
    np.s_[..., None],
    np.s_[:, None, 1], np.s_[0, None, ..., None, 2], np.s_[[0, 1], ..., [0, 1]], np.s_[:, [0, 1], ..., [0, 1]],
    np.s_[:, [0, 1], [0, 1], ...], np.s_[0:0, [0, 1]], np.s_[I([0, 1], "u1"), I([-1, 0], "i2")], np.s_[I([0, 2], "u8")],
    MASK, ~MASK & False, MASK | True, MASK[:, :, 0], MASK[:, 0, 0], np.s_[:, MASK[0]], np.s_[:, :, MASK[0, 0]],
    np.s_[1, MASK[0]], np.s_[MASK[:, 0, 0], :, [1]], np.s_[:, MASK[0, :, 0], 2], np.s_[MASK[:, 0, 0], 1:, ::-2],
    np.s_[I([True, False, True]), I([True, True, False, False])], np.s_[None, MASK], np.s_[[True, False, True]],
    np.s_[MASK[:, :, 0], [2]], np.s_[(0, 1), (1, 2)], np.s_[0, I(1), I([1, 2])],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_with_arrays(key) -> None:
    expected = BASE[key]
    for host in orders(BASE):
        device = on_device(host)
        np.testing.assert_array_equal(device.copy_to_host(), BASE)
        for given in (key, moved(key)):
            found = device[given]
            assert isinstance(found, cuda.DeviceNDArray)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(found.copy_to_host(), expected)
            if "None" not in str(key) or "[" in str(key):
                assert found.is_c_contiguous()


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assignments_to_keys_with_arrays(key) -> None:
    shape = BASE[key].shape
    rng = np.random.default_rng(1)
    values = [-1, rng.integers(100, 200, shape), rng.integers(100, 200, (1, *shape)), rng.random(shape) * 50]
    values += [rng.integers(100, 200, shape[1:])] if shape else []
    values += [rng.integers(100, 200, (*shape[:-1], 1))] if shape else []
    for host in orders(BASE):
        for value in values:
            for place in (lambda x: x, moved):
                expected, device = BASE.copy(), on_device(host)
                if place is moved and isinstance(value, np.ndarray):
                    device[moved(key)] = cuda.to_device(value)
                else:
                    device[place(key)] = value
                # With a full mask, NumPy rejects values with more axes, even if these have extent 1.
                value = np.asarray(value)
                value = value.reshape(value.shape[max(value.ndim - len(shape), 0) :])
                expected[key] = value
                flat = np.arange(BASE.size).reshape(BASE.shape)[key].ravel()
                if len(set(flat.tolist())) < flat.size and np.ndim(value):
                    # Several values for one element: it has one of them.
                    spread = np.broadcast_to(value, shape).ravel().astype(BASE.dtype)
                    after = device.copy_to_host().ravel()
                    for at in set(flat.tolist()):
                        assert after[at] in spread[flat == at]
                    continue
                np.testing.assert_array_equal(device.copy_to_host(), expected)


@pytest.mark.parametrize("dtype", [*DTYPES, "S3", "U2", "M8[s]", RECORDS], ids=str)
def test_elements_of_all_dtypes(dtype) -> None:
    if dtype == RECORDS:
        host = np.zeros((4, 5), dtype)
        host["a"], host["b"] = np.arange(20).reshape(4, 5), np.arange(20).reshape(4, 5) / 3
        host["c"] = host["a"][..., None] * 2
    else:
        host = np.arange(20).reshape(4, 5).astype(dtype)
    mask = np.arange(20).reshape(4, 5) % 3 == 1
    for key in (mask, np.s_[[3, 0, 0]], np.s_[:, [1, 4]], np.s_[mask[:, 0]], np.s_[[1, 2], [0, -1]]):
        for given in (key, moved(key)):
            device = cuda.to_device(host)
            np.testing.assert_array_equal(device[given].copy_to_host(), host[key])
            other = np.array(host[::-1, ::-1])
            expected = other.copy()
            device = cuda.to_device(other)
            device[given] = host[key]
            expected[key] = host[key]
            np.testing.assert_array_equal(device.copy_to_host(), expected)
            device = cuda.to_device(other)
            device[given] = cuda.to_device(host[key])
            np.testing.assert_array_equal(device.copy_to_host(), expected)
            device[given] = host[0, 0]
            expected[key] = host[0, 0]
            np.testing.assert_array_equal(device.copy_to_host(), expected)


def test_random_keys() -> None:
    rng = np.random.default_rng(7)

    def item(extent):
        kind = rng.integers(6)
        if kind == 0:
            return int(rng.integers(-extent, extent))
        if kind == 1:
            return slice(*(int(x) for x in rng.integers(-extent, extent, 2)), int(rng.choice([-2, -1, 1, 2])))
        if kind == 2:
            return rng.random(extent) < 0.5
        return rng.integers(-extent, extent, [(3,), (1,), (2, 3)][kind - 3])

    for _ in range(250):
        shape = tuple(int(x) for x in rng.integers(1, 5, rng.integers(1, 5)))
        host = rng.integers(0, 1000, shape).astype(rng.choice(["i4", "f8", "c16", "u1"]))
        host = list(orders(host))[rng.integers(4)]
        key = [item(extent) for extent in shape[: rng.integers(1, len(shape) + 1)]]
        if rng.random() < 0.3:
            key.insert(int(rng.integers(len(key) + 1)), None)
        if rng.random() < 0.3:
            key.insert(int(rng.integers(len(key) + 1)), Ellipsis)
        key = tuple(key)
        try:
            expected = host[key]
        except IndexError:
            with pytest.raises(IndexError):
                on_device(host)[key]
            continue
        given = moved(key) if rng.random() < 0.5 else key
        found = on_device(host)[given]
        np.testing.assert_array_equal(np.asarray(found), expected, err_msg=str((shape, key)))
        assert np.shape(found) == expected.shape
        device, after = on_device(host), np.array(host)
        value = rng.integers(0, 1000, expected.shape[int(rng.integers(expected.ndim + 1)) :]).astype(host.dtype)
        flat = np.arange(host.size).reshape(shape)[key].ravel()
        if len(set(flat.tolist())) == flat.size:
            device[given] = cuda.to_device(value) if rng.random() < 0.5 else value
            after[key] = value
            np.testing.assert_array_equal(device.copy_to_host(), after, err_msg=str((shape, key, value.shape)))


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1024, 4095, 4097, 40_000, 300_001])
def test_long_masks(count) -> None:
    rng = np.random.default_rng(count)
    host = rng.random(count).astype("f4")
    for mask in (host < 0.3, host < 2, host > 2):
        device = cuda.to_device(host)
        on = cuda.to_device(mask)
        np.testing.assert_array_equal(device[on].copy_to_host(), host[mask])
        device[on] = cuda.to_device(np.arange(mask.sum(), dtype="f8"))
        expected = host.copy()
        expected[mask] = np.arange(mask.sum())
        np.testing.assert_array_equal(device.copy_to_host(), expected)


WRONG = [
    np.s_[[0, 3]], np.s_[[-4]], np.s_[:, [0, 4]], np.s_[0, 0, [5, 6]], np.s_[[0, 1], [0, 1, 2]], np.s_[MASK[0]],
    np.s_[MASK[:, :3]], np.s_[[0], [0], [0], [0]], np.s_[MASK, [0]], np.s_[[0.5]], np.s_[I(["a"])],
    np.s_[..., [0], ...],
    np.s_[0:0, [7]], np.s_[[0], 4], np.s_[I([1 << 40])],
]  # fmt: skip


@pytest.mark.parametrize("key", WRONG, ids=str)
def test_wrong_keys_with_arrays(key) -> None:
    with pytest.raises(IndexError) as expected:
        BASE[key]
    device = cuda.to_device(BASE)
    text = str(expected.value)
    for given in (key, moved(key)) if "str" not in str(getattr(key, "dtype", "")) else (key,):
        with pytest.raises(IndexError) as found:
            device[given]
        with pytest.raises(IndexError) as assigned:
            device[given] = 1
        if "out of bounds" in text or "boolean index did not match" in text:
            assert text == str(found.value) == str(assigned.value)
    np.testing.assert_array_equal(device.copy_to_host(), BASE)


def test_an_index_that_is_out_of_bounds_writes_nothing_anywhere() -> None:
    memory = cuda.to_device(np.zeros(100))
    inside = memory[40:60]
    for bad in ([0, 20], [-21, 3], [10**9]):
        for key in (np.array(bad), cuda.to_device(np.array(bad))):
            with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 20"):
                inside[key] = 7.0
            with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 20"):
                inside[key]
    assert not memory.copy_to_host().any()


def test_values_that_do_not_fit() -> None:
    device = cuda.to_device(BASE)
    for key in (np.s_[[0, 1]], MASK, cuda.to_device(MASK), np.s_[:, [1, 2, 3]]):
        with pytest.raises(ValueError, match=r"shape mismatch: value array of shape .* could not be broadcast"):
            device[key] = np.arange(7)
        with pytest.raises(ValueError, match=r"shape mismatch: value array of shape .* could not be broadcast"):
            device[key] = cuda.to_device(np.arange(7))
    with pytest.raises(ValueError, match="invalid literal"):
        device[MASK] = "no number"
    with pytest.raises(OverflowError):
        cuda.to_device(np.zeros(3, "u1"))[[0, 1]] = 300
    np.testing.assert_array_equal(device.copy_to_host(), BASE)


def test_a_read_only_array_is_not_written() -> None:
    device = cuda.to_device(np.zeros(4))
    locked = array_at(device.owner, device.address, (4,), (8,), "f8", device.device, True)
    for key in (np.s_[:], 0, [0, 1], np.array([True, False, True, False])):
        with pytest.raises(ValueError, match="read-only"):
            locked[key] = 1
        with pytest.raises(ValueError, match="read-only"):
            locked[key] = cuda.to_device(np.ones(1))
    assert not device.copy_to_host().any()


@pytest.mark.parametrize(
    ("to", "of"),
    [
        (np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:]), (np.s_[:, ::-1], np.s_[:]),
        (np.s_[:6, :6], np.s_[2:, 2:]), (np.s_[:], np.s_[3]), (np.s_[:], np.s_[:, 3:4]), (np.s_[::2], np.s_[1::2]),
        (np.s_[[1, 2, 3]], np.s_[[0, 1, 2]]), (np.s_[[1, 2, 3]], np.s_[:3]), (np.s_[[7, 0]], np.s_[:2]),
    ],
)  # fmt: skip
def test_assignments_of_arrays_to_themselves(to, of) -> None:
    for dtype in ("f8", "i1", "c16"):
        for host in orders(np.arange(64).reshape(8, 8).astype(dtype)):
            device, expected = on_device(host), np.array(host)
            device[to] = device[of]
            expected[to] = expected[of]
            np.testing.assert_array_equal(device.copy_to_host(), expected)
    device, expected = cuda.to_device(np.arange(64).reshape(8, 8)), np.arange(64).reshape(8, 8)
    device[...] = device.T
    expected[...] = expected.T.copy()
    np.testing.assert_array_equal(device.copy_to_host(), expected)
    device = cuda.to_device(np.array([2, 0, 1]))
    device[device] = device
    assert device.copy_to_host().tolist() == [0, 1, 2]
    mask = cuda.to_device(np.array([True, False, True]))
    mask[mask] = False
    assert not mask.copy_to_host().any()


@pytest.mark.parametrize("of", FEW)
@pytest.mark.parametrize("to", ["bool", "int16", "uint64", "float16", "float64", "complex64"])
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_device_values_are_converted_on_the_device(of, to) -> None:
    value = np.arange(12).reshape(3, 4).astype(of)
    for key in (np.s_[...], np.s_[1], np.s_[:, ::-1], np.s_[[0, 2]], np.s_[np.eye(3, 4, dtype=bool)]):
        part = value[key]
        host = np.ones((3, 4), to)
        device = cuda.to_device(host)
        device[key] = cuda.to_device(part)
        host[key] = part
        np.testing.assert_array_equal(device.copy_to_host(), host)


def test_bools_of_numbers() -> None:
    for value in ([0.5, 0, np.nan, -0.0], [0.5j, 0, 1, 2], [256, 0, -1, 1 << 40]):
        host, device = np.zeros(4, bool), cuda.to_device(np.zeros(4, bool))
        device[...] = cuda.to_device(np.array(value))
        host[...] = np.array(value)
        assert device.copy_to_host().tolist() == host.tolist()


def test_imaginary_parts_that_are_dropped_are_told() -> None:
    device = cuda.to_device(np.zeros(3))
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        device[:] = cuda.to_device(np.array([1j, 2, 3 + 1j]))
    assert device.copy_to_host().tolist() == [0, 2, 3]


def test_keys_of_many_axes() -> None:
    host = np.arange(2 * 3 * 2 * 2 * 2 * 3).reshape(2, 3, 2, 2, 2, 3)
    for view in (host, host[:, ::2, :, ::-1], host.transpose(5, 0, 3, 1, 4, 2)):
        device = on_device(view)
        for key in (np.s_[:, [1, 0]], np.s_[:, :, [1, 0], :, [0, 1]], np.s_[..., [0, 1]]):
            key = key if isinstance(key, tuple) else (key,)
            np.testing.assert_array_equal(device[key].copy_to_host(), view[key])


def test_an_array_without_elements() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        host, device = np.zeros(shape), cuda.to_device(np.zeros(shape))
        for key in (np.array([], int), np.zeros(shape, bool), np.zeros(shape[0], bool)):
            assert device[key].shape == host[key].shape
            assert device[moved(key)].shape == host[key].shape
            device[key] = 1
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        cuda.to_device(np.zeros((3, 0)))[[5]]


def test_streams_of_what_indices_give() -> None:
    stream = cuda.stream()
    device = cuda.to_device(BASE, stream=stream)
    assert device[[0, 1]].stream is stream
    assert device[None].stream is stream
    device[MASK] = 0
    assert device.copy_to_host(stream=stream).sum() == BASE[~MASK].sum()
    other = cuda.stream()
    device[[0]] = cuda.to_device(BASE[1], stream=other)
    assert np.array_equal(device[0].copy_to_host(), BASE[1])
