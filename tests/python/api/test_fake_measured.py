"""The choice of coarsening by default: the first launch compiles the kernel as written, later ones measure candidates.

Without a GPU: over the fake driver of the runtime tests. Candidates are compiled in the background, so programs wait
for them between launches.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, sys, time, warnings
sys.stderr = sys.stdout
warnings.simplefilter("always")
warnings.filterwarnings("ignore", "Grid size")
os.environ.setdefault("WEFT_CACHE", "off")

@cuda.jit
def add(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += x[i]

@cuda.jit
def product(a, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total

x, y = (cuda.to_device(np.zeros(4096, np.float32)) for _ in range(2))
a, b, c = (cuda.to_device(np.zeros((4, 4), np.float32)) for _ in range(3))
LARGE, SMALL, ODD = (8192, 128), (32, 128), (16385, 65)

def in_use(kernel):
    return kernel.explain().split("the last launch ran ")[1].splitlines()[0].replace(" ", "")

def decide(kernel, *args, shape=LARGE, stream=0):
    # Launches until the choice is made; waits for compilations.
    for launches in range(1, 5001):
        kernel[(*shape, stream)](*args)
        if launches % 50 == 0 or launches < 10:
            text = kernel.explain()
            if "being compiled" in text or "not measured yet" in text:
                time.sleep(0.05)
            elif launches > 1 and "being measured" not in text:
                return launches
    raise AssertionError(kernel.explain())
"""

FASTER = {"FAKE_TIMES": "128:9,64:6,32:3"}
SLOWER = {"FAKE_TIMES": "128:3,64:9,32:30"}


class Made:
    """The compilations and loads of a program in the foreground."""

    def __init__(self, run, tmp_path: Path, code: str, program: str = PROGRAM, **env: str) -> None:
        trace = tmp_path / "trace"
        trace.unlink(missing_ok=True)
        self.printed = run(program + textwrap.dedent(code), WEFT_TIMING="1", FAKE_TRACE=str(trace), **env)
        self.lines = [line for line in self.printed.splitlines() if line.startswith("weft: ")]
        # The text that follows the target in each line.
        self.shown = [re.sub(r"^weft: \w+\(.*\) for sm_\d+(, )?", "", line).partition(": ")[0] for line in self.lines]
        self.shown = [re.sub(r": [0-9.]+ ms$", "", shown) for shown in self.shown]
        calls = trace.read_text().split() if trace.exists() else []
        self.loads = calls.count("cuModuleLoadDataEx")
        self.launches = calls.count("cuLaunchKernel")
        self.records = calls.count("cuEventRecord")


@pytest.mark.parametrize("shape", ["LARGE", "SMALL", "ODD"])
def test_the_first_launch_compiles_the_kernel_as_written(run, tmp_path, shape):
    made = Made(run, tmp_path, f"add[{shape}](x, y)\nprint(add.explain())\n")
    assert made.shown == ["", "loaded"]
    assert "estimate" not in made.lines[0]
    assert (made.loads, made.launches, made.records) == (1, 1, 0)
    assert "when a launch that fills the GPU twice is repeated" in made.printed


def test_small_launches_are_never_measured(run, tmp_path):
    made = Made(run, tmp_path, "for _ in range(50):\n    add[SMALL](x, y)\ntime.sleep(0.3)\nadd[SMALL](x, y)\n")
    assert (made.loads, made.launches, made.records) == (1, 51, 0)


def test_a_faster_candidate_is_used(run, tmp_path):
    code = "launches = decide(add, x, y)\nprint(in_use(add))\nprint(add.explain(), launches)\n"
    made = Made(run, tmp_path, code, **FASTER)
    assert made.printed.splitlines()[-1].split()[-1].isdigit()
    assert "coarsen=4\n" in made.printed
    assert "coarsen=4 is used" in made.printed
    assert "median of 4 launches" in made.printed
    assert made.records <= 64
    # Nothing is compiled or printed in the foreground for candidates.
    assert made.shown == ["", "loaded"]


def test_slower_candidates_cost_little(run, tmp_path):
    code = "launches = decide(add, x, y)\nprint(in_use(add), launches)\nprint(add.explain())\n"
    made = Made(run, tmp_path, code, **SLOWER)
    assert "coarsen=1 " in made.printed
    assert "coarsen=1 is used" in made.printed
    assert "coarsen=4: 31" in made.printed
    assert ", slower" in made.printed
    # Most of the launches while it is measured are not timed.
    assert made.records < made.launches / 4


def test_nothing_is_measured_once_the_choice_is_made(run, tmp_path):
    code = """
    decide(add, x, y)
    trace = os.environ["FAKE_TRACE"]
    before = open(trace).read().split()
    for _ in range(100):
        add[LARGE](x, y)
    new = open(trace).read().split()[len(before):]
    assert set(new) <= {"cuLaunchKernel", "cuCtxSetCurrent", "cuCtxGetCurrent", "cuCtxPushCurrent_v2"}, set(new)
    """
    Made(run, tmp_path, code, **FASTER)


def test_launch_shapes_are_measured_one_by_one(run, tmp_path):
    code = """
    decide(add, x, y)
    decide(add, x, y, shape=(32768, 128))
    print(in_use(add))
    decide(add, x, y, shape=ODD)
    print(in_use(add))
    add[LARGE](x, y)
    print(in_use(add))
    print(add.explain())
    """
    made = Made(run, tmp_path, code, **FASTER)
    assert re.findall(r"^coarsen=\d$", made.printed, re.M) == ["coarsen=4", "coarsen=1", "coarsen=4"]
    assert "at least 2^13 blocks" in made.printed
    assert "at least 2^15 blocks" in made.printed


def test_merged_blocks_and_barriers_are_nominated(run, tmp_path):
    code = """
    decide(product, a, b, c, shape=((64, 64), (16, 16)))
    print(product.explain())
    """
    made = Made(run, tmp_path, code, FAKE_TIMES="256:9,128:8,64:3")
    assert "coarsen_blocks=" in made.printed
    assert re.search(r"coarsen=\(\d, \d\) is used", made.printed)


def test_the_next_process_starts_with_the_choice(run, tmp_path):
    cached = {"WEFT_CACHE": "on", "WEFT_CACHE_DIR": str(tmp_path / "cache"), **FASTER}
    cold = Made(run, tmp_path, "decide(add, x, y)\nprint(in_use(add))\n", **cached)
    assert cold.printed.endswith("coarsen=4\n")
    warm = Made(run, tmp_path, "add[LARGE](x, y)\nprint(in_use(add))\nprint(add.explain(), add.stats)\n", **cached)
    assert "\ncoarsen=4\n" in warm.printed
    assert "measured by another process" in warm.printed
    # The kernel as written is not loaded.
    assert (warm.loads, warm.launches, warm.records) == (1, 1, 0)
    assert all(shown.endswith("cached") for shown in warm.shown)
    assert "cache_misses=Counter()" in warm.printed
    # A launch that the factors do not divide loads it.
    odd = Made(run, tmp_path, "add[ODD](x, y)\nadd[LARGE](x, y)\n", **cached)
    assert odd.loads == 2
    # A damaged entry is ignored.
    for file in (tmp_path / "cache").glob("?/*"):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    damaged = Made(run, tmp_path, "add[LARGE](x, y)\nprint(add.explain())\n", **cached)
    assert "measured by another process" not in damaged.printed


def test_that_no_candidate_is_faster_is_kept_too(run, tmp_path):
    cached = {"WEFT_CACHE": "on", "WEFT_CACHE_DIR": str(tmp_path / "cache"), **SLOWER}
    Made(run, tmp_path, "decide(add, x, y)\n", **cached)
    warm = Made(run, tmp_path, "for _ in range(50):\n    add[LARGE](x, y)\nprint(add.explain())\n", **cached)
    assert "coarsen=1 is used, measured by another process" in warm.printed
    assert (warm.loads, warm.records) == (1, 0)


@pytest.mark.parametrize(
    ("decorator", "env"),
    [
        ("(coarsen=1)", {}),
        ("", {"WEFT_COARSEN": "off"}),
        ("", {"WEFT_COARSEN": "kernel"}),
        ("", {"WEFT_REPRODUCIBLE": "1"}),
        ("(debug=True, opt=False)", {}),
        ("(opt=False)", {}),
    ],
)
def test_what_is_never_measured(run, tmp_path, decorator, env):
    program = PROGRAM.replace("@cuda.jit\ndef add", f"@cuda.jit{decorator}\ndef add")
    code = "for _ in range(30):\n    add[LARGE](x, y)\ntime.sleep(0.3)\nadd[LARGE](x, y)\nprint(add.explain())\n"
    made = Made(run, tmp_path, code, program, **FASTER, **env)
    assert (made.loads, made.records) == (1, 0)
    assert "threads are not coarsened" in made.printed


def test_automatic_coarsening_by_the_decorator(run, tmp_path):
    program = PROGRAM.replace("@cuda.jit\ndef add", '@cuda.jit(coarsen="auto")\ndef add')
    for env in ({}, {"WEFT_COARSEN": "kernel"}):
        made = Made(run, tmp_path, "decide(add, x, y)\nprint(in_use(add))\n", program, **FASTER, **env)
        assert made.printed.endswith("coarsen=4\n")


def test_captured_recorded_and_prepared_launches(run, tmp_path):
    code = """
    for _ in range(2):
        with cuda.graph() as graph:
            add[LARGE](x, y)
        graph.launch()
    prepared = add[LARGE].prepare(x, y)
    prepared()
    print("before", in_use(add) if "last launch ran" in add.explain() else "coarsen=1")
    decide(add, x, y)
    with cuda.graph() as graph:
        add[LARGE](x, y)
    graph.launch()
    print("after", in_use(add))
    add[SMALL](x, y)
    add[LARGE].prepare(x, y)()
    print("after", in_use(add))
    """
    made = Made(run, tmp_path, code, **FASTER)
    assert "before coarsen=1\n" in made.printed
    assert made.printed.count("after coarsen=4\n") == 2


def test_launches_with_other_assumptions_do_not_wait_for_a_candidate(run, tmp_path):
    code = """
    decide(add, x, y)
    assert in_use(add) == "coarsen=4"
    compiled = len(add.explain().splitlines())
    add[LARGE](x, x)
    print("first")
    for _ in range(200):
        add[LARGE](x, x)
        time.sleep(0.005)
    """
    made = Made(run, tmp_path, code, **FASTER)
    # The first launch compiles the variant of the kernel as written.
    before, _, after = made.printed.partition("first\n")
    assert before.count("weft: ") == 3
    assert "threads in one" not in before
    assert "weft: " not in after


def test_threads_measure_together(run, tmp_path):
    code = """
    import threading
    def work(shape):
        stream = cuda.stream()
        for _ in range(40):
            add[(*shape, stream)](x, y)
            time.sleep(0.01)
    threads = [threading.Thread(target=work, args=(shape,)) for shape in (LARGE, SMALL, ODD) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decide(add, x, y)
    print(in_use(add))
    """
    made = Made(run, tmp_path, code, **FASTER)
    assert made.printed.endswith("coarsen=4\n")


def test_each_device_measures_for_itself(run, tmp_path):
    code = """
    decide(add, x, y)
    with cuda.gpus[1]:
        x1, y1 = (cuda.to_device(np.zeros(4096, np.float32)) for _ in range(2))
        add[LARGE](x1, y1)
        print(add.explain().count("not measured yet"))
        decide(add, x1, y1)
    print(add.explain().count("coarsen=4 is used"))
    """
    made = Made(run, tmp_path, code, FAKE_DEVICES="2", **FASTER)
    assert made.printed.endswith("1\n2\n"), made.printed


def test_a_process_ends_while_candidates_are_compiled(run, tmp_path):
    functions = "".join(
        f"@cuda.jit\ndef k{n}(a, b, c):\n    j, i = cuda.grid(2)\n    if i < c.shape[0] and j < c.shape[1]:\n"
        f"        total = np.float32({n})\n        for k in range(a.shape[1]):\n"
        "            total += math.exp(a[i, k]) * math.sin(b[k, j])\n        c[i, j] = total\n"
        for n in range(4)
    )
    launches = "".join(f"for _ in range(3):\n    k{n}[(64, 64), (16, 16)](a, b, c)\n" for n in range(4))
    made = Made(run, tmp_path, "print('end')\n", PROGRAM + "import math\n" + functions + launches)
    assert made.printed.endswith("end\n")


def test_a_fork_while_candidates_are_compiled(run, tmp_path):
    code = """
    for _ in range(3):
        product[(64, 64), (16, 16)](a, b, c)
    for _ in range(5):
        if (child := os.fork()) == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    decide(product, a, b, c, shape=((64, 64), (16, 16)))
    print("decided")
    """
    assert Made(run, tmp_path, code, FAKE_TIMES="256:9,128:8,64:3").printed.endswith("decided\n")


def test_what_is_compiled_by_hand_has_code(run, tmp_path):
    code = "add.compile('(float32[::1], float32[::1])')\nprint('compiled')\nadd[SMALL](x, y)\n"
    made = Made(run, tmp_path, code)
    assert made.shown == ["", "loaded"]
    assert "weft: " not in made.printed.split("compiled\n")[1]
    program = PROGRAM.replace("@cuda.jit\ndef add", "@cuda.jit('(float32[::1], float32[::1])')\ndef add")
    assert Made(run, tmp_path, "", program).loads == 1


def test_inspected_code_is_that_of_the_variant_in_use(run, tmp_path):
    code = """
    before = list(add.inspect_asm((cuda.float32[::1],) * 2).splitlines())
    add[SMALL](x, y)
    (compiled,) = add.overloads.values()
    assert compiled.code.decode().splitlines() == before == compiled.inspect_asm().splitlines()
    assert list(add.inspect_asm().values())[0].splitlines() == before
    decide(add, x, y)
    (text,) = add.inspect_asm().values()
    assert text.splitlines() != before and "ld.global" in text
    assert all(add.inspect_llvm().values())
    """
    Made(run, tmp_path, code, **FASTER)


def test_warnings_are_issued_once(run, tmp_path):
    program = PROGRAM.replace("y[i] += x[i]", "y[i] += x[i]\n        z = x[i] * 1.0\n        y[i] = z")
    made = Made(run, tmp_path, "decide(add, x, y)\n", program, WEFT_WARN_WIDENING="1", **FASTER)
    assert made.printed.count("CompileWarning") == 1
