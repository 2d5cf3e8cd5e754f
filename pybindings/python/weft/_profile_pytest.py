"""``pytest --weft-profile``: profiles the launches of tests, and shows at the end what makes their kernels slow."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from weft import _weft
from weft._profile_files import from_dict
from weft._profile_program import FORMATS, Recorder, rendered
from weft._profile_text import bound, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft.profile import Profile

_SECONDS = 1.0
"""The time for a launch: tests make many."""

_FINDINGS = 3
"""The findings of a launch that the summary shows."""


def _running_test() -> str:
    """Give the test that runs, or the fixture or module before it."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]


class Plugin:
    """The profiles of a session; under pytest-xdist, those of all workers."""

    def __init__(self, config: Any) -> None:
        report = config.getoption("--weft-profile-report")
        self.report = None if report is None else Path(report)
        if self.report is not None and self.report.suffix not in FORMATS:
            msg = f"--weft-profile-report: {report} must end in .txt, .json or .html"
            raise pytest.UsageError(msg)
        self.gpu = config.getoption("--weft-profile-gpu")
        try:
            _weft.check_gpu(self.gpu)
        except ValueError as error:
            msg = f"--weft-profile-gpu: {error}"
            raise pytest.UsageError(msg) from error
        self.worker = getattr(config, "workeroutput", None)
        self.recorder = Recorder(self.gpu, _SECONDS, origin=_running_test)
        self.found: list[tuple[str, Profile]] = []
        self.messages: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Profile from now on."""
        _weft.profile_launches(self.recorder.note)

    def pytest_sessionfinish(self) -> None:
        """Collect what this process has found; a worker of pytest-xdist sends it to the first process."""
        _weft.profile_launches(None)
        found = list(zip(self.recorder.origins.values(), self.recorder.result(), strict=True))
        if self.worker is None:
            self.found.extend(found)
            self.messages.extend(self.recorder.messages())
        else:
            profiles = [(origin, asdict(profile)) for origin, profile in found]
            self.worker["weft_profile"] = json.dumps([profiles, self.recorder.messages()])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist has found."""
        sent = getattr(node, "workeroutput", {}).get("weft_profile")
        if sent is not None:
            profiles, messages = json.loads(sent)
            self.found.extend((origin, from_dict(fields)) for origin, fields in profiles)
            self.messages.extend(messages)

    def result(self) -> list[tuple[str, Profile]]:
        """Give each profile with its first test. Workers that made the same launch have a profile each: give one."""
        merged: dict[Any, tuple[str, Profile]] = {}
        for origin, profile in self.found:
            first = min(((line.file, line.line) for line in profile.lines), default=None)
            key = (profile.kernel, profile.types, profile.griddim, profile.blockdim, first)
            if key in merged:
                before, known = merged[key]
                merged[key] = before, replace(known, launches=known.launches + profile.launches)
            else:
                merged[key] = origin, profile
        return list(merged.values())

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show each launch with its findings, and write the report."""
        write = terminalreporter.write_line
        terminalreporter.write_sep("=", f"weft profile for {self.gpu}")
        found = self.result()
        for origin, profile in found:
            least = f": at least {bound(profile)}" if bound(profile) else ""
            write(f"{title(profile)}{least}{f' ({origin})' if origin else ''}")
            for finding in profile.findings[:_FINDINGS]:
                place = f"{Path(finding.file).name}:{finding.line}"
                write(f"  {finding.kind}, {100 * finding.share:.0f} % of the bound, {place}: {finding.text}")
        if not found:
            write("the tests launched no kernel")
        for message in dict.fromkeys(self.messages):
            write(f"not profiled: {message}")
        if self.report is not None:
            text = rendered([profile for _, profile in found], FORMATS[self.report.suffix])
            self.report.write_text(text, encoding="utf-8")
            write(f"the report is in {self.report}")
