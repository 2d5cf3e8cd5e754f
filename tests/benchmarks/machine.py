"""Properties of this machine and its libraries, for tables of figures; as a program it prints them as JSON.

A separate process queries them, so that the device is free for the benchmarks. Missing libraries are omitted.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys

LIBRARIES = {
    "weft": ("weft",),
    "CuPy": ("cupy", "cupy-cuda13x", "cupy-cuda12x"),
    "PyTorch": ("torch",),
    "numba-cuda": ("numba-cuda",),
}
"""The name of each library on pages, and its distributions."""


def version(names: tuple[str, ...]) -> str | None:
    """The version of the first distribution that is installed."""
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def driver() -> str | None:
    """The version of NVIDIA's driver."""
    if not (command := shutil.which("nvidia-smi")):
        return None
    query = [command, "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return done.stdout.split()[0] if done.returncode == 0 and done.stdout.split() else None


def nvrtc() -> str | None:
    """The version of the compiler of CUDA C++ that CuPy uses."""
    try:
        from cupy.cuda import nvrtc

        return ".".join(map(str, nvrtc.getVersion()))
    except Exception:  # no CuPy, or one that finds no NVRTC
        return None


def facts() -> dict[str, str | int]:
    """weft's device, its driver, and versions."""
    import weft
    from weft import cuda

    name = cuda.get_current_device().name
    found = {
        "device": name.decode() if isinstance(name, bytes) else name,
        "driver": driver() if os.environ.get("WEFT_DEVICE") == "cuda" else None,
        "CPU cores": len(os.sched_getaffinity(0)),
        "Python": platform.python_version(),
        "NVRTC": nvrtc() if os.environ.get("WEFT_DEVICE") == "cuda" else None,
        **{title: version(names) for title, names in LIBRARIES.items()},
    }
    found["weft"] = weft.__version__
    return {key: value for key, value in found.items() if value is not None}


def ask(device: str) -> dict[str, str | int] | None:
    """The properties, from a separate process; empty if weft has no such device (``cuda`` or ``cpu``)."""
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"WEFT_DEVICE": device},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def sentence(machine: dict[str, str | int], date: str) -> str:
    """The known properties in one line."""
    words = {"driver": "driver {}", "CPU cores": "{} CPU cores"}
    parts = [words.get(key, "{}" if key == "device" else key + " {}").format(value) for key, value in machine.items()]
    return ", ".join([*parts, date])


if __name__ == "__main__":
    print(json.dumps(facts()))
