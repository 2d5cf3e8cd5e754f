"""The content of `CompileError`: file, line, caret and code; all errors at once; and no traceback of the compiler."""

import re

import numpy as np
import pytest
import weft
from harness import module
from weft import CompileError

HEAD = "import math\nimport numpy as np\nfrom weft import cuda\n\n@cuda.jit\n"

# name: (body of `def kernel(x, out)`, line within the file, marked text, code, part of the message)
FAULTS = {
    "unknown name": ("    out[0] = sizze\n", 7, "sizze", "E0201", ["sizze"]),
    "did you mean": ("    lenght = 1\n    out[0] = length\n", 8, "length", "E0201", ["length", "lenght"]),
    "statement": ("    with x:\n        pass\n", 7, None, "E0102", ["with"]),
    "try": ("    try:\n        out[0] = 1\n    except ValueError:\n        pass\n", 7, None, "E0102", ["try"]),
    "expression": ("    out[0] = [i for i in range(3)][0]\n", 7, None, "E0103", ["comprehension"]),
    "undefined local": ("    out[0] = later\n    later = 1\n", 7, "later", "E0204", ["later"]),
    "index count": ("    out[0] = x[0, 1]\n", 7, None, "E0208", ["1", "2"]),
    "float index": ("    out[0] = x[0.5]\n", 7, "0.5", "E0209", ["float64"]),
    "two ellipses": ("    out[0] = x[..., ...]\n", 7, None, "E0209", ["only one `...`"]),
    "shape": ("    n = x.size\n    a = cuda.local.array(n, np.float32)\n    out[0] = a[0]\n", 8, "n", "E0210", []),
    "operand": ("    out[0] = x + 1\n", 7, None, "E0211", ["+"]),
    "returns": ("    return x[0]\n", 7, None, "E0212", ["kernel"]),
    "attribute": ("    out[0] = x.shpae[0]\n", 7, "shpae", "E0207", ["shpae", "shape"]),
    "overload": ("    out[0] = math.sqrt(x)\n", 7, None, "E0205", ["sqrt"]),
    "argument count": ("    out[0] = math.sqrt(1.0, 2.0)\n", 7, None, None, ["sqrt"]),
    "join": ("    if x[0] > 0:\n        v = x\n    else:\n        v = 1\n    out[0] = v\n", None, None, "E0203", ["v"]),
    "module attribute": ("    out[0] = math.sqrrt(2.0)\n", 7, "sqrrt", None, ["sqrrt"]),
}  # fmt: skip


def test_a_captured_value_has_its_article():
    values = {"2**70": "an int of more than 64 bits", "...": "an ellipsis", "[]": "a list", "{}": "a dict"}
    for value, words in values.items():
        _, error = compile_error("VALUE = " + value + "\n" + HEAD + "def kernel(x, out):\n    out[0] = VALUE\n")
        assert f"`VALUE` is {words}, which" in str(error)


def test_what_is_captured_has_a_suggestion():
    helps = {
        "lambda x: x": "decorate `VALUE` with `@cuda.jit`",
        "object()": "kernels can use numbers",
        "type('array_function', (), {})()": "kernels can use numbers",
    }
    for value, words in helps.items():
        source = HEAD.replace("@cuda", f"VALUE = {value}\n@cuda") + "def kernel(x, out):\n    out[0] = VALUE\n"
        assert words in str(compile_error(source)[1])


def compile_error(source, args=None):
    loaded = module(source)
    with pytest.raises(CompileError) as caught:
        loaded.kernel[1, 1](*(args or (np.ones(4), np.zeros(4))))
    return loaded, caught.value


def marked_text(text):
    """The lines above the first row of carets."""
    rows = text.splitlines()
    number = next(k for k, row in enumerate(rows) if "^" in row)
    start, end = re.search(r"\^+", rows[number]).span()
    return rows[number - 1][start:end]


@pytest.mark.parametrize("name", FAULTS)
def test_text(name):
    body, line, carets, code, words = FAULTS[name]
    source = HEAD + "def kernel(x, out):\n" + body
    loaded, error = compile_error(source)
    text = str(error)
    assert loaded.__file__ in text
    if code:
        assert code in text
    for word in words:
        assert word in text
    if line:
        assert f"{loaded.__file__}:{line}" in text
        assert source.splitlines()[line - 1].strip() in text
    if carets:
        assert carets in marked_text(text)


def test_several_faults_at_once():
    source = HEAD + "def kernel(x, out):\n    out[0] = alpha\n    out[1] = beta + x[0]\n    out[2] = x[0, 0]\n"
    _, error = compile_error(source)
    for word in ("alpha", "beta", "E0208"):
        assert word in str(error)
    assert len(error.diagnostics) >= 3
    assert {row["code"] for row in error.diagnostics} >= {"E0201", "E0208"}


def test_a_fault_in_a_device_function():
    source = (
        HEAD + "def helper(x):\n    return x.nothing\n\n@cuda.jit\ndef kernel(x, out):\n    out[0] = helper(x[0])\n"
    )
    loaded, error = compile_error(source)
    assert f"{loaded.__file__}:7" in str(error)
    assert "nothing" in str(error)


def test_recursion():
    source = HEAD + "def f(n):\n    return f(n - 1)\n\n@cuda.jit\ndef kernel(x, out):\n    out[0] = f(3)\n"
    _, error = compile_error(source)
    assert "recurs" in str(error).lower()


def test_a_python_function_that_was_not_jitted():
    source = (
        HEAD.replace("@cuda.jit\n", "")
        + "def f(n):\n    return n\n\n@cuda.jit\ndef kernel(x, out):\n    out[0] = f(3)\n"
    )
    _, error = compile_error(source)
    assert "`f`" in str(error)


def test_the_fault_is_found_again_and_another_type_may_be_right():
    source = HEAD + "def kernel(x, out):\n    out[0] = x[0]\n"
    kernel = module(source).kernel
    for _ in range(2):
        with pytest.raises(CompileError):
            kernel[1, 1](1.5, np.zeros(1))
    out = np.zeros(1)
    kernel[1, 1](np.array([7.0]), out)
    assert out[0] == 7


def test_no_traceback_of_the_compiler():
    _, error = compile_error(HEAD + "def kernel(x, out):\n    out[0] = nope\n")
    assert ".rs:" not in str(error)
    assert "panicked" not in str(error)


def test_numbas_names_catch_it():
    source = HEAD + "def kernel(x, out):\n    out[0] = nope\n"
    with pytest.raises(weft.errors.TypingError):
        module(source).kernel[1, 1](np.ones(1), np.ones(1))
    assert issubclass(weft.errors.CompileError, weft.errors.NumbaError)


def test_a_kernel_with_a_value_and_a_signature():
    source = HEAD.replace("@cuda.jit", "@cuda.jit('void(float32[:])')") + "def kernel(x):\n    x[0] = missing\n"
    with pytest.raises(CompileError, match="missing"):
        module(source)


def test_a_signature_that_cannot_be_read():
    for text in ("void(float33[:])", "void(float32[:]", "float32[:", "void(nothing)"):
        source = HEAD.replace("@cuda.jit", f"@cuda.jit({text!r})") + "def kernel(x):\n    x[0] = 1\n"
        with pytest.raises((CompileError, TypeError, ValueError)):
            module(source)


def executed(*lines):
    """The names that lines define. Their source text no longer exists when this returns."""
    space = {}
    exec("\n".join(lines), space)
    return space


def test_a_kernel_without_source():
    space = executed("from weft import cuda", "def kernel(x):", "    while x[0] < 1:", "        x[0] += 1")
    with pytest.raises((CompileError, OSError), match="source"):
        space["cuda"].jit(space["kernel"])[1, 1](np.zeros(1))


def test_syntax_that_is_newer_than_the_parser_elsewhere_in_the_file_does_no_harm():
    source = HEAD + 'def kernel(x, out):\n    out[0] = x[0]\n\nname = "w"\ntext = f"{name!r:>{10}}"\n'
    out = np.zeros(1)
    module(source).kernel[1, 1](np.ones(1), out)
    assert out[0] == 1
