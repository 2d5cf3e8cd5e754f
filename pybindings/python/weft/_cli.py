"""The `weft` command, as the wheel installs it."""

from __future__ import annotations

import sys

from weft._weft import run_command


def main() -> int:
    """Run the command with this process's arguments."""
    return run_command(["weft", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
