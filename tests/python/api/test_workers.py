"""Kernels, launches and device arrays as pickles in worker processes; which GPU a worker uses."""

from __future__ import annotations

import enum
import importlib.util
import math
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from weft import cuda, workers

CPU = os.environ.get("WEFT_DEVICE") == "cpu"

# All kinds of process pools run these functions. Everything that they use is in the script's `__main__`.
SCRIPT = """
import sys
import numpy as np
from weft import cuda, workers

OFFSET = 2

@cuda.jit(device=True)
def even(n):
    return True if n == 0 else odd(n - 1)

@cuda.jit(device=True)
def odd(n):
    return False if n == 0 else even(n - 1)

@cuda.jit
def kernel(out, x):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + OFFSET if even(i) else x[i]

@cuda.jit
def broken(out):
    out[0] = missing_name

def launch(launched, x):
    out = cuda.device_array_like(x)
    launched(out, x)
    return out

def fail(launched, x):
    launched(x)

class Unit:
    def __init__(self, kernel):
        self.kernel = kernel

    def run(self, x):
        return launch(self.kernel[1, 8], x).copy_to_host().tolist()

def check(run):
    x = cuda.to_device(np.arange(4.0))
    expected = [2.0, 1.0, 4.0, 3.0]
    results = [run(launch, kernel[1, 8], x), run(launch, kernel.forall(4), x)]
    assert all(type(result).__name__ == "DeviceNDArray" for result in results), results
    assert [result.copy_to_host().tolist() for result in results] == [expected] * 2
    assert run(Unit(kernel).run, x) == expected
    try:
        run(fail, broken[1, 1], x)
    except Exception as error:
        names = [type(error).__name__, str(error)]
        assert any("CompileError" in name or "missing_name" in name for name in names), names
    else:
        raise AssertionError("no error came back")
    print("right")
"""

POOLS = {
    "concurrent": """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    for method in ("spawn", "forkserver", "fork"):
        if method == "fork" and cuda.get_current_device().name and sys.argv[1] != "cpu":
            continue  # CUDA does not survive a fork
        with ProcessPoolExecutor(1, get_context(method)) as pool:
            check(lambda function, *args: pool.submit(function, *args).result())
    """,
    "multiprocessing": """
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        check(lambda function, *args: pool.apply(function, args))
    """,
    "joblib": """
    import joblib
    check(lambda function, *args: joblib.Parallel(2, "loky")([joblib.delayed(function)(*args)] * 2)[1])
    joblib.externals.loky.get_reusable_executor().shutdown()
    """,
    "dask": """
    import dask, distributed
    dask.config.set({"distributed.worker.daemon": True})
    with (
        distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        distributed.Client(cluster) as client,
    ):
        check(lambda function, *args: client.submit(function, *args, pure=False).result())
        x = cuda.to_device(np.arange(4.0))
        kept, = client.scatter([x])
        first = client.submit(launch, kernel[1, 8], kept)
        assert client.submit(launch, kernel[1, 8], first).result().copy_to_host().tolist() == [4.0, 1.0, 6.0, 3.0]
    """,
    "ray": """
    import ray
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    call = ray.remote(lambda function, *args: function(*args))
    check(lambda function, *args: ray.get(call.remote(function, *args)))
    ray.shutdown()
    """,
}


def python(*args, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("pool", POOLS)
def test_pools_of_processes(pool, tmp_path):
    needs = {"joblib": "joblib", "dask": "distributed", "ray": "ray"}.get(pool)
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\nif __name__ == '__main__':" + POOLS[pool])
    out = python("-W", "ignore", script, "cpu" if CPU else "cuda")
    assert set(out.split()) == {"right"}, out


OFFSET = 2
sin, cos, grid = math.sin, np.cos, cuda.grid


class Color(enum.IntEnum):
    RED = 4


def make(offset, *, more=OFFSET):
    @cuda.jit(device=True)
    def plus(x, by=offset):
        return x + by + more

    @cuda.jit
    def kernel(out):
        out[0] = plus(1)

    return kernel


def value(kernel):
    out = np.zeros(1)
    kernel[1, 1](out)
    cuda.synchronize()
    return out[0]


def test_a_process_has_one_of_equal_functions():
    first = pickle.loads(pickle.dumps(make(3)))
    assert pickle.loads(pickle.dumps(make(3))) is first
    assert value(first) == 6
    # Each of these differs in a default or a value of a function that the kernel calls.
    others = [make(4), make(3.0), make(3, more=5), make(np.int8(3))]
    copies = [pickle.loads(pickle.dumps(kernel)) for kernel in others]
    assert len({id(copy) for copy in (first, *copies)}) == 5
    assert [value(copy) for copy in copies] == [7, 6, 9, 6]
    # Attributes of the kernel are also attributes of its launches.
    assert pickle.loads(pickle.dumps(make(3)[1, 1])).dispatcher is first


def test_functions_with_other_globals_or_arrays_are_others(monkeypatch):
    table = np.arange(3.0)

    @cuda.jit
    def kernel(out):
        out[0] = table[1] + OFFSET

    texts = [pickle.dumps(kernel)]
    monkeypatch.setitem(globals(), "OFFSET", 5)
    texts.append(pickle.dumps(kernel))
    table[1] = 7
    texts.append(pickle.dumps(kernel))
    assert [value(pickle.loads(text)) for text in texts] == [3, 6, 12]
    assert pickle.loads(texts[0]) is pickle.loads(texts[0])


def test_names_of_modules_are_compared():
    @cuda.jit
    def kernel(out):
        out[grid(1)] = sin(OFFSET) + cos(0.0) + np.sqrt(math.pi) + Color.RED

    copies = [pickle.loads(pickle.dumps(kernel)) for _ in range(2)]
    assert copies[0] is copies[1]
    assert value(copies[0]) == pytest.approx(np.sin(2.0) + 1 + np.sqrt(np.pi) + 4)


def test_a_value_that_is_not_compared_makes_no_equals():
    kept = cuda.to_device(np.arange(2.0))

    @cuda.jit
    def kernel(out):
        out[0] = kept[1]

    text = pickle.dumps(kernel)
    one, other = pickle.loads(text), pickle.loads(text)
    assert one is not other
    assert value(one) == value(other) == 1


@cuda.jit(device=True)
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@cuda.jit(device=True)
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def test_functions_that_call_each_other(tmp_path):
    @cuda.jit(device=True)
    def even(n):
        return True if n == 0 else odd(n - 1)

    @cuda.jit(device=True)
    def odd(n):
        return False if n == 0 else even(n - 1)

    @cuda.jit
    def kernel(out):
        out[0] = 1 if odd(7) else 2

    copy = pickle.loads(pickle.dumps(kernel))
    assert value(copy) == 1
    assert pickle.loads(pickle.dumps(copy)) is copy
    # In a process that does not have any of them.
    file = tmp_path / "kernel.pickle"
    file.write_bytes(pickle.dumps(kernel))
    load = f"import pickle, numpy as np\nx = np.zeros(1)\npickle.load(open({str(file)!r}, 'rb'))[1, 1](x)\nprint(x)"
    assert python("-W", "ignore", "-c", load) == "[1.]\n"


def test_compiled_kernels():
    kernel = make(3)
    x = cuda.to_device(np.zeros(1))
    kernel[1, 1](x)
    (compiled,) = kernel.overloads.values()
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy.signature == compiled.signature
    assert copy.entry_name == compiled.entry_name
    assert copy.target == compiled.target
    assert copy.code == compiled.code


def test_prepared_launches_have_copies_of_their_arrays():
    @cuda.jit
    def add(x, by):
        x[cuda.grid(1)] += by

    x = cuda.to_device(np.arange(4.0))
    prepared = add[1, 4].prepare(x, 2.0)
    copy = pickle.loads(pickle.dumps(prepared))
    copy()
    copy()
    prepared()
    assert copy.args[0].copy_to_host().tolist() == [4, 5, 6, 7]
    assert x.copy_to_host().tolist() == [2, 3, 4, 5]


def test_launches_with_a_stream_are_no_pickles():
    kernel, stream = make(3), cuda.stream()
    x = cuda.to_device(np.zeros(1))
    for launch in (kernel[1, 1, stream], kernel.forall(1, stream=stream), kernel[1, 1, stream].prepare(x)):
        with pytest.raises(TypeError, match="streams cannot"):
            pickle.dumps(launch)
    forall = pickle.loads(pickle.dumps(kernel.forall(3, 64, 0, 128)))
    assert (forall.ntasks, forall.thread_per_block, forall.sharedmem) == (3, 64, 128)


def test_device_arrays_are_copied_through_the_host():
    values = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    x = cuda.to_device(values)
    for array, expected in ((x, values), (x[1:, ::2], values[1:, ::2]), (x.T, values.T)):
        copy = pickle.loads(pickle.dumps(array))
        assert copy.dtype == expected.dtype
        np.testing.assert_array_equal(copy.copy_to_host(), expected)
        copy[:] = 0
        np.testing.assert_array_equal(array.copy_to_host(), expected)
    # NumPy's data is sent out of band (pickle protocol 5), if the transport supports that.
    buffers = []
    text = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert len(text) < 400
    np.testing.assert_array_equal(pickle.loads(text, buffers=buffers).copy_to_host(), values)


def test_modules_that_go_by_value(tmp_path, monkeypatch):
    """cloudpickle pickles by value the modules that workers do not have."""
    cloudpickle = pytest.importorskip("cloudpickle")
    text = """
    from weft import cuda
    BY = 3
    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] *= BY
    """
    (tmp_path / "only_here.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here

    assert b"BY" not in cloudpickle.dumps(only_here.kernel)
    cloudpickle.register_pickle_by_value(only_here)
    try:
        file = tmp_path / "kernel.pickle"
        file.write_bytes(cloudpickle.dumps(only_here.kernel[1, 2]))
    finally:
        cloudpickle.unregister_pickle_by_value(only_here)
    load = f"import pickle, numpy as np\nx = np.ones(2)\npickle.load(open({str(file)!r}, 'rb'))(x)\nprint(x)"
    assert python("-W", "ignore", "-c", load) == "[3. 3.]\n"


# --- Which GPU --------------------------------------------------------------------------------------------------------


def chosen(call, **environment):
    """The result of `select_gpu` in a separate process, and the variable afterwards."""
    code = f"import os\nfrom weft import workers\nprint(workers.{call}, os.environ.get(workers.VISIBLE))"
    unset = dict.fromkeys(workers.LOCAL_RANKS, "")
    return python("-c", code, **({"WEFT_DEVICE": "auto"} | unset | environment)).split()


def test_a_worker_chooses_among_what_is_visible():
    visible = {"CUDA_VISIBLE_DEVICES": "3, GPU-1234,5"}
    assert chosen("select_gpu(0)", **visible) == ["3"] * 2
    assert chosen("select_gpu(1)", **visible) == ["GPU-1234"] * 2
    assert chosen("select_gpu(5)", **visible) == ["5"] * 2
    assert chosen("select_gpu(1)", CUDA_VISIBLE_DEVICES="4,-1,5") == ["4"] * 2
    assert chosen("select_gpu(3, gpus=2)", **visible) == ["1"] * 2
    assert chosen("select_gpu(1, gpus=['7', 'GPU-9'])", **visible) == ["GPU-9"] * 2


def test_a_launcher_says_which_worker_it_is():
    for name in workers.LOCAL_RANKS:
        assert chosen("select_gpu(gpus=4)", **{name: "6"}) == ["2", "2"]
    assert chosen("local_number()", SLURM_LOCALID="3")[0] == "3"
    with pytest.raises(AssertionError, match="SLURM_LOCALID must be a worker's number, not 'three'"):
        chosen("local_number()", SLURM_LOCALID="three")
    with pytest.raises(AssertionError, match="pass `number`"):
        chosen("select_gpu()")


def test_nothing_is_chosen_on_the_cpu():
    assert chosen("select_gpu(1)", WEFT_DEVICE="cpu", CUDA_VISIBLE_DEVICES="0,1") == ["None", "0,1"]


def test_numbers_that_make_no_sense():
    with pytest.raises(ValueError, match="must be at least 0, not -1"):
        workers.select_gpu(-1)
    with pytest.raises(AssertionError, match="`gpus` is empty"):
        chosen("select_gpu(0, gpus=[])")


NUMBERS = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from weft import workers

def number(_):
    return workers.local_number()

if __name__ == "__main__":
    assert workers.local_number() is None
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        print(*pool.map(number, range(1)))
    with get_context("spawn").Pool(2) as pool:
        print(*sorted(set(pool.map(number, range(100), chunksize=1))))
"""


def test_multiprocessing_numbers_its_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(NUMBERS)
    first, second = python(script, **dict.fromkeys(workers.LOCAL_RANKS, "")).splitlines()
    assert first == "0"
    assert set(second.split()) <= {"1", "2"}


@pytest.mark.cuda
def test_a_worker_has_one_gpu():
    code = """
from weft import cuda, workers
print(workers.select_gpu(1), len(cuda.gpus), cuda.get_current_device().id)
try:
    workers.select_gpu(1, gpus=["99"])
except RuntimeError as error:
    print("used" in str(error))
"""
    environment = dict.fromkeys(workers.LOCAL_RANKS, "") | {"WEFT_DEVICE": "cuda"}
    gpu, count, current, refused = python("-c", code, **environment).split()
    visible = os.environ.get(workers.VISIBLE)
    names = visible.split(",") if visible else [str(number) for number in range(len(cuda.gpus))]
    assert gpu == names[1 % len(names)]
    assert (count, current, refused) == ("1", "0", "True")
