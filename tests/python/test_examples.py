"""Every example runs unmodified, and reports that its result is right."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NEEDS = {"13_dask_stencil": "distributed", "14_mpi_monte_carlo": "mpi4py.MPI"}


def missing(module):
    """Why a module cannot be imported, or None. The import of mpi4py fails if there is no MPI library."""
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        return f"{module} is not installed"
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    return f"{module}: {done.stderr.strip().splitlines()[-1]}" if done.returncode else None


def check(*command, **environment):
    done = subprocess.run(
        [*map(str, command)], env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong" not in done.stdout.lower()
    assert done.stdout.strip()
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    if path.stem in NEEDS and (reason := missing(NEEDS[path.stem])):
        pytest.skip(reason)
    check(sys.executable, path)


# Barriers in shared memory, bulk copies and products of a warpgroup.
SIMULATED = ("22_warpgroup_matmul", "23_warpgroup_attention", "24_int8_matmul", "25_stencil_boxes")


@pytest.mark.cpu
@pytest.mark.parametrize("name", SIMULATED)
def test_example_in_the_simulator_of_ptx(name):
    path = next(path for path in EXAMPLES if path.stem == name)
    check(sys.executable, path, WEFT_DEVICE="ptx")


def test_there_are_examples():
    assert len(EXAMPLES) >= 11


def test_more_workers_than_gpus():
    if reason := missing("distributed"):
        pytest.skip(reason)
    path = next(path for path in EXAMPLES if path.stem == "13_dask_stencil")
    assert "in 3 workers: ok" in check(sys.executable, path, 3)


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_of_mpi(processes):
    if reason := missing("mpi4py.MPI"):
        pytest.skip(reason)
    mpiexec = shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    path = next(path for path in EXAMPLES if path.stem == "14_mpi_monte_carlo")
    # Open MPI rejects root and more processes than cores unless these are set; other MPIs do not read them.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    allowed |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    assert f"in {processes} processes: ok" in check(mpiexec, "-n", processes, sys.executable, path, **allowed)
