"""Machine code of kernels as text, by NVIDIA's `ptxas` and `nvdisasm`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import Dispatcher


def inspect(dispatcher: Dispatcher, signature: Any, option: str) -> Any:
    """Give the SASS of one signature, or of all kernels by their argument types.

    Parameters
    ----------
    dispatcher
        The kernel.
    signature
        The signature, or None for all.
    option
        Options of `nvdisasm`: ``"-gi"`` for the code with its lines, ``"-cfg"`` for a graph of its blocks in DOT.
    """
    if dispatcher.device:
        msg = "Cannot inspect SASS of a device function"
        raise RuntimeError(msg)
    tools = {name: shutil.which(name) for name in ("ptxas", "nvdisasm")}
    missing = [name for name, path in tools.items() if path is None]
    if missing:
        msg = (
            f"{' and '.join(missing)} not found: install the CUDA toolkit, or put these tools on the PATH; "
            "inspect_asm() shows PTX without them"
        )
        raise RuntimeError(msg)
    ptx = dispatcher.inspect_asm(signature)
    if isinstance(ptx, dict):
        return {types: _disassembled(code, _target(code), option) for types, code in ptx.items()}
    return _disassembled(ptx, _target(ptx), option)


def _target(ptx: str) -> str:
    return ptx.split(".target ", 1)[1].split(None, 1)[0].rstrip(",")


def _disassembled(ptx: str, target: str, *options: str) -> str:
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        lines = ["-lineinfo"] if ".loc" in ptx else []
        _run(["ptxas", f"-arch={target}", *lines, str(source), "-o", str(cubin)])
        return text_of(cubin.read_bytes(), *options)


def text_of(cubin: bytes, *options: str) -> str:
    """Give the text of machine code, as `nvdisasm` prints it.

    Raises
    ------
    RuntimeError
        The tool fails, with its message.
    """
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        return _run(["nvdisasm", *options, str(file)])


def _run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        msg = f"{command[0]} failed: {(ran.stderr or ran.stdout).strip()}"
        raise RuntimeError(msg)
    return ran.stdout
