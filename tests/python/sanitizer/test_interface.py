"""Interfaces of the sanitizer: options, settings, exceptions, the command and the pytest plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import weft.errors
from host_memory import has_driver
from weft import cuda

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cpu

RACY = """
import numpy as np
from weft import cuda


@cuda.jit
def racy(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    out[i] = s[63 - i]


a = np.ones(64, np.float32)
for _ in range(2):
    racy[1, 64](a, a.copy())
print("came to the end")
"""


def _run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_SANITIZE")}
    environment |= {"WEFT_DEVICE": "cpu", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(RACY)
    return path


def test_a_finding_says_who_did_what_and_where() -> None:
    @cuda.jit(sanitize="all")
    def racy(a, out):
        s = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        s[i] = a[i]
        out[i] = s[63 - i]

    a = np.ones(64, np.float32)
    with pytest.raises(weft.errors.SanitizerError) as caught:
        racy[1, 64](a, a.copy())
    (finding,) = caught.value.findings
    assert (finding.tool, finding.kind, finding.kernel) == ("racecheck", "race within a block", "racy")
    assert finding.count == 64
    write, read = finding.accesses
    first = racy.py_func.__code__.co_firstlineno
    assert (write.line, write.what, write.array) == (first + 4, "write", "s")
    assert (read.line, read.what, read.array) == (first + 5, "read", "s")
    assert write.file == read.file == __file__
    assert write.text[write.column - 1 : write.column - 1 + write.width] == "s[i]"
    assert write.index == read.index
    assert write.thread[1:] == (0, 0)
    assert write.block == (0, 0, 0)
    assert f"between lines {first + 4} and {first + 5}" in finding.help
    assert str(finding) in str(caught.value)
    assert "^^^^ write by thread" in str(finding)


def test_one_tool_finds_its_own_alone() -> None:
    def beyond_and_unwritten(out):
        s = cuda.shared.array(8, np.float32)
        i = cuda.threadIdx.x
        out[i + 1] = s[i] + 1

    found = {}
    for tool in ("memcheck", "initcheck", "racecheck", ("memcheck", "initcheck"), True, False):
        try:
            cuda.jit(beyond_and_unwritten, sanitize=tool)[1, 8](np.ones(8, np.float32))
            found[tool] = []
        except weft.errors.SanitizerError as error:
            found[tool] = sorted({finding.tool for finding in error.findings})
    both = ["initcheck", "memcheck"]
    assert list(found.values()) == [["memcheck"], ["initcheck"], [], both, both, []]


def test_nothing_is_written_out_of_bounds() -> None:
    @cuda.jit(sanitize="memcheck")
    def store(x, at):
        x[at] = 7

    around = np.zeros(64, np.float32)
    for at in (-40, -9, 8, 20, 1 << 40):
        with pytest.raises(weft.errors.SanitizerError, match=f"index {at} is out of bounds for axis 0 of `x`"):
            store[1, 1](around[16:24], at)
    assert not around.any()


@pytest.mark.parametrize("value", ["memchk", "racecheck,oops", ("memcheck", "x")])
def test_a_tool_that_there_is_not_is_an_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"sanitize must be 'all', a bool, or some of 'memcheck'"):
        cuda.jit(lambda x: None, sanitize=value)
    with pytest.raises(TypeError, match="sanitize must be"):
        cuda.jit(lambda x: None, sanitize=3)


def test_the_setting_checks_all_kernels(program: Path) -> None:
    ran = _run(sys.executable, str(program), WEFT_SANITIZE="all")
    assert ran.returncode == 1
    assert "weft.errors.SanitizerError" in ran.stderr
    assert "error[racecheck]" in ran.stderr
    ran = _run(sys.executable, str(program), WEFT_SANITIZE="memcheck,synccheck")
    assert ran.returncode == 0
    assert "came to the end" in ran.stdout
    ran = _run(sys.executable, str(program), WEFT_SANITIZE="all", WEFT_SANITIZE_ACTION="warn")
    assert ran.returncode == 0
    assert "came to the end" in ran.stdout
    assert "SanitizerWarning" in ran.stderr
    ran = _run(sys.executable, str(program), WEFT_SANITIZE="some")
    assert ran.returncode == 1
    assert "WEFT_SANITIZE" in ran.stderr


def test_the_command_prints_all_and_exits_with_1(program: Path) -> None:
    ran = _run(sys.executable, "-m", "weft.sanitize", str(program))
    assert ran.returncode == 1
    assert "came to the end" in ran.stdout
    assert "error[racecheck]" in ran.stderr
    assert "seen 128 times" in ran.stderr
    assert "1 fault found" in ran.stderr
    ran = _run(sys.executable, "-m", "weft", "sanitize", "--tool", "memcheck", str(program))
    assert ran.returncode == 0
    assert "nothing found" in ran.stderr


def test_the_command_gives_json(program: Path) -> None:
    program.write_text(RACY.replace('print("came to the end")', "raise SystemExit(3)"))
    ran = _run(sys.executable, "-m", "weft.sanitize", "--json", str(program))
    (finding,) = json.loads(ran.stdout)
    assert finding["tool"] == "racecheck"
    assert finding["count"] == 128
    assert ran.returncode == 1
    assert [access["line"] for access in finding["accesses"]] == [10, 11]
    program.write_text("import sys\nsys.exit(int(sys.argv[1]))")
    assert _run(sys.executable, "-m", "weft.sanitize", str(program), "5").returncode == 5
    assert _run(sys.executable, "-m", "weft.sanitize", str(program) + "x").returncode == 2
    assert _run(sys.executable, "-m", "weft.sanitize", "--tool", "nonsense", str(program)).returncode == 2


def test_pytest_has_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n" + "".join(f"    {line}\n" for line in RACY.splitlines()))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    assert _run(*command).returncode == 0
    command.insert(4, "--weft-sanitize")
    ran = _run(*command)
    assert ran.returncode == 1
    assert "SanitizerError" in ran.stdout
    assert "error[racecheck]" in ran.stdout


def test_the_command_names_it_in_its_help_and_to_shells():
    weft = [sys.executable, "-c", "import sys; from weft._cli import main; sys.exit(main())"]
    assert "\n  sanitize " in _run(*weft, "--help").stdout
    ours, words = _run(*weft, "sanitize", "--help").stdout, _run(*weft, "completions", "bash").stdout
    of_clap = _run(*weft, "help", "sanitize").stdout
    for option in ("--tool", "--json", "-m"):
        assert option in ours
        assert option in of_clap
    assert "weft__sanitize" in words or "weft__subcmd__sanitize" in words
    told = _run(*weft, "--color", "never", "sanitize", "program.py")
    assert told.returncode == 2
    assert "python -m weft.sanitize" in told.stderr


@cuda.jit(device=True)
def put(s, i, v):
    s[i] = v


@cuda.jit(device=True)
def put_two(s, i, v):
    put(s, i, v)
    put(s, i + 64, v)


def test_an_access_has_the_calls_that_led_there() -> None:
    @cuda.jit(sanitize="all")
    def racy(out):
        s = cuda.shared.array(128, np.float32)
        i = cuda.threadIdx.x
        put_two(s, i, i)
        out[i] = s[63 - i]

    with pytest.raises(weft.errors.SanitizerError) as caught:
        racy[1, 64](np.ones(64, np.float32))
    (finding,) = caught.value.findings
    write, read = sorted(finding.accesses, key=lambda access: access.what, reverse=True)
    assert (write.what, write.function, read.calls) == ("write", "put", ())
    first = put_two.py_func.__code__.co_firstlineno
    kernel = racy.py_func.__code__.co_firstlineno
    assert [(call.line, call.function) for call in write.calls] == [(first + 2, "put_two"), (kernel + 4, "racy")]
    assert "put_two(s, i, i)" in str(finding)
    assert finding.as_dict()["accesses"]


def test_shared_arrays_have_indices_by_axis() -> None:
    @cuda.jit(sanitize="racecheck")
    def racy(out):
        tile = cuda.shared.array((2, 3, 4), np.complex64)
        i = cuda.threadIdx.x
        tile[1, 2, 3] = i
        out[i] = i

    with pytest.raises(weft.errors.SanitizerError) as caught:
        racy[1, 2](np.ones(2, np.float32))
    assert {access.index for finding in caught.value.findings for access in finding.accesses} == {(1, 2, 3)}


SAME = """
import numpy as np
from weft import cuda


@cuda.jit
def flags(changed):
    changed[0] = 1


flags[1, 64](np.ones(1, np.int32))
"""


def test_benign_races_can_be_ignored(program: Path) -> None:
    program.write_text(SAME)
    assert "the threads write the same value" in _run(sys.executable, str(program), WEFT_SANITIZE="all").stderr
    assert _run(sys.executable, str(program), WEFT_SANITIZE="all", WEFT_SANITIZE_BENIGN_RACES="ignore").returncode == 0
    assert _run(sys.executable, str(program), WEFT_SANITIZE="all", WEFT_SANITIZE_BENIGN_RACES="no").returncode == 1
    command = [sys.executable, "-m", "weft.sanitize", "--ignore-benign-races", str(program)]
    assert _run(*command).returncode == 0


class Seen:
    """A view of memory without a reference to its owner."""

    def __init__(self, array: object) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@pytest.mark.skipif(has_driver(), reason="the arrays are in CPU memory, beside a GPU")
@pytest.mark.parametrize("n", [8, 40_000])
def test_memory_that_was_freed(n: int) -> None:
    @cuda.jit(sanitize="memcheck")
    def add(x):
        x[cuda.grid(1)] += 1

    add[1, 4](cuda.device_array(4))  # from here on the sanitizer records allocations
    array = cuda.to_device(np.ones(n))
    view = Seen(array)
    add[1, 8](view)
    del array
    with pytest.raises(weft.errors.SanitizerError, match="is in freed memory") as caught:
        add[1, 8](view)
    assert {finding.kind for finding in caught.value.findings} == {"use after free"}
    # A later allocation at the same address is not reported.
    others = [cuda.to_device(np.ones(n)) for _ in range(8)]
    for other in others:
        add[1, 8](other)
    assert all(other.copy_to_host()[0] == 2 for other in others)
