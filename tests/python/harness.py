"""Helpers that run a kernel on weft and compare the result with the oracle or NumPy."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import oracle

if TYPE_CHECKING:
    import types

_numbers = itertools.count()
_folder = tempfile.TemporaryDirectory(prefix="weft-tests-")

# Tolerances per dtype for fused multiply-add and for differences between math libraries.
TOLERANCE = {"float32": 2e-6, "float64": 4e-15, "complex64": 4e-6, "complex128": 8e-15}


def module(source: str) -> types.ModuleType:
    """A module made from a string, in a file, so that `inspect` finds the source of its kernels."""
    name = f"weft_test_{next(_numbers)}"
    path = Path(_folder.name) / f"{name}.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def copied(arg: object) -> object:
    """A writable copy of an array with the same layout; tuples item by item; anything else as it is."""
    if isinstance(arg, tuple):
        return tuple(copied(item) for item in arg)
    if not isinstance(arg, np.ndarray):
        return arg
    if arg.flags.c_contiguous or arg.flags.f_contiguous:
        return arg.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(arg)
    memory = np.frombuffer(bytearray(high - low), np.uint8)
    offset = arg.__array_interface__["data"][0] - low
    twin = np.ndarray(arg.shape, arg.dtype, memory, offset, arg.strides)
    twin[...] = arg
    return twin


def launch(kernel, grid, block, *args, shared_bytes: int = 0):
    """The arguments after a launch on weft; the originals are not changed."""
    values = [copied(arg) for arg in args]
    kernel[grid, block, 0, shared_bytes](*values)
    return values


def run(kernel, grid, block, *args, shared_bytes: int = 0, rtol: float | None = None, atol: float = 0.0):
    """Launches a kernel on weft and on the oracle, compares all arrays, and returns weft's."""
    got = launch(kernel, grid, block, *args, shared_bytes=shared_bytes)
    expected = oracle.launch(kernel, grid, block, *args, shared_bytes=shared_bytes)
    for position, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if isinstance(mine, np.ndarray):
            assert_same(mine, theirs, rtol=rtol, atol=atol, what=f"argument {position}")
    return got


def like_python(kernel, *args):
    """The arguments after a launch of one thread, which must be those after a call of the Python function.

    For constructs that the oracle does not rewrite: numbers have the types of NumPy and Python, not those of Numba.
    """
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    kernel[1, 1](*mine)
    kernel.py_func(*theirs)
    for position, (got, expected) in enumerate(zip(mine, theirs, strict=True)):
        if isinstance(got, (np.ndarray, np.void)):
            assert got.dtype == expected.dtype
            # The padding between fields of a record is unspecified, and NaN is not equal to itself.
            got, expected = np.asarray(got), np.asarray(expected)
            if got.dtype.names:
                assert (got == expected).all(), f"argument {position}: {got}, in Python {expected}"
            else:
                np.testing.assert_array_equal(got, expected, err_msg=f"argument {position}")
    return list(mine)


def assert_same(got, expected, *, rtol: float | None = None, atol: float = 0.0, what: str = "result") -> None:
    """Equal dtype, shape and elements: integers exactly, floats within `rtol` (by dtype if not given), NaN as NaN."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, f"{what}: dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if rtol is None:
        rtol = TOLERANCE.get(got.dtype.name, 0.0)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True, err_msg=what)


def assert_exact(got, expected, what: str = "result") -> None:
    """The same bits, except for the payload and sign of NaN."""
    assert_same(got, expected, rtol=0.0, what=what)
    if np.asarray(got).dtype.kind == "c":
        assert_exact(got.real, expected.real, f"{what}: real part")
        assert_exact(got.imag, expected.imag, f"{what}: imaginary part")
    if np.asarray(got).dtype.kind == "f":
        kept = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got)[kept], np.signbit(expected)[kept], err_msg=f"{what}: signs")


def ulps(got, expected) -> np.ndarray:
    """Distance in units in the last place of `got`'s type; 0 where both are NaN or equal."""
    got = np.asarray(got)
    exact = np.asarray(expected, np.longdouble)
    near = exact.astype(got.dtype)
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(near)).astype(np.longdouble)
        distance = np.abs(got.astype(np.longdouble) - exact) / unit
    same = (got == near) | (np.isnan(got) & np.isnan(near))
    return np.where(same, np.minimum(np.nan_to_num(distance, nan=0.0), 0.5), distance).astype(np.float64)
