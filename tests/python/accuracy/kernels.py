"""weft's side: kernels that compute a function, and one that compares float32 results with float64 results.

The measurements show that the float64 function is exact enough as a reference for the float32 one. All arguments and
results stay on the device, so that a test of all float32 values takes a second on a GPU.
"""

from __future__ import annotations

import numpy as np
from harness import module
from weft import cuda

HEAD = """
import math
import numpy as np
import weft
from weft import cuda
from weft.cuda import bf16, fp16, libdevice
"""

COMPUTE = """
@cuda.jit(fastmath={fastmath})
def kernel(xs, ys, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        x, y = {kind}(xs[i]), {kind}(ys[i])
        out[i] = {call}
"""

FILL = """
@cuda.jit
def kernel(bits, first, every):
    for i in range(cuda.grid(1), bits.size, cuda.gridsize(1)):
        bits[i] = np.uint32(first + i * every)
"""

# `ulp.apart` for one number: -1 if it is wrong in kind.
JUDGE = """
@cuda.jit(device=True)
def apart(got, exact):
    if math.isnan(exact) or math.isnan(got):
        return 0.0 if math.isnan(exact) and math.isnan(got) else -1.0
    same_sign = math.copysign(1.0, got) == math.copysign(1.0, exact)
    if math.isinf(exact):
        return 0.0 if math.isinf(got) and same_sign else -1.0
    if exact == 0.0 or got == 0.0:
        if (exact == 0.0 and got != 0.0) or not same_sign:
            return -1.0
    if exact == 0.0:
        return 0.0
    size = abs(exact)
    if math.isinf(got):
        if size >= 3.4028235677973366e38 and same_sign:
            return 0.0
        got = math.copysign(3.402823669209385e38, got)
    exponent = math.frexp(size)[1] - 1
    exponent = min(max(exponent, -126), 127)
    return abs(got - exact) * math.ldexp(1.0, 23 - exponent)


@cuda.jit
def kernel(xs, ys, results, errors, error_at, wrongs, wrong_at, base):
    thread = cuda.grid(1)
    most, most_at = errors[thread], error_at[thread]
    wrong, last_wrong = wrongs[thread], wrong_at[thread]
    for i in range(thread, results.size, cuda.gridsize(1)):
        got = results[i]
        x, y = np.float64(xs[i]), np.float64(ys[i])
        if {inside}:
            exact = {call}
            error = {error}
            if error > most:
                most, most_at = error, base + i
            if error < 0.0:
                wrong += 1
                last_wrong = base + i
    errors[thread], error_at[thread] = most, most_at
    wrongs[thread], wrong_at[thread] = wrong, last_wrong
"""

KINDS = {"float16": "np.float16", "bfloat16": "weft.bfloat16", "float32": "np.float32", "float64": "np.float64"}
SHORT = {"float16": "fp16", "bfloat16": "bf16"}

_kernels = {}


def _kernel(text):
    if text not in _kernels:
        _kernels[text] = module(HEAD + text).kernel
    return _kernels[text]


def _grid(device):
    """The grid and block size: enough for a whole GPU, or for a CPU's cores."""
    return (2112, 256) if device == "cuda" else (64, 64)


def compute(function, dtype, xs, ys, device):
    """Results of a function on arrays; 16-bit floats are passed and returned as float32."""
    call = function.call_for(dtype).format(half=SHORT.get(dtype))
    text = COMPUTE.format(kind=KINDS[dtype], call=call, fastmath=False)
    out = cuda.device_array(xs.size, xs.dtype)
    xs = cuda.to_device(xs)
    _kernel(text)[_grid(device)](xs, xs if ys is None else cuda.to_device(ys), out)
    return out.copy_to_host()


def inside(function):
    """The condition on a function's arguments, as an expression."""
    if function.above is not None:
        return f"not x < {function.above}"
    return "True" if function.below is None else f"not x > {function.below}"


ULPS, DISTANCE = "apart(np.float64(got), exact)", "abs(np.float64(got) - exact)"


class Judge:
    """Compares float32 results of a function with its float64 results, chunk by chunk."""

    def __init__(self, device, call, exact, condition="True", error=ULPS, *, fastmath=False):
        self.grid = _grid(device)
        self.compute = _kernel(COMPUTE.format(kind="np.float32", call=call, fastmath=fastmath))
        self.judge = _kernel(JUDGE.format(call=exact, inside=condition, error=error))
        threads = self.grid[0] * self.grid[1]
        self.found = [cuda.to_device(np.zeros(threads, kind)) for kind in ("f8", "i8", "i8", "i8")]

    def take(self, xs, ys, out, base):
        """A chunk of arguments on the device; `base` is the number of the first."""
        self.compute[self.grid](xs, ys, out)
        self.judge[self.grid](xs, ys, out, *self.found, base)

    def verdict(self):
        """The largest error and its argument's index; the number of results wrong in kind, and the index of one."""
        errors, error_at, wrongs, wrong_at = (array.copy_to_host() for array in self.found)
        worst, bad = int(np.argmax(errors)), int(np.argmax(wrongs))
        return float(errors[worst]), int(error_at[worst]), int(wrongs.sum()), int(wrong_at[bad])


def judge_all(judge, every, chunk):
    """Every float32, or every `step`-th; returns the verdict with bit patterns for numbers, and the count."""
    count = -(-(1 << 32) // every)
    bits = cuda.device_array(chunk, np.uint32)
    out = cuda.device_array(chunk, np.float32)
    fill = _kernel(FILL)
    xs = bits.view(np.float32)
    for first in range(0, count, chunk):
        # The last chunk wraps around: some numbers are compared twice.
        fill[judge.grid](bits, first * every, every)
        judge.take(xs, xs, out, first)
    error, error_at, wrong, wrong_at = judge.verdict()
    return error, error_at * every, wrong, wrong_at * every, count


def judge_pairs(judge, xs, ys):
    """Pairs of float32."""
    judge.take(cuda.to_device(xs), cuda.to_device(ys), cuda.device_array(xs.size, np.float32), 0)
    return judge.verdict()
