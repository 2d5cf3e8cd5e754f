"""Random differentiable kernels with their arguments.

A program's threads do not race, its indices are in bounds and its loops end. Its floats are of moderate size.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from differentiable.expressions import Expressions
from differentiable.statements import TILE, Statements

if TYPE_CHECKING:
    import numpy as np

N = 40
HEAD = "import math\nimport numpy as np\nfrom weft import cuda\n\n\n"
# What a program has with a probability of 0.3.
FEATURES = ("tuples", "local", "place", "update", "views", "complex", "gather", "phases", "stencil")
# The same, drawn separately: a seed without them is the same program as before.
LATER = ("extremes", "nested")
# What the phases of a program may be, instead of those with a shared array.
PHASES = ("static", "static", "static", "dynamic", "collectives", "shuffles")
LAUNCHES = ((2, 32), (5, 8), (3, 16), (2, 24))


@dataclass
class Program:
    """A kernel `program` in a source, and its launch."""

    seed: int
    source: str
    params: tuple[str, ...]
    grid: int
    block: int
    shared: int  # bytes of dynamic shared memory

    def arguments(self, rng: np.random.Generator) -> list[Any]:
        """Arguments for the kernel."""
        made = {
            "a": float(rng.uniform(0.3, 0.9)),
            "x": rng.uniform(0.05, 0.95, N),
            "y": rng.uniform(-0.9, 0.9, (N, 3)),
            "w": rng.uniform(-0.9, 0.9, 5),
            "c": rng.uniform(-0.9, 0.9, N) + 1j * rng.uniform(-0.9, 0.9, N),
            "index": rng.integers(0, N, N),
            "z": rng.uniform(-0.9, 0.9, (N, 2)),
            "out": rng.uniform(-0.9, 0.9, (N, 3)),
            "total": rng.uniform(-0.9, 0.9, 4),
            "cout": rng.uniform(-0.9, 0.9, N) + 1j * rng.uniform(-0.9, 0.9, N),
        }
        return [made[name] for name in self.params]


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    later = random.Random(f"later {seed}")
    features = {name for name in FEATURES if rng.random() < 0.3} | {name for name in LATER if later.random() < 0.3}
    write = Expressions(rng)
    for number in range(rng.choice([0, 0, 1, 2])):
        write.helpers.append(write.helper(number))
    params = ["a", "x", "w", "out", "total"]
    write.leaves += ["a", "x[i]", "w[1]", f"w[(i + {rng.randrange(4)}) % w.size]"]
    if features & {"views", "stencil"}:
        params.append("y")
        write.leaves += [f"y[i, {rng.randrange(3)}]", "y[(i + 1) % x.size, 0]"]
    if "gather" in features:
        params.append("index")
        write.leaves += ["x[index[i]]", "x[index[(i + 1) % index.size]]"]
    if "stencil" in features:
        write.leaves += ["x[max(i - 1, 0)]", "x[min(i + 1, x.size - 1)]", "(x[i - 1] if i > 0 else 0.2)", "x[i - 1]"]
    if features & {"place", "update"}:
        params.append("z")
    if "complex" in features:
        params += ["c", "cout"]
    made = Statements(rng, write, features)
    grid, block = rng.choice(LAUNCHES)
    names, shared = [], 0
    if "phases" in features:
        features.add(rng.choice(PHASES))
        if "shuffles" in features:
            grid, block = LAUNCHES[0]
        shared = TILE * 8 if "dynamic" in features else 0
        made.line(1, "i = cuda.grid(1)")
        leaves, write.leaves = write.leaves, ["a", "w[1]", f"w[(i + {rng.randrange(4)}) % w.size]"]
        made.phases()
        write.leaves = leaves
        names = ["v"]
    depth = started(made, rng, "phases" in features)
    names = made.block(names, depth, rng.randrange(2, 7))
    made.line(depth, f"out[i, 0] = {write.value(names)}")
    head = "".join(f"{each.source}\n\n" for each in write.helpers)
    source = f"{HEAD}{head}@cuda.jit\ndef program({', '.join(params)}):\n" + "\n".join(made.lines) + "\n"
    return Program(seed, source, tuple(params), grid, block, shared)


def started(made: Statements, rng: random.Random, has_phases: bool) -> int:
    """Write how a thread finds its elements. Returns the level of the statements that follow."""
    form = rng.choice(["return", "guard", "guard", "loop", "numbered"])
    if form == "loop" and not has_phases:
        made.line(1, "for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):")
        made.repeats = True
        return 2
    if not has_phases:
        numbered = "cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x"
        made.line(1, f"i = {numbered if form == 'numbered' else 'cuda.grid(1)'}")
    if form == "return":
        made.line(1, "if i >= x.size:")
        made.line(2, "return")
        return 1
    made.line(1, "if i < x.size:")
    return 2
