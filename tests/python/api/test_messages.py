"""The terms of messages for objects that kernels do not support."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import weft
from weft import cuda, types


def message(kernel, *args):
    with pytest.raises(weft.errors.CompileError) as caught:
        kernel[1, 1](*args)
    return str(caught.value)


@pytest.fixture
def out():
    return np.zeros(4)


def test_what_numba_has_is_no_typo(out):
    @cuda.jit
    def kernel(out):
        out[0] = np.median(out)

    text = message(kernel, out)
    assert "kernels do not have `numpy.median`" in text
    assert "did you mean" not in text
    assert "cuda.local.array" in text


def test_a_module_of_types_is_called_as_users_call_it(out):
    @cuda.jit
    def kernel(out):
        out[0] = types.int33(out[1])

    text = message(kernel, out)
    assert "`types` has no `int33`" in text
    assert "core" not in text


@pytest.mark.parametrize("compiled", [math.fsum, os.getpid], ids=["known module", "other module"])
def test_a_function_of_c_says_where_to_call_it(out, compiled):
    @cuda.jit
    def kernel(out):
        out[0] = compiled()

    assert "outside the kernel, or write it as a function with `@cuda.jit(device=True)`" in message(kernel, out)


def test_a_function_of_numba_alone_by_its_name(out):
    from numpy import arange

    @cuda.jit
    def kernel(out):
        out[0] = arange(3)[0]

    text = message(kernel, out)
    assert "kernels do not have `numpy.arange`" in text
    assert "numpy.zeros(shape, dtype)" in text


def test_a_table_says_what_to_make_of_it(out):
    table = {"a": 1}

    @cuda.jit
    def kernel(out):
        out[0] = table["a"]

    assert "make it a tuple of numbers" in message(kernel, out)


@pytest.mark.parametrize(
    ("command", "line", "is_told"),
    [
        ([], "from weft import cuda", False),
        (["-m", "weft.numba"], "from numba import cuda", True),
        # A package of the user that replaces Numba.
        ([], "import sys, types; sys.modules['numba'] = types.ModuleType('numba'); from weft import cuda", True),
    ],
)
def test_numbas_words_are_for_programs_that_import_numba(tmp_path, command, line, is_told):
    program = tmp_path / "program.py"
    program.write_text(f"""import numpy as np
{line}

table = {{"a": 1}}


@cuda.jit
def kernel(x):
    x[0] = table


try:
    kernel[1, 1](np.zeros(1))
except Exception as error:
    print(error)
""")
    done = subprocess.run([sys.executable, *command, program], capture_output=True, text=True, check=True)
    assert "`table` is a dict, which a kernel cannot use" in done.stdout
    assert ("Numba's message: Untyped global name 'table'" in done.stdout) == is_told
