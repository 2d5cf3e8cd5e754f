"""How `numba.cuda` comes to be weft: a finder of Python's import system, and the modules that it gives.

https://docs.python.org/3/reference/import.html#finders-and-loaders has the rules. The finder is the first in
`sys.meta_path`, and answers for `numba.cuda` and its submodules; where numba is not installed, for `numba` and all its
submodules. Each module is a `Facade`, which looks names up in weft's modules on access (`_modules` has the table).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from weft.numba import _modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# The folder that is added to PYTHONPATH so that child processes also use weft.
SITE = str(Path(__file__).with_name("_site"))

# numba-cuda's finder. It calls all finders again for the same name, so it recurses if there is another numba.cuda.
_REDIRECTOR = "_numba_cuda_redirector"


def is_cuda(name: str) -> bool:
    """Whether a module is `numba.cuda` or below it."""
    return name == "numba.cuda" or name.startswith("numba.cuda.")


class Facade(ModuleType):
    """A module of numba's by its name, whose content is weft's."""

    def __getattr__(self, name: str) -> Any:
        """Look a name up in weft."""
        if name == "__all__":
            return _modules.public_names(self.__name__)
        if name[:2] == name[-2:] == "__" and name != "__version__":
            msg = f"module {self.__name__!r} has no attribute {name!r}"
            raise AttributeError(msg, name=name, obj=self)
        value = _modules.look_up(self.__name__, name)
        if value is _modules.MISSING:
            raise AttributeError(_modules.help_for(f"{self.__name__}.{name}"), name=name, obj=self)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *_modules.public_names(self.__name__)})

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


def import_module(name: str) -> ModuleType:
    """Import a module that a pickle names: one of numba's, where the drop-in has been installed.

    A process that is not led to weft is so from here on: what came with the module was written for weft's.

    Parameters
    ----------
    name
        The module's name.
    """
    import weft.numba

    weft.numba.install()
    return importlib.import_module(name)


class Finder(MetaPathFinder, Loader):
    """Finds `numba.cuda`, or all of `numba` where it is not installed."""

    def __init__(self, *, has_numba: bool) -> None:
        self.has_numba = has_numba

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Give the spec of a module that is weft's; None for what others are to find."""
        if fullname.partition(".")[0] != "numba" or (self.has_numba and not is_cuda(fullname)):
            return None
        if fullname not in _modules.MODULES:
            # `from … import` of a missing name must have the message of an attribute error. Without `name`: with it,
            # Python would use its own message.
            raise ModuleNotFoundError(_modules.help_for(fullname))
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        if spec.name in _modules.CONFIGS:
            from weft.numba._config import Config

            return Config(spec.name)
        return Facade(spec.name, f"weft under the name of `{spec.name}`.")

    def exec_module(self, module: ModuleType) -> None:
        """Let numba and weft know each other, where both are there, and device arrays be as numba's."""
        if module.__name__ == "numba.cuda":
            from weft.numba import _arrays

            _arrays.join()
            if self.has_numba:
                from weft.numba import _beside

                _beside.join()


class Installed:
    """The changes of `install` in the process."""

    def __init__(self, *, processes: bool) -> None:
        self._redirectors = [
            (i, finder) for i, finder in enumerate(sys.meta_path) if type(finder).__module__ == _REDIRECTOR
        ]
        for _, finder in self._redirectors:
            sys.meta_path.remove(finder)
        has_numba = "numba" in sys.modules or _find_numba()
        # numba.cuda is already loaded: later imports get weft.
        self._modules = {name: sys.modules.pop(name) for name in list(sys.modules) if is_cuda(name)}
        numba = sys.modules.get("numba")
        if numba is not None:
            vars(numba).pop("cuda", None)
        self.finder = Finder(has_numba=has_numba)
        sys.meta_path.insert(0, self.finder)
        self._led = processes and _lead_processes()
        if numba is not None:
            importlib.import_module("numba.cuda")

    def remove(self) -> None:
        """Undo it."""
        sys.meta_path.remove(self.finder)
        for i, finder in self._redirectors:
            sys.meta_path.insert(i, finder)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "numba" and isinstance(module, Facade | _modules.config_class()):
                del sys.modules[name]
        numba = sys.modules.get("numba")
        if numba is not None:
            vars(numba).pop("cuda", None)
            if "numba.cuda" in self._modules:
                vars(numba)["cuda"] = self._modules["numba.cuda"]
        sys.modules.update(self._modules)
        from weft.numba import _arrays

        _arrays.part()
        if self.finder.has_numba:
            from weft.numba import _beside

            _beside.part()
        if self._led:
            _leave_processes()


def _find_numba() -> bool:
    """Whether numba is installed. A mere folder of that name, which Python would take for a package, is not numba."""
    spec = importlib.util.find_spec("numba")
    return spec is not None and spec.origin is not None


def _lead_processes() -> bool:
    """Put the folder with `sitecustomize` into what processes inherit; False if it is there."""
    paths = os.environ.get("PYTHONPATH", "")
    if SITE in paths.split(os.pathsep):
        return False
    os.environ["PYTHONPATH"] = SITE + os.pathsep + paths if paths else SITE
    return True


def _leave_processes() -> None:
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != SITE]
    if any(paths):
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    else:
        os.environ.pop("PYTHONPATH", None)
