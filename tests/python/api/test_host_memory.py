"""Memory that host and device share: page-locked, mapped and managed arrays."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
import weft
from weft import cuda

MAKERS = [cuda.mapped_array, cuda.managed_array]


@cuda.jit
def count(x):
    i = cuda.grid(1)
    cuda.atomic.add(x, i % x.size, 1)


@cuda.jit
def add_one(x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] += 1


@pytest.mark.parametrize("make", MAKERS)
def test_kernels_use_the_array_where_it_is(make, recwarn) -> None:
    x = make(5, np.int64)
    x[:] = [10, 20, 30, 40, 50]
    count[128, 32](x)
    cuda.synchronize()
    assert x.tolist() == [10 + 820, 20 + 819, 30 + 819, 40 + 819, 50 + 819]
    assert [w for w in recwarn if w.category is weft.PerformanceWarning] == []
    assert weft.typeof(x) == weft.int64[::1]
    assert (weft.int64[::1],) in count.signatures


@pytest.mark.parametrize("make", MAKERS)
def test_views_share_and_results_do_not(make) -> None:
    x = make((4, 3), np.int32, order="F")
    assert x.flags.f_contiguous
    x[:] = 0
    add_one[1, (4, 2)](x[::2, 1:])
    cuda.synchronize()
    assert x.tolist() == [[0, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0]]
    same = x == 1
    assert same.sum() == 4
    other = x + 1
    assert other._weft_device_array is None
    add_one[1, (4, 2)](other)
    assert other[0].tolist() == [2, 3, 2]
    assert other[3].tolist() == [2, 2, 1]
    assert x[0].tolist() == [0, 1, 1]
    copy = pickle.loads(pickle.dumps(x))
    assert copy.tolist() == x.tolist()
    assert copy._weft_device_array is None


@pytest.mark.parametrize("make", MAKERS)
def test_it_has_a_device_arrays_methods(make) -> None:
    x = make(3, np.float32)
    x[:] = [1, 2, 3]
    assert type(x.copy_to_host()) is np.ndarray
    assert x.copy_to_host().tolist() == [1, 2, 3]
    x.copy_to_device(np.array([4, 5, 6], np.float32))
    cuda.synchronize()
    assert x.tolist() == [4, 5, 6]
    assert x.is_c_contiguous()
    assert x.device_pointer
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = x.nothing
    with pytest.raises(AttributeError, match="copy_to_host"):
        _ = (x + 1).copy_to_host


def test_shapes() -> None:
    for make in (*MAKERS, cuda.pinned_array):
        assert make(()).shape == ()
        assert make((0, 3)).shape == (0, 3)
        assert make(4).dtype == np.float64
        assert make((2, 2), np.int8, strides=(8, 1)).strides == (8, 1)
        assert make(2, np.dtype([("a", "i1"), ("b", "f8")])).dtype.names == ("a", "b")
        with pytest.raises(ValueError, match="cannot be negative"):
            make(-1)
        with pytest.raises(ValueError, match="order must be"):
            make(1, order="A")
    empty = cuda.mapped_array(0, np.int64)
    count[1, 1](cuda.mapped_array(1, np.int64))
    assert weft.typeof(empty) == weft.int64[::1]
    for like in (cuda.mapped_array_like, cuda.pinned_array_like):
        assert like(cuda.device_array((3, 4), order="F")).flags.f_contiguous
        assert like(np.zeros((6, 4), np.int16)[::2]).strides == (8, 2)
        assert like([1.0, 2.0]).dtype == np.float64


def test_the_memory_lives_as_long_as_an_array_is_in_it() -> None:
    x = cuda.mapped_array(1000, np.int64)
    x[:] = 1
    part = np.asarray(x)[990:]
    del x
    gc.collect()
    others = [cuda.mapped_array(1000, np.int64) for _ in range(4)]
    for other in others:
        other[:] = 2
    assert part.tolist() == [1] * 10


def test_arrays_of_numpy_are_locked_for_a_block() -> None:
    x, y = np.zeros(4, np.int64), np.zeros(2, np.int64)
    with cuda.pinned(x, y):
        device = cuda.to_device(x)
        count[1, 8](device)
        device.copy_to_host(x)
    assert x.tolist() == [2] * 4
    with cuda.mapped(x) as mapped:
        count[1, 8](mapped)
    assert x.tolist() == [4] * 4
    with cuda.mapped(x, y, stream=cuda.stream()) as (first, second):
        count[1, 8](first)
        count[1, 8](second)
    assert (x.tolist(), y.tolist()) == ([6] * 4, [4] * 2)
    with pytest.raises(ValueError, match="only a contiguous array"), cuda.pinned(np.zeros(8)[::2]):
        pass


def test_atomic_steps_on_mapped_memory() -> None:
    @cuda.jit
    def steps(x, old):
        i = cuda.grid(1)
        cuda.atomic.max(x, 0, i)
        cuda.atomic.add(x, 1, 2)
        cuda.atomic.cas(x, 2, 7, 9)
        old[i] = cuda.atomic.exch(x, 3, i)

    x, old = cuda.mapped_array(4, np.int32), cuda.mapped_array(64, np.int32)
    x[:] = [0, 0, 7, -1]
    steps[2, 32](x, old)
    cuda.synchronize()
    assert x[:3].tolist() == [63, 128, 9]
    assert sorted([*old.tolist(), int(x[3])]) == [-1, *range(64)]


@pytest.mark.parametrize("make", [cuda.device_array, cuda.mapped_array, cuda.managed_array])
def test_shapes_and_strides_of_new_arrays_are_checked(make) -> None:
    with pytest.raises(ValueError, match="strides and shape differ in length"):
        make((2, 3), np.int32, strides=(4,))
    with pytest.raises(ValueError, match="cannot be negative"):
        make((2, -3))
    with pytest.raises(ValueError, match="is too large"):
        make((1 << 40, 1 << 40))
