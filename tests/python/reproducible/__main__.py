"""Runs every case on the device of this process and saves the bits of its results.

    WEFT_DEVICE=cpu python tests/python/reproducible RESULTS.npz
    WEFT_DEVICE=cuda python tests/python/reproducible --compare RESULTS.npz

`--only NAME` selects the cases whose names begin with NAME. `--compare` does not save: it reports which results differ
from the saved ones, and exits with 1 if some do.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ["WEFT_REPRODUCIBLE"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> int:
    """Runs the command of the command line."""
    parser = argparse.ArgumentParser(description="bits of results on one device")
    parser.add_argument("results", help="the file of the results")
    parser.add_argument("--compare", action="store_true", help="compare with the file")
    parser.add_argument("--only", default="", help="the beginning of the names of the cases")
    asked = parser.parse_args()

    import numpy as np
    from weft.errors import ReproducibilityWarning

    from reproducible.cases import CASES, as_bits
    from reproducible.compared import differences

    warnings.simplefilter("ignore")
    warnings.simplefilter("error", ReproducibilityWarning)

    results = {}
    for name, case in CASES.items():
        if name.startswith(asked.only):
            for part, value in case().items():
                results[f"{name}: {part}"] = as_bits(value)
    if not asked.compare:
        np.savez_compressed(asked.results, **results)
        print(f"{len(results)} results of {len(CASES)} cases")
        return 0
    kept = np.load(asked.results)
    found = differences({name: kept[name] for name in kept.files if name in results}, results)
    print("\n".join(found) or f"{len(results)} results are the same")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
