"""NumPy's reductions of device arrays: the same results as for copies on the host."""

import numpy as np
import weft.numba
from numba import cuda

host = np.array([[3, -1, 2], [7, 0, 5]], np.int8)
ways = {
    "sum": np.sum,
    "sum of a dtype": lambda x: np.sum(x, dtype=np.float32),
    "sum of all axes": lambda x: np.sum(x, (0, 1)),
    "sum of a row": lambda x: np.sum(x[0], axis=0),
    "sum of one": lambda x: np.sum(x[1, 2:]),
    "sum of some": lambda x: np.sum(x, where=host > 0),
    "prod": np.prod,
    "max": np.max,
    "max or more": lambda x: np.max(x, initial=9),
    "min": np.min,
    "mean": np.mean,
    "std": np.std,
    "var": np.var,
    "any": np.any,
    "all": np.all,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "add.reduce": lambda x: np.add.reduce(x, axis=None),
    "maximum.reduce": lambda x: np.maximum.reduce(x[1]),
}

for dtype in (np.int8, np.float32, np.bool_):
    expected = host.astype(dtype)
    device = cuda.to_device(expected)
    for name, way in ways.items():
        got, wanted = way(device), way(expected)
        assert type(got) is type(wanted), (name, dtype, got, wanted)
        assert str(got) == str(wanted) or np.isclose(got, wanted, rtol=1e-6), (name, dtype, got, wanted)

device = cuda.to_device(host)
total = np.sum(device, dtype=np.int64)
print(isinstance(total, np.int64), f"{total} {total / 4:.1f} {np.abs(total / -4.0)}")

# Data that remains on the device: reductions along an axis, results with `out=`, operations that a graph records.
print(type(np.sum(device, axis=0)).__name__, type(np.sum(device, keepdims=True)).__name__)
out = cuda.device_array((), np.int64)
print(np.sum(device, out=out) is out, np.add.reduce(device, axis=None, out=out) is out, out)
with cuda.graph() as graph:
    kept = np.sum(device)
graph.launch()
print(type(kept).__name__, kept)


def packages():
    """The packages of an array's class and its bases: Dask and others dispatch by them."""
    return [cls.__module__.partition(".")[0] for cls in type(device).__mro__]


print("numba" in packages(), packages()[0])
weft.numba.uninstall()
print(type(np.sum(device)).__name__, "numba" in packages())
