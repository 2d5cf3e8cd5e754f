"""Makes docs/numba-programs.md of the table and of what was found on each device (results/).

    python page.py PAGE.md

`./weft-dev programs` runs the tests and then this; `bless` makes the page anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import table

HEAD = """\
<!-- Made by `./weft-dev programs`; change tests/programs/programs.toml or the tool, not this page. -->

# Programs that use numba.cuda

Libraries and programs from PyPI whose tests run on weft without edits, and the tests that do not pass. For users of
numba.cuda who want to know what to expect of their own program.

Each program runs as published, by [the drop-in](drop-in.md): `python -m weft.numba -m pytest …`, with numba
installed for what the program compiles for the host. If a program ships tests that use CUDA, these run ("its own").
Otherwise our tests compare its functions on the device with the same on the host, or with NumPy ("ours", in
`tests/programs/checks/`). Nothing in weft refers to these programs.
"""

DEVICES = {"cpu": "the CPU executor", "cuda": "an NVIDIA GPU"}
FAULTS = {
    "weft": "weft lacks something",
    "program": "a fault of the program",
    "device": "needs a device that this run did not have",
    "needs": "needs a package that is not installed",
    "": "not classified",
}


def counted(result, device, program):
    """A cell of the table: how many tests have passed, of those that ran."""
    if result is None:
        return "–"
    if "stopped" in result:
        return result["stopped"]
    ran = result["passed"] + sum(state != "skipped" for state, _ in result["others"].values())
    version = "" if result["version"] == program.version else f" ({result['version']})"
    return f"{result['passed']} of {ran}{version}"


def rows(programs, results):
    """The table of programs."""
    yield "| program | | tests | " + " | ".join(f"passed on {DEVICES[device]}" for device in results) + " |"
    yield "|---|---|---|" + "--:|" * len(results)
    for name, program in programs.items():
        cells = [counted(found.get(name), device, program) for device, found in results.items()]
        whose = "ours" if program.check and not program.tests else "its own"
        link = f"[{name}](https://pypi.org/project/{name}/{program.version}/) {program.version}"
        yield f"| {link} | {program.what} | {whose} | " + " | ".join(cells) + " |"


def others(programs, found, device):
    """The tests that do not pass on a device, each under its program and its reason."""
    for name, program in programs.items():
        reasons = {}
        for test, (state, message) in found.get(name, {"others": {}})["others"].items():
            reason = program.reason(device, test, message)
            fault, why = (reason.fault, reason.why) if reason else ("", short(message))
            reasons.setdefault((fault, why, state), []).append(test)
        slow = program.slow if device == "cpu" else []
        if reasons or slow:
            yield f"\n**{name}**\n"
        if slow:
            yield f"- not run, because they take many minutes on a CPU: {listed(slow)}"
        for (fault, why, state), tests in reasons.items():
            yield f"- {len(tests)} {state}, {FAULTS[fault]}: {why} ({listed(tests)})"


def listed(tests):
    """The names of tests without their files and parameters, the first six of them."""
    names = sorted({test.rpartition("::")[2].partition("[")[0] for test in tests})
    return ", ".join(f"`{name}`" for name in names[:6]) + (f" and {len(names) - 6} more" if names[6:] else "")


def short(message):
    """The first line of a message, without what Markdown would take for its own."""
    line = (message.splitlines() or ["no message"])[0]
    return line.replace("|", "\\|").replace("<", "&lt;")[:160]


def page(programs, results):
    """The whole page."""
    lines = [HEAD, *rows(programs, results)]
    for device, found in results.items():
        lines.append(f"\n## What does not pass on {DEVICES[device]}")
        lines += list(others(programs, found, device)) or ["\nNothing."]
    return "\n".join(lines) + "\n"


def read():
    """The results, by device and program."""
    files = {device: table.RESULTS / f"{device}.json" for device in DEVICES}
    return {device: json.loads(file.read_text())["programs"] for device, file in files.items() if file.exists()}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(table.read(), read()))
