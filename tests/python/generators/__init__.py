"""Generators of random programs.

`random_*.py` write programs, their arguments and launches from a seed. `typed_*.py` infer the types of a program as
weft does. `halves.py` has values of float16 and bfloat16. `fuzz.py` runs many programs, and tests run a sample.
"""
