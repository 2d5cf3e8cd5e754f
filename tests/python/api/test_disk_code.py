"""The disk cache for machine code of the driver: a later program finds it, and never gets wrong code.

Programs run over the fake driver of the runtime tests, which records its calls and loads the "cubin" that its linker
produces. The last program runs on the device under test.
"""

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

KERNEL = """
import sys
import numpy as np
from weft import cuda

@cuda.jit
def sum3(out, a, b):
    out[0] = a + b

out = cuda.to_device(np.zeros(1, np.int64))
sum3[1, 1](out, 3, 4)
assert out.copy_to_host()[0] == 7
"""

LINKED = """
import numpy as np
from weft import cuda

mul = cuda.declare_device("mul", "int64(int64)", link=cuda.PTXSource(".visible .func mul"))

@cuda.jit
def sum2(out, a):
    out[0] = mul(a)

out = cuda.to_device(np.zeros(1, np.int64))
sum2[1, 1](out, 3)
assert out.copy_to_host()[0] == 3
"""


class Program:
    """A program in a file, a folder for the cache, and a driver."""

    def __init__(self, driver: Path, folder: Path) -> None:
        """Choose the cache's folder, which does not exist yet."""
        self.driver = driver
        self.folder = folder
        self.cache = folder / "cache"

    def start(self, code: str = KERNEL, **env: str) -> tuple[list[str], str]:
        """Run the program, which must succeed: the code that was linked and loaded, and the output."""
        file, trace = self.folder / "program.py", self.folder / f"trace{len(list(self.folder.glob('trace*')))}"
        file.write_text(textwrap.dedent(code))
        shared = {"WEFT_CACHE": "on", "WEFT_CACHE_MACHINE_CODE": "1", "WEFT_CACHE_DIR": str(self.cache)}
        shared |= {"WEFT_DEVICE": "cuda"}
        shared |= {"WEFT_LOW_OCCUPANCY_WARNINGS": "0", "LD_LIBRARY_PATH": str(self.driver), "FAKE_TRACE": str(trace)}
        done = subprocess.run(
            [sys.executable, file],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **shared, **env},
        )
        assert done.returncode == 0, done.stderr
        calls = []
        for call in trace.read_text().splitlines():
            if call == "cuLinkCreate_v2":
                calls.append("link")
            elif call == "cuModuleLoadDataEx":
                calls.append("ptx")
            elif call == "cubin":
                calls[-1] = "cubin"
        return calls, done.stdout.strip()

    def run(self, code: str = KERNEL, **env: str) -> list[str]:
        """Run the program: the code that was linked and loaded."""
        return self.start(code, **env)[0]

    def files(self) -> list[Path]:
        """All entries that are machine code."""
        files = sorted(path for path in self.cache.rglob("*") if path.is_file())
        return [path for path in files if b" cubin" in path.read_bytes()[:512]]

    def command(self, *args: str) -> str:
        """Run the command on the cache."""
        command = [sys.executable, "-m", "weft", "cache", *args]
        env = {**os.environ, "WEFT_CACHE_DIR": str(self.cache)}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


@pytest.fixture
def program(driver, tmp_path):
    return Program(driver, tmp_path)


MISS, HIT, OFF = ["link", "cubin"], ["cubin"], ["ptx"]


def test_the_second_program_loads_what_the_drivers_linker_made(program):
    assert program.run() == MISS
    files = program.files()
    assert len(files) == 1
    assert program.run() == HIT
    assert program.files() == files


def test_a_kernel_that_is_found_counts_as_before(program):
    code = KERNEL + "print(sum3.stats.cache_hits.total(), sum3.stats.cache_misses.total())\n"
    assert [program.start(code) for _ in range(2)] == [(MISS, "0 1"), (HIT, "1 0")]


def test_kernels_that_report_faults_and_print(program):
    code = """
    import numpy as np
    from weft import cuda

    @cuda.jit
    def kernel(out, k):
        view = out[:k]
        out[:16] = view
        print(k)

    kernel[1, 1](cuda.to_device(np.zeros(32)), 16)
    cuda.synchronize()
    print("faults" if b"weft$fault_page" in next(iter(kernel.overloads.values())).code else "no faults")
    """
    assert program.start(code) == (MISS, "faults")
    assert program.start(code) == (HIT, "faults")
    assert program.start(code, FAKE_LAZY="200") == (["cubin", "link", "cubin", "ptx"], "faults")


@pytest.mark.parametrize("options", ["cache=False", "debug=True, opt=False", "lineinfo=True"])
def test_what_is_not_kept_is_loaded_as_ptx(program, options):
    code = KERNEL.replace("@cuda.jit", f"@cuda.jit({options})")
    assert [program.run(code), program.run(code)] == [OFF, OFF]
    assert program.files() == []


def test_without_the_cache_nothing_is_linked(program):
    assert program.run(WEFT_CACHE="off") == OFF
    assert not program.cache.exists()
    # Linked code is not the default: the driver's compiler generates better code from PTX alone.
    assert program.run(WEFT_CACHE_MACHINE_CODE="0") == OFF
    assert program.files() == []


def test_code_with_addresses_of_the_process_is_not_kept(program):
    code = KERNEL.replace("a + b", "a + b + 0 * table[0]").replace(
        "@cuda.jit", "table = cuda.to_device(np.zeros(1, np.int64))\n@cuda.jit"
    )
    code = code.replace("assert out.copy_to_host()[0] == 7\n", "")
    assert [program.run(code), program.run(code)] == [OFF, OFF]
    assert program.files() == []


def test_other_drivers_have_other_code(program, driver, tmp_path):
    assert program.run() == MISS
    assert program.run(FAKE_VERSION="12050") == MISS
    assert len(program.files()) == 2
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(driver / "libcuda.so.1", other / "libcuda.so.999.1")
    for name in ("libcuda.so", "libcuda.so.1"):
        (other / name).symlink_to("libcuda.so.999.1")
    program.driver = other
    assert program.run() == MISS
    assert len(program.files()) == 3
    program.driver = driver
    assert [program.run(), program.run(FAKE_VERSION="12050")] == [HIT, HIT]


def test_devices_of_several_kinds(program):
    code = """
    import numpy as np
    from weft import cuda

    @cuda.jit
    def sum3(out, a, b):
        out[0] = a + b

    for device in (0, 1):
        with cuda.gpus[device]:
            out = cuda.to_device(np.zeros(1, np.int64))
            sum3[1, 1](out, 3, 4)
            assert out.copy_to_host()[0] == 7
    """
    assert program.run(code) == [*MISS, *HIT]
    assert program.run(code, FAKE_CC1="80") == [*HIT, *MISS]
    assert program.run(code, FAKE_CC1="80") == [*HIT, *HIT]


@pytest.mark.parametrize("fault", [1, 200, 209, 218, 221, 222, 300, 500, 801, 4242])
@pytest.mark.parametrize("when", ["FAKE_CUBIN", "FAKE_LAZY"])
def test_code_that_the_driver_refuses_is_removed_and_ptx_is_loaded(program, when, fault):
    assert program.run() == MISS
    assert program.run(**{when: str(fault)}) == ["cubin", "link", "cubin", "ptx"]
    assert program.files() == []
    assert [program.run(), program.run()] == [MISS, HIT]


@pytest.mark.parametrize(("fault", "name"), [(2, "CUDA_ERROR_OUT_OF_MEMORY"), (700, "CUDA_ERROR_ILLEGAL_ADDRESS")])
def test_what_is_not_the_codes_fault_is_told(program, fault, name):
    assert program.run() == MISS
    code = """
    import numpy as np
    from weft import cuda

    @cuda.jit
    def sum3(out, a, b):
        out[0] = a + b

    out = cuda.to_device(np.zeros(1, np.int64))
    try:
        sum3[1, 1](out, 3, 4)
    except Exception as error:
        print(error)
    """
    kept = program.files()
    calls, said = program.start(code, FAKE_CUBIN=str(fault))
    assert calls == HIT
    assert "cuModuleLoadDataEx" in said
    assert name in said
    assert program.files() == kept


def test_damaged_code_is_made_again(program):
    assert program.run() == MISS
    [file] = program.files()
    whole = file.read_bytes()
    for damage in (b"", whole[:-1], whole + b"\0", whole[:-9] + b"x" + whole[-8:], b"\0" * len(whole)):
        file.write_bytes(damage)
        assert program.run() == MISS
        assert file.read_bytes() == whole
    assert program.run() == HIT


@pytest.mark.parametrize("fault", [1, 2, 218, 700, 999])
def test_where_nothing_can_be_linked_ptx_is_loaded(program, fault):
    assert [program.run(FAKE_LINK=str(fault)) for _ in range(2)] == [["link", "ptx"]] * 2
    assert program.files() == []


def test_errors_in_ptx_are_those_without_a_cache(program):
    code = """
    import numpy as np
    from weft import cuda

    @cuda.jit
    def wrong(out):
        out[0] = 1

    try:
        wrong[1, 1](cuda.to_device(np.zeros(1)))
    except cuda.CudaAPIError as error:
        print(error)
    """
    (linked, said), (loaded, without) = program.start(code), program.start(code, WEFT_CACHE="off")
    assert (linked, loaded) == (["link", "ptx"], OFF)
    assert said == without
    assert "ptxas application ptx input, line 1; error" in said
    assert program.files() == []


def test_a_folder_that_cannot_be_written_is_no_error(program):
    program.cache.write_text("in the way")
    assert [program.run(), program.run()] == [MISS, MISS]


def test_many_processes_on_one_cold_kernel(program):
    program.run(WEFT_CACHE="off")
    programs = [Program(program.driver, program.folder / str(number)) for number in range(8)]
    for other in programs:
        other.folder.mkdir()
        other.cache = program.cache
    with ThreadPoolExecutor(8) as pool:
        calls = list(pool.map(Program.run, programs))
    assert all(call in (MISS, HIT) for call in calls), calls
    assert MISS in calls
    assert len(program.files()) == 1
    assert program.run() == HIT


def test_foreign_code_is_a_part_of_the_key(program):
    assert program.run(LINKED) == MISS
    assert program.run(LINKED) == HIT
    changed = LINKED.replace(".func mul", ".func mul // changed")
    assert [program.run(changed), program.run(changed), program.run(LINKED)] == [MISS, HIT, HIT]
    bounded = LINKED.replace("@cuda.jit", "@cuda.jit(max_registers=32)")
    assert [program.run(bounded), program.run(bounded)] == [MISS, HIT]
    assert program.run(LINKED, FAKE_CUBIN="0", WEFT_CACHE="off") == MISS
    assert program.run(LINKED.replace("@cuda.jit", "@cuda.jit(cache=False)")) == MISS
    assert len(program.files()) == 3


def test_linked_code_that_the_driver_refuses_is_linked_again(program):
    program.run(LINKED)
    code = LINKED.replace("sum2[1, 1](out, 3)", "try: sum2[1, 1](out, 3)\nexcept Exception as error: print(error)")
    code = code.replace("assert out.copy_to_host()[0] == 3\n", "")
    program.run(code)
    calls, said = program.start(code, FAKE_CUBIN="200")
    assert calls == ["cubin", "link", "cubin"]
    assert "cuLibraryLoadData failed" in said
    assert [program.run(code), program.run(code)] == [MISS, HIT]


def test_the_command_lists_and_clears_it(program):
    program.run()
    listed = program.command("ls").splitlines()
    line = re.compile(r"now  sm_90 cubin  sum3\(array\(int64, 1d, C\), .*\)  by ")
    assert sum(line.search(shown) is not None for shown in listed) == 1
    assert listed[-1].startswith("2 entries, ")
    assert program.command("clear").startswith("removed 2 entries, ")
    assert program.run() == MISS


def test_the_stages_of_loading_are_printed(program):
    code = "import sys\nsys.stderr = sys.stdout\n" + KERNEL

    def phases(**env: str) -> list[str]:
        lines = [line for line in program.start(code, WEFT_TIMING="1", **env)[1].splitlines() if "weft: sum3" in line]
        phases = [phase for line in lines for phase in line.rpartition(" ms: ")[2].partition(";")[0].split(", ")]
        names = [phase.rpartition(" ")[0] for phase in phases]
        return names[names.index("load") :]

    assert phases() == ["load", "link", "keep"]
    assert phases() == ["load"]
    assert phases(WEFT_CACHE="off") == ["load"]
    assert phases(FAKE_CUBIN="200") == ["load", "link"]


ALL_KINDS = """
import math
import numpy as np
from weft import cuda
from weft.cuda import cg

TABLE = np.arange(1000.0)

@cuda.jit
def table(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = TABLE[i] + math.sin(out[i]) + i / 3

@cuda.jit
def shared(out):
    static = cuda.shared.array(32, np.float64)
    dynamic = cuda.shared.array(0, np.float64)
    i = cuda.threadIdx.x
    static[i] = out[i]
    dynamic[7000 + i] = 2 * out[i]
    cuda.syncthreads()
    out[i] = static[31 - i] + dynamic[7000 + 31 - i]

@cuda.jit
def grid(out):
    cuda.atomic.add(out, 0, 1.0)
    cg.this_grid().sync()
    if cuda.grid(1) == 0:
        out[1] = out[0]

@cuda.jit(device=True)
def down(n):
    if n < 2:
        return 1.0
    return n * down(n - 1)

@cuda.jit
def deep(out):
    out[0] = down(out.size)

@cuda.jit
def prints(out):
    print("printed", out.size)

@cuda.jit
def local(out, k):
    mine = cuda.local.array(50, np.float64)
    for i in range(50):
        mine[i] = out[i % 32] * i
    out[0] = mine[k] + mine[k + 1]

@cuda.jit(max_registers=24)
def bounded(out):
    out[0] = math.lgamma(out[1] + 0.5)

@cuda.jit
def raises(out, k):
    view = out[:k]
    out[:16] = view

for kernel, blocks, dynamic, args in (
    (table, 1, 0, ()), (shared, 1, 8 * 8000, ()), (grid, 4, 0, ()), (deep, 1, 0, ()), (prints, 1, 0, ()),
    (local, 1, 0, (3,)), (bounded, 1, 0, ()), (raises, 1, 0, (5,)),
):
    out = np.arange(32.0) + 0.25
    try:
        kernel[blocks, 32 if kernel in (table, shared) else 1, 0, dynamic](out, *args)
        cuda.synchronize()
    except ValueError as error:
        print(error)
    [one] = kernel.overloads.values()
    print(kernel, one.shared_mem_per_block, one.const_mem_size, one.max_threads_per_block, out.tobytes().hex())
"""


def test_kernels_are_the_same_from_the_cache_and_without(tmp_path):
    file = tmp_path / "kinds.py"
    file.write_text(ALL_KINDS)

    def said(cache: str) -> str:
        shared = {"WEFT_CACHE": cache, "WEFT_CACHE_MACHINE_CODE": "1", "WEFT_CACHE_DIR": str(tmp_path / "cache")}
        shared |= {"WEFT_LOW_OCCUPANCY_WARNINGS": "0", "WEFT_WARN_ON_IMPLICIT_COPY": "0"}
        command = [sys.executable, file]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **shared})
        assert done.returncode == 0, done.stderr
        return done.stdout

    without = said("off")
    assert without.count("<weft kernel") == 8
    assert "ValueError" in without or "broadcast" in without or "shape" in without, without
    assert [said("on"), said("on")] == [without] * 2
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    kept = [path for path in files if b" cubin" in path.read_bytes()[:512]]
    # On a GPU, no entry was rejected.
    assert len(kept) == (8 if os.environ.get("WEFT_DEVICE") == "cuda" else 0)
