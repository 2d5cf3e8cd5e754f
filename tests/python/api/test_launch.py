"""Launches: configurations, arguments, host arrays, threads."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
import weft
from weft import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * 2


@cuda.jit
def copy(src, dst):
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = src[i]


@cuda.jit
def add_one_2d(a):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        a[i, j] += 1


def test_configurations() -> None:
    configured = double[(2, np.int64(3)), 32]
    assert configured.griddim == (2, 3, 1)
    assert configured.blockdim == (32, 1, 1)
    assert configured.sharedmem == 0
    assert configured.dispatcher is double
    assert double[(2, 3), 32] is double[(2, 3), 32]
    assert double[[1, 2, 3], [4], 0, 128].sharedmem == 128
    assert double.configure(1, 2).blockdim == (2, 1, 1)


@cuda.jit
def scale(x, a):
    """Multiplies in place."""
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


def test_configured_kernels_are_reusable():
    x = np.ones(3)
    launch = scale[1, 3]
    launch(x, 2.0)
    launch(x, 3.0)
    assert x.tolist() == [6] * 3
    assert scale.configure(1, 3)(x, 0.5) is None
    assert x.tolist() == [3] * 3


def test_scalars_keep_their_values() -> None:
    @cuda.jit
    def put(out, value):
        out[0] = value

    values = [True, False, -1, 2**63 - 1, -(2**63), 2**64 - 1, 1.1, -0.0, 1 + 2j, np.float32(1.1), np.complex64(1 - 2j)]
    values += [np.iinfo(t).min for t in (np.int8, np.int16, np.int32, np.int64)]
    values += [np.dtype(t).type(np.iinfo(t).max) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
    for value in values:
        out = np.zeros(1, np.asarray(value).dtype)
        put[1, 1](out, value)
        assert out[0] == value
        assert np.signbit(out[0].real) == np.signbit(np.asarray(value).real)


def test_nested_tuples() -> None:
    @cuda.jit
    def put(out, pair):
        first, (array, factor) = pair
        i = cuda.grid(1)
        out[i] = first + array[i] * factor

    out = np.zeros(3)
    put[1, 3](out, (np.int8(1), (np.arange(3, dtype=np.float32), 2.5)))
    assert out.tolist() == [1, 3.5, 6]
    written = np.zeros(2)

    @cuda.jit
    def write(pair):
        pair[1][cuda.grid(1)] = pair[0]

    write[1, 2]((7, written))
    assert written.tolist() == [7, 7]


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16"])
def test_host_arrays_are_copied_in_and_back(dtype) -> None:
    src = np.arange(70).astype(dtype)
    dst = np.zeros_like(src)
    copy[1, 128](src, dst)
    assert np.array_equal(src, dst)


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
def test_host_arrays_of_any_strides() -> None:
    for make in (
        lambda base: base,
        lambda base: base.T,
        lambda base: base[::2, ::3],
        lambda base: base[::-1, 1:],
        lambda base: base.T[::-2],
        lambda base: base[:0],
        lambda base: base[2:3, :1],
    ):
        base = np.arange(48.0).reshape(6, 8)
        expected = base.copy()
        make(expected)[...] += 1
        add_one_2d[(1, 1), (8, 8)](make(base))
        assert np.array_equal(base, expected)


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
def test_what_a_kernel_does_not_write_stays() -> None:
    @cuda.jit
    def write_some(x):
        i = cuda.grid(1)
        if i % 2 == 0 and i < x.size:
            x[i] = -1

    x = np.arange(6)
    write_some[1, 8](x)
    assert x.tolist() == [-1, 1, -1, 3, -1, 5]


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
def test_zero_dimensions_and_unaligned_arrays() -> None:
    @cuda.jit
    def set_it(x):
        x[()] = 5

    zero = np.zeros(())
    set_it[1, 1](zero)
    assert zero[()] == 5
    record = np.zeros(3, np.dtype([("a", "u1"), ("b", "f8")]))
    record["b"] = [1, 2, 3]
    assert not record["b"].flags.aligned
    double[1, 3](record["b"])
    assert record["b"].tolist() == [2, 4, 6]


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
def test_read_only_arrays() -> None:
    src = np.arange(3.0)
    src.flags.writeable = False
    dst = np.zeros(3)
    copy[1, 3](src, dst)
    assert dst.tolist() == [0, 1, 2]
    with pytest.raises(weft.CompileError, match="E0215"):
        double[1, 3](src)


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
def test_other_buffers_and_copy_hints() -> None:
    buffer = bytearray([1, 2, 3])
    double[1, 3](buffer)
    assert list(buffer) == [2, 4, 6]
    x = np.arange(3.0)
    double[1, 3](cuda.In(x))
    assert x.tolist() == [0, 1, 2]
    double[1, 3](cuda.InOut(x))
    assert x.tolist() == [0, 2, 4]
    out = np.full(3, np.nan)
    copy[1, 3](cuda.In(x), cuda.Out(out))
    assert out.tolist() == [0, 2, 4]
    on_device = cuda.to_device(x)
    double[1, 3](cuda.InOut(on_device))
    assert on_device.copy_to_host().tolist() == [0, 4, 8]


@pytest.mark.filterwarnings("ignore::weft.PerformanceWarning")
def test_forall() -> None:
    x = np.ones(1000)
    double.forall(x.size)(x)
    double.forall(x.size, tpb=64)(x)
    double.forall(0)(x)
    assert (x == 4).all()
    with pytest.raises(ValueError, match="Can't create ForAll with negative task count"):
        double.forall(-1)


def overlapping_views() -> dict[str, np.ndarray]:
    base = np.zeros(16)
    return {
        "windows": np.lib.stride_tricks.as_strided(base, (8, 8), (8, 8)),
        "repeated": np.lib.stride_tricks.as_strided(base, (3, 4), (0, 8)),
    }


@pytest.mark.parametrize("name", ["windows", "repeated"])
def test_a_host_array_whose_elements_overlap_is_not_written(name: str) -> None:
    view = overlapping_views()[name]
    with pytest.raises(ValueError, match=r"argument 1 \(`a`\) of kernel `add_one_2d`: .*share memory"):
        add_one_2d[(1, 1), (8, 8)](view)
    assert not view.any()
    # Reads are allowed, and so are unusual layouts without overlap.
    out = np.zeros(2)
    copy[1, 32](view[0], out)
    fine = np.zeros((4, 6))[::-2, ::3].T
    add_one_2d[(1, 1), (8, 8)](fine)
    assert fine.all()
    add_one_2d[(1, 1), (8, 8)](cuda.In(view))
    tuple_kernel = cuda.jit(write_second)
    with pytest.raises(ValueError, match=r"argument 2 .*share memory"):
        tuple_kernel[1, 1](out, (out, view))


class Foreign:
    """An array of another library, with any strides."""

    def __init__(self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.array = array
        pointer = array.__cuda_array_interface__["data"]
        self.__cuda_array_interface__ = {
            "shape": shape,
            "strides": strides,
            "typestr": "<f8",
            "data": pointer,
            "version": 3,
        }


@pytest.mark.parametrize(("shape", "strides"), [((8, 8), (8, 8)), ((3, 4), (0, 8)), ((4, 3), (0, 0))])
def test_a_foreign_array_whose_elements_overlap_is_not_written(
    shape: tuple[int, int], strides: tuple[int, int]
) -> None:
    array = cuda.to_device(np.zeros(16))
    view = Foreign(array, shape, strides)
    message = r"argument 1 \(`a`\) of kernel `add_one_2d`: .*share memory"
    with pytest.raises(ValueError, match=message):
        add_one_2d[(1, 1), (8, 8)](view)
    with pytest.raises(ValueError, match=message):
        add_one_2d[(1, 1), (8, 8)].prepare(view)
    with cuda.graph(), pytest.raises(ValueError, match=message):
        add_one_2d[(1, 1), (8, 8)](view)
    assert not array.copy_to_host().any()
    # Reads are allowed, and so are unusual layouts without overlap.
    out = np.zeros(2)
    copy[1, 32](Foreign(array, (2,), (0,)), out)
    add_one_2d[(1, 1), (8, 8)](Foreign(array, (4, 3), (8, 40)))
    assert array.copy_to_host().sum() == 12


def test_a_stream_of_a_foreign_array_that_is_none_is_named() -> None:
    view = Foreign(cuda.to_device(np.zeros((2, 2))), (2, 2), (16, 8))
    for wrong in (-5, "stream", 1 << 70):
        view.__cuda_array_interface__["stream"] = wrong
        with pytest.raises(
            ValueError, match=r"argument 1 \(`a`\).*stream of its __cuda_array_interface__ must be .*, not "
        ):
            add_one_2d[(1, 1), (2, 2)](view)


def write_second(out, pair):
    pair[1][0, 0] = out[0] + pair[0][0]


def test_host_arrays_of_any_layout_go_through_a_launch_once() -> None:
    @cuda.jit
    def negate(a):
        i, j = cuda.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            a[i, j] = -a[i, j]

    for view in (np.s_[::2, ::3], np.s_[::-1], np.s_[:, ::-2]):
        host = np.arange(48.0).reshape(6, 8)
        expected = host.copy()
        expected[view] *= -1
        negate[(1, 1), (8, 8)](host[view])
        np.testing.assert_array_equal(host, expected)


@pytest.mark.cuda
def test_host_arrays_warn():
    with pytest.warns(weft.errors.NumbaPerformanceWarning, match="Host array used in CUDA kernel"):
        scale[1, 4](np.ones(4), 2.0)


def test_device_arrays_do_not_warn():
    x = cuda.to_device(np.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Grid size")
        scale[1, 4](x, 2.0)


def test_many_threads_compile_and_launch_one_kernel() -> None:
    @cuda.jit
    def kernel(x, value):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += value

    failures = []

    def work(value):
        try:
            x = cuda.to_device(np.zeros(100))
            for _ in range(20):
                kernel[1, 128](x, value)
            assert (x.copy_to_host() == 20 * value).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in (1, 2.0, 3, np.float32(4), np.int8(5), 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(kernel.overloads) == 4


def test_kernels_are_collected() -> None:
    def make():
        factor = 3

        @cuda.jit
        def kernel(x):
            x[0] = factor

        kernel[1, 1](cuda.device_array(1))
        kernel[1, 2](cuda.device_array(1, np.int8))
        return weakref.ref(kernel)

    reference = make()
    gc.collect()
    assert reference() is None


def test_a_prepared_launch_reads_its_arguments_once():
    @cuda.jit
    def scale(a, factor=2.0, *, offset=0.0):
        i = cuda.grid(1)
        if i < a.size:
            a[i] = a[i] * factor + offset

    a = cuda.to_device(np.arange(10.0))
    launch = scale[1, 32].prepare(a, 3.0, offset=1.0)
    assert a[1] == 1
    launch()
    assert np.array_equal(a.copy_to_host(), np.arange(10.0) * 3 + 1)
    launch()
    assert np.array_equal(a.copy_to_host(), np.arange(10.0) * 9 + 4)
    assert launch.args == (a, 3.0, 1.0)
    assert "scale" in repr(launch)
    # In a separate stream, after the work that is queued there.
    stream = cuda.stream()
    launch = scale[1, 32, stream].prepare(a, 0.0)
    launch()
    stream.synchronize()
    assert not a.copy_to_host().any()
    # It keeps its array alive, and can be recorded in a graph.
    launch = scale[1, 32].prepare(cuda.to_device(np.ones(10)), 5.0)
    with cuda.graph() as graph:
        launch()
    graph.launch()
    launch()
    assert launch.args[0][3] == 25
    with pytest.raises(TypeError, match=r"argument 1 \(`a`\) of kernel `scale`: a recorded or prepared"):
        scale[1, 32].prepare(np.ones(10))
    with pytest.raises(TypeError):
        scale[1, 32].prepare()
    with pytest.raises(weft.LaunchError, match="threads"):
        scale[1, 4096].prepare(a)
