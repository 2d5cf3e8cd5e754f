# weft: sig = "void(int32[::1], float32)"
"""Values that cannot be printed, and formats that do not fit."""

from weft import cuda


@cuda.jit
def printed(x, y):
    print(x)  # error: [E0211] "cannot print"
    print(y, sep=y)  # error: [E0210] "`sep`"
    print(y, file=1)  # error: [E0206] "no `file`"
    print(f"{y:x}")  # error: [E0211] "does not take a float"
    print(f"{x[0]:,x}")  # error: [E0211] "cannot be combined"
    print(f"{x[0]:-c}")  # error: [E0211] "not for a character"
    print(f"{x[0]!s:x}")  # error: [E0211] "does not take a string"
    print(f"{None:>5}")  # error: [E0211] "takes no format specification"
    print(f"{y:^9}")  # error: [E0211] "center"
    print("{} {}".format(y))  # error: [E0211] "argument 1"
    print("%d and %d" % y)  # error: [E0211] "2 values"
    print(f"{z}")  # error: [E0201] "z"
