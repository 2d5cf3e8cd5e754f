"""Types operations of a GPU, for `typed_rewrite.py`: atomic operations, random numbers, collective operations of a
warp."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from generators.typed_values import ATOMIC, BOOL, FLOAT32, FLOAT64, INT32, NOTHING, UINT64, Array

if TYPE_CHECKING:
    from generators.typed_values import Type

UINT32 = np.dtype("uint32")
# The kinds of elements that each atomic operation takes.
STEPS = {
    "add": "iufc", "sub": "iufc", "max": "iuf", "min": "iuf", "nanmax": "iuf", "nanmin": "iuf", "and_": "iub",
    "or_": "iub", "xor": "iub", "inc": "u", "dec": "u", "exch": "iufb", "cas": "iufb", "compare_and_swap": "iufb",
}  # fmt: skip
DRAWS: dict[str, Type] = {
    "philox_uint32": UINT32, "philox_uint32x4": (UINT32,) * 4, "philox_uniform_float32": FLOAT32,
    "philox_uniform_float64": FLOAT64, "xoroshiro128p_next": UINT64, "xoroshiro128p_uniform_float32": FLOAT32,
    "xoroshiro128p_uniform_float64": FLOAT64,
}  # fmt: skip
SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
VOTES: dict[str, Type] = {
    "all_sync": BOOL, "any_sync": BOOL, "eq_sync": BOOL, "elect_sync": BOOL, "ballot_sync": INT32,
    "match_any_sync": INT32, "match_all_sync": (INT32, BOOL), "syncwarp": NOTHING,
}  # fmt: skip
INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
BITS = {
    "popc": INTS, "clz": INTS, "ffs": INTS[4:], "brev": ("uint32", "uint64"), "byte_perm": ("uint32",),
    "funnelshift_l": ("uint32",), "funnelshift_lc": ("uint32",), "funnelshift_r": ("uint32",),
    "funnelshift_rc": ("uint32",),
}  # fmt: skip
LOADS, STORES = ("ldca", "ldcg", "ldcs", "ldlu", "ldcv"), ("stcg", "stcs", "stwb", "stwt")
LANES = ("lanemask_lt", "lanemask_le", "lanemask_eq", "lanemask_ge", "lanemask_gt")
TOGETHER = tuple(f"reduce_{name}_sync" for name in ("add", "min", "max", "and", "or", "xor"))


class OperationTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def operation(self, target: str, node: ast.Call) -> tuple[Type, ast.expr] | None:
        """A call of one of these; None for other functions."""
        name = target.rpartition(".")[2]
        if target == f"cuda.atomic.{name}":
            return self.atomic(name, node)
        if target == f"cuda.random.{name}":
            return DRAWS[name], self.written_call(node, self.draw_arguments(name, node))
        if target != f"cuda.{name}":
            return None
        if name in LANES:
            return UINT32, node
        if name in BITS or name in ("fma", "selp"):
            args = [self.real(arg) for arg in node.args]
            return self.word(name, [ty for ty, _ in args]), self.written_call(node, [new for _, new in args])
        if name in LOADS or name in STORES:
            return self.cached(name, node)
        if name in SHUFFLES:
            args = [self.expr(arg) for arg in node.args]
            self.mask(args[0][0])
            for ty, _ in args[2:]:
                self.mask(ty)
            if not carried(args[1][0]):
                raise TypeError(f"{name} of {args[1][0]}")
            return args[1][0], self.written_call(node, [new for _, new in args])
        if name in VOTES:
            args = [self.number(arg) for arg in node.args]
            if name.startswith("match") and args[1][0].kind not in "iu":
                raise TypeError("bits of a NaN")
            if any(ty.kind == "c" for ty, _ in args):
                raise TypeError("a complex number for a vote")
            return VOTES[name], self.written_call(node, [new for _, new in args])
        if name in TOGETHER:
            (mask, mask_node), (ty, value) = (self.number(arg) for arg in node.args)
            self.mask(mask)
            if ty not in (INT32, UINT32):
                raise TypeError("a reduction of what is not 32 bits wide")
            return ty, self.written_call(node, [mask_node, value])
        return None

    @staticmethod
    def word(name: str, types: list[np.dtype]) -> np.dtype:
        """The type of a function of bits or numbers. Arguments must have the exact types of its parameters."""
        if name == "selp":
            if types[0] != BOOL or types[1] != types[2]:
                raise TypeError("selp of several types")
            return types[1]
        able = BITS.get(name, ("float32", "float64"))
        if len(set(types)) > 1 or types[0].name not in able:
            raise TypeError(f"{name} of {types}")
        if name in ("popc", "clz", "brev", "fma"):
            return types[0]
        return UINT32

    def cached(self, name: str, node: ast.Call) -> tuple[Type, ast.expr]:
        """A load or a store with a cache operator."""
        array, place = self.expr(node.args[0])
        if not isinstance(array, Array) or not isinstance(array.dtype, np.dtype) or array.dtype.kind not in "iuf":
            raise TypeError(f"{name} of {array}")
        taken, index = self.index(node.args[1])
        if taken != array.ndim:
            raise TypeError("a part of an array")
        values = [self.real(value)[1] for value in node.args[2:]]
        return array.dtype if name in LOADS else NOTHING, self.written_call(node, [place, index, *values])

    @staticmethod
    def mask(ty: Type) -> None:
        if not isinstance(ty, np.dtype) or ty.kind not in "iu":
            raise TypeError("a mask or a lane is an integer")

    @staticmethod
    def written_call(node: ast.Call, args: list[ast.expr]) -> ast.expr:
        return ast.Call(node.func, args, node.keywords)

    def draw_arguments(self, name: str, node: ast.Call) -> list[ast.expr]:
        if name not in DRAWS:
            raise TypeError(name)
        args = [self.expr(arg) for arg in node.args]
        for ty, _ in args[name.startswith("xoroshiro") :]:
            self.mask(ty)
        return [new for _, new in args]

    def atomic(self, name: str, node: ast.Call) -> tuple[Type, ast.expr]:
        array, place = self.expr(node.args[0])
        if not isinstance(array, Array) or not isinstance(array.dtype, np.dtype):
            raise TypeError(f"atomics on {array}")
        if array.dtype not in ATOMIC if not self.functions.further_atomics else array.dtype.kind not in STEPS[name]:
            raise TypeError(f"{name} on {array}")
        values, args = node.args[1:], [place]
        if name != "compare_and_swap":
            taken, index = self.index(node.args[1])
            if taken != array.ndim:
                raise TypeError("an atomic on a part of an array")
            values = node.args[2:]
            args.append(index)
        kind = self.number if array.dtype.kind == "c" else self.real
        args += [kind(value)[1] for value in values]
        return array.dtype, self.written_call(node, args)


def carried(ty: Type) -> bool:
    """Whether a type can be shuffled: numbers, and tuples of them."""
    if isinstance(ty, tuple):
        return bool(ty) and all(carried(item) for item in ty)
    return isinstance(ty, np.dtype) and ty.kind in "iufcb"
