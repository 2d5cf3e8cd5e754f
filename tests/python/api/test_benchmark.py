"""`cuda.benchmark`: the launches that it runs, its results, and its errors. Times are not tested."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def count(x, by):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += by


@pytest.mark.parametrize("with_stream", [False, True])
def test_launches_are_made_and_measured(with_stream, device) -> None:
    x = cuda.to_device(np.zeros(100))
    configuration = count[1, 128, cuda.stream()] if with_stream else count[1, 128]
    found = cuda.benchmark(configuration, x, 2.0, warmup=2, repeat=5)
    assert set(x.copy_to_host().tolist()) == {14}
    assert (found.count, len(found.times), found.name) == (5, 5, "count")
    assert found.clock == ("events" if device == "cuda" else "wall")
    assert all(time > 0 for time in found.times)
    assert found.min == min(found.times) <= found.median <= max(found.times) == found.max
    assert found.median == np.median(found.times)
    assert found.mean == pytest.approx(np.mean(found.times))
    assert found.spread == found.max - found.min


def test_its_text() -> None:
    from weft.cuda._benchmark import Benchmark

    text = repr(Benchmark([0.0021, 1500.0, 12.34567], "axpy", "events"))
    assert text == "<axpy: median 12.35 ms (min 2.1 us, max 1.5 s) of 3 launches, events>"
    assert repr(Benchmark([1.0], "f", "wall")).endswith("of 1 launch, wall time on the CPU>")


def test_defaults_and_mapped_arrays() -> None:
    mapped = cuda.mapped_array(3)
    mapped[:] = 0
    assert cuda.benchmark(count[1, 32], mapped, np.float64(1)).count == 20
    assert mapped.tolist() == [23] * 3


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (count, r"the kernel `count` needs a launch configuration: cuda.benchmark\(count\[blocks, threads\], …\)"),
        (count.forall(3), r"`forall` is not a launch configuration: cuda.benchmark\(count\[blocks, threads\], …\)"),
        (lambda x: None, r"must be a kernel with its configuration, `kernel\[blocks, threads\]`, not function"),
        (3, "not int"),
    ],
)
def test_what_is_no_configuration(what, text) -> None:
    with pytest.raises(TypeError, match=text):
        cuda.benchmark(what, cuda.device_array(3), 1)


def test_wrong_arguments() -> None:
    x = cuda.to_device(np.zeros(3))
    for name in ("warmup", "repeat"):
        for wrong in (2.5, "3", None, True):
            with pytest.raises(TypeError, match=f"`{name}` must be an int, the number of launches, not"):
                cuda.benchmark(count[1, 32], x, 1, **{name: wrong})
        for wrong in (0, -1):
            with pytest.raises(ValueError, match=f"`{name}` must be at least 1, not {wrong}"):
                cuda.benchmark(count[1, 32], x, 1, **{name: wrong})
    for wrong in (np.zeros(3), cuda.InOut(np.zeros(3)), (x, np.zeros(2))):
        with pytest.raises(TypeError, match="argument 1 of the kernel is a host array"):
            cuda.benchmark(count[1, 32], wrong, 1)
    assert not x.copy_to_host().any()
    with pytest.raises(TypeError, match="count"):
        cuda.benchmark(count[1, 32], x)
