"""Tests of the suite in whose kernels the sanitizer is right to find something: by the end of their names, with the reason.

With `WEFT_SANITIZE` set, or `--weft-sanitize`, these tests must fail (`conftest.py`), and all others pass.
"""

EXPECTED = {
    "acceptance/test_course_kernels.py::test_a6_14_races_and_atomics": "shows a race: threads add to one element without an atomic step",
    "acceptance/test_python_101.py::test_a4_3_fizz_buzz_with_one_thread_too_many": "one thread more than there are elements, as the text has it",
    "acceptance/test_recurring_arrays.py::test_threads_past_the_end_are_not_stopped": "threads past the end, without a guard, are what is tested",
}
