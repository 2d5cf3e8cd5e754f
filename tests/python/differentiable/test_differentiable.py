"""Random differentiable kernels for fixed seeds, and what the check finds. `python tests/python/differentiable` runs
very many."""

import dataclasses

import pytest
from combined.sweep import sweep

from differentiable import check
from differentiable.programs import FEATURES, LATER, generate
from differentiable.sweep import work

# What statements of a feature contain.
MARKS = {
    "tuples": " = (", "local": "cuda.local.array", "place": "z[i", "update": "z[i", "views": " = y[i",
    "complex": "cout[i]", "gather": "index[i]", "phases": "tid = ", "stencil": "x[max(i - 1, 0)]", "extremes": "peak",
    "nested": "for t",
}  # fmt: skip
WRONG = """from weft import cuda


def backward(u, r, g):
    return 2.001 * g


@cuda.custom_vjp(backward=backward)
def twice(u):
    return 2.0 * u


@cuda.jit
def program(a, x, w, out, total):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = twice(x[i])
"""


@pytest.mark.cpu
def test_random_kernels(monkeypatch):
    # All together: 15 s.
    for name, value in {"WEFT_CACHE": "off", "WEFT_HOST_OPT_LEVEL": "0", "WEFT_CPU_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    results = []
    sweep(range(16), jobs=1, device="cpu", timeout=60.0, report=results.append, body=work)
    outcomes = {result.seed: result.outcome for result in results}
    assert {seed: text for seed, text in outcomes.items() if text.split(":")[0] not in ("passed", "refused")} == {}
    assert sum(text == "passed" for text in outcomes.values()) > 8


def test_a_wrong_gradient_is_found():
    plain = dataclasses.replace(generate(1), source=WRONG, params=("a", "x", "w", "out", "total"))
    plain = dataclasses.replace(plain, grid=2, block=32, shared=0)
    assert check.run(plain).startswith("wrong: the adjoint kernel has")
    assert check.run(dataclasses.replace(plain, source=WRONG.replace("2.001", "2.0"))) == "passed"


def test_a_kernel_that_is_not_smooth_proves_nothing():
    source = WRONG.replace("twice(x[i])", "float(x[i] * 1e6 % 2.0 > 1.0)")
    plain = dataclasses.replace(generate(1), source=source, params=("a", "x", "w", "out", "total"), grid=2, block=32)
    assert check.run(dataclasses.replace(plain, shared=0)) == "unresolved: not smooth"


@pytest.mark.parametrize("feature", FEATURES + LATER)
def test_programs_have_the_features(feature):
    assert any(MARKS[feature] in generate(seed).source for seed in range(60))
