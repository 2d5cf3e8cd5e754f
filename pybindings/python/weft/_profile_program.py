"""Profiles of the launches of a program: the command `weft profile`, and `WEFT_PROFILE`."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from weft import _weft
from weft._profiler import GPU, SECONDS, of_launch
from weft._program import run_program
from weft.errors import LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft.profile import Profile

FORMATS = {".txt": "text", ".json": "json", ".html": "html"}
"""The formats of reports by the names of files."""


class Recorder:
    """The profiles of the launches of a program: one for each kernel, types and configuration.

    `origin` gives what the program does at the launch, which `origins` stores.
    """

    def __init__(
        self,
        gpu: str,
        seconds: float,
        kernel: str | None = None,
        launch: int | None = None,
        origin: Callable[[], str] = str,
    ) -> None:
        self.gpu = gpu
        self.seconds = seconds
        self.kernel = kernel
        self.launch = launch
        self.origin = origin
        self.origins: dict[Any, str] = {}
        self.count: dict[str, int] = defaultdict(int)
        self.profiles: dict[Any, Profile] = {}
        self.times: dict[Any, int] = defaultdict(int)
        self.failures: dict[Any, str] = {}
        self.process = os.getpid()

    def note(self, dispatcher: Any, shape: Any, args: tuple[Any, ...], types: str) -> None:
        """Profile a launch that is about to be made, unless one like it was profiled, or a fork makes it."""
        if os.getpid() != self.process:
            return
        name = dispatcher.__name__
        self.count[name] += 1
        if self.kernel is not None and name != self.kernel:
            return
        key = (name, id(dispatcher), shape, types)
        self.times[key] += 1
        is_new = key not in self.profiles and key not in self.failures
        is_wanted = is_new if self.launch is None else self.count[name] == self.launch
        if not is_wanted:
            return
        try:
            self.profiles[key] = of_launch(dispatcher, shape, args, self.gpu, self.seconds)
        except LaunchError as error:
            self.failures[key] = str(error)
        else:
            self.origins[key] = self.origin()

    def messages(self) -> list[str]:
        """Give the reasons why launches were not profiled."""
        return list(dict.fromkeys(self.failures.values()))

    def result(self) -> list[Profile]:
        """Give the profiles, with the number of launches of each."""
        return [replace(made, launches=self.times[key]) for key, made in self.profiles.items()]


_started: dict[str, Recorder] = {}
"""The recorder of `WEFT_PROFILE`, by that name."""


def start(gpu: str, file: str | os.PathLike[str] | None) -> None:
    """Profile the launches of this process from now on, and write the report at its end: `WEFT_PROFILE`.

    Several threads may call this at once; they use one recorder.
    """
    made = Recorder(gpu, SECONDS)
    recorder = _started.setdefault("WEFT_PROFILE", made)
    if recorder is made:
        atexit.register(_finish, recorder, None if file is None else Path(file))
    _weft.profile_launches(recorder.note)


def _finish(recorder: Recorder, file: Path | None) -> None:
    if os.getpid() != recorder.process:
        return
    _weft.profile_launches(None)
    for message in recorder.messages():
        print(f"weft profile: {message}", file=sys.stderr)
    if file is None:
        print(rendered(recorder.result(), "text"), end="", file=sys.stderr)
        return
    path = Path(str(file).replace("%p", str(os.getpid())))
    try:
        path.write_text(rendered(recorder.result(), FORMATS[path.suffix]), encoding="utf-8")
    except OSError as error:
        print(f"weft profile: {error}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weft profile",
        description="Run a Python program with its kernels on the CPU, and count what they do on a GPU, by line.",
    )
    parser.add_argument("--gpu", default=GPU, metavar="NAME", help=f"the GPU, such as a100 or rtx4090 ({GPU})")
    parser.add_argument("--kernel", metavar="NAME", help="profile only the kernel of this name")
    parser.add_argument("--launch", type=int, metavar="N", help="profile only the N-th launch of a kernel, from 1")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the time for a launch; larger ones are sampled")
    parser.add_argument("--format", choices=("text", "json", "html"), default="text", help="(text)")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to a file, not to the standard output")
    parser.add_argument(
        "--compare", nargs=2, metavar=("BEFORE", "AFTER"), help="compare two JSON files; run no program"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("program", nargs="?", help="a Python file, or with -m a module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def run(argv: list[str]) -> int:
    """Profile a program's kernels, print the report, and give the program's exit code."""
    options = _parser().parse_args(argv)
    if options.compare:
        return _compare(options)
    if options.program is None:
        print("weft profile: name a program", file=sys.stderr)
        return 2
    if not options.module and not Path(options.program).is_file():
        print(f"weft profile: there is no file {options.program}", file=sys.stderr)
        return 2
    try:
        _weft.check_gpu(options.gpu)
    except ValueError as error:
        print(f"weft profile: {error}", file=sys.stderr)
        return 2
    # The program's first use of a device reads this setting.
    os.environ["WEFT_DEVICE"] = "cpu"
    recorder = Recorder(options.gpu, options.seconds, options.kernel, options.launch)
    _weft.profile_launches(recorder.note)
    try:
        code = run_program(options.program, options.args, options.module)
    finally:
        _weft.profile_launches(None)
    for message in recorder.messages():
        print(f"weft profile: {message}", file=sys.stderr)
    profiles = recorder.result()
    if not profiles and not recorder.failures:
        what = "no kernel" if options.kernel is None else f"no kernel `{options.kernel}`"
        print(f"weft profile: the program launched {what}", file=sys.stderr)
    _write(options.output, rendered(profiles, options.format))
    return code or (1 if recorder.failures else 0)


def rendered(profiles: list[Profile], form: str) -> str:
    """Give the report in a format."""
    if form == "json":
        return json.dumps([each.to_dict() for each in profiles], indent=2) + "\n"
    if form == "html":
        from weft._profile_html import page

        return page(profiles)
    return "\n".join(f"{each}\n" for each in profiles)


def _write(path: str | None, text: str) -> None:
    if path is None:
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def _compare(options: argparse.Namespace) -> int:
    from weft._profile_compare import compare, text
    from weft._profile_compare_html import page

    if options.format == "json":
        print("weft profile: a comparison is text or html", file=sys.stderr)
        return 2
    shown = {"text": text, "html": page}[options.format]
    try:
        found = shown(compare(*map(Path, options.compare)))
    except (OSError, ValueError) as error:
        print(f"weft profile: {error}", file=sys.stderr)
        return 2
    _write(options.output, found)
    return 0
