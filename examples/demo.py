# ruff: noqa: F821 - a name is missing on purpose: see show_error
"""A tour of weft in a minute: kernels compiled and launched on the GPU or the CPU, checked, timed, shown as PTX.

Run it with ./weft-dev demo, or with Python where weft is installed. Pictures go into examples/out.
"""

import argparse
import importlib.util
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import weft
from weft import cuda

HERE = Path(__file__).resolve().parent


def example(name):
    """One of the numbered examples as a module; their names are no Python names."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def timed(launch):
    """Milliseconds of the first call, which compiles, and the best of five more."""
    times = []
    for _ in range(6):
        start = time.perf_counter()
        launch()
        cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return times[0], min(times[1:])


def report(name, what, launch, check):
    """Launch, check, and print a line; give whether the result was right."""
    first, best = timed(launch)
    try:
        check()
        verdict = "ok"
    except AssertionError as error:
        verdict = f"WRONG: {str(error).strip().splitlines()[0]}"
    print(f"  {name:<12} {what:<34} first launch {first:7.1f} ms, then {best:8.3f} ms   {verdict}")
    return verdict == "ok"


def demo_saxpy():
    module, n = example("01_saxpy"), 1 << 24
    x = np.random.default_rng(0).random(n, np.float32)
    d_x, d_y = cuda.to_device(x), cuda.to_device(np.zeros(n, np.float32))
    launch = module.saxpy[(n + 255) // 256, 256]
    a = np.float32(0.5)

    def check():
        np.testing.assert_allclose(d_y.copy_to_host(), 6 * a * x, rtol=1e-5)  # six launches add up

    return report("saxpy", f"{n:,} float32", lambda: launch(a, d_x, d_y), check)


def demo_grey(pictures):
    module = example("02_grey")
    image = module.picture(720, 1280)
    d_image, d_out = cuda.to_device(image), cuda.device_array(image.shape[:2], np.uint8)
    launch = module.grey[(80, 45), (16, 16)]

    def check():
        out = d_out.copy_to_host()
        assert np.abs(out - image @ np.array([0.299, 0.587, 0.114])).max() <= 1.001
        pictures.append(module.save(out, "grey.png"))

    return report("grey", "1280 x 720 pixels, uint8", lambda: launch(d_image, d_out), check)


def demo_mandelbrot(pictures):
    module = example("03_mandelbrot")
    height, width = 600, 900
    d_counts = cuda.device_array((height, width), np.int32)
    launch = module.mandelbrot[((width + 15) // 16, (height + 15) // 16), (16, 16)]

    def check():
        counts = d_counts.copy_to_host()
        assert 1.45 < (counts == module.LIMIT).mean() * 6 < 1.60, "the area of the set"
        pictures.append(module.save(module.colored(counts), "mandelbrot.png"))

    return report(
        "mandelbrot", f"{width} x {height}, complex128", lambda: launch(-2.25, 1.0, 3.0 / width, d_counts), check
    )


def demo_matmul():
    module, n = example("04_matmul_tiled"), 512
    rng = np.random.default_rng(0)
    a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    d_a, d_b, d_c = cuda.to_device(a), cuda.to_device(b), cuda.device_array((n, n), np.float32)
    launch = module.matmul[(n // 16, n // 16), (16, 16)]

    def check():
        np.testing.assert_allclose(d_c.copy_to_host(), a @ b, rtol=1e-4)

    return report("matmul", f"{n} x {n}, tiles in shared memory", lambda: launch(d_a, d_b, d_c), check)


def demo_histogram():
    module = example("06_histogram")
    data = np.random.default_rng(0).integers(0, 256, 1 << 22, dtype=np.uint8)
    d_data, d_counts = cuda.to_device(data), cuda.to_device(np.zeros(256, np.int32))
    launch = module.histogram[256, 256]

    def check():
        np.testing.assert_array_equal(d_counts.copy_to_host(), 6 * np.bincount(data, minlength=256))

    return report("histogram", f"{data.size:,} bytes, shared atomics", lambda: launch(d_data, d_counts), check)


def show_ptx():
    """Show the inner lines of saxpy as PTX for an H100 or H200, from the `weft` command: no GPU is needed for it."""
    signature = "void(float32, float32[::1], float32[::1])"
    command = [sys.executable, "-m", "weft", "emit", str(HERE / "01_saxpy.py"), "--kernel", "saxpy"]
    done = subprocess.run(
        [*command, "--sig", signature, "--target", "sm_90"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr)
        return False
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    work = [
        line for line in lines if any(word in line for word in ("ld.global", "fma", "st.global", ".target", ".entry"))
    ]
    print(f"\nsaxpy for sm_90 ({len(lines)} lines of PTX), among them:")
    for line in work[:8]:
        print(f"    {line.strip()}")
    return bool(work) and any(".target sm_90" in line for line in lines)


def show_error():
    """Show what a mistake looks like."""

    @cuda.jit
    def broken(x, out):
        i = cuda.grid(1)
        out[i] = math.sqrt(x[i]) + scaling

    try:
        broken[1, 1](np.ones(1), np.zeros(1))
    except weft.CompileError as error:
        print("\nA mistake in a kernel:")
        for line in str(error).replace(str(HERE), "examples").splitlines():
            print(f"    {line}")
        return "scaling" in str(error)
    return False


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    device = cuda.get_current_device()
    major, minor = device.compute_capability
    print(f"weft {weft.__version__} on {device.name} (compute capability {major}.{minor})\n")
    pictures = []
    results = [
        demo_saxpy(),
        demo_grey(pictures),
        demo_mandelbrot(pictures),
        demo_matmul(),
        demo_histogram(),
        show_ptx(),
        show_error(),
    ]
    print("\nPictures: " + "; ".join(dict.fromkeys(pictures)))
    if not all(results):
        print("Something was wrong: see above.")
        return 1
    print("All results are right.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
