"""A program's `__main__`, `sys` and exit under `python -m weft.numba` are the same as under plain `python`.

The programs do not use numba, so Python is the reference: output, tracebacks and the exit status must be equal.
"""

import os
import py_compile
import subprocess
import sys
import zipfile

import pytest

NAMES = """
import atexit, sys, __main__
def show(when):
    shown = {}
    for name, value in sorted(vars(__main__).items()):
        if name[:2] == "__" == name[-2:]:
            shown[name] = type(value).__name__ if name in ("__loader__", "__spec__", "__builtins__") else value
    print(when, shown.pop("__main__").__name__, shown, getattr(__spec__, "name", None))
class Own: pass
atexit.register(show, "at exit")
show("now")
print(__name__, sys.argv, sys.path[0], sys.modules["__main__"] is __main__, __main__.Own is Own)
"""

OUTLIVES = """
import atexit, pickle, threading, time
class Own: pass
def later():
    time.sleep(0.2)
    print(type(pickle.loads(pickle.dumps(Own()))) is Own)
threading.Thread(target=later).start()
atexit.register(lambda: print("at exit", pickle.loads(pickle.dumps(Own())).__module__))
"""

MOVES = "import os, sys\nos.chdir('/')\nimport beside\nprint(beside.value, __file__, sys.path[0], sys.argv)\n"

FAILS = """
def fail(n):
    if not n:
        raise ValueError("no")
    fail(n - 1)
fail(2)
"""

HOOK = """
import sys, traceback
def hook(kind, error, tb):
    print(kind.__name__, error, [frame.name for frame in traceback.extract_tb(tb)], sys.excepthook is hook)
    print(error.__traceback__ is tb, sys.last_traceback is tb, sys.last_value is error)
sys.excepthook = hook
def inner():
    raise KeyError(1)
inner()
"""

PROGRAMS = {
    "names.py": NAMES,
    "outlives.py": OUTLIVES,
    "moves.py": MOVES,
    "beside.py": "value = 3\n",
    "fails.py": FAILS,
    "hook.py": HOOK,
    "hook_fails.py": "import sys\nsys.excepthook = lambda *args: 1 / 0\nraise ValueError(3)\n",
    "not_python.py": "x = (\n",
    "exits.py": "import sys\nsys.exit('a word')\n",
    "exits_with_status.py": "raise SystemExit(7)\n",
    "interrupted.py": "raise KeyboardInterrupt\n",
    "latin.py": b"# coding: latin-1\nprint(ascii('\xe9'))\n",
    "package/__init__.py": "import sys\nprint(sys.argv)\n",
    "package/__main__.py": NAMES,
    "package/fails.py": FAILS,
    "package/wants.py": "import nothing_of_this_name\n",
    "broken/__init__.py": "import nothing_of_this_name\n",
    "broken/inner.py": "",
    "folder/__main__.py": MOVES,
    "folder/beside.py": "value = 4\n",
    "named/__main__.py": NAMES,
    "failing/__main__.py": FAILS,
    "lasting/__main__.py": OUTLIVES,
    "empty/nothing.py": "",
}

RUNS = [
    *(["names.py", "a", "-b"], ["./names.py"], ["folder/../names.py"], ["-m", "names", "a"], ["-m", "package", "a"]),
    *(["named", "a"], ["./named/"], ["named.zip"], ["names.pyc"], ["names_of_a_pyc"], ["link.py"]),
    *(["outlives.py"], ["-m", "outlives"], ["lasting"], ["lasting.zip"]),
    *(["moves.py"], ["-m", "moves"], ["folder"], ["folder.zip"], ["tool"], ["./tool"], ["executable_tool"]),
    *(["fails.py"], ["-m", "fails"], ["-m", "package.fails"], ["failing"], ["failing.zip"], ["fails.pyc"]),
    *(["hook.py"], ["-m", "hook"], ["not_python.py"], ["-m", "not_python"], ["latin.py"]),
    *(["exits.py"], ["-m", "exits"], ["exits_with_status.py"], ["interrupted.py"], ["-m", "interrupted"]),
    *(["-m", "nope"], ["-m", "package.nope"], ["-m", "nope.inner"], ["-m", "beside.nope"], ["-m", "empty"]),
    *(["-m", "package.wants"], ["-m", "broken.inner"], ["empty"], ["empty.zip"], ["."], ["old.pyc"]),
    *(["-c", NAMES, "a"], ["-c", "raise SystemExit(2)"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    for name in ("names", "fails"):
        py_compile.compile(str(folder / f"{name}.py"), cfile=str(folder / f"{name}.pyc"))
    (folder / "names_of_a_pyc").write_bytes((folder / "names.pyc").read_bytes())
    (folder / "old.pyc").write_bytes(b"\x00\x01\r\n" + (folder / "names.pyc").read_bytes()[4:])
    (folder / "link.py").symlink_to(folder / "package" / "__main__.py")
    archives = {"named.zip": "named", "lasting.zip": "lasting", "failing.zip": "failing", "empty.zip": "empty"}
    for archive, source in {**archives, "folder.zip": "folder", "tool": "folder"}.items():
        with zipfile.ZipFile(folder / archive, "w") as made:
            for file in sorted((folder / source).iterdir()):
                if file.is_file():
                    made.write(file, file.name)
    # Like an archive of `zipapp`, which starts with a shebang line.
    (folder / "executable_tool").write_bytes(b"#!/usr/bin/env python3\n" + (folder / "tool").read_bytes())
    return folder


def run(folder, *args, options=(), text=None):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    # Bytecode files of a run would change `__cached__` in the next one.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, *options, *args]
    return subprocess.run(command, cwd=folder, env=env, input=text, capture_output=True, text=True, timeout=300)


def same(folder, args, options=(), text=None):
    plain = run(folder, *args, options=options, text=text)
    led = run(folder, "-m", "weft.numba", *args, options=options, text=text)
    assert (led.returncode, led.stdout, led.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    return plain


@pytest.mark.parametrize("args", RUNS, ids=lambda args: " ".join(args)[:30].replace("\n", " "))
def test_a_program_sees_what_python_shows_it(folder, args):
    same(folder, args)


@pytest.mark.parametrize("args", [["names.py"], ["named"], ["named.zip"], ["-m", "package"]], ids=" ".join)
def test_with_a_safe_path(folder, args):
    # Then Python does not search the current folder for the module, and neither does the drop-in.
    same(folder, args, options=["-P"])


@pytest.mark.parametrize("text", [NAMES, "import sys\nsys.exit(3)\n"])
def test_the_standard_input(folder, text):
    same(folder, ["-", "a"], text=text)


def test_the_prompt_after_a_program_has_its_names(folder):
    for program in (["beside.py"], ["-m", "beside"]):
        assert run(folder, "-m", "weft.numba", *program, options=["-i", "-q"], text="print(value)\n").stdout == "3\n"


def test_a_hook_that_fails(folder):
    """This is the only traceback with a frame of the drop-in: the caller of the hook."""
    plain, led = run(folder, "hook_fails.py"), run(folder, "-m", "weft.numba", "hook_fails.py")
    shown = led.stderr.splitlines()
    (at,) = [i for i, line in enumerate(shown) if "__main__.py" in line]
    after = next(i for i, line in enumerate(shown) if i > at and line.startswith("  File"))
    assert shown[:at] + shown[after:] == plain.stderr.splitlines()
    assert (led.returncode, led.stdout) == (plain.returncode, plain.stdout)
