"""Random benchmark kernels, for rules that must hold for every kernel and not only for those of the sets.

`generate(seed)` writes a kernel: an index, a guard, one to five *pieces* of work in forms that programs have
(`pieces.py`, `blocks.py`), and stores of all results. It has one to four inputs and no C++ peer. All accesses are in
bounds, each thread writes its own elements, atomic operations are on integers, and only exact floats are compared. So
all variants of the kernel have the same outputs, except for roundings of floats.

`tests/python/combined` also generates kernels. It searches for wrong code for CPUs, with small launches and values that
never round; these kernels are timed.

    python tests/benchmarks/automatic.py --set none --random 300
    python tests/benchmarks/generated/show.py SEED     # print a kernel
"""

from __future__ import annotations

import linecache
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suite.case import Case

from generated.data import Shapes, on_device, work_of
from generated.kinds import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

HEAD = "import math\n\nimport numpy as np\nfrom weft import cuda\n\n\n"
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Generated(Case):
    """A case whose expected outputs are those of the kernel with ``coarsen=1``."""

    source: str = ""
    """A module that defines ``kernel``."""
    features: frozenset[str] = field(default_factory=frozenset)
    """The constructs that the kernel has."""

    def error(self, xp: ModuleType, outputs: tuple[Any, ...], expected: tuple[Any, ...]) -> float:
        """As for other cases, but integers must be equal, and so must NaNs, which elements without a store have."""
        worst = 0.0
        for out, reference in zip(outputs, expected, strict=True):
            if out.dtype.kind != "f":
                error = 0.0 if bool((out == reference).all()) else math.inf
            else:
                both_nan = xp.isnan(out) & xp.isnan(reference)
                difference = xp.where(both_nan | (out == reference), 0, xp.abs(out - reference))
                largest = float(xp.where(xp.isfinite(reference), xp.abs(reference), 0).max())
                error = float(difference.max()) / (largest or 1.0)
            worst = max(worst, error if error == error else math.inf)
        return worst


def _maker(name: str, source: str) -> Callable[[ModuleType], Any]:
    """A function that defines the kernel with the `jit` of a module, `weft.cuda` or another one."""
    text = source.replace("from weft import cuda\n", "\n")

    def make(cuda: ModuleType) -> Any:
        file = f"<{name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"__name__": name, "cuda": cuda}
        exec(compile(text, file, "exec"), namespace)
        return namespace["kernel"]

    return make


def generate(seed: int) -> Generated:
    """The kernel of a seed."""
    writer = Writer(seed)
    writer.write()
    text = HEAD + writer.source()
    shapes = {size: writer.shapes(Shapes(size)) for size in ("full", "tiny")}
    params = writer.params
    name = f"random {seed}"
    return Generated(
        name=name,
        make=_maker(name, text),
        signature=f"({', '.join(param.type for param in params.values())})",
        cpp="",
        work=lambda size: work_of(params, shapes[size], seed),
        reference=_no_reference,
        tolerance=TOLERANCE,
        options={"typing": "numpy"} if writer.numpy else {},
        source=text,
        features=frozenset(writer.features),
    )


def _no_reference(xp: ModuleType, args: tuple[Any, ...]) -> tuple[Any, ...]:
    raise NotImplementedError("the expected outputs are those of the kernel with coarsen=1")


__all__ = ["Generated", "generate", "on_device"]
