"""Begins the drop-in in a Python process that a program under it starts: its folder is in their PYTHONPATH.

Python imports a module of this name when it starts (https://docs.python.org/3/library/site.html). The environment's own
is run as well. Nothing of weft is imported before the process imports numba.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = Path(__file__).resolve().parent


class _Lead:
    """A finder that begins the drop-in at the first import of numba, and is no more then."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer nothing, or what the drop-in's finder answers."""
        if name.partition(".")[0] != "numba":
            return None
        sys.meta_path.remove(cls)
        # A process of another Python may not have weft: then it uses numba.
        if importlib.util.find_spec("weft") is None:
            return None
        import weft.numba

        weft.numba.install()
        return sys.meta_path[0].find_spec(name, path, target)


def _run_other() -> None:
    """Run the `sitecustomize` that Python would have found without this one."""
    # This folder has no other modules.
    sys.path[:] = [path for path in sys.path if not path or Path(path).resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.meta_path.insert(0, _Lead)
_run_other()
