"""Pages of the host API, made by Sphinx of docstrings: every name that `weft.cuda` has for programs is on one."""

from __future__ import annotations

import importlib
from pathlib import Path

from weft import cuda
from weft.cuda._kernel_names import KernelName

# Page: its title, what it says first, and what is on it. Modules and classes are shown with what they have.
PAGES: dict[str, tuple[str, str, list[str]]] = {
    "kernels": (
        "Kernels and launches",
        "What makes kernels of functions, and what a kernel then is.",
        ["jit", "Dispatcher", "ForAll", "Kernel", "intrinsic", "declare_device", "DeclaredFunction", "benchmark"],
    ),
    "ufuncs": ("Ufuncs and reductions", "", ["vectorize", "guvectorize", "reduce", "Reduce"]),
    "arrays": (
        "Arrays and copies",
        "Arrays in the memory of a device, copies, and arrays of other libraries.",
        [
            *("to_device", "device_array", "device_array_like", "DeviceNDArray", "DeviceRecord", "In", "Out", "InOut"),
            *("as_cuda_array", "from_cuda_array_interface", "is_cuda_array", "from_dlpack"),
        ],
    ),
    "memory": (
        "Memory of the host, and whose memory it is",
        "Page-locked, mapped and managed memory, memory of other processes, and who allocates.",
        [
            *("pinned", "pinned_array", "pinned_array_like", "mapped", "mapped_array", "mapped_array_like"),
            *("managed_array", "open_ipc_array", "IpcHandle", "MemoryPointer", "MappedMemory", "PinnedMemory"),
            *("MemoryInfo", "defer_cleanup", "set_memory_manager", "BaseCUDAMemoryManager"),
            *("HostOnlyCUDAMemoryManager", "GetIpcHandleMixin"),
        ],
    ),
    "streams": (
        "Streams, events and graphs",
        "",
        [
            *("stream", "Stream", "default_stream", "legacy_default_stream", "per_thread_default_stream"),
            *("external_stream", "synchronize", "event", "Event", "event_elapsed_time", "graph"),
        ],
    ),
    "devices": (
        "Devices",
        "",
        [
            *("gpus", "is_available", "detect", "list_devices", "select_device", "get_current_device", "Device"),
            *("current_context", "require_context", "Context", "close", "cuda_error", "runtime"),
            *("is_supported_version", "is_float16_supported", "is_bfloat16_supported", "is_fp8_supported"),
            *("profiling", "profile_start", "profile_stop"),
        ],
    ),
    "code": (
        "Code for and from other programs",
        "",
        [
            *("compile", "compile_for_current_device", "compile_ptx", "compile_ptx_for_current_device", "compile_all"),
            *("LinkableCode", "PTXSource", "CUSource", "Cubin", "Fatbin", "Object", "Archive", "LTOIR"),
        ],
    ),
    "types": ("Types and signatures", "", ["typeof", "Type", "Signature", "weft.types"]),
    "random": (
        "Random numbers",
        "States of generators; what kernels draw with them is among "
        "[the names that kernels use](../kernel-names/cuda-random.md).",
        ["random.create_xoroshiro128p_states", "random.init_xoroshiro128p_states"],
    ),
    "extending": ("Functions of libraries", "", ["weft.cuda.extending"]),
    "workers": ("Workers of other processes", "", ["weft.workers.select_gpu", "weft.workers.local_number"]),
    "numba": ("The drop-in", "", ["weft.numba.install", "weft.numba.uninstall", "weft.numba.is_installed"]),
    "errors": ("Exceptions and warnings", "", ["weft.errors", "weft.numba.errors"]),
}
# Names of `weft.cuda` that stand elsewhere: other names of what is on a page, modules with pages of names, settings.
ELSEWHERE = {
    *("CUDADispatcher", "CudaAPIError", "CudaDriverError", "CudaSupportError", "KernelRuntimeError", "LaunchError"),
    *("errors", "types", "random", "config", "cg", "coop", "fp16", "bf16", "libdevice", "void"),
}
EXTENDING = ["register_jitable", "overload", "overload_method", "overload_attribute", "is_jitted"]


def make(folder: Path) -> None:
    """Write the pages."""
    folder.mkdir(parents=True)
    for name in missing():
        raise SystemExit(f"weft.cuda.{name} is on no page of the API: give it one in {__file__}")
    for page, (title, says, names) in PAGES.items():
        parts = [f"# {title}\n", f"{says}\n" if says else ""]
        parts += [shown(name if name.startswith("weft.") else f"weft.cuda.{name}") for name in names]
        (folder / f"{page}.md").write_text("\n".join(parts))
    text = "# The host API\n\nWhat programs call, made of docstrings.\n\n```{toctree}\n\n"
    (folder / "index.md").write_text(text + "\n".join(PAGES) + "\n```\n")


def missing() -> list[str]:
    """Names for programs that no page has."""
    shown = {name for _, _, names in PAGES.values() for name in names}
    return [
        name
        for name in cuda.__all__
        if name not in shown | ELSEWHERE
        and not isinstance(getattr(cuda, name), (KernelName, cuda.Type))
        and type(getattr(cuda, name)).__name__ not in {"Dim3", "VectorType"}
        and getattr(cuda, name) not in (int, float, complex, bool)
    ]


def shown(path: str) -> str:
    """The directive for a name."""
    if path.endswith(".errors"):
        return block(f".. automodule:: {path}\n   :members:\n   :show-inheritance:")
    if path == "weft.types":
        return block(f".. automodule:: {path}\n   :members:\n   :exclude-members: Type, Signature")
    if path == "weft.cuda.extending":
        return "\n".join(block(f".. autofunction:: {path}.{name}") for name in EXTENDING)
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    if path.startswith("weft.cuda.") and isinstance(found, type):
        return block(f".. autoclass:: {path}\n   :members:\n   :inherited-members: int,float,str,tuple,BaseException")
    if path.startswith("weft.cuda.") and not callable(found):
        return block(f".. autodata:: {path}\n   :no-value:")
    return block(f".. autofunction:: {path}")


def block(text: str) -> str:
    """A directive of reStructuredText, as docstrings are."""
    return f"```{{eval-rst}}\n{text}\n```\n"
