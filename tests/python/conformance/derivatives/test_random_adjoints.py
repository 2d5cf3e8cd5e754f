"""Adjoint kernels of random programs beside central differences."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gradients import check
from weft import cuda

N = 40


class Program:
    """A random kernel: smooth operations on floats, branches on integers, loops, stores, atomic additions, local and
    shared arrays, and barriers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.count = 0
        self.loops = 0
        self.cells = []
        self.repeats = False

    def value(self, names, depth=2):
        pick = self.random.random()
        if depth == 0 or pick < 0.25:
            leaves = [*names, *self.cells, "a", "x[i]", "w[1]", f"w[(i + {self.random.randrange(4)}) % w.size]", "0.75"]
            return self.random.choice(leaves)
        one, other = self.value(names, depth - 1), self.value(names, depth - 1)
        forms = [
            *("({0} + {1})", "({0} - {1})", "{0} * {1}", "({0} / (1.5 + {1} * {1}))", "math.sin({0})"),
            *("math.tanh({0})", "math.exp(-{0} * {0})", "math.sqrt(1.0 + {0} * {0})", "scaled({0}, {1})"),
            *("({0} if i % 3 else {1} * 2.0)", "-{0}", "max({0}, {1} + 9.0)", "np.float64({0} - 0.1)"),
        ]
        return self.random.choice(forms).format(one, other)

    def write(self, depth, text):
        self.lines.append("    " * depth + text)

    def block(self, names, depth, size):
        """Statements; gives the names that have values after them."""
        names, cells = list(names), list(self.cells)
        self.write(depth, "pass")
        for _ in range(size):
            kind = self.random.choice(["new", "new", "again", "if", "sum", "short", "store", "add", "local"])
            if kind == "new" or not names:
                name = f"v{self.count}"
                self.count += 1
                self.write(depth, f"{name} = {self.value(names)}")
                names.append(name)
            elif kind == "again":
                self.write(depth, f"{self.random.choice(names)} = {self.value(names)}")
            elif kind == "if" and depth < 5:
                self.write(depth, self.random.choice(["if i % 2:", "if i > 3:", "if x[i] > 0.4:"]))
                self.block(names, depth + 1, 2)
                if self.random.random() < 0.6:
                    self.write(depth, "else:")
                    self.block(names, depth + 1, 2)
            elif kind == "sum" and depth < 4:
                name, k = self.random.choice(names), self.loop()
                self.write(depth, f"for {k} in range({self.random.choice(['w.size', 'i', '3', '5, 0, -2'])}):")
                if self.random.random() < 0.3:
                    self.write(depth + 1, f"if {k} == 2:")
                    self.write(depth + 2, self.random.choice(["continue", "break"]))
                others = [other for other in names if other != name]
                self.write(depth + 1, f"{name} += w[{k} % w.size] * {self.value(others)}")
            elif kind == "short" and depth < 4:
                k = self.loop()
                self.write(depth, f"for {k} in range({self.random.randrange(1, 5)}):")
                repeats, self.repeats = self.repeats, True
                self.block(names, depth + 1, 2)
                self.repeats = repeats
            elif kind == "local" and not self.repeats:
                self.local_array(names, depth)
            elif kind == "store":
                self.write(depth, f"out[i, {self.random.randrange(2)}] = {self.value(names)}")
            elif kind == "add":
                self.write(depth, f"cuda.atomic.add(total, i % 2, {self.value(names)})")
        self.cells = cells
        return names

    def local_array(self, names, depth):
        """A local array, filled, and updated in place."""
        array, k = f"q{self.count}", self.loop()
        self.count += 1
        self.write(depth, f"{array} = cuda.local.array(5, np.float64)")
        self.write(depth, f"for {k} in range(5):")
        self.write(depth + 1, f"{array}[{k}] = {k} * 0.1 + {self.value(names)}")
        for _ in range(self.random.randrange(3)):
            self.write(depth, f"for {k} in range({self.random.randrange(1, 16)}):")
            at, other = f"{array}[({k} * 2 + i) % 5]", f"{array}[({k} + {self.random.randrange(5)}) % 5]"
            if self.random.random() < 0.5:
                self.write(depth + 1, f"if {k} != {self.random.randrange(4)}:")
                self.write(depth + 2, f"{at} += {self.value(names)}")
            form = self.random.choice(["math.sin({0}) * {1}", "0.5 * {0} + {1}", "{0} / (1.5 + {1} * {1})"])
            self.write(depth + 1, f"{at} = {form.format(at, other)}")
        self.cells += [f"{array}[(i + {self.random.randrange(5)}) % 5]", f"{array}[2]"]

    def phase(self, depth, has_tree):
        """Threads of the block exchange values in shared memory. In loops, what is not supported is left out."""
        others = depth == 1 or not has_tree
        value = self.value(["v"])
        self.write(depth, f"tile[tid] = {value} if i < x.size else 0.3")
        if others and self.random.random() < 0.3:
            self.write(depth, "if tid == 1:")
            self.write(depth + 1, f"tile[0] = {self.value(['v'])} if i < x.size else 0.2")
            self.lines.insert(-2, "    " * depth + "cuda.syncthreads()")
        self.write(depth, "cuda.syncthreads()")
        if has_tree:
            form = self.random.choice(
                ["{0} + {1}", "math.sin({0}) * {1}", "math.hypot({0}, 0.7 + {1})", "{0} + math.sin({1})"]
            )
            k = self.loop()
            self.write(depth, f"{k} = 16")
            self.write(depth, f"while {k} > 0:")
            self.write(depth + 1, f"if tid < {k} and tid + {k} < cuda.blockDim.x:")
            self.write(depth + 2, f"tile[tid] = {form.format('tile[tid]', f'tile[tid + {k}]')}")
            self.write(depth + 1, "cuda.syncthreads()")
            self.write(depth + 1, f"{k} //= 2")
        elif others and self.random.random() < 0.4:
            self.write(depth, "cuda.atomic.add(tile, (tid * 3) % cuda.blockDim.x, 0.25 * v)")
            self.write(depth, "cuda.syncthreads()")
        near = f"0.1 * tile[(tid + {self.random.randrange(4)}) % cuda.blockDim.x]"
        if self.random.random() < 0.5:
            k = self.loop()
            self.write(
                depth,
                f"t = 0.0\n{'    ' * depth}for {k} in range({self.random.randrange(1, 14 if depth == 1 else 4)}):",
            )
            self.write(depth + 1, f"t += 0.1 * math.cos(tile[(tid + {k}) % cuda.blockDim.x] * w[{k} % w.size])")
            self.write(depth, f"v = v * 0.5 + t * {near}")
        else:
            self.write(depth, f"v = {self.random.choice(['v + {0}', 'math.sin(v) * {0}', '0.5 * {0}']).format(near)}")
        self.write(depth, "cuda.syncthreads()")

    def together(self):
        """Phases with barriers, which all threads of the block reach."""
        self.write(1, "tile = cuda.shared.array(32, np.float64)")
        self.write(1, "tid = cuda.threadIdx.x")
        self.write(1, "v = x[i] if i < x.size else 0.1")
        for _ in range(self.random.randrange(1, 4)):
            if self.random.random() < 0.4:
                self.write(1, f"for {self.loop()} in range({self.random.randrange(2, 12)}):")
                has_tree = self.random.random() < 0.4
                for _ in range(self.random.randrange(1, 3)):
                    self.phase(2, has_tree)
            else:
                self.phase(1, self.random.random() < 0.4)

    def loop(self):
        self.loops += 1
        return f"k{self.loops}"

    def source(self):
        self.write(0, "@cuda.jit")
        self.write(0, "def program(a, x, w, out, total):")
        self.write(1, "i = cuda.grid(1)")
        names = []
        if self.random.random() < 0.5:
            self.together()
            names = ["v"]
        if self.random.random() < 0.5:
            self.write(1, "if i >= x.size:")
            self.write(2, "return")
            depth = 1
        else:
            self.write(1, "if i < x.size:")
            depth = 2
        names = self.block(names, depth, self.random.randrange(3, 8))
        self.write(depth, f"out[i, 0] = {self.value(names)}")
        return "\n".join(self.lines) + "\n"


PRELUDE = "import math\nimport numpy as np\nfrom weft import cuda\n\n"
PRELUDE += "@cuda.jit(device=True)\ndef scaled(u, v):\n    return math.cos(u) * v if u < 0.5 else u - v\n\n"


@pytest.mark.parametrize("seed", range(16))
def test_gradients_of_random_programs(seed, tmp_path):
    # All together: 25 s.
    source = PRELUDE + Program(seed).source()
    file = tmp_path / "program.py"
    file.write_text(source)
    scope = {}
    exec(compile(source, str(file), "exec"), scope)
    rng = np.random.default_rng(seed)
    args = 0.61, rng.random(N), rng.random(4), np.zeros((N, 2)), np.zeros(2)
    try:
        check(scope["program"], *((2, 32) if seed % 2 else (5, 8)), args, ["out", "total"], seed=seed, directions=1)
    except Exception as error:
        raise AssertionError(source) from error
    assert cuda is scope["cuda"]
