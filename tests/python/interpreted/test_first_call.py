"""`WEFT_DEVICE=python` selects the interpreter, whichever call of weft is the first of a process.

A hook counts the breakpoints at which threads stop; compiled code has none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.cpu

HEAD = """
import contextlib, os, pdb, sys
import numpy as np
import weft
from weft import cuda
from weft.cuda import cg

seen = []
sys.breakpointhook = lambda *args, **kwargs: seen.append(cuda.threadIdx)

@cuda.jit
def kernel(x):
    i = cuda.grid(1)
    breakpoint()
    if i < x.size:
        x[i] += 1

x = np.zeros(4)
"""

FIRST = {
    "one block": "kernel[1, 4](x)",
    "few blocks": "kernel[127, 1](x)",
    "many blocks": "kernel[128, 1](x)",
    "a grid of two dimensions": "kernel[(200, 1), (1, 1)](x)",
    "forall": "kernel.forall(4)(x)",
    "forall with a block": "kernel.forall(4, 2)(x)",
    "keyword arguments": "kernel[200, 1](x=x)",
    "a configured launch": "kernel.configure(200, 1)(x)",
    "a stream": "kernel[200, 1, cuda.stream()](x)",
    "the default stream": "kernel[200, 1, cuda.default_stream()](x)",
    "dynamic shared memory": "kernel[200, 1, 0, 64](x)",
    "an array of the device": "y = cuda.to_device(x)\nkernel[200, 1](y)\nx = y.copy_to_host()",
    "a copy hint": "kernel[200, 1](cuda.InOut(x))",
    "a signature": "kernel = cuda.jit('void(float64[::1])')(kernel.py_func)\nkernel[200, 1](x)",
    "two signatures": """
        kernel = cuda.jit(["void(float64[::1])", "void(float32[::1])"])(kernel.py_func)
        kernel[200, 1](x)
    """,
    "compile": """
        kernel.compile("void(float64[::1])")
        kernel[200, 1](x)
    """,
    "a kernel that was compiled": """
        made = kernel.compile("void(float64[::1])")
        made.launch((x,), 200, 1)
    """,
    "specialize": "kernel.specialize(x)[200, 1](x)",
    "prepare": """
        y = cuda.to_device(x)
        ready = kernel[200, 1].prepare(y)
        assert seen == []
        ready()
        x = y.copy_to_host()
    """,
    "vectorize": """
        @weft.vectorize(["float64(float64)"], target="cuda")
        def more(a):
            breakpoint()
            return a + 1

        x = more(x)
    """,
    "vectorize without signatures": """
        @weft.vectorize(target="cuda")
        def more(a):
            breakpoint()
            return a + 1

        x = more(x)
    """,
    "guvectorize": """
        @weft.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="cuda")
        def more(a, out):
            for i in range(a.size):
                breakpoint()
                out[i] = a[i] + 1

        x = more(x)
    """,
    "reduce": """
        @cuda.reduce
        def total(a, b):
            breakpoint()
            return a + b

        x[:] = total(np.ones(4)) / 4
    """,
    "a cooperative launch": """
        @cuda.jit
        def kernel(x):
            i = cuda.grid(1)
            breakpoint()
            cg.this_grid().sync()
            if i < x.size:
                x[i] += 1

        kernel[2, 2](x)
    """,
    "a cluster": "kernel[200, 1, 0, 0, 2](x)",
    "after a fork": """
        child = os.fork()
        if child:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        kernel[200, 1](x)
    """,
    "in a thread": """
        import threading

        thread = threading.Thread(target=lambda: kernel[200, 1](x))
        thread.start()
        thread.join()
    """,
    "a configuration that is saved": "launcher = kernel[200, 1]\nlauncher(x)",
    "a callback before the launch": """
        launcher = kernel[200, 1]
        launcher.pre_launch_callbacks.append(lambda made, config: None)
        launcher(x)
    """,
}


def run(program: str, tmp_path, **env: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, path],
        env=os.environ | {"WEFT_DEVICE": "python", "WEFT_DEBUG_THREAD": "any", "WEFT_DEBUG_BLOCK": "any"} | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("first", FIRST)
def test_it_is_interpreted(first, tmp_path):
    done = run(textwrap.dedent(FIRST[first]) + "\nassert seen, 'it was compiled'\nassert (x == 1).all(), x\n", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_graph_is_refused_at_once(tmp_path):
    program = """
        y = cuda.to_device(x)
        try:
            with cuda.graph():
                kernel[200, 1](y)
        except RuntimeError as error:
            assert "WEFT_DEVICE=cpu" in str(error), error
        else:
            raise AssertionError
        """
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nobody_is_told_what_he_has_done(tmp_path):
    """With `WEFT_DEVICE=python`, the error for a breakpoint in compiled code says to launch the kernel, not to set the
    variable."""
    program = """
        kernel.compile("void(float64[::1])")

        @cuda.jit
        def traced(x):
            pdb.set_trace()
            x[0] = 1

        for make in (
            lambda: traced.compile("void(float64[::1])"),
            lambda: traced.inspect_asm("void(float64[::1])"),
            lambda: kernel.inspect_asm("void(float64[::1])"),
        ):
            try:
                make()
            except weft.CompileError as error:
                assert "WEFT_DEVICE=python" not in str(error), error
                assert "launch the kernel" in str(error), error
            else:
                raise AssertionError
        """
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("kernel[200, 1](x)", tmp_path, WEFT_DEVICE="cpu")
    assert "set the environment variable WEFT_DEVICE=python" in done.stderr
