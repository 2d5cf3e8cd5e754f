"""Coarsening factors are estimated before code generation: a launch compiles and loads only the variant that it runs.

Without a GPU: over the fake driver of the runtime tests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, sys, warnings
sys.stderr = sys.stdout
warnings.simplefilter("always")
os.environ.setdefault("WEFT_CACHE", "off")

@cuda.jit
def add(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += x[i]

x, y = (cuda.to_device(np.zeros(4096, np.float32)) for _ in range(2))
LARGE, SMALL, ODD = (8192, 128), (32, 128), (16384, 65)
"""

# A kernel for which the estimate chooses no factor.
PLAIN = PROGRAM.replace("cuda.grid(1)", "3")


class Made:
    """The variants that a program has compiled and loaded."""

    def __init__(self, run, tmp_path: Path, program: str, code: str, **env: str) -> None:
        trace = tmp_path / "trace"
        trace.unlink(missing_ok=True)
        self.printed = run(program + code, WEFT_TIMING="1", FAKE_TRACE=str(trace), **env)
        lines = [line for line in self.printed.splitlines() if line.startswith("weft: ")]
        # The text that follows the target in each line.
        self.shown = [re.sub(r"^weft: \w+\(.*\) for sm_\d+(, )?", "", line).partition(": ")[0] for line in lines]
        self.shown = [re.sub(r": [0-9.]+ ms$", "", shown) for shown in self.shown]
        self.by_llvm = ["LLVM's passes" in line for line in lines]
        self.lines = lines
        calls = trace.read_text().split() if trace.exists() else []
        self.loads = calls.count("cuModuleLoadDataEx")
        self.launches = calls.count("cuLaunchKernel")


VARIANT = "4x1x1 threads in one, contiguous in x"


def test_a_large_launch_compiles_its_variant_alone(run, tmp_path):
    made = Made(run, tmp_path, PROGRAM, "add[LARGE](x, y)\nadd[LARGE](x, y)\nprint(add.explain())\n")
    assert made.shown == ["the estimate alone", VARIANT]
    assert made.by_llvm == [False, True]
    assert made.loads == 1
    assert made.launches == 2
    assert "estimate " in made.lines[0]
    assert "load " not in made.lines[0]
    assert "load " in made.lines[1]
    assert "no such launch was made yet" in made.printed
    assert "the last launch ran coarsen=4" in made.printed


def test_other_launches_compile_the_kernel_as_it_is_once(run, tmp_path):
    code = "for shape in (LARGE, SMALL, LARGE, ODD, SMALL):\n    add[shape](x, y)\nprint(add.explain())\n"
    made = Made(run, tmp_path, PROGRAM, code)
    assert made.shown == ["the estimate alone", VARIANT, "unspecialized"]
    assert made.by_llvm == [False, True, True]
    assert made.loads == 2
    assert made.launches == 5
    assert "no such launch was made yet" not in made.printed


def test_a_small_launch_first(run, tmp_path):
    made = Made(run, tmp_path, PROGRAM, "add[SMALL](x, y)\nprint('large')\nadd[LARGE](x, y)\n")
    small, large = made.printed.split("large\n")
    assert small.count("weft: ") == 2
    assert VARIANT in large
    assert made.shown == ["the estimate alone", "unspecialized", VARIANT]
    assert made.loads == 2


def test_a_kernel_that_is_left_alone_is_compiled_at_once(run, tmp_path):
    for shape in ("LARGE", "SMALL"):
        made = Made(run, tmp_path, PLAIN, f"add[{shape}](x, y)\n")
        assert made.shown == [""]
        assert made.by_llvm == [True]
        assert made.loads == 1


def test_a_warm_cache_reads_the_estimate_and_the_variant(run, tmp_path):
    cached = {"WEFT_CACHE": "on", "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    code = "add[LARGE](x, y)\nprint(add.stats)\n"
    cold = Made(run, tmp_path, PROGRAM, code, **cached)
    assert cold.by_llvm == [False, True]
    assert len(list((tmp_path / "cache").glob("?/*"))) == 2
    warm = Made(run, tmp_path, PROGRAM, code, **cached)
    assert warm.shown == ["the estimate alone, cached", VARIANT + ", cached"]
    assert warm.by_llvm == [False, False]
    assert warm.loads == 1
    assert not any("front end" in line for line in warm.lines)
    assert "cache_misses=Counter()" in warm.printed
    # In any order of launches.
    Made(run, tmp_path, PROGRAM, "add[SMALL](x, y)\n", **cached)
    warm = Made(run, tmp_path, PROGRAM, "add[SMALL](x, y)\nadd[LARGE](x, y)\n", **cached)
    assert warm.shown == ["the estimate alone, cached", "unspecialized, cached", VARIANT + ", cached"]
    assert not any(warm.by_llvm)
    assert len(list((tmp_path / "cache").glob("?/*"))) == 3


def test_who_compiles_by_hand_gets_code(run, tmp_path):
    code = "add.compile('(float32[::1], float32[::1])')\nprint('compiled')\nadd[SMALL](x, y)\n"
    made = Made(run, tmp_path, PROGRAM, code)
    assert made.shown == ["the estimate alone", "unspecialized"]
    assert "weft: " not in made.printed.split("compiled\n")[1]
    made = Made(run, tmp_path, PROGRAM.replace("@cuda.jit", "@cuda.jit('(float32[::1], float32[::1])')"), "")
    assert made.shown == ["the estimate alone", "unspecialized"]


def test_what_is_asked_of_the_kernel_is_of_the_kernel_as_it_is(run, tmp_path):
    asked = "add.get_regs_per_thread()", "next(iter(add.overloads.values())).regs_per_thread", "compiled.code"
    for ask in asked:
        code = f"add[LARGE](x, y)\n(compiled,) = add.overloads.values()\nprint('then', {ask})\n"
        made = Made(run, tmp_path, PROGRAM, code)
        assert made.shown == ["the estimate alone", VARIANT, "unspecialized"]
    # Results that do not need the code do not compile it.
    code = (
        "print(compiled.access, compiled.target, compiled.assumptions, compiled.coarsening_candidates, add.explain())\n"
    )
    made = Made(run, tmp_path, PROGRAM, "add[LARGE](x, y)\n(compiled,) = add.overloads.values()\n" + code)
    assert made.shown == ["the estimate alone", VARIANT]


def test_the_texts_are_those_of_the_code(run, tmp_path):
    code = """
    before = list(add.inspect_asm((cuda.float32[::1],) * 2).splitlines())
    add[SMALL](x, y)
    (compiled,) = add.overloads.values()
    assert compiled.code.decode().splitlines() == before == compiled.inspect_asm().splitlines()
    assert list(add.inspect_asm().values())[0].splitlines() == before
    add[LARGE](x, y)
    (text,) = add.inspect_asm().values()
    assert text.splitlines() != before and "ld.global" in text
    assert all(add.inspect_llvm().values())
    """
    Made(run, tmp_path, PROGRAM, code.replace("\n    ", "\n"))


def test_for_all(run, tmp_path):
    made = Made(run, tmp_path, PROGRAM, "add.forall(1 << 21)(x, y)\nprint(add.explain())\n")
    assert made.shown == ["the estimate alone", VARIANT]
    bounded = PROGRAM.replace("@cuda.jit", "@cuda.jit(launch_bounds=64)")
    made = Made(run, tmp_path, bounded, "add.forall(1 << 21)(x, y)\nprint(add.explain())\n")
    assert made.launches == 1


def test_launches_that_are_prepared_or_recorded(run, tmp_path):
    code = """
    prepared = add[LARGE].prepare(x, y)
    prepared()
    with cuda.graph() as graph:
        add[LARGE](x, y)
    graph.launch()
    graph.set_args(0, y, x)
    """
    made = Made(run, tmp_path, PROGRAM, code.replace("\n    ", "\n"))
    assert made.shown == ["the estimate alone", VARIANT]
    small = Made(run, tmp_path, PROGRAM, code.replace("\n    ", "\n").replace("LARGE", "SMALL"))
    assert small.shown == ["the estimate alone", "unspecialized"]


def test_measuring_begins_with_the_kernel_as_it_is(run, tmp_path):
    made = Made(run, tmp_path, PROGRAM.replace("@cuda.jit", "@cuda.jit(tune=True)"), "add[LARGE](x, y)\n")
    assert made.shown == ["the estimate alone", "unspecialized"]
    assert made.loads == 1


def test_launches_of_which_other_facts_hold(run, tmp_path):
    """Their variants are derived from the variant that they run."""
    code = "add[LARGE](x, y)\nadd[LARGE](x, x)\nadd[SMALL](x[1:], y[1:])\nadd[SMALL](x, y)\n"
    made = Made(run, tmp_path, PROGRAM, code)
    assert made.shown[:2] == ["the estimate alone", VARIANT]
    assert made.shown[-1] == "unspecialized"
    assert "unspecialized" not in made.shown[:-1]


def test_warnings_are_told_once(run, tmp_path):
    code = PROGRAM.replace("y[i] += x[i]", "y[i] += x[i]\n        z = x[i] * 1.0\n        y[i] = z")
    for shape in ("LARGE", "SMALL"):
        made = Made(run, tmp_path, code, f"add[{shape}](x, y)\n", WEFT_WARN_WIDENING="1")
        assert made.printed.count("CompileWarning") == 1


def test_threads_compile_it_together(run, tmp_path):
    code = """
    import threading
    def work(shape):
        stream = cuda.stream()
        for _ in range(5):
            add[(*shape, stream)](x, y)
    threads = [threading.Thread(target=work, args=(shape,)) for shape in (LARGE, SMALL, ODD) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(add.explain())
    """
    made = Made(run, tmp_path, PROGRAM, code.replace("\n    ", "\n"))
    assert made.launches == 45
    assert {shown.removesuffix(", cached") for shown in made.shown} == {"the estimate alone", VARIANT, "unspecialized"}
    # If several threads request the same code at the same time, LLVM compiles it once.
    assert sum(made.by_llvm) == 2
