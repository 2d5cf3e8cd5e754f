"""Syntax that is newer than the parser's grammar: the output of Python 3.12 f-strings, and files that must parse."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest

# The output of the kernel, line by line, and that of CPython.
LINES = [
    """print(f"{x[0]:{">"}{width}d}{"\\t"}|")""",
    """print(f'{f'<{y:.2f}>'}{'é'}')""",
    """print(f"{  # what { occurs first
        x[1]
        + 1
    }\\n" f"{x[2] = }" '{}')""",
    """print(rf'\\{x[0]}\\d{{' "\\N{BULLET}" f'{x[1]:{'5'}d}')""",
    """print(f"{x[0]!s:>{f"{width}"}}{"nested" if x[0] > 0 else "quotes"}")""",
]
KERNEL = "from weft import cuda\n\n\n@cuda.jit\ndef say(x, y):\n    width = 8\n" + "".join(
    f"    {line}\n" for line in LINES
)


@pytest.mark.cpu
@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 no such function can be defined")
def test_what_newer_texts_print(tmp_path):
    file = tmp_path / "newer.py"
    file.write_text(KERNEL, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("newer", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = np.array([3, -4, 5], np.int32), 2.5
    expected, printed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(expected):
        module.say.py_func([3, -4, 5], y)
    with contextlib.redirect_stdout(printed):
        module.say[1, 1](x, y)
    assert printed.getvalue() == expected.getvalue()


def check(*files, color="never"):
    ran = subprocess.run(
        [sys.executable, "-m", "weft", "check", "--color", color, *map(str, files)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


def test_newer_texts_are_compiled_whatever_python_runs(tmp_path):
    file = tmp_path / "newer.py"
    file.write_text(KERNEL.replace("@cuda.jit", '@cuda.jit("void(int32[::1], float64)")'), encoding="utf-8")
    code, out, err = check(file)
    assert (code, err) == (0, ""), err
    assert "1 kernel" in out


# Files of the standard library with unusual syntax, from the Python version that runs the test.
UNUSUAL = """
    dataclasses.py traceback.py turtle.py typing.py enum.py inspect.py _pydecimal.py test/test_fstring.py
    test/test_tstring.py test/test_type_params.py test/test_type_aliases.py test/test_grammar.py
    test/test_patma.py test/test_named_expressions.py test/test_except_star.py test/test_string_literals.py
    test/test_unicode_identifiers.py test/test_positional_only_arg.py test/test_contextlib_async.py
    test/test_coroutines.py test/test_lambda.py test/test_generators.py test/test_future_stmt
    test/test_exceptions.py test/test_syntax.py test/test_unpack_ex.py test/test_extcall.py test/test_codeop.py
    test/support/socket_helper.py test/tokenizedata test/test_annotationlib.py test/test_type_annotations.py
""".split()  # fmt: skip


def is_python(file):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def test_files_of_the_standard_library_are_read():
    library = Path(sysconfig.get_path("stdlib"))
    files = []
    for name in UNUSUAL:
        path = library / name
        files += sorted(path.glob("*.py")) if path.is_dir() else [path] if path.exists() else []
    assert len(files) >= 7
    # Files that weft accepts: `latin-1` bytes after a declaration of another encoding, in a comment.
    files = [file for file in files if file.name != "bad_coding2.py"]
    wrong = []
    for file in files:
        code, _, err = check(file)
        own = [line for line in err.splitlines() if "E0101" in line]
        if is_python(file) and own:
            wrong.append(f"{file}: {own}")
        elif not is_python(file) and code == 0:
            wrong.append(f"{file}: not refused")
    assert not wrong, "\n".join(wrong)
