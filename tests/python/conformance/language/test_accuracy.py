"""The math functions have the accuracy of docs/reference/accuracy.md: a sample of the points of `./weft-dev accuracy`.

The sample has the arguments of the largest known errors, edge cases, and random numbers, all compared with MPFR. On a
GPU, the bounds are those of either math library, because weft may use either.
"""

import json

import numpy as np
import pytest
from accuracy import page
from accuracy.functions import APPROXIMATIONS, FUNCTIONS, HALVES, title

POINTS = {"float32": 1000, "float64": 1000}


def stated(device, place):
    """The measurements of a function and a type on a kind of device."""
    names = [name for name in page.DEVICES if name.startswith(device)]
    entries = [entry for name in names for entry in page.load(name)["results"] if page.key(entry) == place]
    if not entries:
        pytest.skip(f"not measured on {device}")
    return entries


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(function, dtype) for function in FUNCTIONS for dtype in function.types],
    ids=lambda value: value if isinstance(value, str) else title(value, "float64"),
)
def test_no_error_exceeds_the_page(function, dtype, device):
    pytest.importorskip("gmpy2", reason="exact results are MPFR's")
    from accuracy import kernels, measure, reference, ulp

    entries = stated(device, page.place(function, dtype))
    columns = measure.arguments(function, dtype, POINTS.get(dtype, 2000), seed=11)
    if dtype in HALVES:
        # All values would take too long in each run. The stride is coprime to the powers of 2.
        columns = [column[::19] for column in columns]
    columns = measure.with_known(function, dtype, columns)
    exact = reference.References(processes=1).submit(function.exact, *columns)()
    got = kernels.compute(function, dtype, columns[0], columns[1] if len(columns) == 2 else None, device)
    errors, wrong = ulp.apart(got, exact, dtype, function.least_for(dtype))
    limit = max(map(page.bound, entries)) + page.NOISE
    place = int(np.argmax(errors))
    at = [float(column[place]) for column in columns]
    assert errors[place] <= limit, f"{errors[place]:.3f} ulp at {at}, the page says {limit:.2f}"
    if not any(entry["wrong"] for entry in entries):
        bad = int(np.argmax(wrong))
        assert not wrong.any(), f"{got[bad]} at {[float(column[bad]) for column in columns]}, not {exact[bad]}"


@pytest.mark.parametrize("fast", APPROXIMATIONS, ids=lambda fast: f"{fast.call}, {fast.where}")
def test_no_approximation_is_worse_than_the_page(fast, device):
    if device == "cpu" and not fast.exact:
        pytest.skip("fastmath changes nothing on the CPU")
    from accuracy import measure

    entries = stated(device, page.fast_place(fast))
    found = measure.approximation(fast, device, 4099, 1 << 18)
    size = "distance" if fast.absolute else "ulp"
    assert found[size] <= max(map(page.bound, entries)), found


def test_the_pages_are_what_the_measurements_say():
    for path, text in page.texts().items():
        assert path.read_text() == text, f"{path} is stale: run ./weft-dev bless"


def test_every_measurement_is_of_a_function_that_is_measured():
    places = set(page.places())
    for name in page.DEVICES:
        found = {page.key(entry) for entry in page.load(name)["results"]}
        assert found <= places, f"{name}.json has entries of functions that are no longer measured"
        # `fastmath` approximates on a GPU only.
        of_gpus = {page.fast_place(fast) for fast in APPROXIMATIONS if not fast.exact}
        lacking = places - found - (set() if name.startswith("cuda") else of_gpus)
        assert not found or not lacking, f"{name}.json lacks functions: {lacking}"


def test_an_error_is_in_ulps_of_the_exact_result():
    """`ulp.apart` for cases with obvious results."""
    from accuracy import ulp

    def apart(got, exact, dtype="float32"):
        errors, wrong = ulp.apart(np.array([got]), np.array([exact], np.longdouble), dtype)
        return "wrong" if wrong[0] else errors[0]

    assert apart(1.0, 1.0) == 0
    assert apart(1.0, 1 + 2.0**-24) == 0.5
    # Below a power of 2, the distance of adjacent numbers is half as large.
    assert apart(1.0, 1 - 2.0**-24) == 1
    assert apart(0.0, 2.0**-150) == 0.5
    assert apart(2.0**-148, 2.0**-149) == 1
    assert apart(np.inf, 2.0**128 - 2.0**104) == 1
    assert apart(np.inf, 1e39) == 0
    assert apart(3.4028234663852886e38, 2.0**128) == 1
    assert [apart(1.0, np.nan), apart(np.nan, 1.0), apart(np.inf, -np.inf), apart(1.0, np.inf)] == ["wrong"] * 4
    assert [apart(0.0, -0.0), apart(1e-30, 0.0), apart(0.0, -1e-50)] == ["wrong"] * 3
    assert apart(np.nan, np.nan) == apart(np.inf, np.inf) == apart(-0.0, -0.0) == 0
    assert apart(1.0, np.longdouble(1) + 2.0**-54, "float64") == 0.25
    assert apart(1.0, 1 + 2.0**-12, "float16") == 0.25
    assert ulp.apart(np.array([0.25]), np.array([0.0625], np.longdouble), "float32", 1.0)[0] == 0.1875 * 2**23
    assert apart(1.0, 1 + 2.0**-9, "bfloat16") == 0.25


def judged(name, got, exact):
    """The verdict of the kernel that checks float32 results, for given results in place of computed ones."""
    from accuracy import kernels
    from weft import cuda

    text = kernels.JUDGE.format(inside="True", call="y", error=kernels.ULPS)
    kernel = kernels.module(kernels.HEAD + text).kernel
    results, exact = cuda.to_device(np.array(got, np.float32)), cuda.to_device(np.array(exact, np.float64))
    found = [cuda.to_device(np.zeros(len(got), kind)) for kind in ("f8", "i8", "i8", "i8")]
    kernel[len(got), 1](exact, exact, results, *found, 0)
    errors, _, wrongs, _ = (array.copy_to_host() for array in found)
    return errors, wrongs.astype(bool)


def test_the_kernel_judges_as_the_host_does():
    from accuracy import ulp

    with np.errstate(all="ignore"):
        exact = np.array([0.0, -0.0, 1.0, 1.5, 1 - 1e-8, 1e-40, 2.0**-150, 1e-300, np.inf, np.nan])
        exact = np.concatenate([exact, [3.4028235e38, 3.40282357e38, 1e39, 1e300]])
        exact = np.concatenate([exact, -exact])
        got = np.concatenate([exact, [1.0000001, 0.0, 2e-45, 3.4028235e38]]).astype(np.float32)
    got, exact = (part.ravel() for part in np.meshgrid(got, exact))
    errors, wrong = judged("judge", got, exact)
    expected, expected_wrong = ulp.apart(got, exact.astype(np.longdouble), "float32")
    np.testing.assert_array_equal(wrong, expected_wrong)
    np.testing.assert_allclose(errors, expected, rtol=1e-12)


def test_the_measurements_are_json_of_the_kept_form():
    for name in page.DEVICES:
        path = page.FOLDER / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            assert f"{kept['device']}-{kept['library']}" == name
