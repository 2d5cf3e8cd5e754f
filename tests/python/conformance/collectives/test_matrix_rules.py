"""Products of matrix tiles with the bits of GPUs of other compute capabilities than 9.0, against a model with integers.

The model is written from the published rules (arXiv 2511.10909) and shares no code with weft. No GPU confirmed them.
The inputs are those of `mma_cc90.npz`, which tell wrong rules from the right ones.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from weft import cuda

GPU = np.load(Path(__file__).with_name("mma_cc90.npz"))
# Bits of exponent and of fraction, of each format.
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)}
KEYS = sorted(key for key in {name.rsplit(".", 1)[0] for name in GPU.files} if key.split("_")[2] in FORMATS)
MOST = 400
"""The products of a key whose bits are compared."""

COMPUTE = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[2])!r}]
import warnings
import numpy as np
import test_matrix_tiles as tiles
warnings.simplefilter("ignore")
found = {{}}
for key in sys.argv[2:]:
    shape, _, kind, other = key.split("_")
    name = tiles.NAMES.get(kind, kind) if kind == other else f"{{kind}}_{{other}}"
    m, n, k = map(int, shape[1:].replace("n", " ").replace("k", " ").split())
    elements, accumulators = tiles.KINDS[name][4:]
    a, b = tiles.GPU[f"{{key}}.A"].view(elements), tiles.GPU[f"{{key}}.B"].view(elements)
    c = tiles.GPU[f"{{key}}.C"].view(accumulators)
    count = min(len(a), -(-{MOST} // (m * n)))
    kernel = tiles.compiled(name, (m, n, k))
    out = np.zeros_like(c[:count])
    kernel[count, 32](a[:count], b[:count], c[:count], out)
    found[key] = out.view(np.uint32)
np.savez(sys.argv[1], **found)
"""


def decoded(name, bits):
    """Sign, significand, and the exponents of the significand's last and leading bit; a float if it is special."""
    n_exponent, n_fraction = FORMATS[name]
    if name == "tf32":
        bits >>= 13
    fraction, field = bits & (1 << n_fraction) - 1, bits >> n_fraction & (1 << n_exponent) - 1
    sign = -1 if bits >> n_exponent + n_fraction else 1
    if field == (1 << n_exponent) - 1 and (name != "e4m3" or fraction == 7):
        return float("nan") if fraction else sign * float("inf")
    exponent = max(field, 1) - (1 << n_exponent - 1) + 1
    return sign, fraction | (field > 0) << n_fraction, exponent - n_fraction, exponent


def rounded(total, unit, n_fraction):
    """The float32 of an integer times a power of two, cut toward zero to bits of fraction."""
    if total == 0:
        return 0
    magnitude = abs(total)
    exponent = max(unit + magnitude.bit_length() - 1, -126)
    drop = exponent - n_fraction - unit
    kept = magnitude >> drop if drop > 0 else magnitude << -drop
    bits = min((kept << 23 - n_fraction) + (exponent + 126 << 23), 0x7F800000)
    return bits | 0x80000000 if total < 0 and bits else bits


def summed(names, a, b, c, cut, n_fraction):
    """One sum: the bits of the products of two rows and of an accumulator."""
    terms = [(decoded(names[0], x), decoded(names[1], y)) for x, y in zip(a, b, strict=True)]
    last = decoded("f32", c)
    if any(isinstance(x, float) for term in terms for x in term) or isinstance(last, float):
        plain = [[x if isinstance(x, float) else float(x[0] * (x[1] > 0)) for x in term] for term in terms]
        total = sum((x * y for x, y in plain if abs(x) + abs(y) == float("inf") or x != x or y != y), 0.0)
        total += last if isinstance(last, float) else 0.0
        return 0x7FFFFFFF if total != total else 0x7F800000 if total > 0 else 0xFF800000
    numbers = [(x[0] * y[0], x[1] * y[1], x[2] + y[2], x[3] + y[3]) for x, y in terms] + [last]
    top = max([-133, *(exponent for _, significand, _, exponent in numbers if significand)])
    unit = top - cut
    total = 0
    for sign, significand, low, _ in numbers:
        shift = low - unit
        total += sign * (significand << shift if shift >= 0 else significand >> -shift)
    return rounded(total, unit, n_fraction)


def product(names, a, b, c, capability):
    """The bits of a product of two rows and an accumulator, by the rules of a compute capability."""
    is_of_bytes = names[0] in ("e4m3", "e5m2")
    if capability >= (12, 0):
        return summed(names, a, b, c, 25, 23)
    half = len(a) // 2
    cut, n_fraction = (13, 13) if is_of_bytes else (24, 23)
    first = summed(names, a[:half], b[:half], c, cut, n_fraction)
    return summed(names, a[half:], b[half:], first, cut, n_fraction)


@pytest.fixture(
    scope="module", params=[(8, 0), (8, 6), (8, 9), (10, 0), (12, 0)], ids=lambda pair: f"{pair[0]}.{pair[1]}"
)
def computed(request, tmp_path_factory):
    if cuda.get_current_device().kind == "cuda":
        pytest.skip("a GPU has its own rules")
    capability = request.param
    left_out = set() if capability >= (8, 9) else {"e4m3", "e5m2"}
    if os.environ["WEFT_DEVICE"] == "python" and importlib.util.find_spec("ml_dtypes") is None:
        left_out.add("bf16")
    keys = [key for key in KEYS if key.split("_")[2] not in left_out]
    file = tmp_path_factory.mktemp("bits") / "found.npz"
    setting = {"WEFT_CPU_COMPUTE_CAPABILITY": f"{capability[0]}.{capability[1]}"}
    command = [sys.executable, "-c", COMPUTE, str(file), *keys]
    done = subprocess.run(command, env=os.environ | setting, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return capability, np.load(file)


def test_products_have_the_bits_of_the_compute_capability(computed):
    capability, found = computed
    for key in found.files:
        got = found[key]
        if (10, 0) <= capability < (12, 0):
            np.testing.assert_array_equal(got, GPU[f"{key}.D"][: len(got)], err_msg=key)
            continue
        names = key.split("_")[2:]
        a, b, c = (GPU[f"{key}.{part}"][: len(got)].tolist() for part in "ABC")
        expected = [
            [
                [product(names, x, y, z, capability) for y, z in zip(b[s], row, strict=True)]
                for x, row in zip(a[s], c[s], strict=True)
            ]
            for s in range(len(got))
        ]
        np.testing.assert_array_equal(got, np.array(expected, np.uint32), err_msg=key)
        if capability < (9, 0) or names[0] in ("e4m3", "e5m2"):
            assert (got != GPU[f"{key}.D"][: len(got)]).any(), f"{key}: the rules of 9.0 have the same bits"
