"""Random numbers in kernels, and the arrays of states that some of them need.

`xoroshiro128p_uniform_float32(states, index)` and its like are Numba's: each thread moves on a state of its own, and
the numbers are the same, bit for bit. `philox_uniform_float32(seed, sequence, offset)` and its like need no states: the
number is a function of the arguments, and the same as cuRAND's. docs/reference/intrinsics.md lists all.

Numba's functions can also be called outside kernels, on NumPy arrays with the dtype `xoroshiro128p_dtype`.
"""

from __future__ import annotations

import math

from weft import _weft
from weft.cuda._kernel_names import MemberName, member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np

    from weft._weft import Type
    from weft.cuda._memory.device_array import DeviceNDArray
    from weft.cuda._random_names import *  # noqa: F403

    xoroshiro128p_dtype: np.dtype[np.void]
    xoroshiro128p_type: Type

_WORD = (1 << 64) - 1
_JUMP = 0xD86B048B86AA9922_BEAC0467EBA5FACB


def create_xoroshiro128p_states(n: int, seed: float, subsequence_start: int = 0, stream: Any = 0) -> DeviceNDArray:
    """Make a device array of the states of generators whose sequences do not meet.

    Each state is 2**64 steps ahead of the one before it.

    Parameters
    ----------
    n
        How many states.
    seed
        A number, of which the lower 64 bits are used; the fraction of a float is ignored.
    subsequence_start
        How many states to leave out before the first.
    stream
        The stream to copy in.

    Returns
    -------
    DeviceNDArray
        Shape ``(n,)``, dtype `xoroshiro128p_dtype`.

    Raises
    ------
    ValueError
        A number is negative.
    DeviceMemoryError
        The device has no memory left.

    Examples
    --------
    >>> states = cuda.random.create_xoroshiro128p_states(64, seed=1)
    >>> @cuda.jit
    ... def draw(states, out):
    ...     i = cuda.grid(1)
    ...     out[i] = cuda.random.xoroshiro128p_uniform_float32(states, i)
    >>> out = np.zeros(64, np.float32)
    >>> draw[1, 64](states, out)
    >>> bool((0 <= out).all() and (out < 1).all())
    True
    """
    from weft.cuda._memory.making import device_array

    states = device_array(n, dtype=_dtype(), stream=stream)
    init_xoroshiro128p_states(states, seed, subsequence_start, stream)
    return states


def init_xoroshiro128p_states(states: DeviceNDArray, seed: float, subsequence_start: int = 0, stream: Any = 0) -> None:
    """Set the states of generators, as `create_xoroshiro128p_states` does.

    Parameters
    ----------
    states
        A device array of one dimension with the dtype `xoroshiro128p_dtype`.
    seed
        A number, of which the lower 64 bits are used; the fraction of a float is ignored.
    subsequence_start
        How many states to leave out before the first.
    stream
        The stream to copy in.

    Raises
    ------
    ValueError
        The states have another number of dimensions than one.

    Examples
    --------
    >>> states = cuda.random.create_xoroshiro128p_states(64, seed=1)
    >>> cuda.random.init_xoroshiro128p_states(states, seed=2)
    """
    import numpy as np

    from weft._weft import DeviceArrayBase

    given: Any = states
    if not (is_array := isinstance(given, DeviceArrayBase)) or given.dtype != _dtype():
        what = f"an array of {given.dtype}" if is_array else type(given).__name__
        msg = (
            f"`states` must be a device array of dtype `xoroshiro128p_dtype`, not {what}: "
            "create it with `create_xoroshiro128p_states(n, seed)`"
        )
        raise TypeError(msg)
    if len(states.shape) != 1:
        msg = f"states must be a one-dimensional array, not one with {len(states.shape)} dimensions"
        raise ValueError(msg)
    count = states.shape[0]
    import operator

    start = operator.index(subsequence_start) & _WORD
    words = _weft.xoroshiro128p_states(count, _seed_word(seed), start)
    states.copy_to_device(np.frombuffer(words, _dtype(), count), stream=stream)


def _seed_word(seed: Any) -> int:
    """Convert a seed to 64 bits. Programs pass ``time.time()``, of which Numba takes the whole seconds."""
    import math
    import operator

    import numpy as np

    if not isinstance(seed, float | np.floating):
        return operator.index(seed) & _WORD
    if not math.isfinite(seed):
        msg = f"`seed` must be a finite number, not {seed}"
        raise ValueError(msg)
    return int(seed) & _WORD


def _dtype() -> Any:
    import numpy as np

    return np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)


class _HostName(MemberName):
    """A function for kernels that Python can call too."""

    def __init__(self, path: str, function: Callable[..., Any]) -> None:
        super().__init__(path)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _rotl(x: int, k: int) -> int:
    x, k = int(x) & _WORD, int(k) % 64
    return (x << k | x >> 64 - k) & _WORD


def _unit_float64(x: int) -> float:
    return (int(x) >> 11) * 2.0**-53


def _unit_float32(x: int) -> Any:
    import numpy as np

    return np.float32(_unit_float64(x))


def _init_state(states: Any, index: int, seed: int) -> None:
    z = int(seed) + 0x9E3779B97F4A7C15 & _WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    states[index] = (z ^ z >> 31, z ^ z >> 31)


def _words(states: Any, index: int) -> Any:
    """Give the two words of a state."""
    words = states[index].item()
    if not isinstance(words, tuple):
        msg = f"`states` must be an array of dtype `xoroshiro128p_dtype`, not of {states.dtype}"
        raise TypeError(msg)
    return words


def _next(states: Any, index: int) -> int:
    s0, s1 = (int(word) for word in _words(states, index))
    mixed = s0 ^ s1
    states[index] = (_rotl(s0, 55) ^ mixed ^ (mixed << 14 & _WORD), _rotl(mixed, 36))
    return s0 + s1 & _WORD


def _jump(states: Any, index: int) -> None:
    sums = [0, 0]
    for bit in range(128):
        if _JUMP >> bit & 1:
            sums = [total ^ int(word) for total, word in zip(sums, _words(states, index), strict=True)]
        _next(states, index)
    states[index] = tuple(sums)


def _uniform_float32(states: Any, index: int) -> Any:
    return _unit_float32(_next(states, index))


def _uniform_float64(states: Any, index: int) -> float:
    return _unit_float64(_next(states, index))


def _normal_float32(states: Any, index: int) -> Any:
    import numpy as np

    u, v = _uniform_float32(states, index), _uniform_float32(states, index)
    with np.errstate(divide="ignore"):
        return np.sqrt(np.float32(-2) * np.log(u)) * np.cos(np.float32(2 * math.pi) * v)


def _normal_float64(states: Any, index: int) -> Any:
    import numpy as np

    u, v = _uniform_float32(states, index), _uniform_float32(states, index)
    with np.errstate(divide="ignore"):
        return np.sqrt(-2 * np.float64(np.log(u))) * np.cos(2 * math.pi * np.float64(v))


_ON_HOST: dict[str, Callable[..., Any]] = {
    "init_xoroshiro128p_state": _init_state,
    "rotl": _rotl,
    "uint64_to_unit_float32": _unit_float32,
    "uint64_to_unit_float64": _unit_float64,
    "xoroshiro128p_jump": _jump,
    "xoroshiro128p_next": _next,
    "xoroshiro128p_normal_float32": _normal_float32,
    "xoroshiro128p_normal_float64": _normal_float64,
    "xoroshiro128p_uniform_float32": _uniform_float32,
    "xoroshiro128p_uniform_float64": _uniform_float64,
}

_OWN = ("create_xoroshiro128p_states", "init_xoroshiro128p_states", "xoroshiro128p_dtype", "xoroshiro128p_type")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        value: Any
        if name == "xoroshiro128p_dtype":
            value = _dtype()
        elif name == "xoroshiro128p_type":
            value = _weft.from_dtype(_dtype())
        elif name in _ON_HOST:
            value = _HostName(f"{__name__}.{name}", _ON_HOST[name])
        elif name == "__all__":
            value = sorted([*member(globals(), name), *_OWN])
        else:
            return member(globals(), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
