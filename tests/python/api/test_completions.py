"""`weft completions`: a real bash completes arguments with the script; the scripts for other shells list them."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

WORDS = ["emit", "check", "explain", "devices", "doctor", "settings", "completions", "cache"]


def script(shell: str) -> str:
    command = [sys.executable, "-m", "weft", "completions", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_has_a_script(shell):
    text = script(shell)
    assert "weft" in text
    for word in [*WORDS, "--format" if shell != "fish" else "format"]:
        assert word in text
    if (program := shutil.which(shell)) and shell != "powershell":
        checked = subprocess.run([program, "-n"], input=text, capture_output=True, text=True, check=False, timeout=60)
        assert checked.returncode == 0, checked.stderr


def test_an_unknown_shell_is_refused():
    command = [sys.executable, "-m", "weft", "completions", "tcsh"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "bash, zsh, fish, powershell" in done.stderr


class Bash:
    """A bash on its own terminal, without user settings."""

    def __init__(self, folder):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "ready$ ", "HOME": str(folder)}
            os.execve(shutil.which("bash"), ["bash", "--noprofile", "--norc", "-i"], environment)
        self.pid = pid

    def until(self, wanted: str, seconds: float = 30) -> str:
        seen, end = "", time.monotonic() + seconds
        while wanted not in seen:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} is not in {seen!r}"
            if select.select([self.terminal], [], [], left)[0]:
                seen += os.read(self.terminal, 4096).decode(errors="replace")
        return seen

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def close(self) -> None:
        self.type("\x15exit\n")
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path):
    (tmp_path / "weft.bash").write_text(script("bash"))
    bash = Bash(tmp_path)
    try:
        bash.until("ready$ ")
        bash.type("bind 'set bell-style none'; . ./weft.bash && echo load''ed\n")
        bash.until("loaded")
        for typed, completed in [
            ("weft che", "weft check"),
            ("weft doctor --for", "weft doctor --format"),
            ("weft check --format gi", "weft check --format github"),
            ("weft cache cl", "weft cache clear"),
        ]:
            bash.type(typed + "\t")
            bash.until(completed)
            bash.type("\x15")  # clear the line
    finally:
        bash.close()
