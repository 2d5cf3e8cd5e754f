"""The `weft` command, as the wheel installs it."""

from __future__ import annotations

import signal
import sys

from weft._weft import run_command


def main() -> int:
    """Run the command with this process's arguments."""
    if sys.argv[1:2] == ["sanitize"]:
        # It runs a Python program, here.
        from weft.sanitize import main as sanitize

        return sanitize(sys.argv[2:])
    # Python's handler would be run when the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["weft", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
