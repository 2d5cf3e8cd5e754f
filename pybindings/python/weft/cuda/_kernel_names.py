"""The names that kernels use, as objects that can be imported.

The compiler knows them by their path; here they only stand for it. Their documentation is that of the compiler's
table of intrinsics, and a test holds this list against the table.
"""

from __future__ import annotations

from weft._weft import intrinsics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_DOCS = dict(intrinsics())


class KernelName:
    """A function or value that exists in kernels only."""

    def __init__(self, path: str, doc: str | None = None) -> None:
        self._weft_path = path
        self.__name__ = path.rpartition(".")[2]
        self.__doc__ = doc or _DOCS.get(path)

    def _refuse(self) -> NoReturn:
        msg = f"{self._weft_path.removeprefix('weft.')} can only be used in a kernel or device function"
        raise RuntimeError(msg)

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        self._refuse()

    def __index__(self) -> int:
        self._refuse()

    def __reduce__(self) -> str:
        # Pickled by name; members of a group are reached through it.
        return self._weft_path.removeprefix("weft.cuda.")

    def __repr__(self) -> str:
        return f"<{self._weft_path}, for kernels>"


class Dim3(KernelName):
    """A kernel's index or extent with the parts x, y and z."""

    @property
    def x(self) -> Any:
        """The part that runs fastest."""
        self._refuse()

    @property
    def y(self) -> Any:
        """The second part."""
        self._refuse()

    @property
    def z(self) -> Any:
        """The third part."""
        self._refuse()


class SharedNames(KernelName):
    """`cuda.shared`: memory of a block."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.shared", "Memory that the threads of a block share.")
        self.array = KernelName("weft.cuda.shared.array")


class ConstNames(KernelName):
    """`cuda.const`: constants of a kernel's code."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.const", "Constants of a kernel's code.")
        self.array_like = KernelName("weft.cuda.const.array_like")


class LocalNames(KernelName):
    """`cuda.local`: memory of a thread."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.local", "Memory that each thread has for itself.")
        self.array = KernelName("weft.cuda.local.array")


class AtomicNames(KernelName):
    """`cuda.atomic`: read-modify-write operations that no other thread can come between."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.atomic", "Operations on array elements that no other thread can come between.")
        for path in _DOCS:
            if path.startswith("weft.cuda.atomic."):
                setattr(self, path.rpartition(".")[2], KernelName(path))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> KernelName: ...


class MemberName(KernelName):
    """A name of a module of such names."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.__module__ = path.rpartition(".")[0]

    def __reduce__(self) -> str:
        return self.__name__


def member(scope: dict[str, Any], name: str) -> Any:
    """Make a name of a module when it is first asked for; `__all__` has those that the compiler knows."""
    module = scope["__name__"]
    if name == "__all__":
        value: Any = [path.rpartition(".")[2] for path in _DOCS if path.rpartition(".")[0] == module]
    elif (path := f"{module}.{name}") in _DOCS:
        value = MemberName(path)
    else:
        msg = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(msg)
    scope[name] = value
    return value


class LiteralUnroll(KernelName):
    """`literal_unroll`: for plain Python what it is given."""

    def __call__(self, container: Any) -> Any:
        """Give the tuple itself."""
        return container


threadIdx = Dim3("weft.cuda.threadIdx", "The thread's index in its block.")
blockIdx = Dim3("weft.cuda.blockIdx", "The block's index in the grid.")
blockDim = Dim3("weft.cuda.blockDim", "The number of threads of a block.")
gridDim = Dim3("weft.cuda.gridDim", "The number of blocks of the grid.")
laneid = KernelName("weft.cuda.laneid")
warpsize = KernelName("weft.cuda.warpsize")
grid = KernelName("weft.cuda.grid")
gridsize = KernelName("weft.cuda.gridsize")
syncthreads = KernelName("weft.cuda.syncthreads")
syncthreads_count = KernelName("weft.cuda.syncthreads_count")
syncthreads_and = KernelName("weft.cuda.syncthreads_and")
syncthreads_or = KernelName("weft.cuda.syncthreads_or")
inline_ptx = KernelName("weft.cuda.inline_ptx")
literal_unroll = LiteralUnroll("weft.cuda.literal_unroll")
syncwarp = KernelName("weft.cuda.syncwarp")
shfl_sync = KernelName("weft.cuda.shfl_sync")
shfl_up_sync = KernelName("weft.cuda.shfl_up_sync")
shfl_down_sync = KernelName("weft.cuda.shfl_down_sync")
shfl_xor_sync = KernelName("weft.cuda.shfl_xor_sync")
all_sync = KernelName("weft.cuda.all_sync")
any_sync = KernelName("weft.cuda.any_sync")
eq_sync = KernelName("weft.cuda.eq_sync")
ballot_sync = KernelName("weft.cuda.ballot_sync")
match_any_sync = KernelName("weft.cuda.match_any_sync")
match_all_sync = KernelName("weft.cuda.match_all_sync")
activemask = KernelName("weft.cuda.activemask")
lanemask_lt = KernelName("weft.cuda.lanemask_lt")
lanemask_le = KernelName("weft.cuda.lanemask_le")
lanemask_eq = KernelName("weft.cuda.lanemask_eq")
lanemask_ge = KernelName("weft.cuda.lanemask_ge")
lanemask_gt = KernelName("weft.cuda.lanemask_gt")
elect_sync = KernelName("weft.cuda.elect_sync")
reduce_add_sync = KernelName("weft.cuda.reduce_add_sync")
reduce_min_sync = KernelName("weft.cuda.reduce_min_sync")
reduce_max_sync = KernelName("weft.cuda.reduce_max_sync")
reduce_and_sync = KernelName("weft.cuda.reduce_and_sync")
reduce_or_sync = KernelName("weft.cuda.reduce_or_sync")
reduce_xor_sync = KernelName("weft.cuda.reduce_xor_sync")
threadfence = KernelName("weft.cuda.threadfence")
threadfence_block = KernelName("weft.cuda.threadfence_block")
threadfence_system = KernelName("weft.cuda.threadfence_system")
popc = KernelName("weft.cuda.popc")
clz = KernelName("weft.cuda.clz")
ffs = KernelName("weft.cuda.ffs")
brev = KernelName("weft.cuda.brev")
byte_perm = KernelName("weft.cuda.byte_perm")
funnelshift_l = KernelName("weft.cuda.funnelshift_l")
funnelshift_lc = KernelName("weft.cuda.funnelshift_lc")
funnelshift_r = KernelName("weft.cuda.funnelshift_r")
funnelshift_rc = KernelName("weft.cuda.funnelshift_rc")
fma = KernelName("weft.cuda.fma")
cbrt = KernelName("weft.cuda.cbrt")
rsqrt = KernelName("weft.cuda.rsqrt")
selp = KernelName("weft.cuda.selp")
clock = KernelName("weft.cuda.clock")
clock64 = KernelName("weft.cuda.clock64")
globaltimer = KernelName("weft.cuda.globaltimer")
nanosleep = KernelName("weft.cuda.nanosleep")
ldca = KernelName("weft.cuda.ldca")
ldcg = KernelName("weft.cuda.ldcg")
ldcs = KernelName("weft.cuda.ldcs")
ldlu = KernelName("weft.cuda.ldlu")
ldcv = KernelName("weft.cuda.ldcv")
stcg = KernelName("weft.cuda.stcg")
stcs = KernelName("weft.cuda.stcs")
stwb = KernelName("weft.cuda.stwb")
stwt = KernelName("weft.cuda.stwt")
shared = SharedNames()
const = ConstNames()
local = LocalNames()
atomic = AtomicNames()
