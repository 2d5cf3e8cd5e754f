"""Strings: arrays of characters, constants of `str` and `bytes`, strings chosen at run time, and arguments."""

import enum

import numpy as np
import pytest
import weft
from harness import like_python, module
from weft import cuda

WIDE = np.array(["ab", "abcd", "", "b", "bé", "aa\U0001f600", "abc"], "U4")
NARROW = np.array([b"ab", b"abcd", b"", b"b", b"b\xe9", b"a\0b", b"abc"], "S4")


def of_kind(kind, text):
    """A kernel whose literals are `str` or `bytes`."""
    return module(
        f"""
        from weft import cuda

        @cuda.jit
        {text.replace("L'", "'" if kind == "U" else "b'")}
        """
    ).k


def arrays(kind):
    return WIDE if kind == "U" else NARROW


@pytest.mark.parametrize("kind", "US")
def test_comparisons(kind):
    k = of_kind(
        kind,
        """def k(x, y, out):
            for i in range(x.size):
                for j in range(y.size):
                    a, b = x[i], y[j]
                    out[i, j] = (
                        (a == b) + 2 * (a != b) + 4 * (a < b) + 8 * (a <= b) + 16 * (x[i] > y[j]) + 32 * (x[i] >= y[j])
                    )
                out[i, 7] = (x[i] == L'ab') + 2 * (L'b' != x[i]) + 4 * (x[i] < L'abc') + 8 * (L'abc' <= x[i])
                out[i, 8] = (x[i] == L'') + 2 * (x[i] > L'') + 4 * (x[i] == L'abcdef') + 8 * (x[i] < L'abcdef')
                out[i, 9] = x[i] in (L'ab', L'abcd')
        """,
    )
    x = arrays(kind)
    like_python(k, x, x[::-1].copy(), np.zeros((7, 10), np.int64))
    # Other lengths, and views.
    like_python(k, x, x[::-1].astype(f"{kind}7"), np.zeros((7, 10), np.int64))
    like_python(k, np.repeat(x, 2)[::2], x[::-1], np.zeros((7, 10), np.int64))


@pytest.mark.parametrize("kind", "US")
def test_letters(kind):
    k = of_kind(
        kind,
        """def k(x, n, out):
            for i in range(x.size):
                out[i, 0] = len(x[i])
                if x[i]:
                    out[i, 1] = 1
                out[i, 2] = not x[i]
                out[i, 3] = L'b' in x[i]
                out[i, 4] = L'bc' in x[i] or x[0] in x[i]
                out[i, 5] = x[i] not in x[1]
                for j, letter in enumerate(x[i]):
                    out[i, 6] += j
                    if letter == x[i][j]:
                        out[i, 7] += 1
            out[0, 8] = x[1][2] == x[1][-2]
            out[1, 8] = x[1][n] == L'c'[0]
            out[2, 8] = x[1][n] == x[1][n - 1]
            out[3, 8] = x[1][1:3] == L'bc'
            out[4, 8] = x[1][:2] == x[0]
            out[5, 8] = x[0][1:] < x[1][1:]
            out[6, 8] = len(x[0][:3])
        """,
    )
    x = arrays(kind)
    like_python(k, x, 2, np.zeros((7, 9), np.int64))


def test_letters_are_numbers_or_texts():
    @cuda.jit
    def k(x, y, out):
        out[0] = x[1][2] - x[1][3] + 98 * (98 in x[1])
        for b in x[1]:
            out[1] = out[1] * 256 + b
        out[2] = ord(y[4][1])
        for letter in y[5]:
            out[3] = out[3] * 7 + ord(letter)
        out[4] = ord(y[5][2]) if len(y[5]) > 2 else -1
        out[5] = 255 in x[1]

    like_python(k, NARROW, WIDE, np.zeros(6, np.int64))


@pytest.mark.parametrize("kind", "US")
def test_stores(kind):
    k = of_kind(
        kind,
        """def k(x, y, z, n):
            x[0] = L'xyz'
            x[1] = L'too long'
            x[2] = x[0]
            x[3] = y[1]
            y[0] = x[1]
            y[2:4] = L'fill'
            y[-2:] = (L'p', x[0])
            x[4] = y[1][1:3]
            x[5] = L''
            z.name = L'all'
            z[1].name = x[0]
            z['name'][2] = L'12345'
            z[0] = (L'first', 7)
        """,
    )
    x = arrays(kind).copy()
    records = np.zeros(4, [("name", f"{kind}3"), ("n", "i4")])
    mine = x.copy(), x.astype(f"{kind}7"), records.copy(), 1
    theirs = x.copy(), x.astype(f"{kind}7"), records.copy().view(np.recarray), 1
    k[1, 1](*mine)
    k.py_func(*theirs)
    for got, expected in zip(mine[:3], theirs[:3], strict=True):
        assert got.tolist() == expected.tolist()


def test_ascii_is_both():
    @cuda.jit
    def k(x, y):
        x[0] = "abc"
        y[0] = "abc"
        y[1] = b"abc"
        x[1] = b"xy"

    x, y = np.zeros(2, "S4"), np.zeros(2, "U4")
    k[1, 1](x, y)
    assert x.tolist() == [b"abc", b"xy"]
    assert y.tolist() == ["abc", "abc"]


@pytest.mark.parametrize("kind", "US")
def test_a_variable_has_its_own(kind):
    k = of_kind(
        kind,
        """def k(x, n, out):
            first, other = x[0], x[1]
            x[0] = L'new'
            out[0] = first == L'ab'
            for i in range(n):
                first, other = other, first
                x[1] = first
            out[1] = first == L'abcd'
            out[2] = other == L'ab'
            last = x[3]
            before = last
            for i in range(x.size):
                before = last
                last = x[i]
                out[3] = out[3] * 3 + (last == before) + 2 * (last > before)
        """,
    )
    for n in (1, 2, 3, 6):
        like_python(k, arrays(kind)[:5].copy(), n, np.zeros(4, np.int64))


@cuda.jit
def known(n, out):
    s = "abcdé"
    b = b"abc\xff"
    out[0] = len(s) * 10 + len(b)
    out[1] = s[1] == "b"
    out[2] = b[1] + b[-1]
    out[3] = s[1:3] == "bc"
    out[4] = b[::-1] == b"\xffcba"
    out[5] = ("cd" in s) + 2 * ("x" in s) + 4 * (b"bc" in b) + 8 * (255 in b) + 16 * (7 in b)
    out[6] = (s < "abd") + 2 * (b >= b"abc") + 4 * ("a" == "b") + 8 * (s[n] == "c")
    out[7] = b[n] * 1000 + b[n - 3]
    out[8] = ord(s[0]) + ord(s[n]) + ord("é") + ord(b"a")
    out[9] = (s + "f" == "abcdéf") + 2 * (b"ab" * 2 == b"abab")
    for c in s:
        out[10] += ord(c)
    for i, c in enumerate(b):
        out[11] += i * c
    t = tuple(s)
    out[12] = len(t) + (t[4] == "é")
    out[13] = bool("") + 2 * bool("x") + 4 * bool(b"") + 8 * (not b"x")
    out[14] = isinstance(s, str) + 2 * isinstance(b, bytes) + 4 * isinstance(s, bytes)
    out[15] = sum(b"abc") + max(b"abc")
    match s:
        case "x":
            out[16] = 1
        case "abcdé":
            out[16] = 2


def test_known_texts():
    like_python(known, 2, np.zeros(17, np.int64))


@cuda.jit
def chosen(n, x, out):
    mode = "add" if n > 1 else "multiply"
    out[0] = mode == "add"
    out[1] = len(mode)
    if n == 3:
        mode = "none"
    elif n == 4:
        mode = x[1]
    out[2] = mode < "b"
    out[3] = (mode == "none") + 2 * (mode == "abcd")
    x[0] = mode
    word = ""
    for i in range(n):
        word = x[i]
        if word == "b":
            break
    out[4] = len(word)
    out[5] = ord(mode[n - 1])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_texts_chosen_at_run_time(n):
    like_python(chosen, n, WIDE.copy(), np.zeros(6, np.int64))


def test_a_variable_that_no_path_gave_a_text_is_empty():
    @cuda.jit
    def k(x, n, out):
        if n > 0:
            s = x[0]
        for i in range(n):
            word = "one" if i == 1 else x[1]
            both = (word, i)
        out[0] = len(s) * 10 + (s == "ab")
        out[1] = len(word) * 10 + (word == "one")
        out[2] = len(both[0])

    for n, expected in ((0, [0, 0, 0]), (1, [21, 40, 4]), (2, [21, 31, 3])):
        out = np.ones(3, np.int64)
        k[1, 1](WIDE, n, out)
        assert out.tolist() == expected


def test_texts_that_functions_return():
    @cuda.jit(device=True)
    def element(x, n):
        return x[n]

    @cuda.jit(device=True)
    def own(x, n):
        s = x[n]
        return s

    @cuda.jit(device=True)
    def either(n):
        if n > 0:
            return "more"
        return "none"

    @cuda.jit
    def good(x, out):
        a, b = element(x, 0), element(x, 1)
        x[0] = "new"
        out[0] = (a == "ab") + 2 * (b == "abcd") + 4 * (element(x, 0) == "new")

    @cuda.jit
    def bad(x, out):
        out[0] = own(x, 0) == "ab"

    @cuda.jit
    def chooses(x, out):
        out[0] = len(either(out[0]))

    out = np.zeros(1, np.int64)
    good[1, 1](WIDE.copy(), out)
    assert out[0] == 7
    for kernel in (bad, chooses):
        with pytest.raises(weft.CompileError, match="in its own local memory"):
            kernel[1, 1](WIDE, out)


@cuda.jit
def passed(mode, tag, x, out):
    out[0] = (mode == "fast") + 2 * (mode == x[0]) + 4 * ("as" in mode)
    out[1] = len(mode)
    out[2] = (tag == b"id") + 2 * len(tag)
    for i in range(x.size):
        if x[i] == mode:
            x[i] = "found"
    x[0] = mode


@pytest.mark.parametrize("mode", ["fast", "", "abcd", "é", np.str_("slow")])
@pytest.mark.parametrize("tag", [b"id", b"", np.bytes_(b"other")])
def test_texts_are_arguments(mode, tag):
    like_python(passed, mode, tag, WIDE.copy(), np.zeros(3, np.int64))


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


@cuda.jit
def member(c, out):
    out[0] = c == Color.RED
    out[1] = c is Color.GREEN
    out[2] = len(c.value)
    out[3] = c.value == "green"
    out[4] = Color.RED.value < c.value
    out[5] = Color["GREEN"] == c


@pytest.mark.parametrize("color", Color)
def test_enums_of_texts(color):
    like_python(member, color, np.zeros(6, np.int64))


def test_defaults_and_device_functions():
    @cuda.jit(device=True)
    def count(text, letter):
        n = 0
        for each in text:
            if each == letter:
                n += 1
        return n

    @cuda.jit
    def k(x, out, mode="sum"):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = count(x[i], "b") if mode == "sum" else count(x[i], mode[0])

    out = np.zeros(7, np.int64)
    k[1, 32](WIDE, out)
    assert out.tolist() == [text.count("b") for text in WIDE]
    k[1, 32](WIDE, out, mode="ax")
    assert out.tolist() == [text.count("a") for text in WIDE]


def test_device_arrays_shared_and_constant_memory():
    table, five = np.array(["zero", "one", "two"]), weft.types.UnicodeCharSeq(5)

    @cuda.jit
    def k(numbers, names):
        shared = cuda.shared.array(4, five)
        i = cuda.threadIdx.x
        shared[i] = table[numbers[i]]
        cuda.syncthreads()
        names[i] = shared[3 - i]

    names = cuda.to_device(np.zeros(4, "U5"))
    k[1, 4](np.array([0, 2, 1, 2]), names)
    assert names.copy_to_host().tolist() == ["two", "one", "two", "zero"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[0] = x[0] < b'ab'", "cannot compare"),
        ("out[0] = x[0] + 'b' == 'b'", "does not take"),
        ("x[0] = 3", "cannot be stored"),
        ("x[0] = y[0]", "cannot be stored"),
        ("x[0][1] = 'b'", "cannot be indexed"),
        ("out[0] = x[0][n:] == 'a'", "takes constant bounds"),
        ("out[0] = 'abc'[5] == 'a'", "out of range"),
        ("out[0] = 3 in x[0]", "cannot search for|`in` takes"),
        ("out[0] = ord('ab')", "one character"),
        ("s = x[0] if n else b'a'\n            out[0] = len(s)", "E0203"),
    ],
)
def test_refusals(body, message):
    kernel = module(
        f"""
        from weft import cuda

        @cuda.jit
        def k(x, y, n, out):
            {body}
        """
    ).k
    with pytest.raises(weft.CompileError, match=message):
        kernel[1, 1](WIDE.copy(), NARROW.copy(), 1, np.zeros(1))


@cuda.jit
def repeated(out):
    s, t = "ab", (1, 2)
    out[0] = len(3 * s) * 10 + (2 * s == "abab")
    out[1] = len(2 * b"xyz" * True) * 10 + len("ab" * -3)
    out[2] = (3 * t)[5] + (t * True)[1] + len(0 * t) + len(False * s)
    out[3] = len("ab" * 100000)
    s *= 2
    out[4] = s == "abab"


def test_texts_and_tuples_are_repeated_from_either_side():
    like_python(repeated, np.zeros(5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("len('ab' * 1000000)", "a string of 2000000 characters: .* 1048576"),
        ("len(1000000 * b'abc')", "a string of 3000000 characters: .* 1048576"),
        ("len('ab' * n)", "the number of repetitions of a string must be a compile-time constant"),
        ("len(n * (1, 2))", "the number of repetitions of a tuple must be a compile-time constant"),
        ("len('ab' * 2.5)", "`\\*` does not take str and float64"),
        ("len((1, 2) * 100000)", "a tuple of more than 10000 values"),
    ],
)
def test_repetitions_that_are_refused(text, message):
    scope = {}
    source = f"def kernel(out, n):\n    out[0] = {text}\n"
    exec(source, scope)
    with pytest.raises(weft.CompileError, match=message):
        cuda.jit(scope["kernel"])[1, 1](np.zeros(1), 3)
