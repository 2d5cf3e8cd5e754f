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
    MEANT: "The test holds numba-cuda to a defect, to a limit that weft does not have, or to the wording of a message.",
    ELSEWHERE: "The machine, the device or a package lacks what the test needs.",
    UNKNOWN: "Failures that no row of `tests/numba_compatibility/reasons.py` explains: look at these first.",
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
        ("memory shared between processes", r"get_ipc_handle"),
        (
            "arrays of the driver's pool shared between processes, without WEFT_MEMORY_POOL=0",
            r"no other process can open this memory",
        ),
        ("dates and spans of time in kernels", r"(datetime|timedelta)64\[\w+\]"),
        ("enums whose values are no numbers", r"member \S+ of an enum has the value"),
        ("`cffi`", r"numba\.cuda\.cffi|ffi\."),
        (
            "streams and views of `cuda.core`",
            r"cuda\.core\._memoryview|must be 0 or a weft\.cuda stream, not Stream|no attribute 'external'",
        ),
        ("CuPy's arrays of bfloat16", r"arrays of dtype \|V2"),
        (
            "the text of functions that `exec` made and that their maker has let go of",
            r"text of `\w+`, but Python has none",
        ),
        ("extending the compiler", r"No module named 'llvmlite'"),
    ]
    meant = [
        (
            "numba-cuda's words in an error: weft says in its own what is wrong, where, and what to write",
            r"not found in 'error\[E|does not match \"error\[E|AssertionError$|= help: .*AssertionError",
            r"test_(sm|make_function\w*)\.py.*(invalid|non_const)",
        ),
        (
            "shared memory that the optimizer does without takes none",
            r"AssertionError: 0 != \d+",
            r"get_shared_mem_per_block",
        ),
        (
            "another last digit of a float32, within the accuracy that the reference states",
            r"DESIRED: ",
            r"test_math\.py.*hypot",
        ),
        (
            "numba-cuda cannot copy an array with negative strides to the host, weft copies it",
            r"NotImplementedError not raised",
            r"negative_strided",
        ),
        (
            "the transpose of a device array is a copy in numba-cuda, as large as the array; weft's is a view",
            r"Tuples differ: \(16, 192\) != \(40, 8\)",
            r"test_transpose_view",
        ),
        (
            "the test wants `atom.add.f64`, weft's code says which memory it is: `atom.global.add.f64`",
            r"atom\.global\.add\.f64",
            r"test_atomic_add_double_global",
        ),
        (
            "other instructions: from halves weft cuts, as Python does, and 8-bit integers go by 16 bits",
            r"AssertionError|not found in",
            r"test_casting\.py.*_ptx",
        ),
        (
            "code that is not optimized computes what optimized code does, with fused multiply-adds",
            r"fma\.rn\.f64|AssertionError",
            r"test_optimization\.py.*test_device_noopt",
        ),
        (
            "the test looks for a variable of numba-cuda's own functions, `NumbaEnv`, which weft's need not have",
            r"NumbaEnv|AssertionError",
            r"test_numba_abi_has_env_global",
        ),
        (
            "numba-cuda prints the format where there are more than 32 values, weft prints the values",
            r"",
            r"test_print\.py.*too_many_args",
        ),
        (
            "the test watches a method of Python's: copies from the host have ended when they return, without it",
            r"'synchronize' to (be|have been) called",
            r"test_cuda_array_slicing\.py.*sync",
        ),
        (
            "a launch without a stream on arrays of one stream is made in that stream, and need not wait for it",
            r"'synchronize' to (be|have been) called",
            r"test_launch_sync$",
        ),
        (
            "the test counts numba's own files in `__pycache__`: weft keeps one file a kernel, in a folder of its own",
            r"in check_pycache",
            r"test_caching",
        ),
        (
            "a changed global is another kernel: numba-cuda's cache has the old one",
            r"np\.int64\(15\) != 6",
            "recompile",
        ),
        ("debug=True warns with other words", r"Regex: 'not supported by CUDA'", r"warn_on_debug"),
    ]
    elsewhere = [
        (
            "code that is linked: a CPU has none, and calls what is written in Python for it",
            r"is linked code for GPUs|write what it does in Python, too: `@cuda\.declare_device",
        ),
        (
            "code that is linked: a CPU has none, and calls what is written in Python for it",
            r"AssertionError: 0 != [12]\b",
            r"test_module_callbacks\.py",
        ),
        ("arrays that processes share: a CPU has none", r"the CPU cannot open memory of another process"),
        ("headers of the CUDA toolkit", r"no curand_kernel\.h"),
        ("device memory for other libraries: where there is a driver the CPU has none", r"the array is in CPU memory"),
        ("more than one GPU", r"need more than 1 gpus"),
        ("a user who is not root", r"Cannot create a directory to which writes"),
        ("CuPy", r"requires CuPy|No module named 'cupy'"),
        ("a later cuda-core", r"requires cuda\.core"),
        ("a package that is not installed", r"ModuleNotFoundError"),
        ("a driver that was started before a fork; the CPU needs none", r"CUDA initialized before forking"),
        ("the NVIDIA driver", r"DynamicLibNotFoundError"),
        ("a GPU: on the CPU nothing is copied, and few blocks are no fault", r"PerformanceWarning|DID NOT WARN"),
        (
            "registers, of which a CPU counts none, and texts, which the driver does not count as constant memory",
            r"0 not greater than (or equal to )?\d+",
        ),
        ("the time that the run was given", r"deadline reached"),
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
