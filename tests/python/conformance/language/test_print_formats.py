"""Random formats of `print`, `format` and `%`, compared with Python's own strings and errors.

`lacks` describes the formats that kernels do not support (docs/language/errors.md lists them). All other formats must
have Python's output, and a format that Python rejects must be rejected.
"""

# ruff: noqa: UP031

import ctypes
import math
import random
import re

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda

LIBC = ctypes.CDLL(None)

INTS = [0, 1, -1, 7, -42, 255, 65, 70000, -123456789, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, -2.75, 1234567.891, -1e-7, 2.5e20, math.inf, -math.inf, math.nan]
TEXTS = ["", "ab", "wörd", "a longer text"]

VALUES = {"i": INTS, "x": FLOATS, "b": [True, False], "s": TEXTS}

COUNT = 700


@pytest.fixture
def printed(capfd):
    def read():
        cuda.synchronize()
        LIBC.fflush(None)
        return capfd.readouterr().out

    read()
    return read


def random_spec(draw):
    """A format by Python's grammar, sometimes with an error."""
    fill = draw.choice(["", "", "", "<", ">", "^", "=", "*<", " >", " <", "0<", ".^", "-=", "0=", "x>"])
    sign = draw.choice(["", "", "", "+", "-", " "])
    alternate = draw.choice(["", "", "", "#"])
    zero = draw.choice(["", "", "0"])
    width = draw.choice(["", "", "1", "5", "8", "12", "30"])
    group = draw.choice(["", "", "", "", ",", "_"])
    precision = draw.choice(["", "", "", ".0", ".1", ".3", ".12"])
    letter = draw.choice("bcdeEfFgGosxX%" + 6 * "d" + 6 * "f" + "\0\0\0\0")
    return fill + sign + alternate + zero + width + group + precision + letter.strip("\0")


def random_percent(draw):
    flags = "".join(draw.choice(["", "", "#", "0", "-", "+", " "]) for _ in range(2))
    width = draw.choice(["", "", "1", "5", "8", "12", "30"])
    precision = draw.choice(["", "", "", ".", ".0", ".1", ".3", ".12"])
    return "%" + flags + width + precision + draw.choice("diuoxXeEfFgGcsr" + 5 * "d" + 5 * "f")


SPEC = re.compile(
    r"((?P<fill>.)?(?P<align>[<>=^]))?[-+ ]?#?(?P<zero>0)?(?P<width>\d+)?(?P<group>[,_])?"
    r"(\.(?P<precision>\d+))?(?P<letter>[a-zA-Z%]?)$"
)
PERCENT = re.compile(r"%(?P<flags>[-#0+ ]*)(?P<width>\d+)?(\.(?P<precision>\d*))?(?P<letter>[a-zA-Z])$")


def lacks(spec, kind, text):
    """Whether kernels do not support a valid Python format: docs/language/errors.md lists these."""
    found = SPEC.match(spec)
    letter, group = found["letter"], found["group"]
    if text and kind in "ix":
        # A precision that truncates a formatted number; the string of a float has six decimals.
        return kind == "x" or found["precision"] is not None
    zero = found["zero"] is not None and found["fill"] is None
    align = found["align"] or ("=" if zero else ">")
    fill = found["fill"] or ("0" if zero else " ")
    if kind != "s" and (kind == "x" or (letter and letter in "eEfFgG%")):
        if not letter or group:
            return True
        width = int(found["width"] or 0)
        sides = (("<", " "), (">", " "), ("=", "0"))
        return width > 0 and ((align, fill) not in sides or (letter == "%" and align == "<"))
    # Zeros after the sign are not grouped.
    return kind in "ib" and group is not None and align == "="


def lacks_percent(spec, kind):
    found = PERCENT.match(spec)
    letter, flags, precision = found["letter"], found["flags"], found["precision"]
    if letter in "sr" and kind in "ix":
        return kind == "x" or precision is not None
    if letter in "oxX" and kind in "ib" and precision is not None:
        prefix = 2 if "#" in flags else 0
        return "0" not in flags or "-" in flags or int(found["width"] or 0) <= int(precision or 0) + prefix
    return letter == "r" and kind == "s" and (found["width"] is not None or precision is not None)


def python_text(make):
    try:
        return make()
    except (ValueError, TypeError, OverflowError) as error:
        return error


def parameters():
    draw = random.Random(5)
    cases = set()
    while len(cases) < COUNT:
        kind = draw.choice("iixxbs")
        if draw.random() < 0.6:
            conversion = draw.choice(["", "", "", "!s"])
            cases.add(("format", kind, conversion, random_spec(draw)))
        else:
            cases.add(("percent", kind, "", random_percent(draw)))
    return sorted(cases)


def expected(case, value):
    way, _, conversion, spec = case
    if way == "percent":
        return python_text(lambda: spec % value)
    return python_text(lambda: f"{{{conversion}:{spec}}}".format(value))


def statement(case):
    way, kind, conversion, spec = case
    name = "s[0]" if kind == "s" else kind
    if way == "percent":
        return f'print("{spec}|" % {name})'
    return f'print("{{{conversion}:{spec}}}|".format({name}))'


def of_cases(cases):
    text = "from weft import cuda\n\n@cuda.jit\ndef k(i, x, b, s):\n    "
    return module(text + "\n    ".join(map(statement, cases)) + "\n").k


def arguments(position):
    chosen = {kind: values[position % len(values)] for kind, values in VALUES.items()}
    return chosen, (chosen["i"], chosen["x"], chosen["b"], np.array([chosen["s"]], "U16"))


def is_lacking(case):
    way, kind, conversion, spec = case
    if way == "percent":
        return lacks_percent(spec, kind)
    if conversion and kind == "x":
        # The string of a float has six decimals.
        return True
    return lacks(spec, kind, bool(conversion))


def test_random_formats(printed):
    kept = []
    for case in parameters():
        texts = [expected(case, value) for value in VALUES[case[1]]]
        good = [text for text in texts if isinstance(text, str)]
        # Formats that Python rejects only for some values are run-time errors: characters, and ints that are not code
        # points.
        if good and not is_lacking(case):
            kept.append(case)
            continue
        if good:
            continue
        with pytest.raises(weft.CompileError):
            of_cases([case])[1, 1](*arguments(0)[1])
    assert len(kept) > COUNT / 3
    for start in range(0, len(kept), 60):
        part = kept[start : start + 60]
        kernel = of_cases(part)
        for position in range(max(map(len, VALUES.values()))):
            chosen, args = arguments(position)
            kernel[1, 1](*args)
            lines = printed().split("|\n")[:-1]
            assert len(lines) == len(part)
            for case, line in zip(part, lines, strict=True):
                wanted = expected(case, chosen[case[1]])
                if isinstance(wanted, str) and not over_int64(case, chosen[case[1]]):
                    assert line == wanted, (case, chosen[case[1]])


def over_int64(case, value):
    """`%d` of a float beyond int64 saturates."""
    return case[1] == "x" and case[3][-1] in "diu" and abs(value) > 2**63


def test_no_letter_is_u_fffd(printed):
    @cuda.jit
    def k(i):
        print(f"{i:c}|", "%c|" % i, f"{i:5c}|")

    for code in (-1, -(2**63), 0xD800, 0xDFFF, 0x110000, 2**40):
        k[1, 1](code)
        assert printed() == "\ufffd| \ufffd|     \ufffd|\n"
    for code in (65, 0xE9, 0xD7FF, 0xE000, 0x10FFFF):
        k[1, 1](code)
        assert printed() == f"{code:c}| {code:c}| {code:5c}|\n"


def test_many_floats_filled_with_zeros_in_one_line(printed):
    count = 40
    text = "from weft import cuda\n\n@cuda.jit\ndef k(x):\n    print(" + ", ".join(
        f'f"{{x[{number}]:+08.2f}}"' for number in range(count)
    )
    values = np.resize(np.array(FLOATS), count)
    module(text + ")\n").k[1, 1](values)
    assert printed() == " ".join(f"{value:+08.2f}" for value in values) + "\n"
