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

How many of numba-cuda's own tests pass on weft, and why the others do not. For users of numba.cuda who want to know
what to expect.

**{passed} of the {total}** public tests of numba-cuda {tests_version} pass on {device}.

The tests are those of numba-cuda's own suite that use only the public API of `numba.cuda`, taken from its wheel,
with imports redirected to weft. A test with several parts counts as passed only if all of them pass. Nothing in
weft refers to these tests. `./weft-dev conformance` runs them and writes this page
(weft {commit}, Python {python}); change the tool, not the page.

[Programs for numba.cuda, unedited](drop-in.md) says how to run your own program.

## Where weft differs on purpose

Where numba-cuda's behavior is undefined or accidental, weft defines one behavior, the same on GPU and CPU
([arithmetic](language/arithmetic.md#arithmetic)):

- **Arithmetic.** Integer division by zero gives 0, and so does the smallest `int64` `// -1`. Shifts take their
  amount modulo 64. A float that does not fit an integer saturates. numba-cuda's results depend on the optimizer.
- **Messages.** An error names the variable, the line and the fix. For some errors weft adds Numba's message; tests
  that search for another message fail.
- **More programs compile.** Integer `/=`, unpacking with `*`, iteration over tuples of mixed types, and computed
  constant shapes.
- **Views.** The transpose of a device array is a view, not a copy, and arrays with negative strides can be copied
  to the host.
"""

ORDER = ("passed", "failed", "error", "skipped")
DEVICES = {"cpu": "the CPU executor", "gpu": "an NVIDIA GPU"}


def modules(results):
    """The table of the modules' totals."""
    yield "| module | passed | of |"
    yield "|---|--:|--:|"
    total = {module: sum(counts[state] for state in ORDER) for module, counts in results["modules"].items()}
    # Modules with tests that do not pass come first.
    by_gaps = sorted(results["modules"].items(), key=lambda row: (row[1]["passed"] == total[row[0]], row[0]))
    for module, counts in by_gaps:
        yield f"| {module} | {counts['passed']} | {total[module]} |"
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
