"""Ranges near the limits of their integer type have the right trip count."""

import os

import numpy as np
import pytest
from harness import launch, module

PRELUDE = "import numpy as np\nfrom weft import cuda\n"
MOST = 5

COUNT = """
@cuda.jit
def kernel(out{params}):
    iterations = 0
    for i in range({args}):
        if iterations < 5:
            out[iterations] = i
        iterations += 1
        if iterations == 8:
            break
    else:
        out[6] = 1
    out[5] = iterations
"""


def expected(start, stop, step, dtype):
    iterations = range(start, stop, step)
    out = np.zeros(MOST + 2, dtype)
    out[: min(len(iterations[:9]), MOST)] = list(iterations[:MOST])
    out[MOST] = min(len(iterations[:9]), 8)
    out[MOST + 1] = len(iterations[:9]) < 8
    return out


def cases(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for step in (1, 2, 3, 7, most // 2, most // 2 + 1, most - 1, most):
        for start, stop in [(5, most), (most - 3, most), (0, most), (most - 2 * step, most), (most - step, most - 1),
                            (least, most), (most, most), (most, least), (most - step, most - step + 1),
                            (least, least + step + 1)]:  # fmt: skip
            if least <= start <= most and least <= stop <= most:
                yield start, stop, step
                if least < 0:
                    yield -1 - start, -1 - stop, -step
    if least < 0:
        yield from [(5, 9, least), (9, 5, least), (most, least, least), (-1, least, least), (0, least, least),
                    (most, least, least + 1), (0, 5, 0)]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_bounds_and_steps_known_at_launch(dtype):
    kernel = module(PRELUDE + COUNT.format(params=", a, b, s", args="a, b, s")).kernel
    for start, stop, step in cases(dtype):
        out = np.zeros(MOST + 2, dtype)
        got = launch(kernel, 1, 1, out, dtype(start), dtype(stop), dtype(step))[0]
        want = expected(start, stop, step, dtype) if step else np.array([0] * (MOST + 1) + [1])
        np.testing.assert_array_equal(got, want, err_msg=f"range({start}, {stop}, {step})")


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_constant_steps(dtype):
    for step in sorted({step for _, _, step in cases(dtype) if step}):
        if dtype == np.uint64 and step >= 2**63:
            continue  # an int literal is an int64
        text = f"np.{np.dtype(dtype).name}({step})"
        kernel = module(PRELUDE + COUNT.format(params=", a, b", args=f"a, b, {text}")).kernel
        for start, stop in {(start, stop) for start, stop, other in cases(dtype) if other == step}:
            got = launch(kernel, 1, 1, np.zeros(MOST + 2, dtype), dtype(start), dtype(stop))[0]
            want = expected(start, stop, step, dtype)
            np.testing.assert_array_equal(got, want, err_msg=f"range({start}, {stop}, {step})")


FAR = """
@cuda.jit
def kernel(x, out, start, stop):
    total = 0
    for i in range(start, stop, {step}):
        total = total * 3 + x[i & 3]
    out[0] = total
    k = start
    while k {sign} stop:
        out[1] = out[1] * 3 + x[k & 3]
        k += {step}
"""


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_steps_so_long_that_several_at_once_wrap(dtype):
    most = np.iinfo(dtype).max
    x = np.array([3, 5, 7, 11])
    for step in (most - 5, most // 2, most // 3 + 7, most // 5, most // 9, most // 17, most // 40):
        for sign in (1, -1):
            text = FAR.format(step=f"np.{np.dtype(dtype).name}({sign * step})", sign="<" if sign > 0 else ">")
            kernel = module(PRELUDE + text).kernel
            for start, stop in [
                (-most, most - step),
                (-most + 7, -most + 9),
                (-9, 3),
                (-step - 3, min(step, most - step) - 2),
                (0, 0),
            ]:
                want = 0
                for i in range(start, stop, step):
                    want = want * 3 + int(x[sign * i & 3])
                got = launch(kernel, 1, 1, x, np.zeros(2, np.int64), dtype(sign * start), dtype(sign * stop))[1]
                want = (want + 2**63) % 2**64 - 2**63
                np.testing.assert_array_equal(got, [want, want], err_msg=f"{sign} * range({start}, {stop}, {step})")


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (0, 2**63 - 1, 2**62), (5, 2**63 - 1, 2**63 - 1), (2**63 - 4, 2**63 - 1, 2), (-(2**63), 2**63 - 1, 2**62),
        (0, -(2**63), -(2**62)), (-(2**63) + 3, -(2**63), -2), (10, 3, 2), (0, 9, 4), (-1, -9, -4),
    ],
)  # fmt: skip
def test_all_constant(start, stop, step):
    # The smallest integer is not a literal: it is the negation of a number that is too large.
    args = ", ".join(f"({value + 1} - 1)" if value == -(2**63) else str(value) for value in (start, stop, step))
    kernel = module(PRELUDE + COUNT.format(params="", args=args)).kernel
    got = launch(kernel, 1, 1, np.zeros(MOST + 2, np.int64))[0]
    np.testing.assert_array_equal(got, expected(start, stop, step, np.int64))


SUM = """
@cuda.jit
def kernel(x, out, first, stop, step):
    t = cuda.threadIdx.x
    total = 0
    for i in range({start}, stop, {step}):
        total += x[i - first] + (i - first)
    out[t] = total
"""


@pytest.mark.parametrize("step", ["step", "4", "cuda.blockDim.x * 1"])
@pytest.mark.parametrize("start", ["first + t", "max(first, 0) + t"])
@pytest.mark.parametrize("room", [0, 1, 3, 4, 1028, 2**20, 2**62])
def test_strided_reads(start, step, room):
    if room < 1028 and os.environ["WEFT_DEVICE"] == "cpu":
        pytest.skip("docs/language.md: the CPU may leave out iterations this close to the end")
    stop = 2**63 - 1 - room
    x = np.arange(40, dtype=np.int64)
    kernel = module(PRELUDE + SUM.format(start=start, step=step)).kernel
    for length in (0, 1, 4, 15, 16, 17, 40) if room > 2 else (4, 15, 16, 17, 40):
        out = launch(kernel, 1, 4, x, np.zeros(4, np.int64), stop - length, stop, 4)[1]
        np.testing.assert_array_equal(out, [2 * sum(range(t, length, 4)) for t in range(4)])


BARRIER = """
@cuda.jit
def kernel(out, first, stop, step):
    shared = cuda.shared.array(4, np.int64)
    t = cuda.threadIdx.x
    for i in range(first, stop, step):
        shared[t] = i - first
        cuda.syncthreads()
        out[t] += shared[3 - t] + 1
        cuda.syncthreads()
"""


def test_barriers_in_the_loop():
    kernel = module(PRELUDE + BARRIER).kernel
    most = 2**63 - 1
    for first, stop, step in [(most - 5, most, 3), (5, most, most), (-most + 4, -most - 1, -3), (0, 10, 5)]:
        out = launch(kernel, 1, 4, np.zeros(4, np.int64), first, stop, step)[0]
        assert out.tolist() == [sum(i - first + 1 for i in range(first, stop, step))] * 4
