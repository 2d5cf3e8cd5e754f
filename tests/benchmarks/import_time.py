"""Time of ``import weft`` in new processes, relative to a bare interpreter, and compared with ``import numpy``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

PROGRAMS = ("pass", "import numpy", "import weft", "from weft import cuda")
RUNS = 15


def main() -> int:
    times: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    for run in range(RUNS + 1):
        for program in PROGRAMS:
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            if run:  # the first run fills the file cache
                times[program].append((time.perf_counter() - begin) * 1e3)
    bare = statistics.median(times["pass"])
    print(f"Fresh processes, ms, median of {RUNS} in turns\n")
    print("| program | whole process | over a bare interpreter |\n|---|---|---|")
    for program, values in times.items():
        median = statistics.median(values)
        print(f"| `{program}` | {median:.1f} | {median - bare:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
