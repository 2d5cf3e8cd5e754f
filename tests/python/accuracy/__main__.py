"""python -m accuracy --device cpu|cuda [--functions …] [--write]: measures; --write saves the results for the page.

WEFT_LIBDEVICE selects the math library for GPU kernels: `--libdevice PATH` or `--libdevice none` sets it.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path


def cpu_name():
    """The name of the machine's CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(prog="weft-dev accuracy", description="measures how exact math functions are")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--libdevice", help="on a GPU: none, or the path of a libdevice.10.bc (default: none)")
    parser.add_argument(
        "--functions", nargs="*", metavar="NAME", help="only these, such as sin or pow; fastmath for approximations"
    )
    parser.add_argument("--types", nargs="*", metavar="TYPE", help="only these, such as float32")
    parser.add_argument(
        "--points", type=int, default=1_000_000, help="float64 numbers a function (libdevice's own: a tenth)"
    )
    parser.add_argument("--every", type=int, help="take every n-th float32 (cpu: 64, cuda: 1)")
    parser.add_argument("--pairs", type=int, help="float32 pairs a function of two (cpu: 2**24, cuda: 2**26)")
    parser.add_argument("--processes", type=int, help="that compute exact results")
    parser.add_argument(
        "--known", action="store_true", help="only where any device's errors are known to be greatest; saved ones grow"
    )
    parser.add_argument("--write", action="store_true", help="keep what is measured, and write the page")
    parser.add_argument("--page", action="store_true", help="write the page from saved results, and nothing else")
    options = parser.parse_args()

    from accuracy import page

    if options.page:
        page.write()
        return
    library = "libclc"
    os.environ["WEFT_DEVICE"] = options.device
    os.environ["WEFT_LIBDEVICE"] = "none"
    if options.device == "cuda" and options.libdevice not in (None, "none"):
        os.environ["WEFT_LIBDEVICE"] = options.libdevice
        library = "libdevice"

    # Weft reads the environment once, when it is first used.
    import gmpy2
    import weft
    from weft import cuda

    from accuracy import measure, reference
    from accuracy.functions import APPROXIMATIONS, FUNCTIONS

    known = {"fastmath", *(function.name for function in FUNCTIONS)}
    if unknown := set(options.functions or ()) - known:
        sys.exit(f"not measured: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    chosen = [function for function in FUNCTIONS if not options.functions or function.name in options.functions]

    def show(text):
        print(text, flush=True)

    references = reference.References(options.processes)
    try:
        if options.known:
            found = measure.at_known(chosen, references, options.device, library, types=options.types, show=show)
        else:
            found = measure.measure(
                chosen, references, options.device, count=options.points, every=options.every, pairs=options.pairs,
                types=options.types, show=show,
            )  # fmt: skip
    finally:
        references.close()
    wanted = not options.known and (not options.functions or "fastmath" in options.functions)
    if wanted and (not options.types or "float32" in options.types):
        # The CPU has no hardware approximations, but it implements those of libdevice by formulas.
        fast = [each for each in APPROXIMATIONS if each.exact or options.device == "cuda"]
        found += measure.approximations(fast, options.device, every=options.every, pairs=options.pairs, show=show)
    if options.write:
        name = cpu_name() if options.device == "cpu" else cuda.get_current_device().name
        name = name.decode() if isinstance(name, bytes) else name
        versions = {
            "weft": weft.__version__,
            "mpfr": gmpy2.mpfr_version().split()[-1],
            "python": platform.python_version(),
        }
        page.keep(options.device, library, name, found, versions)
        page.write()


if __name__ == "__main__":
    main()
