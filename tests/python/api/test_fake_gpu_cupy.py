"""CuPy's arrays by their attributes, over the fake driver (see `test_fake_gpu.py`).

`foreign_cupy.py` replaces CuPy; `test_torch_gpu.py` has CuPy itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PRELUDE = """
import os, pathlib, sys, threading
sys.path.insert(0, {folder!r})
from foreign_cupy import INTERFACE, READS, VERSION, install, ndarray, use

array = cuda.to_device(np.arange(64))


def calls(what):
    trace = pathlib.Path(os.environ["FAKE_TRACE"])
    before = len(trace.read_text())
    what()
    waiting = ("cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize", "cuLaunchKernel")
    return [call for call in trace.read_text()[before:].split() if call.startswith(waiting)]


def reads(what):
    READS.clear()
    what()
    return dict(READS)


def there(like=None, byte=0):
    return ndarray(np.zeros(6, np.int64) if like is None else like, array.address + byte)


def fails(what, kind, text):
    try:
        what()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError


ONE = dict(data=1, ptr=1, dtype=1, _c_contiguous=1, ndim=1)
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
        env = {"FAKE_TRACE": str(trace), "FAKE_DEVICES": "1", **env}
        return run(prelude + "\n".join(line[depth:] for line in lines), **env)

    return over


def test_what_is_read(over) -> None:
    over(
        """
        install()
        assert reads(lambda: sum3[1, 1](there(), 20, 3))[INTERFACE] == 1
        assert array[0] == 23
        one = dict(ONE, size=1, stream=1)
        assert reads(lambda: sum3[1, 1](there(byte=8), 20, 4)) == one
        assert array[1] == 24
        flat, square = np.zeros(6, np.int64), np.zeros((2, 3), np.int64)

        @cuda.jit
        def sum2(out, a):
            out[0] = a[0]

        for like, more in ((square[0], {"size": 1}), (flat[::2], {"shape": 1, "strides": 1})):
            assert reads(lambda: weft.typeof(there(like))) == {**ONE, **more, "stream": 1}
        for like, more in (
            (square, {"shape": 1}), (square.T, {"shape": 1, "strides": 1}), (np.zeros((), np.int64), {}),
        ):
            assert reads(lambda: weft.typeof(there(like))) == {**ONE, **more, "stream": 1}
        # The stream is queried once in a launch.
        sum2[1, 1](there(), there())
        both = {name: 2 for name in one} | {"stream": 1}
        assert reads(lambda: sum2[1, 1](there(), there(byte=8))) == both
        """
    )


def test_it_means_what_the_interface_means(over) -> None:
    over(
        """
        install()

        class Derived(ndarray):
            pass

        class Interface:
            def __init__(self, like):
                self.__cuda_array_interface__ = there(like).__cuda_array_interface__

        weft.typeof(there())
        grid = np.zeros((4, 6), np.float32)
        for like in (
            grid, grid.T, grid[1:, ::2], grid[::-1], grid[:, 3:], grid[:1, :1], grid[2:2], grid[:, :0], grid[0],
            grid[:, 0], grid[0, 0:0], np.zeros(()), np.zeros((1, 1, 5)), np.broadcast_to(np.zeros(3), (2, 3)),
            *(np.zeros(3, row) for row in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()),
            np.zeros(3, "M8[s]"), np.zeros(3, [("a", "i4"), ("b", "f4")]),
            np.zeros(3, np.dtype("i4", metadata={"a": 1})),
            np.zeros((2, 3), order="F"),
        ):
            types = [weft.typeof(kind(like)) for kind in (there, Interface, lambda like: Derived(like, array.address))]
            assert len(set(map(str, types))) == 1, types
        # Of an array without elements the address is 0.
        empty = there(np.zeros(0, np.int64), byte=4)
        sum3[1, 1](np.zeros(1, np.int64), 1, 2)
        weft.typeof(empty)
        for wrong, text in (
            (there(byte=4), "are not aligned to 8 bytes"),
            (there(np.zeros(3, ">i4")), "arrays of dtype >i4 are not supported"),
            (there(np.zeros((1,) * 8)), "arrays of 8 dimensions are not supported"),
        ):
            fails(lambda: sum3[1, 1](wrong, 1, 2), TypeError, text)
            fails(lambda: sum3[1, 1](wrong, 1, 2), TypeError, "argument 1 (`out`)")
        # If an attribute has an unexpected type, the interface is queried.
        odd = there()
        odd.memory = type("Other", (type(odd.memory),), {})(array.address)
        assert reads(lambda: sum3[1, 1](odd, 1, 2))[INTERFACE] == 1
        # A class that is derived from it may have attributes of its own.
        assert reads(lambda: sum3[1, 1](Derived(np.zeros(3, np.int64), array.address), 1, 2)) == {INTERFACE: 1}
        """
    )


def test_streams(over) -> None:
    code = """
        install()
        own = cuda.stream()
        sum3[1, 1](there(), 1, 2)
        launch, waits = ["cuLaunchKernel"], ["cuStreamSynchronize", "cuLaunchKernel"]

        def queued(stream=0):
            return calls(lambda: sum3[1, 1, stream](there(), 1, 2))

        for handle, default, of_own in (
            (0, launch, waits), (1, launch, waits), (int(own), launch if FOLLOWS else waits, launch),
        ):
            use(handle)
            assert queued() == default, (handle, queued())
            assert queued(own) == of_own, (handle, queued(own))
        use(2)
        assert queued(cuda.per_thread_default_stream()) == launch
        assert queued(own) == waits
        # The current stream is a thread's own.
        use(int(own))
        found = []
        thread = threading.Thread(target=lambda: found.extend([queued(own), queued()]))
        thread.start()
        thread.join()
        assert found == [waits, launch], found
        cuda.synchronize()
        """
    over(code.replace("FOLLOWS", "True"))
    over(code.replace("FOLLOWS", "False"), WEFT_USE_PRODUCER_STREAM="0")


def test_where_only_the_interface_is_read(over) -> None:
    """Version 2 has no stream, a C function of another type is not called, and not every `ndarray` is CuPy's."""
    dictionary = "[reads(lambda: sum3[1, 1](there(), 1, number)) for number in range(3)][1:] == [{INTERFACE: 1}] * 2"
    over(
        f"""
        install()
        VERSION[0] = 2
        assert {dictionary}
        use(0x5550)
        assert calls(lambda: sum3[1, 1](there(), 1, 2)) == ["cuLaunchKernel"]
        """
    )
    over("install(b'int (void)')\nassert all(row[INTERFACE] for row in [reads(lambda: sum3[1, 1](there(), 1, 2))] * 2)")
    over(f"install()\nndarray.__module__ = 'other'\nassert {dictionary}")
    over(f"install()\nimport types; sys.modules['cupy'] = types.SimpleNamespace(ndarray=int)\nassert {dictionary}")


def test_attributes_that_say_something_else_are_not_read(over) -> None:
    over(
        """
        install()
        wrong = there()
        wrong.memory.address += 8
        ndarray.__cuda_array_interface__ = property(lambda self: {
            "shape": (6,), "typestr": "<i8", "data": (array.address, False), "version": 3, "stream": 1, "strides": None
        })
        for number in range(2):
            sum3[1, 1](wrong, 1, number)
            assert array[0] == 1 + number and array[1] == 1
        # An array of which both say the same is read by them.
        assert "size" in reads(lambda: sum3[1, 1](there(), 1, 5))
        assert reads(lambda: sum3[1, 1](wrong, 1, 6))["size"] == 1
        assert array[0] == 6 and array[1] == 7
        """
    )


def test_other_devices(over) -> None:
    over(
        """
        install()
        sum3[1, 1](there(), 1, 2)
        with cuda.gpus[1]:
            second = cuda.to_device(np.arange(6))
        text = "argument 1 (`out`) of kernel `sum3`: the array is on device 1, but the current device is 0"
        fails(lambda: sum3[1, 1](ndarray(np.zeros(6, np.int64), second.address), 1, 2), weft.LaunchError, text)
        """,
        FAKE_DEVICES="2",
    )


def test_elements_on_the_cpu(run) -> None:
    """Without a driver there is only host memory: kernels run on the memory that the attributes describe."""
    run(
        f"""
        import sys
        from weft import _weft
        if not _weft.shares_arrays():
            sys.exit()
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from foreign_cupy import INTERFACE, READS, install, ndarray

        install()

        @cuda.jit
        def transpose(x, out):
            i, j = cuda.grid(2)
            if i < x.shape[0] and j < x.shape[1]:
                out[j, i] = x[i, j]

        whole = np.arange(24.0).reshape(4, 6)
        for x in (whole, whole.T, whole[1:, ::2], whole[::-1, 1:3], whole[:, :0], np.broadcast_to(whole[0], (3, 6))):
            for out in (np.zeros(x.T.shape), np.zeros(x.shape).T):
                transpose[1, (8, 8)](ndarray(x), ndarray(out))
                np.testing.assert_array_equal(out, x.T)
        assert READS[INTERFACE] == 1
        """,
        WEFT_DEVICE="cpu",
        LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH", ""),
    )
