"""Loops with divergent exits combined with loops along each thread's own row, with the plans of all CPUs.

If the number of threads is no multiple of the vector length, the inactive lanes must not keep a loop alive or access
memory. The kernels run in separate processes, because a process chooses its plan once, and so that an infinite loop
fails the test.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from host_memory import AtTheEnd
from weft import _weft, cuda

PLANS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
MOST, COLUMNS = 130, 45

# The loops with exits and the loops along rows. All names are variables of the kernel.
EXITS = {
    "while": """
    v = i + 1
    while v != 1:
        v = v // 2 if v % 2 == 0 else 3 * v + 1
        count += 1
""",
    "range": """
    for j in range(lengths[i]):
        count += x[j]
""",
    "break": """
    for j in range(x.shape[0]):
        if x[j] > lengths[i]:
            break
        count += x[j]
""",
    "halves": """
    left = x[1] * lengths[i] + i
    while left > 1.0:
        left = left * 0.5
        count += 1
""",
}
ROWS = {
    "sum": """
    for k in range(a.shape[1]):
        total += a[i, k]
""",
    "stored": """
    for k in range(a.shape[1]):
        total += a[i, k]
        b[i, k] = total
""",
    "triangle": """
    for k in range(i % 40):
        total += a[i, k]
""",
    "neighbors": """
    for k in range(a.shape[1]):
        total += a[i, k] * c[k, i]
""",
}
KERNEL = """
def kernel(a, b, c, x, lengths, counts, sums, n):
    i = cuda.grid(1)
    if i >= n:
        return
    count = 0
    total = 0.0
{first}{second}
    counts[i] = count
    sums[i] = total
"""


def kernel_of(exits: str, rows: str, row_first: bool) -> tuple[object, object]:
    """The Python function and its kernel."""
    parts = (
        {"first": ROWS[rows], "second": EXITS[exits]} if row_first else {"first": EXITS[exits], "second": ROWS[rows]}
    )
    source = KERNEL.format(**parts)
    path = Path(os.environ["WEFT_TEST_FOLDER"]) / f"{exits}_{rows}_{row_first}.py"
    path.write_text(source, encoding="utf-8")
    names = {"cuda": cuda}
    exec(compile(source, str(path), "exec"), names)
    return names["kernel"], cuda.jit(names["kernel"])


class Alone:
    """Replaces `cuda` for one thread of a kernel that runs as a Python function."""

    def __init__(self, number: int) -> None:
        self.number = number

    def grid(self, _: int) -> int:
        return self.number


def expected(function, arguments: list, n: int) -> list:
    """The arguments after Python has run all threads one after the other."""
    arguments = [np.array(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    for number in range(n):
        function.__globals__["cuda"] = Alone(number)
        function(*arguments)
    function.__globals__["cuda"] = cuda
    return arguments


def check(plan: str) -> None:
    """Runs all pairs of loops for all numbers of threads, with all arrays directly before inaccessible memory."""
    columns, rng = np.arange(COLUMNS * 1.0), np.random.default_rng(1)
    for number, (exits, rows) in enumerate((exits, rows) for exits in EXITS for rows in ROWS):
        function, kernel = kernel_of(exits, rows, number % 2 == 1)
        a = rng.integers(-4, 5, (MOST, COLUMNS)).astype(np.float32)
        c = rng.integers(-4, 5, (COLUMNS, MOST)).astype(np.float32)
        lengths = rng.integers(0, COLUMNS, MOST).astype(np.int32)
        b, counts, sums = np.zeros_like(a), np.zeros(MOST), np.zeros(MOST)
        after = expected(function, [a, b, c, columns, lengths, counts, sums, MOST], MOST)
        for n in range(1, MOST + 1):
            ours = [a[:n], b[:n], np.ascontiguousarray(c[:, :n]), columns, lengths[:n], counts[:n], sums[:n]]
            held = [AtTheEnd(array) for array in ours]
            kernel[-(-n // 64), 64](*held, n)
            for name, position in (("b", 1), ("counts", 5), ("sums", 6)):
                message = f"{name} of {exits} beside {rows}, {n} threads"
                np.testing.assert_array_equal(held[position].array, after[position][:n], message)
        names = {name for _, _, names in _weft.plan_features(kernel) for name in names}
        reached = {"divergent-exit", "strip-mining"} | ({"transposed-rows"} if plan == PLANS[-1] else set())
        assert reached <= names, f"{exits} beside {rows}: {sorted(names)}"
        assert ("masked-vectors" in names) == (plan == PLANS[-1])


@pytest.mark.cpu
@pytest.mark.parametrize("plan", PLANS)
def test_lanes_without_a_thread_do_nothing(plan, tmp_path):
    folder = Path(__file__).parents[2]
    environment = os.environ | {
        "WEFT_DEVICE": "cpu", "WEFT_HOST_PLAN": plan, "WEFT_TEST_FOLDER": str(tmp_path), "PYTHONPATH": str(folder),
    }  # fmt: skip
    command = [sys.executable, "-W", "ignore", __file__, plan]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    check(sys.argv[1])
