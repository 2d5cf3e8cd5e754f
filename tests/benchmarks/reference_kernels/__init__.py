"""The reference kernels for the CPU: in C with OpenMP (``*.c``), and as plain loops for Numba (``*.py``).

A reference kernel has the kernel's arguments in its order. It uses the same algorithm, but is written as CPU code:
loops over data in memory order instead of threads, separate loops for the boundary of an image, short rows or blocks
that fit a cache, per-thread sums that are added at the end. There are no intrinsics and no hand-written vectors, but
``omp simd`` where gcc would not vectorize by itself.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from fourth import TWINS as FOURTH
from fourth.surveys import BOUNDS
from kinds import TWINS as KINDS
from kinds.diagonals import SCORES
from kinds.images import GAUSS, LAPLACE
from second.hashing import CRC_TABLE
from second.images import FILTER, WEIGHTS, initializer
from third import TWINS as THIRD
from third.filters import MASK, TAPS
from third.transforms import ROUNDS, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from suite import Case, Work

FOLDER = Path(__file__).parent
TARGET_CPU = os.environ.get("WEFT_HOST_CPU", "native")
"""All compilers generate code for this CPU: what one may not use, its peers do not use either."""
FLAGS = ("-O3", f"-march={TARGET_CPU}", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
"""A product and a sum may be contracted, as on both of weft's devices; `errno` and floating-point exceptions are not
used. The order of sums is that of the source, except in loops marked with a reduction."""
if "WEFT_HOST_CPU" in os.environ:
    # Numba adds the features of the machine to those of the name, unless it is given others.
    os.environ.update(NUMBA_CPU_NAME=TARGET_CPU, NUMBA_CPU_FEATURES="")

NAMES = {  # of suite/, then of second/; those of the other sets are added in their packages
    "saxpy, one element a thread": "saxpy.saxpy",
    "saxpy, grid-stride": "saxpy.saxpy",
    "grey, planar": "pixels.grey_planar",
    "grey, interleaved": "pixels.grey_interleaved",
    "matmul, naive": "linear.matmul",
    "matmul, 16x16 tiles": "linear.matmul_tiled",
    "matmul, 32x32 tiles": "linear.matmul_tiled",
    "transpose": "linear.transpose",
    "sum": "reduction.sum",
    "histogram, 256 bins": "reduction.histogram",
    "stencil, 5 points": "grid.stencil",
    "mandelbrot": "grid.mandelbrot",
    "Black-Scholes": "finance.black_scholes",
    "n-body": "nbody.nbody",
    "softmax of rows": "softmax.softmax",
    "search by absolute differences": "bytewise.sad",
    "blur of interleaved bytes": "bytewise.blur",
    "Sobel of bytes": "bytewise.sobel",
    "game of life": "bytewise.life",
    "convolution, 7x7": "images.convolution",
    "convolution of rows, 17 wide": "images.rows_pass",
    "rotation, bilinear": "images.rotate",
    "heat in shared tiles": "lattice.heat",
    "lattice Boltzmann, D2Q9": "lattice.boltzmann",
    "stencil, 7 points of float64": "lattice.stencil3d",
    "matmul of int32, naive": "dense.int_matmul",
    "matrix by vector, a block a row": "dense.matvec",
    "Jacobi, a thread a row": "dense.jacobi",
    "inverses, 3x3": "dense.inverse",
    "LU, 16x16 in a block": "dense.lu",
    "Floyd-Warshall, one step": "dense.floyd",
    "sparse by vector, a thread a row": "graph.spmv",
    "sparse by vector, a warp a row": "graph.spmv_long",
    "BFS, one step": "graph.bfs",
    "scan after Hillis and Steele": "scans.inclusive_sums",
    "scan after Blelloch": "scans.exclusive_sums",
    "compaction in blocks": "scans.compact",
    "bitonic sort, one step": "scans.bitonic",
    "pathfinder": "dynamic.pathfinder",
    "Needleman-Wunsch, a block a pair": "dynamic.alignment",
    "edit distance by anti-diagonals": "dynamic.edit_distance",
    "pi by a xorshift": "random_numbers.pi",
    "random walks by a linear congruence": "random_numbers.walk",
    "k-means, nearest center": "vectors.assign",
    "rays against spheres": "vectors.rays",
    "Julia's set": "vectors.julia",
    "FFT of 256 points in a block": "signals.fft",
    "histogram of the plane, 32x32": "signals.histogram2d",
    "hash table, inserting": "hashing.insert",
    "CRC-32 of messages": "hashing.crc32",
    **THIRD,
    **FOURTH,
    **KINDS,
}
"""The file and the function of the reference kernels of each kernel."""
IN_C_ALONE = {*THIRD, *KINDS, "residual and RMS norm of float16"}
"""The kernels without a reference for Numba, which has no float16 on the CPU."""
COUNTED = {
    "matvec", "lu", "exclusive_sums", "alignment", "edit_distance", "fft", "softmax", "odd_even", "bitonic_block",
    "segmented", "gram_schmidt", "local_alignment", "warping", "add_rms_norm", "lift", "affine_gaps",
    "batch_components", "cyclic_reduction",
}  # fmt: skip
"""The functions with the number of blocks as an argument after the extents, which do not imply it."""
C_TYPES = {
    "u1": ctypes.c_uint8, "i4": ctypes.c_int32, "u4": ctypes.c_uint32, "f4": ctypes.c_float, "f8": ctypes.c_double,
}  # fmt: skip


def whole(values: np.ndarray) -> str:
    """The values of uint32 as the initializer of a C array."""
    return "{" + ", ".join(f"{value}u" for value in values) + "}"


def signed(values: Any) -> str:
    """The values of int32 as the initializer of a C array."""
    return "{" + ", ".join(map(str, np.ravel(values))) + "}"


class C:
    """The functions of the kernels' C files, compiled by gcc into a folder, which outlives them.

    Raises ``FileNotFoundError`` if there is no gcc, and ``ValueError`` if it rejects its flags.
    """

    def __init__(self, folder: str, kernels: Iterable[str], flags: tuple[str, ...] = FLAGS) -> None:
        if not (gcc := shutil.which("gcc")):
            raise FileNotFoundError("no gcc here")
        told = subprocess.run([gcc, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = told.splitlines()[0].split()[-1]
        constants = (
            f"static const float FILTER[49] = {initializer(FILTER)};\n"
            f"static const float WEIGHTS[17] = {initializer(WEIGHTS)};\n"
            f"static const float MASK[49] = {initializer(MASK)};\n"
            f"static const float TAPS[17] = {initializer(TAPS)};\n"
            f"static const float BOUNDS[21] = {initializer(BOUNDS)};\n"
            f"static const float GAUSS[49] = {initializer(GAUSS)};\n"
            f"static const int LAPLACE[49] = {signed(LAPLACE)};\n"
            f"static const int NUCLEOTIDES[16] = {signed(SCORES)};\n"
            f"static const unsigned int CRC_TABLE[256] = {whole(CRC_TABLE)};\n"
            f"static const unsigned int SHA_ROUNDS[64] = {whole(ROUNDS)};\n"
            f"static const unsigned int SHA_START[8] = {whole(START)};\n"
        )
        (Path(folder) / "constants.h").write_text(constants, encoding="utf-8")
        library = Path(folder) / "reference_kernels.so"
        command = [gcc, "-std=gnu11", "-fopenmp", "-shared", "-fPIC", f"-I{folder}", *flags]
        sources = [str(FOLDER / f"{file}.c") for file in sorted({NAMES[name].split(".")[0] for name in kernels})]
        done = subprocess.run(
            [*command, "-o", str(library), *sources, "-lm"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ValueError(f"gcc {' '.join(flags)} does not compile the reference kernels:\n{done.stderr}")
        self.library = ctypes.CDLL(str(library))

    def bind(self, case: Case, work: Work, args: tuple[Any, ...]) -> Callable[[], None]:
        name = NAMES[case.name].split(".")[1]
        function = self.library[name]  # not an attribute: that would be one function for all kernels that have it
        function.restype = None
        given: list[Any] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                given.append(ctypes.c_void_p(arg.ctypes.data))
            else:
                given.append(C_TYPES[arg.dtype.str[1:]](arg))
        given += map(ctypes.c_int, work.extents)
        if name in COUNTED:
            given.append(ctypes.c_int(work.grid[0]))
        return lambda: function(*given)


class Numba:
    """The functions of the Python files, each compiled at its first call.

    Raises ``ModuleNotFoundError`` if Numba is not installed.
    """

    def __init__(self) -> None:
        self.version = importlib.import_module("numba").__version__

    def bind(self, case: Case, work: Work, args: tuple[Any, ...]) -> Callable[[], None]:
        file, name = NAMES[case.name].split(".")
        function = getattr(importlib.import_module(f"reference_kernels.{file}"), name)
        return lambda: function(*args)
