"""The CUDA path of the package without a GPU, over the fake driver of the runtime tests, which is written in C.

The fake driver does not execute PTX: a kernel named `sum3` adds its second and third argument slot and stores the sum
at the address in the first.
"""

from __future__ import annotations


def test_device_arrays(run) -> None:
    run(
        """
        out = cuda.to_device(np.zeros(4, np.int64))
        sum3[1, 1](out, 3, 4)
        cuda.synchronize()
        assert out.copy_to_host().tolist() == [7, 0, 0, 0]
        assert out[0] == 7
        stream = cuda.stream()
        with stream.auto_synchronize():
            sum3[1, 1, stream](out[2:], 5, 6)
        assert out.copy_to_host(stream=stream).tolist() == [7, 0, 11, 0]
        assert cuda.detect()
        """
    )


def test_host_arrays_go_there_and_back(run) -> None:
    run(
        """
        out = np.arange(4)
        sum3[1, 1](out, 3, 4)
        assert out.tolist() == [7, 1, 2, 3]
        base = np.arange(12).reshape(3, 4)
        # An array of any layout has a slot for its stride, which this kernel takes for a number: on the device the
        # elements lie side by side, 8 bytes apart.
        sum3[1, 1](base[::-1, 1], 3, 4)
        assert base.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 8 + 3, 10, 11]]
        record = np.zeros(2, [("pad", "u1"), ("x", "i8")])
        record["x"] = [1, 2]
        sum3[1, 1](record["x"], 3, 4)
        assert record["x"].tolist() == [8 + 3, 2]
        sum3[1, 1](cuda.In(out), 1, 1)
        assert out[0] == 7
        sum3[1, 1](cuda.Out(out), 1, 1)
        assert out[0] == 2
        """
    )


def test_a_profiler_is_told_where_to_look(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        cuda.synchronize()
        with cuda.profiling():
            cuda.synchronize()
        try:
            with cuda.profiling():
                raise ValueError
        except ValueError:
            cuda.profile_start()
            cuda.profile_stop()
        """,
        FAKE_TRACE=str(calls),
    )
    told = [call for call in calls.read_text().split() if call.startswith(("cuProfiler", "cuCtxSynchronize"))]
    pair = ["cuProfilerStart", "cuProfilerStop"]
    assert told[:4] == ["cuCtxSynchronize", "cuProfilerStart", "cuCtxSynchronize", "cuProfilerStop"]
    assert told[4:8] == pair * 2


def test_a_preferred_carveout_is_told_to_the_driver(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        def fill(out, value):
            out[0] = value

        x = cuda.to_device(np.zeros(1, np.int64))
        for carveout in (None, "default", "MaxL1", "maxshared", 30):
            cuda.jit(shared_memory_carveout=carveout)(fill)[1, 1](x, 1)
        """,
        FAKE_TRACE=str(calls),
    )
    told = [call for call in calls.read_text().splitlines() if "carveout" in call]
    assert told == [f"cuFuncSetAttribute(carveout {percent})" for percent in (-1, 0, 100, 30)]


def test_warnings(run) -> None:
    run(
        """
        warnings.resetwarnings()
        def texts(call):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
            assert all(w.category is weft.PerformanceWarning and w.filename == __file__ for w in caught)
            return [str(w.message)[:10] for w in caught]

        host, device = np.zeros(1, int), cuda.device_array(1, int)
        assert texts(lambda: sum3[1, 1](device, 1, 2)) == ["Grid size "]
        assert texts(lambda: sum3[1, 2](device, 1, 2)) == []
        assert texts(lambda: sum3[127, 1](device, 1, 2)) == ["Grid size "]
        assert texts(lambda: sum3[128, 1](device, 1, 2)) == []
        assert texts(lambda: sum3[1, 1](host, 1, 2)) == ["Host array"]
        assert texts(lambda: sum3[1, 1](host, 1, 2)) == ["Host array"]
        assert texts(lambda: sum3[1, 1](cuda.InOut(host), 1, 2)) == []
        # Once it is known that there is a GPU, configuring is enough.
        assert texts(lambda: sum3[5, 1]) == ["Grid size "]
        assert texts(lambda: sum3[5, 1](device, 1, 2)) == []
        # As ufuncs and reductions launch: the caller did not choose the grid.
        assert texts(lambda: sum3.configure(2, 1, 0, advise=False)(device, 1, 2)) == []
        assert texts(lambda: sum3[3, 1](device, 1, 2)) == ["Grid size "]
        cuda.config.CUDA_WARN_ON_IMPLICIT_COPY = 0
        assert texts(lambda: sum3[1, 1](host, 1, 2)) == []
        """
    )
    run("assert weft.config.CUDA_LOW_OCCUPANCY_WARNINGS == 0", WEFT_LOW_OCCUPANCY_WARNINGS="0")


def test_host_arrays_that_share_memory_are_one_copy(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        @cuda.jit
        def sum2(out, a):
            out[0] = a[0]
            a[1] = 3


        x = np.arange(4)
        sum2[1, 1](x, x[1:])
        # The driver made of C stores where the first slot points what the second one is: an address.
        first = x[0]
        assert first % 16 == 8 and x[1:].tolist() == [1, 2, 3], x
        """,
        FAKE_TRACE=str(calls),
    )
    copies = [call for call in calls.read_text().splitlines() if call.startswith(("cuMemAllocAsync", "cuMemcpyHtoD"))]
    assert copies == ["cuMemAllocAsync", "cuMemcpyHtoD_v2"]


def test_the_cuda_array_interface(run) -> None:
    run(
        """
        class Foreign:
            pass

        array = cuda.to_device(np.arange(6).reshape(2, 3))
        interface = array.__cuda_array_interface__
        assert interface["strides"] is None and interface["data"] == (array.address, False)
        assert interface["stream"] is None and interface["typestr"] == "<i8"
        assert array.T.__cuda_array_interface__["strides"] == (8, 24)
        foreign = Foreign()
        foreign.__cuda_array_interface__ = interface
        view = cuda.to_device(foreign)
        assert view.address == array.address and view.owner is foreign
        flat = Foreign()
        flat.__cuda_array_interface__ = dict(array.ravel().__cuda_array_interface__, stream=1)
        sum3[1, 1](flat, 20, 3)
        assert array[0, 0] == 23
        flat.__cuda_array_interface__["stream"] = 2
        sum3[1, 1](flat, 20, 4)
        assert array[0, 0] == 24
        flat.__cuda_array_interface__["data"] = (array.address, True)
        try:
            sum3[1, 1](flat, 20, 4)
        except weft.CompileError as error:
            assert "E0215" in str(error)
        else:
            raise AssertionError
        """
    )


def test_elements_of_other_libraries_at_loose_addresses(run) -> None:
    run(
        """
        class Foreign:
            def __init__(self, address, typestr="<i8", shape=(2,), strides=None):
                self.__cuda_array_interface__ = {
                    "data": (address, False), "typestr": typestr, "shape": shape, "strides": strides, "version": 3
                }

        array = cuda.to_device(np.arange(8))
        sum3[1, 1](Foreign(array.address + 8), 20, 3)
        assert array[1] == 23
        sum3[1, 1](Foreign(array.address + 8, strides=(24,)), 20, 3)
        sum3[1, 1](Foreign(array.address + 4, "<i4", strides=(12,)), 20, 3)
        sum3[1, 1](Foreign(array.address + 1, shape=(0,)), 20, 3)
        loose = [
            (Foreign(array.address + 4), 8),
            (Foreign(array.address, strides=(12,)), 8),
            (Foreign(array.address, shape=(1, 2), strides=(8, 12)), 8),
            (Foreign(array.address + 2, "<f4"), 4),
        ]
        for foreign, align in loose:
            try:
                sum3[1, 1](foreign, 20, 3)
            except TypeError as error:
                assert f"argument 1 (`out`)" in str(error) and f"not aligned to {align} bytes" in str(error), error
            else:
                raise AssertionError
        view = cuda.from_cuda_array_interface(Foreign(array.address + 4, "<i4").__cuda_array_interface__)
        sum3[1, 1](view, 20, 3)
        """
    )


def test_memory_outlives_its_uses_in_other_streams(run) -> None:
    """The driver ends the process when memory is freed while work may still use it."""
    run(
        """
        streams = [0, cuda.stream(), cuda.stream(), cuda.external_stream(0x5550), cuda.per_thread_default_stream()]
        for own in streams:
            for other in streams:
                sum3[1, 1, other](cuda.device_array(4, int, stream=own), 1, 2)
                sum3[1, 1, other](cuda.device_array((4, 4), int, stream=own)[1:, 2], 1, 2)
                sum3[1, 1, other](np.zeros(4, int), 1, 2)
                held = cuda.to_device(np.arange(4), stream=own)
                cuda.to_device(np.arange(4), stream=other).copy_to_device(held, stream=own)
                cuda.device_array(4, int, stream=own).copy_to_device(np.arange(4), stream=other)
                cuda.device_array((4, 3), int, stream=own)[:, 1].copy_to_device(np.arange(4), stream=other)
                cuda.device_array(4, int, stream=own).setitem(slice(None), held, stream=other)
                assert held.copy_to_host(stream=other).tolist() == [0, 1, 2, 3]
                sum3[1, 1, other](held.bind(own), 1, 2)
                view = held[1:]
                del held
                sum3[1, 1, other](view, 1, 2)
        """
    )


def test_an_array_with_gaps_is_written_in_one_call(run, tmp_path) -> None:
    trace = tmp_path / "trace"
    trace.touch()
    run(
        """
        import os
        def calls(write):
            before = open(os.environ["FAKE_TRACE"]).read()
            write()
            after = open(os.environ["FAKE_TRACE"]).read()
            return [call for call in after[len(before):].split() if call.startswith("cuMemcpy")]
        grid = cuda.to_device(np.zeros((50, 40, 6)))
        expected = np.zeros((50, 40, 6))
        for key in (np.s_[:, 0, 0], np.s_[3, ::2, 1], np.s_[:, 3], np.s_[::-1, :, 2:4], np.s_[7, 5:1:-2]):
            value = np.random.default_rng(0).random(expected[key].shape)
            expected[key] = value
            assert calls(lambda: grid.__setitem__(key, value)) == ["cuMemcpy2DAsync_v2"], key
        # Rows of rows: as few calls as the shorter of the two dimensions with gaps.
        value = np.random.default_rng(0).random((25, 10, 3))
        expected[::2, ::4, ::2] = value
        assert calls(lambda: grid.__setitem__(np.s_[::2, ::4, ::2], value)) == ["cuMemcpy2DAsync_v2"] * 30
        assert (grid.copy_to_host() == expected).all()
        """,
        FAKE_TRACE=str(trace),
    )


def test_a_fork_loses_the_device(run) -> None:
    output = run(
        """
        import os
        out = cuda.to_device(np.zeros(1, int))
        sum3[1, 1](out, 1, 2)
        cuda.synchronize()
        if os.fork() == 0:
            for use in (lambda: sum3[1, 1](out, 1, 2), lambda: cuda.device_array(1), cuda.synchronize):
                try:
                    use()
                except weft.DriverError as error:
                    print(error, flush=True)
            os._exit(0)
        os.wait()
        """
    )
    assert output.count("CUDA initialized before forking") == 3


def test_errors_of_the_driver(run) -> None:
    run(
        """
        out = cuda.device_array(1, int)
        try:
            sum3[1, 1](out, 1, 2)
        except weft.DriverError as error:
            assert error.code == 719 and "cuLaunchKernel" in str(error), (error.code, error)
        else:
            raise AssertionError
        """,
        FAKE_LAUNCH="719",
    )
    run(
        """
        assert not cuda.is_available()
        try:
            cuda.device_array(1)
        except cuda.CudaSupportError as error:
            assert isinstance(error, ImportError)
        """,
        FAKE_INIT="100",
    )


LINKED = """
from weft import errors

mul = cuda.declare_device("mul", "int64(int64)", link=cuda.PTXSource(".visible .func mul"))


@cuda.jit(device=True)
def twice(a):
    return mul(a) + mul(a)


links = [cuda.Cubin(bytes(3), "c.cubin"), cuda.Object(b"o"), cuda.Archive(b"a", "a.a"), cuda.Fatbin(b"f")]


@cuda.jit(link=links)
def sum2(out, a):
    out[0] = a + twice(a)


@cuda.jit
def sum1(out, x):
    out[0] = twice(x[0])
"""


def test_code_is_linked(run, tmp_path) -> None:
    trace = tmp_path / "trace"
    run(
        LINKED
        + """
        x = np.zeros(1, np.int64)
        x.flags.writeable = False
        out = np.zeros(1, np.int64)
        sum2[1, 1](out, 1)
        sum2[1, 1](out, 5)
        assert out[0] == 5
        # An array that linked code may have written is not copied back if the host array is read-only.
        sum1[1, 1](out, x)
        assert sum2.get_regs_per_thread()
        """.replace("\n        ", "\n"),
        FAKE_TRACE=str(trace),
    )
    calls = [call for call in trace.read_text().splitlines() if call.startswith(("cuLink", "cuModuleLoad"))]
    # First the kernel's own options in order, then those of its callees.
    added = [call.split(" ", 1)[1] for call in calls if " " in call]
    own = ["1 sum2", "0 c.cubin", "3 <unnamed-object>", "4 a.a", "2 <unnamed-fatbin>", "1 <unnamed-ptx>"]
    assert sorted(added[:6]) == sorted(own)
    assert added[0] == "1 sum2"
    assert added[6:8] == ["1 sum1", "1 <unnamed-ptx>"]
    assert calls.count("cuLinkCreate_v2") == calls.count("cuLinkDestroy") == calls.count("cuModuleLoadDataEx")


def test_a_launch_without_links_links_nothing(run, tmp_path) -> None:
    trace = tmp_path / "trace"
    run(
        """
        out = np.zeros(1, np.int64)
        sum3[1, 1](out, 1, 2)
        """,
        FAKE_TRACE=str(trace),
    )
    assert "cuLink" not in trace.read_text()


def test_errors_of_linking(run) -> None:
    run(
        LINKED
        + """
        def message(kind, link, **options):
            out = np.zeros(1, np.int64)
            try:
                cuda.jit(link=link, **options)(sum1.py_func)[1, 1](out, out)
            except kind as error:
                assert type(error) is kind and isinstance(error, RuntimeError), type(error)
                return str(error)
            raise AssertionError

        text = message(errors.LinkerError, cuda.PTXSource("wrong", "bad.ptx"))
        assert "the driver cannot link bad.ptx: cuLinkAddData failed: CUDA_ERROR_INVALID_PTX" in text, text
        assert "line 7; fatal   : wrong in bad.ptx" in text, text
        mul = cuda.declare_device("mul", "int64(int64)", link=cuda.PTXSource("nothing"))
        text = message(errors.LinkerError, None)
        assert "the driver cannot link `sum1`" in text and "Undefined reference" in text, text
        text = message(errors.NvrtcSupportError, cuda.CUSource(""))
        assert text == 'NVRTC, which compiles CUDA C++, is needed, but WEFT_NVRTC is "none"', text
        for link, options in ((cuda.LTOIR(b"x"), {}), (cuda.PTXSource("x"), {"lto": True})):
            text = message(errors.NvrtcSupportError, link, **options)
            assert "WEFT_NVJITLINK names a file that cannot be opened: /nowhere/libnvJitLink.so" in text, text
        """.replace("\n        ", "\n"),
        WEFT_NVRTC="none",
        WEFT_NVJITLINK="/nowhere/libnvJitLink.so",
    )


def test_linked_code_is_a_library(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        told = []
        code = cuda.PTXSource("page sum3", setup_callback=lambda code: told.append((code.handle, code.get_module())))
        kernel = cuda.jit(link=[code])(sum3.py_func)
        out = cuda.to_device(np.zeros(1, np.int64))
        kernel[1, 1](out, 1, 2)
        assert out.copy_to_host()[0] == 3
        assert len(set(*told)) == 2, told
        import gc

        del kernel
        gc.collect()
        try:
            cuda.jit(link=cuda.PTXSource("newer"))(sum3.py_func)[1, 1](out, 1, 2)
        except weft.DriverError as error:
            assert "cuLibraryLoadData failed" in str(error) and "older than this PTX" in str(error), error
        else:
            raise AssertionError
        """,
        FAKE_TRACE=str(calls),
    )
    told = [call for call in calls.read_text().split() if call.startswith(("cuLibrary", "cuModuleUn"))]
    assert told == ["cuLibraryLoadData", "cuLibraryGetModule", "cuLibraryUnload", "cuLibraryLoadData"]


def test_what_is_linked_is_told_of_the_module(run) -> None:
    output = run(
        """
        import gc, threading
        from weft import errors

        told = []
        code = cuda.PTXSource(
            "page sum3",
            setup_callback=lambda code: told.append(code.handle),
            teardown_callback=lambda code: (told.remove(code.handle), print("end", flush=True)),
        )
        kernel = cuda.jit(link=[code])(sum3.py_func)
        out = cuda.to_device(np.zeros(1, np.int64))
        threads = [threading.Thread(target=lambda: kernel[1, 1](out, 1, 2)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 1, told
        kernel[1, 1](out, 1, 2.5)
        assert len(set(told)) == 2, told
        # A reset unloads it, and a launch loads it again.
        cuda.current_context().reset()
        assert told == []
        kernel[1, 1](out, 1, 2)
        assert len(told) == 1 and out.copy_to_host()[0] == 3
        del kernel
        gc.collect()
        assert told == []
        at_exit = cuda.jit(link=[code])(sum3.py_func)
        at_exit[1, 1](out, 1, 2)

        def fails(code):
            raise KeyError("of the callback")

        try:
            cuda.jit(link=cuda.PTXSource("sum3", setup_callback=fails))(sum3.py_func)[1, 1](out, 1, 2)
        except KeyError:
            pass
        else:
            raise AssertionError
        """
    )
    assert output.count("end") == 4


def test_memory_that_host_and_device_share(run) -> None:
    run(
        """
        for make in (cuda.mapped_array, cuda.managed_array):
            x = make(4, np.int64)
            x[:] = 0
            sum3[1, 1](x[1:], 3, 4)
            assert x.tolist() == [0, 7, 0, 0]
            assert x.__cuda_array_interface__["data"] == (x.ctypes.data, False)
            assert x[1:].__cuda_array_interface__["data"] == (x.ctypes.data + 8, False)
            stream = cuda.stream()
            assert make(4, np.int64, stream=stream).__cuda_array_interface__["stream"] == int(stream)
        host = np.zeros(2, np.int64)
        with cuda.pinned(host), cuda.mapped(host) as device:
            sum3[1, 1](device, 1, 2)
        assert host.tolist() == [3, 0]
        assert cuda.pinned_array(3).shape == (3,)
        """
    )


def test_the_device_has_the_threads_of_a_coarsened_block(run) -> None:
    # Its kernels can have 640 threads.
    run(
        """
        wide = cuda.jit(sum3.py_func, coarsen=(2, 1, 2))
        out = cuda.to_device(np.zeros(1, np.int64))
        wide[1, (256, 1, 4)](out, 3, 4)
        assert out[0] == 7
        (compiled,) = wide.overloads.values()
        assert compiled.coarsening == "2x1x2 threads in one, contiguous in x", compiled.coarsening
        with cuda.graph() as graph:
            wide[1, (2, 256, 2)](out, 5, 6)
        graph.launch()
        assert out[0] == 11
        graph.set_args(0, out, 7, 8)
        graph.launch()
        assert out[0] == 15
        wide[1, (2, 256, 2)].prepare(out, 1, 1)()
        assert out[0] == 2
        for kernel, block in ((sum3, (256, 1, 4)), (wide, (1, 256, 4))):
            try:
                kernel[1, block](out, 3, 4)
            except cuda.LaunchError as error:
                assert "this kernel allows 640" in str(error), error
            else:
                raise AssertionError(block)
        """
    )


def test_what_kernels_print_comes_to_stdout(run) -> None:
    """`prints` is a kernel that the fake driver implements."""
    out = run(
        """
        import contextlib, io

        @cuda.jit
        def prints(n):
            print(n)

        def lines(n):
            return "".join(f"{i} says hello to a host of letters\\n" for i in range(n))

        print("first")
        prints[1, 1](1)
        print("launched")
        cuda.synchronize()
        print("between")
        with contextlib.redirect_stdout(io.StringIO()) as text:
            print("a")
            prints[1, 1](2)
            print("b")
            cuda.synchronize()
            print("c")
        assert text.getvalue() == "a\\nb\\n" + lines(2) + "c\\n", text.getvalue()

        waits = [
            cuda.default_stream().synchronize,
            cuda.to_device(np.zeros(3)).copy_to_host,
            lambda: sum3[1, 1](np.zeros(1, np.int64), 1, 2),
        ]
        for wait in waits:
            with contextlib.redirect_stdout(io.StringIO()) as text:
                prints[1, 1](3)
                wait()
            assert text.getvalue() == lines(3), text.getvalue()

        class Broken(io.StringIO):
            def write(self, text):
                raise OSError("no room")

        for wait in [*waits, cuda.synchronize]:
            with contextlib.redirect_stdout(Broken()):
                prints[1, 1](1)
                try:
                    wait()
                except OSError as error:
                    assert str(error) == "no room"
                else:
                    raise AssertionError("it was lost")
        cuda.synchronize()
        """
    )
    assert out == "first\nlaunched\n0 says hello to a host of letters\nbetween\n"
