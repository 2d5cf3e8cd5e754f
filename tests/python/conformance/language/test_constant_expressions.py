"""Constant expressions of literals are folded as by CPython's compiler: exactly, and typed by the value."""

import math
import random

import numpy as np
import pytest
from harness import launch, module
from oracle.constants import compiled
from weft import CompileError, cuda

COUNT = 120
DTYPES = {"ints": np.int64, "words": np.uint64, "floats": np.float64, "complexes": np.complex128, "truths": np.bool_}
OPERATORS = "+ - * / // % ** ** << >> & | ^".split()
INTEGERS = [2**63, 2**64 - 1, 2**31, 2**53 + 1, 10**19, 10**20, 0xFFFF, 0x9E3779B97F4A7C15]
FLOATS = [0.5, 0.1, 3.7, 1e300, 1e-300, 0.0, 2.0, 1e16, 0.3333, 1e-320]
HEAD = "import numpy as np\nfrom weft import cuda\n"


def literal(draw):
    kind = draw.random()
    if kind < 0.45:
        return str(draw.randint(0, 12))
    if kind < 0.55:
        return draw.choice((str, hex))(draw.choice(INTEGERS))
    if kind < 0.8:
        return draw.choice([*map(repr, FLOATS), "1e999"])
    return draw.choice(["1j", "2.5j", "0j", "1e999j"]) if kind < 0.9 else draw.choice(["True", "False"])


def expression(draw, depth):
    if depth <= 0:
        return literal(draw)
    kind = draw.random()
    if kind < 0.7:
        left, right = (expression(draw, depth - 1 - draw.randint(0, 1)) for _ in range(2))
        return f"({left} {draw.choice(OPERATORS)} {right})"
    if kind < 0.9:
        return f"({draw.choice(['-', '-', '+', '~', 'not '])}{expression(draw, depth - 1)})"
    return f"({expression(draw, depth - 2)}, {expression(draw, depth - 2)})[{draw.choice(['0', '1', '-1'])}]"


def expressions(seed):
    """Expressions that CPython folds to numbers that kernels support, and the numbers."""
    draw, found = random.Random(seed), {}
    while len(found) < COUNT:
        text = expression(draw, draw.randint(1, 4))
        constant = compiled(text)
        if constant is None or not isinstance(constant[0], (bool, int, float, complex)):
            continue
        if not isinstance(constant[0], int) or -(2**64) <= constant[0] < 2**64:
            found[text] = constant[0]
    return found


def kind(value):
    """The Python type of a constant, and the dtype of its Numba type."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "int", "ints" if -(2**63) <= value < 2**63 else "words"
    return type(value).__name__, {bool: "truths", float: "floats", complex: "complexes"}[type(value)]


def same(value, found):
    """Whether a kernel's number equals Python's, including the signs of zeros; all NaNs are equal."""
    if isinstance(value, complex):
        return same(value.real, found.real) and same(value.imag, found.imag)
    if isinstance(value, float):
        return (math.isnan(value) and math.isnan(found)) or np.float64(value).tobytes() == np.float64(found).tobytes()
    return int(found) == (value % 2**64 if value < -(2**63) else int(value))


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_of_literals(seed):
    values = expressions(seed)
    held = {name: np.zeros(COUNT, dtype) for name, dtype in DTYPES.items()}
    lines = [f"@cuda.jit\ndef kernel({', '.join(held)}, typed):"]
    for at, (text, value) in enumerate(values.items()):
        python, name = kind(value)
        lines += [f"    {name}[{at}] = {text}", f"    typed[{at}] = isinstance({text}, {python})"]
    *outs, typed = launch(
        module(HEAD + "\n".join(lines) + "\n").kernel, 1, 1, *held.values(), np.zeros(COUNT, np.bool_)
    )
    found = dict(zip(held, outs, strict=True))
    wrong = [
        (text, value, found[kind(value)[1]][at], typed[at])
        for at, (text, value) in enumerate(values.items())
        if not (same(value, found[kind(value)[1]][at]) and typed[at])
    ]
    assert wrong == []


def test_expressions_that_programs_write():
    @cuda.jit
    def kernel(f, m, n, c):
        f[0] = 2**-4
        f[1] = 10**-3 * 5
        f[2] = 1 - 2**-53
        f[3] = 1 << 63
        f[4] = 10**25 / 1e20
        f[5] = 1 / 3 if 10**-6 > 0 else 0.0
        f[6] = -0.0
        f[7] = -1e999
        f[8] = 1e999 - 1e999
        m[0] = (1 << 64) - 1
        m[1] = 2**64 - 1
        m[2] = m[3] & ((1 << 64) - 1)
        m[4] = m[3] & ~0x8000000000000000
        n[0] = len("ab" * 3 + "c")
        n[1] = ((1, 2) * 2 + (5,))[4] * 10**20 // 10**19
        n[2] = b"abc"[-1] + (not ()) + (not "x")
        n[3] = ~True
        n[4] = -(2**63)
        c[0] = (-8) ** (1 / 3)
        c[1] = 2 + 3j
        c[2] = -0j

    m = np.zeros(5, np.uint64)
    m[3] = 2**63 + 12345
    f, m, n, c = launch(kernel, 1, 1, np.ones(9), m, np.zeros(5, np.int64), np.ones(3, complex))
    assert f[:6].tolist() == [2**-4, 10**-3 * 5, 1 - 2**-53, 2.0**63, 10**25 / 1e20, 1 / 3]
    assert math.copysign(1, f[6]) == -1
    assert f[7] == -math.inf
    assert math.isnan(f[8])
    assert m.tolist() == [2**64 - 1, 2**64 - 1, 2**63 + 12345, 2**63 + 12345, 12345]
    assert n.tolist() == [7, 50, 100, -2, -(2**63)]
    assert repr(c.tolist()) == repr([(-8) ** (1 / 3), 2 + 3j, -0j])


MASK, INVERTED = (1 << 64) - 1, ~0x8000000000000000


def test_defaults_globals_and_inner_functions():
    @cuda.jit
    def scaled(x, by=2**-4, mask=(1 << 64) - 1):
        return x * by if mask == MASK else 0.0

    @cuda.jit
    def kernel(f, m, start=10**25 / 10**24):
        def inner(x, by=2**-3):
            return x * by

        f[0] = scaled(3)
        f[1] = inner(3)
        f[2] = (lambda by=2**-2: by)()
        f[3] = start
        m[0] = m[0] & INVERTED

    f, m = launch(kernel, 1, 1, np.zeros(4), np.full(1, 2**63 + 5, np.uint64))
    assert f.tolist() == [3 / 16, 3 / 8, 1 / 4, 10.0]
    assert m.tolist() == [5]


def test_a_function_without_text_has_the_constants_of_its_code():
    scope = {}
    exec("def kernel(f, m):\n    f[0] = 2**-4\n    m[0] = (1 << 64) - 1\n    m[1] = (1, 10**20 // 7)[1]\n", scope)
    f, m = launch(cuda.jit(scope["kernel"]), 1, 1, np.zeros(1), np.zeros(2, np.uint64))
    assert f.tolist() == [2**-4]
    assert m.tolist() == [2**64 - 1, 10**20 // 7]


def test_variables_keep_the_types_of_numba():
    @cuda.jit
    def kernel(n, f):
        one, most = 1, 18446744073709551615
        n[0] = (one << 64) - 1  # shift counts are modulo 64
        n[1] = most + one
        n[2] = 5 // n[3]
        n[4] = 5 % 0
        f[0] = 5 / 0

    n, f = launch(kernel, 1, 1, np.zeros(5, np.int64), np.zeros(1))
    assert n.tolist() == [0, 0, 0, 0, 0]
    assert f.tolist() == [math.inf]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10**25", "10000000000000000000000000 does not fit 64 bits"),
        ("x[0] + (2**64 + 1)", "18446744073709551617 does not fit 64 bits"),
        ("-(2**64) - 1", "-18446744073709551617 does not fit 64 bits"),
        ("10**20 > 5", "100000000000000000000 does not fit 64 bits"),
        ("2**65", "`**` of these integers does not fit 64 bits"),
        ("1 << 129 >> 120", "`<<` of these integers does not fit 64 bits"),
        ("(1 << 70) * (1 << 70) / 1e30", "`*` of these integers does not fit 64 bits"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(text, said):
    source = f"{HEAD}@cuda.jit\ndef kernel(x):\n    x[0] = 1\n    x[0] = {text}\n"
    with pytest.raises(CompileError) as caught:
        launch(module(source).kernel, 1, 1, np.zeros(1))
    assert said in str(caught.value)
    assert ".py:6:" in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "for i in range(0, 5, 0): n[0] = i",
        "for i in range(0, 5, False): n[0] = i",
        "for i in range(5, 0, np.int32(0)): n[0] = i",
        "for i in range(0, 5, 1 // 2): n[0] = i",
        "for i in range(0, 5, ZERO): n[0] = i",
        "n[0] = len(range(0, 5, 0))",
        "n[0] = len(range(9)[::0])",
        "n[0] = len(n[::0])",
        "n[0] = len(n[1:3:zero])",
        "n[0] = len(n[::np.uint8(0)])",
        "n[0] = len(n[slice(0, 3, 0)])",
        "n[::0] = 1",
        "n[::ZERO] += 1",
        "n.reshape(2, 2)[0, ::0] = 1",
        "n[0] = len((1, 2, 3)[::0])",
        "n[0] = len('abc'[::0])",
    ],
)
def test_a_constant_step_of_zero_is_named_with_its_line(line):
    source = f"{HEAD}ZERO = 0\n@cuda.jit\ndef kernel(n):\n    zero = 0\n    {line}\n"
    with pytest.raises(CompileError, match=r"the step of a (range|slice) must not be zero") as caught:
        launch(module(source).kernel, 1, 1, np.zeros(4, np.int64))
    assert ".py:7:" in str(caught.value)


def test_a_step_that_turns_out_to_be_zero_selects_nothing():
    @cuda.jit
    def kernel(n, step):
        for _ in range(0, 5, step):
            n[0] += 1
        n[1] = len(n[::step])
        n[::step] = 7
        n[2] += len(range(0, 5, step))

    (n, _) = launch(kernel, 1, 1, np.zeros(4, np.int64), 0)
    assert n.tolist() == [0, 0, 0, 0]
