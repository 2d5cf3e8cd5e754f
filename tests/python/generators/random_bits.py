"""A digest of the bits that a random program computes on this device. Another device must compute the same bits.

For `fuzz.py --keep` and `--against`, with `WEFT_REPRODUCIBLE=1`. The oracle only decides whether a program terminates
and is within the bounds of its arrays. Its results are ignored, because weft fuses float products that it rounds.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING

import numpy as np
from weft.errors import ReproducibilityWarning

from generators.random_check import FAULTS, arrays_in, module_of, run_oracle, twin
from generators.random_objects import instantiate

if TYPE_CHECKING:
    from generators.random_programs import Program

# Float sums over several threads: the rounding depends on the order of the threads.
UNORDERED = r"(?s).*atomic\.(add|sub) of (float|bfloat)"


class Unordered(Exception):
    """A program whose floats depend on the order of its threads."""


def digest(program: Program) -> str:
    """The arguments after a launch, and whether it raised: which thread's exception is reported may vary."""
    module = module_of(program.source)
    kept = [twin(arg) for arg in program.args]
    args = [instantiate(arg, vars(module)) for arg in kept]
    first = len(args) - len(program.named)
    named = dict(zip(program.named, args[first:], strict=True))
    told = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", UNORDERED, ReproducibilityWarning)
        try:
            module.kernel[program.grid, program.block](*args[:first], **named)
        except ReproducibilityWarning as warning:
            raise Unordered from warning
        except FAULTS:
            told = "raised"
    found = hashlib.blake2b(told.encode(), digest_size=12)
    for name, arg in zip(program.types, kept, strict=False):
        for at, array in arrays_in(name, arg):
            found.update(f"{at} {array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def is_meaningful(program: Program) -> bool:
    """Whether it terminates, is within bounds, and depends on no race and no uninitialized memory."""
    try:
        with np.errstate(all="ignore"):
            one, two = (run_oracle(program, otherwise=otherwise) for otherwise in (False, True))
    except Exception:
        return False
    pairs = zip(arrays_in("", one), arrays_in("", two), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for (_, a), (_, b) in pairs)
