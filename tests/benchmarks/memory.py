"""Times allocation, and copies of pageable host memory to and from the device, compared with PyTorch and CuPy if these
are installed.

A copy's time is the host's time until it is done; an allocation's time includes the release of the array. The lower
bound of a copy on a GPU is a copy of page-locked memory through the driver, measured in the same run.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from suite.faults import brief
from tables import memory_head, memory_row

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
"""Bytes."""


def timed(work: Callable[[], Any], synchronize: Callable[[], Any]) -> float:
    """Microseconds per call: the median over half a second of calls, at least nine."""
    work()
    synchronize()
    samples: list[float] = []
    end = time.perf_counter() + 0.5
    while len(samples) < 9 or (time.perf_counter() < end and len(samples) < 2000):
        begin = time.perf_counter_ns()
        work()
        synchronize()
        samples.append((time.perf_counter_ns() - begin) / 1e3)
    return statistics.median(samples)


def allocations(make: Callable[[int], Any]) -> Callable[[int], float]:
    """The time of an allocation and its release, without waiting for the device."""
    return lambda size: timed(lambda: make(size), lambda: None)


def with_weft() -> dict[str, Callable[[int], float]]:
    from weft import cuda

    def there(size: int) -> float:
        host = np.ones(size, np.uint8)
        return timed(lambda: cuda.to_device(host), cuda.synchronize)

    def into(size: int) -> float:
        host, device = np.ones(size, np.uint8), cuda.device_array(size, np.uint8)
        return timed(lambda: device.copy_to_device(host), cuda.synchronize)

    def back(size: int) -> float:
        device = cuda.to_device(np.ones(size, np.uint8))
        return timed(device.copy_to_host, cuda.synchronize)

    def back_into(size: int) -> float:
        host, device = np.ones(size, np.uint8), cuda.to_device(np.ones(size, np.uint8))
        return timed(lambda: device.copy_to_host(host), cuda.synchronize)

    def locked(size: int) -> float:
        host, device = cuda.pinned_array(size, np.uint8), cuda.device_array(size, np.uint8)
        return timed(lambda: device.copy_to_device(host), cuda.synchronize)

    return {
        "allocate": allocations(lambda size: cuda.device_array(size, np.uint8)),
        "to the device": there,
        "into an array there": into,
        "to the host": back,
        "into an array of the host": back_into,
        "page-locked, into an array there": locked,
    }


def with_torch() -> dict[str, Callable[[int], float]]:
    import torch

    wait = torch.cuda.synchronize

    def tensor(size: int, device: str = "cuda") -> Any:
        return torch.ones(size, dtype=torch.uint8, device=device)

    def there(size: int) -> float:
        host = tensor(size, "cpu")
        return timed(host.cuda, wait)

    def into(size: int) -> float:
        host, device = tensor(size, "cpu"), tensor(size)
        return timed(lambda: device.copy_(host), wait)

    def back(size: int) -> float:
        return timed(tensor(size).cpu, wait)

    def back_into(size: int) -> float:
        host, device = tensor(size, "cpu"), tensor(size)
        return timed(lambda: host.copy_(device), wait)

    def locked(size: int) -> float:
        host, device = tensor(size, "cpu").pin_memory(), tensor(size)
        return timed(lambda: device.copy_(host, non_blocking=True), wait)

    make = allocations(lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"))
    return dict(zip(NAMES, (make, there, into, back, back_into, locked), strict=True))


def with_cupy() -> dict[str, Callable[[int], float]]:
    import cupy

    wait = cupy.cuda.Device().synchronize

    def there(size: int) -> float:
        host = np.ones(size, np.uint8)
        return timed(lambda: cupy.asarray(host), wait)

    def into(size: int) -> float:
        host, device = np.ones(size, np.uint8), cupy.ones(size, np.uint8)
        return timed(lambda: device.set(host), wait)

    def back(size: int) -> float:
        return timed(cupy.ones(size, np.uint8).get, wait)

    def back_into(size: int) -> float:
        host, device = np.ones(size, np.uint8), cupy.ones(size, np.uint8)
        return timed(lambda: device.get(out=host), wait)

    make = allocations(lambda size: cupy.empty(size, np.uint8))
    return dict(zip(NAMES, (make, there, into, back, back_into), strict=False))


NAMES = (
    "allocate",
    "to the device",
    "into an array there",
    "to the host",
    "into an array of the host",
    "page-locked, into an array there",
)
PEERS: dict[str, Callable[[], dict[str, Callable[[int], float]]]] = {
    "weft": with_weft,
    "PyTorch": with_torch,
    "CuPy": with_cupy,
}


def main() -> int:
    results: dict[str, dict[str, list[float] | str]] = {}
    missing = {}
    sizes = list(SIZES)
    print("Microseconds (GB/s from 16 MiB on); medians\n")
    print(memory_head(sizes))
    libraries = {}
    for name, load in PEERS.items():
        try:
            libraries[name] = load()
        except Exception as error:
            missing[name] = brief(error)
            print(memory_row("", name, missing[name], sizes))
    for what in NAMES:
        for name, functions in libraries.items():
            if what not in functions:
                continue
            found: list[float] | str
            try:
                found = [functions[what](size) for size in SIZES]
            except Exception as error:
                found = brief(error)
            results.setdefault(what, {})[name] = found
            print(memory_row(what, name, found, sizes), flush=True)
    if out := os.environ.get("OUT"):
        figures = {"sizes": sizes, "microseconds": results, "missing": missing}
        Path(out, "memory.json").write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
