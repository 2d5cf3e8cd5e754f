"""The differences between the bits of two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = 3


def differences(one: Mapping[str, np.ndarray], two: Mapping[str, np.ndarray]) -> list[str]:
    """A line for each result that differs between the runs, with its first different elements."""
    found = [f"{name} is in one of them only" for name in sorted(set(one) ^ set(two))]
    for name in sorted(set(one) & set(two)):
        a, b = one[name].ravel(), two[name].ravel()
        if a.shape != b.shape or a.dtype != b.dtype:
            found.append(f"{name}: {one[name].dtype} {one[name].shape} and {two[name].dtype} {two[name].shape}")
            continue
        places = np.flatnonzero(a != b)
        if places.size:
            shown = ", ".join(f"[{at}] {int(a[at]):#x} {int(b[at]):#x}" for at in places[:SHOWN])
            found.append(f"{name}: {places.size} of {a.size} differ: {shown}")
    return found
