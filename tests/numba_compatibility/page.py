"""Makes docs/numba-compatibility.md of what the runner of numba-cuda's tests found.

    python page.py RESULTS.json PAGE.md --commit COMMIT

`./weft-dev conformance` runs the tests and then this.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections import Counter
from pathlib import Path

from reasons import KINDS, reason

HEAD = """\
# Compatibility with numba-cuda

{passed} of the {total} public tests of numba-cuda {tests_version} pass on {device}.

Made by `./weft-dev conformance` of weft {commit}, on Python {python}; change the tool, not this page. The tests are
those of numba-cuda's own suite that use nothing but the public API of `numba.cuda`, as they come in its wheel, with
imports led to weft. Nothing in weft knows of them. A test of many parts passes with all of them or not at all.

[drop-in.md](drop-in.md) says how a program for `numba.cuda` runs unedited.

## Where weft differs on purpose

What numba-cuda leaves undefined or does by accident has one defined meaning in weft, the same on GPU and CPU
([language](language.md)):

- Integer division by zero gives 0, and so does the smallest `int64` `// -1`; shifts take their amount modulo 64, and
  a float that does not fit an integer saturates, where numba-cuda's results depend on the optimizer.
- A message names the fault in the user's words, at its place, with a way out. Numba's words stand below it for some
  faults; tests that look for others fail for that.
- Integer `/=`, unpacking with `*`, iteration over tuples of several types, and constant shapes that are computed
  compile. numba-cuda refuses them.
- A view stays a view: the transpose of a device array is not copied, and arrays with negative strides are copied to the
  host like others.
"""

ORDER = ("passed", "failed", "error", "skipped")
DEVICES = {"cpu": "the CPU executor", "gpu": "an NVIDIA GPU"}


def modules(results):
    """The table of the modules' totals."""
    yield "| module | passed | of |"
    yield "|---|--:|--:|"
    for module, counts in sorted(results["modules"].items()):
        yield f"| {module} | {counts['passed']} | {sum(counts[state] for state in ORDER)} |"
    counts = results["summary"]
    yield f"| **all** | **{counts['passed']}** | **{counts['total']}** |"


def failures(results):
    """Each test that does not pass under its reason: kinds in their order, most frequent reasons first."""
    found = {}
    for test, outcome in sorted(results["tests"].items()):
        if outcome["state"] != "passed":
            found.setdefault(reason(test, outcome["detail"]), []).append(test)
    for kind, meaning in KINDS.items():
        reasons = sorted((why for why in found if why.kind == kind), key=lambda why: (-len(found[why]), why.text))
        if not reasons:
            continue
        yield f"\n## {kind}: {sum(len(found[why]) for why in reasons)}\n\n{meaning}"
        for why in reasons:
            tests = found[why]
            yield f"\n**{why.text}** ({len(tests)})\n"
            yield from names(tests)


def names(tests):
    """The names of tests, by module, as items of a list."""
    of_module = {}
    for test in tests:
        module, *_, name = test.split("::")
        of_module.setdefault(module, []).append(name)
    for module, members in of_module.items():
        # Classes may have tests of one name.
        counted = [name if times == 1 else f"{name} ({times})" for name, times in Counter(members).items()]
        text = f"- {module}: {', '.join(re.sub('^test_', '', name) for name in counted)}"
        yield textwrap.fill(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def page(results, commit):
    """The text of the page."""
    head = HEAD.format(
        passed=results["summary"]["passed"],
        total=results["summary"]["total"],
        tests_version=results["tests_version"],
        device=DEVICES[results["device"]],
        commit=commit,
        python=results["meta"].get("python", "?") if results["meta"] else "?",
    )
    return "\n".join([head, "## By module\n", *modules(results), *failures(results)]) + "\n"


def main():
    """Reads the results and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--commit", required=True)
    args = parser.parse_args()
    args.page.write_text(page(json.loads(args.results.read_text()), args.commit))


if __name__ == "__main__":
    main()
