"""Performance warnings: which filters turn them into errors, and which process emits them. See `weft._advice`."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings

import pytest
from weft import _advice, errors


def advise(message: str) -> None:
    _advice.advise(errors.PerformanceWarning, message)


def shown(message: str, *filters: tuple[str, type[Warning]], text: str = "") -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        for action, category in filters:
            warnings.filterwarnings(action, text, category)
        advise(message)
    return [str(warning.message) for warning in caught]


def test_filters_decide() -> None:
    assert shown("plain", ("always", Warning)) == ["plain"]
    assert shown("plain", ("ignore", Warning)) == []


def test_a_filter_of_all_warnings_makes_no_error() -> None:
    assert shown("no error", ("error", Warning)) == ["no error"]
    # Once per source line, as by Python's default filters.
    assert shown("no error", ("error", Warning)) == []


@pytest.mark.parametrize("category", [errors.PerformanceWarning, errors.WeftWarning, errors.NumbaPerformanceWarning])
def test_a_filter_that_names_it_makes_an_error(category) -> None:
    with pytest.raises(errors.PerformanceWarning, match="by name"):
        shown("by name", ("error", category))


def test_a_filter_of_its_text_makes_an_error() -> None:
    with pytest.raises(errors.PerformanceWarning, match="by its text"):
        shown("by its text", ("error", Warning), text="by its")
    assert shown("another", ("error", Warning), text="by its") == ["another"]


def program(tmp_path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(code))
    command = [sys.executable, *options, str(script)]
    # A separate process group, as a shell creates for each command.
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, process_group=0, env={**os.environ}
    )


WORKERS = """
    import multiprocessing

    from weft import _advice, errors


    def work(ready):
        ready.wait()
        for _ in range(2):
            _advice.advise(errors.PerformanceWarning, "said by one")
        ready.wait()


    if __name__ == "__main__":
        context = multiprocessing.get_context("METHOD")
        ready = context.Barrier(3)
        workers = [context.Process(target=work, args=(ready,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0, 0, 0]
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_workers_of_a_program_say_it_once(tmp_path, method) -> None:
    done = program(tmp_path, WORKERS.replace("METHOD", method))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("PerformanceWarning: said by one") == 1, done.stderr


def test_a_child_says_nothing_again(tmp_path) -> None:
    code = """
        import os

        from weft import _advice, errors

        for child in (False, True):
            if child and os.fork():
                assert os.wait()[1] == 0
                break
            _advice.advise(errors.PerformanceWarning, "said by the parent")
    """
    done = program(tmp_path, code, "-W", "always")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("PerformanceWarning: said by the parent") == 1, done.stderr
    # Another program emits its own warning.
    assert program(tmp_path, code, "-W", "always").stderr.count("said by the parent") >= 1


@pytest.mark.cpu
def test_that_kernels_run_on_the_cpu_is_no_error(tmp_path) -> None:
    code = """
        import sys
        import warnings

        import numpy as np
        from weft import cuda, errors

        if "named" in sys.argv:
            warnings.simplefilter("error", errors.DeviceWarning)

        @cuda.jit
        def one(x):
            x[0] = 1

        x = np.zeros(1)
        one[1, 1](x)
        assert x[0] == 1
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(code))
    for named, code in (([], 0), (["named"], 1)):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(tmp_path / "program.py"), *named],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            process_group=0,
            env={**os.environ, "WEFT_DEVICE": "auto"},
        )
        assert done.returncode == code, done.stderr
        assert "DeviceWarning: no CUDA device was found" in done.stderr
