"""Makes empty libraries in place of the CUDA libraries that PyPI's PyTorch loads: several GB that its CPU never calls.

`python cuda_stubs.py TORCH_LIB FOLDER` writes one library for each that is missing. Its functions return 100,
`cudaErrorNoDevice`, and have the symbol versions that PyTorch's libraries request. `LD_LIBRARY_PATH=FOLDER` uses them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# Libraries that the system has.
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|gfortran|util|z|quadmath)\.so|ld-linux")
# Prefixes of CUDA's symbols without versions.
FOREIGN = re.compile(r"_*(cu|nvrtc|nvtx|nccl|nvshmem|nvJit|nvml|cuda)", re.IGNORECASE)


def readelf(*argv: str) -> str:
    """What readelf prints."""
    return subprocess.run(["readelf", "-W", *argv], capture_output=True, text=True, check=True).stdout


def make(torch_lib: Path, folder: Path) -> None:
    """Writes the libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    here = {path.name for path in torch_lib.iterdir()}
    needed, versions, symbols = set(), defaultdict(set), set()
    for path in torch_lib.glob("*.so*"):
        for name in re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", str(path))):
            if name not in here and not SYSTEM.match(name):
                needed.add(name)
        library = None
        for line in readelf("-V", str(path)).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            if library and (found := re.search(r"Name: (\S+)\s+Flags", line)):
                versions[library].add(found[1])
        for name, version in re.findall(r" UND (\w+)(?:@(\S+))?", readelf("--dyn-syms", str(path))):
            if version or FOREIGN.match(name):
                symbols.add((name, version))
    for library in sorted(needed):
        wanted = sorted(versions[library])
        own = sorted({name for name, version in symbols if (version in wanted if wanted else not version)})
        source = folder / f"{library}.c"
        source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in own))
        command = ["gcc", "-w", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{library}", str(source)]
        if wanted:
            script = folder / f"{library}.map"
            nodes = [f"{wanted[0]} {{ global: *; }};", *(f"{name} {{ }};" for name in wanted[1:])]
            script.write_text("\n".join(nodes))
            command.append(f"-Wl,--version-script={script}")
        subprocess.run([*command, "-o", str(folder / library)], check=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
