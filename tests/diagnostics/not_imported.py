# weft: sig = "void(float32[::1])"
"""Modules that are used without being imported."""

from weft import cuda


@cuda.jit
def not_imported(x):
    x[0] = math.sqrt(x[0])  # error: [E0201] "name `math` is not defined"
    x[1] = np.float32(x[1])  # error: [E0201] "name `np` is not defined"
    x[2] = cmath.exp(1j).real  # error: [E0201] "name `cmath` is not defined"
    x[3] = operator.add(x[2], x[3])  # error: [E0201] "name `operator` is not defined"
    x[4] = random.random()  # error: [E0201] "name `random` is not defined"
