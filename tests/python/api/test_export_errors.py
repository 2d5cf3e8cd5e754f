"""Errors of exports: of `kernel.export()`, and of the command `weft build`."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda
from weft._weft import run_command

TARGETS = ("sm_75", "host")


def recursive(x):
    x[0] = _fibonacci(x[0])


@cuda.jit("int64(int64)", device=True)
def _fibonacci(n):
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


def printing(x):
    print(x[0])


def multiplying(x):
    tile = cuda.mma.tile(8, 8, 4, np.float64, np.float64, np.float64)
    tile.store(x, 0, 0, tile.mma(tile.a(x, 0, 0), tile.b(x, 0, 0), tile.zeros()))


def spinning(x):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(x, 0, 0) == 0:
            pass
    else:
        cuda.atomic.add(x, 0, 1)


RECORD = np.dtype([("a", np.float32), ("b", np.int32)])


def one(x):
    x[0] = x[0]


def first(x, y):
    y[0] = x[0]


def raising(x):
    if x[0] == 0:
        raise ValueError


def jit_and_export(function, signature, *, jit=None, **options):
    return cuda.jit(**(jit or {}))(function).export(signatures=signature, **options)


WRONG = {
    "a record": (
        lambda: jit_and_export(first, (cuda.typeof(np.zeros(2, RECORD)),) * 2),
        TypeError,
        "kernel `first`, parameter `x`:",
    ),
    "a tuple": (
        lambda: jit_and_export(first, "void(UniTuple(int32, 2), int32[::1])"),
        TypeError,
        "exported kernels take numbers and arrays, not UniTuple(int32 x 2): pass its values as parameters",
    ),
    "print": (lambda: jit_and_export(printing, "void(int32[::1])"), TypeError, "it prints, which needs weft's runtime"),
    "matrix tiles on the CPU": (
        lambda: jit_and_export(multiplying, "void(float64[:, ::1])", targets=["host"]),
        TypeError,
        "its matrix tiles or asynchronous copies need weft's runtime on a CPU",
    ),
    "exceptions": (
        lambda: jit_and_export(raising, "void(int32[::1])", jit={"exceptions": True}),
        TypeError,
        "leave out exceptions=True",
    ),
    "recursion on the CPU": (
        lambda: jit_and_export(recursive, "void(int64[::1])"),
        TypeError,
        "without the target `host`",
    ),
    "threads that wait on the CPU": (
        lambda: jit_and_export(spinning, "void(int32[::1])"),
        TypeError,
        "its threads wait for each other",
    ),
    "a target": (lambda: jit_and_export(one, "void(int32[::1])", targets="sm_91"), ValueError, "sm_91"),
    "a CPU": (lambda: jit_and_export(one, "void(int32[::1])", host_cpu="z80"), ValueError, "LLVM knows no CPU `z80`"),
    "a name": (lambda: jit_and_export(one, "void(int32[::1])", name="a-b"), TypeError, "`a-b` is no identifier of C"),
    "no signature": (lambda: cuda.jit(one).export(), TypeError, "parameter `x` has no annotation"),
    "a rule": (
        lambda: jit_and_export(one, "void(int32[::1])", launch=lambda x: (x.shape[1], 1)),
        TypeError,
        "the launch rule of `one` does not fit",
    ),
    "an output": (
        lambda: jit_and_export(one, "void(int32[::1])", out=cuda.like("x")),
        TypeError,
        "the output rule of `one` does not fit",
    ),
    "a device function": (lambda: _fibonacci.export(signatures="int64(int64)"), TypeError, "is a device function"),
    "several targets": (
        lambda: jit_and_export(one, "void(int32[::1])", targets="sm_75,sm_90").code(),
        ValueError,
        "name a target",
    ),
    "no such target": (
        lambda: jit_and_export(one, "void(int32[::1])", targets=TARGETS).code("sm_90"),
        ValueError,
        "`one` has no code for sm_90, only for sm_75, x86-64-v3",
    ),
    "several kernels": (
        lambda: jit_and_export(one, ["void(int32[::1])", "void(int64[::1])"], targets=TARGETS).code("sm_75"),
        ValueError,
        "name one of its kernels: one_1, one_2",
    ),
    "no such kernel": (
        lambda: jit_and_export(one, "void(int32[::1])", targets=TARGETS).code("sm_75", "two"),
        ValueError,
        "it has no kernel `two`: one",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_exports_say_what_to_write(case):
    use, error, message = WRONG[case]
    with pytest.raises(error) as raised:
        use()
    assert message in str(raised.value)


COMMANDS = {
    "a rule that the command cannot read": (
        "@cuda.jit('void(float32[::1])', launch=input())\ndef k(x):\n    x[0] = 1\n",
        "cannot read this launch rule without running the file",
    ),
    "a rule that does not fit": (
        "@cuda.jit('void(float32[::1], float32)', launch=lambda a: (a, 1))\ndef k(x, a):\n    x[0] = a\n",
        "uses `a` as an integer, but it is a float32",
    ),
    "a dictionary": (
        "@cuda.jit('void(float32[::1])', out={'x': cuda.like('x')})\ndef k(x):\n    x[0] = 1\n",
        'write `out=dict(y=cuda.like("x"), …)`',
    ),
    "an unknown parameter": (
        "@cuda.jit('void(float32[::1])', out=dict(y=cuda.like('x')))\ndef k(x):\n    x[0] = 1\n",
        "`y` is no parameter of `k`",
    ),
    "no rule": (
        "@cuda.jit('void(float32[::1])', out=3)\ndef k(x):\n    x[0] = 1\n",
        '`out` takes `cuda.like("x")`',
    ),
    "no signature": ("@cuda.jit\ndef k(x):\n    x[0] = 1\n", "has no signature to compile for"),
    "no kernels": ("x = 1\n", "has no kernels"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_wrong_files_say_what_to_write(case, tmp_path, capfd):
    text, message = COMMANDS[case]
    (tmp_path / "kernels.py").write_text("from weft import cuda\n\n" + text)
    assert run_command(["weft", "build", str(tmp_path / "kernels.py"), "-o", str(tmp_path / "out")]) == 1
    assert message in capfd.readouterr().err
    assert not (tmp_path / "out").exists()
