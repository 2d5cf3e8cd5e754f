"""Ufuncs and generalized ufuncs on the device: `ufunc.py` and `gufunc.py`, and what they are made of."""
