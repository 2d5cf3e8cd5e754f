"""Measures functions on one device: all 16-bit floats and float32, and random and edge points for float64 and pairs."""

from __future__ import annotations

import math
import time

import numpy as np
from generators.halves import all_values

from accuracy import kernels, page, points
from accuracy.functions import HALVES
from accuracy.ulp import apart

# The defaults of a measurement: the number of points, and the stride between float32 values.
POINTS = 1_000_000
PAIRS = {"cpu": 1 << 24, "cuda": 1 << 26}
EVERY = {"cpu": 64, "cuda": 1}
# The stride for approximations: odd, because their errors depend on the last bits of the argument.
EVERY_FAST = {"cpu": 17, "cuda": 1}
CHUNK = {"cpu": 1 << 20, "cuda": 1 << 26}
KINDS = {"float32": np.float32, "float64": np.float64}


def entry(function, dtype, error, at, count, wrong=0, wrong_at=(), how=""):
    """The saved entry of a function and a type; numbers are written by float.hex, which is exact."""
    found = {
        "call": function.call_for(dtype),
        "type": dtype,
        "ulp": float(f"{error:.6g}"),
        "at": [float(x).hex() for x in at],
        "points": int(count),
        "how": how,
        "wrong": int(wrong),
    }
    if function.above is not None:
        found["above"] = function.above
    if function.below is not None:
        found["below"] = function.below
    if wrong:
        found["wrong_at"] = [float(x).hex() for x in wrong_at]
    return found


def worst(function, dtype, got, exact, columns, how):
    """The entry for results that are compared with exact ones."""
    errors, wrong = apart(got, exact, dtype, function.least_for(dtype))
    place, bad = int(np.argmax(errors)), int(np.argmax(wrong))
    at = [column[place] for column in columns]
    bad_at = [column[bad] for column in columns]
    return entry(function, dtype, errors[place], at, got.size, wrong.sum(), bad_at, how)


def merged(first, second):
    """Merges two entries: the larger error, and the results that are wrong in either."""
    found = dict(first if first["ulp"] >= second["ulp"] else second)
    found["points"], found["how"] = max((first["points"], first["how"]), (second["points"], second["how"]))
    bad = first if first["wrong"] >= second["wrong"] else second
    found["wrong"] = bad["wrong"]
    found.pop("wrong_at", None)
    if bad["wrong"]:
        found["wrong_at"] = bad["wrong_at"]
    return found


def arguments(function, dtype, count, seed=1):
    """The points of a function and a type: all halves, else edges and random ones."""
    if dtype in HALVES:
        x = all_values(dtype)
        if function.arity == 1:
            return (x,)
        random = np.random.default_rng(seed)
        x, y = x[random.integers(0, x.size, count // 4)], x[random.integers(0, x.size, count // 4)]
        # Most pairs of random 16-bit floats differ too much in magnitude: add pairs near 1.
        near = np.float32(0.001), np.float32(1000)
        usual = all_values(dtype)
        usual = usual[(np.abs(usual) > near[0]) & (np.abs(usual) < near[1])]
        drawn = random.integers(0, usual.size, (2, count // 2))
        return np.concatenate([x, usual[drawn[0]]]), np.concatenate([y, usual[drawn[1]]])
    if function.arity == 1:
        return (points.of_one(function, count, KINDS[dtype], seed),)
    return points.of_two(function.pairs, count, KINDS[dtype], seed)


def with_known(function, dtype, columns):
    """Arguments, followed by those of the largest errors in saved measurements."""
    known = page.known_arguments(function, dtype)
    if not known:
        return columns
    return tuple(
        np.concatenate([column, np.array(also, column.dtype)]) for column, also in zip(columns, known, strict=True)
    )


def against_reference(function, dtype, references, device, count, seed=1):
    """Starts the computation of exact results; returns a function that measures."""
    columns = with_known(function, dtype, arguments(function, dtype, count, seed))
    exact = references.submit(function.exact, *columns)

    def finish():
        got = kernels.compute(function, dtype, columns[0], columns[1] if len(columns) == 2 else None, device)
        how = "all" if dtype in HALVES and function.arity == 1 else "points"
        return worst(function, dtype, got, exact(), columns, how)

    return finish


def against_float64(function, device, every):
    """Every n-th float32 against the float64 function."""
    judge = kernels.Judge(device, function.call_for("float32"), function.call, kernels.inside(function))
    error, error_at, wrong, wrong_at, count = kernels.judge_all(judge, every, CHUNK[device])
    at = np.array([error_at, wrong_at], np.uint64).astype(np.uint32).view(np.float32)
    return entry(function, "float32", error, at[:1], count, wrong, at[1:], "all" if every == 1 else f"every {every}th")


def pairs_against_float64(function, device, count, chunk=1 << 22):
    """Very many pairs of float32 against the float64 function."""
    found = None
    for seed in range(math.ceil(count / chunk)):
        xs, ys = points.of_two(function.pairs, chunk, np.float32, 100 + seed)
        judge = kernels.Judge(device, function.call_for("float32"), function.call)
        error, at, wrong, wrong_at = kernels.judge_pairs(judge, xs, ys)
        each = entry(function, "float32", error, (xs[at], ys[at]), chunk, wrong, (xs[wrong_at], ys[wrong_at]), "points")
        found = merged(found, each) if found else each
        found["points"] = (seed + 1) * chunk
    return found


def approximation(fast, device, every, pairs):
    """The entry of an approximation; results that are wrong in kind are not counted."""
    error = kernels.DISTANCE if fast.absolute else kernels.ULPS
    judge = kernels.Judge(device, fast.call, fast.exact or fast.call, fast.condition, error, fastmath=not fast.exact)
    if fast.arity == 1:
        error, at, _, _, count = kernels.judge_all(judge, every, CHUNK[device])
        at = [np.array([at], np.uint64).astype(np.uint32).view(np.float32)[0]]
    else:
        count = min(pairs, 1 << 24)
        xs, ys = points.of_two(fast.pairs, count, np.float32, 3)
        error, place, _, _ = kernels.judge_pairs(judge, xs, ys)
        at = [xs[place], ys[place]]
    return {
        "call": fast.call,
        "type": "float32",
        "fastmath": fast.where,
        "distance" if fast.absolute else "ulp": float(f"{error:.6g}"),
        "at": [float(x).hex() for x in at],
        "points": count,
    }


def against_all(function, dtype):
    """Whether the float64 function is the reference for far more arguments than MPFR."""
    return dtype == "float32" and function.below is None and not function.rounded


def measure(functions, references, device, *, count=POINTS, every=None, pairs=None, types=None, show=print):
    """All entries of some functions."""
    every, pairs = every or EVERY[device], pairs or PAIRS[device]
    # Exact results are computed while the device runs, but not too many at the same time.
    waiting = []
    found = []
    jobs = [(function, dtype) for function in functions for dtype in function.types if not types or dtype in types]

    def finish():
        function, dtype, done, start = waiting.pop(0)
        result = done()
        if against_all(function, dtype):
            wide = (
                against_float64(function, device, every)
                if function.arity == 1
                else pairs_against_float64(function, device, pairs)
            )
            result = merged(wide, result)
        found.append(result)
        wrong = f"; {result['wrong']} wrong, as {result['wrong_at']}" if result["wrong"] else ""
        at = ", ".join(f"{float.fromhex(x):.9g}" for x in result["at"])
        show(
            f"{result['call']:24} {dtype:9} {result['ulp']:12.4f} at {at}{wrong}"
            f" ({result['points']} points, {time.monotonic() - start:.1f} s)"
        )

    for function, dtype in jobs:
        few = function.points(count)
        if against_all(function, dtype):
            few //= 8
        done = against_reference(function, dtype, references, device, few)
        waiting.append((function, dtype, done, time.monotonic()))
        if len(waiting) > 3:
            finish()
    while waiting:
        finish()
    return found


def at_known(functions, references, device, library, *, types=None, show=print):
    """The saved measurements of a device, with the errors at the points where any device has its largest ones."""
    kept = {page.key(entry): entry for entry in page.load(f"{device}-{library}")["results"]}
    found = []
    for function in functions:
        for dtype in function.types:
            before, known = kept.get(page.place(function, dtype)), page.known_arguments(function, dtype)
            if before is None or (types and dtype not in types):
                continue
            kind = np.float64 if dtype == "float64" else np.float32
            columns = tuple(np.array(column, kind) for column in known)
            exact = references.submit(function.exact, *columns)()
            got = kernels.compute(function, dtype, columns[0], columns[1] if len(columns) == 2 else None, device)
            result = worst(function, dtype, got, exact, columns, before["how"]) | {"points": before["points"]}
            if result["ulp"] > before["ulp"] or result["wrong"] > before["wrong"]:
                found.append(merged(before, result))
                show(f"{result['call']:24} {dtype:9} {before['ulp']:12.4f} -> {result['ulp']:.4f}")
    return found


def approximations(chosen, device, *, every=None, pairs=None, show=print):
    """All entries of approximations."""
    found = []
    for fast in chosen:
        result = approximation(fast, device, every or EVERY_FAST[device], pairs or PAIRS[device])
        found.append(result)
        size = f"{result['ulp']:.4f} ulp" if "ulp" in result else f"{result['distance']:.3g}"
        show(f"approximation: {fast.call}, {fast.where}: {size} at {result['at']}")
    return found
