#!/usr/bin/env python3
"""Gradients of the kernels of the five sets: adjoint kernels beside central differences, in float64.

    python tests/benchmarks/set_gradients.py
    python tests/benchmarks/set_gradients.py --only softmax

It runs copies of the sets with wider types in place of `float16`, `float32` and `complex64`, with their smallest sizes.
It prints a line for each kernel: the largest relative error of its gradients by a random direction, or why it has none.
The exit status is 1 if a gradient is wrong. A kernel is not smooth at its arguments if differences with several steps
disagree: comparisons and rounded indices make such kernels.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SETS = ("suite", "second", "third", "fourth", "kinds")
TOLERANCE = 1e-6
# The smallest one passes kinks that are near, the largest ones round less.
STEPS = (1e-5, 1e-6, 1e-7, 1e-8)


def widened(source: str) -> str:
    """The source with types of 64 bits; vectors such as `float32x4` stay."""
    wide = re.sub(r"(?<!b)float(16|32)(?!x)", "float64", source)
    return wide.replace("complex64", "complex128")


def copied(to: Path) -> None:
    """Copies the sets: a kernel is compiled from its source."""
    for name in SETS:
        shutil.copytree(HERE / name, to / name)
        for file in (to / name).glob("*.py"):
            file.write_text(widened(file.read_text()))


class Recorded:
    """A kernel that stores the arguments of its first launch."""

    def __init__(self, kernel: Any, launches: dict[str, Any]) -> None:
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, configuration: tuple[Any, ...]) -> Any:
        def launch(*args: Any) -> None:
            host = [arg.copy_to_host() if hasattr(arg, "copy_to_host") else arg for arg in args]
            self.launches.setdefault(self.kernel.__name__, (self.kernel, configuration[:2], host))
            self.kernel[configuration](*args)

        return launch


class Recorder:
    """`weft.cuda`, whose kernels are recorded."""

    def __init__(self, cuda: Any) -> None:
        self.cuda, self.launches = cuda, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cuda, name)

    def jit(self, function: Any = None, **options: Any) -> Any:
        """As `cuda.jit`."""
        made = self.cuda.jit(function, **options)

        def recorded(kernel: Any) -> Any:
            return kernel if kernel.device else Recorded(kernel, self.launches)

        is_decorator = function is None or isinstance(function, str)
        return (lambda function: recorded(made(function))) if is_decorator else recorded(made)


def launches_of(case: Any, cuda: Any, rng: Any) -> dict[str, Any]:
    """The first launch of each kernel of a case. Arrays of floats have noise, so that no values are equal."""
    import numpy as np

    work, recorder = case.work("tiny"), Recorder(cuda)
    args = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args]
    for position in work.outputs:
        args[position][...] = 0
    for position, value in work.initial.items():
        args[position] = np.copy(value)
    for arg in args:
        if isinstance(arg, np.ndarray) and np.issubdtype(arg.dtype, np.inexact):
            arg += 1e-3 * rng.standard_normal(arg.shape) * (arg != 0)
    on_device = [cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    case.make(recorder)[work.grid, work.block](*on_device)
    return recorder.launches


def outcome(kernel: Any, configuration: Any, args: list[Any], rng: Any) -> str:
    """The largest error of the gradients of a launch, or why it has none."""
    import numpy as np
    from gradients import adjoints, launched, noise, vdot
    from weft import cuda
    from weft.errors import CompileError

    args = [float(arg) if isinstance(arg, np.floating) else arg for arg in args]
    params = kernel.py_func.__code__.co_varnames
    try:
        names = cuda.vjp(kernel).adjoints(*args)
        after = launched(kernel, *configuration, args)
        arrays = [name for name in names if isinstance(args[params.index(name)], np.ndarray)]
        outputs = [
            name
            for name in arrays
            if not np.array_equal(after[params.index(name)], args[params.index(name)], equal_nan=True)
        ]
        if not outputs:
            return "none: it writes no array of floats"
        weights, given = adjoints(kernel, *configuration, args, outputs, rng)
    except CompileError as error:
        return f"none: {error.diagnostics[0]['code']}: {error.diagnostics[0]['message']}"

    def loss(number: int, value: Any) -> float:
        changed = launched(kernel, *configuration, [*args[:number], value, *args[number + 1 :]])
        return sum(vdot(weights[name], changed[params.index(name)]) for name in outputs)

    worst = 0.0
    for name, gradient in given.items():
        number = params.index(name)
        along = noise(rng, args[number]) * (np.asarray(args[number]) != 0)
        found = vdot(gradient.reshape(np.shape(along)), along)
        differences, errors = [], []
        for step in STEPS:
            moved = [args[number] + sign * step * along for sign in (1, -1)]
            ahead, behind = (loss(number, value if np.ndim(value) else float(value)) for value in moved)
            differences.append((ahead - behind) / (2 * step))
            scale = 1 + abs(differences[-1]) + abs(ahead) + np.linalg.norm(gradient)
            errors.append(abs(found - differences[-1]) / scale)
        worst = max(worst, min(errors))
        if not min(errors) <= TOLERANCE:
            spread = (max(differences[:3]) - min(differences[:3])) / scale
            word = "not smooth" if spread > TOLERANCE else "wrong"
            return f"{word}: by `{name}` {found}, differences {', '.join(f'{each:.6g}' for each in differences)}"
    return f"{worst:.1e}"


def main() -> int:
    """Runs the kernels of all sets."""
    parser = argparse.ArgumentParser(prog="set_gradients", description="gradients of the kernels of the five sets")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases with a text in their name")
    only = parser.parse_args().only
    for name, value in {"WEFT_DEVICE": "cpu", "WEFT_CACHE": "off", "WEFT_HOST_OPT_LEVEL": "0"}.items():
        os.environ.setdefault(name, value)
    kinds: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        sys.path[:0] = [folder, str(HERE.parent / "python" / "conformance" / "derivatives")]
        import numpy as np
        from weft import cuda

        for name in SETS:
            for case in importlib.import_module(name).CASES:
                if only not in case.name:
                    continue
                rng = np.random.default_rng(1)
                for kernel, launch in launches_of(case, cuda, rng).items():
                    found = outcome(*launch, rng)
                    kinds[found.partition(":")[0] if ":" in found else "correct"] += 1
                    print(f"{name}: {case.name}, `{kernel}`: {found}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    return int(kinds["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
