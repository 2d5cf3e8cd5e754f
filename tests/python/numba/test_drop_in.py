"""Unmodified programs for numba.cuda, by `python -m weft.numba` and by `install`.

Each runs in a separate process: once without numba, which an import hook hides if it is installed, and once with numba
if it is installed.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
SITE = "weft/numba/_site"

EXPECTED = """\
total 328350.0
triangle 45
fill [0. 1. 2.]
records [(0., 0) (1., 1) (2., 4)]
random True
caught CompileError
[700] an address 700
dtype float32
module weft
"""


def has_numba():
    # The folder of these tests is found as a namespace package, which has no origin.
    spec = importlib.util.find_spec("numba")
    return spec is not None and spec.origin is not None


@pytest.fixture(params=["absent", "present"])
def env(request, tmp_path):
    """The environment of processes without numba, or with it."""
    found = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    paths = [path for path in found.get("PYTHONPATH", "").split(os.pathsep) if path]
    if request.param == "present":
        if not has_numba():
            pytest.skip("numba is not installed")
    elif has_numba():
        # The drop-in has a `sitecustomize`, too, which must run this one.
        (tmp_path / "sitecustomize.py").write_text(
            """
import sys

class Hide:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "numba":
            sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "PathFinder"]
        return None

import importlib.machinery
_find = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name == "numba" else _find(name, path, target)
)
"""
        )
        paths.insert(0, str(tmp_path))
    found["PYTHONPATH"] = os.pathsep.join(paths)
    return found


def python(env, *args, status=0, cwd=PROGRAMS, **kwargs):
    done = subprocess.run(
        [sys.executable, *map(str, args)], env=env, cwd=cwd, capture_output=True, text=True, timeout=300, **kwargs
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def code(env, text, **kwargs):
    return python(env, "-c", "import weft.numba\nweft.numba.install()\n" + text, **kwargs).stdout


@pytest.mark.parametrize("way", ["script", "module", "install"])
def test_kernels(env, way):
    if way == "script":
        done = python(env, "-m", "weft.numba", "kernels.py")
    elif way == "module":
        done = python(env, "-m", "weft.numba", "-m", "kernels")
    else:
        done = python(env, "-c", "import weft.numba; weft.numba.install(); import kernels; kernels.main()")
    assert done.stdout == EXPECTED


@pytest.mark.parametrize("way", ["script", "module"])
def test_processes(env, way):
    program = ["processes.py"] if way == "script" else ["-m", "processes"]
    out = python(env, "-m", "weft.numba", *program, "spawn", "fork", "forkserver").stdout
    assert out == "spawn weft 20\nfork weft 20\nforkserver weft 20\nchild weft\n"


def test_pytest(env):
    done = python(
        env, "-m", "weft.numba", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "checked.py"
    )
    assert "4 passed" in done.stdout


def test_code_and_standard_input(env):
    text = """
import sys
import numpy as np
from numba import cuda
@cuda.jit
def one(x):
    x[0] = 1
x = np.zeros(1)
one[1, 1](x)
print(x[0], sys.argv, __name__)
"""
    assert python(env, "-m", "weft.numba", "-c", text, "a").stdout == "1.0 ['-c', 'a'] __main__\n"
    assert python(env, "-m", "weft.numba", "-", "a", input=text).stdout == "1.0 ['-', 'a'] __main__\n"


def test_a_program_sees_what_it_would_see_under_python(env, tmp_path):
    file = tmp_path / "folder" / "program.py"
    file.parent.mkdir()
    (file.parent / "beside.py").write_text("name = __name__\n")
    file.write_text(
        """
import atexit, sys, __main__
import beside
value = 5
atexit.register(lambda: print("at exit", __main__.value))
print(__name__, __file__, __spec__, sys.argv, sys.path[0], beside.name, __main__.__file__ == __file__)
sys.exit(3)
"""
    )
    plain = python(env, file, "x", "-y", status=3).stdout
    assert python(env, "-m", "weft.numba", file, "x", "-y", status=3).stdout == plain


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        ([], 2, "usage"),
        (["--help"], 0, "usage"),
        (["-x"], 2, "weft.numba has no option -x"),
        (["-m"], 2, "argument expected for -m"),
        (["nothing.py"], 2, "can't open file 'nothing.py': No such file or directory"),
    ],
)
def test_arguments_that_are_wrong(env, args, status, words):
    done = python(env, "-m", "weft.numba", *args, status=status)
    assert words in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("from numba.cuda import cgutils", ImportError, "weft does not use llvmlite"),
        (
            "from numba.cuda.cudaimpl import lower; lower(1)",
            NotImplementedError,
            "with `numba.cuda.extending.overload`",
        ),
        (
            "from numba.cuda.cudaimpl import lower_attr; lower_attr(1)",
            NotImplementedError,
            "`numba.cuda.extending.overl",
        ),
        (
            "from numba.cuda.cudadecl import registry; registry.register(int)",
            NotImplementedError,
            "weft does not use llvmlite",
        ),
        ("from numba.cuda.cudaimpl import registry; registry.lower(int)", NotImplementedError, "with `weft.cuda.intri"),
        ("from numba.cuda.mathimpl import lower", ImportError, "register it with `numba.cuda.extending.overload`"),
        ("import numba.cuda.models", ImportError, "weft does not use llvmlite"),
        ("from numba.cuda.typing.templates import signature", ImportError, "weft does not use llvmlite"),
        ("from numba.cuda.extending import lower_builtin; lower_builtin(1)", NotImplementedError, "with `overload`"),
        ("from numba.cuda.cudadrv.nvvm import compile_ir", ImportError, "`cuda.compile_ptx` compiles"),
        ("from numba.cuda import nothing", ImportError, "weft has no numba.cuda.nothing"),
        ("from numba import cuda; cuda.nothing", AttributeError, "weft has no numba.cuda.nothing"),
        ("import numba.cuda.cudadrv.nothing", ImportError, "weft has no numba.cuda.cudadrv.nothing"),
        ("from numba.cuda.types import unicode_type", ImportError, "weft has no numba.cuda.types.unicode_type"),
    ],
)
def test_names_that_weft_lacks(env, statement, error, words):
    out = code(env, f"try:\n    {statement}\nexcept {error.__name__} as error:\n    print(error)")
    assert words in out
    if error is not NotImplementedError:
        out = code(env, "from numba import cuda\nprint(hasattr(cuda, 'nothing'), getattr(cuda, 'nothing', 3))")
        assert out == "False 3\n"


def test_programs_without_a_device(env):
    """Replacements for functions that need a device."""
    text = """
from numba.cuda.cudadrv.driver import _raise_driver_not_found
from numba.cuda.cudadrv.error import CudaSupportError
try:
    _raise_driver_not_found()
except CudaSupportError as error:
    print(str(error)[:26])
"""
    assert code(env, text) == "no CUDA device can be used\n"


@pytest.mark.parametrize("env", ["absent"], indirect=True)
def test_literal_unroll(env):
    text = """
import numpy as np
from numba import cuda, literal_unroll
values = (1, 2.5)
@cuda.jit
def kernel(out):
    for value in literal_unroll(values):
        out[0] += value
out = np.zeros(1)
kernel[1, 1](out)
print(out[0])
"""
    assert code({**env, "PYTHONWARNINGS": "ignore"}, text) == "3.5\n"


@pytest.mark.parametrize("env", ["absent"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "from numba import jitclass",
            "numba.jitclass compiles for the host, which weft does not support",
        ),
        ("from numba.typed import Dict", "numba.typed compiles for the host"),
        ("from numba.core import cgutils", "weft does not use llvmlite"),
        ("import numba.parfors", "numba is not installed, and weft does not replace numba.parfors"),
    ],
)
def test_names_that_numba_would_have(env, statement, words):
    assert words in code(env, f"try:\n    {statement}\nexcept ImportError as error:\n    print(error)")


def test_numbas_settings_lead_to_wefts(env):
    asked = {
        "NUMBA_ENABLE_CUDASIM": "1",
        "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",
        "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY": "0",
        "NUMBA_CUDA_DEBUGINFO": "1",
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CUDA_DEFAULT_PTX_CC": "8.6",
    }
    assert code({**env, **asked}, "from numba import config; print(config.CUDA_DEFAULT_PTX_CC)") == "(8, 6)\n"
    show = "from weft import config as c\nprint(c.CUDA_LOW_OCCUPANCY_WARNINGS, c.CUDA_WARN_ON_IMPLICIT_COPY, c.DEBUG)"
    assert code({**env, **asked}, show) == "0 0 1\n"
    without = {key: value for key, value in env.items() if key != "WEFT_DEVICE"}
    assert code({**without, **asked}, "import os; print(os.environ['WEFT_DEVICE'])") == "cpu\n"
    bounds = "from weft import config as c; from numba import config as n; print(c.BOUNDSCHECK, n.BOUNDSCHECK)"
    assert code({**env, **asked}, bounds) == "1 1\n"
    # weft's own variables take precedence, and `uninstall` removes those that were set.
    assert code({**env, **asked, "WEFT_LOW_OCCUPANCY_WARNINGS": "1"}, show) == "1 0 1\n"
    left = "weft.numba.uninstall()\nimport os; print([n for n in os.environ if n in ('WEFT_DEBUG', 'PYTHONPATH')])"
    assert "WEFT_DEBUG" not in code({**env, **asked}, left)


def test_a_setting_of_numbas_that_weft_lacks_is_named(env):
    done = python({**env, "NUMBA_OPT": "0"}, "-c", "import weft.numba; weft.numba.install()")
    assert "weft has no setting for NUMBA_OPT=0, which is ignored: pass `opt=False`" in done.stderr


def test_what_is_written_to_numbas_config_weft_hears(env):
    out = code(
        env,
        """
from weft import config
from numba import cuda
import numba.core.config
numba.core.config.CUDA_WARN_ON_IMPLICIT_COPY = 0
print(config.CUDA_WARN_ON_IMPLICIT_COPY, numba.config.CUDA_WARN_ON_IMPLICIT_COPY)
print(numba.core.config.ENABLE_CUDASIM, numba.config.DISABLE_JIT, numba.config.NUMBA_NUM_THREADS > 0)
""",
    )
    assert out == "0 0\n0 0 True\n"


def test_uninstall(env):
    out = code(
        env,
        f"""
import os, sys
before = [f for f in sys.meta_path if type(f).__module__ == "weft.numba._finder"]
from numba import cuda
print(len(before), weft.numba.is_installed(), {SITE!r} in os.environ["PYTHONPATH"], cuda.implementation)
weft.numba.install()
weft.numba.uninstall()
weft.numba.uninstall()
print([f for f in sys.meta_path if type(f).__module__ == "weft.numba._finder"], weft.numba.is_installed())
print({SITE!r} in os.environ.get("PYTHONPATH", ""), "numba.cuda" in sys.modules)
from weft import errors
print([c.__module__ for c in errors.CompileError.__mro__ if c.__module__.partition(".")[0] == "numba"])
weft.numba.install(processes=False)
print({SITE!r} in os.environ.get("PYTHONPATH", ""))
import numba.cuda
print(numba.cuda.implementation)
""",
    )
    assert out == "1 True True weft\n[] False\nFalse False\n[]\nFalse\nweft\n"


def test_errors_of_weft_are_numbas(env):
    out = code(
        env,
        """
import re
from weft import errors
import numba.core.errors as n
import numba.cuda.cudadrv.driver as d, numba.cuda.cudadrv.error as e, numba.cuda.core.errors as c, numba.cuda.errors
for own, theirs in [
    (errors.CompileError, (n.TypingError, n.LoweringError, n.UnsupportedError, n.NumbaError, c.TypingError)),
    (errors.PerformanceWarning, (n.NumbaPerformanceWarning, n.NumbaWarning, c.NumbaPerformanceWarning)),
    (errors.InvalidConfigWarning, (n.NumbaInvalidConfigWarning,)),
    (errors.LaunchError, (d.CudaAPIError, e.CudaDriverError)),
    (errors.CudaSupportError, (e.CudaSupportError, ImportError)),
    (c.NumbaValueError, (n.NumbaValueError, n.TypingError)),
]:
    print(own.__name__, [issubclass(own, cls) for cls in theirs])
made = n.TypingError("text"), d.CudaAPIError(1, "text"), c.NumbaValueError("text"), errors.LaunchError("text", 1)
for error in made:
    # numba's own draws its text in bold where it may.
    print(re.sub("\\x1b\\[[0-9;]*m", "", str(error)), error.msg)
print(numba.cuda.errors.KernelRuntimeError is errors.KernelRuntimeError)
""",
    )
    assert "False" not in out
    assert out.endswith("text text\n[1] text text\ntext text\ntext text\nTrue\n")


def test_errors_of_the_driver_are_cuda_cores(env):
    """numba-cuda uses `cuda.core`, so programs catch its exception class, imported before or after weft."""
    loaded = """
import sys, types
module = types.ModuleType("cuda.core._utils.cuda_utils")
class CUDAError(Exception):
    pass
module.CUDAError = CUDAError
"""
    text = f"""
from numba import cuda
import numpy as np

@cuda.jit
def nothing():
    pass

def caught():
    try:
        nothing[1, 4096]()
    except Exception as error:
        return error

assert "CUDAError" not in [cls.__name__ for cls in type(caught()).__mro__]
{loaded}
sys.modules[module.__name__] = module
error = caught()
assert isinstance(error, CUDAError) and isinstance(error, cuda.CudaAPIError), type(error).__mro__
print(error.code, "CUDA_ERROR_INVALID_VALUE" in str(error))
"""
    assert code({**env, "WEFT_DEVICE": "cpu"}, text) == "1 True\n"


def test_what_goes_around_launches(env):
    text = """
from numba import cuda
from numba.cuda import launchconfig
from numba.cuda.args import ArgHint, In, InOut, Out, wrap_arg
from numba.cuda.compiler import CompileResult
from numba.cuda.core.errors import DeprecationError
import numpy as np

class DefaultIn:
    def prepare_args(self, ty, val, **kwargs):
        return ty, wrap_arg(val, default=In)

@cuda.jit
def three(x):
    x[0] = 3

three.extensions.append(DefaultIn())
x = np.zeros(1)
with launchconfig.capture_compile_config(three) as record:
    three[1, 1](x)
print(x, record["config"].blockdim, isinstance(InOut(x), Out), isinstance(wrap_arg(x), ArgHint))
print(isinstance(three.compile_device("(float64[:],)"), CompileResult))
try:
    cuda.jit(argtypes=[])
except DeprecationError as error:
    print("deprecated")
"""
    assert code({**env, "WEFT_DEVICE": "cpu"}, text) == "[0.] (1, 1, 1) True True\nTrue\ndeprecated\n"


def test_numbas_functions_for_the_host(env):
    out = code(
        env,
        """
import pickle, warnings
import numba
import numpy as np
from numba import cuda, njit, prange, vectorize, guvectorize

@njit(["float64(float64)"], fastmath=True)
def half(x):
    return x / 2

@njit(parallel=True)
def sum_of(n):
    total = 0.0
    for i in prange(n):
        total += half(float(i))
    return total

@vectorize(["float32(float32, float32)"], target="cuda")
def add(x, y):
    return x + y

@guvectorize(["void(float32[:], float32[:])"], "(n)->()", target="cuda")
def sums(x, out):
    out[0] = 0
    for value in x:
        out[0] += value

@cuda.jit
def kernel(out):
    out[0] = half(3.0) + sum_of(4)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(half(3.0), sum_of(4), half.py_func(1.0), sum(issubclass(w.category, RuntimeWarning) for w in caught))
out = np.zeros(1)
kernel[1, 1](out)
print(out[0], add(np.ones(2, np.float32), np.float32(1)), sums(np.ones((2, 3), np.float32)))
print([str(w.message)[:46] for w in caught if "not installed" in str(w.message)] in (
    [], ["numba is not installed, so `half` and other fu"]))
""",
    )
    assert out == "1.5 3.0 0.5 0\n4.5 [2. 2.] [3. 3.]\nTrue\n"


@pytest.mark.parametrize("env", ["absent"], indirect=True)
def test_what_the_host_cannot_have_without_numba(env):
    out = code(
        env,
        """
from numba import jit, njit, vectorize
wrong = lambda: njit(nonsense=1), lambda: njit(3), lambda: vectorize(lambda x: x)(1), lambda: vectorize(target="x")
for make in wrong:
    try:
        make()
    except Exception as error:
        print(type(error).__name__, str(error).strip('"')[:70])

class Owner:
    @jit
    def method(self, x):
        return x + 1

print(Owner().method(1), Owner.method)
""",
    )
    assert out.splitlines() == [
        "KeyError Unrecognized options: 'nonsense'. numba.jit has boundscheck, cache, de",
        "TypeError numba.jit() takes a Python function, not int",
        "NotImplementedError numba.vectorize(target='cpu') compiles for the host, which weft does n",
        "ValueError Unsupported target: x",
        "2 <numba.njit function Owner.method, run by CPython>",
    ]


def test_another_sitecustomize_runs_too(env, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.customized = __name__\n")
    led = {**env, "PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], str(tmp_path / "own")])}
    child = "import sys; print(customized, sys.modules['sitecustomize'].__file__.endswith('own/sitecustomize.py'))"
    if (tmp_path / "sitecustomize.py").exists():
        pytest.skip("the one that hides numba comes before it")
    text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)"
    assert code(led, text) == "sitecustomize True\n"


def test_a_process_that_imports_no_numba_loads_no_weft(env):
    child = "import sys; print('weft' in sys.modules, any('_site' in path for path in sys.path))"
    text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)"
    assert code(env, text) == "False False\n"


def test_numba_cudas_redirector_stands_aside(env):
    out = code(
        {**env},
        """
weft.numba.uninstall()
import sys
class NumbaCudaFinder:
    def find_spec(self, name, path, target=None):
        if "numba.cuda" in name:
            for finder in sys.meta_path:
                finder.find_spec(name, path, target)
NumbaCudaFinder.__module__ = "_numba_cuda_redirector"
redirector = NumbaCudaFinder()
sys.meta_path.insert(0, redirector)
weft.numba.install()
print(redirector in sys.meta_path)
from numba.cuda import cudadrv
try:
    import numba.cuda.nothing
except ImportError as error:
    print(str(error)[:31])
weft.numba.uninstall()
print(sys.meta_path[0] is redirector)
""",
    )
    assert out == "False\nweft has no numba.cuda.nothing:\nTrue\n"


def test_every_module_of_the_table_can_be_imported_with_its_names(env):
    out = code(
        env,
        """
import importlib
from weft.numba._modules import MODULES, _NAMES
from weft.numba import _finder
has_numba = weft.numba._installed.finder.has_numba
names = [name for name in MODULES if not has_numba or _finder.is_cuda(name)]
for name in names:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()) if isinstance(module, _finder.Facade) else ():
        assert getattr(module, public, None) is not None or public == "none", (name, public)
for full in _NAMES:
    module, _, name = full.rpartition(".")
    assert module not in names or getattr(importlib.import_module(module), name) is not None, full
print("done")
""",
    )
    assert out == "done\n"


@pytest.mark.parametrize("env", ["present"], indirect=True)
def test_numba_that_is_loaded_already(env):
    text = """
import numba
import weft.numba
weft.numba.install()
print(numba.cuda.implementation)
from numba import cuda
from numba.core.errors import TypingError
from weft.errors import CompileError
print(cuda is numba.cuda, issubclass(CompileError, TypingError))
"""
    assert python(env, "-c", text).stdout == "weft\nTrue True\n"


def test_workers_of_pytest_are_led_too(env):
    pytest.importorskip("xdist")
    options = ["-q", "-n", "1", "-p", "no:cacheprovider", "-c", os.devnull]
    assert "4 passed" in python(env, "-m", "weft.numba", "-m", "pytest", *options, "checked.py").stdout
