"""What weft's Python side can be told while a program runs; the environment says how it starts.

The executors have settings of their own (`WEFT_DEVICE` and others), which are read once at the first use of a device.
"""

from __future__ import annotations

import os


def _flag(name: str) -> int:
    text = os.environ.get(name, "").strip()
    return int(text) if text.isdigit() else 1


# Warn where a launch copies host arrays (WEFT_WARN_ON_IMPLICIT_COPY).
CUDA_WARN_ON_IMPLICIT_COPY = _flag("WEFT_WARN_ON_IMPLICIT_COPY")

# Warn where a grid has too few blocks for a GPU (WEFT_LOW_OCCUPANCY_WARNINGS).
CUDA_LOW_OCCUPANCY_WARNINGS = _flag("WEFT_LOW_OCCUPANCY_WARNINGS")

# Wait for the stream that an object with __cuda_array_interface__ names (WEFT_CUDA_ARRAY_INTERFACE_SYNC).
CUDA_ARRAY_INTERFACE_SYNC = _flag("WEFT_CUDA_ARRAY_INTERFACE_SYNC")
