"""Launch rules, output rules and effects: their translation, values, checks and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from weft import cuda
from weft._weft import LaunchRule, OutputRule
from weft.cuda._rules import rules_of
from weft.errors import CompileError

BLOCK = 256
SIGNATURE = "void(float32, float32[::1], float32[:,::1], float32[::1], int64)"


def body(a, x, w, out, n):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + w[0, 0] + n


def made(launch=None, out=None):
    return rules_of(cuda.jit(launch=launch, out=out)(body), signature=SIGNATURE)


def two_parts(x, n):
    """A rule as a function."""
    size, threads = x.size, 128
    if n > 4:
        threads = 64
    return (size + threads - 1) // threads, threads, 4 * threads


@pytest.mark.parametrize(
    "rule",
    [
        lambda out: ((out.size + BLOCK - 1) // BLOCK, BLOCK),
        lambda x, w: ((w.shape[0], w.shape[-1], 2), (32, 4)),
        lambda x, n: (min(max(1, x.size // n), 64), 32 if n % 3 == 2 else 64, abs(-n)),
        lambda w: (-(-w.shape[1] // 7) + w.ndim * len(w), 1 << 5),
        lambda n: (n if 0 < n <= 4 or n == 100 else 9, 1 + (not n)),
        two_parts,
    ],
)
@pytest.mark.parametrize("n", [1, 3, 5, 100])
def test_a_rule_computes_what_python_computes(rule, n):
    arrays = {"x": np.zeros(1000), "w": np.zeros((6, 50)), "out": np.zeros(777), "n": n}
    expected = rule(**{name: arrays[name] for name in rule.__code__.co_varnames[: rule.__code__.co_argcount]})
    launch = made(rule).launch
    grid, block, shared = launch.evaluate([None, (1000,), (6, 50), (777,), n])
    padded = [(*part, 1, 1)[:3] if isinstance(part, tuple) else (part, 1, 1) for part in expected[:2]]
    assert [grid, block, shared] == [*padded, expected[2] if len(expected) == 3 else 0]
    assert LaunchRule(str(launch)) == launch == pickle.loads(pickle.dumps(launch))


def test_constants_are_a_rule():
    assert made((7, (16, 8), 64)).launch.evaluate([None] * 5) == ((7, 1, 1), (16, 8, 1), 64)


def test_an_empty_grid_is_no_error():
    assert made(lambda x: (x.size, 32)).launch.evaluate([None, (0,), (1, 1), (0,), 1])[0] == (0, 1, 1)


def test_output_rules():
    rules = made(out=cuda.like("x")).outputs
    assert rules["out"].evaluate([None, (12,), (3, 4), None, 5]) == (12,)
    rules = made(out={"out": cuda.shaped(lambda w, n: (w.shape[0] * n,), dtype=np.float32, fill=0)}).outputs
    assert rules["out"].evaluate([None, (12,), (3, 4), None, 5]) == (15,)
    assert (rules["out"].param, rules["out"].dtype, rules["out"].zeroed) == (3, "float32", True)
    assert OutputRule(str(rules["out"])) == rules["out"] == pickle.loads(pickle.dumps(rules["out"]))


def test_rules_of_the_call_replace_those_of_the_decorator():
    kernel = cuda.jit(launch=(1, 32), out=cuda.like("x"))(body)
    rules = rules_of(kernel, (2, 64), cuda.shaped(lambda n: n), SIGNATURE)
    assert rules.launch.evaluate([None] * 5)[0] == (2, 1, 1)
    assert rules.outputs["out"].evaluate([None, None, None, None, 8]) == (8,)


def test_a_kernel_with_rules_is_launched_and_pickled_as_others():
    kernel = cuda.jit(launch=lambda x: (x.size, 1), out=cuda.like("x"))(body)
    x, w, out = np.ones(5, np.float32), np.ones((1, 1), np.float32), np.zeros(5, np.float32)
    kernel[1, 32](2, x, w, out, 3)
    assert out.tolist() == [6] * 5
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy.targetoptions["launch"] == kernel.targetoptions["launch"]


def test_effects():
    def accumulate(x, sums, last, scale):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(sums, 0, x[i] * scale[0])
            last[i] += 1

    found = cuda.jit(accumulate).effects("void(float32[::1], float32[::1], int32[::1], float32[::1])")
    assert {name: tuple(map(int, effect)) for name, effect in found.items()} == {
        "x": (1, 0, 0),
        "sums": (1, 1, 1),
        "last": (1, 1, 0),
        "scale": (1, 0, 0),
    }


class Callable:
    def __call__(self, x):
        return 1, 1


WRONG = {
    "launch: an unknown parameter": (lambda: made(lambda y: (1, 1)), CompileError, "takes `y`, which is no parameter"),
    "launch: no tuple": (lambda: made(lambda x: x.size), CompileError, "a tuple of a grid and a block"),
    "launch: a float": (lambda: made(lambda x: (x.size / 4, 4)), CompileError, "cannot contain the operator `/`"),
    "launch: a float argument": (
        lambda: made(lambda a: (a, 4)),
        TypeError,
        "uses `a` as an integer, but it is a float32",
    ),
    "launch: size of a number": (
        lambda: made(lambda n: (n.size, 4)),
        TypeError,
        "uses `n` as an array, but it is an int64",
    ),
    "launch: no such dimension": (
        lambda: made(lambda x: (x.shape[1], 4)),
        TypeError,
        "x.shape[1], but `x` has 1 dimension",
    ),
    "launch: a large block": (
        lambda: made(lambda x: (1, 2048)),
        TypeError,
        "blockDim.x is 2048; it must be from 1 to 1024",
    ),
    "launch: a call": (lambda: made(lambda x: (sum(x.shape), 4)), CompileError, "cannot call `sum`"),
    "launch: an element": (lambda: made(lambda x: (x[0], 4)), CompileError, "cannot read elements of `x`"),
    "launch: an attribute": (lambda: made(lambda x: (x.nbytes, 4)), CompileError, "cannot use `.nbytes`"),
    "launch: an array": (lambda: made(lambda x: (np.zeros(3), 4)), CompileError, "cannot call `np.zeros`"),
    "launch: a string": (lambda: made("x.size"), TypeError, "launch must be a function of arguments"),
    "launch: one constant": (lambda: made((3,)), TypeError, "a tuple of a grid and a block"),
    "launch: an object": (lambda: made(Callable()), TypeError, "takes a lambda or a Python function, not Callable"),
    "out: an unknown parameter": (lambda: made(out={"y": cuda.like("x")}), ValueError, "out names `y`"),
    "out: like an unknown one": (lambda: made(out=cuda.like("y")), ValueError, "names `y`, which is no parameter"),
    "out: not written": (lambda: made(out={"x": cuda.like("out")}), TypeError, "the kernel does not write `x`"),
    "out: dimensions": (lambda: made(out=cuda.like("w")), TypeError, "has 2 extents, but the kernel takes 1"),
    "out: dtype": (
        lambda: made(out=cuda.like("x", dtype=np.int8)),
        TypeError,
        "the dtype int8, but the kernel takes float32",
    ),
    "out: no rule": (lambda: made(out="x"), TypeError, "out must be a rule such as cuda.like('x')"),
    "out: fill": (lambda: cuda.like("x", fill=1), ValueError, "fill must be 0"),
    "out: like an array": (lambda: cuda.like(np.zeros(3)), TypeError, "takes the name of a parameter"),
    "out: no function": (lambda: cuda.shaped((3, 4)), TypeError, "takes a function of arguments"),
    "out: its own shape": (
        lambda: made(out=cuda.shaped(lambda out: out.size)),
        TypeError,
        "uses `out`, which is an output",
    ),
    "out: a negative extent": (
        lambda: (
            made(out=cuda.shaped(lambda n: n - 9))
            .outputs["out"]
            .evaluate([None, None, None, None, 1], ["a", "x", "w", "out"])
        ),
        ValueError,
        "the extent -8 of dimension 0 of `out` is negative",
    ),
    "evaluate: a division": (
        lambda: made(lambda x, n: (x.size // n, 1)).launch.evaluate([None, (3,), None, None, 0]),
        ValueError,
        "a division by zero",
    ),
    "evaluate: too large": (
        lambda: made(lambda n: ((1, n), 1)).launch.evaluate([None, None, None, None, 1 << 20]),
        ValueError,
        "gridDim.y is 1048576",
    ),
    "effects: no signature": (lambda: cuda.jit(body).effects(), TypeError, "parameter `a` has no annotation"),
    "text": (lambda: LaunchRule("(launch)"), ValueError, "is not a rule"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_say_what_to_write(case):
    use, error, message = WRONG[case]
    with pytest.raises(error) as raised:
        use()
    assert message in str(raised.value)


def test_an_output_that_is_read_starts_with_zeros():
    def add(x, out):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(out, 0, x[i])

    signature = "void(float32[::1], float32[::1])"
    with pytest.raises(TypeError, match="accumulates into `out`, which starts uninitialized: write fill=0"):
        rules_of(cuda.jit(add), out=cuda.shaped(lambda: 1), signature=signature)
    assert rules_of(cuda.jit(add), out=cuda.shaped(lambda: 1, fill=0), signature=signature).outputs["out"].zeroed


def test_the_parameter_of_an_output_is_named_if_there_are_several():
    def both(x, a, b):
        i = cuda.grid(1)
        if i < x.size:
            a[i] = b[i] = x[i]

    signature = "void(float32[::1], float32[::1], float32[::1])"
    with pytest.raises(TypeError, match=r'writes `a`, `b`: name the parameter of the output, as in out=\{"a": …\}'):
        rules_of(cuda.jit(both), out=cuda.like("x"), signature=signature)
    assert list(rules_of(cuda.jit(both), out={"b": cuda.like("x")}, signature=signature).outputs) == ["b"]
