"""The types of floats of 8 bits, under the names of ``ml_dtypes`` and PyTorch."""

from weft._weft import Type

float8_e4m3fn = Type("float8_e4m3fn")
float8_e5m2 = Type("float8_e5m2")
