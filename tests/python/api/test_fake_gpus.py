"""Several GPUs, and exceptions of kernels on one, over the fake driver: see `test_fake_gpu.py`."""

from __future__ import annotations

import textwrap


def test_several_devices(run) -> None:
    run(
        """
        assert len(cuda.gpus) == 2
        here = cuda.device_array(1, int)
        with cuda.gpus[1] as second:
            assert second.id == 1 and cuda.get_current_device() == second
            there = cuda.to_device(np.zeros(1, int))
            sum3[1, 1](there, 1, 2)
            assert there.copy_to_host()[0] == 3
            try:
                sum3[1, 1](here, 1, 2)
            except weft.LaunchError as error:
                text = str(error)
        assert text == (
            "argument 1 (`out`) of kernel `sum3`: the array is on device 0, but the current device is 1"
        ), text
        assert cuda.get_current_device().id == 0
        sum3[1, 1](here, 1, 2)
        assert len(sum3.signatures) == 2
        assert len(sum3.overloads) == 1
        assert there.copy_to_host()[0] == 3
        here.copy_to_device(there)
        """,
        FAKE_DEVICES="2",
    )


def test_default_streams_of_several_devices(run) -> None:
    run(
        """
        made_at_first = [cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()]
        kernels = [sum3[1, 1, stream] for stream in made_at_first]
        early = cuda.event()
        early.record()
        with cuda.gpus[1]:
            out = cuda.to_device(np.zeros(1, int))
            for number, (stream, kernel) in enumerate(zip(made_at_first, kernels)):
                kernel(out, 1, number)
                assert out.copy_to_host(stream=stream)[0] == 1 + number
                sum3.forall(1, stream=stream)(out, 2, number)
                assert cuda.device_array(1, stream=stream).device_ctypes_pointer
                event = cuda.event()
                event.record(stream)
                event.wait(stream)
                early.wait(stream)
                stream.synchronize()
                assert stream.query()
            early.wait()
            for wrong in (lambda: early.record(), lambda: early.record(made_at_first[0])):
                try:
                    wrong()
                except ValueError as error:
                    assert str(error) == "the event belongs to device 0, but the work is for device 1", error
                else:
                    raise AssertionError
        # Copies are in the default stream of the device that the array is on.
        assert out.copy_to_host(stream=made_at_first[0])[0] == 4
        """,
        FAKE_DEVICES="2",
    )


def test_an_event_is_waited_for_on_the_current_device(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        event = cuda.event()
        event.record()
        event.wait()
        with cuda.gpus[1]:
            event.wait()
            event.wait(cuda.default_stream())
        event.wait(0)
        """,
        FAKE_DEVICES="2",
        FAKE_TRACE=str(calls),
    )
    waits = [call for call in calls.read_text().splitlines() if call.startswith("cuStreamWaitEvent ")]
    assert [call.split()[1] for call in waits] == ["0", "1", "1", "0"]


def test_memory_of_another_library_on_another_device(run) -> None:
    run(
        """
        class Foreign:
            def __init__(self, array):
                self.__cuda_array_interface__ = array.__cuda_array_interface__

        with cuda.gpus[1]:
            there = cuda.to_device(np.zeros(1, int))
        here = cuda.to_device(np.zeros(1, int))
        sum3[1, 1](Foreign(here), 1, 2)
        view = cuda.as_cuda_array(Foreign(there))
        for wrong in (Foreign(there), view):
            try:
                sum3[1, 1](wrong, 1, 2)
            except weft.LaunchError as error:
                text = str(error)
            assert text == (
                "argument 1 (`out`) of kernel `sum3`: the array is on device 1, but the current device is 0"
            ), text
        with cuda.gpus[1]:
            sum3[1, 1](Foreign(there), 1, 2)
        assert view.copy_to_host()[0] == 3
        """,
        FAKE_DEVICES="2",
    )


PEERS = """
class Foreign:
    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def refused(call):
    try:
        call()
    except weft.LaunchError as error:
        assert "the array is on device 1, but the current device is 0" in str(error)
        return
    raise AssertionError


with cuda.gpus[1]:
    there, second = cuda.to_device(np.zeros(1, int)), cuda.device_array(9 << 20)
refused(lambda: sum3[1, 1](there, 1, 2))
cuda.current_context().enable_peer_access(1)
with cuda.gpus[1]:
    cuda.synchronize()
"""


def test_arrays_of_a_device_that_is_reached(run, tmp_path) -> None:
    trace = tmp_path / "trace"
    code = """
    sum3[1, 1](there, 1, 2)
    assert there[0] == 3
    # They know no use of their memory.
    refused(lambda: sum3[1, 1].prepare(there, 1, 2))
    try:
        with cuda.graph():
            sum3[1, 1](there, 1, 2)
    except weft.LaunchError as error:
        assert "device 1" in str(error)
    with cuda.gpus[1]:
        # Access leads one way.
        here = cuda.gpus[0]
        with here:
            own = cuda.device_array(1, int)
        try:
            sum3[1, 1](own, 1, 2)
        except weft.LaunchError as error:
            assert "the array is on device 0, but the current device is 1" in str(error)
    for stream in (0, cuda.stream(), cuda.external_stream(0x1230)):
        sum3[1, 1, stream](second, 1, 2)
        with open(trace, "a") as file:
            print("end", file=file)
    # Freed on its own device, after the work on the other one.
    del second
    """
    code = f"trace = {str(trace)!r}\n" + PEERS + textwrap.dedent(code)
    run(code, FAKE_DEVICES="2", FAKE_PEERS="1", FAKE_TRACE=str(trace))
    *_, launches, last = trace.read_text().rsplit("end\n", 2)
    freed = last.splitlines()
    assert "cuEventRecord" in launches
    waits = [call for call in freed[: freed.index("cuMemFreeAsync")] if call == "cuStreamWaitEvent"]
    assert len(waits) == 4


RAISES = """
@cuda.jit(device=True)
def fail(a):
    if a[0] > 5:
        raise ValueError("never")
    raise KeyError("this one")


@cuda.jit(exceptions=True)
def raises(a):
    fail(a)
"""


def test_what_a_kernel_raises_is_told_at_each_wait(run) -> None:
    run(
        RAISES
        + """
        def told(wait):
            try:
                wait()
            except KeyError:
                return True
            return False

        array = cuda.to_device(np.zeros(1, int))
        stream = cuda.stream()
        event = cuda.event()
        waits = [
            cuda.synchronize,
            stream.synchronize,
            cuda.default_stream().synchronize,
            event.synchronize,
            array.copy_to_host,
            lambda: array.copy_to_host(stream=stream),
            lambda: array[0],
            lambda: sum3[1, 1](np.zeros(1, int), 1, 2),
        ]
        for wait in waits:
            raises[1, 1, stream](array)
            event.record(stream)
            assert told(wait)
            assert not told(wait)
        # A launch with an array of the host, whether the kernel writes it or not.
        assert told(lambda: raises[1, 1](np.zeros(1, int)))
        assert told(lambda: raises[1, 1, stream](np.zeros(1, int)))
        # A kernel that is gone by then.
        raises[1, 1](array)
        del raises
        import gc

        gc.collect()
        assert told(cuda.synchronize)
        """.replace("\n        ", "\n")
    )


def test_a_stream_of_another_device(run) -> None:
    run(
        """
        with cuda.gpus[1]:
            theirs = cuda.stream()
        out = cuda.device_array(1, int)
        for use in (
            lambda: sum3[1, 1, theirs](out, 1, 2),
            lambda: out.copy_to_host(stream=theirs),
            lambda: cuda.device_array(1, stream=theirs),
            lambda: cuda.event().record(theirs),
        ):
            try:
                use()
            except ValueError as error:
                assert str(error) == "the stream belongs to device 1, but the work is for device 0", error
            else:
                raise AssertionError
        """,
        FAKE_DEVICES="2",
    )


def test_streams_of_other_libraries(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        class Theirs:
            def __init__(self, handle):
                self.handle = handle

            def __cuda_stream__(self):
                return 0, self.handle

        stream = Theirs(0x5550)
        kernel = sum3[1, 1, stream]
        out = cuda.to_device(np.zeros(1, int), stream=stream)
        kernel(out, 1, 2)
        kernel(out, 3, 4)
        assert out.copy_to_host(stream=stream)[0] == 7
        assert repr(out.stream) == "<External CUDA stream 21840>"
        assert out.__cuda_array_interface__["stream"] == 0x5550
        # A stream belongs to the device that the work is for: 0x99 is one of the second device.
        for use in (lambda: sum3[1, 1, Theirs(0x99)](out, 1, 2), lambda: out.copy_to_host(stream=Theirs(0x99))):
            try:
                use()
            except ValueError as error:
                assert str(error) == "the stream 0x99 belongs to another context than device 0's", error
            else:
                raise AssertionError
        sum3[1, 1, Theirs(2)](out, 5, 6)
        assert out.copy_to_host()[0] == 11

        with cuda.gpus[1]:
            there = cuda.to_device(np.zeros(1, int))
        assert there.copy_to_host(stream=Theirs(0x99))[0] == 0
        """,
        FAKE_DEVICES="2",
        FAKE_TRACE=str(calls),
    )


def test_a_stream_keeps_another_librarys_as_long_as_memory_is_freed_in_it(run) -> None:
    run(
        """
        import weakref

        class Theirs:
            def __cuda_stream__(self):
                return 0, 0x5550

        stream = Theirs()
        gone = weakref.ref(stream)
        array = cuda.device_array(1, int, stream=stream)
        view = array[:]
        del stream, array
        assert gone() is not None
        del view
        assert gone() is None
        """
    )


def test_what_a_kernel_raises_is_told_to_who_awaits_a_stream(run) -> None:
    run(
        RAISES
        + """
        import asyncio
        import threading

        array, stream = cuda.to_device(np.zeros(1, int)), cuda.stream()
        status, said = [], threading.Event()

        async def wait():
            assert await stream.async_done() is stream
            raises[1, 1, stream](array)
            try:
                await stream.async_done()
            except KeyError:
                pass
            else:
                raise AssertionError

        asyncio.run(wait())
        raises[1, 1, stream](array)
        stream.add_callback(lambda *args: (status.append(args), said.set()), "arg")
        said.wait(5)
        assert status == [(stream, 999, "arg")]
        """.replace("\n        ", "\n")
    )


def test_times_that_events_do_not_have(run) -> None:
    run(
        """
        early, never, untimed = cuda.event(), cuda.event(), cuda.event(timing=False)
        early.record()
        untimed.record()
        for start, end in ((early, never), (early, untimed)):
            try:
                start.elapsed_time(end)
            except weft.errors.EventError as error:
                assert error.code == 400 and isinstance(error, cuda.CudaAPIError) and isinstance(error, ValueError)
                assert "create both with timing" in str(error)
            else:
                raise AssertionError
        """
    )


def test_a_worker_counts_the_gpus_before_it_uses_one(run) -> None:
    run(
        """
        import os
        from weft import workers

        os.environ.pop(workers.VISIBLE, None)
        assert workers.select_gpu(3) == "1" == os.environ.pop(workers.VISIBLE)
        assert workers.select_gpu(0) == "0"
        cuda.device_array(1)
        assert workers.select_gpu(4, gpus=2) == "0"
        try:
            workers.select_gpu(1, gpus=2)
        except RuntimeError as error:
            assert "this process has already used a device" in str(error), error
        else:
            raise AssertionError
        assert os.environ[workers.VISIBLE] == "0"
        """,
        FAKE_DEVICES="2",
    )


def test_a_declared_kernel_has_code_for_each_device(run) -> None:
    run(
        """
        declared = cuda.jit("void(int64[::1], int64, int64)")(sum3.py_func)
        for device in cuda.gpus:
            with device:
                out = cuda.to_device(np.zeros(1, int))
                declared[1, 1](out, 1, 2)
                assert out.copy_to_host()[0] == 3
                assert declared.compile("void(int64[::1], int64, int64)") is not None
                try:
                    declared.compile("void(float64[::1], int64, int64)")
                except RuntimeError as error:
                    assert "Compilation disabled" in str(error)
                else:
                    raise AssertionError("there are no further types")
        """,
        FAKE_DEVICES="2",
    )


def test_a_function_that_requires_a_context_stays_on_its_device(run) -> None:
    run(
        """
        @cuda.require_context
        def enter(number):
            with cuda.gpus[number]:
                return cuda.get_current_device().id

        with cuda.gpus[1]:
            assert enter(1) == 1
            try:
                enter(0)
            except RuntimeError as error:
                assert "Cannot switch CUDA-context" in str(error)
            else:
                raise AssertionError("it left its device")
        with cuda.gpus[0], cuda.gpus[1]:
            assert cuda.get_current_device().id == 1
        """,
        FAKE_DEVICES="2",
    )
