"""Wrong calls and wrong kernels, one row each, and what a person must read of each: see `cases.py`."""
