"""Which variant a launch runs, by an estimate or by measuring, without a GPU: over the fake driver.

Its clock advances by a millisecond at each event, and at each launch by the time that ``FAKE_TIMES`` has for the number
of threads per block.
"""

from __future__ import annotations

import re

import pytest

PROGRAM = """
import os
os.environ.setdefault("WEFT_CACHE", "off")

@cuda.jit(tune=True)
def add(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += x[i]

x, y = (cuda.to_device(np.zeros(4096, np.float32)) for _ in range(2))

def in_use(kernel):
    return kernel.explain().split("the last launch ran ")[1].splitlines()[0].replace(" ", "")
"""

LAUNCH = PROGRAM + "for _ in range(30):\n    add[32, 128](x, y)\nprint(in_use(add), add.explain())\n"


def test_the_quickest_is_kept(run):
    assert run(LAUNCH, FAKE_TIMES="128:9,64:3,32:6").startswith("coarsen=2 ")
    assert run(LAUNCH, FAKE_TIMES="128:9,64:6,32:3").startswith("coarsen=4 ")


def test_a_bad_candidate_is_not_kept(run):
    printed = run(LAUNCH, FAKE_TIMES="128:3,64:3,32:90")
    assert printed.startswith("coarsen=1 ")
    assert "coarsen=4 given up" in printed


def test_each_candidate_has_few_launches_and_the_rest_the_best_one(run, tmp_path):
    trace = tmp_path / "trace"
    run(LAUNCH, FAKE_TIMES="128:9,64:3,32:6", FAKE_TRACE=str(trace))
    calls = trace.read_text().split()
    assert calls.count("cuLaunchKernel") == 30
    # Three candidates with four launches each, and two events a launch.
    assert calls.count("cuEventRecord") == 24
    assert not {"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"} & set(calls)


def test_nobody_waits_for_events_that_are_not_reached(run, tmp_path):
    trace = tmp_path / "trace"
    code = PROGRAM + "for _ in range(30):\n    add[32, 128](x, y)\nprint(add.explain())\n"
    printed = run(code, FAKE_BUSY="1", FAKE_TRACE=str(trace))
    assert "not decided yet" in printed
    calls = trace.read_text().split()
    assert calls.count("cuEventRecord") == 24
    assert not {"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"} & set(calls)


def test_each_block_and_size_of_the_grid_is_measured_by_itself(run):
    code = """
    for grid, block in ((32, 128), (32, 256), (300, 128)):
        for _ in range(30):
            add[grid, block](x, y)
    print(add.explain())
    """
    printed = run(PROGRAM + code.replace("\n    ", "\n"), FAKE_TIMES="128:4,64:3,32:2,256:2")
    found = dict(re.findall(r"blocks of (\S+), from (2\^\d+ on: \S+)", printed))
    assert found["256x1x1"] == "2^5 on: coarsen=1"
    assert re.findall(r"blocks of 128x1x1, from (2\^\d+) on: (\S+)", printed) == [
        ("2^5", "coarsen=4"),
        ("2^8", "coarsen=4"),
    ]


def test_captures_are_not_timed(run, tmp_path):
    trace = tmp_path / "trace"
    code = """
    with cuda.graph() as graph:
        for _ in range(20):
            add[32, 128](x, y)
    graph.launch()
    prepared = add[32, 128].prepare(x, y)
    prepared()
    print(in_use(add))
    """
    printed = run(PROGRAM + code.replace("\n    ", "\n"), FAKE_TRACE=str(trace))
    assert printed.split()[-1] == "coarsen=1"
    assert "cuEventRecord" not in trace.read_text().split()


def test_a_recorded_launch_keeps_its_variant(run):
    code = """
    with cuda.graph() as graph:
        add[32, 128](x, y)
    for _ in range(30):
        add[32, 128](x, y)
    graph.set_args(0, y, x)
    print(in_use(add))
    """
    assert run(PROGRAM + code.replace("\n    ", "\n"), FAKE_TIMES="128:9,64:3,32:6").split()[-1] == "coarsen=2"


def test_what_was_measured_is_kept_on_the_disk(run, tmp_path):
    folder = tmp_path / "cache"
    cached = {"WEFT_CACHE": "on", "WEFT_CACHE_DIR": str(folder)}
    times = {"FAKE_TIMES": "128:9,64:3,32:6"}
    assert "by another process" not in run(LAUNCH, **cached, **times)
    once = PROGRAM + "add[32, 128](x, y)\nprint(in_use(add), add.explain())\n"
    printed = run(once, **cached)
    assert printed.startswith("coarsen=2 ")
    assert "measured by another process" in printed
    # A damaged entry is ignored.
    for file in folder.glob("?/*"):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    printed = run(once, **cached)
    assert printed.startswith("coarsen=1 ")
    assert "by another process" not in printed


def test_threads_measure_together(run):
    code = """
    import threading
    def work():
        stream = cuda.stream()
        for _ in range(40):
            add[32, 128, stream](x, y)
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(in_use(add), add.explain())
    """
    printed = run(PROGRAM + code.replace("\n    ", "\n"), FAKE_TIMES="128:200,64:3,32:200")
    assert printed.startswith("coarsen=2 ")


def test_a_launch_that_fails_is_not_measured(run):
    code = """
    for wrong in (((x, "no"), weft.errors.CompileError), ((x,), TypeError)):
        try:
            add[32, 128](*wrong[0])
        except wrong[1]:
            pass
    os.environ["FAKE_LAUNCH"] = "701"
    for _ in range(4):
        try:
            add[32, 128](x, y)
        except cuda.LaunchError:
            pass
        else:
            raise AssertionError
    del os.environ["FAKE_LAUNCH"]
    for _ in range(30):
        add[32, 128](x, y)
    print(in_use(add))
    """
    assert run(PROGRAM + code.replace("\n    ", "\n"), FAKE_TIMES="128:9,64:3,32:6").split()[-1] == "coarsen=2"


ESTIMATE = """
@cuda.jit(coarsen="auto")
def product(a, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total

a, b, c = (cuda.to_device(np.zeros((4, 4), np.float32)) for _ in range(3))

def in_use():
    return product.explain().split("the last launch ran ")[1].splitlines()[0].replace(" ", "")
"""


def test_the_estimate_is_for_large_launches(run):
    code = """
    product[(8, 8), (16, 16)](a, b, c)
    print(in_use())
    product[(64, 64), (16, 16)](a, b, c)
    print(in_use())
    # A block keeps a warp, so that its threads could be two in one at most: blocks are merged instead.
    product[(128, 128), (8, 8)](a, b, c)
    print(in_use())
    # Nothing divides it.
    product[(63, 63), (15, 15)](a, b, c)
    print(in_use())
    product[(64, 64), (16, 16)](a, b, c)
    assert product.inspect_asm() != cuda.jit(product.py_func, coarsen=1).inspect_asm()
    """
    small, large, eight, odd = run(ESTIMATE + code.replace("\n    ", "\n")).split()
    assert small == odd == "coarsen=1"
    assert large == "coarsen_blocks=(4,2)"
    assert eight == "coarsen_blocks=(4,2)"


def test_blocks_are_merged_where_enough_are_left(run):
    """A launch fills 132 multiprocessors twice; with merged blocks, the number of threads is limited by registers."""
    code = """
    for grid in ((48, 48), (64, 64), (256, 256), (129, 256), (256, 130)):
        product[grid, (16, 16)](a, b, c)
        print(in_use())
    """
    small, middle, large, odd, even = run(ESTIMATE + code.replace("\n    ", "\n")).split()
    assert small in ("coarsen=(1,4)", "coarsen=(2,2)")
    assert middle == "coarsen_blocks=(4,2)"
    assert large in ("coarsen_blocks=(4,2)", "coarsen_blocks=(2,4)")
    assert odd in ("coarsen=(1,4)", "coarsen=(2,2)")
    assert even == "coarsen_blocks=(4,2)"


def test_merged_blocks_are_measured_by_what_divides_the_grid(run):
    code = """
    product = cuda.jit(product.py_func, tune=True)
    for grid in ((256, 256), (129, 256), (256, 256), (130, 257)):
        for _ in range(30):
            product[grid, (16, 16)](a, b, c)
    print(product.explain())
    """
    printed = run(ESTIMATE + code.replace("\n    ", "\n"), FAKE_TIMES="256:9")
    assert "from 2^16 on: grids in multiples of 4x4x1: " in printed
    assert "from 2^15 on: grids in multiples of 1x4x1: " in printed
    assert "from 2^15 on: grids in multiples of 2x1x1: " in printed


def test_the_setting(run):
    code = PROGRAM.replace("(tune=True)", "") + "add[32, 128](x, y)\nprint(add.explain())\n"
    assert "is estimated at" in run(code)
    assert "is estimated at" in run(code, WEFT_COARSEN="auto")
    assert "threads are not coarsened" in run(code, WEFT_COARSEN="kernel")
    assert "blocks of 128x1x1" in run(code, WEFT_TUNE="1")
    assert "threads are not coarsened" in run(code, WEFT_COARSEN="off", WEFT_TUNE="1")


BARRIERS = """
@cuda.jit
def summed(x, out):
    tile = cuda.shared.array((32, 32), np.float32)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    total = np.float32(0)
    for k in range(8):
        tile[i, j] = x[k * 32 + i, j]
        cuda.syncthreads()
        for l in range(32):
            total += tile[i, l] * tile[l, j]
        cuda.syncthreads()
    out[i, j] = total

x, out = (cuda.to_device(np.zeros((64, 32), np.float32)) for _ in range(2))

def in_use():
    return summed.explain().split("the last launch ran ")[1].splitlines()[0].replace(" ", "")
"""


def test_blocks_with_barriers_keep_more_threads(run):
    """While some threads of a block wait, others must have work: at least 128 remain."""
    code = """
    summed[1024, (32, 32)](x, out)
    print(in_use())
    summed[2048, (32, 16)](x, out)
    print(in_use())
    summed[4096, (32, 8)](x, out)
    print(in_use())
    summed[8192, (32, 4)](x, out)
    print(in_use())
    """
    assert run(BARRIERS + code.replace("\n    ", "\n")).split() == [
        "coarsen=(1,4)",
        "coarsen=(1,4)",
        "coarsen=(1,2)",
        "coarsen=1",
    ]


def test_what_the_decorator_says_is_not_estimated(run):
    code = PROGRAM.replace("(tune=True)", "(coarsen=1)") + "add[4096, 128](x, y)\nprint(add.explain())\n"
    assert "threads are not coarsened" in run(code)


@pytest.mark.parametrize("options", ["debug=True, opt=False", "opt=False"])
def test_what_is_looked_into_is_not_coarsened(run, options):
    code = PROGRAM.replace("(tune=True)", f"({options})") + "add[4096, 128](x, y)\nprint(add.explain())\n"
    assert "threads are not coarsened" in run(code)
