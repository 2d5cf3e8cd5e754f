"""Code from elsewhere that kernels call: declarations of its functions, and what is linked for them."""

from __future__ import annotations

import io
import os
import types
from _thread import RLock

from weft._weft import Dispatcher, current_device_id, parse_signature
from weft.cuda import _devices as _devices  # registers its fork hooks first, so that they run last
from weft.cuda._code.compile import _is_symbol
from weft.cuda._jit import _make
from weft.errors import LinkerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from weft._weft import ObjectCode, Signature

_ABIS = ("numba", "c")

# Held while a kernel with linked code is compiled and loaded.
LOCK = RLock()
# In the child of a fork, no other thread exists that could release the lock. Its holder compiles, so a fork acquires it
# before all other locks.
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class LinkableCode:
    """Code that is linked with kernels, from memory.

    Parameters
    ----------
    data
        A string or bytes, or an `io.StringIO` or `io.BytesIO`, which is read when a kernel is compiled.
    name
        The name in messages.
    setup_callback
        Called with the `ObjectCode` of all that the code is linked into, once it is loaded. Its ``handle`` is a
        ``CUlibrary``, as that of `cuda.core`'s, and ``get_global(name)`` the address and the size of a variable.
    teardown_callback
        Called with the same before it is unloaded.
    nrt
        Not supported: weft has no runtime of its own in kernels.
    """

    # The file extension, and the name of code without a name.
    kind = ""
    default_name = "<unnamed>"

    def __init__(
        self,
        data: Any,
        name: str | None = None,
        setup_callback: Callable[[Any], object] | None = None,
        teardown_callback: Callable[[Any], object] | None = None,
        nrt: bool = False,
    ) -> None:
        if setup_callback and not callable(setup_callback):
            msg = "setup_callback must be callable"
            raise TypeError(msg)
        if teardown_callback and not callable(teardown_callback):
            msg = "teardown_callback must be callable"
            raise TypeError(msg)
        if nrt:
            msg = "nrt=True: weft does not have Numba's runtime (NRT) to link; leave nrt out"
            raise NotImplementedError(msg)
        self.setup_callback = setup_callback
        self.teardown_callback = teardown_callback
        self._data = data
        self._name = name
        # The folder of its file, which is searched for includes.
        self._folder: str | None = None

    @property
    def name(self) -> str:
        """The name in messages."""
        return self._name or self.default_name

    @property
    def data(self) -> Any:
        """The string or the bytes."""
        return self._data.getvalue() if isinstance(self._data, (io.StringIO, io.BytesIO)) else self._data

    @staticmethod
    def from_path(path: str | os.PathLike[str]) -> LinkableCode:
        """Read a file; its extension says what it is.

        Raises
        ------
        ValueError
            The extension is none of these.
        OSError
            The file cannot be read.
        """
        path = os.fspath(path)
        extension = os.path.splitext(path)[1]  # noqa: PTH122
        kind = _KINDS.get(extension[1:])
        if kind is None:
            msg = f"Unknown extension: {extension}"
            raise ValueError(msg)
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        with open(path, "rb") as file:  # noqa: PTH123
            code = kind(file.read(), name)
        code._folder = folder
        return code

    @classmethod
    def from_path_or_obj(cls, path_or_obj: str | os.PathLike[str] | LinkableCode) -> LinkableCode:
        """Read a file, or return the object unchanged."""
        return path_or_obj if isinstance(path_or_obj, LinkableCode) else cls.from_path(path_or_obj)


class PTXSource(LinkableCode):
    """PTX in memory."""

    kind = "ptx"
    default_name = "<unnamed-ptx>"


class CUSource(LinkableCode):
    """CUDA C++ in memory, which NVRTC compiles."""

    kind = "cu"
    default_name = "<unnamed-cu>"


class Fatbin(LinkableCode):
    """A fatbin in memory."""

    kind = "fatbin"
    default_name = "<unnamed-fatbin>"


class Cubin(LinkableCode):
    """A cubin in memory."""

    kind = "cubin"
    default_name = "<unnamed-cubin>"


class Archive(LinkableCode):
    """A library of objects in memory."""

    kind = "a"
    default_name = "<unnamed-archive>"


class Object(LinkableCode):
    """An object file in memory."""

    kind = "o"
    default_name = "<unnamed-object>"


class LTOIR(LinkableCode):
    """NVIDIA's intermediate code for optimization at link time, in memory; nvJitLink links it."""

    kind = "ltoir"
    default_name = "<unnamed-ltoir>"


_KINDS: dict[str, type[LinkableCode]] = {
    kind.kind: kind for kind in (PTXSource, CUSource, Fatbin, Cubin, Archive, Object, LTOIR)
}


class DeclaredFunction(Dispatcher):
    """A function in another language: the result of `cuda.declare_device`."""

    @property
    def name(self) -> str:
        """Its symbol."""
        symbol: str = self.targetoptions["external"][0]
        return symbol

    @property
    def sig(self) -> Signature:
        """Its signature."""
        return self.declared_signatures[0]

    @property
    def abi(self) -> str:
        """How it is called: "numba" or "c"."""
        abi: str = self.targetoptions["external"][1]
        return abi

    @property
    def use_cooperative(self) -> bool:
        """Whether kernels that call it are launched cooperatively."""
        return bool(self.targetoptions["external"][2])

    @property
    def link(self) -> tuple[Any, ...]:
        """The code that is linked with kernels that call it."""
        return tuple(self.targetoptions["link"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decorate the Python function that stands for it where a kernel is compiled for a CPU."""
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType):
            return _declared(self.name, self.sig, self.link, self.abi, self.use_cooperative, args[0])
        msg = (
            f"`{self.name}` can only be called from kernels. To implement it for the CPU, use it as a decorator of a "
            "Python function"
        )
        raise TypeError(msg)

    def __reduce__(self) -> str | tuple[Any, ...]:
        reduced: str | tuple[Any, ...] = super().__reduce__()
        if isinstance(reduced, str) or self.targetoptions["external"][3]:
            return reduced
        return _declared, (self.name, self.sig, self.link, self.abi, self.use_cooperative)

    def __repr__(self) -> str:
        return f"<weft declared function {self.name}{self.sig!r}>"


def declare_device(
    name: str,
    sig: Any,
    link: Any = None,
    use_cooperative: bool = False,
    abi: str = "numba",
) -> DeclaredFunction:
    """Declare a function of another language, which kernels and device functions call.

    Parameters
    ----------
    name
        Its symbol: in CUDA C++ the name of an ``extern "C"`` function.
    sig
        One signature with its return type: ``"float32(float32, CPointer(int32))"``. Arguments are converted to it.
    link
        Its code: paths, `LinkableCode` objects, or a list of these, which are linked with each kernel that calls it.
    use_cooperative
        It waits for all threads of the grid: kernels that call it are launched cooperatively.
    abi
        ``"numba"``: ``int name(float *result, float, int *)``, which returns 0, or else ends the thread. ``"c"``:
        ``float name(float, int *)``.

    Returns
    -------
    DeclaredFunction
        It is a decorator, too: of the Python function that a kernel calls in its place on a CPU.

    Raises
    ------
    TypeError
        The signature is none, or has types that are not passed: arrays, records.
    ValueError
        The symbol or the ABI is none.

    Examples
    --------
    >>> @cuda.declare_device("mul_f32_f32", "float32(float32, float32)", link="functions.cu")
    ... def mul(x, y):  # called by kernels on a CPU
    ...     return x * y
    """
    if abi not in _ABIS:
        msg = f"Unsupported ABI: {abi}; declare_device() knows {' and '.join(map(repr, _ABIS))}"
        raise NotImplementedError(msg)
    if not isinstance(name, str):
        msg = f"name must be the name of a function, a str, not {type(name).__name__}"
        raise TypeError(msg)
    if not _is_symbol(name):
        msg = f'{name!r} is not a symbol: declare a CUDA C++ function as `extern "C"`'
        raise ValueError(msg)
    if isinstance(sig, tuple) or (isinstance(sig, str) and sig.lstrip().startswith("(")):
        msg = "Return type must be provided for device declarations"
        raise TypeError(msg)
    return _declared(name, parse_signature(sig), as_links(link), abi, bool(use_cooperative))


def _declared(
    name: str,
    sig: Signature,
    link: tuple[Any, ...],
    abi: str,
    cooperative: bool,
    function: Callable[..., Any] | None = None,
) -> DeclaredFunction:
    python = function is not None
    options = {"device": True, "link": link, "external": (name, abi, cooperative, python)}
    source = None
    if function is None:
        params = ", ".join(f"x{index}" for index in range(len(sig.args)))
        plain = name.replace("$", "_")
        source = f"def {plain}({params}):\n    pass\n"
        scope: dict[str, Any] = {"__name__": __name__}
        exec(compile(source, f"<{plain}>", "exec"), scope)
        function = scope[plain]
    made: Any = _make(function, options=options, signatures=[sig], source=source, kind=DeclaredFunction)
    declared: DeclaredFunction = made
    return declared


def as_links(link: Any) -> tuple[str | LinkableCode, ...]:
    """Give what `link=` names: a path, an object or several of these."""
    if link is None:
        return ()
    several: Iterable[Any] = (link,) if isinstance(link, (str, os.PathLike, LinkableCode)) else link
    found: list[str | LinkableCode] = []
    for item in several:
        if isinstance(item, LinkableCode):
            found.append(item)
        elif isinstance(item, (str, os.PathLike)) and isinstance(path := os.fspath(item), str):
            found.append(path)
        else:
            msg = f"link takes paths and LinkableCode objects, not {type(item).__name__}"
            raise TypeError(msg)
    return tuple(found)


def gather(links: Sequence[str | LinkableCode]) -> list[LinkableCode]:
    """Read what a kernel is linked with, each once.

    Raises
    ------
    RuntimeError
        A file has an extension that is none of code.
    LinkerError
        A file cannot be read.
    """
    found: dict[str | int, LinkableCode] = {}
    for link in links:
        if isinstance(link, LinkableCode):
            found.setdefault(id(link), link)
            continue
        path = os.path.abspath(link)  # noqa: PTH100
        if path in found:
            continue
        extension = os.path.splitext(path)[1]  # noqa: PTH122
        if extension[1:] not in _KINDS:
            what = f"extension {extension}" if extension else "no extension"
            msg = f"Don't know how to link file with {what}: {link}; supported extensions are {', '.join(_KINDS)}"
            raise RuntimeError(msg)
        try:
            found[path] = LinkableCode.from_path(link)
        except FileNotFoundError:
            msg = f"{link} not found"
            raise LinkerError(msg) from None
        except OSError as error:
            msg = f"{link} cannot be read: {error.strerror}"
            raise LinkerError(msg) from None
    return list(found.values())


def pieces(links: Sequence[str | LinkableCode]) -> list[tuple[str, str, Any, str | None]]:
    """Read what a kernel is linked with: of each piece its kind, its name, its text or bytes, and its folder."""
    found = []
    for code in gather(links):
        data = code.data
        if not isinstance(data, (str, bytes)):
            data = bytes(data)
        found.append((code.kind, code.name, data, code._folder))
    return found


class _Life:
    """Lives as long as a kernel's code is used."""

    __slots__ = ("__weakref__", "device", "dispatcher", "end")

    device: int
    # A weak reference to the kernel's dispatcher.
    dispatcher: Any
    # Notifies the linked code that it is unloaded, at most once.
    end: Any


_LIVES: list[Any] = []
"""Weak references to the code that has a teardown callback."""


def set_up(links: Sequence[str | LinkableCode], code: ObjectCode, dispatcher: Dispatcher) -> _Life | None:
    """Call the setup callbacks of loaded linked code, and the teardown callbacks when the result is destroyed."""
    objects = {id(link): link for link in links if isinstance(link, LinkableCode)}.values()
    before_end = [link.teardown_callback for link in objects if link.teardown_callback]
    for link in objects:
        if link.setup_callback:
            link.setup_callback(code)
    if not before_end:
        return None
    import weakref

    life = _Life()
    life.device = current_device_id()
    life.dispatcher = weakref.ref(dispatcher)
    life.end = weakref.finalize(life, _tear_down, before_end, code)
    _LIVES[:] = [known for known in _LIVES if known() is not None]
    _LIVES.append(weakref.ref(life))
    return life


def unload(device: int) -> None:
    """Unload the code of a device that has teardown callbacks; a launch loads it again."""
    with LOCK:
        lives = [life for known in _LIVES if (life := known()) is not None and life.device == device]
        for life in lives:
            dispatcher = life.dispatcher()
            life.end()
            if dispatcher is not None:
                dispatcher._forget(device)


def _tear_down(callbacks: Sequence[Callable[[Any], object]], code: ObjectCode) -> None:
    for callback in callbacks:
        callback(code)
