"""Packages of exported kernels: `kernel.export(...)`."""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
import weakref
from pathlib import Path

from weft._weft import export_files
from weft.cuda._rules import rules_of, signature_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    from weft._weft import Dispatcher

_TARGETS = ("sm_75", "host")
_HEADER = 16


class Export:
    """A package of exported kernels.

    Parameters
    ----------
    name
        The package's name.
    files
        The files: the contents by the name.
    """

    def __init__(self, name: str, files: dict[str, bytes]) -> None:
        self.name = name
        self.files = files
        container = files[f"{name}.weft"]
        length = int.from_bytes(container[12:16], "little")
        self.description: dict[str, Any] = json.loads(container[_HEADER : _HEADER + length])
        self._code = memoryview(container)[_HEADER + length :]
        self._folder: Path | None = None

    def __repr__(self) -> str:
        kernels = ", ".join(self.kernels)
        return f"<package {self.name} of exported kernels: {kernels}>"

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels in the package."""
        return [kernel["name"] for kernel in self.description["kernels"]]

    @property
    def targets(self) -> list[str]:
        """The targets with code."""
        return sorted({image["target"] for kernel in self.description["kernels"] for image in kernel["images"]})

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the files into a folder, which is made.

        Parameters
        ----------
        folder
            The folder.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        OSError
            A file cannot be written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, contents in self.files.items():
            (folder / name).write_bytes(contents)
            paths.append(folder / name)
        return paths

    def code(self, target: str | None = None, kernel: str | None = None) -> bytes:
        """Give the code of a kernel for a target: PTX, a cubin where the package has one, or an object.

        Parameters
        ----------
        target
            The target; by default the only one for GPUs.
        kernel
            The kernel's name in the package, if it has several.

        Raises
        ------
        ValueError
            The package has no such kernel or target.
        """
        image = self._image(target, kernel)
        return bytes(self._code[image["offset"] : image["offset"] + image["size"]])

    def symbol(self, target: str | None = None, kernel: str | None = None) -> str:
        """Give the symbol of a kernel in its code.

        Parameters
        ----------
        target, kernel
            As `code` takes them.
        """
        symbol: str = self._image(target, kernel)["symbol"]
        return symbol

    def parameters(self, target: str | None = None, kernel: str | None = None) -> list[tuple[str, str, int | None]]:
        """Give the parameters of the code: the values that a launch passes, in order.

        Parameters
        ----------
        target, kernel
            As `code` takes them.

        Returns
        -------
        list of tuple
            The name of the argument; which of its values: ``"value"``, ``"real"``, ``"imag"``, ``"data"``, ``"shape"``
            or ``"stride"``; and the dimension of a shape or a stride. Shapes and strides are int64, strides in bytes.
        """
        params = self._kernel(kernel)["params"]
        slots = self._image(target, kernel)["slots"]
        return [(params[number]["name"], field, *(dim or [None])) for number, field, *dim in slots]

    def arguments(self, *args: Any, target: str | None = None, kernel: str | None = None) -> list[Any]:
        """Give the values that a launch of the code passes, for the arguments of a call.

        Parameters
        ----------
        *args
            Arrays with ``shape``, ``strides`` in bytes and ``dtype``, and numbers, in the order of the kernel's
            parameters.
        target, kernel
            As `code` takes them.

        Returns
        -------
        list
            An array stands for its address, other values are NumPy scalars: what CuPy's ``RawKernel`` takes.

        Raises
        ------
        TypeError
            The number of arguments, a dtype, the number of dimensions or the layout is not that of the kernel.
        """
        import numpy as np

        described = self._kernel(kernel)
        params = described["params"]
        if len(args) != len(params):
            msg = f"`{described['name']}` takes {len(params)} arguments, not {len(args)}"
            raise TypeError(msg)
        for param, arg in zip(params, args, strict=True):
            _check(described["name"], param, arg)
        values: list[Any] = []
        for number, field, *dim in self._image(target, kernel)["slots"]:
            arg, param = args[number], params[number]
            if field == "data":
                values.append(arg)
            elif field in ("shape", "stride"):
                values.append(np.int64(getattr(arg, "shape" if field == "shape" else "strides")[dim[0]]))
            else:
                dtype = np.dtype({"boolean": "bool"}.get(param["dtype"], param["dtype"]))
                value = dtype.type(arg)
                values.append(value if field == "value" else getattr(value, field))
        return values

    def object_code(self, target: str | None = None, kernel: str | None = None) -> Any:
        """Give the code as an ``ObjectCode`` of `cuda.core`, whose kernels its ``launch`` takes.

        Parameters
        ----------
        target, kernel
            As `code` takes them.

        Raises
        ------
        ImportError
            `cuda.core` is not installed.
        ValueError
            The package has no such kernel or target.
        """
        core = importlib.import_module("cuda.core")
        if not hasattr(core, "ObjectCode"):  # before cuda.core 1.0
            core = importlib.import_module("cuda.core.experimental")
        is_ptx = self._image(target, kernel)["format"] == "ptx"
        make = core.ObjectCode.from_ptx if is_ptx else core.ObjectCode.from_cubin
        return make(self.code(target, kernel))

    def raw_kernel(self, target: str | None = None, kernel: str | None = None) -> Any:
        """Give the kernel as CuPy has it: a function of a ``RawModule``, launched with `arguments`. Keep the package.

        Parameters
        ----------
        target, kernel
            As `code` takes them.

        Raises
        ------
        ImportError
            CuPy is not installed.
        ValueError
            The package has no such kernel or target.
        """
        cupy = importlib.import_module("cupy")
        # A RawModule loads PTX and cubins from files, on each device when it is first used there.
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="weft-export-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        suffix = "ptx" if self._image(target, kernel)["format"] == "ptx" else "cubin"
        symbol = self.symbol(target, kernel)
        file = self._folder / f"{symbol}.{target or self.targets[0]}.{suffix}"
        file.write_bytes(self.code(target, kernel))
        return cupy.RawModule(path=str(file)).get_function(symbol)

    def _kernel(self, name: str | None) -> dict[str, Any]:
        kernels: list[dict[str, Any]] = self.description["kernels"]
        if name is None and len(kernels) == 1:
            return kernels[0]
        for kernel in kernels:
            if kernel["name"] == name:
                return kernel
        what = "name one of its kernels" if name is None else f"it has no kernel `{name}`"
        msg = f"package `{self.name}`: {what}: {', '.join(self.kernels)}"
        raise ValueError(msg)

    def _image(self, target: str | None, name: str | None) -> dict[str, Any]:
        kernel = self._kernel(name)
        images: list[dict[str, Any]] = kernel["images"]
        gpu = [image for image in images if image["format"] != "object"]
        found = [image for image in images if image["target"] == target] if target is not None else gpu
        if target is None and len({image["target"] for image in gpu}) != 1:
            msg = f"`{kernel['name']}` has code for {', '.join(self.targets)}: name a target"
            raise ValueError(msg)
        if not found:
            msg = f"`{kernel['name']}` has no code for {target}, only for {', '.join(self.targets)}"
            raise ValueError(msg)
        return found[0]


def _check(name: str, param: dict[str, Any], arg: Any) -> None:
    what = f"argument `{param['name']}` of `{name}`"
    if param["kind"] != "array":
        if hasattr(arg, "shape") and arg.shape != ():
            msg = f"{what} is {param['dtype']}, not an array"
            raise TypeError(msg)
        return
    if not all(hasattr(arg, attribute) for attribute in ("shape", "strides", "dtype")):
        msg = f"{what} is an array of {param['dtype']}, not {type(arg).__name__}"
        raise TypeError(msg)
    if str(arg.dtype) != {"boolean": "bool"}.get(param["dtype"], param["dtype"]):
        msg = f"{what} is an array of {param['dtype']}, not of {arg.dtype}"
        raise TypeError(msg)
    if len(arg.shape) != param["ndim"]:
        msg = f"{what} has {param['ndim']} dimensions, not {len(arg.shape)}"
        raise TypeError(msg)
    flag = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS"}.get(param["layout"])
    if flag is not None and not arg.flags[flag]:
        msg = f"{what} must be contiguous ({flag})"
        raise TypeError(msg)


def export(
    kernel: Dispatcher,
    name: str | None,
    signatures: Any,
    targets: str | Sequence[str] | None,
    launch: Any,
    out: Any,
    host_cpu: str,
    cubin: bool,
) -> Export:
    """Export a kernel; see `Dispatcher.export`."""
    if signatures is None:
        declared: list[Any] = list(kernel.declared_signatures)
        chosen = declared or [signature_for(kernel, None)]
    else:
        chosen = list(signatures) if isinstance(signatures, list) else [signatures]
    if targets is None:
        targets = _TARGETS
    elif isinstance(targets, str):
        targets = [target.strip() for target in targets.split(",")]
    rows = []
    for number, signature in enumerate(chosen, 1):
        rules = rules_of(kernel, launch, out, signature)
        row_name = kernel.__name__ if len(chosen) == 1 else f"{kernel.__name__}_{number}"
        rows.append((kernel, signature, row_name, rules.launch, list(rules.outputs.values())))
    package = name or kernel.__name__
    return Export(package, export_files(package, rows, list(targets), host_cpu, bool(cubin)))
