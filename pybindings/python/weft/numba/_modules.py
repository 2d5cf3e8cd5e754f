"""The table: which module of numba's has its names from which modules of weft, and what is said of those it lacks.

The modules are those of numba-cuda 0.30 (https://github.com/NVIDIA/numba-cuda) and of numba 0.61 that programs import;
the public names are in https://nvidia.github.io/numba-cuda/reference/index.html.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MISSING = object()

_CUDA = ("weft.cuda",)
_TYPES = ("weft.types",)
_ERRORS = ("weft.numba.errors", "weft.errors")
_DRIVER = ("weft.cuda.cudadrv.driver", *_ERRORS)
_EXTENDING = ("weft.cuda.extending",)
_SUPPORT = ("weft.numba._support",)

# Each module, with the modules of weft that provide its names: the first one with a name is used.
_OF_CUDA: dict[str, tuple[str, ...]] = {
    "": _CUDA,
    "api": (*_CUDA, "weft.cuda.cudadrv.devicearray"),
    "api_util": (),
    "args": (*_CUDA, "weft.cuda._args"),
    "bf16": ("weft.cuda.bf16",),
    "cache_hints": _CUDA,
    "cg": ("weft.cuda.cg",),
    "compiler": _CUDA,
    "config": (),
    "core": (),
    "core.config": (),
    "core.errors": _ERRORS,
    "core.sigutils": _SUPPORT,
    "cudadecl": ("weft.numba._llvmlite",),
    "cudadrv": ("weft.cuda.cudadrv",),
    "cudadrv.devicearray": ("weft.cuda.cudadrv.devicearray",),
    "cudadrv.devices": ("weft.cuda.cudadrv.devices",),
    "cudadrv.driver": _DRIVER,
    "cudadrv.error": ("weft.cuda.cudadrv.error", *_ERRORS),
    "cudadrv.linkable_code": _CUDA,
    "cudadrv.nvrtc": ("weft.cuda.cudadrv.error", *_ERRORS, *_SUPPORT),
    "cudadrv.nvvm": (*_ERRORS, *_SUPPORT),
    "cudadrv.runtime": ("weft.cuda.cudadrv.runtime", *_ERRORS, *_SUPPORT),
    "cudaimpl": ("weft.numba._llvmlite",),
    "decorators": _CUDA,
    "device_init": _CUDA,
    "devicearray": ("weft.cuda.cudadrv.devicearray",),
    "devices": ("weft.cuda.cudadrv.devices",),
    "dispatcher": _CUDA,
    "driver": _DRIVER,
    "errors": ("weft.errors", "weft.numba.errors"),
    "extending": _EXTENDING,
    "fp16": ("weft.cuda.fp16",),
    "intrinsics": _CUDA,
    "kernels": (),
    "kernels.reduction": _CUDA,
    "launchconfig": ("weft.cuda.launchconfig",),
    "libdevice": ("weft.cuda.libdevice",),
    "misc": (),
    "misc.special": (*_CUDA, "weft"),
    "np": (),
    "np.numpy_support": ("weft", *_SUPPORT),
    "random": ("weft.cuda.random",),
    "simulator": (),
    "simulator.cudadrv": (),
    "simulator.cudadrv.devicearray": ("weft.cuda.cudadrv.devicearray",),
    "stubs": _CUDA,
    "testing": ("weft.numba._testing",),
    "tests": ("weft.numba._test_support",),
    "tests.support": ("weft.numba._test_support",),
    "types": _TYPES,
    "typing": ("weft", *_SUPPORT),
    "typing.typeof": ("weft",),
    "vector_types": (*_CUDA, *_SUPPORT),
    "vectorizers": ("weft.numba._vectorizers",),
}

# The same if numba is not installed.
_OF_NUMBA: dict[str, tuple[str, ...]] = {
    "": ("weft.numba._host", "weft", "weft.types"),
    "config": (),
    "core": (),
    "core.config": (),
    "core.decorators": ("weft.numba._host",),
    "core.dispatcher": ("weft.numba._host",),
    "core.errors": _ERRORS,
    "core.extending": _EXTENDING,
    "core.registry": ("weft.numba._host",),
    "core.sigutils": _SUPPORT,
    "core.types": _TYPES,
    "core.typing": ("weft", *_SUPPORT),
    "core.typing.typeof": ("weft",),
    "errors": _ERRORS,
    "extending": _EXTENDING,
    "misc": (),
    "misc.special": ("weft.numba._host", *_CUDA, "weft"),
    "np": (),
    "np.numpy_support": ("weft", *_SUPPORT),
    "np.ufunc": ("weft.numba._host",),
    "types": _TYPES,
}

MODULES = {
    **{f"numba.{name}".rstrip("."): sources for name, sources in _OF_NUMBA.items()},
    **{f"numba.cuda.{name}".rstrip("."): sources for name, sources in _OF_CUDA.items()},
}

# The modules that are settings: writes to them are forwarded to weft.
CONFIGS = frozenset({"numba.config", "numba.core.config", "numba.cuda.config", "numba.cuda.core.config"})

# Names that differ in weft.
_NAMES = {
    "numba.cuda.dispatcher._Kernel": "weft.cuda:Kernel",
    "numba.cuda.args.ArgHint": "weft._weft:CopyHint",
    "numba.cuda.compiler.Dispatcher": "weft.cuda:Dispatcher",
    "numba.cuda.compiler.CompileResult": "weft.cuda._code.results:CompileResult",
    "numba.cuda.dispatcher._CompileStats": "weft.cuda._code.stats:CompileStats",
    "numba.cuda.dispatcher.Dispatcher": "weft.cuda:Dispatcher",
    "numba.cuda.simulator.reset": "weft.cuda:close",
    "numba.cuda.simulator.cudadrv.devicearray.FakeCUDAArray": "weft.cuda:DeviceNDArray",
    "numba.cuda.__version__": "weft.numba._support:CUDA_VERSION",
    "numba.cuda.cudadrv.driver.CudaPythonFunction": "weft.cuda:Function",
    "numba.cuda.cudadrv.driver.CudaPythonModule": "weft.cuda:Module",
    "numba.cuda.cudadrv.driver._raise_driver_not_found": "weft.numba._support:raise_driver_not_found",
    "numba.cuda.implementation": "weft.numba._support:IMPLEMENTATION",
    "numba.cuda.HAS_NUMBA": "weft.numba._support:HAS_NUMBA",
    "numba.__version__": "weft.numba._support:NUMBA_VERSION",
    "numba.literal_unroll": "weft.cuda:literal_unroll",
    "numba.version_info": "weft.numba._support:version_info",
    "numba.cuda.misc.special.literal_unroll": "weft.cuda:literal_unroll",
}

# Modules about llvmlite, in numba.cuda and in numba.core.
_LLVMLITE = frozenset(
    (
        *("base", "callconv", "cgutils", "codegen", "cudadecl", "cudaimpl", "cudamath", "datamodel", "debuginfo"),
        *(
            "descriptor",
            "imputils",
            "libdevicedecl",
            "libdevicefuncs",
            "libdeviceimpl",
            "lower",
            "lowering",
            "mathimpl",
        ),
        *("mathimpl", "models", "nvvmutils", "printimpl", "target", "templates", "ufuncs"),
    )
)

# Modules that numba compiles for the host.
_HOSTS = frozenset(("cfunc", "experimental", "generated_jit", "jitclass", "objmode", "stencil", "typed"))

_WAYS = {
    "numba.cuda.cudadrv.nvvm.compile_ir": "`cuda.compile_ptx` compiles a Python function; weft does not use NVVM",
    "numba.cuda.kernels.transpose": "use `array.T` of a device array, which is a view, and `.copy()` for a copy",
    "numba.cuda.transpose": "use `array.T` of a device array, which is a view, and `.copy()` for a copy",
    "numba.cuda.tests": "they are part of numba-cuda",
    "numba.cuda.test": "the tests are part of numba-cuda",
    "numba.cuda.memory_management": "weft does not use numba's runtime (NRT) in kernels: there is nothing to count",
}

# Names in weft's modules that numba does not have.
_NOT_NAMES = frozenset({"annotations", "TYPE_CHECKING"})


def look_up(module: str, name: str) -> Any:
    """Give what a module of numba's has under a name, or MISSING."""
    full = f"{module}.{name}"
    if full in _NAMES:
        place, _, attribute = _NAMES[full].partition(":")
        return getattr(importlib.import_module(place), attribute)
    if full in MODULES:
        return importlib.import_module(full)
    if name in _NOT_NAMES:
        return MISSING
    for source in MODULES[module]:
        value = getattr(importlib.import_module(source), name, MISSING)
        if value is not MISSING:
            return value
    return MISSING


def public_names(module: str) -> list[str]:
    """List the names of a module, as ``from module import *`` takes them."""
    found: set[str] = set()
    for source in MODULES[module]:
        namespace = importlib.import_module(source)
        public = getattr(namespace, "__all__", None)
        found.update(public or (name for name in vars(namespace) if name[0] != "_" and name not in _NOT_NAMES))
    return sorted(found)


def help_for(full: str) -> str:
    """Say that weft lacks something, and what to do."""
    parts = full.split(".")
    for known, way in _WAYS.items():
        if full == known or full.startswith(known + "."):
            return f"weft has no {full}: {way}"
    if not _LLVMLITE.isdisjoint(parts):
        return (
            f"weft does not use llvmlite, which {full} is for: write the function in kernel Python and register "
            "it with `numba.cuda.extending.overload`, or as PTX with `weft.cuda.intrinsic`"
        )
    if not _HOSTS.isdisjoint(parts):
        return f"{full} compiles for the host, which weft does not support: install numba next to weft"
    if ".".join(parts[:2]) == "numba.cuda":
        return (
            f"weft has no {full}: weft provides the names of numba-cuda's public reference in numba.cuda, but few "
            "of its internal modules"
        )
    return f"numba is not installed, and weft does not replace {full}: install numba next to weft"


def config_class() -> type:
    """Give the class of modules that are settings, if any is loaded; else one that no module is of."""
    loaded = sys.modules.get("weft.numba._config")
    return loaded.Config if loaded is not None else type(None)
