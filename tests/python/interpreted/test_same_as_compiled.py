"""Kernels have the same results in Python's interpreter and compiled, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu

HERE = Path(__file__).resolve().parent
HEAD = """
import array, ctypes, math, mmap, sys
import numpy as np
import weft
from weft import cuda
"""
# Each kernel stores its results in `x`.
PROGRAMS = {
    "truths": """
        @cuda.jit
        def kernel(b, n, x):
            s = cuda.local.array(1, np.bool_)
            s[0] = True
            x[0] = ~b[0]
            x[1] = ~(n > 1)
            x[2] = ~s[0]
            if ~b[0]:
                x[3] = 1
            x[4] = b[0] // b[1]
            x[5] = b[0] % b[1]
            x[6] = -b[0]
            b[1] += n > 1
            b[2] |= b[0]
            x[7] = ~(not b[0]) + ~(n in (1, 2)) + ~(n is 2)

        x, b = np.zeros(8), np.array([True, False, False])
        kernel[1, 1](b, 3, x)
        x = np.concatenate([x, b])
        """,
    "functions of classes and objects": """
        class Tools:
            scale = np.int32(3)
            table = np.array([1, 2, 3], np.int32)

            @staticmethod
            @cuda.jit(device=True)
            def double(v):
                return v * 2

        class Box:
            pass

        box = Box()
        box.inner = Box()
        box.inner.f = Tools.double

        @cuda.jit
        def kernel(x):
            x[0] = Tools.double(21)
            x[1] = box.inner.f(2.5)
            x[2] = Tools.scale * Tools.scale ** 20
            x[3] = Tools.table[1] - Tools.table[2] // 2

        x = np.zeros(4)
        kernel[1, 1](x)
        """,
    "names of classes": """
        class Maker:
            __factor = 3

            def kernel(self):
                __own = 2

                @cuda.jit
                def kernel(x):
                    __local = 5 * __own
                    x[0] = __local // Maker._Maker__factor

                return kernel

        x = np.zeros(1)
        Maker().kernel()[1, 1](x)
        """,
    "buffers": """
        @cuda.jit
        def kernel(given, x, at):
            for i in range(given.size):
                x[at, i] = given[i] * 2 - 1

        memory = mmap.mmap(-1, 4)
        memory[:4] = bytes(range(4))
        given = [
            memoryview(b"abc"), bytearray(b"xyz"), array.array("d", [1.5, 2.5]), array.array("i", [1, -2]), memory,
            (ctypes.c_int16 * 3)(1, 2, -3), memoryview(array.array("f", [1.5, 2])), memoryview(np.arange(3) / 3),
        ]
        x = np.zeros((len(given), 4))
        for at, each in enumerate(given):
            kernel[1, 1](each, x, at)

        @cuda.jit
        def write(target):
            target[0] += 3
            target[1] = 7.9

        target = array.array("h", [1, 2])
        write[1, 1](target)
        x = np.append(x, target)
        """,
    "what values have where paths meet": """
        @cuda.jit(device=True)
        def larger(a, b):
            if a > b:
                return a
            return b

        @cuda.jit(device=True)
        def pair(a, b):
            return (a, b) if a else (b, a)

        @cuda.jit
        def kernel(n, u, f, x):
            x[0] = min(n, 2.5) * 10**17 + 1 - min(n, 2.5) * 10**17
            x[1] = (n if n > 1 else 2.5) * 10**17 + 1 - n * 10**17
            x[2] = max(n, u[0]) % 3 * 10**17 + 1 - 2 * 10**17
            x[3] = larger(n, f[0]) * 10**17 + 1 - n * 10**17 + larger(n, 1) // 2
            y = 1
            for i in range(4):
                y = y + f[0] if i == n else y
                y /= 3
            x[4] = y
            z = None
            if n > 1:
                z = 7
            x[5] = 0 if z is None else z // 2
            a, b = pair(n, f[0])
            x[6] = a * 10**17 + 1 - n * 10**17
            k = np.int8(127)
            while k > 0:
                k = k + 1 if k < 200 else -1
            x[7] = k
            v = n
            if f[0] > 1:
                v = 0.5
            x[9] = v * 10**17 + 1 - n * 10**17
            w = f[0]
            w += n and 1
            w *= n or 0.5
            x[8] = w - 0.1

        x = np.zeros(10)
        kernel[1, 1](2, np.array([1], np.uint64), np.array([0.1], np.float32), x)
        """,
    "inner functions with several types": """
        @cuda.jit(device=True)
        def of(a, pair, by=2):
            a = a if a > pair[0] else pair[1]
            return a // by

        @cuda.jit
        def kernel(n, f, x):
            def mixed(a, b):
                for k in range(3):
                    a = b if k == 1 else a
                    b = b + 1
                return a * 10**17 + 1 - b * 10**17

            x[0] = mixed(n, n)
            x[1] = mixed(n, 1.5)
            x[2] = mixed(a=np.int8(n), b=f[0])
            x[3] = of(n, (1, 2)) * 10**17 + 1
            x[4] = of(pair=(n, 0.1), a=n) - 0.1
            x[5] = of(f[0], pair=(f[0], n), by=f[0])
            x[6] = (-1383505805528216371199999999999999999994) // 10**20
            x[7] = (b"0123"[2] - -499999999999999999952) // 10**20
            x[8] = ~0xFFFFFFFF00000001 + n

        x = np.zeros(9)
        kernel[1, 1](2, np.array([0.25], np.float32), x)
        """,
    "functions of modules": """
        import enum, operator

        Level = enum.IntEnum("Level", {"LOW": 1, "HIGH": 2})
        Other = enum.IntEnum("Other", {"LOW": 1})

        @cuda.jit
        def kernel(n, u, f, x):
            x[0] = operator.floordiv(u[0], u[1]) + operator.invert(n > 1) + operator.iadd(n, 2.5)
            x[1] = operator.lt(2**53 + 1, float(2**53) + f[0]) + operator.is_(n, 2.0)
            x[2] = np.sin(f[0]) + np.add(u[0], u[0]) + np.minimum(n, 2.5)
            x[3] = sum(u, 0.5) + max(f) - min(u)
            x[4] = (n, 2.0, f[0]).index(f[0]) + (1, 1.0, n).count(1) + (n, 5).index(9)
            x[5] = (Level.LOW is Other.LOW) + 2 * (Level.LOW is Level.LOW) + 4 * (Level.LOW == n)
            x[6] = (type(f[0]) is float) + 2 * (type(n) is int) + 4 * isinstance(n > 1, bool)
            x[7] = math.isclose(f[0], 0.3, rel_tol=0.5) + 2 * math.isclose(f[0], 0.3, abs_tol=0.01)

        x = np.zeros(8)
        kernel[1, 1](2, np.array([200, 0], np.uint8), np.array([0.25, 1.5], np.float32), x)
        """,
    "views that are updated": """
        @cuda.jit
        def kernel(i8, u16, f32, c, x):
            i8[1:] *= 1.5
            i8[::2] += (1, 300)
            u16[:, 1:] //= u16[:, :2]
            f32[:] = i8
            f32 /= 3
            f32[1:] -= f32[:-1]
            c[::-1] *= c
            c **= 2
            c[0] **= 3

        i8, u16 = np.array([100, -100, 7, 90], np.int8), np.arange(1, 9).reshape(2, 4)[:, :3].astype(np.uint16)
        f32, c = np.zeros(4, np.float32), np.array([1 + 2j, 0.5j])
        kernel[1, 1](i8, u16, f32, c, np.zeros(1))
        x = np.concatenate([i8, u16.ravel(), f32, c])
        """,
    "typing of NumPy": """
        @cuda.jit(device=True)
        def blend(a, b):
            return (a + 3 * b) // 4

        @cuda.jit(device=True, typing="numba")
        def wide(a):
            return a * a

        @cuda.jit(device=True, typing="numpy")
        def narrow(a, k):
            return a * k

        @cuda.jit(typing="numpy")
        def kernel(u8, f32, b, x):
            total = 0
            for i in range(u8.size):
                total += u8[i] * i
            x[0] = total
            x[1] = blend(u8[0], u8[1])
            x[2] = f32[0] * 0.5 + f32[0] / u8.size + 0.1
            x[3] = b[0] + b[0]
            x[4] = (u8.size > 1) + (u8.size > 2)
            x[5] = wide(u8[0])
            x[6] = ~b[0] + ~(u8[0] > 3)
            x[7] = u8[0] << 4
            x[8] = min(u8[0], 3) - 4
            x[9] = (u8[0] if u8.size > 1 else 1) * 2
            u8[1:] *= 3
            x[10] = round(f32[0], 1) + int(f32[0]) * f32[0]

        @cuda.jit
        def outer(u8, x):
            x[11] = narrow(u8[0], 3)

        x, u8 = np.zeros(12), np.array([200, 100, 90], np.uint8)
        kernel[1, 1](u8, np.array([1.7], np.float32), np.array([True, False]), x)
        outer[1, 1](u8, x)
        x = np.concatenate([x, u8])
        """,
}


def run(*command: object, device: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, command)],
        env=os.environ | {"WEFT_DEVICE": device},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, tmp_path):
    import textwrap

    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[name]) + "\nprint(x.dtype, x.tobytes().hex(), x.tolist())\n")
    assert run(path, device="python") == run(path, device="cpu")


@pytest.mark.parametrize(("typing", "first"), [("numba", 0), ("numpy", 5)])
def test_expressions_of_all_types(typing, first, tmp_path):
    """Operators, Python functions, conditions and variables, for pairs of all types."""
    found = {}
    for device in ("cpu", "python"):
        path = tmp_path / device
        run(HERE / "every_expression.py", path, typing, first, 25, device=device)
        found[device] = path.read_text().splitlines()
    assert len(found["cpu"]) > 3000
    pairs = zip(found["python"], found["cpu"], strict=True)
    assert [(mine, theirs) for mine, theirs in pairs if mine != theirs] == []


def test_random_programs():
    """`fuzz.py` runs more."""
    out = run(HERE.parent / "fuzz.py", "--device", "python", "--count", 40, "--jobs", 2, device="python")
    passed = int(out.rpartition("fuzz: ")[2].partition(" passed")[0])
    assert passed > 25, out
