"""Wrong calls and wrong kernels, one row each, with the required content of their messages: see `cases.py`."""
