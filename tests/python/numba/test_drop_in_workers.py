"""Objects that programs under the drop-in send to worker processes, and notebooks: see `test_drop_in.py`."""

import importlib.util

import pytest
import test_drop_in

# The same fixture and helper.
env, python = test_drop_in.env, test_drop_in.python


@pytest.mark.parametrize("pool", ["spawn", "forkserver", "joblib", "dask"])
@pytest.mark.parametrize("way", ["script", "module", "install"])
def test_pools(env, pool, way):
    """Functions of the program's own `__main__` reach the workers, with the modules of numba that they use."""
    needs = {"dask": "distributed"}.get(pool, pool)
    if pool in ("joblib", "dask") and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    if way == "install":
        # Plain pickles refer to module globals by name, and so do cloudpickle's.
        text = "import sys, weft.numba; weft.numba.install(); import pools; pools.main()"
        program = ["-c", text, pool]
    else:
        program = ["-m", "weft.numba", *(["pools.py"] if way == "script" else ["-m", "pools"]), pool]
    out = python({**env, "PYTHONWARNINGS": "ignore"}, *program).stdout
    assert out.startswith(f"{pool} [0.0, 3.0, 6.0, 9.0] 90.0 numba.cuda "), out
    assert out.endswith("weft True\n"), out


def test_a_worker_that_is_not_led_is_so_by_what_it_gets(env, tmp_path):
    pytest.importorskip("cloudpickle")
    file = tmp_path / "work.pickle"
    dump = f"""
import sys, cloudpickle
import numpy as np
from numba import cuda, config
@cuda.jit
def kernel(x):
    x[cuda.grid(1)] += 2
def work():
    x = np.ones(3)
    kernel[1, 3](x)
    return x.tolist(), cuda.implementation, config.__name__
open({str(file)!r}, "wb").write(cloudpickle.dumps(work))
"""
    python(env, "-m", "weft.numba", "-c", dump)
    load = f"import pickle; print(*pickle.load(open({str(file)!r}, 'rb'))())"
    out = python(env, "-W", "ignore", "-c", load).stdout
    assert out.startswith("[3.0, 3.0, 3.0] weft numba."), out


@pytest.mark.parametrize("env", ["absent"], indirect=True)
def test_functions_for_the_host_go_by_value(env, tmp_path):
    """The same as with numba. Mutually recursive functions also work, which numba does not support here."""
    pytest.importorskip("cloudpickle")
    file = tmp_path / "functions.pickle"
    dump = f"""
import cloudpickle
import numpy as np
from numba import cuda, njit
BASE = 1
@njit(cache=True)
def even(n, *, base=BASE):
    return BASE == base if n == 0 else odd(n - 1)
@njit
def odd(n):
    return False if n == 0 else even(n - 1)
def make(step):
    @njit
    def stepped(n):
        with np.errstate(all="ignore"):  # what kernels cannot have
            return [n + k * step for k in range(3)]
    return stepped
@cuda.jit
def kernel(out):
    out[0] = 1 if odd(5) else 2
open({str(file)!r}, "wb").write(cloudpickle.dumps((odd, make(4), kernel[1, 1], {{"njit": njit}})))
"""
    python(env, "-W", "ignore", "-m", "weft.numba", "-c", dump)
    load = f"""
import pickle
import numpy as np
odd, stepped, kernel, more = pickle.load(open({str(file)!r}, "rb"))
out = np.zeros(1)
kernel(out)
again = pickle.loads(pickle.dumps(odd))
print(odd(7), stepped(1), out, odd.targetoptions, more["njit"](lambda: 5)(), again(3), again is odd)
import numba
@numba.cuda.jit
def other(out):
    out[0] = 3 if again(4) else 4
other[1, 1](out)
print(out)
"""
    out = python(env, "-W", "ignore", "-m", "weft.numba", "-c", load).stdout
    assert out == "True [1, 5, 9] [1.] {} 5 True False\n[4.]\n"


def test_a_notebook(env, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import weft.numba\nweft.numba.install()",
        "import numpy as np\nfrom numba import cuda, njit",
        "@njit\ndef twice(x):\n    return 2 * x",
        "@cuda.jit\ndef kernel(x):\n    i = cuda.grid(1)\n    if i < x.size:\n        x[i] = twice(x[i])",
        "x = np.arange(4.0)\nkernel[1, 4](x)\nprint(x, cuda.implementation)",
        "@njit\ndef twice(x):\n    return 3 * x",
        "import pickle\ny = np.arange(4.0)\npickle.loads(pickle.dumps(kernel[1, 4]))(y)\nprint(y)",
        "@cuda.jit\ndef wrong(x):\n    x[0] = nothing",
        "try:\n    wrong[1, 1](x)\nexcept Exception as error:\n    print('x[0] = nothing' in str(error))",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, tmp_path / "notebook.ipynb")
    code = (
        "import sys, nbformat, nbclient\n"
        "notebook = nbformat.read(sys.argv[1], 4)\n"
        "nbclient.NotebookClient(notebook, timeout=120, kernel_name='python3').execute()\n"
        "print(*(out.text for cell in notebook.cells for out in cell.outputs if out.get('name') == 'stdout'), sep='')"
    )
    done = python({**env, "JUPYTER_PLATFORM_DIRS": "1"}, "-W", "ignore", "-c", code, tmp_path / "notebook.ipynb")
    # A compiled kernel uses the first function of a name; a copy uses the current one.
    assert done.stdout.split("\n")[:3] == ["[0. 2. 4. 6.] weft", "[0. 3. 6. 9.]", "True"]
