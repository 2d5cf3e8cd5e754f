"""Thread block clusters, for kernels: `rank()`, `size()`, `sync()`, and `shared(array, rank)` of another block.

`kernel[grid, block, stream, sharedmem, cluster]` launches a kernel whose blocks are in clusters.
"""

from __future__ import annotations

from weft.cuda._kernel_names import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    return member(globals(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *member(globals(), "__all__")})
