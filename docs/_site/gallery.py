"""The gallery: what each program of examples/ prints and draws, its text, and the PTX of its kernels.

Each program runs on the CPU in a folder of its own, and then reports which kernels it has launched for which types.
`weft emit` compiles these from the program's file. It cannot find a kernel that a function creates; the PTX of such a
kernel comes from its `inspect_asm`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = "sm_90"
# Those of examples with operations of warpgroups.
OTHER_TARGETS = {"22_warpgroup_matmul": "sm_90a", "23_warpgroup_attention": "sm_90a"}
# Titles that the name of the file does not give.
TITLES = {
    "01_saxpy": "SAXPY: a first kernel",
    "02_grey": "A color image in gray",
    "03_mandelbrot": "The Mandelbrot set",
    "04_matmul_tiled": "Tiled matrix multiplication",
    "05_reduction": "A sum over millions of numbers",
    "06_histogram": "A histogram",
    "07_stencil_blur": "A stencil that blurs",
    "08_nbody": "Gravity between bodies",
    "09_device_functions": "Device functions",
    "10_streams": "Streams",
    "11_random_pi": "π from random points",
    "12_collectives": "Collectives of a block",
    "13_dask_stencil": "A stencil on several GPUs with Dask",
    "14_mpi_monte_carlo": "Monte Carlo on several GPUs with MPI",
    "15_torch_block": "A transformer's block in PyTorch",
    "16_jax_physics": "A differential equation and attention in JAX",
    "17_matrix_tiles": "Matrix multiplication on tensor cores",
    "18_matrix_pipeline": "Matrix multiplication with asynchronous copies",
    "19_attention": "Attention on tensor cores",
    "20_fit_heat": "A simulation that is fitted to measurements",
    "21_fit_splats": "A differentiable renderer",
    "22_warpgroup_matmul": "A matrix product by warpgroups",
    "23_warpgroup_attention": "Attention by warpgroups",
    "24_int8_matmul": "A product of quantized matrices",
    "25_stencil_boxes": "A stencil with copies of boxes",
    "26_torch_layer": "A layer of PyTorch that learns",
}
NEEDS = {
    "14_mpi_monte_carlo": "mpi4py.MPI",
    "15_torch_block": "torch",
    "16_jax_physics": "jax",
    "26_torch_layer": "torch",
}
# Kernels that other processes launch than the one that is watched.
ELSEWHERE = {"13_dask_stencil": [("blur", "void(array(float32, 2d, C), array(float32, 2d, C))")]}
# Runs a program as `python program.py` does, and then writes what its kernels were compiled for.
WATCH = """
import gc, json, runpy, sys
from weft.cuda import Dispatcher

program, report = sys.argv[1:]
sys.argv = [program]
held = runpy.run_path(program, run_name="__main__")
kernels = []
for found in gc.get_objects():
    if not isinstance(found, Dispatcher) or found.device or not found.signatures:
        continue
    if found.py_func.__code__.co_filename != program:
        continue
    for types in found.signatures:
        signature = f"void({', '.join(map(str, types))})"
        # The command cannot find kernels that functions create, and adjoint kernels have more parameters.
        of_program = len(types) == found.py_func.__code__.co_argcount
        plain = of_program and found.py_func.__qualname__ == found.__name__
        asm = None if plain else found.inspect_asm(types)
        line = found.py_func.__code__.co_firstlineno
        kernels.append({"name": found.__name__, "signature": signature, "plain": plain, "asm": asm, "line": line})
kernels.sort(key=lambda kernel: kernel["line"])
with open(report, "w") as file:
    json.dump(kernels, file)
"""


def make(folder: Path, examples: Path, *, run: bool = True) -> None:
    """Write a page for each example, and one with a card for each."""
    folder.mkdir(parents=True)
    index = [
        "# Gallery\n",
        "Programs to read and to start from: each with its output, its picture if it draws one, and its kernels as PTX"
        f" for `{TARGET}`. They are the files of `examples/`. All ran on the CPU when this site was built, "
        "but for those whose page names a package that is not there.\n",
        "::::::{container} gallery\n",
    ]
    names = []
    for path in sorted(examples.glob("[0-9]*.py")):
        title, first = titled(path)
        page, printed, pictures = page_of(path, title, first, folder, run=run)
        (folder / f"{path.stem}.md").write_text(page)
        names.append(path.stem)
        shown = (
            f"[![{title}]({pictures[-1].name})]({path.stem}.md)\n"
            if pictures
            else fenced("output", printed.removeprefix(f"{path.stem}: "))
        )
        index += [":::::{container} card\n", shown, f"**[{title}]({path.stem}.md)**\n", f"{first}\n", ":::::\n"]
    index.append("::::::\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n")
    (folder / "index.md").write_text("\n".join(index))


def titled(path: Path) -> tuple[str, str]:
    """The title of an example and its first sentence."""
    if path.stem not in TITLES:
        raise SystemExit(f"{path.name} has no title: give it one in {__file__}")
    first = re.match(r'"""(.*?)(?:"""|\n\n)', path.read_text(), re.DOTALL)
    return TITLES[path.stem], " ".join(first[1].split()) if first else ""


def page_of(path: Path, title: str, first: str, folder: Path, *, run: bool) -> tuple[str, str, list[Path]]:
    """The page of an example, what the example prints, and its pictures, which are put into the folder."""
    parts = [f"# {title}\n", f"{first}\n"]
    pictures: list[Path] = []
    kernels: list[dict[str, str]] = []
    printed = f"{path.name} was not run"
    module = NEEDS.get(path.stem)
    if not run:
        parts.append("It was not run when this page was built.\n")
    elif module and (why := missing(module)):
        parts.append(f"It was not run when this page was built: {why}.\n")
    else:
        printed, kernels, pictures = ran(path, folder)
        parts += ["## What it prints\n", fenced("output", printed)]
        parts += [f"![What {path.name} draws: {picture.stem}]({picture.name})\n" for picture in pictures]
    parts += ["## The program\n", f"`examples/{path.name}`\n", fenced("python", path.read_text())]
    if kernels:
        parts.append("## PTX\n")
    for kernel in kernels:
        parts += [f"`{kernel['name']}` for `{kernel['signature']}`, {kernel['made']}:\n"]
        parts.append(fenced("ptx", kernel["ptx"]))
    return "\n".join(parts), printed, pictures


def missing(module: str) -> str | None:
    """Why a module cannot be imported, or None."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    return f"{module.partition('.')[0]} is not there" if done.returncode else None


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"````{language}\n{text.rstrip()}\n````\n"


def ran(path: Path, folder: Path) -> tuple[str, list[dict[str, str]], list[Path]]:
    """Run an example: what it prints, its kernels with their PTX, and its pictures, moved to the folder."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / path.name
        program.write_text(path.read_text())
        watch, report = Path(scratch) / "watch.py", Path(scratch) / "report.json"
        # A file, for programs start processes that import the first module again.
        watch.write_text(f"if __name__ == '__main__':\n{indented(WATCH)}\n")
        done = subprocess.run(
            [sys.executable, watch, program, report], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise SystemExit(f"{path.name} failed:\n{done.stdout}{done.stderr}")
        kernels = json.loads(report.read_text())
        for name, signature in ELSEWHERE.get(path.stem, []):
            kernels.append({"name": name, "signature": signature, "plain": True})
        for kernel in kernels:
            if kernel["plain"]:
                target = OTHER_TARGETS.get(path.stem, TARGET)
                command = ["emit", program.name, "--kernel", kernel["name"], "--sig", kernel["signature"]]
                kernel["made"] = f"by `weft emit {path.name} --kernel {kernel['name']} --sig … --target {target}`"
                kernel["ptx"] = emitted(command, scratch, target)
                if ".entry" not in kernel["ptx"]:
                    raise SystemExit(f"{path.name}: weft {' '.join(command)} gave no PTX")
            else:
                kernel["made"] = "by `inspect_asm`, for the GPU that the CPU stands for"
                kernel["ptx"] = kernel["asm"]
        pictures = []
        for picture in sorted((Path(scratch) / "out").glob("*.png")):
            pictures.append(folder / picture.name)
            pictures[-1].write_bytes(picture.read_bytes())
    return done.stdout.replace(scratch, "."), kernels, pictures


def emitted(command: list[str], scratch: str, target: str) -> str:
    """PTX by the command."""
    command = [sys.executable, "-m", "weft", *command, "--target", target]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def indented(text: str) -> str:
    """The text as the body of a block."""
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
