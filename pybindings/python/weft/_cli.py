"""The `weft` command, as the wheel installs it."""

from __future__ import annotations

import signal
import sys

from weft._weft import run_command


def main() -> int:
    """Run the command with this process's arguments."""
    # These commands run a Python program in this process.
    if sys.argv[1:2] == ["sanitize"]:
        from weft.sanitize import main as sanitize

        return sanitize(sys.argv[2:])
    if sys.argv[1:2] == ["profile"]:
        from weft.profile import main as profile

        return profile(sys.argv[2:])
    # Python's signal handler would not run before the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["weft", *sys.argv[1:]])


def python() -> tuple[str, str, str | None]:
    """Give this Python's version, its interpreter's path, and the version of NumPy that it imports, if it does."""
    try:
        import numpy as np
    except ImportError:
        return sys.version.split()[0], sys.executable, None
    return sys.version.split()[0], sys.executable, np.__version__


if __name__ == "__main__":
    sys.exit(main())
