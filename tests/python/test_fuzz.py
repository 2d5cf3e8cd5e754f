"""The parts of `fuzz.py`: a sweep counts results, races are detected, the oracle carries variables and ends threads."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from generators import halves, random_minimize, random_programs
from generators.random_check import EXACT, Inexact, Meaningless, compare, expected, is_sound, typed
from generators.random_integer_limits import FEATURES, LATER, LIBRARY, NUMBERS, OBJECTS, OPERATIONS, VIEWS
from generators.random_programs import Generator, Program, generate
from generators.typed_values import Array
from oracle import bfloat16, numeric

HEAD = "import numpy as np\nfrom weft import cuda\n\n\n@cuda.jit\ndef kernel(o):\n    i = cuda.grid(1)\n"


def program(body):
    types = {"o": Array(np.dtype("int64"), 1)}
    return Program(HEAD + body, types, (1,), (4,), [np.zeros(4, np.int64)], {"r"}, [])


@pytest.mark.parametrize(
    ("body", "sound"),
    [
        ("    o[i] = i\n", True),
        ("    o[0] = i\n", False),
        ("    m = cuda.local.array(2, np.int64)\n    o[i] = m[1]\n", False),
        ("    m = cuda.local.array(2, np.int64)\n    m[1] = i\n    o[i] = m[1]\n", True),
    ],
)
def test_races_and_unwritten_memory_are_seen(body, sound):
    assert is_sound(program(body)) is sound


def test_the_oracle_carries_a_variable_with_its_final_type():
    body = "    for k in range(3):\n        if k == 0:\n            r = i\n        else:\n            r = r / 2\n"
    body += "    o[i] = r * 4\n"
    (out,) = expected(program(body))
    assert "r = np.float64(r)" in typed(program(body))
    assert out.tolist() == [0, 1, 2, 3]


def test_a_variable_without_a_value_is_zero():
    (out,) = expected(program("    for k in range(i):\n        r = k + 5\n    o[i] = r\n"))
    assert out.tolist() == [0, 5, 6, 7]


def test_a_thread_ends_where_an_assertion_fails_in_a_function():
    source = HEAD.replace(
        "@cuda.jit", "@cuda.jit(device=True)\ndef f(x):\n    assert x != 2\n    return x\n\n\n@cuda.jit"
    )
    made = program("    o[i] = f(i) + 1\n")
    made.source = source + "    o[i] = f(i) + 1\n"
    (out,) = expected(made)
    assert out.tolist() == [1, 2, 0, 4]


def test_types_of_a_loop_that_become_less_general_again():
    body = "    a = b = c = np.uint8(1)\n    for k in range(3):\n        a = a + b\n        b = c\n        c = k\n"
    made = program(body + "    o[i] = a\n")
    (out,) = expected(made)
    assert "a = np.int64(a)" in typed(
        made
    )  # not float64, which int64 and the uint64 of the first two iterations unify to
    assert out.tolist() == [3, 3, 3, 3]


def test_what_a_known_condition_leaves_out_has_no_type():
    body = "    r = -2.5 if not 1 else np.uint64(18446744073709551615)\n    o[i] = r - np.uint64(i)\n"
    assert expected(program(body))[0].tolist() == [-1, -2, -3, -4]


WIDE = 2**53 + 1  # not a float64: shows whether a variable was unified with 0.5


@pytest.mark.parametrize(
    ("before", "condition", "known"),
    [
        ("a = 3", "a > 2", True),
        ("a = 9223372036854775804", "(not not a > a) == 0", True),
        ("a = 3", "a != -a < i + 9", False),
        ("a = 5 if i else 5", "a", True),
        ("a = True if i else 1", "a", False),
        ("t = ((1, i), 3)", "t[0][0] and t[1]", True),
        ("t = (1, 2) if i else (1, 3)", "t[1]", False),
        ("a = 3;b = (a := a + 1)", "a == b", True),
        ("a = 9223372036854775807;a += 1", "a < 0", False),
        ("a = 5 ** 2;b = ~(a // 7 % 5) ^ 8", "b == -12 and a >> 1 == 12", True),
        ("a = 5", "min(abs(-a), 7) == np.int64(a)", True),
        ("a = 5", "np.int32(a)", False),
        ("a = 5", "i < 9 or a == 5", True),
        ("a = 5", "i or a == 5", False),
        ("a = 5;b = i < 0 < (a := 6)", "a", False),
        ("a = 5;b = (a := 6) if i else (a := 6)", "a == 6", True),
        ("a = 5", "not (i < a < a)", True),
        ("for k in range(i):;    if k:;        a = 5;a = 5", "a", True),
        ("a = 5;if i > 2:;    a = 6", "a", False),
        ("a = 5;for k in range(i):;    if a == 5:;        a = 5", "a", True),
        ("a = 5;for k in range(i):;    if a == 5:;        a = 6", "a", False),
        ("a = n = 1;while a:;    n += 1;    if n > i:;        break;else:;    a = 0", "a", True),
    ],
)
def test_a_condition_that_is_known_through_variables(before, condition, known):
    body = "".join(f"    {line}\n" for line in before.split(";"))
    body += f"    r = {WIDE} if {condition} else 0.5\n    o[i] = r\n"
    made = program(body)
    out = expected(made)
    assert out[0].tolist() == [WIDE - (not known)] * 4
    compare(made, made.source, out)


def test_an_augmented_assignment_evaluates_the_index_first():
    body = "    m = cuda.local.array(4, np.int64)\n    m[2] = 7\n    v = 0\n    m[(v := 2)] += int(v := 1.0)\n"
    made = program(body + "    o[i] = m[2] + v / 2 * 4\n")
    out = expected(made)
    assert out[0].tolist() == [10, 10, 10, 10]
    with pytest.raises(TypeError, match="index float64"):
        typed(program(body + "    o[i] = m[v]\n"))


def test_no_assertion_is_known_to_fail():
    with pytest.raises(TypeError, match="known to fail"):
        typed(program("    a = 1\n    assert (a := False) != a\n    o[i] = a\n"))


def test_a_step_of_zero_gives_no_turn():
    assert expected(program("    for k in range(i, 9, i - i):\n        o[i] = 5\n"))[0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("body", "exception"),
    [
        ("    o[i] = 36.1 ** (i & 3)\n", Inexact),
        ("    v = 0.1\n    o[i] = v ** 2\n", Inexact),
        ("    m = cuda.local.array(2, np.int64)\n    o[i] = m[np.int32(-1e-20 % 2)]\n", Meaningless),
        ("    m = cuda.local.array(2, np.int64)\n    o[i] = m[np.uint64(i - 2)]\n", Meaningless),
        ("    o[np.uint64(i - 2)] = 3\n", Meaningless),
        ("    v = 1\n    o[i] = 3 if i else (v := 2.5)\n    v = 3\n", Meaningless),
    ],
)
def test_a_program_that_proves_nothing(body, exception, monkeypatch):
    for op, exact in EXACT.items():
        monkeypatch.setitem(numeric._BINARY, op, exact)
    with pytest.raises(exception):
        expected(program(body))


def test_a_small_constant_power_is_exact(monkeypatch):
    for op, exact in EXACT.items():
        monkeypatch.setitem(numeric._BINARY, op, exact)
    assert expected(program("    o[i] = (i + 0.5) ** 2 * 4\n"))[0].tolist() == [1, 9, 25, 49]


def test_no_loop_is_known_to_have_no_turn():
    assert "while n1 < 1 and" in generate(700096, NUMBERS).source  # else the types of its variables would be dropped
    earlier = tuple(name for name in FEATURES if name not in LATER + OPERATIONS + LIBRARY)
    assert "if n7 > 1:\n            " in generate(50974, earlier).source  # else it would have one iteration


def definitions(text):
    made = program("")
    head, _, rest = HEAD.partition("@cuda.jit")
    made.source = f"{head}{text}\n\n@cuda.jit{rest}"
    return made


CHOICE = """from weft import types
from weft.cuda.extending import overload, overload_method, register_jitable

def spread(a, b, c=1):
    return None

@overload(spread)
def choose(a, b, c=1):
    if isinstance(a, types.Integer) and not a == types.uint8:
        def of_it(a, b, c=1):
            return a * c
        return of_it
    def of_it(a, b, c=1):
        return a // c * c
    return of_it

@overload_method(types.Array, "most_of_two")
def choose_method(array, k):
    if isinstance(array.dtype, types.Float):
        def of_it(array, k):
            return k
        return of_it
    def of_it(array, k):
        return max(array[0], array[1], k)
    return of_it
"""

WORDS = """@cuda.intrinsic("int32(int32, int32)", "add.s32 %0, %1, %2;", pure=True)
def added(a, b):
    return a + b
"""

FIB = """@cuda.jit(device=True)
def f(n, x):
    if n < 2:
        return 1
    return x * f(n - 1, x) - f(n - 2, x)
"""


@pytest.mark.parametrize(
    ("text", "body", "wanted"),
    [
        ("", "v = None;if i > 1:;    v = i * 2;o[i] = -1 if v is None else v + 1", [-1, -1, 5, 7]),
        ("", "v = None if i else 0.5;o[i] = 2 if v else 3 if v is None else 4", [2, 3, 3, 3]),
        ("", "v = i if i % 2 else None;o[i] = 8;o[i] = v + 1", [8, 2, 8, 4]),
        ("", "v = None;for k in range(i):;    if v is None or k > v:;        v = k;o[i] = 9 if v == None else v",
         [9, 0, 1, 2]),
        ("", "r = range(i, 7, 2);o[i] = len(r) * 100 + (r[-1] if 5 in r else r.index(4)) + r[1:].count(6)",
         [403, 305, 302, 205]),
        ("", "t = iter((i, 7, i + 1));o[i] = next(t) * 100;for k in t:;    o[i] += k;o[i] += next(t, 5)",
         [13, 114, 215, 316]),
        ("", "m = cuda.local.array(4, np.int8);m[:] = 100;m[1:] += m[:3];m[::2] -= i;o[i] = m[i]",
         [100, -56, 42, -112]),
        ("", "n = i;def g(a):;    nonlocal n;    n += a / 2;    return n * 2;o[i] = n + g(3) + n", [4, 8, 12, 16]),
        (FIB, "o[i] = f(i, 0.5) * 4", [4, 4, -2, -5]),
        (CHOICE, "m = cuda.local.array(2, np.int8);m[0] = 7;m[1] = i;"
         "o[i] = spread(i, 2) * 10 + spread(i / 2, 2) * 2 + m.most_of_two(4)", [7, 17, 29, 39]),
        (WORDS, "o[i] = added(np.int8(i), 2**32 + 5)", [5, 6, 7, 8]),
        ("", "o[i] = cuda.coop.block.exclusive_sum(i + 1)", [0, 1, 3, 6]),
        ("", "a, b = cuda.coop.warp.inclusive_scan(i, lambda a, b: a * 2 + b, threads=2, aggregate=True);"
         "o[i] = a * 10 + b", [1, 11, 27, 77]),
        ("", "o[i] = cuda.coop.block.merge_sort_keys(i * 3 % 4, lambda a, b: a > b)", [3, 2, 1, 0]),
        ("", "m = cuda.local.array(2, np.int8);m[0] = i;m[1] = i + 4;cuda.coop.block.striped_to_blocked(m);"
         "o[i] = m[0] * 10 + m[1]", [1, 23, 45, 67]),
        ("", "v = 0;if i // 2 == 1:;    v = cuda.coop.warp.reduce(i - 9, max, threads=2);o[i] = v", [0, 0, -6, -6]),
    ],
)  # fmt: skip
def test_the_oracle_has_what_came_later(text, body, wanted):
    made = definitions(text)
    made.source += "".join(f"    {line}\n" for line in body.split(";"))
    out = expected(made)
    compare(made, made.source, out)
    assert out[0].tolist() == wanted


@pytest.mark.cpu
def test_a_sweep_counts():
    script = Path(__file__).with_name("fuzz.py")
    command = [sys.executable, str(script), "--count", "3", "--only", "none", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = done.stdout.split("fuzz: ")[-1].split(" in ")[0].split(", ")
    passed, failed, inexact, meaningless, unordered = (int(part.split()[0]) for part in counts)
    assert (passed + inexact + meaningless, failed, unordered) == (3, 0, 0)


def test_bfloat16_is_rounded_once():
    numbers = halves.middles("bfloat16")[::61]
    wanted = halves.rounded("bfloat16", numbers)
    got = np.array([bfloat16.rounded(number) for number in numbers])
    np.testing.assert_array_equal(got, wanted)
    for number in (2**53 + 1, 2**63 - 1, (0x101 << 40) + 1, -((0x101 << 40) + 1), 0x101 << 40, 255, -3):
        exact = (
            (abs(number) >> 40 << 40) | (1 if abs(number) % (1 << 40) else 0) if abs(number) > 1 << 45 else abs(number)
        )
        got = bfloat16.rounded(np.int64(number))
        assert got == np.copysign(halves.rounded("bfloat16", float(exact)), number), number


MARKS = {
    "records": "REC", "vectors": "vw", "objects": "Point(", "enums": "Color.", "nones": "None", "views": "reshape",
    "reductions": "()", "turns": " for k", "nested": "def g", "patterns": "case", "times": "EPOCH",
    "brains": "bfloat16(", "updates": "] ", "axes": "out=", "sums": "hs[i", "iterators": "next(", "recursion": "rc",
    "optional": "mv", "named": ", *, ka", "nonlocals": "nonlocal nl",
    "texts": "to_[i", "stamps": "st[i]", "atomics": "cuda.atomic.", "draws": "cuda.random.", "warps": "_sync(",
    "bits": "cuda.", "faults": "raise ", "collectives": "cuda.coop.",
    "libraries": ".o", "foreign": "= fw",
}  # fmt: skip


@pytest.mark.parametrize("feature", OBJECTS + VIEWS + LATER + OPERATIONS + LIBRARY)
def test_programs_have_the_features_that_they_must_have(feature):
    programs = [generate(seed, (f"+{feature}",)) for seed in range(3)]
    with_it = {"stamps": ["stamps", "times"]}.get(feature, [feature])
    assert all(each.features == with_it for each in programs)
    assert any(MARKS[feature] in each.source.partition("def kernel")[2] for each in programs)
    assert [each.source for each in programs] == [generate(seed, (f"+{feature}",)).source for seed in range(3)]


def test_a_seed_without_the_later_features_stays_the_same_program():
    without = tuple(name for name in FEATURES if name not in OBJECTS + VIEWS + LATER + OPERATIONS + LIBRARY)
    later = {*OBJECTS, *VIEWS, *LATER, *OPERATIONS, *LIBRARY}
    seeds = [seed for seed in range(120) if not set(Generator(seed).chosen) & later]
    assert len(seeds) > 8
    for seed in seeds:
        program = generate(seed)
        assert not set(program.features) & later
        assert program.source == generate(seed, without).source


class Pretended:
    """A fake attempt: fails as long as the program has a `match` statement and stores to a record."""

    def __init__(self, attempt):
        self.text = attempt.source

    def failure(self, timeout):
        try:
            compile(self.text, "<attempt>", "exec")
        except SyntaxError:
            return ""
        return "results differ: 1" if "case 3" in self.text and ".f1 = " in self.text else ""

    def stop(self):
        pass


def test_the_minimizer_keeps_what_fails(monkeypatch, capsys):
    body = """    r = o[i]
    for k in range(3):
        match o[i]:
            case 1:
                o[i] = 5
            case 3 | 4:
                r = np.float64(k + (r if i > 2 else 7))
                o[i].f1 = max(r, 5, i)
            case _:
                r = 6
    if r > 4:
        o[i] = 1
"""
    monkeypatch.setattr(random_minimize, "Attempt", Pretended)
    monkeypatch.setattr(random_programs, "generate", lambda seed, chosen: program(body))
    assert random_minimize.minimize(1, (), 1.0, 3) == 0
    text = capsys.readouterr().out
    lines = [line.strip() for line in text.partition("def kernel")[2].splitlines()[1:] if line.strip()]
    assert lines == ["match o:", "case 3:", "o.f1 = max", "results differ: 1"], text
