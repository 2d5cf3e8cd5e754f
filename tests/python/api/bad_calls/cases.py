"""Rows of wrong calls and wrong kernels: their form, the names that they can use, and the check of their exceptions.

A row has the accepted exception classes, a pattern for the part of the message that names the argument or the value,
and a pattern for the suggested fix. A compile error must also show the kernel's line with a caret. The verdicts are:
`good`; `weak`, if the message lacks something; `wrong`, if the class is another one or the error is internal to weft;
`silent`, if nothing is raised. A case that ends the interpreter is a `crash`, which the parent process reports.
"""

from __future__ import annotations

import linecache
import re
import textwrap
import warnings
from dataclasses import dataclass

import numpy as np
import weft
from weft import cuda, types


@dataclass(frozen=True)
class Case:
    """A row. `code` is run with the names of `namespace`, as a file of its own."""

    code: str
    raises: tuple[str, ...]
    names: str
    remedy: str
    kernel: bool

    @property
    def name(self) -> str:
        """The code in a line."""
        return " / ".join(line.strip() for line in self.code.splitlines() if line.strip())


def call(code: str, raises: str, names: str, remedy: str = "") -> Case:
    """A row of host code: a statement, or several."""
    return Case(textwrap.dedent(code).strip() + "\n", tuple(raises.split("|")), names, remedy, kernel=False)


def kernel(
    body: str,
    names: str,
    remedy: str = "help|note",
    *,
    raises: str = "CompileError",
    params: str = "x",
    args: str = "x()",
    before: str = "",
    options: str = "",
) -> Case:
    """A row of a kernel's body, which is launched with four threads."""
    head = f"{textwrap.dedent(before).strip()}\n@cuda.jit({options})\ndef k({params}):\n"
    code = head.lstrip() + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    code += f"\n\nk[1, 4]({args})\ncuda.synchronize()\n"
    return Case(code, tuple(raises.split("|")), names, remedy, kernel=True)


def x(count: int = 8, dtype: object = np.float32) -> np.ndarray:
    """A small array on the host."""
    return np.arange(count).astype(dtype)


def dev(*shape: int, dtype: object = np.float32) -> object:
    """A small array of zeros on the device."""
    return cuda.to_device(np.zeros(shape or (3,), dtype))


@cuda.jit
def inc(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


@cuda.jit
def two(x, n):
    x[0] = n


@cuda.jit(device=True)
def add(a, b):
    return a + b


def namespace() -> dict[str, object]:
    """The names that rows can use."""
    known: dict[str, object] = {"np": np, "weft": weft, "cuda": cuda, "types": types, "__name__": "bad"}
    return known | {"x": x, "dev": dev, "inc": inc, "two": two, "add": add}


def verdict(case: Case, number: int) -> tuple[str, str]:
    """Runs a case: the verdict, and the exception or the missing part."""
    file = f"<bad call {number}>"
    linecache.cache[file] = (len(case.code), None, case.code.splitlines(keepends=True), file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(case.code, file, "exec"), namespace())
    except BaseException as error:
        classes = [known.__name__ for known in type(error).__mro__]
        text = str(error)
    else:
        return "silent", "nothing was raised"
    shown = f"{classes[0]}: {text}"
    if not set(classes) & set(case.raises) or "InternalError" in classes or "panick" in text:
        return "wrong", f"not {' or '.join(case.raises)}, but {shown}"
    lacks = [
        what
        for what, is_there in (
            (f"/{case.names}/", re.search(case.names, text)),
            (f"a suggestion: /{case.remedy}/", re.search(case.remedy, text)),
            ("a line with a caret", not case.kernel or classes[0] != "CompileError" or is_at_a_line(text)),
        )
        if not is_there
    ]
    return ("weak", f"lacks {', '.join(lacks)}: {shown}") if lacks else ("good", shown)


def is_at_a_line(text: str) -> bool:
    """Whether a message shows a source position."""
    return "^" in text and re.search(r"--> .*:\d+:\d+", text) is not None
