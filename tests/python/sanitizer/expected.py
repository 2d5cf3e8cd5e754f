"""Tests of the suite in whose kernels the sanitizer is right to find something, with the reason.

With `WEFT_SANITIZE` set, or `--weft-sanitize`, these tests must fail (`conftest.py`), and all others pass.
"""

SAME = "several threads write one value to one element"
PLAIN = "threads wait for each other by plain loads and stores, which race, whatever a GPU makes of them"

EXPECTED = {
    "acceptance/test_course_kernels.py::test_a6_14_races_and_atomics": "threads add to one element by plain stores",
    "acceptance/test_python_101.py::test_a4_3_fizz_buzz_with_one_thread_too_many": "one thread more than elements",
    "acceptance/test_recurring_arrays.py::test_threads_past_the_end_are_not_stopped": "threads beyond the end",
    "conformance/test_barriers.py::test_barriers_in_a_branch_that_all_threads_take": SAME,
    "conformance/test_carray.py::test_the_order_is_that_of_the_name": "a thread adds to what another one reads",
    "conformance/test_generators.py::test_threads_stop_at_items_of_their_own": "lanes end that a later mask names",
    "conformance/test_groups.py::test_both_ways_of_running_threads": SAME,
    "conformance/test_groups.py::test_device_functions_wait_for_the_grid": SAME,
    "conformance/test_indexing.py::test_negative_indices_wrap": SAME,
    "conformance/test_optional_arguments.py::test_arrays_or_none": SAME,
}
