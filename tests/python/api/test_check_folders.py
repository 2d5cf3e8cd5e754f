"""`weft check FOLDER` omits files that git ignores: random rules, compared with git itself."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys

import pytest

FOLDERS = ["", "a", "a/b", "a/b/c", "d", "d/a", "ab"]
NAMES = ["k.py", "ab.py", "a.py", "keep.py", "x1.py", "x_2.py"]
RULES = [
    *("*.py", "!keep.py", "a/", "/a", "a/*.py", "a/**", "**/b", "b/", "a/**/c", "x?.py", "x[0-9].py", "x[!1]*.py"),
    *(
        "\\!keep.py",
        "# k.py",
        "k.py ",
        "k.py\\ ",
        "/d/*",
        "!/d/a",
        "!d/a/k.py",
        "?b",
        "ab*",
        "*",
        "!*/",
        "!k.py",
        "[ab].py",
    ),
    *("a/b/c/k.py", "**/a/k.py", "d/**/*.py", "**", "/", "//", "[", "\\a.py", "a\\", "b/c", "/*/", "!/a/"),
]


def git(folder, *args):
    return subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("seed", range(25))
def test_what_git_ignores_is_left_out(seed, tmp_path):
    git(tmp_path, "init", "-q", ".")
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in NAMES:
            (tmp_path / folder / name).write_text(f"# weft\n{'x' * 7} = (\n")
    chosen = random.Random(seed)
    for folder in ["", *chosen.sample(FOLDERS[1:], 2)]:
        rules = chosen.sample(RULES, chosen.randint(1, 4))
        (tmp_path / folder / ".gitignore").write_text("".join(rule + "\n" for rule in rules))
    listed = git(tmp_path, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    expected = {name for name in listed if name.endswith(".py")}
    # Each file has an error in its second line.
    command = [sys.executable, "-m", "weft", "check", "--format", "github", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    found = {line.split("file=./", 1)[1].split(",", 1)[0] for line in done.stdout.splitlines()}
    assert found == expected, [(path, path.read_text()) for path in tmp_path.rglob(".gitignore")]
    assert done.returncode == (1 if expected else 0)
