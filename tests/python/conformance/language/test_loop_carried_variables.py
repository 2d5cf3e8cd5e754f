"""Variables that are first assigned inside a loop and carried by it, as in "first or better" searches."""

import numpy as np
import pytest
from harness import module, run

HEAD = "import numpy as np\nfrom weft import cuda\n@cuda.jit\ndef kernel(r, x, v, n):\n"

BODIES = {
    "first iteration": """
    for i in range(n):
        if i == 0:
            p = v
        else:
            p = p + v
    r[0] = p
""",
    "else first": """
    for i in range(n):
        if i != 0:
            p = p + v
        else:
            p = v
    r[0] = p
""",
    "i < 1": """
    for i in range(n):
        if i < 1:
            p = v
        else:
            p += v
    r[0] = p
""",
    "constant range": """
    for i in range(3):
        if i == 0:
            p = v
        else:
            p = p * 2
    r[0] = p
""",
    "flag": """
    found = False
    for i in range(n):
        if not found:
            best = x[i]
            found = True
        elif x[i] > best:
            best = x[i]
    r[0] = best
""",
    "while": """
    i = 0
    while i < n:
        if i == 0:
            p = v
        else:
            p = p + i
        i += 1
    r[0] = p
""",
    "nested": """
    for j in range(2):
        for i in range(n):
            if i == 0 and j == 0:
                p = v
                q = x[i]
            else:
                p = p + v
                q = q + p
    r[0] = p
    r[1] = q
""",
    "nested, set by the outer loop": """
    for j in range(3):
        if j == 0:
            p = v
        for i in range(n):
            if i == 0 and j == 0:
                q = p
            else:
                q = q + p
        p = p + 1
    r[0] = p
    r[1] = q
""",
    "tuple": """
    for i in range(n):
        if i == 0:
            t = (v, x[i])
        else:
            t = (t[0] + 1, t[1] + x[i])
    r[0] = t[0]
    r[1] = t[1]
""",
    "view": """
    for i in range(n):
        if i == 0:
            w = x[1:]
        else:
            w = w[1:]
        r[i] = w[0]
    r[4] = len(w)
""",
    "used inside": """
    for i in range(n):
        if i == 0:
            p = v
        else:
            r[i] = p
            p = p + i
    r[0] = p
""",
    "type grows": """
    for i in range(n):
        if i == 0:
            p = 1
        elif i == 1:
            p = p + 0.5
        else:
            p = p * v
    r[0] = p
""",
    "through a second variable": """
    for i in range(n):
        if i > 0:
            q = p
            p = q + v
        else:
            p = v
            q = 7
    r[0] = p
    r[1] = q
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_variable_first_assigned_in_its_loop(name):
    kernel = module(HEAD + BODIES[name]).kernel
    run(kernel, 1, 1, np.full(6, -7.0), np.array([3.0, 1.0, 8.0, 2.0, 5.0]), 5, 3)
