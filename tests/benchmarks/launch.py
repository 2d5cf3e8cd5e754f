"""Times one launch on the host, for 0, 1, 4 and 16 arrays of several libraries, and for 256 numbers, beside C.

Launches come in batches of 512 with a synchronization between, so that the driver's queue never fills. Needs a GPU and
gcc.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from suite.faults import brief
from tables import C_LAUNCH, launch_head, launch_row

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = (0, 1, 4, 16)
NUMBERS = 256
BATCH, BATCHES = 512, 41
SOURCES = tempfile.TemporaryDirectory()


def kernels(cuda: Any) -> dict[int, Any]:
    """Kernels that write only if an array is empty, which never is the case, so that no compiler can drop
    parameters."""

    @cuda.jit
    def none():
        pass

    @cuda.jit
    def one(a):
        if a.size == 0:
            a[0] = 1

    @cuda.jit
    def four(a, b, c, d):
        if a.size + b.size + c.size + d.size == 0:
            a[0] = b[0] = c[0] = d[0] = 1

    @cuda.jit
    def sixteen(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):  # noqa: E741
        total = a.size + b.size + c.size + d.size + e.size + f.size + g.size + h.size
        if total + i.size + j.size + k.size + l.size + m.size + n.size + o.size + p.size == 0:
            a[0] = b[0] = c[0] = d[0] = e[0] = f[0] = g[0] = h[0] = 1
            i[0] = j[0] = k[0] = l[0] = m[0] = n[0] = o[0] = p[0] = 1

    return {0: none, 1: one, 4: four, 16: sixteen}


def timed(launch: Callable[[], Any], synchronize: Callable[[], Any]) -> float:
    """Nanoseconds per launch: the median over batches."""
    samples = []
    for batch in range(-3, BATCHES):
        synchronize()
        begin = time.perf_counter_ns()
        for _ in repeat(None, BATCH):
            launch()
        elapsed = time.perf_counter_ns() - begin
        if batch >= 0:
            samples.append(elapsed / BATCH)
    synchronize()
    return statistics.median(samples)


def with_c() -> dict[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "launch"
        source = Path(__file__).with_name("launch.c")
        subprocess.run(["gcc", "-O2", "-Wall", "-o", str(program), str(source), "-ldl"], check=True)
        done = subprocess.run(
            [str(program), str(BATCH), str(BATCHES)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    pairs = (line.split() for line in done.splitlines())
    return {int(count): float(elapsed) for count, elapsed in pairs}


def with_cupy() -> dict[int, float]:
    import cupy

    times = {}
    for count in COUNTS:
        parameters = ", ".join(f"float* p{i}" for i in range(count))
        body = "if (!p0) *p0 = 1;" if count else ""
        kernel = cupy.RawKernel(f'extern "C" __global__ void empty({parameters}) {{ {body} }}', "empty")
        args = tuple(cupy.zeros(16, cupy.float32) for _ in range(count))
        times[count] = timed(lambda kernel=kernel, args=args: kernel((1,), (32,), args), cupy.cuda.Device().synchronize)
    return times


def with_library(cuda: Any, *, configured: bool, array: Callable[[], Any]) -> dict[int, float]:
    """weft or numba-cuda; `configured` reuses ``kernel[1, 32]`` instead of configuring it at each launch."""
    times = {}
    for count, kernel in kernels(cuda).items():
        args = tuple(array() for _ in range(count))
        if configured:
            ready = kernel[1, 32]
            times[count] = timed(lambda ready=ready, args=args: ready(*args), cuda.synchronize)
        else:
            times[count] = timed(lambda kernel=kernel, args=args: kernel[1, 32](*args), cuda.synchronize)
    return times


def maker(cuda: Any, arrays: str) -> Callable[[], Any]:
    """A function that creates an array of the library itself, or of another library."""
    if arrays == "cupy":
        import cupy

        return lambda: cupy.zeros(16, cupy.float32)
    if arrays.startswith("torch."):
        import torch

        dtype = getattr(torch, arrays.removeprefix("torch."))
        return lambda: torch.zeros(16, dtype=dtype, device="cuda")
    if arrays == "numpy":
        return lambda: np.zeros(1024, np.float32)
    return lambda: cuda.to_device(np.zeros(16, np.float32))


def with_weft(*, configured: bool = False, arrays: str = "own") -> dict[int, float]:
    from weft import cuda

    return with_library(cuda, configured=configured, array=maker(cuda, arrays))


def prepared() -> dict[int, float]:
    from weft import cuda

    times = {}
    for count, kernel in kernels(cuda).items():
        launch = kernel[1, 32].prepare(*(cuda.to_device(np.zeros(16, np.float32)) for _ in range(count)))
        times[count] = timed(launch, cuda.synchronize)
    return times


def of_numbers(cuda: Any) -> Any:
    """A kernel with one array and this number of scalars, all of which it reads."""
    names = [f"a{number}" for number in range(NUMBERS)]
    source = f"def numbers(out, {', '.join(names)}):\n    if {' + '.join(names)} == 0.5:\n        out[0] = 1\n"
    # weft reads the source of a kernel, which must be in a file.
    file = Path(SOURCES.name) / "numbers.py"
    file.write_text(source)
    made: dict[str, Any] = {}
    exec(compile(source, file, "exec"), made)
    return cuda.jit(made["numbers"])


def with_numbers(cuda: Any, kind: Any) -> float:
    kernel = of_numbers(cuda)
    args = (cuda.to_device(np.zeros(1, np.float32)), *(kind(number) for number in range(NUMBERS)))
    return timed(lambda: kernel[1, 32](*args), cuda.synchronize)


def numbers_of(library: str, kind: Any) -> Callable[[], float]:
    return lambda: with_numbers(importlib.import_module(f"{library}.cuda"), kind)


def in_graphs() -> dict[int, float]:
    """The time per launch in a graph of 64 launches."""
    from weft import cuda

    times = {}
    for count, kernel in kernels(cuda).items():
        args = [cuda.to_device(np.zeros(16, np.float32)) for _ in range(count)]
        kernel[1, 32](*args)
        with cuda.graph() as graph:
            for _ in range(64):
                kernel[1, 32](*args)
        times[count] = timed(graph.launch, cuda.synchronize) / 64
    return times


def with_numba(*, configured: bool = False, arrays: str = "own") -> dict[int, float]:
    from numba import cuda
    from numba.core.errors import NumbaWarning

    warnings.simplefilter("ignore", NumbaWarning)  # for the grid of one block
    return with_library(cuda, configured=configured, array=maker(cuda, arrays))


ROWS: dict[str, Callable[[], dict[int, float]]] = {
    C_LAUNCH: with_c,
    "CuPy RawKernel": with_cupy,
    "weft, `kernel[1, 32](...)`": with_weft,
    "weft, configured before": lambda: with_weft(configured=True),
    "weft, prepared": prepared,
    "weft, one of 64 in a graph": in_graphs,
    "weft, CuPy's arrays": lambda: with_weft(arrays="cupy"),
    "weft, PyTorch's tensors": lambda: with_weft(arrays="torch.float32"),
    "weft, PyTorch's tensors of int64": lambda: with_weft(arrays="torch.int64"),
    "weft, NumPy's arrays of 4 KB": lambda: with_weft(arrays="numpy"),
    "numba-cuda, `kernel[1, 32](...)`": with_numba,
    "numba-cuda, configured before": lambda: with_numba(configured=True),
    "numba-cuda, CuPy's arrays": lambda: with_numba(arrays="cupy"),
    "numba-cuda, PyTorch's tensors": lambda: with_numba(arrays="torch.float32"),
}

# Compared with a call from C with the same number of parameters.
NUMBER_ROWS: dict[str, Callable[[], float]] = {
    "weft, Python's ints": numbers_of("weft", int),
    "weft, Python's floats": numbers_of("weft", float),
    "weft, `numpy.float32`": numbers_of("weft", np.float32),
    "weft, `numpy.int64`": numbers_of("weft", np.int64),
    "numba-cuda, Python's ints": numbers_of("numba", int),
}


def main() -> int:
    results: dict[str, dict[str, float] | str] = {}
    base: dict[int, float] = {}
    counts = [str(count) for count in COUNTS]
    print(f"Host time of one launch, ns (ratio to C); median of {BATCHES} batches of {BATCH}\n")
    print(launch_head(counts))
    for name, measure in ROWS.items():
        try:
            times = measure()
            base = times if name == C_LAUNCH else base
            results[name] = {str(count): times[count] for count in COUNTS}
        except Exception as fault:
            results[name] = brief(fault)
        print(launch_row(name, results[name], results[C_LAUNCH], counts), flush=True)
    numbers: dict[str, float | str] = {}
    of_c = base.get(NUMBERS)
    print(f"\n| launched with {NUMBERS} numbers by | ns |\n|---|---|")
    for name, measure_numbers in {C_LAUNCH: lambda: base[NUMBERS], **NUMBER_ROWS}.items():
        try:
            each = numbers[name] = measure_numbers()
            cell = f"{each:.0f}" + (f" ({each / of_c:.2f})" if of_c else "")
        except Exception as fault:
            cell = numbers[name] = brief(fault)
        print(f"| {name} | {cell} |", flush=True)
    if out := os.environ.get("OUT"):
        (Path(out) / "launch.json").write_text(json.dumps(results, indent=1))
        (Path(out) / "numbers.json").write_text(json.dumps(numbers, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
