"""The programs of the how-to pages on operators run and print what the pages show."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[3] / "docs" / "how-to"

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize(("page", "needs"), [("pytorch-operators", "torch"), ("jax-functions", "jax")])
def test_programs(page, needs):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    blocks = re.findall(r"```py\n(.*?)```(?:\n\n```text\n(.*?)```)?", (PAGES / f"{page}.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": page}
    for index, (code, expected) in enumerate(blocks):
        name = f"<{page} {index}>"
        # Kernels and rules are read from their source.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, name, "exec"), names)
        assert printed.getvalue() == expected
