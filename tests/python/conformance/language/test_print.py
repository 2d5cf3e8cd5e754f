"""`print` in kernels: the output of the process after a wait for the device."""

# ruff: noqa: UP031

import ctypes
import dataclasses
import enum
from collections import namedtuple

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda

LIBC = ctypes.CDLL(None)
Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass
class Point:
    x: float
    y: int


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


@pytest.fixture
def printed(capfd):
    """The output of the process since the last call."""

    def read():
        cuda.synchronize()
        LIBC.fflush(None)
        return capfd.readouterr().out

    read()
    return read


def test_numbers_and_texts(printed):
    @cuda.jit
    def k(a, b, c, flag):
        print(a, b, c, flag, True, None, "100% %d", -7, 2.5)
        print()
        print("no end", end="")
        print("", 1, "", sep="-", end="|\n")
        print(1, sep=None, end=None, file=None, flush=True)

    k[1, 1](np.int8(-3), np.uint64(2**64 - 1), np.float32(0.5), False)
    assert printed() == ("-3 18446744073709551615 0.500000 False True None 100% %d -7 2.500000\n\nno end-1-|\n1\n")


def test_each_number_type(printed):
    @cuda.jit
    def k(x):
        print(x[0], x[1])

    for number in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        info = np.iinfo(number)
        k[1, 1](np.array([info.min, info.max], number))
        assert printed() == f"{info.min} {info.max}\n", number
    for number in ("f2", "f4", "f8"):
        k[1, 1](np.array([-1.25, 1024], number))
        assert printed() == "-1.250000 1024.000000\n", number
    k[1, 1](np.array([1 + 2j, -0.5j], "c8"))
    assert printed() == "(1.000000+2.000000j) (-0.000000-0.500000j)\n"
    k[1, 1](np.array([True, False]))
    assert printed() == "True False\n"


def test_bfloat16(printed):
    @cuda.jit
    def k():
        a = weft.bfloat16(0.9375)
        print(a, a)

    k[1, 1]()
    assert printed() == "0.937500 0.937500\n"


def test_special_floats(printed):
    @cuda.jit
    def k(x):
        print(x[0], x[1], -x[0], x[2], x[0] * np.float64(0), f"{x[0]:8.1f}")

    k[1, 1](np.array([np.nan, np.inf, -np.inf]))
    assert printed() == "nan inf nan -inf nan      nan\n"


def test_tuples_and_objects(printed):
    @cuda.jit
    def k(t, pair, point, level, record, x):
        print(t, (x[0],), ("a'b", "c"), ())
        print(pair, point, level)
        print(record, cuda.blockDim, cuda.float32x2(x[0], 3))
        print(range(x[0]), range(1, 9, 2))

    record = np.array([(1, 2.5, (3, 4))], dtype=[("a", "i4"), ("b", "f8"), ("c", [("d", "i2"), ("e", "i2")])])[0]
    k[1, (2, 1, 1)]((1, ((2, 4), 3.0)), Pair(1, 2.5), Point(0.5, 2), Level.HIGH, record, np.array([5, 6]))
    line = (
        "(1, ((2, 4), 3.000000)) (5,) (\"a'b\", 'c') ()\n"
        "Pair(x=1, y=2.500000) Point(x=0.500000, y=2) 7\n"
        "(1, 2.500000, (3, 4)) (2, 1, 1) (5.000000, 3.000000)\n"
        "range(0, 5) range(1, 9, 2)\n"
    )
    assert sorted(printed().splitlines()) == sorted(line.splitlines() * 2)


def test_texts_in_arrays(printed):
    @cuda.jit
    def k(wide, narrow):
        for i in range(wide.size):
            print(wide[i], narrow[i], (wide[i],), f"{wide[i]:>6}|{wide[i]:*^7}|{wide[i]:.1}|")
        chosen = "yes" if narrow.size > 1 else "no"
        print(chosen, b"a\x00'")

    k[1, 1](np.array(["añ😀", "", "xy"]), np.array([b"a'\xff", b"", b"\n"]))
    assert printed() == (
        "añ😀 b'a\\'\\xff' ('añ😀',)    añ😀|**añ😀**|a|\n"
        " b'' ('',)       |*******||\n"
        "xy b'\\n' ('xy',)     xy|**xy***|x|\n"
        "yes b'a\\x00\\''\n"
    )


INT_FORMATS = [
    "", "d", "5", "5d", "<5", ">5", "^6", "=5", "05", "+", "+5d", " d", "x", "X", "o", "b", "#x", "#X", "#o", "#b",
    "08x", "#010b", "*^9", "->8d", "x<6", "_>+7d", ",", "_", "+,d", "12,", "_x", "_b", "0=7", "<07", "064b",
]  # fmt: skip
FLOAT_FORMATS = [
    ".2f",
    "8.3f",
    "<9.1f",
    ">9.1f",
    "+.0f",
    " f",
    "010.2f",
    "e",
    ".3e",
    "E",
    "g",
    ".3g",
    "G",
    ".1%",
    "9.1%",
]
TEXT_FORMATS = ["", "s", "5", ">5", "<5", "^5", "*^6", ".2", ">4.1", "-<5s"]


def formats(parameters, values):
    """A kernel that prints each value in each format, and Python's output."""
    lines = [f'print(f"{{{name}:{spec}}}|", "{{:{spec}}}".format({name}))' for name, spec in parameters]
    text = "from weft import cuda\n\n@cuda.jit\ndef k({}):\n    {}\n"
    return module(text.format(", ".join(values), "\n    ".join(lines))).k


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16", "uint64"])
def test_formats_of_integers(printed, dtype):
    k = formats([("x", spec) for spec in INT_FORMATS], ["x"])
    info = np.iinfo(dtype)
    for value in (0, 1, info.min, info.max, 97, info.max // 1000):
        k[1, 1](np.dtype(dtype).type(value))
        expected = "".join(f"{value:{spec}}| {value:{spec}}\n" for spec in INT_FORMATS)
        assert printed() == expected


def test_formats_of_floats(printed):
    k = formats([("x", spec) for spec in FLOAT_FORMATS], ["x"])
    for value in (0.0, -1.5, 1234567.891, 1e-7, 2.5e20, -0.0):
        k[1, 1](value)
        expected = "".join(f"{value:{spec}}| {value:{spec}}\n" for spec in FLOAT_FORMATS)
        assert printed() == expected


def test_formats_of_texts(printed):
    k = formats([(name, spec) for spec in TEXT_FORMATS for name in ("x[0]", "'abc'")], ["x"])
    k[1, 1](np.array(["wörd"]))
    expected = "".join(f"{value:{spec}}| {value:{spec}}\n" for spec in TEXT_FORMATS for value in ("wörd", "abc"))
    assert printed() == expected


def test_formatted_texts_are_values(printed):
    @cuda.jit(device=True)
    def named(name, x):
        return f"{name}={x:3d}"

    @cuda.jit
    def k(x, width):
        i = 2
        text = f"{i=} {{}} {x[0]!r:>4} {'a'!r} {x[0]:{5}}"
        x[0] = 9
        print(text)
        print("<" + named("x", x[0]) + ">", "%%%s %r" % ("a", "b"))
        print("{1} {0} {k} {0!s:>4}".format(x[0], 2, k=True))
        print("%5d|%-5d|%05d|%+d|%x|%X|%o|%c|%5s|%-5s|%.2f|%s" % (7, 7, 7, 7, 255, 255, 8, 65, "a", x[0], 1.5, 1.5))
        print("%d" % 3.9, "%i %u" % (1, 2))

    k[1, 1](np.array([7]), 5)
    assert printed() == (
        "i=2 {}    7 'a'     7\n<x=  9> %a 'b'\n2 9 True    9\n"
        "    7|7    |00007|+7|ff|FF|10|A|    a|9    |1.50|1.500000\n3 1 2\n"
    )


def test_values_that_may_be_none(printed):
    @cuda.jit(device=True)
    def some(i):
        if i % 2:
            return i
        return None

    @cuda.jit
    def k(n):
        for i in range(n):
            print(some(i), some(i + 1), f"{some(i)}")

    k[1, 1](2)
    assert printed() == "None 1 None\n1 None 1\n"


def test_lines_are_whole(printed):
    @cuda.jit
    def k():
        i = cuda.grid(1)
        print("thread", i, "of", cuda.gridsize(1), (i, i * 0.5), f"{i:>8}")

    k[64, 128]()
    expected = [f"thread {i} of 8192 ({i}, {i * 0.5:f}) {i:>8}" for i in range(8192)]
    assert sorted(printed().splitlines()) == sorted(expected)


def test_order_of_evaluation_and_divergence(printed):
    @cuda.jit(device=True)
    def bump(x):
        x[0] += 1
        return x[0]

    @cuda.jit
    def k(x, out):
        i = cuda.threadIdx.x
        if i == 3:
            print(x[0], bump(x), x[0], bump(x))
        cuda.syncthreads()
        if i == 4:
            print("behind", x[0])
        out[i] = x[0]

    out = np.zeros(8, np.int64)
    k[1, 8](np.array([1]), out)
    assert printed() == "1 2 2 3\nbehind 3\n"
    assert (out == 3).all()


def test_more_values_than_vprintf_takes(printed):
    @cuda.jit
    def k(x):
        print(
            x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15],
            x[16], x[17], x[18], x[19], x[20], x[21], x[22], x[23], x[24], x[25], x[26], x[27], x[28], x[29], x[30],
            x[31], x[32], "%", x[33], x[34],
        )  # fmt: skip

    k[1, 1](np.arange(35))
    numbers = [str(i) for i in range(35)]
    assert printed() == " ".join([*numbers[:33], "%", *numbers[33:]]) + "\n"


def test_a_kernel_that_prints_computes(printed):
    @cuda.jit
    def k(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] * 2
            if x[i] < 0:
                print("negative:", i)

    x = np.arange(-1, 999)
    out = np.zeros_like(x)
    k[8, 128](x, out)
    assert printed() == "negative: 0\n"
    assert (out == x * 2).all()


def test_zero_bytes(printed):
    @cuda.jit
    def k(x):
        print("a\0b", x, "\0")

    k[1, 1](1)
    assert printed() == "a\0b 1 \0\n"
