#!/usr/bin/env python3
"""Compares the bits of a million random elements of each matrix instruction between a GPU and the CPU executor.

    python tests/python/matrix_bits.py
    python tests/python/matrix_bits.py --only wgmma,e4m3 --elements 100000 --seed 7
    python tests/python/matrix_bits.py --device cpu --write folder
    python tests/python/matrix_bits.py --against folder --device cuda

Each instruction of the tiles of a warp and of a warpgroup computes products of matrices whose elements are drawn in
families: all exponents, narrow ranges, subnormal numbers, products that cancel in pairs, one large product among small
ones, few products, zeros, ties, infinities and NaNs, and raw bits; the accumulator is zero, of the size of the sum,
close to minus the sum, or of any size. Inputs depend on the seed only. One process computes with the GPU and another
one with the CPU; the number of elements whose bits differ is printed for each instruction. The exit code is 1 if any
differ.

With `--write` a device's results are written to a folder, and with `--against` compared with them, for two machines.
The CPU computes the bits of compute capability 9.0; on other GPUs differences are expected.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BITS = np.ndarray
# The bits of the exponent and of the fraction, and whether there are infinities.
FORMATS = {
    "float16": (5, 10, True),
    "bfloat16": (8, 7, True),
    "tf32": (8, 10, True),
    "float32": (8, 23, True),
    "float64": (11, 52, True),
    "e4m3": (4, 3, False),
    "e5m2": (5, 2, True),
}
# The types of A, B and C, and the extents of a warp's instruction.
KINDS = [
    ("float16", "float16", "float32", (16, 8, 16)),
    ("bfloat16", "bfloat16", "float32", (16, 8, 16)),
    ("tf32", "tf32", "float32", (16, 8, 8)),
    ("float64", "float64", "float64", (8, 8, 4)),
    ("int8", "int8", "int32", (16, 8, 32)),
    ("uint8", "uint8", "int32", (16, 8, 32)),
    ("int8", "uint8", "int32", (16, 8, 32)),
    ("uint8", "int8", "int32", (16, 8, 32)),
    ("e4m3", "e4m3", "float32", (16, 8, 32)),
    ("e5m2", "e5m2", "float32", (16, 8, 32)),
    ("e4m3", "e5m2", "float32", (16, 8, 32)),
    ("e5m2", "e4m3", "float32", (16, 8, 32)),
]
COLUMNS = (8, 64, 256)
"""The columns of the tiles of a warpgroup."""
FAMILIES = 12
THREADS = 4
"""The instructions that a process draws inputs for, compiles and computes at the same time."""
QUOTED = ("tf32", "e4m3", "e5m2")
ARRAYS = {"tf32": "float32", "e4m3": "uint8", "e5m2": "uint8"}
HEAD = """
import weft
from weft import bfloat16, cuda, float16, float32, float64, int8, int32, uint8
T = cuda.mma.tile({m}, {n}, {k}, a={a}, b={b}, c={c}{threads})
"""
WARP = (
    HEAD
    + """
@cuda.jit
def kernel(a, b, c, out):
    s = cuda.blockIdx.x
    x, y = a[s]{view}, b[s]{view}
    acc = tuple(c[s, T.coord(r)[0], T.coord(r)[1]] for r in range({values}))
    T.store(out[s], 0, 0, T.mma(T.a(x, 0, 0), T.b(y.T, 0, 0), acc))
"""
)
GROUP = (
    HEAD
    + """
@cuda.jit
def kernel(a, b, c, out):
    s = cuda.blockIdx.x
    left, right = a[s]{view}, b[s]{view}
    x = cuda.shared.array((64, {k}), {x_type}, swizzle=32)
    y = cuda.shared.array(({n}, {k}), {y_type}, swizzle=32)
    for at in range(cuda.threadIdx.x, 64 * {k}, 128):
        x[at // {k}, at % {k}] = left[at // {k}, at % {k}]
    for at in range(cuda.threadIdx.x, {n} * {k}, 128):
        y[at // {k}, at % {k}] = right[at // {k}, at % {k}]
    cuda.syncthreads()
    acc = tuple(c[s, T.coord(r)[0], T.coord(r)[1]] for r in range({values}))
    T.store(out[s], 0, 0, T.mma(T.a(x, 0, 0), T.b(y.T, 0, 0), acc))
"""
)


@dataclass(frozen=True)
class Instruction:
    """A matrix instruction: the types, the extents and the number of threads."""

    a: str
    b: str
    c: str
    shape: tuple[int, int, int]
    threads: int

    @property
    def name(self) -> str:
        m, n, k = self.shape
        return f"{'mma' if self.threads == 32 else 'wgmma'} m{m}n{n}k{k} {self.a} {self.b} {self.c}"

    def compiled(self, folder: Path) -> object:
        """Its kernel: a block computes one product."""
        m, n, k = self.shape
        quoted = [f'"{name}"' if name in QUOTED else name for name in (self.a, self.b)]
        text = (WARP if self.threads == 32 else GROUP).format(
            m=m,
            n=n,
            k=k,
            a=quoted[0],
            b=quoted[1],
            c=self.c,
            threads="" if self.threads == 32 else ", threads=128",
            view=".view(weft.bfloat16)" if self.a == "bfloat16" else "",
            values=m * n // self.threads,
            x_type=ARRAYS.get(self.a, self.a),
            y_type=ARRAYS.get(self.b, self.b),
        )
        path = folder / f"{self.name.replace(' ', '_')}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel


def instructions() -> list[Instruction]:
    """All instructions of tiles."""
    warp = [Instruction(a, b, c, shape, 32) for a, b, c, shape in KINDS]
    of_group = [(kind, n) for kind in KINDS if kind[0] != "float64" for n in COLUMNS]
    return warp + [Instruction(a, b, c, (64, n, shape[2]), 128) for (a, b, c, shape), n in of_group]


# ---- inputs ---------------------------------------------------------------------------------------------------------


def words(name: str) -> np.dtype:
    """The unsigned type of a format's bits."""
    exponent, fraction, _ = FORMATS[name]
    size = 32 if name == "tf32" else exponent + fraction + 1
    return np.dtype(f"u{size // 8}")


def draw(rng: np.random.Generator, name: str, shape: tuple[int, ...], low: float, high: float) -> BITS:
    """Random numbers whose exponent field is in a part of its range, as bits."""
    exponent, fraction, _ = FORMATS[name]
    most = (1 << exponent) - 2
    fields = rng.integers(round(low * most), max(round(high * most), round(low * most)) + 1, shape)
    bits = fields.astype(np.uint64) << np.uint64(fraction)
    bits |= rng.integers(0, 1 << fraction, shape, dtype=np.uint64)
    bits |= rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(exponent + fraction)
    if name == "tf32":
        bits = bits << np.uint64(13) | rng.integers(0, 1 << 13, shape, dtype=np.uint64)
    return bits.astype(words(name))


def raw(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> BITS:
    """Random bits."""
    dtype = words(name)
    return rng.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8).view(dtype)[..., 0]


def value(name: str, bits: BITS) -> np.ndarray:
    """Numbers as float64; infinities and NaNs as zero."""
    exponent, fraction, has_infinities = FORMATS[name]
    wide = bits.astype(np.uint64) >> np.uint64(13 if name == "tf32" else 0)
    fields = (wide >> np.uint64(fraction) & np.uint64((1 << exponent) - 1)).astype(np.int64)
    low = (wide & np.uint64((1 << fraction) - 1)).astype(np.float64)
    bias = (1 << exponent - 1) - 1
    with np.errstate(all="ignore"):
        magnitude = np.ldexp(low + np.where(fields > 0, 2.0**fraction, 0), np.maximum(fields, 1) - bias - fraction)
        magnitude[(fields == (1 << exponent) - 1) & has_infinities] = 0
        return np.where(wide >> np.uint64(exponent + fraction) & np.uint64(1), -magnitude, magnitude)


def integer(name: str, numbers: np.ndarray) -> BITS:
    """The bits of small integers of up to three digits in binary."""
    magnitude = np.abs(numbers)
    exponent, fraction, _ = FORMATS[name]
    top = np.where(magnitude > 3, 2, np.where(magnitude > 1, 1, 0))
    bias = (1 << exponent - 1) - 1
    low = (magnitude << fraction >> top) - (1 << fraction)
    bits = np.where(magnitude == 0, 0, (top + bias << fraction) + low).astype(np.uint64)
    bits |= (numbers < 0).astype(np.uint64) << np.uint64(exponent + fraction)
    return (bits << np.uint64(13 if name == "tf32" else 0)).astype(words(name))


def sprinkle(rng: np.random.Generator, name: str, bits: BITS) -> BITS:
    """Replace some numbers by infinities, NaNs and zeros."""
    exponent, fraction, _ = FORMATS[name]
    sign = 1 << exponent + fraction
    infinity = (1 << exponent) - 1 << fraction
    specials = [0, sign, infinity, infinity | sign, infinity | 1, infinity | sign - 1 & ~infinity | sign, sign - 1]
    chosen = np.array(specials, np.uint64)[rng.integers(0, len(specials), bits.shape)]
    chosen = (chosen << np.uint64(13 if name == "tf32" else 0)).astype(bits.dtype)
    return np.where(rng.random(bits.shape) < 0.02, chosen, bits)


def factors(rng: np.random.Generator, family: int, kind: Instruction, count: int) -> tuple[BITS, BITS]:
    """A and B (by columns) of a family."""
    m, n, k = kind.shape
    shapes = (count, m, k), (count, n, k)
    names = kind.a, kind.b

    def each(low: float, high: float) -> list[BITS]:
        return [draw(rng, name, shape, low, high) for name, shape in zip(names, shapes, strict=True)]

    if family == 0:
        a, b = each(0, 1)
    elif family == 1:
        a, b = each(0.45, 0.55)
    elif family == 2:
        a, b = each(0.3, 0.6)
    elif family == 3:
        a, b = each(0, 0.02)
    elif family == 4:
        a, b = each(0.9, 1)
    elif family == 5:  # products that cancel in pairs, at shuffled positions
        a, b = each(0.35, 0.65)
        a[..., k // 2 :], b[..., k // 2 :] = a[..., : k // 2], b[..., : k // 2]
        sign = np.array(1, a.dtype) << np.array(8 * a.dtype.itemsize - 1, a.dtype)
        a[..., k // 2 :] ^= sign
        a[..., 0] = draw(rng, names[0], shapes[0][:2], 0.2, 0.5)
        order = rng.permutation(k)
        a, b = a[..., order], b[..., order]
    elif family == 6:  # one large product among small ones
        a, b = each(0.3, 0.5)
        at = int(rng.integers(k))
        a[..., at] = draw(rng, names[0], shapes[0][:2], 0.55, 0.65)
    elif family == 7:  # up to three products
        a, b = each(0.2, 0.8)
        a[..., rng.permutation(k)[int(rng.integers(1, 4)) :]] = 0
    elif family == 8:  # zeros, and the largest numbers
        a, b = each(0.98, 1)
        a[rng.random(a.shape) < 0.7] = 0
        b[rng.random(b.shape) < 0.3] = 0
    elif family == 9:
        small = [rng.integers(-7, 8, shape) for shape in shapes]
        a, b = (integer(name, numbers) for name, numbers in zip(names, small, strict=True))
    elif family == 10:
        a, b = (sprinkle(rng, name, bits) for name, bits in zip(names, each(0.2, 0.8), strict=True))
    else:
        a, b = (raw(rng, name, shape) for name, shape in zip(names, shapes, strict=True))
    return a, b


def accumulators(rng: np.random.Generator, kind: Instruction, a: BITS, b: BITS) -> BITS:
    """C: zero, of the size of the sum, minus the sum and up to two units, of any size, or raw bits."""
    dtype = words(kind.c)
    with np.errstate(all="ignore"):
        sums = np.einsum("smk,snk->smn", value(kind.a, a), value(kind.b, b), optimize=True)
        near = np.nan_to_num(-sums).astype(np.float64 if kind.c == "float64" else np.float32).view(dtype)
        shape = sums.shape
        factor = rng.uniform(-4, 4, shape)
        scaled = (sums * factor).astype(np.float64 if kind.c == "float64" else np.float32).view(dtype)
    steps = rng.integers(-2, 3, shape).astype(dtype)
    choice = rng.integers(0, 8, shape)
    found = np.where(choice < 3, near + np.where(choice == 0, 0, steps).astype(dtype), 0).astype(dtype)
    found = np.where(choice == 3, scaled, found)
    found = np.where(choice == 4, draw(rng, kind.c, shape, 0, 1), found)
    found = np.where(choice == 5, draw(rng, kind.c, shape, 0.4, 0.6), found)
    special = sprinkle(rng, kind.c, raw(rng, kind.c, shape))
    return np.where((choice == 6) & (rng.random(shape) < 0.2), special, found).astype(dtype)


def inputs(kind: Instruction, elements: int, seed: int) -> tuple[BITS, BITS, BITS]:
    """A, B by columns and C, for at least this number of elements."""
    m, n, k = kind.shape
    rng = np.random.default_rng([seed, *kind.name.encode()])
    count = -(-elements // (m * n))
    if kind.c == "int32":
        low = {"int8": (-128, 128, np.int8), "uint8": (0, 256, np.uint8)}
        a, b = (
            rng.integers(*low[name][:2], shape).astype(low[name][2])
            for name, shape in ((kind.a, (count, m, k)), (kind.b, (count, n, k)))
        )
        c = rng.integers(-(2**31), 2**31, (count, m, n)).astype(np.int32)
        return a, b, c
    each = -(-count // FAMILIES)
    parts = [factors(rng, family, kind, each) for family in range(FAMILIES)]
    a, b = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    return a, b, accumulators(rng, kind, a, b)


# ---- devices --------------------------------------------------------------------------------------------------------


def compute(kind: Instruction, options: argparse.Namespace, folder: Path) -> np.ndarray:
    """The bits of D on this process's device."""
    a, b, c = inputs(kind, options.elements, options.seed)
    of_kernel = {"bfloat16": np.uint16, "tf32": np.float32, "e4m3": np.uint8, "e5m2": np.uint8}
    a, b, c = (
        bits.view(of_kernel.get(name, name)) for bits, name in ((a, kind.a), (b, kind.b), (c, kind.c))
    )  # fmt: skip
    out = np.zeros_like(c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about arrays of the host
        kind.compiled(folder)[len(a), kind.threads](a, b, c, out)
    return out.view(f"u{out.itemsize}")


def run(options: argparse.Namespace, folder: Path) -> None:
    """Compute all instructions on this process's device, and write the bits to files."""
    folder.mkdir(parents=True, exist_ok=True)

    def one(number: int, kind: Instruction) -> None:
        started = time.monotonic()
        np.save(folder / f"{number}.npy", compute(kind, options, folder))
        print(f"{options.device}: {kind.name}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(THREADS) as threads:
        kinds = chosen(options)
        list(threads.map(one, range(len(kinds)), kinds))


def chosen(options: argparse.Namespace) -> list[Instruction]:
    """The instructions of the options."""
    parts = options.only.split(",") if options.only else []
    return [kind for kind in instructions() if all(part in kind.name.split() for part in parts)]


def compare(options: argparse.Namespace, folders: list[Path]) -> int:
    """Print the number of elements that differ. Gives the exit code."""
    n_different = 0
    for number, kind in enumerate(chosen(options)):
        one, other = (np.load(folder / f"{number}.npy") for folder in folders)
        different = np.argwhere(one != other)
        n_different += len(different)
        first = ""
        if len(different):
            place = tuple(int(at) for at in different[0])
            first = f"; first at {place}: {int(one[place]):#x}, {int(other[place]):#x}"
        print(f"{kind.name}: {one.size} elements, {len(different)} differ{first}", flush=True)
    print(f"{n_different} differ")
    return 1 if n_different else 0


def start(device: str, options: argparse.Namespace, folder: Path) -> subprocess.Popen[bytes]:
    """A process that computes on a device."""
    command = [sys.executable, __file__, "--device", device, "--write", str(folder)]
    command += ["--elements", str(options.elements), "--seed", str(options.seed), "--only", options.only]
    return subprocess.Popen(command, env=os.environ | {"WEFT_DEVICE": device})


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1_000_000, help="the number of elements of each instruction")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="words of an instruction's name, with commas between")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="compute on this device only")
    parser.add_argument("--write", type=Path, help="write its results to this folder")
    parser.add_argument("--against", type=Path, help="compare its results with those in this folder")
    options = parser.parse_args()
    if not chosen(options):
        parser.error(f"no instruction has the words {options.only}")
    if options.write and options.device and not options.against and os.environ.get("WEFT_DEVICE") == options.device:
        run(options, options.write)
        return 0
    with tempfile.TemporaryDirectory() as name:
        devices = [options.device] if options.device else ["cuda", "cpu"]
        folders = [options.write or Path(name) / device for device in devices]
        processes = [start(device, options, folder) for device, folder in zip(devices, folders, strict=True)]
        codes = [process.wait() for process in processes]
        if any(codes):
            return 2
        if options.against:
            folders.append(options.against)
        return compare(options, folders) if len(folders) == 2 else 0


if __name__ == "__main__":
    sys.exit(main())
