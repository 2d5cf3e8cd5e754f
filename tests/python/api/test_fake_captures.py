"""Streams that another library captures into a graph, over the fake driver of the runtime tests.

The fake driver rejects calls that are not allowed during a capture and invalidates the capture, as NVIDIA's does. It
also detects calls that weft must not make there, such as freeing memory in the captured stream.
"""

from __future__ import annotations

import textwrap

CAPTURE = """
import contextlib
import ctypes
import gc
import itertools
from weft.errors import DriverError

driver = ctypes.CDLL("libcuda.so.1")
GLOBAL, THREAD_LOCAL, RELAXED = range(3)


class Theirs:
    \"\"\"A stream of another library, which can be captured.\"\"\"

    def __init__(self, blocking=False):
        handle = ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(handle), int(not blocking)) == 0
        self.handle, self.stream = handle, cuda.external_stream(handle.value)

    @contextlib.contextmanager
    def capture(self, mode=GLOBAL):
        assert driver.cuStreamBeginCapture_v2(self.handle, mode) == 0
        graph = ctypes.c_void_p()
        try:
            yield self
        finally:
            self.ended = driver.cuStreamEndCapture(self.handle, ctypes.byref(graph))
        assert self.ended == 0, f"the capture is invalid ({self.ended})"
        self.exec = ctypes.c_void_p()
        assert driver.cuGraphInstantiateWithFlags(ctypes.byref(self.exec), graph, ctypes.c_uint64(0)) == 0

    def replay(self):
        assert driver.cuGraphLaunch(self.exec, self.handle) == 0


@cuda.jit
def sum2(out, a):
    out[0] = a


cuda.synchronize()
out, other = cuda.to_device(np.zeros(1, int)), cuda.to_device(np.zeros(1, int))
sum3[1, 1](out, 0, 0)
theirs = Theirs()


def refused(call, words, theirs=theirs):
    try:
        call()
    except DriverError as error:
        assert words in str(error), error
        return error.code
    raise AssertionError(words)
"""


def over(run, code: str, **env: str) -> str:
    return run(CAPTURE + textwrap.dedent(code), **env)


def test_launches_and_copies_on_the_device_are_captured(run) -> None:
    over(
        run,
        """
        for theirs, mode in itertools.product((Theirs(), Theirs(blocking=True)), (GLOBAL, THREAD_LOCAL, RELAXED)):
            sum3[1, 1](out, 0, 0)
            cuda.synchronize()
            prepared = sum3[1, 1, theirs.stream].prepare(other, 3, 4)
            with cuda.graph() as graph:
                sum3[1, 1](out, 5, 6)
            with theirs.capture(mode):
                sum3[1, 1, theirs.stream](out, 1, 2)
                other.copy_to_device(out, stream=theirs.stream)
                prepared()
                graph.launch(theirs.stream)
            assert out[0] == 0, "it has run"
            theirs.replay()
            cuda.synchronize()
            assert (out[0], other[0]) == (11, 7)
        """,
    )


def test_what_would_end_a_capture_is_refused_before(run) -> None:
    over(
        run,
        """
        class Exported:
            def __init__(self, array, stream):
                self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": int(stream)}


        host = np.zeros(1, int)
        with cuda.graph() as graph:
            out.copy_to_host(host)
        for theirs, mode in itertools.product((Theirs(), Theirs(blocking=True)), (GLOBAL, THREAD_LOCAL, RELAXED)):
            stream, event, within = theirs.stream, cuda.event(), cuda.event()
            event.record(stream)
            matrix = cuda.to_device(np.zeros((4, 4), int))
            with theirs.capture(mode):
                within.record(stream)
                for call, words in (
                    (lambda: cuda.device_array(3, stream=stream), "cannot allocate memory"),
                    (lambda: cuda.to_device(host, stream=stream), "cannot allocate memory"),
                    (lambda: sum3[1, 1, stream](host, 1, 2), "copy host arrays"),
                    (lambda: out.copy_to_device(host, stream=stream), "cannot copy from the host"),
                    (lambda: matrix[:, 1].copy_to_device(np.zeros(4, int), stream=stream), "cannot copy from the host"),
                    (lambda: out.copy_to_host(host, stream=stream), "cannot copy to the host"),
                    (stream.synchronize, "cannot wait for"),
                    (stream.query, "cannot query the work of"),
                    (lambda: graph.launch(stream), "cannot launch a graph that waits for copies of host memory"),
                    (within.synchronize, "record an event after the launch of the graph"),
                    (within.query, "record an event after the launch of the graph"),
                    (lambda: within.wait(), "`kernel[blocks, threads, stream]`"),
                    (lambda: event.wait(stream), "cannot wait for work outside the capture"),
                    (lambda: sum3[1, 1, cuda.stream()](Exported(out, stream), 1, 2), "cannot wait for"),
                ):
                    assert refused(call, words) in (900, 907)
                assert stream.is_capturing()
                assert not cuda.stream().is_capturing()
                sum3[1, 1, stream](Exported(out, stream), 1, 0)
                # Without a stream it follows that of the array.
                sum3[1, 1](Exported(out, stream), 1, 2)
            assert not stream.is_capturing()
            theirs.replay()
            assert out.copy_to_host(stream=stream)[0] == 3
            out.copy_to_device(host)
        """,
    )


def test_a_kernel_that_tells_at_once_is_refused(run) -> None:
    over(
        run,
        """
        @cuda.jit(debug=True, opt=False)
        def tells(out, i):
            if i < 0:
                raise ValueError("negative")


        def start(stream=0):
            tells[1, 1, stream](out, 3)


        start()
        with theirs.capture():
            refused(lambda: start(theirs.stream), "cannot launch `tells`, which waits for its exceptions")
        """,
    )


def test_a_first_launch_in_a_capture(run) -> None:
    over(
        run,
        """
        with theirs.capture(RELAXED):
            sum2[1, 1, theirs.stream](other, 6)
        theirs.replay()
        assert other.copy_to_host(stream=theirs.stream)[0] == 6


        @cuda.jit
        def sum1(out):
            out[0] = 0


        for mode in (GLOBAL, THREAD_LOCAL):
            try:
                with theirs.capture(mode):
                    assert refused(lambda: sum1[1, 1, theirs.stream](out), "Launch each kernel once before") == 900
                    assert refused(lambda: sum2[1, 1, theirs.stream](out, 1), "capture again") == 901
            except AssertionError as error:
                assert "is invalid" in str(error)
            assert theirs.ended == 901
        sum1[1, 1](out)
        with theirs.capture():
            sum1[1, 1, theirs.stream](out)
        """,
    )


def test_a_launch_in_a_capture_runs_code_that_is_loaded(run, tmp_path) -> None:
    """The launch runs any loaded variant of the kernel that is valid for it."""
    over(
        run,
        """
        @cuda.jit
        def add(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] += x[i]


        def in_use(kernel):
            return kernel.explain().split("the last launch ran ")[1].splitlines()[0].replace(" ", "")


        x, y = (cuda.to_device(np.zeros(4096, np.float32)) for _ in range(2))
        measured = cuda.jit(add.py_func, tune=True)  # its choice is written to the disk
        for _ in range(40):
            measured[8192, 128](x, y)
        assert in_use(measured) == "coarsen=4"
        # The choice is read from the disk: the kernel as written is not loaded.
        add[8192, 128](x, y)
        assert in_use(add) == "coarsen=4"
        with theirs.capture():
            add[32, 128, theirs.stream](x, y)
        assert in_use(add) == "coarsen=4"
        # Outside of the capture, a launch loads it.
        add[32, 128](x, y)
        with theirs.capture():
            add[32, 128, theirs.stream](x, y)

        small = cuda.jit(add.py_func)
        small[32, 128](x, y)
        with theirs.capture():
            small[8192, 128, theirs.stream](x, y)
        assert in_use(small) == "coarsen=1"

        odd = cuda.jit(add.py_func)
        odd[8192, 128](x, y)
        try:
            with theirs.capture():
                assert refused(lambda: odd[32, 65, theirs.stream](x, y), "Launch each kernel once before") == 900
        except AssertionError as error:
            assert "is invalid" in str(error)
        """,
        WEFT_CACHE="on",
        WEFT_CACHE_DIR=str(tmp_path / "cache"),
        FAKE_TIMES="128:9,64:6,32:3",
    )


def test_code_is_loaded_in_the_background_during_a_capture(run) -> None:
    over(
        run,
        """
        import time

        @cuda.jit
        def add(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] += x[i]

        x, y = (cuda.to_device(np.zeros(4096, np.float32)) for _ in range(2))
        for _ in range(2):
            add[8192, 128](x, y)
        for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
            with theirs.capture(mode):
                for _ in range(200):
                    add[8192, 128, theirs.stream](x, y)
                    if "being compiled" not in add.explain() and "not measured yet" not in add.explain():
                        break
                    time.sleep(0.02)
        assert "being measured" in add.explain(), add.explain()
        own = cuda.stream()
        for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
            with theirs.capture(mode):
                for _ in range(20):
                    add[8192, 128, own](x, y)
        assert " is used" in add.explain(), add.explain()
        """,
        WEFT_CACHE="off",
        FAKE_TIMES="128:9,64:6,32:3",
    )


def test_the_default_stream_while_one_is_captured_that_waits_for_it(run) -> None:
    over(
        run,
        """
        theirs = Theirs(blocking=True)
        try:
            with theirs.capture():
                refused(lambda: sum3[1, 1](out, 1, 2), "(`kernel[blocks, threads, stream]`)")
        except AssertionError as error:
            assert "is invalid" in str(error)
        # One that does not wait is not in the way.
        theirs = Theirs()
        with theirs.capture():
            sum3[1, 1](out, 1, 2)
            assert cuda.device_array(3).size == 3
            del out
            large, locked = cuda.device_array(1 << 24), cuda.pinned_array(100)
            shared = cuda.current_context().memalloc(100)
            del large
        """,
    )


def test_captures_outlive_launches_copies_allocations_and_releases_in_every_order(run, tmp_path) -> None:
    trace = tmp_path / "trace"
    over(
        run,
        """
        theirs = Theirs()
        stream, own = theirs.stream, cuda.stream()


        def launch():
            sum3[1, 1, stream](out, values[0], values[1])


        def copy():
            other.copy_to_device(out, stream=stream)


        def allocate():
            # In other streams.
            made.append(cuda.device_array(1 << 24))
            made.append(cuda.device_array(100, stream=own))


        def free():
            # Of that stream, of others that it has used, and of others alone.
            dying.clear()
            gc.collect()


        def use():
            # A captured launch notes nothing.
            for each in dying:
                sum3[1, 1, stream](each, 1, 2)


        for n, actions in enumerate(itertools.permutations((launch, copy, allocate, free, use))):
            values, made = (n, 2 * n), []
            streams = (stream, 0, own, cuda.per_thread_default_stream())
            dying = [cuda.device_array(4, int, stream=given) for given in streams]
            dying.append(cuda.device_array(9 << 20, stream=stream))
            for each in dying:
                # Each is used in each stream before.
                for given in (stream, 0, own):
                    sum3[1, 1, given](each, 1, 2)
            out.copy_to_device(np.full(1, -1))
            cuda.synchronize()
            with theirs.capture(n % 3):
                for action in actions:
                    action()
            dying.clear()
            theirs.replay()
            cuda.synchronize()
            assert out[0] == 3 * n
            assert other[0] == (3 * n if actions.index(launch) < actions.index(copy) else -1)
        made.clear()
        cuda.current_context().deallocations.clear()
        """,
        FAKE_TRACE=str(trace),
        FAKE_BUSY="1",
    )
    calls = trace.read_text().splitlines()
    assert "a capture is invalid" not in calls
    # All memory is freed at the end, except for the status words of modules.
    assert calls.count("cuMemAllocAsync") - calls.count("cuMemFreeAsync") <= 2


def test_memory_of_a_manager_outlives_a_capture(run) -> None:
    over(
        run,
        """
        freed = []


        class Manager(cuda.HostOnlyCUDAMemoryManager):
            def initialize(self):
                pass

            def memalloc(self, size):
                memory = ctypes.create_string_buffer(size + 16)
                address, finalizer = ctypes.addressof(memory), lambda: freed.append(memory)
                return cuda.MemoryPointer(self.context, address, size, finalizer=finalizer)

            def get_ipc_handle(self, memory):
                raise NotImplementedError

            def get_memory_info(self):
                raise NotImplementedError

            @property
            def interface_version(self):
                return 1


        cuda.set_memory_manager(Manager)
        array, second = cuda.device_array(4, int, stream=theirs.stream), cuda.device_array(4, int)
        with theirs.capture():
            sum3[1, 1, theirs.stream](second, 1, 2)
            del array, second
            gc.collect()
            assert len(freed) == 1
        cuda.synchronize()
        assert len(freed) == 2
        """,
    )
