"""Pages of the host API, made by Sphinx from docstrings: every name that `weft.cuda` has for programs has one."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

from weft import cuda
from weft.cuda._kernel_names import KernelName

EXTENDING = ["register_jitable", "overload", "overload_method", "overload_attribute", "is_jitted"]
# Task: its title, what it is about, and its names. Each name has a page of its own.
PAGES: dict[str, tuple[str, str, list[str]]] = {
    "kernels": (
        "Define and launch kernels",
        "`jit` makes a kernel of a function. The result is a `Dispatcher`, which launches.",
        ["jit", "Dispatcher", "ForAll", "Kernel", "benchmark", "intrinsic", "declare_device", "DeclaredFunction"],
    ),
    "derivatives": (
        "Differentiate kernels",
        "The adjoint kernel of a kernel computes gradients in reverse mode.",
        ["vjp", "Vjp", "jvp", "Jvp", "custom_vjp", "tape", "Tape"],
    ),
    "arrays": (
        "Create and copy arrays",
        "Arrays in the memory of a device, copies, and arrays of other libraries.",
        [
            *("to_device", "device_array", "device_array_like", "DeviceNDArray", "DeviceRecord", "In", "Out", "InOut"),
            *("as_cuda_array", "from_cuda_array_interface", "is_cuda_array", "from_dlpack"),
        ],
    ),
    "ufuncs": (
        "Compute with whole arrays",
        "Ufuncs and reductions, made of functions of single numbers.",
        ["vectorize", "guvectorize", "reduce", "Reduce"],
    ),
    "streams": (
        "Order work: streams, events and graphs",
        "Streams run concurrently, events mark points in them, and graphs repeat recorded work.",
        [
            *("synchronize", "stream", "Stream", "default_stream", "legacy_default_stream"),
            *("per_thread_default_stream", "external_stream", "event", "Event", "event_elapsed_time", "graph"),
        ],
    ),
    "devices": (
        "Choose and query devices",
        "Which devices there are, what they can do, and which one is current.",
        [
            *("is_available", "detect", "gpus", "list_devices", "select_device", "get_current_device", "Device"),
            *("current_context", "require_context", "Context", "close", "cuda_error", "runtime"),
            *("is_supported_version", "is_float16_supported", "is_bfloat16_supported", "is_fp8_supported"),
            *("profiling", "profile_start", "profile_stop"),
        ],
    ),
    "memory": (
        "Manage memory",
        "Page-locked, mapped and managed memory, memory of other processes, allocators, and tensor maps.",
        [
            *("pinned", "pinned_array", "pinned_array_like", "mapped", "mapped_array", "mapped_array_like"),
            *("managed_array", "open_ipc_array", "IpcHandle", "MemoryPointer", "MappedMemory", "PinnedMemory"),
            *("MemoryInfo", "defer_cleanup", "set_memory_manager", "BaseCUDAMemoryManager"),
            *("HostOnlyCUDAMemoryManager", "GetIpcHandleMixin"),
            *("tensor_map", "TensorMap"),
        ],
    ),
    "random": (
        "Create states of random number generators",
        "Kernels draw numbers with functions among [the names that kernels use](../reference/names/random.md).",
        ["random.create_xoroshiro128p_states", "random.init_xoroshiro128p_states"],
    ),
    "types": (
        "Name types and signatures",
        "The types of arguments, and what `cuda.jit` accepts as a signature.",
        ["typeof", "Type", "Signature", "weft.types"],
    ),
    "code": (
        "Exchange code with other programs",
        "PTX and LTO-IR of a function, code from elsewhere that a kernel is linked with, and modules of such code.",
        [
            *("compile", "compile_for_current_device", "compile_ptx", "compile_ptx_for_current_device", "compile_all"),
            *("LinkableCode", "PTXSource", "CUSource", "Cubin", "Fatbin", "Object", "Archive", "LTOIR"),
            *("Module", "Function", "like", "shaped", "Output", "Effect", "Export", "as_torch_op", "as_jax_call"),
        ],
    ),
    "extending": (
        "Add functions that kernels can call",
        "Overloads of functions, methods and attributes, for libraries.",
        [f"weft.cuda.extending.{name}" for name in EXTENDING],
    ),
    "workers": (
        "Assign GPUs to worker processes",
        "For programs that start several processes, such as with Dask or MPI.",
        ["weft.workers.select_gpu", "weft.workers.local_number"],
    ),
    "numba": (
        "Run programs for numba.cuda",
        "[The drop-in](../drop-in.md), from Python.",
        ["weft.numba.install", "weft.numba.uninstall", "weft.numba.is_installed"],
    ),
    "errors": (
        "Handle exceptions and warnings",
        "weft's exceptions and warnings, and Numba's names for them.",
        ["weft.errors", "weft.numba.errors"],
    ),
}
MODULES = {"weft.errors", "weft.numba.errors", "weft.types"}
# Names of `weft.cuda` that are documented elsewhere: other names of what is on a page, modules of names for
# kernels, and settings.
ELSEWHERE = {
    *("CUDADispatcher", "CudaAPIError", "CudaDriverError", "CudaSupportError", "KernelRuntimeError", "LaunchError"),
    *(
        "errors",
        "types",
        "random",
        "config",
        "cg",
        "cluster",
        "coop",
        "mma",
        "fp8",
        "fp16",
        "bf16",
        "libdevice",
        "void",
    ),
}


def make(folder: Path) -> None:
    """Write a page for each task, and one for each of its names."""
    for name in missing():
        raise SystemExit(f"weft.cuda.{name} is on no page of the API: give it one in {__file__}")
    index = ["# The host API\n", "Names that programs use on the host, by task.\n", "| task | names |", "|---|---|"]
    for page, (title, says, names) in PAGES.items():
        (folder / page).mkdir(parents=True)
        table, links = ["| name | what it does |", "|---|---|"], []
        for name in names:
            path = name if name.startswith("weft.") else f"weft.cuda.{name}"
            shown = path.removeprefix("weft.") if path.startswith("weft.cuda.") else path
            file = f"{page}/{stem(name, names)}"
            (folder / f"{file}.md").write_text(f"# {shown}\n\n{directive(path)}")
            table.append(f"| [`{shown}`]({file}.md) | {summary(path)} |")
            links.append(f"[`{shown}`]({file}.md)")
        toctree = toc([f"{page}/{stem(name, names)}" for name in names])
        (folder / f"{page}.md").write_text("\n".join([f"# {title}\n", f"{says}\n", *table, "", toctree]))
        index.append(f"| [{title}]({page}.md) | {', '.join(links)} |")
    (folder / "index.md").write_text("\n".join([*index, "", toc(list(PAGES))]))


def toc(pages: list[str]) -> str:
    """A hidden table of contents."""
    return "```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def stem(name: str, names: list[str]) -> str:
    """The name of a page's file. A class whose name differs from a function's by case alone gets another one."""
    last = name.removeprefix("weft.").rpartition(".")[2] if name not in PAGES["errors"][2] else name.replace(".", "-")
    others = [other for other in names if other != name and other.lower() == name.lower()]
    return f"{last}-class" if others and last[0].isupper() else last


def summary(path: str) -> str:
    """The first sentence of a name's docstring."""
    module, _, name = path.rpartition(".")
    found = importlib.import_module(path) if path in MODULES else getattr(importlib.import_module(module), name)
    text = " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())
    return text.replace("``", "`").replace("|", "\\|")


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


def directive(path: str) -> str:
    """The directive for a name."""
    if path.endswith(".errors"):
        return block(f".. automodule:: {path}\n   :members:\n   :show-inheritance:")
    if path == "weft.types":
        return block(f".. automodule:: {path}\n   :members:\n   :exclude-members: Type, Signature")
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
