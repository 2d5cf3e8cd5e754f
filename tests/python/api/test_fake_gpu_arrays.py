"""Operations of device arrays over the fake driver, which executes no PTX: the driver calls and their order."""

from __future__ import annotations


def test_operations_are_compiled_for_gpus_and_launched(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        from pathlib import Path
        import os

        def launches(work):
            before = Path(os.environ["FAKE_TRACE"]).read_text().split().count("cuLaunchKernel")
            work()
            return Path(os.environ["FAKE_TRACE"]).read_text().split().count("cuLaunchKernel") - before

        for dtype in ("f4", "i1", "c16", "f2", "?"):
            x = cuda.to_device(np.ones((40, 50), dtype))
            assert launches(lambda: x + x) == 1
            assert launches(lambda: x * x[:, :1]) == 1
            assert launches(lambda: x @ x.T) == 1
            assert launches(lambda: x.T.copy()) == 1
            assert launches(lambda: x.max(axis=1)) >= 1
            assert launches(lambda: x.argmin(axis=0)) >= 3
            assert launches(lambda: x[[1, 2]]) == 1
            assert launches(lambda: x[:, [1, 2]]) == 1
            assert launches(lambda: x.setitem(np.s_[:, [1, 2]], 1)) == 1
            assert launches(lambda: x.setitem(np.ones((40, 50), bool), 1)) == 1
            assert launches(lambda: x.fill(1)) == 1
            # The driver copies contiguous arrays.
            assert launches(lambda: x.copy()) == 0
        """,
        FAKE_TRACE=str(calls),
    )


def test_arrays_of_several_streams_are_ordered_by_events(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        from pathlib import Path
        import os

        def waited():
            return Path(os.environ["FAKE_TRACE"]).read_text().splitlines().count("cuStreamWaitEvent")

        def waits(work):
            before = waited()
            made = work()
            return waited() - before

        first, second = cuda.stream(), cuda.stream()
        x, y, z = (cuda.to_device(np.ones(8), stream=stream) for stream in (first, second, 0))
        assert waits(lambda: x + x) == 0
        # The default stream and those that weft makes wait for each other by themselves.
        assert waits(lambda: x + z) == 0
        # One waits before the kernel, the other after it.
        assert waits(lambda: x + y) == 2
        assert waits(lambda: np.add(x, 1, out=y)) == 2
        assert waits(lambda: x.setitem(slice(None), y)) == 2
        assert waits(lambda: x @ y) == 2
        assert waits(lambda: x.setitem([0, 1], y[:2])) == 2
        other = cuda.external_stream(int(first))
        w = cuda.to_device(np.ones(8), stream=other)
        assert waits(lambda: w + w) == 0
        assert waits(lambda: w + z) == 2
        assert (x + y).stream is first
        # Arrays allocated in another library's stream are freed before that stream.
        del w
        """,
        FAKE_TRACE=str(calls),
    )


def test_benchmark_takes_the_time_of_events(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        from pathlib import Path
        import os

        out = cuda.to_device(np.zeros(1, np.int64))
        stream = cuda.stream()
        found = cuda.benchmark(sum3[1, 1, stream], out, 3, 4, warmup=2, repeat=6)
        assert (found.clock, found.count, len(found.times)) == ("events", 6, 6)
        assert out.copy_to_host()[0] == 7
        calls = Path(os.environ["FAKE_TRACE"]).read_text().split()
        assert calls.count("cuLaunchKernel") == 8
        assert calls.count("cuEventRecord") == 12
        assert calls.count("cuEventElapsedTime") + calls.count("cuEventElapsedTime_v2") == 6
        measured = [call for call in calls if call in ("cuEventRecord", "cuLaunchKernel")][2:]
        assert measured == ["cuEventRecord", "cuLaunchKernel", "cuEventRecord"] * 6
        """,
        FAKE_TRACE=str(calls),
    )


def test_operations_run_on_the_device_of_the_array(run) -> None:
    run(
        """
        with cuda.gpus[1]:
            there = cuda.to_device(np.arange(12.0).reshape(3, 4))
        here = cuda.to_device(np.zeros((3, 4)))
        for work in (
            lambda: there + 1, lambda: there.T.copy(), lambda: there.astype("f4"), lambda: there.max(axis=0),
            lambda: there @ there.T, lambda: there[[0, 2]], lambda: there[:, ::2].copy(), lambda: there.argmin(),
            lambda: abs(there), lambda: there == there, lambda: there.mean(axis=0), lambda: there.flatten("F"),
        ):
            assert work().device == 1
        there[:, 1] = 5
        there[[0, 1]] = 5
        there[np.ones(3, bool)] = here.copy_to_host()
        assert cuda.get_current_device().id == 0
        # From device to device elements go through the host.
        here[...] = there
        assert here.copy_to_host().tolist() == there.copy_to_host().tolist()
        with cuda.gpus[1]:
            theirs = cuda.to_device(np.arange(12.0).reshape(3, 4), stream=cuda.stream())
        ours = cuda.to_device(np.zeros((3, 4)), stream=cuda.stream())
        for to in (here, ours):
            for of in (there, theirs):
                to[...] = of
                to[::2] = of[::2].astype("f4")
                to.copy_to_device(of)
        assert theirs.copy_to_host(stream=theirs.stream).tolist() == here.copy_to_host().tolist()
        for work in (lambda: there + here, lambda: here @ there.T):
            try:
                work()
            except weft.LaunchError as error:
                assert "the array is on device" in str(error), error
            else:
                raise AssertionError
        assert cuda.get_current_device().id == 0
        """,
        FAKE_DEVICES="2",
    )
