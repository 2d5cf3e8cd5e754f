"""Other features than kernels under the drop-in: pytest, reductions, test helpers; see `test_drop_in.py`."""

import pytest
import test_drop_in

# The same fixture and helper.
env, python = test_drop_in.env, test_drop_in.python


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "weft.numba", "-m", "pytest"],
        ["-c", "import sys, weft, pytest; sys.exit(pytest.main(sys.argv[1:]))"],
        ["-m", "pytest"],
    ],
    ids=["drop-in", "weft is imported first", "pytest alone"],
)
def test_pytest_where_warnings_are_errors(env, tmp_path, command):
    """pytest warns about packages with plugins that are imported before it starts."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "test_it.py").write_text(
        "import weft.cuda\ndef test_it(pytestconfig):\n    pytestconfig.getoption('--weft-sanitize')\n"
    )
    done = python(env, *command, "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "1 passed" in done.stdout
    assert "warning" not in done.stdout + done.stderr


def test_totals_of_device_arrays_are_numpys_numbers(env):
    out = python(env, "-m", "weft.numba", "totals.py").stdout
    assert out.splitlines() == [
        "True 16 4.0 4.0",
        "DeviceNDArray DeviceNDArray",
        "True True 16",
        "DeviceNDArray 16",
        "True weft",
        "DeviceNDArray False",
    ]


def test_helpers_of_tests(env):
    assert python(env, "-m", "weft.numba", "helpers.py").stdout == "5 1 1 []\n1 True True\n"


def test_cuda_that_the_environment_disables(env):
    without = {name: value for name, value in env.items() if name != "WEFT_DEVICE"}
    uses = ["a launch", "a copy", "the device", "the devices", "a list of them"]
    shown = python({**without, "NUMBA_DISABLE_CUDA": "1"}, "-m", "weft.numba", "disabled.py").stdout.splitlines()
    assert shown == ["False 1", *(f"{use} True" for use in uses), "True"]
    shown = python({**without, "NUMBA_DISABLE_CUDA": "0"}, "-m", "weft.numba", "disabled.py").stdout.splitlines()
    assert shown == ["True 0", "True"]
