"""DLPack on a GPU, over the fake driver: device memory is used in place, host memory is copied; streams.

See `test_fake_gpu.py`. `foreign_tensors.py` replaces the other library.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PRELUDE = """
import os, pathlib, sys
sys.path.insert(0, {folder!r})
from foreign_tensors import *

array = cuda.to_device(np.arange(6))
host = np.zeros(6, np.int64)


def calls(what):
    trace = pathlib.Path(os.environ["FAKE_TRACE"])
    before = len(trace.read_text())
    what()
    return trace.read_text()[before:].split()


def fails(what, kind, text):
    try:
        what()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError
"""


@pytest.fixture
def over(run, tmp_path):
    """Runs a program after the prelude."""
    trace = tmp_path / "trace"
    trace.touch()
    prelude = PRELUDE.format(folder=str(Path(__file__).parents[1]))

    def over(code: str, **env: str) -> str:
        lines = code.strip("\n").split("\n")
        depth = len(lines[0]) - len(lines[0].lstrip())
        # Without a memory cache, each allocation is a driver call.
        env = {"FAKE_TRACE": str(trace), "WEFT_MEMORY_CACHE": "0", **env}
        return run(prelude + "\n".join(line[depth:] for line in lines), **env)

    return over


def test_memory_of_the_device_is_used_where_it_is(over) -> None:
    over(
        """
        copies = ("cuMemAlloc", "cuMemcpy")
        kinds = [Array, lambda *a, **k: Array(*a, old=True, **k), exchanging(), exchanging(borrows=False)]
        for number, kind in enumerate(kinds):
            for place in (CUDA, CUDA_HOST, CUDA_MANAGED):
                there = kind(host, (place, 0), array.address)
                made = calls(lambda: sum3[1, 1](there, 20, number + place))
                assert not [call for call in made if call.startswith(copies)], made
                assert array[0] == 20 + number + place
            view = cuda.from_dlpack(kind(host, (CUDA, 0), array.address))
            assert view.address == array.address and view.shape == (6,)
            assert cuda.to_device(kind(host, (CUDA, 0), array.address)).address == array.address
            assert cuda.as_cuda_array(kind(host, (CUDA, 0), array.address), sync=False).address == array.address
        """
    )


def test_memory_of_the_host_is_copied(over) -> None:
    over(
        """
        for number, kind in enumerate([Array, exchanging(), exchanging(borrows=False)]):
            there = kind(host)
            made = calls(lambda: sum3[1, 1](there, 20, number))
            assert {"cuMemAllocAsync", "cuMemcpyHtoD_v2"} <= set(made), made
            assert host[0] == 20 + number
            fails(lambda: cuda.from_dlpack(there), weft.LaunchError, "copy it with `cuda.to_device`")
            copy = cuda.to_device(there)
            assert copy.copy_to_host().tolist() == host.tolist()
        pair = np.zeros(4, np.int64)

        @cuda.jit
        def sum2(out, a):
            out[0] = a[0]
            a[1] = 3

        # One copy, where both lie.
        made = calls(lambda: sum2[1, 1](Array(pair), pair[1:]))
        assert [call for call in made if call.startswith(("cuMemAllocAsync", "cuMemcpyHtoD"))] == [
            "cuMemAllocAsync", "cuMemcpyHtoD_v2"
        ], made
        """
    )


def test_other_devices(over) -> None:
    over(
        """
        second = Array(host, (CUDA, 1), array.address)
        text = "argument 1 (`out`) of kernel `sum3`: the array is on device 1, but the current device is 0"
        fails(lambda: sum3[1, 1](second, 1, 2), weft.LaunchError, text)
        assert cuda.from_dlpack(second).device == 1
        fails(lambda: sum3[1, 1](Array(host, (METAL, 0)), 1, 2), weft.LaunchError, "DLPack's device type 8")
        fails(lambda: cuda.from_dlpack(Array(host, (METAL, 0))), weft.LaunchError, "DLPack's device type 8")
        """,
        FAKE_DEVICES="2",
    )


def test_streams_that_producers_are_told(over) -> None:
    over(
        """
        own = cuda.stream()
        for stream, told in ((0, 1), (cuda.legacy_default_stream(), 1), (cuda.per_thread_default_stream(), 2),
                             (own, int(own)), (cuda.external_stream(0x5550), 0x5550)):
            there = Array(host, (CUDA, 0), array.address)
            sum3[1, 1, stream](there, 1, 2)
            cuda.from_dlpack(there, stream)
            assert there.asked == [{"stream": told, "max_version": (1, 3)}] * 2, (there.asked, told)
        weft.typeof(there)
        assert there.asked[-1] == {"stream": -1, "max_version": (1, 3)}
        managed = Array(host, (CUDA_MANAGED, 0), array.address)
        sum3[1, 1, own](managed, 1, 2)
        assert managed.asked == [{"stream": int(own), "max_version": (1, 3)}]
        of_host = Array(host)
        sum3[1, 1, own](of_host, 1, 2)
        assert of_host.asked == [{"max_version": (1, 3)}]
        assert cuda.from_dlpack(there, own).stream is own
        cuda.synchronize()
        """
    )


def test_a_launch_waits_for_the_producers_stream(over) -> None:
    over(
        """
        own = cuda.stream()
        waiting = ("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel", "cuStreamSynchronize")

        def queued(there, stream):
            made = calls(lambda: sum3[1, 1, stream](there, 1, 2))
            # The stream in which memory is freed waits, too.
            return list(dict.fromkeys(call for call in made if call.startswith(waiting)))

        kind = exchanging(stream=0x5550)
        there = kind(host, (CUDA, 0), array.address)
        sum3[1, 1](there, 1, 2)
        assert queued(there, 0) == ["cuLaunchKernel"]
        assert queued(there, own) == ["cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel"]
        assert queued(there, cuda.external_stream(0x5550)) == ["cuLaunchKernel"]
        assert set(kind.streams) == {(CUDA, 0)}
        default = exchanging()(host, (CUDA, 0), array.address)
        assert queued(default, 0) == ["cuLaunchKernel"]
        assert queued(default, cuda.legacy_default_stream()) == ["cuLaunchKernel"]
        assert queued(default, own) == ["cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel"]
        of_host = exchanging(stream=0x5550)
        sum3[1, 1](of_host(host), 1, 2)
        assert of_host.streams == []
        cuda.synchronize()
        """
    )


def test_a_launch_without_a_stream_follows_the_producers(over) -> None:
    code = """
        waiting = ("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel", "cuStreamSynchronize")

        @cuda.jit
        def sum2(out, a):
            out[0] = a[0]

        def queued(*args, stream=0):
            made = calls(lambda: sum2[1, 1, stream](*args))
            return [call for call in dict.fromkeys(made) if call.startswith(waiting)]

        def there(stream, kind=exchanging):
            return kind(stream=stream)(host, (CUDA, 0), array.address)

        class Interface:
            def __init__(self, stream):
                self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, stream=stream)

        sum2[1, 1](array, array)
        waits, launch = ["cuEventRecord", "cuStreamWaitEvent"], ["cuLaunchKernel"]
        own = cuda.stream()
        # All in one stream: nothing waits.
        alone = launch if FOLLOWS else waits + launch
        synchronized = launch if FOLLOWS else ["cuStreamSynchronize"] + launch
        assert queued(there(0x5550), there(0x5550)) == alone
        assert queued(Interface(0x5550), Interface(0x5550)) == synchronized
        if FOLLOWS:
            assert queued(there(0x5550), Interface(0x5550)) == launch
        # In several, with ours, with one whose stream is unknown, or in another that is given.
        assert queued(there(0x5550), there(0x5560)) == waits + launch
        assert queued(there(0x5550), there(0)) == waits + launch
        assert queued(there(0x5550), array) == waits + launch
        assert queued(there(0x5550), Interface(None)) == waits + launch
        assert queued(there(0x5550), Array(host, (CUDA, 0), array.address)) == waits + launch
        assert queued(there(0x5550), there(0x5550), stream=own) == waits + launch
        # The default stream is the launch's own.
        assert queued(there(0), there(0)) == queued(there(0), array) == launch
        cuda.synchronize()
        """
    over(code.replace("FOLLOWS", "True"))
    over(code.replace("FOLLOWS", "False"), WEFT_USE_PRODUCER_STREAM="0")


def test_device_arrays_for_others(over) -> None:
    over(
        """
        assert array.__dlpack_device__() == (CUDA, 0)
        own = cuda.stream()
        waiting = ("cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize")

        def queued(array, **given):
            made = calls(lambda: array.__dlpack__(max_version=(1, 0), **given))
            # The stream in which memory is freed waits, too.
            return list(dict.fromkeys(call for call in made if call.startswith(waiting)))

        for given in ({}, {"stream": None}, {"stream": 1}, {"stream": -1}):
            assert queued(array, **given) == [], given
        both = ["cuEventRecord", "cuStreamWaitEvent"]
        for stream in (2, int(own), 0x5550):
            assert queued(array, stream=stream) == both
        bound = array.bind(own)
        assert queued(bound) == queued(bound, stream=1) == both
        assert queued(bound, stream=int(own)) == queued(bound, stream=-1) == []
        for stream in (0, -2):
            fails(lambda: array.__dlpack__(stream=stream), ValueError, "stream must be None, -1, 1, 2")
        view = cuda.from_dlpack(array[1::2].__dlpack__(max_version=(1, 0)))
        assert view.address == array.address + 8 and view.strides == (16,)
        # To the host it is a copy.
        back = np.from_dlpack(array, device="cpu")
        assert back.tolist() == array.copy_to_host().tolist()
        fails(lambda: array.__dlpack__(dl_device=(CPU, 0), copy=False), BufferError, "without a copy it cannot be")
        assert flags_of(array.__dlpack__(dl_device=(CPU, 0), max_version=(1, 0))) == IS_COPIED
        fails(lambda: array.__dlpack__(dl_device=(CUDA, 1)), BufferError, "cannot be exported to (2, 1)")
        """
    )


def test_exported_memory_is_freed_when_nobody_has_it(over) -> None:
    over(
        """
        def freed(what):
            return sum(call.startswith("cuMemFree") for call in calls(what))

        there = cuda.device_array(1000)
        capsule = there.__dlpack__()
        taken = cuda.from_dlpack(capsule)
        globals_ = globals()
        assert freed(lambda: globals_.pop("there")) == 0
        assert freed(lambda: globals_.pop("capsule")) == 0
        assert freed(lambda: globals_.pop("taken")) == 1
        unused = cuda.device_array(1000).__dlpack__(max_version=(1, 0))
        assert freed(lambda: globals_.pop("unused")) == 1
        """
    )
