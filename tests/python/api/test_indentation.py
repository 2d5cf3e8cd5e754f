"""Tabs in the indentation: weft parses the same blocks as CPython, and rejects the same sources."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import weft.errors
from weft import cuda

BLANKS = ["", " ", "    ", "\t", "        ", " \t", "    \t", "\t ", "        \t", "\t\t", " \x0c  "]


def text_of(first, second, third, fourth):
    """A function whose last three lines have these indentations, after a block with the first."""
    head = f"def k(out):\n{first}out[0] = 1\n{first}if out[1] > 0:\n"
    return f"{head}{second}out[2] = 2\n{third}out[3] = 3\n{fourth}out[4] = 4\n"


def read_by_python(text):
    try:
        compile(text, "k.py", "exec")
    except SyntaxError as error:
        return type(error)
    found = {}
    exec(compile(text, "k.py", "exec"), found)
    out = [0, 0, 0, 0, 0]
    if "k" in found:
        found["k"](out)
    return out


def read_by_weft(text):
    def k(out):
        pass

    try:
        kernel = cuda.jit(source=text)(k)
        out = np.zeros(5, np.int64)
        kernel[1, 1](out)
    except weft.errors.CompileError as error:
        return str(error)
    return out.tolist()


CASES = [text_of(*blanks) for blanks in itertools.product(["    ", "\t", "        "], BLANKS, BLANKS[1:], BLANKS[1:])]


@pytest.mark.cpu
def test_blocks_are_those_of_python():
    # A source with more top-level definitions after the function is not the source of one function.
    chosen = random.Random(5).sample(CASES, 250)
    kinds = set()
    for text in chosen:
        expected = read_by_python(text)
        found = read_by_weft(text)
        kinds.add(expected if isinstance(expected, type) else "read")
        if isinstance(expected, list):
            assert found == expected, text
        else:
            assert isinstance(found, str), text
            assert "E0101" in found, text
            if expected is TabError:
                assert "the indentation mixes tabs and spaces" in found, text
    assert kinds == {"read", TabError, IndentationError}


@pytest.mark.cpu
def test_tabs_where_they_mean_nothing():
    text = (
        "  \t# a comment\ndef k(out):\n    out[0] = (1 +\n  \t  2)\n \t\n    \t# another\n    if out[0] > 2:\n"
        "    \tout[1] = \\\n \t4\n    s = '''\n  \t'''\n    out[2] = len(s)\n"
    )
    assert read_by_python(text) == read_by_weft(text) == [3, 4, 4, 0, 0]
