"""Where numba-cuda has the classes of its driver: programs name `cuda.cudadrv.devicearray.DeviceNDArray` and others.

They are weft's own, under the names and in the modules that those programs know; nothing else of numba-cuda's inner
modules is here.
"""

from __future__ import annotations

from weft.cuda.cudadrv import devicearray, devices, driver, error, runtime

__all__ = ["devicearray", "devices", "driver", "error", "runtime"]
