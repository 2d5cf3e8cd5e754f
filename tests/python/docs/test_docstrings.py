"""Docstrings of public functions describe parameters, results and exceptions, and their examples run as shown.

Public functions are those that docs/_site/api.py puts on the pages of the API.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import sys
from pathlib import Path

import numpy as np
import pytest
import weft
import weft.numba
import weft.workers
from weft import _weft, cuda, guvectorize, vectorize

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs" / "_site"))
import api

pytestmark = pytest.mark.cpu  # examples show the CPU's output


@cuda.jit
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


NAMES = {"np": np, "weft": weft, "cuda": cuda, "vectorize": vectorize, "guvectorize": guvectorize}
NAMES |= {"scale": scale, "add": add}


def described() -> dict[str, object]:
    """The objects on the API pages, including members of classes, by path."""
    found: dict[str, object] = {}
    for _, _, names in api.PAGES.values():
        for name in names:
            path = name if name.startswith("weft.") else f"weft.cuda.{name}"
            module, _, last = path.rpartition(".")
            value = getattr(importlib.import_module(module), last)
            if inspect.ismodule(value):
                for member in getattr(value, "__all__", dir(value)):
                    if not member.startswith("_"):
                        found[f"{path}.{member}"] = getattr(value, member)
            else:
                found[path] = value
    for path, value in list(found.items()):
        if isinstance(value, type) and value.__module__.startswith("weft"):
            bases = [base for base in value.__mro__ if base.__module__.startswith("weft")]
            members = {name for base in bases for name in vars(base) if not name.startswith("_")}
            found |= {f"{path}.{name}": getattr(value, name) for name in sorted(members)}
    return {path: value for path, value in found.items() if inspect.getdoc(value)}


DESCRIBED = described()
FUNCTIONS = [
    path
    for path, value in DESCRIBED.items()
    if inspect.isfunction(value) and path.count(".") == (3 if ".random." in path or ".extending." in path else 2)
]


def test_every_name_for_programs_has_a_page() -> None:
    assert api.missing() == []


def test_there_are_many() -> None:
    assert len(DESCRIBED) > 300
    assert len(FUNCTIONS) > 60


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_function_says_all_of_it(path: str) -> None:
    function = DESCRIBED[path]
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    missing = []
    if signature.parameters and "Parameters\n---" not in text:
        missing.append("Parameters")
    for name in signature.parameters if "Parameters\n---" in text else ():
        if name not in {"unknown", "options", "source", "args", "kwargs"} and name not in text:
            missing.append(f"the parameter {name}")
    returns = signature.return_annotation
    if returns not in (None, "None") and "Returns\n---" not in text and "Yields\n---" not in text:
        missing.append("Returns")
    if "Examples\n---" not in text:
        missing.append("Examples")
    assert not missing, f"{path}: {missing}"


# Methods implemented in Rust that only other parts of weft call.
INTERNAL = {"Dispatcher": {"configure", "inspect", "kernel_for", "compile_foreign", "result_type", "inspect_lto_ptx"}}


@pytest.mark.parametrize("name", ["Dispatcher", "Kernel", "_LaunchConfiguration", "GraphBase", "EventBase"])
def test_methods_of_rusts_say_what_they_take_and_raise(name: str) -> None:
    missing = []
    for cls in getattr(_weft, name).__mro__:
        for member, value in vars(cls).items():
            if member.startswith("_") or not inspect.ismethoddescriptor(value) or inspect.isfunction(value):
                continue
            parameters = list(inspect.signature(value).parameters)[1:]
            if not parameters or member in INTERNAL.get(name, ()) or cls.__module__ == "builtins":
                continue
            text = inspect.getdoc(value) or ""
            if "Parameters\n---" not in text:
                missing.append(f"{name}.{member}: Parameters")
            if "Raises\n---" not in text and "Returns\n---" not in text and member != "inspect_types":
                missing.append(f"{name}.{member}: Raises, Returns")
            missing += [f"{name}.{member}: {each}" for each in parameters if each not in text]
    assert not missing


@pytest.mark.parametrize(
    "name",
    [
        "Context",
        "Device",
        "DeviceNDArray",
        "Dispatcher",
        "Event",
        "ForAll",
        "In",
        "InOut",
        "Kernel",
        "Out",
        "Reduce",
        "Signature",
        "Stream",
        "Type",
    ],
)
def test_a_class_has_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(cuda, name)) or "")


def examples() -> list[doctest.DocTest]:
    parser = doctest.DocTestParser()
    made = []
    seen: set[str] = set()
    for path, value in DESCRIBED.items():
        text = inspect.getdoc(value) or ""
        if ">>>" in text and text not in seen and not isinstance(value, int):
            seen.add(text)
            made.append(parser.get_doctest(text, dict(NAMES), path, path, 0))
    return made


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
# Examples are short, and ignore warnings about implicit copies and about the CPU executor.
@pytest.mark.filterwarnings("ignore")
def test_an_example_does_what_it_shows(example: doctest.DocTest, tmp_path: Path) -> None:
    said = io.StringIO()
    # Kernels of examples have no file: doctest stores their source in `linecache`.
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    outcome = runner.run(example, out=said.write)
    assert outcome.failed == 0, said.getvalue()


def test_most_examples_run() -> None:
    ran = [line for example in examples() for line in example.examples if doctest.SKIP not in line.options]
    skipped = [line for example in examples() for line in example.examples if doctest.SKIP in line.options]
    assert len(ran) > 4 * len(skipped)
