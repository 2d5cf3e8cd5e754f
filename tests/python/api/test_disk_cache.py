"""The disk cache: a later program finds compiled code if nothing has changed, and never gets wrong code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = """
import collections
import enum
import sys
import warnings
import numpy as np
from weft import cuda

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Grid size|Host array")

Pair = collections.namedtuple("Pair", "left right")
class Color(enum.IntEnum):
    RED = 3
    BLUE = 5

SCALE = 3
TABLE = np.array([1.0, 10.0, 100.0])
RECORD = np.dtype([("x", np.float64), ("n", np.int8)])

@cuda.jit
def scaled(x):
    return x * SCALE

@cuda.jit
def kernel(out, pair, color, record):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = scaled(pair.left[i]) + pair.right * TABLE[i % 3] + color + record[0].x

out, left = np.zeros(7), np.arange(7.0)
record = np.zeros(1, RECORD)
record["x"] = 0.5
kernel[1, 32](out, Pair(left, 2), Color.BLUE, record)
assert np.array_equal(out, left * SCALE + 2 * TABLE[np.arange(7) % 3] + 5.5), out
stats = kernel.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


NO_ADVICE = {"WEFT_LOW_OCCUPANCY_WARNINGS": "0", "WEFT_WARN_ON_IMPLICIT_COPY": "0"}
"""A GPU's warnings about small grids and host arrays are not failures."""


class Program:
    """A program in a file, and a folder for the cache."""

    def __init__(self, folder: Path) -> None:
        """Choose the cache's folder, which does not exist yet."""
        self.file = folder / "program.py"
        self.cache = folder / "cache"

    def run(self, code: str = KERNELS, *, prefix: tuple[str, ...] = (), **env: str) -> str:
        """Run the program, which must succeed."""
        text = textwrap.dedent(code)
        if not self.file.exists() or self.file.read_text() != text:
            self.file.write_text(text)
        done = subprocess.run(
            [*prefix, sys.executable, self.file],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "WEFT_CACHE": "on", "WEFT_CACHE_DIR": str(self.cache), **NO_ADVICE, **env},
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return done.stdout.strip()

    def files(self) -> list[Path]:
        """All files in the cache."""
        return sorted(path for path in self.cache.rglob("*") if path.is_file())

    def command(self, *args: str) -> str:
        """Run the command on the cache."""
        command = [sys.executable, "-m", "weft", "cache", *args]
        env = {**os.environ, "WEFT_CACHE_DIR": str(self.cache)}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def test_the_second_run_finds_what_the_first_compiled(program):
    assert program.run() == "0 1"
    files = program.files()
    assert len(files) == 1
    assert program.run() == "1 0"
    assert program.files() == files


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 3", "SCALE = 4"),
        ("return x * SCALE", "return SCALE * x"),
        ("[1.0, 10.0, 100.0]", "[1.0, 10.0, 200.0]"),
        ("Pair =", "\nPair ="),
        ("out, left = np.zeros(7)", "out, left = np.zeros(14)[::2]"),
        ("@cuda.jit\ndef kernel", "@cuda.jit(fastmath=True)\ndef kernel"),
    ],
)
def test_what_changes_a_kernel_compiles_it_again(program, old, new):
    assert program.run() == "0 1"
    changed = KERNELS.replace(old, new)
    assert changed != KERNELS
    assert program.run(changed) == "0 1"
    assert program.run(changed) == "1 0"
    assert program.run() == "1 0"


def test_classes_that_are_met_in_another_order_are_the_same(program):
    assert program.run() == "0 1"
    first = """
    Other = collections.namedtuple("Other", "a b c")
    @cuda.jit
    def before(out, other):
        out[0] = other.c
    before[1, 1](np.zeros(1), Other(1, 2.0, 3))
    """
    behind = textwrap.dedent(first) + "out, left = np.zeros(7), np.arange(7.0)\n"
    assert program.run(KERNELS.replace("out, left = np.zeros(7), np.arange(7.0)\n", behind)) == "1 0"


def test_a_setting_and_an_option_turn_it_off(program):
    assert program.run(WEFT_CACHE="off") == "0 0"
    assert program.run(KERNELS.replace("@cuda.jit\ndef kernel", "@cuda.jit(cache=False)\ndef kernel")) == "0 0"
    assert program.files() == []
    paths = """
    from weft import cuda
    make = lambda **options: cuda.jit(**options)(lambda a: None)
    print([make(**options).stats.cache_path for options in ({}, {"cache": True}, {"cache": None}, {"cache": False})])
    """
    assert program.run(paths) == str([str(program.cache)] * 3 + [None])


def test_the_cache_is_in_the_users_own_folder(program, tmp_path):
    env = {"WEFT_CACHE_DIR": "", "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    assert program.run(**env) == "0 1"
    assert len(list((tmp_path / "home" / ".cache" / "weft").rglob("*"))) == 2
    assert program.run(**env) == "1 0"
    assert program.run(**{**env, "XDG_CACHE_HOME": str(tmp_path / "xdg")}) == "0 1"
    assert len(list((tmp_path / "xdg" / "weft").rglob("*"))) == 2
    del env["HOME"]
    assert program.run(**env, HOME="") == "0 0"


def test_what_is_damaged_is_compiled_again_in_silence(program):
    program.run()
    [file] = program.files()
    whole = file.read_bytes()
    for damage in (b"", whole[:-1], whole + b"\0", whole[:200] + b"x" + whole[201:], b"\0" * len(whole)):
        file.write_bytes(damage)
        assert program.run() == "0 1"
        assert file.read_bytes() == whole


def test_warnings_and_faults_are_those_of_the_first_run(program):
    code = """
    import traceback, warnings
    import numpy as np
    from weft import cuda

    warnings.simplefilter("always")
    @cuda.jit(debug=True, opt=False)
    def kernel(a, n):
        a[n] = 1
    try:
        kernel[1, 1](cuda.to_device(np.zeros(3)), 5)
        cuda.synchronize()
    except IndexError as error:
        print(error)
    print(kernel.stats.cache_hits.total())
    """
    first, again = program.run(code).splitlines(), program.run(code).splitlines()
    assert first[:-1] == again[:-1]
    assert (first[-1], again[-1]) == ("0", "1")


def test_kernels_with_addresses_of_the_process_are_not_kept(program):
    code = """
    import numpy as np
    from weft import cuda
    table = cuda.to_device(np.arange(4.0))
    @cuda.jit
    def kernel(a):
        a[0] = table[3]
    a = np.zeros(1)
    kernel[1, 1](a)
    assert a[0] == 3
    """
    program.run(code)
    assert program.files() == []


def test_implementations_of_overloaded_functions_are_found(program):
    code = """
    import numpy as np
    from weft import cuda
    from weft.cuda.extending import overload

    def twice(x):
        pass

    @overload(twice)
    def twice_of(x):
        return lambda x: x + x

    @cuda.jit
    def kernel(a):
        a[0] = twice(a[0])

    a = np.ones(1)
    kernel[1, 1](a)
    assert a[0] == 2
    print(kernel.stats.cache_hits.total(), kernel.stats.cache_misses.total())
    """
    assert program.run(code) == "0 1"
    assert program.run(code) == "1 0"


def test_texts_of_a_kernel_that_was_found(program):
    code = KERNELS + "print(kernel.inspect_asm(list(kernel.overloads)[0]))\nprint(kernel.inspect_types())\n"
    first = program.run(code)
    again = program.run(code)
    assert first.split("\n", 1) == ["0 1", again.split("\n", 1)[1]]


def test_many_processes_on_one_cold_kernel(program):
    program.run(WEFT_CACHE="off")
    with ThreadPoolExecutor(16) as pool:
        counts = list(pool.map(lambda _: program.run(), range(16)))
    assert set(counts) <= {"0 1", "1 0"}
    assert "0 1" in counts
    [file] = program.files()
    assert re.fullmatch("[0-9a-f]{64}", file.name)
    assert program.run() == "1 0"


def mounting(size: str, options: str, folder: Path) -> tuple[str, ...]:
    """The start of a command that mounts a separate file system on a folder, if the machine allows it."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    mount = f'mount -t tmpfs -o size={size} tmpfs {folder} && {options} && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    return prefix


def test_a_full_disk_is_no_error(program):
    program.cache.mkdir()
    fill = f"(dd if=/dev/zero of={program.cache}/filler bs=4096 2>/dev/null || true)"
    code = KERNELS + "import pathlib; print(sum(1 for file in pathlib.Path(sys.argv[0]).parent.rglob('cache/?/*')))\n"
    assert program.run(code, prefix=mounting("64k", fill, program.cache)).splitlines() == ["0 1", "0"]


def test_a_folder_that_cannot_be_written_is_no_error(program):
    program.cache.mkdir()
    read_only = f"mount -o remount,ro {program.cache}"
    assert program.run(prefix=mounting("1m", read_only, program.cache)) == "0 1"
    program.cache.rmdir()
    program.cache.write_text("in the way")
    assert program.run() == "0 1"


def test_a_kernel_in_a_folder_that_can_only_be_read_is_found(program, tmp_path):
    assert program.run() == "0 1"
    copy = tmp_path / "copy"
    shutil.copytree(program.cache, copy)
    read_only = f"cp -r {copy}/. {program.cache} && mount -o remount,ro {program.cache}"
    prefix = mounting("1m", read_only, program.cache)
    assert program.run(prefix=prefix) == "1 0"


def test_the_command_lists_and_clears(program):
    assert program.command("path") == f"{program.cache}\n"
    assert program.command("ls") == f"0 entries, 0 B of 1.0 GiB in {program.cache}\n"
    program.run()
    size = program.files()[0].stat().st_size
    listed = program.command("ls").splitlines()
    assert len(listed) == 2
    assert re.search(r"KiB +now +\S+ +kernel\(array\(float64, 1d, C\), .*\)  by ", listed[0]), listed
    assert listed[1] == f"1 entry, {size / 1024:.1f} KiB of 1.0 GiB in {program.cache}"
    (program.cache / "mine.txt").write_text("")
    assert program.command("clear") == f"removed 1 entry, {size / 1024:.1f} KiB\n"
    assert [file.name for file in program.files()] == ["mine.txt"]
    assert program.run() == "0 1"


PHASES = ["front end", "passes", "LLVM IR", "LLVM's set-up", "verifier", "LLVM's passes", "legalize", "LLVM's code"]


def timed(line: str) -> tuple[dict[str, float], float, list[int]]:
    """Of a line of ``WEFT_TIMING``: each phase's milliseconds, their sum, and the numbers of LLVM's module."""
    shown = re.fullmatch(r"weft: .*: ([0-9.]+) ms: ([^;]*)(?:; LLVM IR: (.*))?", line)
    assert shown, line
    times = {}
    for phase in shown[2].split(", "):
        name, _, time = phase.rpartition(" ")
        times[name] = float(time)
    return times, float(shown[1]), [int(number) for number in re.findall(r"\d+", shown[3] or "")]


def test_the_phases_of_a_first_launch_are_printed(program):
    code = KERNELS.replace('warnings.simplefilter("error")', "sys.stderr = sys.stdout")
    for phases in ([*PHASES, "result"], []):
        lines = [line for line in program.run(code, WEFT_TIMING="1").splitlines() if line.startswith("weft: ")]
        line = lines[0]
        assert re.match(r"weft: kernel\(.*\) for \w+(?:, cached)?: ", line)
        times, total, numbers = timed(line)
        assert sum(times.values()) == pytest.approx(total, abs=0.1)
        # For a GPU the launch loads the code: it may run a variant.
        loading = [name for loaded in lines[1:] for name in timed(loaded)[0]]
        assert [*times, *loading] == ["capture", "look up", *phases, "load"]
        if phases:
            functions, instructions, functions_left, instructions_left = numbers
            assert 1 <= functions_left <= functions
            assert instructions > 0
            assert instructions_left > 0
        else:
            assert numbers == []
        assert (", cached: " in line) == (not phases)


def test_the_phases_of_a_text_are_printed(program):
    code = """
import sys
sys.stderr = sys.stdout
import math
from weft import cuda, float64

@cuda.jit(device=True)
def hyp(a, b):
    return math.cosh(a) * b

@cuda.jit
def kernel(x):
    x[0] = hyp(x[1], x[2])

for target in ("sm_90", "host"):
    assert kernel.inspect_llvm((float64[::1],), target=target)
"""
    lines = [line for line in program.run(code, WEFT_TIMING="1").splitlines() if line.startswith("weft: ")]
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        f"kernel(array(float64, 1d, C)) for {target}, llvm" for target in ("sm_90", "host")
    ]
    for line in lines:
        times, total, numbers = timed(line)
        linked = [*PHASES[:4], "math library", *PHASES[4:]]
        assert [name for name in times if name != "estimate"] == ["capture", "look up", *linked, "result"]
        assert sum(times.values()) == pytest.approx(total, abs=0.1)
        functions, _, functions_left, _ = numbers
        # The kernel, the device function and the library's; on a GPU only the kernel remains.
        assert functions >= 3
        assert functions_left < functions
