"""Invalid memory accesses of kernels on the CPU end the launch with an error; other signal handlers still work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu

HEAD = """
import ctypes, mmap, os, signal, sys, threading
import numpy as np
import weft
from weft import cuda

FAR = -(1 << 40)  # 8 TiB below: above it, an address would soon be none that the processor has


@cuda.jit
def store(x, at):
    i = cuda.grid(1)
    x[i + at] = 1.0


@cuda.jit
def load(x, at, out):
    i = cuda.grid(1)
    out[i] = x[i + at]


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1.0


@cuda.jit
def in_turn(x, at, flag):
    # A loop that waits for another thread: each thread has a stack of its own.
    i = cuda.threadIdx.x
    while cuda.atomic.add(flag, 0, 0) != i:
        pass
    if i == 5:
        x[at] = 1.0
    cuda.atomic.add(flag, 0, 1)


def fails(launch, *parts):
    try:
        launch()
    except weft.LaunchError as error:
        for part in (*parts, "boundscheck=True", "WEFT_BOUNDSCHECK=1"):
            assert part in str(error), (part, str(error))
        return str(error)
    raise AssertionError("no error")


def goes_on():
    x = np.zeros(100_000)
    add_one[400, 256](x)
    assert (x == 1.0).all()
"""

RUNS = {"plain": (), "faulthandler": ("-X", "faulthandler")}


def run(program: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(HEAD + textwrap.dedent(program))
        return subprocess.run(
            [sys.executable, *options, path],
            env=os.environ | {"WEFT_DEVICE": "cpu"} | env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def passes(program: str, *options: str, **env: str) -> None:
    done = run(program, *options, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_an_index_far_out_of_bounds(options):
    passes(
        """
        x = cuda.to_device(np.zeros(8))
        out = cuda.to_device(np.zeros(8))
        for _ in range(3):
            fails(lambda: store[1, 8](x, FAR), "`store` has written to memory", "in block (0, 0, 0)", "out of bounds")
            fails(lambda: load[1, 1](x, FAR, out), "`load` has read memory", "block (0, 0, 0), thread (0, 0, 0)")
            # For a non-canonical address, the processor reports no details.
            fails(lambda: load[1, 8](x, 1 << 58, out), "`load` has read or written memory that does not exist")
            goes_on()
        """,
        *options,
    )


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_on_the_threads_of_the_pool(options):
    # All blocks except the caller's first chunk access invalid memory, so that pool threads do, too.
    passes(
        """
        @cuda.jit
        def most(x, at, seen):
            i = cuda.grid(1)
            seen[cuda.blockIdx.x] = 1
            if cuda.blockIdx.x >= 1000:
                x[i + at] = 1.0

        x = cuda.to_device(np.zeros(8))
        seen = cuda.to_device(np.zeros(100_000, np.int8))
        for _ in range(20):
            fails(lambda: most[100_000, 64](x, FAR, seen), "`most` has written to memory", "in one of the blocks")
            goes_on()
        assert any(thread.startswith("weft-cpu-") for thread in (
            open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")))
        """,
        *options,
        WEFT_CPU_THREADS="4",
    )


def test_threads_of_the_pool_wait_for_the_handler(tmp_path):
    """The first launch of a process may run on many threads before one of them has installed the handler."""
    if not (compiler := shutil.which("cc")):
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text("""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <signal.h>
        #include <unistd.h>
        typedef int install(int, const struct sigaction *, struct sigaction *);
        int sigaction(int signal, const struct sigaction *action, struct sigaction *before) {
            if (signal == SIGSEGV) usleep(30000);
            return ((install *)dlsym(RTLD_NEXT, "sigaction"))(signal, action, before);
        }
        """)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    passes(
        """
        @cuda.jit
        def most(x, at):
            if cuda.blockIdx.x >= 1000:
                x[cuda.grid(1) + at] = 1.0

        x = cuda.to_device(np.zeros(8))
        fails(lambda: most[100_000, 64](x, FAR), "`most` has written to memory")
        """,
        WEFT_CPU_THREADS="4",
        LD_PRELOAD=str(library),
    )


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_on_a_stack_of_the_threads_own(options):
    passes(
        """
        x = cuda.to_device(np.zeros(8))
        for _ in range(3):
            flag = cuda.to_device(np.zeros(1, np.int32))
            fails(lambda: in_turn[1, 8](x, FAR, flag), "`in_turn` has written", "in block (0, 0, 0), thread (5, 0, 0)")
            assert flag.copy_to_host()[0] == 5
            goes_on()
            flag = cuda.to_device(np.zeros(1, np.int32))
            in_turn[1, 8](x, 3, flag)
            assert flag.copy_to_host()[0] == 8
        assert x.copy_to_host()[3] == 1.0
        """,
        *options,
    )


def test_null_pointers():
    passes(
        """
        from weft.cuda import types

        @cuda.jit("void(CPointer(float64), float64[:])")
        def through(pointer, out):
            out[0] = pointer[1]

        out = np.zeros(1)
        value = (ctypes.c_double * 2)(3.0, 4.0)
        through[1, 1](ctypes.addressof(value), out)
        assert out[0] == 4.0
        fails(lambda: through[1, 1](0, out), "`through` has read memory", "a null pointer (address 0x8)", "is null")
        goes_on()
        """
    )


def test_memory_that_may_only_be_read():
    passes(
        """
        pages = mmap.mmap(-1, 1 << 16, prot=mmap.PROT_READ)
        address = np.frombuffer(pages, np.float64).ctypes.data
        x = np.zeros(8)

        @cuda.jit("void(CPointer(float64))")
        def write(pointer):
            pointer[0] = 1.0

        fails(lambda: write[1, 1](address), "`write` has written to read-only memory", hex(address))
        goes_on()
        """
    )


def test_a_file_that_has_become_shorter(tmp_path):
    passes(
        f"""
        path = {str(tmp_path / "mapped")!r}
        np.zeros(1 << 16).tofile(path)
        mapped = np.memmap(path, np.float64, "r+")

        @cuda.jit("void(CPointer(float64), float64[:])")
        def read(pointer, out):
            out[0] = pointer[1 << 15]

        os.truncate(path, 4096)
        fails(lambda: read[1, 1](mapped.ctypes.data, np.zeros(1)), "memory of a file that was truncated")
        goes_on()
        """
    )


def test_recursion_without_an_end():
    passes(
        """
        @cuda.jit(device=True)
        def deeper(x, n):
            if n == -1:
                return 1
            return (deeper(x, n + 1) ^ x[n % x.size]) * 3 + n

        @cuda.jit
        def endless(x, out):
            out[cuda.grid(1)] = deeper(x, 0)

        x = np.arange(1, 8)
        for strategy in range(2):
            try:
                endless[2, 8](x, np.zeros(16, np.int64))
            except weft.LaunchError as error:
                assert "the calls of `endless` go deeper than the stack of a thread" in str(error)
            else:
                raise AssertionError
        goes_on()
        """
    )


def test_in_threads_of_python_and_in_a_fork():
    passes(
        """
        x = cuda.to_device(np.zeros(8))
        failed = []

        def work():
            try:
                for _ in range(20):
                    fails(lambda: store[1, 8](x, FAR), "`store`")
            except BaseException as error:
                failed.append(error)

        for _ in range(3):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not failed, failed
        # Python 3.12 and newer warn of it.
        __import__("warnings").simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            work()
            goes_on()
            os._exit(bool(failed))
        assert os.waitpid(child, 0)[1] == 0
        goes_on()
        """
    )


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_faults_elsewhere_end_the_process_as_before(options):
    done = run(
        """
        fails(lambda: store[1, 8](cuda.to_device(np.zeros(8)), FAR), "`store`")
        print("before", flush=True)
        ctypes.string_at(8)
        """,
        *options,
    )
    assert done.returncode == -11
    assert done.stdout == "before\n"
    assert ("Fatal Python error: Segmentation fault" in done.stderr) == bool(options)
    assert "weft" not in done.stderr.partition("Fatal")[0]


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_signals_that_are_sent_end_the_process_as_before(options):
    done = run("goes_on()\nos.kill(os.getpid(), signal.SIGSEGV)", *options)
    assert done.returncode == -11
    assert ("Fatal Python error: Segmentation fault" in done.stderr) == bool(options)


def test_a_handler_of_the_programs_gets_what_is_sent():
    passes(
        """
        got = []
        signal.signal(signal.SIGSEGV, lambda number, frame: got.append(number))
        goes_on()
        os.kill(os.getpid(), signal.SIGSEGV)
        assert got == [signal.SIGSEGV]
        fails(lambda: store[1, 8](cuda.to_device(np.zeros(8)), FAR), "`store`")
        assert got == [signal.SIGSEGV]
        """
    )


def test_nothing_is_installed_before_a_launch():
    passes(
        """
        def caught():
            lines = dict(line.split(":") for line in open("/proc/self/status") if ":" in line and "Sig" in line)
            return int(lines["SigCgt"], 16) >> (signal.SIGSEGV - 1) & 1

        x = cuda.to_device(np.zeros(8))
        assert not caught()
        add_one[1, 8](x)
        assert caught()
        """
    )


def test_a_fault_where_a_kernel_has_called_back_names_the_kernel():
    """A signal handler that runs during a launch is the program's code: an invalid access in it is not handled."""
    done = run(
        """
        @cuda.jit("void(int32[::1])")  # compiled before the alarm is set
        def endless(flag):
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass

        flag = cuda.to_device(np.zeros(1, np.int32))
        signal.signal(signal.SIGALRM, lambda number, frame: ctypes.string_at(8))
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        endless[1, 1](flag)
        """,
        WEFT_CPU_STRATEGY="loops",
    )
    assert done.returncode == -11
    assert "weft: SIGSEGV outside the code of the kernel `endless`" in done.stderr


def test_a_launch_in_the_handler_of_a_signal_may_be_wild():
    for strategy in ("loops", "fibers"):
        passes(
            """
            @cuda.jit
            def endless(flag):
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass

            x = cuda.to_device(np.zeros(8))
            flag = cuda.to_device(np.zeros(1, np.int32))
            seen = []

            def handler(number, frame):
                seen.append(fails(lambda: store[1, 8](x, FAR), "`store`"))
                other = cuda.to_device(np.zeros(1, np.int32))
                seen.append(fails(lambda: in_turn[1, 8](x, FAR, other), "`in_turn`"))
                raise KeyboardInterrupt

            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                endless[1, 1](flag)
            except KeyboardInterrupt:
                seen.append("interrupted")
            assert len(seen) == 3
            fails(lambda: store[1, 8](x, FAR), "`store`")
            goes_on()
            """,
            WEFT_CPU_STRATEGY=strategy,
        )


def test_bounds_of_a_whole_program():
    """`WEFT_BOUNDSCHECK` is the default of `boundscheck`, and the program may change it."""
    program = """
    def outcome(kernel, *args):
        try:
            kernel[1, 8](*args)
            cuda.synchronize()
        except (IndexError, weft.LaunchError) as error:
            return type(error).__name__, "line" in str(getattr(error, "__notes__", ""))
        return None

    @cuda.jit(boundscheck=False)
    def unchecked(x, at):
        x[cuda.grid(1) + at] = 1.0

    @cuda.jit(device=True)
    def put(x, i):
        x[i] = 1.0

    @cuda.jit
    def through_a_function(x, at):
        put(x, cuda.grid(1) + at)

    x = cuda.to_device(np.zeros(16))
    from weft import config
    print(outcome(store, x, FAR), outcome(store, x, 12), outcome(through_a_function, x, 12), outcome(unchecked, x, FAR))
    config.BOUNDSCHECK = 1 - config.BOUNDSCHECK
    later = cuda.jit(store.py_func)
    print(outcome(later, x, FAR))
    """
    checked, wild = "('IndexError', True)", "('LaunchError', False)"
    done = run(program, WEFT_BOUNDSCHECK="1")
    assert done.stdout == f"{checked} {checked} {checked} {wild}\n{wild}\n", done.stdout + done.stderr
    done = run(program.replace("outcome(store, x, 12), outcome(through_a_function, x, 12), ", ""))
    assert done.stdout == f"{wild} {wild}\n{checked}\n", done.stdout + done.stderr
