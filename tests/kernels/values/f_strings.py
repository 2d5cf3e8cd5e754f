# weft: sig = "void(int32[::1], float64)", show = ["ir"]
"""f-strings of Python 3.12: their own quotes, other f-strings, lines, comments and backslashes in their fields."""

from weft import cuda


@cuda.jit
def f_strings(x, y):
    width = 8
    print(f"{x[0]:{">"}{width}d}{"\t"}{f"<{y:.2f}>"}")
    print(f'{'é'}{  # what { stands first
        x[1]
        + 1
    }\n' f"{x[2] = }" rf'\{y:{'10.3f'}}')
