"""Which GPU a worker has: one of several processes of a machine that share its GPUs.

CUDA reads ``CUDA_VISIBLE_DEVICES`` when a process first uses it. `select_gpu` sets it to one GPU before that, so that
all threads of the worker, and all its libraries, have that one as their device 0. Dask, Ray, MPI or `multiprocessing`
start and schedule the workers; this module does not.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VISIBLE = "CUDA_VISIBLE_DEVICES"

LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK",  # Open MPI
    "MPI_LOCALRANKID",  # Intel MPI, MPICH
    "MV2_COMM_WORLD_LOCAL_RANK",  # MVAPICH
    "PALS_LOCAL_RANKID",  # HPE Cray
    "SLURM_LOCALID",  # srun
    "LOCAL_RANK",  # torchrun
)
"""Variables in which launchers pass a process its number among those of its machine."""


def local_number() -> int | None:
    """Return this process's number among the workers of its machine, starting at 0; None if it is unknown.

    That is what its launcher says in one of `LOCAL_RANKS`, else the number that `multiprocessing` gave it, as to the
    workers of ``ProcessPoolExecutor``, ``multiprocessing.Pool`` and joblib.

    Returns
    -------
    int or None
        From 0.

    Raises
    ------
    ValueError
        A launcher's variable has no number.

    Examples
    --------
    >>> weft.workers.local_number() is None  # this process is not a worker
    True
    """
    for name in LOCAL_RANKS:
        if text := os.environ.get(name):
            try:
                return int(text)
            except ValueError:
                msg = f"the environment variable {name} must be a worker's number, not {text!r}"
                raise ValueError(msg) from None
    import multiprocessing

    numbers: tuple[int, ...] = getattr(multiprocessing.current_process(), "_identity", ())
    return numbers[-1] - 1 if numbers else None


def select_gpu(number: int | None = None, *, gpus: Sequence[int | str] | int | None = None) -> str | None:
    """Give this process one GPU: worker n has that of number n, beginning again where there are fewer GPUs.

    Call it before the process uses a device, in a worker's initializer. Where kernels run on the CPU
    (``WEFT_DEVICE=cpu`` or no GPU) there is nothing to choose, and it does nothing.

    Parameters
    ----------
    number
        The worker's number among those of its machine, from 0. If None, `local_number` says it.
    gpus
        The GPUs to choose from, as ``CUDA_VISIBLE_DEVICES`` names them, or how many there are. If None, those of that
        variable; where it is not set, all, which a process that is started for it counts, as this one must not use
        CUDA yet.

    Returns
    -------
    str or None
        The new value of ``CUDA_VISIBLE_DEVICES``; None if no GPU was chosen.

    Raises
    ------
    RuntimeError
        The process has used a device before.
    ValueError
        The number is unknown or negative, or `gpus` is empty.

    Examples
    --------
    >>> from concurrent.futures import ProcessPoolExecutor
    >>> from multiprocessing import get_context
    >>> pool = ProcessPoolExecutor(4, get_context("spawn"), initializer=weft.workers.select_gpu)  # doctest: +SKIP
    """
    from weft import _weft

    if number is None:
        number = local_number()
        if number is None:
            msg = f"the number of this worker is unknown: pass `number`, or set one of {LOCAL_RANKS}"
            raise ValueError(msg)
    if number < 0:
        msg = f"`number` must be at least 0, not {number}"
        raise ValueError(msg)
    used = _weft.is_device_chosen()
    if (_weft.device_kind() if used else os.environ.get("WEFT_DEVICE")) == "cpu":
        return None
    choices = _choices(gpus)
    if not choices:
        return None
    chosen = choices[number % len(choices)]
    if used and os.environ.get(VISIBLE) != chosen:
        msg = f"this process has already used a device: call `select_gpu` earlier, or start it with {VISIBLE} set"
        raise RuntimeError(msg)
    os.environ[VISIBLE] = chosen
    return chosen


def _choices(gpus: Sequence[int | str] | int | None) -> list[str]:
    """Give the GPUs to choose from as `CUDA_VISIBLE_DEVICES` names them; none where there are none."""
    visible = os.environ.get(VISIBLE)
    if gpus is None and visible is None:
        return [str(number) for number in range(_count())]
    if gpus is None:
        # CUDA ends the list at the first invalid number, such as -1.
        named = [name.strip() for name in (visible or "").split(",")]
        ends = [at for at, name in enumerate(named) if name in ("", "-1")]
        return named[: ends[0]] if ends else named
    if isinstance(gpus, int):
        gpus = range(gpus)
    choices = [str(gpu) for gpu in gpus]
    if not choices:
        msg = "`gpus` is empty"
        raise ValueError(msg)
    return choices


def _count() -> int:
    """Count the GPUs in a process of its own: where this one counted them, CUDA would have read the variable."""
    import subprocess
    import sys

    code = "from weft import _weft; print(_weft.device_count() if _weft.device_kind() == 'cuda' else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"the GPUs could not be counted; set {VISIBLE} or pass `gpus`:\n{done.stderr.strip()}"
        raise RuntimeError(msg)
    return int(done.stdout)


__all__ = ["LOCAL_RANKS", "VISIBLE", "local_number", "select_gpu"]
