"""Shows by kind what the kernels of a set contain, in weft and in CUDA C++: integers, floats, loads by width, branches.

The machine code is made without a GPU: weft's PTX by ptxas, the CUDA C++ kernel by NVRTC, both read by nvdisasm
(``sass.py``). These are counts of the static code, not of executed instructions: a loop that is unrolled four times
counts four times, and ``--details`` has each innermost loop for itself. ``--counters`` reads from Nsight Compute (ncu)
how often each instruction is executed, which needs a GPU, CuPy, and the right to read its counters.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sass
import tables
from kernels import SETS
from suite.backends import restricted
from suite.faults import brief
from tables import NUMPY_TYPING

if TYPE_CHECKING:
    from suite import Case

PARTS = {"all": "all of the code", "loops": "of it in loops"}
EXECUTED = "executed by warps"
TOOLS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
"""The programs, and the packages of PyPI that have them."""


def implementations(options: argparse.Namespace) -> tuple[str, str]:
    return (NUMPY_TYPING if options.numpy_typing else "weft", "C++")


class MissingError(Exception):
    """A required program or library is missing."""


def in_packages(pattern: str) -> list[Path]:
    """Files of NVIDIA's packages on Python's path, with the newest CUDA first."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    return sorted((path for folder in folders or () for path in Path(folder).glob(pattern)), reverse=True)


def tool(name: str) -> str:
    """The path of ptxas or nvdisasm: from PATH, or from a package; ``WEFT_PTXAS`` has precedence for ptxas."""
    named = os.environ.get("WEFT_PTXAS") if name == "ptxas" else None
    if found := named or shutil.which(name) or next(map(str, in_packages(f"*/bin/{name}")), None):
        return found
    raise MissingError(f"there is no {name}: pip install {TOOLS[name]}")


def nvrtc() -> ctypes.CDLL:
    candidates = [*map(str, in_packages("*/lib/libnvrtc.so.*")), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    for path in candidates:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise MissingError("there is no NVRTC: pip install nvidia-cuda-nvrtc")


def call(command: list[str]) -> str:
    """The output of a command. Raises ``RuntimeError`` with its error message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def weft_kernel(case: Case, name: str) -> Any:
    from weft import cuda

    return case.typed_as_numpy(cuda) if name == NUMPY_TYPING else case.make(cuda)


def weft_cubin(case: Case, name: str, target: str, path: Path) -> None:
    ptx = weft_kernel(case, name).inspect_asm(case.signature, target=target)
    path.with_suffix(".ptx").write_text(ptx, encoding="utf-8")
    call([tool("ptxas"), f"-arch={target}", "-o", str(path), str(path.with_suffix(".ptx"))])


def cpp_cubin(code: str, target: str, path: Path) -> None:
    """NVRTC's machine code, with the same options as in kernels.py."""
    library = nvrtc()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def must(result: int) -> None:
        if result:
            raise RuntimeError(f"NVRTC's error {result}")

    must(library.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"peer.cu", 0, None, None))
    try:
        options = (ctypes.c_char_p * 2)(b"-std=c++17", f"--gpu-architecture={target}".encode())
        failed = library.nvrtcCompileProgram(program, len(options), options)
        if failed:
            must(library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
            log = ctypes.create_string_buffer(size.value)
            must(library.nvrtcGetProgramLog(program, log))
            raise RuntimeError(log.value.decode())
        must(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        cubin = ctypes.create_string_buffer(size.value)
        must(library.nvrtcGetCUBIN(program, cubin))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    path.write_bytes(cubin.raw)


def contained(case: Case, name: str, target: str, restrict: bool, folder: Path) -> dict[str, Counter[str]]:
    """The counts of one implementation's machine code: in total, in loops, and in each innermost loop."""
    cubin = folder / "code.cubin"
    if name == "C++":
        cpp_cubin(restricted(case.cpp) if restrict else case.cpp, target, cubin)
    else:
        weft_cubin(case, name, target, cubin)
    bodies = sass.functions(call([tool("nvdisasm"), "-c", str(cubin)])).values()
    code = [each for body in bodies for each in body]
    parts = {"all": sass.count(code), "loops": sass.count(each for each in code if each.loop is not None)}
    for body in bodies:
        for begin in sorted({each.loop for each in body if each.innermost and each.loop is not None}):
            parts[f"loop {len(parts) - 1}"] = sass.count(each for each in body if each.loop == begin)
    return parts


def launch_once(case: Case, name: str, size: str, restrict: bool) -> None:
    """Launches one implementation once, under the profiler."""
    import cupy
    from suite.backends import Cpp, CppRestrict, Weft, WeftAsNumpy

    of_cpp = CppRestrict if restrict else Cpp
    backend = {"weft": Weft, NUMPY_TYPING: WeftAsNumpy, "C++": of_cpp}[name]
    work = case.work(size)
    args = tuple(cupy.asarray(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args)
    launch = backend(cupy, case).bind(work, args)
    launch()
    cupy.cuda.Device().synchronize()


def counted(which: str, case: Case, name: str, size: str, restrict: bool) -> Counter[str]:
    """The number of executions by warps of each kind, from the profiler."""
    if not (ncu := shutil.which("ncu")):
        raise MissingError("there is no ncu on PATH: it comes with CUDA and Nsight Compute")
    function = "peer" if name == "C++" else weft_kernel(case, name).py_func.__name__
    command = [ncu, "--section", "SourceCounters", "--page", "source", "--csv", "--kernel-name", f"regex:{function}",
               sys.executable, __file__, "--set", which, "--sizes", size, "--child", name, case.name]  # fmt: skip
    return sass.executed(call([*command, *(["--restrict"] if restrict else [])]))


def attempt(make: Any) -> Any:
    """The result of `make`, or one line about its error."""
    try:
        return make()
    except MissingError as reason:
        return str(reason)
    except Exception as fault:
        return brief(fault)


def gathered(case: Case, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The counts of each implementation by part, or the reason why there are none."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in implementations(options):
            parts = attempt(lambda name=name: contained(case, name, options.target, options.restrict, Path(folder)))
            found[name] = parts if isinstance(parts, dict) else dict.fromkeys(PARTS, parts)
            if options.counters:
                found[name]["executed"] = attempt(
                    lambda name=name: counted(options.set, case, name, options.sizes, options.restrict)
                )
    return found


def cell(counts: Counter[str] | str, *kinds: str) -> str:
    """The number of instructions of these kinds; a dash if it is unknown."""
    return "-" if isinstance(counts, str) else f"{sum(counts[each] for each in kinds) or 0}"


def of_memory(name: str, *words: str) -> bool:
    return name.startswith(("load", "store")) and any(word in name for word in words)


GROUPS = {
    "all": lambda _: True,
    **{name: (lambda each, name=name: each == name)
       for name in (sass.INTEGER64, sass.INTEGER32, sass.FLOAT32, sass.FLOAT64, sass.SPECIAL, sass.CONVERSION)},
    "global memory": lambda name: of_memory(name, "global", "generic"),
    "shared": lambda name: of_memory(name, "shared"),
    "branches": lambda name: name == sass.BRANCH,
}  # fmt: skip
"""The columns of the overview, and which kinds they count."""


def overview(case: Case, found: dict[str, dict[str, Any]], part: str) -> str:
    """One line: weft / C++ of each group."""
    counts = [counts[part] for counts in found.values()]
    if any(isinstance(each, str) for each in counts) and not any(isinstance(each, Counter) for each in counts):
        return tables.line(case.name, counts[0], *[""] * (len(GROUPS) - 1))
    cells = (
        " / ".join(cell(each, *(filter(has, each) if isinstance(each, Counter) else ())) for each in counts)
        for has in GROUPS.values()
    )
    return tables.line(case.name, *cells)


def details(case: Case, found: dict[str, dict[str, Any]], parts: tuple[str, ...]) -> str:
    """A table of all kinds that occur in one of the implementations."""
    columns = [(name, part, found[name][part]) for part in parts for name in found]
    kinds = sorted({kind for *_, counts in columns if isinstance(counts, Counter) for kind in counts}, key=sass.rank)
    text = [f"\n### {case.name}\n", tables.head("kind", *(f"{name}, {part}" for name, part, _ in columns))]
    text += [tables.line(kind, *(cell(counts, kind) for *_, counts in columns)) for kind in kinds]
    text.append(tables.line("sum", *(cell(counts, *kinds) for *_, counts in columns)))
    text += ["\nInnermost loops in the order of the code:\n", tables.head("loop", *GROUPS)]
    for name, by_part in found.items():
        for part, counts in by_part.items():
            if part.startswith("loop "):
                cells = (cell(counts, *filter(has, counts)) for has in GROUPS.values())
                text.append(tables.line(f"{name}, {part}", *cells))
    text += [f"\n{name}, {part}: {reason}" for name, part, reason in columns if isinstance(reason, str)]
    return "\n".join(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=tuple(SETS), default="first", help="the folder whose kernels are counted")
    parser.add_argument("--only", help="the kernels whose names contain this")
    parser.add_argument("--target", default="sm_90", help="the GPU whose machine code is made")
    parser.add_argument("--restrict", action="store_true", help="C++ with __restrict__ at each pointer")
    parser.add_argument(
        "--numpy-typing", action="store_true", help='of weft, the kernels with typing="numpy", if wider'
    )
    parser.add_argument("--details", action="store_true", help="a table of all kinds for each kernel")
    parser.add_argument("--counters", action="store_true", help="what is executed, too, by ncu on this GPU")
    parser.add_argument("--sizes", choices=("full", "tiny"), default="full", help="what --counters launches")
    parser.add_argument("--child", nargs=2, metavar=("IMPLEMENTATION", "KERNEL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, kernel = options.child
        launch_once(next(case for case in SETS[options.set] if case.name == kernel), name, options.sizes,
                    options.restrict)  # fmt: skip
        return 0
    cases = [case for case in SETS[options.set] if not options.only or options.only in case.name]
    if options.numpy_typing:
        cases = [case for case in cases if case.wider]
    if not cases:
        parser.error(f"--only: no kernel of the {options.set} set has {options.only!r} in its name")
    results = {case.name: gathered(case, options) for case in cases}
    parts = (*PARTS, *(("executed",) if options.counters else ()))
    for part in parts:
        print(f"Instructions for {options.target}, {PARTS.get(part, EXECUTED)}: weft / C++\n")
        print(tables.head("kernel", *GROUPS))
        for case in cases:
            print(overview(case, results[case.name], part))
        print()
    if options.details:
        for case in cases:
            print(details(case, results[case.name], parts))
    reasons = {
        f"{name}: {counts}"
        for found in results.values()
        for name, by_part in found.items()
        for counts in by_part.values()
        if isinstance(counts, str)
    }
    for reason in sorted(reasons):
        print(f"missing: {reason}", file=sys.stderr)
    if out := os.environ.get("OUT"):
        name = "instructions" if options.set == "first" else f"instructions-{options.set}"
        figures = {"target": options.target, "restrict": options.restrict, "kernels": results}
        (Path(out) / f"{name}.json").write_text(json.dumps(figures, indent=1))
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
