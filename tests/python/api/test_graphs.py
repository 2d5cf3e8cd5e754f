"""Launches that are recorded once and run again with one call."""

import gc
import threading
import weakref

import numpy as np
import pytest
import weft.errors
from weft import cuda


@cuda.jit
def scale(a, factor):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= factor


@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@pytest.fixture
def numbers():
    return cuda.to_device(np.arange(100.0))


def test_nothing_runs_before_the_graph_is_launched(numbers):
    out = cuda.to_device(np.zeros(100))
    with cuda.graph() as graph:
        scale[1, 128](numbers, 2.0)
        add[1, 128](out, numbers, numbers)
    assert np.array_equal(numbers.copy_to_host(), np.arange(100.0))
    assert len(graph) == 2
    for times in range(1, 4):
        graph.launch()
        assert np.array_equal(numbers.copy_to_host(), np.arange(100.0) * 2**times)
        assert np.array_equal(out.copy_to_host(), 2 * np.arange(100.0) * 2**times)


def test_a_graph_reads_what_is_in_its_arrays_when_it_runs(numbers):
    out = cuda.device_array(100)
    with cuda.graph() as graph:
        add[1, 128](out, numbers, numbers)
    numbers.copy_to_device(np.full(100, 3.0))
    graph.launch()
    assert np.array_equal(out.copy_to_host(), np.full(100, 6.0))


def test_copies_on_the_device_are_recorded(numbers):
    other, third = cuda.to_device(np.zeros(100)), cuda.to_device(np.zeros(100))
    with cuda.graph() as graph:
        other.copy_to_device(numbers)
        scale[1, 128](numbers, 0.0)
        third[:] = other
    assert len(graph) == 3
    assert not other.copy_to_host().any()
    graph.launch()
    assert np.array_equal(third.copy_to_host(), np.arange(100.0))
    graph.launch()
    assert not third.copy_to_host().any()


def test_copies_of_the_host_are_recorded(numbers):
    host, out = np.arange(100.0), np.zeros(100)
    with cuda.graph() as graph:
        numbers.copy_to_device(host)
        scale[1, 128](numbers, 2.0)
        assert numbers.copy_to_host(out) is out
        assert cuda.to_device(host, to=numbers) is numbers
    assert len(graph) == 4
    assert not out.any()
    for value in (3.0, 5.0):
        host[:] = value
        graph.launch()
        cuda.synchronize()
        assert np.array_equal(out, np.full(100, 2 * value))
        assert np.array_equal(numbers.copy_to_host(), np.full(100, value))


def test_the_arrays_of_the_host_live_as_long_as_the_graph():
    there = cuda.to_device(np.zeros(100))
    host, out = np.ones(100), np.zeros(100)
    with cuda.graph() as graph:
        there.copy_to_device(host[::-1][::-1])
        there.copy_to_host(out)
    kept = weakref.ref(host), weakref.ref(out)
    shared = out[:]
    host[:] = 7
    del host, out
    gc.collect()
    assert all(each() is not None for each in kept)
    graph.launch()
    cuda.synchronize()
    assert np.array_equal(shared, np.full(100, 7.0))
    del shared, graph
    gc.collect()
    assert all(each() is None for each in kept)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_the_host_are_recorded(order):
    matrix = np.asarray(np.arange(60.0).reshape(6, 10), order=order)
    there = cuda.to_device(np.asarray(np.zeros((6, 10)), order=order))
    back = np.zeros((6, 10), order=order)
    part = (slice(1, 5), slice(2, 7))
    with cuda.graph() as graph:
        there[part].copy_to_device(matrix[part])
        there[part].copy_to_host(back[part])
        there[0].copy_to_device(matrix[5])
        there[:, 0].copy_to_host(back[:, 9])
    matrix += 100
    graph.launch()
    cuda.synchronize()
    expected = np.zeros((6, 10))
    expected[part] = matrix[part]
    assert np.array_equal(back[:, :9], expected[:, :9])
    assert np.array_equal(back[:, 9], [matrix[5, 0], 0, 0, 0, 0, 0])
    expected[0] = matrix[5]
    assert np.array_equal(there.copy_to_host(), expected)


def test_records_and_axes_of_one_element_are_recorded():
    dtype = np.dtype([("x", "i4"), ("y", "f8")], align=True)
    records = np.zeros(3, dtype)
    there, out = cuda.to_device(records), np.zeros((1, 3, 1), dtype)
    record, number = cuda.to_device(records[0]), cuda.to_device(np.float32(0))
    one, point = np.zeros(1, dtype), np.array(2.0, np.float32)
    with cuda.graph() as graph:
        there.copy_to_device(records.reshape(3, 1))
        there.copy_to_host(out)
        record.copy_to_device(records[1])
        record.copy_to_host(one[0])
        number.copy_to_device(point)
    records["x"], records["y"] = [1, 2, 3], 0.5
    point[...] = 9
    graph.launch()
    cuda.synchronize()
    assert np.array_equal(out.ravel(), records)
    assert one[0] == records[1]
    assert number.copy_to_host() == 9


def test_mapped_arrays_are_copied_on_the_device(numbers):
    mapped, out = cuda.mapped_array(100), cuda.managed_array(100)
    with cuda.graph() as graph:
        numbers.copy_to_device(mapped)
        scale[1, 128](numbers, 2.0)
        numbers.copy_to_host(out)
    mapped[:] = 4
    graph.launch()
    cuda.synchronize()
    assert np.array_equal(out, np.full(100, 8.0))


def test_arrays_of_the_host_that_cannot_be_recorded(numbers):
    matrix = cuda.to_device(np.zeros((4, 6)))
    frozen = np.zeros(100)
    frozen.setflags(write=False)
    for kind, words, what in (
        (RuntimeError, "`ary` is missing.*graph", numbers.copy_to_host),
        (ValueError, "`ary`.*read-only", lambda: numbers.copy_to_host(frozen)),
        (ValueError, "`ary`.*same order", lambda: matrix.copy_to_device(np.zeros((4, 6), order="F"))),
        (ValueError, "`ary`.*same order", lambda: numbers.copy_to_host(np.zeros(100)[::-1])),
        (ValueError, "`ary`.*same order", lambda: matrix[:, :4:2].copy_to_device(np.zeros((4, 2)))),
        (ValueError, "`ary`.*shape.*broadcast", lambda: matrix.copy_to_device(np.zeros(6))),
        (ValueError, "incompatible shape", lambda: matrix.copy_to_device(np.zeros(5))),
        (TypeError, "incompatible dtype: float32", lambda: numbers.copy_to_device(np.zeros(100, np.float32))),
        (TypeError, "incompatible dtype: >f8", lambda: numbers.copy_to_host(np.zeros(100, ">f8"))),
        (TypeError, "`obj` must be an array.*not list", lambda: cuda.to_device([0.0] * 100, to=numbers)),
        (RuntimeError, "array.copy_to_device", lambda: cuda.to_device(np.zeros(3))),
    ):
        graph = cuda.graph()
        with pytest.raises(kind, match=words), graph:
            what()
        assert len(graph) == 0
    with cuda.graph() as graph:
        numbers[:0].copy_to_host(np.zeros(0))
        numbers[:0].copy_to_device(np.zeros(0))
    assert len(graph) == 0


def test_ufuncs_and_other_streams_are_recorded(numbers):
    twice = cuda.vectorize(["float64(float64)"])(lambda x: 2 * x)
    stream = cuda.stream()
    with cuda.graph() as graph:
        result = twice(numbers)
        scale[1, 128, stream](result, 10.0)
    graph.launch(cuda.stream())
    cuda.synchronize()
    assert np.array_equal(result.copy_to_host(), 20 * np.arange(100.0))


def test_arguments_can_be_changed(numbers):
    first, second = cuda.to_device(np.ones(100)), cuda.to_device(np.full(100, 2.0))
    with cuda.graph() as graph:
        numbers.copy_to_device(first)
        scale[1, 128](numbers, 5.0)
        add[1, 128](first, numbers, numbers)
    assert [launch.kernel for launch in graph.launches] == [scale, add]
    graph.set_args(0, numbers, 7.0)
    graph.set_args(1, second, numbers, first)
    assert graph.launches[0].args == (numbers, 7.0)
    assert graph.launches[1].griddim == (1, 1, 1)
    assert graph.launches[1].blockdim == (128, 1, 1)
    graph.launch()
    assert np.array_equal(second.copy_to_host(), np.full(100, 8.0))
    assert np.array_equal(first.copy_to_host(), np.ones(100))
    with pytest.raises(TypeError, match=r"recorded for .*\(array\(float64, 1d, C\), float64\).* cannot take .*float32"):
        graph.set_args(0, cuda.to_device(np.zeros(100, np.float32)), 7.0)
    with pytest.raises(TypeError, match=r"argument 1 \(`a`\).*host array"):
        graph.set_args(0, np.zeros(100), 7.0)
    with pytest.raises(TypeError, match="argument"):
        graph.set_args(0, numbers)
    with pytest.raises(IndexError, match="the graph has 2 launches: the index 2 is out of range"):
        graph.set_args(2, numbers, 7.0)
    with pytest.raises(IndexError, match="the graph has 2 launches: the index -1 is out of range"):
        graph.set_args(-1, numbers, 7.0)
    graph.launch()
    assert np.array_equal(second.copy_to_host(), np.full(100, 8.0))


def test_mapped_arrays_are_recorded():
    mapped = cuda.mapped_array(100)
    mapped[:] = 1
    with cuda.graph() as graph:
        scale[1, 128](mapped, 3.0)
    graph.launch()
    graph.launch()
    cuda.synchronize()
    assert np.array_equal(mapped, np.full(100, 9.0))


def test_what_cannot_be_recorded(numbers):
    host, pointer = np.zeros(100), cuda.current_context().memalloc(8)
    for what in (
        lambda: scale[1, 128](host, 1.0),
        numbers.copy_to_host,
        lambda: np.asarray(numbers),
        lambda: cuda.to_device(host),
        lambda: cuda.to_device([1.0] * 100, to=numbers),
        lambda: numbers[3],
        lambda: numbers.setitem(slice(None), host),
        cuda.synchronize,
        cuda.stream().synchronize,
        cuda.event().synchronize,
        lambda: pointer.memset(0),
        lambda: cuda.graph().launch(),
        lambda: cuda.graph().__enter__(),
    ):
        graph = cuda.graph()
        with pytest.raises((RuntimeError, TypeError), match=r"recorded|records"), graph:
            what()
        assert len(graph) == 0
    # Nothing is recorded any more.
    scale[1, 128](numbers, 2.0)
    assert numbers[3] == 6


def test_streams_and_events_are_recorded(numbers):
    one, other = cuda.stream(), cuda.stream()
    left, right, out = (cuda.to_device(np.zeros(100)) for _ in range(3))
    begun, done = cuda.event(), cuda.event(timing=False)
    result = np.zeros(100)
    with cuda.graph() as graph:
        scale[1, 128, one](numbers, 2.0)
        begun.record(one)
        begun.wait(other)
        left.copy_to_device(numbers, stream=one)
        scale[1, 128, one](left, 3.0)
        right.copy_to_device(numbers, stream=other)
        scale.configure(1, 128, other).prepare(right, 5.0)()
        done.record(other)
        done.wait(one)
        add[1, 128, one](out, left, right)
        out.copy_to_host(result, stream=one)
    assert len(graph) == 7
    for times in (1, 2, 3):
        graph.launch(other)
        other.synchronize()
        assert np.array_equal(result, np.arange(100.0) * 2**times * 8)


def test_events_of_a_recording_are_its_own(numbers):
    stream, before, within = cuda.stream(), cuda.event(), cuda.event()
    before.record(stream)
    for wait in (lambda: before.wait(stream), before.wait, lambda: within.wait(stream)):
        graph = cuda.graph()
        with pytest.raises(RuntimeError, match=r"event .*not recorded in the `with` block"), graph:
            wait()
        assert len(graph) == 0
    with cuda.graph():
        within.record(stream)
        within.wait()
    with pytest.raises(weft.errors.EventError, match=r"record"):
        cuda.event_elapsed_time(within, within)
    with pytest.raises(RuntimeError, match="cannot wait for a stream while a graph is recorded"), cuda.graph():
        stream.add_callback(lambda *_: None)
    within.record(stream)
    within.synchronize()


def test_a_block_that_raises_leaves_the_graph_as_it_was(numbers):
    graph = cuda.graph()
    with pytest.raises(RuntimeError, match="the graph is empty"):
        graph.launch()
    with graph:
        scale[1, 128](numbers, 2.0)

    def broken():
        scale[1, 128](numbers, 100.0)
        raise KeyError

    with pytest.raises(KeyError), graph:
        broken()
    graph.launch()
    assert numbers[3] == 6
    with graph:
        scale[1, 128](numbers, 0.5)
    graph.launch()
    assert numbers[3] == 3


def test_an_error_of_a_launch_ends_the_block(numbers):
    with pytest.raises(Exception, match="threads"), cuda.graph() as graph:
        scale[1, 4096](numbers, 2.0)
    assert len(graph) == 0


def test_other_threads_are_not_recorded(numbers):
    other = cuda.to_device(np.ones(100))
    with cuda.graph() as graph:
        thread = threading.Thread(target=lambda: scale[1, 128](other, 3.0))
        thread.start()
        thread.join()
    assert len(graph) == 0
    assert other[0] == 3


def test_a_graph_keeps_its_arrays_and_gives_them_back(numbers):
    with cuda.graph() as graph:
        temporary = cuda.device_array(100)
        temporary.copy_to_device(numbers)
        scale[1, 128](temporary, 4.0)
        numbers.copy_to_device(temporary)
    kept = weakref.ref(temporary)
    del temporary
    gc.collect()
    assert kept() is not None
    graph.launch()
    assert numbers[3] == 12
    del graph
    gc.collect()
    assert kept() is None


def test_many_threads_launch_one_graph(numbers):
    @cuda.jit
    def count(a):
        cuda.atomic.add(a, cuda.grid(1), 1.0)

    counts = cuda.to_device(np.zeros(128))
    with cuda.graph() as graph:
        for _ in range(5):
            count[4, 32](counts)

    def work():
        for _ in range(20):
            graph.launch()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(counts.copy_to_host(), np.full(128, 800.0))


def test_faults_of_a_graph_are_told_where_the_host_waits():
    @cuda.jit(exceptions=True)
    def raises(a):
        if a[0] > 1:
            raise KeyError("too many")
        a[0] += 1

    counted = cuda.to_device(np.zeros(1))
    with cuda.graph() as graph:
        raises[1, 1](counted)
    graph.launch()
    graph.launch()
    cuda.synchronize()
    graph.launch()
    with pytest.raises(KeyError, match="too many"):
        cuda.synchronize()


def test_the_repr_counts_steps(numbers):
    graph = cuda.graph()
    assert repr(graph) == "<weft.cuda.Graph of 0 steps>"
    with graph:
        scale[1, 128](numbers, 2.0)
    assert repr(graph) == "<weft.cuda.Graph of 1 step>"
    assert "scale" in repr(graph.launches[0])
