"""The names that kernels use, as objects that can be imported.

The compiler knows them by their path; here they only stand for it. Their documentation is that of the compiler's
table of intrinsics, of which those that stand for nothing more are made (`_intrinsic_names.py`); here are the others.
"""

from __future__ import annotations

from weft._missing import missing
from weft._weft import intrinsics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from weft.cuda._intrinsic_names import AtomicNames
    from weft.cuda._kernel_types import Extents

_DOCS = dict(intrinsics())


class KernelName:
    """A function or value that exists in kernels only."""

    def __init__(self, path: str, doc: str | None = None) -> None:
        self._weft_path = path
        self.__module__ = "weft.cuda"
        self.__name__ = path.rpartition(".")[2]
        self.__doc__ = doc or _DOCS.get(path)

    def _refuse(self) -> NoReturn:
        msg = f"{self._weft_path.removeprefix('weft.')} can only be used in a kernel or device function"
        raise RuntimeError(msg)

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        self._refuse()

    def __index__(self) -> int:
        self._refuse()

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def _operand(self, _other: Any = None) -> Any:
        self._refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operand
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __getitem__ = _operand
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __and__ = __rand__ = __or__ = __ror__ = _operand
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __xor__ = __rxor__ = __invert__ = _operand

    def __reduce__(self) -> str:
        # Pickled by name, e.g. `atomic.add` for members of a group.
        return self._weft_path.removeprefix("weft.cuda.")

    def __repr__(self) -> str:
        return f"<{self._weft_path}, for kernels>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            path = self.__dict__.get("_weft_path", "weft.cuda")
            raise missing(path.removeprefix("weft."), f"{path}.{name}", dir(self))


class Dim3(KernelName):
    """An index or a size in a kernel, with the components x, y and z."""

    @property
    def x(self) -> int:
        """The part that runs fastest."""
        self._refuse()

    @property
    def y(self) -> int:
        """The second part."""
        self._refuse()

    @property
    def z(self) -> int:
        """The third part."""
        self._refuse()


class SharedNames(KernelName):
    """`cuda.shared`: memory of a block."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.shared", "Memory that the threads of a block share.")
        if not TYPE_CHECKING:
            self.array = KernelName("weft.cuda.shared.array")
            self.swizzled = KernelName("weft.cuda.shared.swizzled")

    if TYPE_CHECKING:

        def array(
            self, shape: Extents, dtype: Any, alignment: int | None = None, *, swizzle: int | None = None
        ) -> Any: ...
        def swizzled(self, array: Any, width: int) -> Any: ...


class ConstNames(KernelName):
    """`cuda.const`: constants of a kernel's code."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.const", "Constants of a kernel's code.")
        if not TYPE_CHECKING:
            self.array_like = KernelName("weft.cuda.const.array_like")

    if TYPE_CHECKING:

        def array_like(self, array: Any, /) -> Any: ...


class LocalNames(KernelName):
    """`cuda.local`: memory of a thread."""

    def __init__(self) -> None:
        super().__init__("weft.cuda.local", "Memory that each thread has for itself.")
        if not TYPE_CHECKING:
            self.array = KernelName("weft.cuda.local.array")

    if TYPE_CHECKING:

        def array(self, shape: Extents, dtype: Any, alignment: int | None = None) -> Any: ...


if not TYPE_CHECKING:

    class AtomicNames(KernelName):
        """`cuda.atomic`: read-modify-write operations that no other thread can come between."""

        def __init__(self) -> None:
            super().__init__("weft.cuda.atomic", "Operations on array elements that no other thread can come between.")
            for path in _DOCS:
                if path.startswith("weft.cuda.atomic."):
                    setattr(self, path.rpartition(".")[2], KernelName(path))


class MemberName(KernelName):
    """A name of a module of such names."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.__module__ = path.rpartition(".")[0]

    def __reduce__(self) -> str:
        return self.__name__


def member(scope: dict[str, Any], name: str) -> Any:
    """Make a name of a module at its first use; `__all__` has those that the compiler knows."""
    module = scope["__name__"]
    if name == "__all__":
        value: Any = [path.rpartition(".")[2] for path in _DOCS if path.rpartition(".")[0] == module]
    elif (path := f"{module}.{name}") in _DOCS:
        value = MemberName(path)
    else:
        raise missing(f"module {module!r}", f"{module}.{name}", member(scope, "__all__"))
    scope[name] = value
    return value


class Same(KernelName):
    """`literal_unroll` and `stop_gradient`: for plain Python what it is given."""

    def __call__(self, value: Any) -> Any:
        """Give the value itself."""
        return value


threadIdx = Dim3("weft.cuda.threadIdx", "The thread's index in its block.")
blockIdx = Dim3("weft.cuda.blockIdx", "The block's index in the grid.")
blockDim = Dim3("weft.cuda.blockDim", "The number of threads of a block.")
gridDim = Dim3("weft.cuda.gridDim", "The number of blocks of the grid.")
literal_unroll = Same("weft.cuda.literal_unroll")
stop_gradient = Same("weft.cuda.stop_gradient")
shared = SharedNames()
const = ConstNames()
local = LocalNames()
atomic = AtomicNames()
