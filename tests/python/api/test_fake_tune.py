"""`cuda.jit(tune=True)`: launches compile and measure candidates. Without a GPU: over the fake driver.

Its clock advances by a millisecond at each event, and at each launch by the time that ``FAKE_TIMES`` has for the number
of threads per block.
"""

from __future__ import annotations

import re

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
    assert re.search(r"coarsen=4: 9\d\.0+ ms, the median of 1 launch, slower", printed)


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
    assert "being measured" in printed
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
    assert re.findall(r"blocks of (\d+)x1x1, .* (2\^\d+) blocks, .*: (\S+) is used", printed) == [
        ("128", "2^5", "coarsen=4"),
        ("128", "2^8", "coarsen=4"),
        ("256", "2^5", "coarsen=1"),
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
    # The clock is that of all threads, so the times are those of several launches.
    assert " is used" in run(PROGRAM + code.replace("\n    ", "\n"), FAKE_TIMES="128:200,64:3,32:200")


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


PRODUCT = """
@cuda.jit(tune=True)
def product(a, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total

a, b, c = (cuda.to_device(np.zeros((4, 4), np.float32)) for _ in range(3))
"""


def test_merged_blocks_are_measured_by_what_divides_the_grid(run):
    code = """
    for grid in ((256, 256), (129, 256), (256, 256), (130, 257)):
        for _ in range(30):
            product[grid, (16, 16)](a, b, c)
    print(product.explain())
    """
    printed = run(PRODUCT + code.replace("\n    ", "\n"), FAKE_TIMES="256:9")
    assert "at least 2^16 blocks, a multiple of 4x4x1: " in printed
    assert "at least 2^15 blocks, a multiple of 1x4x1: " in printed
    assert "at least 2^15 blocks, a multiple of 2x1x1: " in printed


def test_the_setting(run):
    code = PROGRAM.replace("(tune=True)", "") + "add[32, 128](x, y)\nprint(add.explain())\n"
    assert "when a launch that fills the GPU twice is repeated" in run(code)
    assert "when a launch that fills the GPU twice is repeated" in run(code, WEFT_COARSEN="auto")
    assert "threads are not coarsened\n" in run(code, WEFT_COARSEN="kernel")
    assert "blocks of 128x1x1" in run(code, WEFT_TUNE="1")
    assert "threads are not coarsened\n" in run(code, WEFT_COARSEN="off", WEFT_TUNE="1")


BARRIERS = """
@cuda.jit(tune=True)
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
    times = "512:8,256:7,128:6,64:5,32:4"
    code = """
    for grid, height in ((2048, 16), (4096, 8), (8192, 4)):
        for _ in range(32):
            summed[grid, (32, height)](x, out)
        print(in_use())
    """
    assert run(BARRIERS + code.replace("\n    ", "\n"), FAKE_TIMES=times).split() == [
        "coarsen=(1,4)",
        "coarsen=(1,2)",
        "coarsen=1",
    ]
