"""The compiled source is that of the function, even if its file has changed since."""

import importlib.util
import inspect
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
import types
import zipfile
from importlib.machinery import SourceFileLoader

import numpy as np
import pytest
import weft
from weft import _rebuild, _source, cuda

HEAD = "from weft import cuda\n"
KERNEL = "@cuda.jit\ndef kernel(out):\n    out[0] = 1\n"


def load(path, text, loader=None):
    path.write_text(text)
    return loaded(path, loader)


def loaded(path, loader=None):
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader and loader(path.stem, str(path)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(kernel):
    out = np.zeros(1)
    kernel[1, 1](out)
    return out[0]


def test_a_file_that_changes_after_it_was_loaded(tmp_path):
    path = tmp_path / "changes.py"
    module = load(path, HEAD + KERNEL + "@cuda.jit(device=True)\ndef other(x):\n    return x\n")
    path.write_text("#\n#\n" + path.read_text().replace("= 1", "= 222"))
    assert run(module.kernel) == 1


def test_a_file_that_vanishes_after_it_was_loaded(tmp_path):
    module = load(tmp_path / "vanishes.py", HEAD + KERNEL)
    (tmp_path / "vanishes.py").unlink()
    assert run(module.kernel) == 1


FACTORY = HEAD + "def make(n):\n    @cuda.jit\n    def kernel(out):\n        out[0] = n + 1\n    return kernel\n"


@pytest.mark.parametrize("edit", ["n + 222", "n - 1", "m + 1", "n + 1.0", "(1 + n)"])
def test_a_factory_whose_text_changes_before_its_first_call_is_an_error(tmp_path, edit):
    path = tmp_path / "factory.py"
    module = load(path, FACTORY)
    path.write_text(FACTORY.replace("n + 1", edit))
    with pytest.raises(weft.errors.SourceError, match=r"factory.py:3 is not that of `make.<locals>.kernel`: .*changed"):
        run(module.make(5))


def test_a_factory_whose_text_moves_before_its_first_call_is_an_error(tmp_path):
    path = tmp_path / "moved.py"
    module = load(path, FACTORY)
    path.write_text("#\n" + FACTORY)
    with pytest.raises(weft.errors.SourceError, match="Load the module again"):
        run(module.make(5))


def test_the_same_text_elsewhere_in_the_file_is_not_taken_for_it(tmp_path):
    path = tmp_path / "twice.py"
    twice = HEAD + "@cuda.jit\ndef kernel(out):\n    out[0] = 2\n" + KERNEL
    module = load(path, twice)
    assert run(module.kernel) == 1
    path.write_text(twice.replace("2", "1").replace("= 1\n@", "= 3\n@"))
    assert run(cuda.jit(module.kernel.py_func)) == 1


def test_a_factory_goes_on_working_after_a_change(tmp_path):
    path = tmp_path / "goes_on.py"
    module = load(path, FACTORY)
    assert run(module.make(5)) == 6
    path.write_text("#\n\n" + FACTORY.replace("+ 1", "+ 222"))
    assert run(module.make(7)) == 8
    assert run(load(path, path.read_text()).make(7)) == 229


def test_a_change_that_the_files_stamp_does_not_show(tmp_path):
    path = tmp_path / "stamp.py"
    for value in (1, 2):
        module = load(path, (HEAD + KERNEL).replace("= 1", f"= {value}"), SourceFileLoader)
        os.utime(path, ns=(10**18, 10**18))
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            module = load_again(path)
        finally:
            sys.dont_write_bytecode = before
        assert run(module.kernel) == value


def load_again(path):
    scope = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return type("Scope", (), {"kernel": scope["kernel"]})


def test_code_made_under_the_name_of_another_file_is_an_error(tmp_path):
    path = tmp_path / "existing.py"
    path.write_text(HEAD + KERNEL.replace("= 1", "= 3"))
    scope = {}
    exec(compile(HEAD + KERNEL, str(path), "exec"), scope)
    with pytest.raises(weft.errors.SourceError, match=r"source=text"):
        run(scope["kernel"])
    assert run(cuda.jit(source=KERNEL)(scope["kernel"].py_func)) == 1


def test_an_edited_copy_does_not_matter_where_the_text_is_given(tmp_path):
    path = tmp_path / "given.py"
    module = load(path, HEAD + KERNEL)
    path.write_text("")
    assert run(cuda.jit(module.kernel)) == 1
    assert run(module.kernel.specialize(np.zeros(1))) == 1


# Sources that the check must accept.


def test_assertions_that_pytest_has_rewritten():
    offset = 2

    @cuda.jit
    def kernel(out):
        assert out.size == 1, "one element"
        out[0] = offset + 1

    assert run(kernel) == 3


class Private:
    @staticmethod
    @cuda.jit
    def kernel(out):
        __local = 7
        out[0] = __local


def test_private_names_of_a_class():
    assert run(Private.kernel) == 7


_Mangled__scale = 3
_Mangled__table = types.SimpleNamespace(_Mangled__first=4)


class _Mangled:
    @staticmethod
    @cuda.jit
    def kernel(out, __by):
        out[0] = __scale * __by + __table.__first  # noqa: F821

    @staticmethod
    def make():
        __hidden = 5

        @cuda.jit
        def kernel(out):
            out[0] = __hidden + __scale  # noqa: F821

        return kernel


def test_private_names_from_around_a_class():
    out = np.zeros(1)
    _Mangled.kernel[1, 1](out, 2)
    assert out[0] == 10
    kernel = _Mangled.make()
    assert run(kernel) == 8
    assert run(pickle.loads(pickle.dumps(kernel))) == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def other(out):\n    out[0] = 2\n", "`kernel` defines `other`"),
        (KERNEL + "def helper(x):\n    return x\n", r"`kernel` defines 2 functions \(kernel, helper\)"),
        ("    def other(out):\n        out[0] = 2\n", "`kernel` defines `other`"),
    ],
)
def test_a_given_text_that_is_not_of_the_one_function(text, message):
    def kernel(out):
        out[0] = 1

    with pytest.raises(weft.errors.SourceError, match=message):
        run(cuda.jit(source=text)(kernel))


def test_a_given_text_with_imports_around_its_function():
    def kernel(out):
        out[0] = 1

    assert run(cuda.jit(source="import math\n" + KERNEL + "x = 2\n")(kernel)) == 1


PIECES = {
    "future": "from __future__ import annotations\n" + HEAD + "@cuda.jit\ndef kernel(out: missing):\n    out[0] = 1\n",
    "imports": HEAD + "import math\n@cuda.jit\ndef kernel(out):\n    out[cuda.grid(1)] = math.cos(0.0)\n",
    "partly imported": HEAD
    + "import math\nm = math\n@cuda.jit\ndef kernel(out):\n    out[cuda.grid(1)] = m.cos(0.0) * math.cos(0.0)\n",
    "docstring": HEAD + '@cuda.jit\ndef kernel(out):\n    """A text\nat the margin."""\n    out[0] = 1\n',
    "crlf and tabs": (HEAD + "if True:\n\t@cuda.jit\n\tdef kernel(out):\n\t\tout[0] = 1\n").replace("\n", "\r\n"),
    "warning": HEAD + "@cuda.jit\ndef kernel(out):\n    '\\d'\n    out[0] = 1\n",
    "constants": HEAD + "@cuda.jit\ndef kernel(out):\n    out[0] = 1 if 0 in (0, -0.0, 1e999, True) else 2\n",
    "a closure named as what encloses it": HEAD
    + "def make(n):\n    @cuda.jit\n    def __enclosing__(out):\n        out[0] = n\n    return __enclosing__\n"
    "kernel = make(1)\n",
}


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_ordinary_modules(tmp_path, name):
    path = tmp_path / "piece.py"
    path.write_bytes(PIECES[name].encode())
    scope = {"__name__": "piece"}
    exec(compile(path.read_bytes(), str(path), "exec"), scope)
    assert run(scope["kernel"]) == 1


def test_a_notebook_cell():
    text = HEAD + KERNEL
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    scope = {}
    exec(compile(text, "<cell 1>", "exec"), scope)
    assert run(scope["kernel"]) == 1


def test_a_module_in_an_archive(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped_kernel.py", HEAD + KERNEL)
    monkeypatch.syspath_prepend(tmp_path / "archive.zip")
    import zipped_kernel

    assert run(zipped_kernel.kernel) == 1


class Rewriting(SourceFileLoader):
    """Adds a statement to every function, as a type checker's loader does."""

    def source_to_code(self, data, path, **options):
        return super().source_to_code(data.replace(b"    out[0]", b"    checked = True; out[0]"), path)


def test_a_loader_that_rewrites(tmp_path):
    path = tmp_path / "rewritten.py"
    assert run(load(path, HEAD + KERNEL, Rewriting).kernel) == 1
    module = load(path, FACTORY, Rewriting)
    path.write_text(FACTORY.replace("1", "222"))
    with pytest.raises(weft.errors.SourceError, match="is not that of"):
        run(module.make(1))


def executed(text):
    scope = {"cuda": cuda}
    exec(text, scope)
    return scope["made"]


def test_a_function_made_by_exec_whose_text_is_in_a_variable():
    for value in (1, 2):
        text = f"def made(out):\n    out[0] = {value}\n"
        assert run(cuda.jit(executed(text))) == value


def test_a_function_made_by_exec_whose_text_is_in_a_variable_of_a_caller():
    text = "\n\ndef other(out):\n    out[0] = 3\n\n@cuda.jit\ndef made(out):\n    out[0] = 4\n"
    assert run(executed(text)) == 4


def test_a_function_made_by_exec_of_a_part_of_a_text():
    text = "\n    # indented\n    def made(out):\n        out[0] = 5\n\n    def other(out):\n        out[0] = 6\n"
    assert run(cuda.jit(executed(textwrap.dedent(text).strip()))) == 5


def test_a_function_made_by_exec_of_a_constant():
    scope = {}
    exec("def made(out):\n    out[0] = 7\n", scope)
    assert run(cuda.jit(scope["made"])) == 7


def test_a_device_function_made_by_exec():
    text = "def made(x):\n    return x + 8\n"
    made = cuda.jit(device=True)(executed(text))

    @cuda.jit
    def kernel(out):
        out[0] = made(0)

    assert run(kernel) == 8


WHILE = "def made(out):\n    while out[0] < 1:\n        "


@pytest.mark.parametrize("edit", ["out[0] = 2", "out[0] = 1.0", "out[1] = 1", "out[0] += 1", "pass"])
def test_a_text_that_is_not_quite_the_functions_is_not_taken(edit):
    def make():
        # The source is a constant of a call that has returned.
        return executed(WHILE + "out[0] = " + str(int("1")))

    made = make()
    text = WHILE + edit
    with pytest.raises(weft.errors.SourceError, match=r"cuda.jit\(source=text\)"):
        run(cuda.jit(made))
    assert "def made" in text


def forgotten(body):
    """A function whose source text no longer exists."""
    return executed(f"def made(out):\n    {body}\n")


BODIES = {
    "out[0] = 1": 1,
    "out[0] += 2.5 * (out[1] - 1)": -2.5,
    "out[0] = -(out[1] ** 2) + abs(-3)": 3,
    "x = 4\n    out[0] = x\n    x = 5": 4,
    "if out[0] > 1:\n        out[0] = 1\n    elif out[0] == 0:\n        out[0] = 5\n    else:\n        out[0] = 2": 5,
    "if out[0] > 1 and out[1] > 1:\n        out[0] = 1\n    else:\n        out[0] = 3": 3,
    "for i in range(4):\n        if i == 2:\n            continue\n        out[0] += i": 4,
    "for i in range(2):\n        for j in range(0, 6, 3):\n            out[0] += i * j\n    out[0] *= 2": 6,
    "a, b = 3, 4\n    x = (a, b)\n    out[0] = x[1]": 4,
    "out[1:][0] = 7\n    out[0] = out[::-1][0]": 7,
    "s = cuda.shared.array(2, dtype='float32')\n    s[0] = 8\n    cuda.syncthreads()\n    out[0] = s[0]\n    return": 8,
    "'A docstring.'\n    out[0] = not out[0] == 1": 1,
    "if out[0] < 1:\n        out[0] = 2\n        return\n    out[0] = 3": 2,
    "if out[0] == 0 and out[1] == 0:\n        out[0] = 9": 9,
}


@pytest.mark.parametrize("body", BODIES)
def test_a_simple_function_whose_text_is_gone_is_read_from_its_code(body):
    kernel = cuda.jit(forgotten(body))
    out = np.zeros(2)
    kernel[1, 1](out)
    assert out[0] == BODIES[body]


@pytest.mark.parametrize(
    "body",
    [
        "while out[0] < 1:\n        out[0] = 1",
        "out[0] = out[1] = 2",
        "try:\n        out[0] = 1\n    finally:\n        pass",
    ],
)
def test_what_is_not_read_from_code_asks_for_the_text(body):
    with pytest.raises(weft.errors.SourceError, match="is in no variable any more"):
        run(cuda.jit(forgotten(body)))


@pytest.mark.parametrize("arguments", ["out, n=1", "*out", "out, *, n", "out, **more"])
def test_parameters_that_are_not_read_from_code(arguments):
    def make():
        return executed(f"def made({arguments}):\n    return\n")

    assert not list(_rebuild.rebuilt_sources(make()))


def test_a_long_function_is_not_read_from_its_code():
    def make():
        return executed("def made(out):\n" + "    out[0] += 1\n" * 5000)

    assert not list(_rebuild.rebuilt_sources(make()))


def test_a_closure_made_by_exec():
    def make():
        text = "def outer(n):\n  def made(out):\n    out[0] = n\n  return made\nmade = outer(9)\n"
        return executed(text), text

    made, text = make()
    assert run(cuda.jit(made)) == 9
    assert "made" in text


def test_a_function_made_by_exec_is_pickled_with_its_text():
    text = "def made(out):\n    out[0] = 10\n"
    kernel = cuda.jit(executed(text))
    text = ""
    assert run(pickle.loads(pickle.dumps(kernel))) == 10


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("def f(a):\n    a[0] = 1\n    # the end\n\n# after\nx = 1\n", "    # the end\n"),
        ("def f(a):\n    if a[0]:\n        a[0] = 1\n    else:\n        pass\nx = 1\n", ""),
        ("def f(a): a[0] = 1\nx = 1\n", ""),
        ("def f(a):\n    a[0] = (1 +\n2\n)\nx = 1\n", ""),
        ("def f(a):\n    a[0] = 1\n    '''\nx = 1\n'''\n    (3,\n)\nx = 2\n", ""),
        ("def f(a):\n    a[0] = 1\n    x: int\n    def g():\n        return 1\nx = 1\n", ""),
        ("@(lambda f: f)\n@(\nlambda f: f\n)\ndef f(a):\n\n    a[0] = 1\n\n\nx = 1\n", ""),
        ("if 1:\n  def f(a):\n\n      a[0] = 1\n      pass\n  x = 1\n", ""),
        ("def f(a):\n    a[0] = 1\n", ""),
        ("def f(a):\n    a[0] = 1", ""),
        ("def f(a):\r\n    a[0] = 1\r\n    pass\r\nx = 1\r\n", ""),
        ("\ufeffdef f(a):\n    a[0] = 1\nx = 1\n", ""),
        ("# -*- coding: latin-1 -*-\ndef f(a):\n    a[0] = 'ä'\nx = 1\n", ""),
    ],
)
def test_a_functions_text_ends_where_python_ends_it(tmp_path, text, left_out):
    file = tmp_path / "ends.py"
    file.write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    function = loaded(file).f
    name, found, first, _ = _source.of(function, None, _source.keep(function))
    lines = inspect.getsourcelines(function)
    assert (name, first) == (str(file), lines[1])
    assert found + left_out == "".join(lines[0])


@pytest.mark.parametrize(
    "text",
    [
        "def f(a, /, b=1, *, c: 'x' = 2) -> None:\n    '''text'''\n    a[0] = b + c - 1\n",
        "@(lambda g: g)\n@(\nlambda g: g\n)\ndef f(a):\n    a[0] = a.shape[0] - 1 if a.any() else len(a)\n",
        "import math\nx = 1\ndef f(a):\n    a[0] = math.sin(1) - x.real\n",
        "if 1:\n    def f(a):\n        a[0] = '''1\n 1'''\n",
        "if 1:\n\tdef f(a):\n\t\ta[0] = 1\n",
        "def make(n):\n def f(a):\n  def g():\n   nonlocal n\n   n = 1\n  return g, n - 1\n return f\nf = make(1)\n",
        "class C:\n    __x = 1\n    def f(self):\n        return self.__x - 1, C.__y\nf = C.f\n",
        "def make(n):\n  class C:\n   def f(self):\n    return __class__, self.__x, n - 1\n  return C.f\nf = make(1)\n",
        "from __future__ import annotations\ndef f(a: unknown):\n    b: unknown = 1\n    a[0] = [x for x in b]\n",
    ],
)
def test_a_text_is_held_against_the_code_without_a_tree(tmp_path, text):
    function = load(tmp_path / "directly.py", text).f
    code = function.__code__
    _, block, _, _ = _source.of(function, None, _source.keep(function))
    assert _source._same(code, _source._compile_directly(block, code))
    for old, new in (("1", "2"), ("def f", "def g"), ("- 1", "+ 1"), ("def f", "async def f")):
        if old in block:
            assert not _source._same(code, _source._compile_directly(block.replace(old, new), code))


def test_what_is_no_plain_definition_is_left_to_the_tree(tmp_path):
    function = load(tmp_path / "no.py", "async def f(a):\n    a[0] = 1\n").f
    assert _source._compile_directly("async def f(a):\n    a[0] = 1\n", function.__code__) is None
    # An explicit source need not have the indentation of its function.
    made = load(tmp_path / "given.py", "def make(n):\n    def f(a):\n        a[0] = n\n    return f\nf = make(1)\n").f
    assert _source._compile_directly("def f(a):\n    a[0] = n\n", made.__code__) is None
    assert _source._compile_directly("def f(a\n", made.__code__) is None
    assert _source._compile_directly("  def f(a\n", made.__code__) is None


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python keeps this source from 3.13 on")
@pytest.mark.parametrize("is_typed", [False, True])
def test_kernels_of_no_file(is_typed):
    """Typed at a plain interpreter's prompt, or passed with ``-c``."""
    lines = (
        "from weft import cuda\n@cuda.jit\ndef kernel(x):\n    print('got', x)\n\nkernel[1, 1](7)\ncuda.synchronize()\n"
    )
    command = [sys.executable, "-i", "-q"] if is_typed else [sys.executable, "-c", lines]
    done = subprocess.run(command, input=lines if is_typed else "", capture_output=True, text=True, check=True)
    assert "got 7" in done.stdout, done.stderr
