# weft: sig = "void(int32[::1])"
"""Each refusal of the language has a suggestion of its own."""

from weft import cuda

names = {"a": 1}
total = 0


@cuda.jit
def unsupported_keywords(x):
    import math  # error: [E0102] "local `import`"
    global total  # error: [E0102] "assign to the global `total`"
    total = 1
    class Inner:  # error: [E0102] "`class` definition"
        pass
    a = {1, 2}  # error: [E0103] "cannot have a set"
    x[0] = names["a"]  # error: [E0202] "`names` is a dict"
