"""`typing="numpy"`: Python numbers, which are weakly typed, in all positions. CPython and NumPy run the same source and
compute the expected result."""

import warnings

import numpy as np
import pytest
from weft import CompileError, cuda, types

SIZE = 6


def several(a):
    if 0 <= a < 2:
        return a > 0
    return a + 1


def either(a, b):
    return a if 1 < a < 9 else b


def both(body, columns=8):
    """Compare the contents of `out` after a body with CPython's; both have the weak ints `n` and `k`."""
    lines = ["n = 3", "for k in range(2):", "    n += k", *body.strip().splitlines()]
    text = "def f(i, x, out):\n" + "".join(f"    {line}\n" for line in lines)
    x = np.arange(SIZE, dtype=np.int32)
    wanted, found = (np.zeros((2, columns)) for _ in range(2))
    space = {"np": np, "cuda": cuda, "several": several, "either": either}
    exec(text, space)
    with warnings.catch_warnings():
        # Python 3.12 warns of `~` of bools.
        warnings.simplefilter("ignore", DeprecationWarning)
        for thread in range(2):
            space["f"](np.int64(thread), x, wanted[thread])
    kernel = "def k(x, out):\n    i = cuda.grid(1)\n    f(i, x, out[i])\n"
    exec(kernel, space)
    space["f"] = cuda.jit(device=True, source=text)(space["f"])
    space |= {"several": cuda.jit(device=True)(several), "either": cuda.jit(device=True)(either)}
    cuda.jit(typing="numpy", source=kernel)(space["k"])[1, 2](x, found)
    np.testing.assert_array_equal(found, wanted, text)


CHAINS = [
    "0 <= n < 2",
    "0 <= x.size + 4 < 2",
    "0 <= k < n < x[5] < 9",
    "0 <= k - 2 < x.size",
    "-1 < k <= x.shape[0] - 1",
    "len(x) > n >= 0",
    "0 <= n < x[0]",
    "x[0] <= n < 2",
    "1 < 2 < n < 3",
    "n > 2 > k",
    "0.5 < n < 2.5",
    "n < 4 in (4, 5)",
    "k < n == True",
    "not 0 <= n < 2",
    "0 <= n < 2 or 5 < n < 9",
    "0 <= n < 9 and 5 < n < 9",
    "n >= 0 and n < 2",
    "k in range(n) and n in range(2)",
    "k is n is k",
]


@pytest.mark.parametrize("test", CHAINS)
def test_chains_of_comparisons(test):
    both(f"""
out[0] = 1 if {test} else 2
if {test}:
    out[1] = 1
out[2] = {test}
m = 0
while m < 3 and {test}:
    m += 1
out[3] = m
assert ({test}) == bool({test})
out[4] = 5
flag = {test}
out[5] = flag + flag
out[6] = ({test}) + True
""")


@pytest.mark.parametrize("shift", [-9, -1, 0, 3, 9])
def test_a_guard_keeps_reads_within_bounds(shift):
    both(f"""
for j in range(x.size):
    if 0 <= j + {shift} < x.size:
        out[0] += x[j + {shift}]
    if not (0 <= j + {shift} < x.size):
        out[1] += 1
    out[2] += x[j + {shift}] if -1 < j + {shift} < len(x) else -5
""")


VALUES = {
    "count bools": """
out[0] = (n > 1) + (n > 2)
out[1] = (k in (1, 2)) + (n in (n, 7))
out[2] = ((n, k) == (4, 1)) + True
""",
    "order of tuples": """
out[0] = ((n, k) < (4, 2)) + ((x[1], n) >= (1, 2))
out[1] = ((n, 1) != (n, 2)) + True
""",
    "ranges": """
out[0] = (range(n) == range(4)) + True
out[1] = (n in range(k, 9)) + True
out[2] = len(range(n)) / 3
""",
    "any and all": """
out[0] = any((n > 9, k)) + True
out[1] = all((n, k)) + all((k, n))
out[2] = any((n > 9, k > 9)) + 1
""",
    "identity": """
out[0] = (n is None) + True
out[1] = (k is not None) + True
""",
    "and, or": """
out[0] = (n and k) + 1
out[1] = (k > 5 or n) + 1
out[2] = ((n > 1) and (k > 0)) + True
out[3] = (n > 1 or x[1]) + True
""",
    "and, or with a literal": """
out[0] = ~((x[k - 1] > 0) and False)
out[1] = ~((x[k] > 0) or True)
out[2] = ~((n > 1) and False)
b = (x[k] > 5) and False
out[3] = ~b
out[4] = 5 if b else 7
""",
    "not": """
out[0] = (not n) + (not k > 3)
out[1] = -(not k > 3)
""",
    "abs": """
out[0] = abs(n > 2) * 100 * 100
out[1] = abs(k - n) / 2
out[2] = abs(-(n > 2)) + True
b = abs(n > 2)
for j in range(9):
    b = b + b
out[3] = b
""",
    "round": """
out[0] = round(n / 3) / 2
out[1] = round(n) / 8
""",
    "item": """
out[0] = x[3].item() / 2
out[1] = np.float32(0.1) * x[3].item()
out[2] = x[3:4].item() + True
""",
    "index and count": """
out[0] = np.int8(100) + (n, k, n).count(n)
out[1] = np.int8(100) + (k, n).index(n)
out[2] = np.int8(100) + range(3, 9).index(n)
""",
    "min and max": """
out[0] = np.int8(100) + max(range(n))
out[1] = min(n, k, 3) / 2
out[2] = np.int8(100) + sum(range(n))
""",
    "slices": """
y = x[k:n]
out[0] = y[0]
out[1] = y.size
y = x[n::-k]
out[2] = y[k]
out[3:5] = n
out[5:7] += k
""",
    "tuple items": """
t = (5, 7, 9, 11, 13)
out[0] = t[n] + t[-k]
a, b = n, k
a, b = b, a
out[1] = a * 10 + b
""",
    "loops": """
for j in range(k, n, k):
    out[0] += j
for j in (n, k, 5):
    out[1] += j / 2
for j, v in enumerate((n, k)):
    out[2] += j * v
""",
    "match": """
match n:
    case 3 | 5:
        out[0] = 1
    case 4 if k > 0:
        out[0] = 2
    case _:
        out[0] = 3
""",
    "walrus": """
if (m := n - 2) > k and (m := m + 5) < 9:
    out[0] = m / 2
out[1] = m
""",
    "ufuncs": """
out[0] = np.add(n, k) / 3
out[1] = np.minimum(x[5], n)
out[2] = np.logical_and(n, k) + np.logical_or(k, n)
""",
    "functions": """
out[0] = several(n) / 2
out[1] = several(k) + True
out[2] = either(n, x[1])
out[3] = either(k, x[1])
""",
    "divmod": """
q, r = divmod(n, k + 2)
out[0] = q * 10 + r
out[1] = np.float32(0.1) * pow(n, 2)
""",
}


@pytest.mark.parametrize("what", VALUES)
def test_weak_values(what):
    both(VALUES[what])


@cuda.jit(typing="numpy")
def vectors(rows, out):
    v = rows.view(cuda.float32x2)
    n = 3
    for k in range(2):
        n += k
    v[1, 0] = n
    w = v[0, 0] * n + k
    v[2, 0] = w
    v[3] = w
    out[0] = w.x


def test_vectors():
    v, out = np.ones((4, 2), np.float32), np.zeros(1)
    vectors[1, 1](v, out)
    assert v[1:].tolist() == [[4, 4], [5, 5], [5, 5]]
    assert out[0] == 5


@cuda.jit(typing="numpy", exceptions=True)
def raises(x):
    if x[0] > 0:
        raise ValueError(1.5, (2, 0.25), True)


def test_exceptions_are_made_of_weak_floats():
    raises[1, 1](np.zeros(1))
    with pytest.raises(ValueError, match=r"1.5") as caught:
        raises[1, 1](np.ones(1))
    assert caught.value.args[:3] == (1.5, (2, 0.25), True)


def test_a_step_that_is_zero_is_an_error():
    @cuda.jit(typing="numpy")
    def kernel(out):
        for k in range(0, 9, int(False)):
            out[0] += k

    with pytest.raises(CompileError, match="step of a range must not be zero"):
        kernel[1, 1](np.zeros(1))


def test_registers_of_inline_ptx_take_them():
    @cuda.jit(typing="numpy")
    def kernel(out):
        for k in range(3):
            out[0] += cuda.inline_ptx("add.s64 %1, %0, %0;", "l", k, "=l", np.int64)
            out[1] += cuda.inline_ptx("add.f64 %1, %0, %0;", "d", k / 2, "=d", np.float64)

    ptx, _ = cuda.compile_ptx(kernel, (types.float64[::1],), cc=(8, 0))
    assert "add.s64" in ptx
    assert "add.f64" in ptx
