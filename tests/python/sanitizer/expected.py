"""Tests of the suite whose kernels have faults that the sanitizer must report, with the reason.

With `WEFT_SANITIZE` set, or `--weft-sanitize`, these tests must fail (`conftest.py`), and all others pass.
"""

SAME = "several threads write one value to one element"
PLAIN = "threads wait for each other by plain loads and stores, which race, whatever a GPU makes of them"
UNFENCED = "a thread reads after an atomic operation without a fence"
PARTED = "`syncwarp` of a whole warp is where some of its lanes do not arrive"
EARLY = "a thread reads bytes that an asynchronous copy has not written"
MISSING = "a lane takes the value of one that the block does not have, which is undefined, and does not use it"
STUCK = "a thread waits for a phase or for threads that never come"
ARRIVALS = "a barrier has more arrivals than it was made for"
UNREAD = "no thread waits for a copy"

EXPECTED = {
    "acceptance/test_course_kernels.py::test_a6_14_races_and_atomics": "threads add to one element by plain stores",
    "acceptance/test_python_101.py::test_a4_3_fizz_buzz_with_one_thread_too_many": "one thread more than elements",
    "acceptance/test_recurring_arrays.py::test_threads_past_the_end_are_not_stopped": "threads beyond the end",
    "conformance/threads/test_barriers.py::test_barriers_in_a_branch_that_all_threads_take": SAME,
    "conformance/memory/test_carray.py::test_the_order_is_that_of_the_name": "a thread adds to what another one reads",
    "conformance/language/test_generators.py::test_threads_stop_at_items_of_their_own": "a later mask names them",
    "conformance/memory/test_bulk_copies.py::test_a_copy_is_made_where_a_thread_waits_for_it": EARLY,
    "conformance/memory/test_bulk_copies.py::test_a_wait_without_an_end_is_an_error": STUCK,
    "conformance/memory/test_bulk_stores.py::test_a_copy_is_made_where_its_thread_waits": EARLY,
    "conformance/memory/test_bulk_stores.py::test_a_copy_whose_source_no_thread_waits_for_is_never_made": UNREAD,
    "conformance/memory/test_thread_block_clusters.py::test_what_no_cluster_can_do_is_an_error[arrival]": ARRIVALS,
    "conformance/memory/test_thread_block_clusters.py::test_what_no_cluster_can_do_is_an_error[multicast]": UNREAD,
    "conformance/memory/test_thread_block_clusters.py::test_what_no_cluster_can_do_is_an_error[phase]": STUCK,
    "conformance/memory/test_thread_block_clusters.py::test_what_no_cluster_can_do_is_an_error[block]": STUCK,
    "conformance/memory/test_thread_block_clusters.py::test_what_no_cluster_can_do_is_an_error[blocks]": STUCK,
    "conformance/memory/test_copy_async.py::test_a_copy_is_made_where_the_thread_waits_for_it": EARLY,
    "conformance/memory/test_copy_async.py::test_a_copy_of_no_group_is_never_made": EARLY,
    "conformance/collectives/test_groups.py::test_device_functions_wait_for_the_grid": SAME,
    "conformance/cpu/test_thread_subsets.py::test_behind_guards_and_masks[1]": PARTED,
    "conformance/cpu/test_thread_subsets.py::test_behind_guards_and_masks[31]": PARTED,
    "conformance/cpu/test_thread_subsets.py::test_behind_guards_and_masks[33]": PARTED,
    "conformance/cpu/test_thread_subsets.py::test_behind_guards_and_masks[50]": PARTED,
    "conformance/cpu/test_thread_subsets.py::test_behind_guards_and_masks[64]": PARTED,
    "conformance/memory/test_indexing.py::test_negative_indices_wrap": SAME,
    "conformance/language/test_intrinsics.py::test_a_volatile_load_waits_for_a_store": PLAIN,
    "conformance/language/test_optional_arguments.py::test_arrays_or_none[1]": SAME,
    "conformance/language/test_optional_arguments.py::test_arrays_or_none[3]": SAME,
    "conformance/language/test_optional_arguments.py::test_arrays_or_none[5]": SAME,
    "conformance/language/test_optional_arguments.py::test_arrays_or_none[7]": SAME,
    "conformance/language/test_random_programs.py::test_random_program[88]": MISSING,
    "conformance/language/test_recursion.py::test_a_function_that_waits_by_calling_itself": UNFENCED,
    "conformance/threads/test_spin_loops.py::test_a_flag_in_shared_memory": UNFENCED,
    "conformance/threads/test_spin_loops.py::test_a_producer_and_a_consumer": UNFENCED,
    "conformance/threads/test_spin_loops.py::test_blocks_wait_for_the_one_before[3]": UNFENCED,
    "conformance/threads/test_spin_loops.py::test_blocks_wait_for_the_one_before[50]": UNFENCED,
    "conformance/threads/test_spin_loops.py::test_blocks_wait_for_the_one_before[1000]": UNFENCED,
    "conformance/threads/test_spin_loops.py::test_each_thread_waits_for_the_one_before_by_plain_loads[2]": PLAIN,
    "conformance/threads/test_spin_loops.py::test_each_thread_waits_for_the_one_before_by_plain_loads[32]": PLAIN,
    "conformance/threads/test_spin_loops.py::test_each_thread_waits_for_the_one_before_by_plain_loads[256]": PLAIN,
    "conformance/threads/test_spin_loops.py::test_steps_that_are_handed_down_from_the_last_thread": PLAIN,
    "conformance/threads/test_spin_loops.py::test_threads_of_a_warp_wait_by_plain_loads": PLAIN,
}
