"""Loops that count near the limits of 32 bits: a counter has the values of an int64, even if weft narrows it."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def below(first, limit, out):
    count = 2147483600
    turns = 0
    while count < limit:
        count += 1
        turns += 1
        if turns > 100:
            break
    out[0], out[1] = count, turns


@cuda.jit
def at_most(first, limit, out):
    count = 2147483600
    turns = 0
    while count <= limit:
        count += 1
        turns += 1
        if turns > 100:
            break
    out[0], out[1] = count, turns


@cuda.jit
def by_seven(first, limit, out):
    count = 2147483600
    turns = 0
    while limit >= count and turns < 100:
        count += 7
        turns += 1
    out[0], out[1] = count, turns


@cuda.jit
def twice_a_turn(first, limit, out):
    count = 2147483646
    turns = 0
    while count < limit:
        count += 1
        turns += 1
        count += 1
    out[0], out[1] = count, turns


@cuda.jit
def in_an_inner_loop(first, limit, out):
    count = 2147483640
    turns = 0
    while count < limit:
        for _ in range(3):
            count += 1
            turns += 1
    out[0], out[1] = count, turns


@cuda.jit
def copied(first, limit, out):
    count = first
    last = 0
    turns = 0
    while limit > count:
        last = count
        count += 1
        turns += 1
        if turns >= 60:
            break
    out[0], out[1] = last, turns


@cuda.jit
def no_test(first, limit, out):
    count = 2147483647
    turns = 0
    while turns < 3:
        count += 1
        turns += 1
    out[0], out[1] = count, turns


@cuda.jit
def wide_range(first, limit, out):
    turns = 0
    last = 0
    for i in range(2147483600, 2147483700):
        last = i
        turns += 1
    out[0], out[1] = last, turns


@cuda.jit
def converted(first, limit, out):
    count = -5
    out[0], out[1] = 0, 0
    while count < limit:
        out[1] += np.uint8(count)
        out[0] += np.float32(count) > 0
        count += 1
        if count == 4:
            break


KERNELS = [below, at_most, by_seven, twice_a_turn, in_an_inner_loop, copied, no_test, wide_range, converted]


@pytest.mark.parametrize("limit", [np.int32(2147483647), np.int32(2147483646), np.int64(2147483660)])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_counters_near_the_end_of_32_bits(kernel, limit):
    run(kernel, 1, 1, np.int32(2147483630), limit, np.zeros(2, np.int64))
