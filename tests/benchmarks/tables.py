"""The Markdown tables that benchmarks print and docs/benchmarks.md contains, made from figures. Does not need weft.

A cell for a missing figure says so: with the reason, or "not measured".
"""

from __future__ import annotations

import math
import re
from typing import Any

MISSING = "not measured"
LARGE = 16 << 20
"""The minimum size in bytes at which the time of a copy is determined by its bandwidth."""


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def head(*cells: str, texts: int = 1) -> str:
    """The head of a table whose first `texts` columns are text; the others are numbers, aligned at the right."""
    return line(*cells) + "\n|" + "---|" * texts + "---:|" * (len(cells) - texts)


def plain(text: str) -> str:
    """A reason without the escape codes of terminal colors, and without a final colon."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip().removesuffix(":")


def size_text(size: int) -> str:
    """Bytes in the unit that fits them."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


# --- launch.py --------------------------------------------------------------------------------------------------------

C_LAUNCH = "cuLaunchKernel from C"


def launch_head(counts: list[str]) -> str:
    return head("launched by", *(f"{count} array" + "s" * (count != "1") for count in counts))


def launch_row(name: str, times: dict[str, float] | str, base: dict[str, float] | str, counts: list[str]) -> str:
    """Nanoseconds, followed by the ratio to the launch from C; or the reason why there are none."""
    if isinstance(times, str):
        return line(name, times, *[""] * (len(counts) - 1))

    def cell(count: str) -> str:
        if count not in times:
            return MISSING
        ratio = f" ({times[count] / base[count]:.2f})" if isinstance(base, dict) and count in base else ""
        return f"{times[count]:.0f}{ratio}"

    return line(name, *map(cell, counts))


def launch(figures: dict[str, Any]) -> str:
    counts = sorted({count for times in figures.values() if isinstance(times, dict) for count in times}, key=int)
    base = figures.get(C_LAUNCH, MISSING)
    rows = [launch_row(name, times, base, counts) for name, times in figures.items()]
    return "\n".join([launch_head(counts), *rows])


# --- memory.py --------------------------------------------------------------------------------------------------------


def memory_head(sizes: list[int]) -> str:
    return head("", "by", *map(size_text, sizes), texts=2)


def memory_row(what: str, library: str, times: list[float] | str, sizes: list[int]) -> str:
    """Microseconds, and GB/s of large copies; or the reason why there are none."""
    if isinstance(times, str):
        return line(what, library, times, *[""] * (len(sizes) - 1))

    def cell(size: int, time: float) -> str:
        return f"{time:.1f} ({size / time / 1e3:.1f})" if size >= LARGE and what != "allocate" else f"{time:.1f}"

    return line(what, library, *map(cell, sizes, times))


def memory(figures: dict[str, Any]) -> str:
    sizes = figures["sizes"]
    rows = [
        memory_row(what, library, times, sizes)
        for what, by in figures["microseconds"].items()
        for library, times in by.items()
    ]
    rows += [memory_row("", library, reason, sizes) for library, reason in figures.get("missing", {}).items()]
    return "\n".join([memory_head(sizes), *rows])


# --- kernels.py -------------------------------------------------------------------------------------------------------

IMPLEMENTATIONS = ("C++", "weft", "numba-cuda")
RESTRICT = "C++ __restrict__"
NUMPY_TYPING = 'weft, typing="numpy"'
STRIDED = ("sum", "histogram, 256 bins")
"""Kernels whose read loops weft unrolls and C++ does not: the page also has the mean without them."""


def median(row: dict[str, Any], name: str) -> float | None:
    """Microseconds of one implementation of a kernel, if it ran."""
    return row.get(name, {}).get("median_us")


def ratio(row: dict[str, Any], name: str) -> float | None:
    """The time of an implementation relative to CUDA C++."""
    time, base = median(row, name), median(row, "C++")
    return time / base if time and base else None


def geometric_mean(figures: dict[str, Any], name: str, without: tuple[str, ...] = ()) -> float | None:
    found = [ratio(row, name) for row in figures["rows"] if row["kernel"] not in without]
    known = [value for value in found if value]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def means(figures: dict[str, Any]) -> str:
    """The geometric means of the ratios as a sentence: of all kernels, and for weft of groups of kernels, if there are
    any."""
    found = {name: geometric_mean(figures, name) for name in IMPLEMENTATIONS[1:]}
    told = " and ".join(f"{mean:.3f} for {name}" for name, mean in found.items() if mean)
    if not told:
        return ""
    text = f"The geometric mean of the ratios is {told}."
    present = {row["kernel"] for row in figures["rows"]}
    if present & set(STRIDED) and (without := geometric_mean(figures, "weft", STRIDED)):
        text += f" Without {' and '.join(name.split(',')[0] for name in STRIDED)} it is {without:.3f} for weft."
    wider = tuple(row["kernel"] for row in figures["rows"] if row.get("wider"))
    others = tuple(present - set(wider))
    if wider and others:
        groups = [geometric_mean(figures, "weft", without) for without in (wider, others)]
        if all(groups):
            text += (
                f" For weft it is {groups[0]:.3f} of the {len(others)} kernels that compute in the types of the "
                f"C++ version, and {groups[1]:.3f} of the {len(wider)} in which Numba's typing is wider."
            )
    if narrow := geometric_mean(figures, NUMPY_TYPING):
        text += f' With `typing="numpy"` these take {narrow:.3f}.'
    if restrict := geometric_mean(figures, RESTRICT):
        text += f" C++ with `__restrict__` takes {restrict:.3f} of the time of C++ as written."
    return text


def kernels(figures: dict[str, Any]) -> str:
    def time(row: dict[str, Any], name: str) -> str:
        found = median(row, name)
        return plain(row.get(name, {}).get("failure", MISSING)) if found is None else f"{found:.1f}"

    def over(row: dict[str, Any], name: str) -> str:
        found = ratio(row, name)
        if found is None:
            return ""
        narrow = ratio(row, NUMPY_TYPING) if name == "weft" else None
        return f"{found:.3f}" + (f" ({narrow:.3f})" if narrow else "")

    def errors(row: dict[str, Any]) -> str:
        return " / ".join(row.get(name, {}).get("error_text", "-") for name in IMPLEMENTATIONS)

    titles = ("kernel", "floor", "C++", "weft", "weft / C++", "numba-cuda", "numba-cuda / C++")
    text = [head(*titles, "max error C++ / weft / numba-cuda")]
    for row in figures["rows"]:
        if "failure" in row:
            text.append(line(row["kernel"], row["failure"], *[""] * 6))
            continue
        times = (time(row, "C++"), *(form(row, name) for name in IMPLEMENTATIONS[1:] for form in (time, over)))
        name = row["kernel"] + (" (wider)" if row.get("wider") else "")
        text.append(line(name, f"{row['floor_us']:.1f}", *times, errors(row)))
    if told := means(figures):
        text += ["", told]
    return "\n".join(text)


# --- cpu.py -----------------------------------------------------------------------------------------------------------


def cpu_ratio(row: dict[str, Any], name: str, other: str) -> float | None:
    """The speed of a program relative to another: above 1 if it takes less time."""
    time, base = (row.get(each, {}).get("min_ms") for each in (name, other))
    return base / time if time and base else None


def cpu_facts(figures: dict[str, Any]) -> str:
    """The programs and settings of the figures, as a sentence."""
    programs = [f"gcc {figures['C']} {figures['flags']}"] if "C" in figures else []
    programs += [f"numba {figures['numba']}"] if "numba" in figures else []
    of = " of the processor" * (figures["clock"] == "processor")
    threads = f"{figures['threads']} thread" + "s" * (figures["threads"] != 1)
    return ", ".join([f"least ms{of} on {threads}", *programs, f"load average {figures['load']:.1f} before"])


def cpu_head() -> str:
    titles = ("kernel", "C", "weft", "weft's speed / C's", "numba", "weft's speed / numba's", "weft's first launch")
    return head(*titles, "max error C / weft / numba")


def cpu_row(row: dict[str, Any]) -> str:
    if "failure" in row:
        return line(row["kernel"], row["failure"], *[""] * 6)

    def time(name: str) -> str:
        entry = row.get(name, {})
        return f"{entry['min_ms']:.2f}" if "min_ms" in entry else plain(entry.get("failure", MISSING))

    def speed(other: str) -> str:
        found, narrow = (cpu_ratio(row, name, other) for name in ("weft", NUMPY_TYPING))
        return "" if found is None else f"{found:.2f}" + (f" ({narrow:.2f})" if narrow else "")

    errors = " / ".join(row.get(name, {}).get("error_text", "-") for name in ("C", "weft", "numba"))
    first = row["weft"].get("first_ms")
    name = row["kernel"] + (" (wider)" if row.get("wider") else "")
    return line(name, time("C"), time("weft"), speed("C"), time("numba"), speed("numba"),
                MISSING if first is None else f"{first:.0f}", errors)  # fmt: skip


def cpu_means(figures: dict[str, Any]) -> str:
    """The geometric means of the speeds, and the mean of the first launches, as a sentence."""

    def mean(name: str, other: str, only: bool | None = None) -> float | None:
        rows = [row for row in figures["rows"] if only is None or row.get("wider") == only]
        known = [found for row in rows if (found := cpu_ratio(row, name, other))]
        return math.exp(sum(map(math.log, known)) / len(known)) if known else None

    told = []
    for other in ("C", "numba"):
        if every := mean("weft", other):
            told.append(f"In the geometric mean weft has {every:.3f} of {other}'s speed.")
            narrow, wide = mean(NUMPY_TYPING, other), mean("weft", other, True)
            if narrow and wide:
                told.append(f'Where Numba\'s typing is wider it has {wide:.3f}, with `typing="numpy"` {narrow:.3f}.')
    if numba := mean("numba", "C"):
        told.append(f"numba has {numba:.3f} of C's.")
    if firsts := [row["weft"]["first_ms"] for row in figures["rows"] if "first_ms" in row.get("weft", {})]:
        told.append(f"A first launch takes {sum(firsts) / len(firsts):.0f} ms in the mean, {max(firsts):.0f} at most.")
    return " ".join(told)


def cpu(figures: dict[str, Any]) -> str:
    told = f"Times: {cpu_facts(figures)}. {cpu_means(figures)}"
    return "\n".join([cpu_head(), *map(cpu_row, figures["rows"]), "", told])


# --- The summary ------------------------------------------------------------------------------------------------------


def summary_row(what: str, peer: str, ratios: dict[str, float], unit: str, worst: str) -> str:
    """A set of kernels: the geometric mean of the ratios to another implementation, and the worst kernel."""
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    return line(f"{len(ratios)} {what}", peer, f"{mean:.2f} of {unit}", f"{ratios[worst]:.2f}: {worst}")


def summary(records: dict[str, Any]) -> str:
    """The summary table: the means of all sets relative to other implementations, and the worst kernel of each."""
    rows = [head("what", "beside", "weft, geometric mean", "worst", texts=4)]
    for program, name in (("kernels", "first set"), ("kernels-second", "second set")):
        if record := records.get(program):
            found = {row["kernel"]: ratio(row, "weft") for row in record["figures"]["rows"]}
            known = {kernel: value for kernel, value in found.items() if value}
            worst = max(known, key=known.__getitem__)
            rows.append(summary_row(f"kernels on a GPU, {name}", "CUDA C++", known, "its time", worst))
    if record := records.get("launch"):
        times, base = (record["figures"].get(name) for name in ("weft, `kernel[1, 32](...)`", C_LAUNCH))
        if isinstance(times, dict) and isinstance(base, dict):
            over = {count: times[count] / base[count] for count in times if count in base}
            worst = max(over, key=over.__getitem__)
            mean = math.exp(sum(map(math.log, over.values())) / len(over))
            rows.append(line("a launch", "`cuLaunchKernel` called from C", f"{mean:.2f} of its time",
                             f"{over[worst]:.2f}: {worst} arrays"))  # fmt: skip
    for program, name in CPU_SETS.items():
        if record := records.get(program):
            found = {row["kernel"]: cpu_ratio(row, "weft", "C") for row in record["figures"]["rows"]}
            known = {kernel: value for kernel, value in found.items() if value}
            worst = min(known, key=known.__getitem__)
            rows.append(summary_row(f"kernels on the CPU, {name}", "C with OpenMP", known, "its speed", worst))
    return "\n".join(rows)


CPU_SETS = {
    "cpu": "first set", "cpu-second": "second set", "cpu-third": "third set", "cpu-fourth": "fourth set",
    "cpu-kinds": "fifth set",
}  # fmt: skip
TABLES = {
    "kernels": kernels, "kernels-second": kernels, "launch": launch, "memory": memory,
    **dict.fromkeys(CPU_SETS, cpu),
}  # fmt: skip
COMMANDS = {
    "kernels-second": "kernels.py --set second --restrict", "cpu-second": "cpu.py --set second",
    "cpu-third": "cpu.py --set third", "cpu-fourth": "cpu.py --set fourth", "cpu-kinds": "cpu.py --set kinds",
}  # fmt: skip
"""The commands that measure figures whose name is not their program's."""
