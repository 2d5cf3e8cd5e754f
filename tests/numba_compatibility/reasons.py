"""Why tests of numba-cuda do not pass: patterns, and the reason that each one stands for.

A row is a pattern of the test's name, one of the end of its report, and a reason. The first row whose patterns are both
found decides. A test that no row fits is listed as unclassified, so a row says what its pattern shows and no more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MISSING = "Not there yet"
MEANT = "Different on purpose"
ELSEWHERE = "Not testable where this was run"
UNKNOWN = "Unclassified"
KINDS = {
    MISSING: "A feature that weft does not have yet.",
    MEANT: "The test expects a defect of numba-cuda, a limit that weft does not have, or the exact text of a message.",
    ELSEWHERE: "The test needs a machine, a device or a package that this run did not have.",
    UNKNOWN: "Failures without a row in `tests/numba_compatibility/reasons.py`.",
}
"""The kinds of reasons, in the order of the page."""


@dataclass(frozen=True)
class Reason:
    """Why tests do not pass."""

    kind: str
    text: str


def _rows():
    def row(kind, text, report, name=""):
        return re.compile(name), re.compile(report, re.DOTALL), Reason(kind, text)

    missing = [
        ("captured arrays", r"Cannot capture the non-constant"),
        ("device memory shared between processes", r"get_ipc_handle"),
        (
            "arrays of the driver's memory pool cannot be shared between processes: set `WEFT_MEMORY_POOL=0`",
            r"another process cannot open this memory",
        ),
        ("dates and durations in kernels", r"(datetime|timedelta)64\[\w+\]"),
        ("enums whose values are not numbers", r"member \S+ of an enum has the value"),
        ("`cffi`", r"numba\.cuda\.cffi|ffi\."),
        (
            "streams and views of `cuda.core`",
            r"cuda\.core\._memoryview|must be 0 or a weft\.cuda stream, not Stream|no attribute 'external'",
        ),
        ("bfloat16 arrays of CuPy", r"arrays of dtype \|V2"),
        (
            "source of functions made by `exec`, when the string is no longer alive",
            r"text of `\w+`, but Python has none",
        ),
        ("extensions of the compiler (llvmlite)", r"No module named 'llvmlite'"),
    ]
    meant = [
        (
            "the test expects numba-cuda's error message; weft's message differs",
            r"not found in 'error\[E|does not match \"error\[E|AssertionError$|= help: .*AssertionError",
            r"test_(sm|make_function\w*)\.py.*(invalid|non_const)",
        ),
        (
            "the optimizer removes the unused shared array, so its size is 0",
            r"AssertionError: 0 != \d+",
            r"get_shared_mem_per_block",
        ),
        (
            "the last digit of a float32 differs, within the documented accuracy",
            r"DESIRED: ",
            r"test_math\.py.*hypot",
        ),
        (
            "numba-cuda cannot copy an array with negative strides to the host; weft can",
            r"NotImplementedError not raised",
            r"negative_strided",
        ),
        (
            "the transpose of a device array is a copy in numba-cuda and a view in weft",
            r"Tuples differ: \(16, 192\) != \(40, 8\)",
            r"test_transpose_view",
        ),
        (
            "the test expects `atom.add.f64`; weft emits `atom.global.add.f64`, which names the memory",
            r"atom\.global\.add\.f64",
            r"test_atomic_add_double_global",
        ),
        (
            "other instructions: weft truncates halves, as Python does, and converts 8-bit integers through 16 bits",
            r"AssertionError|not found in",
            r"test_casting\.py.*_ptx",
        ),
        (
            "weft fuses multiply-adds in unoptimized code as well, so that results do not depend on optimization",
            r"fma\.rn\.f64|AssertionError",
            r"test_optimization\.py.*test_device_noopt",
        ),
        (
            "the test looks for `NumbaEnv`, a variable of numba-cuda's functions that weft does not need",
            r"NumbaEnv|AssertionError",
            r"test_numba_abi_has_env_global",
        ),
        (
            "with more than 32 values numba-cuda prints the format string; weft prints the values",
            r"",
            r"test_print\.py.*too_many_args",
        ),
        (
            "the test expects a call of `synchronize`; weft's copies from the host are complete when they return",
            r"'synchronize' to (be|have been) called",
            r"test_cuda_array_slicing\.py.*sync",
        ),
        (
            "weft launches in the stream of the arrays if no stream is given, so it does not need to synchronize",
            r"'synchronize' to (be|have been) called",
            r"test_launch_sync$",
        ),
        (
            "the test counts Numba's cache files in `__pycache__`; weft stores one file per kernel in its own folder",
            r"in check_pycache",
            r"test_caching",
        ),
        (
            "weft recompiles after a global changed; numba-cuda's cache returns the old kernel",
            r"np\.int64\(15\) != 6",
            "recompile",
        ),
        ("the warning for `debug=True` has another text", r"Regex: 'not supported by CUDA'", r"warn_on_debug"),
    ]
    elsewhere = [
        (
            "linked code runs on GPUs only; the CPU calls the Python function that replaces it",
            r"is linked code for GPUs|write it in Python, too: `@cuda\.declare_device",
        ),
        (
            "linked code runs on GPUs only; the CPU calls the Python function that replaces it",
            r"AssertionError: 0 != [12]\b",
            r"test_module_callbacks\.py",
        ),
        ("arrays shared between processes need a GPU", r"the CPU cannot open memory of another process"),
        ("needs headers of the CUDA toolkit", r"no curand_kernel\.h"),
        ("other libraries need device memory; the CPU executor has none", r"the array is in CPU memory"),
        ("needs more than one GPU", r"need more than 1 gpus"),
        ("needs a user who is not root", r"Cannot create a directory to which writes"),
        ("needs CuPy", r"requires CuPy|No module named 'cupy'"),
        ("needs a later version of cuda-core", r"requires cuda\.core"),
        ("needs a package that is not installed", r"ModuleNotFoundError"),
        ("needs a driver that was initialized before a fork; the CPU has none", r"CUDA initialized before forking"),
        ("needs the NVIDIA driver", r"DynamicLibNotFoundError"),
        (
            "needs a GPU: on the CPU nothing is copied, and a small grid causes no warning",
            r"PerformanceWarning|DID NOT WARN",
        ),
        (
            "the test expects counts that are 0 here: registers on the CPU, strings in constant memory on a GPU",
            r"0 not greater than (or equal to )?\d+",
        ),
        ("needs more time than the run had", r"deadline reached"),
    ]
    yield from (row(MEANT, text, report, name) for text, report, name in meant)
    # The packages first: a test that cannot be imported shows nothing of weft.
    yield from (row(ELSEWHERE, text, report, *name) for text, report, *name in elsewhere)
    yield from (row(MISSING, text, report, *name) for text, report, *name in missing)


ROWS = list(_rows())


def reason(test, report):
    """Give the reason of a test that did not pass.

    Parameters
    ----------
    test
        Its name: ``cudapy/test_sm.py::TestClass::test_name``.
    report
        The end of what pytest says of it.
    """
    for name, pattern, found in ROWS:
        if name.search(test) and pattern.search(report):
            return found
    errors = [line for line in report.splitlines() if re.search(r"(Error|Exception|Failed)\b", line)]
    last = re.sub(r"^E\s+", "", errors[-1].strip().rpartition("/")[2]) if errors else "no message"
    return Reason(UNKNOWN, last[:100].replace("`", "'"))
