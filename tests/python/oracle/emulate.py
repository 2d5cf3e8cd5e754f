"""Replacements for `cuda`, `math` and Python's builtins in a kernel that the oracle runs.

One thread runs at a time; `CURRENT` is that thread. Objects of the real `weft` package are replaced by identity
(`substitute`), so a kernel may refer to them by any name.
"""

from __future__ import annotations

import builtins
import itertools
import math
import types

import numpy as np

from oracle import arrays, bit_functions, collectives, draws, numeric, warps
from oracle.bfloat16 import Brains, product, rounded

WARP = 32
GARBAGE = [0xCD]  # the bytes of uninitialized memory


class Dim3:
    """`threadIdx`, `blockIdx`, …: int32 coordinates."""

    def __init__(self, x: int, y: int, z: int) -> None:
        self.x, self.y, self.z = np.int32(x), np.int32(y), np.int32(z)


class Block:
    """The memory that a block's threads share."""

    def __init__(self, dynamic_bytes: int) -> None:
        self.dynamic = np.full(dynamic_bytes, GARBAGE[0], np.uint8)
        self.arrays: dict[object, np.ndarray] = {}
        self.values: list[bool] = []
        self.together: dict[int, tuple] = {}  # the threads' arguments of a collective of the block
        self.sites: set[object] = set()  # the positions of those calls in the source


class Thread:
    """A thread's coordinates and its own memory."""

    def __init__(self, block: Block, thread_idx, block_idx, block_dim, grid_dim) -> None:
        self.block = block
        self.thread_idx, self.block_idx = Dim3(*thread_idx), Dim3(*block_idx)
        self.block_dim, self.grid_dim = Dim3(*block_dim), Dim3(*grid_dim)
        self.linear = thread_idx[0] + block_dim[0] * (thread_idx[1] + block_dim[1] * thread_idx[2])
        self.arrays: dict[object, np.ndarray] = {}


class Current:
    """Holds the running thread."""

    thread: Thread


CURRENT = Current()


class Left(Exception):
    """The running thread has ended."""

    count = 0  # the number of threads that have ended since it was last set to 0

    def __init__(self) -> None:
        super().__init__()
        Left.count += 1


class Sited:
    """A function that gets the position of its call in the source."""

    def __init__(self, function) -> None:
        self.function = function


class BarrierCall:
    """A function at which the threads of a block wait for each other."""

    def __init__(self, reduce=None) -> None:
        self.reduce = reduce  # reduces the arguments of the block's threads


class WarpCall:
    """A function at which the lanes of a warp wait for each other."""

    def __init__(self, name: str) -> None:
        self.name = name


def _garbage(shape, dtype) -> np.ndarray:
    if dtype is CudaModule.bfloat16:
        return _garbage(shape, np.uint16).view(Brains)
    dtype = np.dtype(substitute(dtype))
    count = int(np.prod([int(n) for n in shape])) if shape else 1
    pattern = GARBAGE[0] & 1 if dtype.kind == "b" else GARBAGE[0]
    return np.full(count * dtype.itemsize, pattern, np.uint8).view(dtype).reshape([int(n) for n in shape])


def _shared_array(site, shape, dtype, alignment=None):
    del alignment
    block = CURRENT.thread.block
    shape = shape if isinstance(shape, tuple) else (shape,)
    if shape == (0,):
        dtype = np.dtype(substitute(dtype))
        whole = block.dynamic.size // dtype.itemsize * dtype.itemsize
        return block.dynamic[:whole].view(dtype)
    if site not in block.arrays:
        block.arrays[site] = _garbage(shape, dtype)
    return block.arrays[site]


def _local_array(site, shape, dtype, alignment=None):
    del alignment
    thread = CURRENT.thread
    if site not in thread.arrays:
        thread.arrays[site] = _garbage(shape if isinstance(shape, tuple) else (shape,), dtype)
    return thread.arrays[site]


def _axes(start, size, index, ndim):
    ndim = int(ndim)
    values = tuple(
        np.int64(int(getattr(index, axis)) + int(getattr(start, axis)) * int(getattr(size, axis)))
        for axis in "xyz"[:ndim]
    )
    return values[0] if ndim == 1 else values


def _grid(ndim):
    thread = CURRENT.thread
    return _axes(thread.block_idx, thread.block_dim, thread.thread_idx, ndim)


def _gridsize(ndim):
    thread = CURRENT.thread
    return _axes(thread.grid_dim, thread.block_dim, Dim3(0, 0, 0), ndim)


def _bits(item):
    item = np.asarray(item)
    return item.view(f"u{item.itemsize}")[()] if item.dtype.kind == "f" else item[()]


def _nan(item):
    return item.dtype.kind == "f" and np.isnan(item)


# The new element for each operation, computed from the old one and the operands, all of the element's type.
_STEPS = {
    "add": lambda old, item: old + item,
    "sub": lambda old, item: old - item,
    "and_": lambda old, item: old & item,
    "or_": lambda old, item: old | item,
    "xor": lambda old, item: old ^ item,
    "max": lambda old, item: item if old < item else old,
    "min": lambda old, item: item if old > item else old,
    "nanmax": lambda old, item: item if not _nan(item) and not old >= item else old,
    "nanmin": lambda old, item: item if not _nan(item) and not old <= item else old,
    "inc": lambda old, item: old.dtype.type(0) if old >= item else old + old.dtype.type(1),
    "dec": lambda old, item: item if old == 0 or old > item else old - old.dtype.type(1),
    "exch": lambda old, item: item,
    "cas": lambda old, compare, item: item if _bits(old) == _bits(compare) else old,
}


def _atomic(name):
    def step(array, index, *items, order="relaxed", scope="device"):
        assert (order, scope) in HOW
        old = array[index]
        with np.errstate(all="ignore"):
            array[index] = _STEPS[name](old, *(numeric.cast(item, array.dtype) for item in items))
        return old

    return step


def _compare_and_swap(array, old, item, **words):
    return _atomic("cas")(array, (0,) * array.ndim, old, item, **words)


HOW = set(itertools.product(("relaxed", "acquire", "release", "acq_rel", "seq_cst"), ("block", "device", "system")))


def _lane() -> int:
    return CURRENT.thread.linear % WARP


class CudaModule:
    """`weft.cuda` inside a kernel."""

    syncthreads = BarrierCall()
    syncthreads_count = BarrierCall(sum)
    syncthreads_and = BarrierCall(all)
    syncthreads_or = BarrierCall(any)
    lanemask_lt = staticmethod(lambda: np.uint32((1 << _lane()) - 1))
    lanemask_le = staticmethod(lambda: np.uint32((2 << _lane()) - 1))
    lanemask_eq = staticmethod(lambda: np.uint32(1 << _lane()))
    lanemask_ge = staticmethod(lambda: np.uint32(warps.ALL & ~((1 << _lane()) - 1)))
    lanemask_gt = staticmethod(lambda: np.uint32(warps.ALL & ~((2 << _lane()) - 1)))
    grid = staticmethod(_grid)
    gridsize = staticmethod(_gridsize)
    threadfence = threadfence_block = threadfence_system = staticmethod(lambda: None)
    shared = types.SimpleNamespace(array=Sited(_shared_array))
    local = types.SimpleNamespace(array=Sited(_local_array))
    atomic = types.SimpleNamespace(**{name: _atomic(name) for name in _STEPS}, compare_and_swap=_compare_and_swap)
    coop = types.SimpleNamespace(
        **{
            kind: types.SimpleNamespace(**{name: collectives.Collective(kind, name) for name in names})
            for kind, names in collectives.FUNCTIONS.items()
        }
    )
    stop_gradient = staticmethod(lambda value: value)
    warpsize = np.int32(WARP)
    bfloat16, bfloat16_product = staticmethod(rounded), staticmethod(product)
    random = draws.RANDOM
    brains = staticmethod(lambda array: array.view(Brains))
    own_update, own_reduced = staticmethod(arrays.update), staticmethod(arrays.reduced)
    own_there, own_next = staticmethod(arrays.there), staticmethod(arrays.following)

    @property
    def threadIdx(self):
        return CURRENT.thread.thread_idx

    @property
    def blockIdx(self):
        return CURRENT.thread.block_idx

    @property
    def blockDim(self):
        return CURRENT.thread.block_dim

    @property
    def gridDim(self):
        return CURRENT.thread.grid_dim

    @property
    def laneid(self):
        return np.int32(CURRENT.thread.linear % WARP)


for _name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split():
    setattr(CudaModule, _name, getattr(np, _name))
for _name, _function in bit_functions.WORDS.items():
    setattr(CudaModule, _name, staticmethod(_function))
for _name in ("syncwarp", "activemask", *warps.COMBINE):
    setattr(CudaModule, _name, WarpCall(_name))
CudaModule.boolean = CudaModule.bool_ = np.bool_
CUDA = CudaModule()


class Register:
    """A special register that is imported by name (`from weft.cuda import threadIdx`); read when its name is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self):
        """Its value in the running thread."""
        return getattr(CUDA, self.name)


REGISTERS = ("threadIdx", "blockIdx", "blockDim", "gridDim", "laneid", "warpsize")


# ---- NumPy ----------------------------------------------------------------------------------------------------------


def _in_order(array) -> list:
    return list(np.asarray(array).flat)


def _sum(array):
    """One element after the other, floats in their own type."""
    items = _in_order(array)
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype("uint64" if array.dtype.kind == "u" else "int64")
    total = dtype.type(0)
    for item in items:
        total = total + dtype.type(item)
    return total


def _prod(array):
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype("uint64" if array.dtype.kind == "u" else "int64")
    total = dtype.type(1)
    for item in _in_order(array):
        total = numeric._BINARY["*"](total, dtype.type(item), dtype)
    return total


NUMPY_FUNCTIONS = {
    np.sum: _sum, np.prod: _prod, np.min: np.min, np.max: np.max, np.any: np.any, np.all: np.all,
    np.argmin: lambda array: np.int64(np.argmin(array)), np.argmax: lambda array: np.int64(np.argmax(array)),
    np.count_nonzero: lambda array: np.int64(np.count_nonzero(array)),
}  # fmt: skip


# ---- math -----------------------------------------------------------------------------------------------------------


def _float_of(args):
    """float32 if all arguments are float32, else float64; and the arguments converted to it."""
    args = [numeric.value(arg) for arg in args]
    dtype = np.float32 if all(arg.dtype == np.float32 for arg in args) else np.float64
    return dtype, [numeric.cast(arg, dtype) for arg in args]


def _through_numpy(ufunc):
    def function(*args):
        _, args = _float_of(args)
        with np.errstate(all="ignore"):
            return ufunc(*args)

    return function


def _through_python(python, poles=()):
    def function(*args):
        dtype, args = _float_of(args)
        try:
            return dtype(python(*map(float, args)))
        except OverflowError:
            return dtype(np.inf)
        except ValueError:
            return dtype(np.inf if float(args[0]) in poles else np.nan)

    return function


def _ldexp(mantissa, exponent):
    dtype, (mantissa,) = _float_of([mantissa])
    with np.errstate(all="ignore"):
        return dtype(np.ldexp(np.float64(mantissa), int(exponent)))


def _pow(base, exponent):
    base, exponent = numeric.value(base), numeric.value(exponent)
    if base.dtype == np.float32 and exponent.dtype == np.int32:
        exponent = np.float32(exponent)
    return _through_numpy(np.power)(base, exponent)


def _frexp(item):
    _, (item,) = _float_of([item])
    mantissa, exponent = np.frexp(item)
    return mantissa, np.int32(exponent)


def _modf(item):
    _, (item,) = _float_of([item])
    return np.modf(item)


def _remainder(x, y):
    dtype, (x, y) = _float_of([x, y])
    try:
        return dtype(math.remainder(float(x), float(y)))
    except ValueError:
        return dtype(np.nan)


_NUMPY_NAMES = (
    "cos cosh copysign ceil degrees exp exp2 expm1 fabs floor fmod hypot log log10 log1p log2 nextafter radians sin "
    "sinh sqrt tan tanh trunc"
)
MATH_FUNCTIONS = {name: _through_numpy(getattr(np, name)) for name in _NUMPY_NAMES.split()}
MATH_FUNCTIONS |= {
    name: _through_numpy(getattr(np, "arc" + name[1:])) for name in "acos acosh asin asinh atan atan2 atanh".split()
}
MATH_FUNCTIONS |= {
    "erf": _through_python(math.erf),
    "erfc": _through_python(math.erfc),
    "gamma": _through_python(math.gamma),
    "lgamma": _through_python(math.lgamma, poles=[0.0, *(float(-n) for n in range(1, 200))]),
    "ldexp": _ldexp,
    "pow": _pow,
    "frexp": _frexp,
    "modf": _modf,
    "remainder": _remainder,
    "isnan": lambda item: np.bool_(np.isnan(item)),
    "isinf": lambda item: np.bool_(np.isinf(item)),
    "isfinite": lambda item: np.bool_(np.isfinite(item)),
}


# ---- builtins -------------------------------------------------------------------------------------------------------


class Range:
    """A range with numbers of one type. It can be iterated several times."""

    def __init__(self, dtype: type, whole: range) -> None:
        self.dtype, self.whole = dtype, whole

    def __iter__(self):
        return map(self.dtype, self.whole)

    def __reversed__(self):
        return map(self.dtype, reversed(self.whole))

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, index):
        if isinstance(index, slice):
            bounds = [None if bound is None else int(bound) for bound in (index.start, index.stop, index.step)]
            return Range(np.int64, self.whole[slice(*bounds)])
        return self.dtype(self.whole[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and self.whole == other.whole

    def __hash__(self) -> int:
        return hash(self.whole)

    start = property(lambda self: self.dtype(self.whole.start))
    stop = property(lambda self: self.dtype(self.whole.stop))
    step = property(lambda self: self.dtype(self.whole.step))

    def count(self, item):
        """The number of occurrences of a number."""
        return np.int64(sum(bool(numeric.compare("==", item, each)) for each in self))

    def index(self, item):
        """The index of a number, or -1."""
        return np.int64(next((at for at, each in enumerate(self) if numeric.compare("==", item, each)), -1))


def _enumerate(items, start=0):
    return ((np.int64((number + 2**63) % 2**64 - 2**63), item) for number, item in enumerate(items, int(start)))


def _range(*bounds):
    bounds = [numeric.value(bound) for bound in bounds]
    dtypes = [bound.dtype for bound in bounds]
    if all(dtype == np.int32 for dtype in dtypes):
        dtype = np.int32
    elif all(dtype.kind == "u" for dtype in dtypes):
        dtype = np.uint64
    else:
        dtype = np.int64
    whole = [int(numeric.cast(bound, dtype)) for bound in bounds]
    if whole[2:] == [0]:  # a step that is not a constant
        whole = [0]
    return Range(dtype, range(*whole))


def _int(item):
    item = numeric.value(item)
    return item if item.dtype.kind in "iu" else numeric.cast(item, np.int64)


def _float(item):
    if isinstance(item, str):
        return np.float64(item)
    item = numeric.value(item)
    return item if item.dtype.kind == "f" else numeric.cast(item, np.float64)


def _complex(real, imag=None):
    real, imag = numeric.value(real), numeric.value(imag)
    if imag is None and real.dtype.kind == "c":
        return real
    single = all(part is None or part.dtype == np.float32 for part in (real, imag))
    if real.dtype.kind != "c":  # an integer of NumPy's is complex to `complex`: its zero hides the sign of imag's
        real = float(real)
    return (np.complex64 if single else np.complex128)(complex(real, 0.0 if imag is None else imag))


def _abs(item):
    item = numeric.value(item)
    if item.dtype.kind == "b":
        return np.int8(item)
    with np.errstate(all="ignore"):
        return np.abs(item)


def _extreme(sign):
    """`max` for sign 1, `min` for -1: passes over NaN, and -0.0 is less than 0.0."""

    def rank(item):
        return not np.isnan(item), sign * item, sign * (0.5 - np.signbit(item))

    def better(new, old):
        if new.dtype.kind == "f":
            return rank(new) > rank(old)
        return new > old if sign > 0 else new < old

    def function(*items):
        items = [numeric.value(item) for item in items]
        dtype = items[0].dtype
        for item in items[1:]:
            dtype = numeric.unify(dtype, item.dtype)
        best = numeric.cast(items[0], dtype)
        for item in items[1:]:
            item = numeric.cast(item, dtype)
            best = item if better(item, best) else best
        return best

    return function


def _round(item, digits=None):
    item = numeric.value(item)
    if digits is None:
        return item if numeric.is_int(item.dtype) else numeric.cast(np.rint(item), np.int64)
    return item.dtype.type(round(float(item), int(digits)))


BUILTINS = {
    "range": _range,
    "enumerate": _enumerate,
    "len": lambda item: np.int64(len(item)),
    "int": _int,
    "float": _float,
    "bool": lambda item: numeric.cast(item, np.bool_),
    "complex": _complex,
    "abs": _abs,
    "min": _extreme(-1),
    "max": _extreme(1),
    "round": _round,
    "pow": lambda base, exponent: numeric.binary("**", base, exponent),
}


# ---- substitution ---------------------------------------------------------------------------------------------------

_TABLE: dict[int, object] = {}


def _table() -> dict[int, object]:
    """Maps the id of a real object to its replacement in the oracle. The objects live as long as their modules."""
    if not _TABLE:
        import weft
        from weft import cuda

        entries: list[tuple[object, object]] = [(cuda, CUDA)]
        for name in dir(CudaModule):
            if name.startswith("_") or not hasattr(cuda, name):
                continue
            real = getattr(cuda, name)
            if name in REGISTERS:
                entries.append((real, Register(name)))
            elif name in ("shared", "local", "atomic"):
                mine = getattr(CUDA, name)
                entries.append((real, mine))
                entries += [(getattr(real, key), sub) for key, sub in vars(mine).items() if hasattr(real, key)]
            else:
                entries.append((real, getattr(CUDA, name)))
        for name in ("boolean", "bool_", *(key for key in dir(CudaModule) if hasattr(np, key))):
            if hasattr(weft, name) and name in vars(CudaModule):
                entries.append((getattr(weft, name), getattr(CudaModule, name)))
        entries += [(getattr(math, name), function) for name, function in MATH_FUNCTIONS.items() if hasattr(math, name)]
        entries += list(NUMPY_FUNCTIONS.items())
        entries += [(getattr(builtins, name), function) for name, function in BUILTINS.items()]
        _TABLE.update((id(real), mine) for real, mine in entries)
    return _TABLE


def substitute(item: object) -> object:
    """The replacement of a captured object in a kernel."""
    if id(item) in _table():
        return _table()[id(item)]
    return numeric.value(item)
