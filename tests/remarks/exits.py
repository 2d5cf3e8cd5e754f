# weft: assume = ["small", "disjoint"]
from weft import cuda


@cuda.jit("void(int32[::1], int32[::1])")
def lockstep(n, steps):
    i = cuda.grid(1)
    value = n[i]
    count = 0
    while value != 1:
        value = 3 * value + 1 if value % 2 else value // 2
        count += 1
    steps[i] = count


@cuda.jit("void(int32[::1], int32[::1])")
def division(n, divisors):
    i = cuda.grid(1)
    value = n[i]
    while value > 1:
        value //= divisors[i]
    n[i] = value


@cuda.jit("void(int32[::1], int32[::1], float32[::1], float32[::1])")
def trip_count(start, columns, values, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(start[i], start[i + 1]):
        total += values[k] * columns[k]
    y[i] = total


@cuda.jit("void(float32[::1], float32[::1])")
def returns(a, y):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        if a[k] == y[i]:
            y[i] = k
            return
    y[i] = -1


@cuda.jit("void(float32[::1], float32[::1], float32[::1])")
def outer_loop(a, limits, y):
    i = cuda.grid(1)
    total = y[i]
    while total < limits[i]:
        for k in range(a.shape[0]):
            total += a[k]
    y[i] = total
