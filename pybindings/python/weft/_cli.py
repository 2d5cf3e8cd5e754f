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


# Libraries that operators need: their name, distribution and least version.
_PARTNERS = (("PyTorch", "torch", "2.8"), ("JAX", "jax", "0.5"))


def python() -> tuple[str, str, str | None, list[tuple[str, str | None, str, str]]]:
    """Give this Python's version, its interpreter's path, and the versions of packages.

    Returns
    -------
    tuple
        The version, the path, the version of NumPy if it can be imported, and for each optional library its name, its
        version if it is installed, the least version that weft works with, and its distribution.
    """
    import importlib.metadata

    numpy: str | None
    try:
        import numpy as np
    except ImportError:
        numpy = None
    else:
        numpy = np.__version__
    partners: list[tuple[str, str | None, str, str]] = []
    for name, package, least in _PARTNERS:
        try:
            version: str | None = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = None
        partners.append((name, version, least, package))
    return sys.version.split()[0], sys.executable, numpy, partners


if __name__ == "__main__":
    sys.exit(main())
