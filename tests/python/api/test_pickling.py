"""Kernels and configured kernels as pickles."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import weft
from weft import cuda

SCALE = 3


@cuda.jit
def module_kernel(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = SCALE * i


def test_pickle_by_reference_and_by_value() -> None:
    assert pickle.loads(pickle.dumps(module_kernel)) is module_kernel
    factor = 4

    @cuda.jit(fastmath=True)
    def local(out):
        out[0] = factor * SCALE

    copy = pickle.loads(pickle.dumps(local))
    assert copy.targetoptions["fastmath"] is True
    configured = pickle.loads(pickle.dumps(copy[(2, 1), 8, 0, 64]))
    assert (configured.griddim, configured.blockdim, configured.sharedmem) == ((2, 1, 1), (8, 1, 1), 64)
    out = np.zeros(1)
    configured(out)
    cuda.synchronize()
    assert out[0] == 12


def test_pickle_to_another_process(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, pickle
            import numpy as np
            from weft import cuda

            OFFSET = 2

            @cuda.jit(device=True)
            def plus(x):
                return x + OFFSET

            @cuda.jit
            def kernel(out):
                out[cuda.grid(1)] = plus(cuda.grid(1))

            def work(text):
                out = np.zeros(3)
                pickle.loads(text)(out)
                cuda.synchronize()
                return out.tolist()

            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.apply(work, (pickle.dumps(kernel[1, 3]),)))
            """
        )
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert result.stdout == "[2.0, 3.0, 4.0]\n", result.stderr


OTHER_PROCESS = """
import pickle, sys
import numpy as np
configured = pickle.load(open(sys.argv[1], "rb"))
x = np.ones(4)
configured(x, 3.0)
print(x.tolist())
"""


def test_a_configured_kernel_runs_in_another_process(tmp_path):
    source = "from weft import cuda\n\n@cuda.jit\ndef kernel(x, a):\n    i = cuda.grid(1)\n    x[i] *= a\n"
    (tmp_path / "kernels_to_pickle.py").write_text(source)
    dump = "import pickle, sys, kernels_to_pickle as k\npickle.dump(k.kernel[1, 4], open(sys.argv[1], 'wb'))"
    file = tmp_path / "kernel.pickle"
    command = [sys.executable, "-W", "ignore", "-c"]
    subprocess.run([*command, dump, str(file)], cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run(
        [*command, OTHER_PROCESS, str(file)], cwd=tmp_path, check=True, timeout=120, capture_output=True
    )
    assert done.stdout.decode().strip() == "[3.0, 3.0, 3.0, 3.0]"


def test_a_variable_without_a_value_stays_without_one() -> None:
    def make(*, assigned: bool):
        if assigned:
            late = 3

        @cuda.jit
        def kernel(out, on):
            if on is None:
                out[0] = 1
            else:
                out[0] = late

        return kernel

    for assigned, second in ((True, 3), (False, None)):
        copy = pickle.loads(pickle.dumps(make(assigned=assigned)))
        out = np.zeros(1)
        copy[1, 1](out, None)
        assert out[0] == 1
        if second is None:
            with pytest.raises(weft.CompileError, match="late"):
                copy[1, 1](out, 1)
        else:
            copy[1, 1](out, 1)
            assert out[0] == second


TIMES = 5


def computed(kernel, *args) -> list[float]:
    out = np.zeros(4)
    kernel[1, 1](out, *args)
    cuda.synchronize()
    return out.tolist()


def test_defaults_keep_their_values(monkeypatch) -> None:
    """They are evaluated once, at the function's definition, and their names may refer to other objects now."""

    def make():
        gone = 7

        @cuda.jit
        def kernel(out, x=TIMES, y=gone + 1, *, z=TIMES * 2):
            out[0] = x
            out[1] = y
            out[2] = z
            out[3] = TIMES

        del gone
        return kernel

    kernel = make()
    monkeypatch.setitem(globals(), "TIMES", 9)
    expected = [5.0, 8.0, 10.0, 9.0]
    assert computed(kernel) == expected
    copy = pickle.loads(pickle.dumps(kernel))
    assert computed(copy) == expected
    assert computed(pickle.loads(pickle.dumps(copy))) == expected
    assert computed(copy, 1) == [1.0, *expected[1:]]
    configured = pickle.loads(pickle.dumps(kernel[1, 1]))
    out = np.zeros(4)
    configured(out)
    cuda.synchronize()
    assert out.tolist() == expected


def test_defaults_of_device_functions_and_ufuncs_keep_their_values(monkeypatch) -> None:
    @cuda.jit(device=True)
    def inner(x, more=TIMES):
        return x + more

    @cuda.jit(device=True)
    def scaled(x, by=TIMES, function=inner, *, offset=(TIMES, 1)):
        return function(x) * by + offset[0]

    @cuda.jit
    def kernel(out):
        out[0] = scaled(1)
        out[1] = scaled(1, by=TIMES)

    ufunc = weft.vectorize(["float64(float64)"])(lambda x: scaled(x))
    monkeypatch.setitem(globals(), "TIMES", 2)
    assert computed(kernel)[:2] == [35.0, 17.0]
    assert computed(pickle.loads(pickle.dumps(kernel)))[:2] == [35.0, 17.0]
    assert ufunc(1.0) == 35.0
    assert pickle.loads(pickle.dumps(ufunc))(1.0) == 35.0
    total = cuda.reduce(lambda a, b: a + inner(b, 0))
    assert pickle.loads(pickle.dumps(total))(np.arange(4)) == 6


def test_a_default_is_carried_as_a_value_and_annotations_are_left_behind(tmp_path) -> None:
    """Names in a default or an annotation may not exist in another process."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import pickle, sys
            from weft import cuda

            def number():
                print("evaluated")
                return 4

            class Kind: pass

            def make():
                kind = Kind
                @cuda.jit
                def kernel(out: kind, x: kind = number()) -> None:
                    out[0] = x
                return kernel

            pickle.dump(make()[1, 1], open(sys.argv[1], "wb"))
            """
        )
    )
    file = tmp_path / "kernel.pickle"
    made = subprocess.run([sys.executable, script, file], capture_output=True, text=True, check=True, timeout=60)
    assert made.stdout == "evaluated\n"
    load = "import pickle, sys\nimport numpy as np\nx = np.zeros(1)\npickle.load(open(sys.argv[1], 'rb'))(x)\nprint(x)"
    done = subprocess.run([sys.executable, "-c", load, file], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "[4.]\n", done.stderr
