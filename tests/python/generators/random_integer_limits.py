"""Random uses of numbers near the limits of 64 bits, and of threads that have ended, for `random_programs.py`.

Constants beyond 2^63 and operators on them; bounds and steps of slices and ranges that are huge, unsigned or have
wrapped around; indices that are in bounds only because they overflowed; guards on a sum that wraps; assertions; and
code after the return of all threads of a block, which must not run.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
from oracle.constants import compiled

from generators.random_constants import spelled
from generators.random_expressions import WIDTH, Scope
from generators.random_loop_carried import CarriedWriter

if TYPE_CHECKING:
    from collections.abc import Callable

HALF, WHOLE = 2**63, 2**64
NUMBERS = (
    "carried", "chains", "calls", "constants", "slices", "ranges", "indices", "guards", "asserts", "returned",
)  # fmt: skip
STATEMENTS = ("sequences", "mixed", "closures", "stars", "matches", "halves")  # of `random_sequences.py`
OBJECTS = ("records", "vectors", "objects", "enums", "nones")  # of `random_objects.py`
VIEWS = ("views", "reductions", "turns", "nested", "patterns", "times", "brains")  # of `random_views.py`
ARRAYS = ("updates", "axes", "sums", "iterators")  # of `random_arrays.py`
FUNCTIONS = ("recursion", "optional", "named", "nonlocals")  # of `random_functions.py`
TEXTS = ("texts", "stamps")  # of `random_strings.py`
LATER = (*ARRAYS, *FUNCTIONS, *TEXTS)
OPERATIONS = ("atomics", "draws", "warps", "bits", "faults")  # of `random_operations.py`
LIBRARY = ("collectives", "libraries", "foreign")  # of `random_collectives.py` and `random_library.py`
FEATURES = (*NUMBERS, *STATEMENTS, *OBJECTS, *VIEWS, *LATER, *OPERATIONS, *LIBRARY)


class EdgeWriter(CarriedWriter):
    """Writes the rare features that were chosen for a program."""

    def __init__(self, seed: int, features: tuple[str, ...] = FEATURES) -> None:
        super().__init__(seed)
        self.seed = seed
        # The draws do not depend on which parts are left out, so that most of the program is the same.
        self.chosen = [name for name in NUMBERS if self.maybe(0.3) and name in features]
        more = random.Random(~seed)  # separate, so that programs without these features are unchanged
        self.chosen += [name for name in STATEMENTS if more.random() < 0.3 and name in features]
        last = random.Random(seed ^ 0x5DEECE66D)
        some = last.random() < 0.6  # the other programs are unchanged
        self.chosen += [name for name in (*OBJECTS, *VIEWS) if last.random() < 0.3 and some and name in features]
        later = random.Random(seed ^ 0x2545F4914F6CDD1D)
        some = later.random() < 0.5
        self.chosen += [name for name in LATER if later.random() < 0.3 and some and name in features]
        latest = random.Random(seed ^ 0x3C6EF372FE94F82B)
        some = latest.random() < 0.4
        self.chosen += [name for name in OPERATIONS if latest.random() < 0.3 and some and name in features]
        newest = random.Random(seed ^ 0x6A09E667F3BCC908)
        some = newest.random() < 0.4
        self.chosen += [name for name in LIBRARY if newest.random() < 0.3 and some and name in features]
        self.chosen += [name for name in FEATURES if f"+{name}" in features and name not in self.chosen]
        if "stamps" in self.chosen and "times" not in self.chosen:
            self.chosen.append("times")
        self.extras = 0.35 if set(self.chosen) & {*STATEMENTS, *OBJECTS, *VIEWS} else 0.15 if self.chosen else 0.0
        if set(self.chosen) & {*OBJECTS, *VIEWS, *LATER, *OPERATIONS, *LIBRARY}:
            self.extras = 0.5
        self.reach = 0  # the argument `hi`

    def extra(self, scope: Scope, depth: int) -> list[str]:
        """A statement of one of the features."""
        writers = self.writers(scope, depth)
        able = [name for name in self.chosen if name in writers]
        return writers[self.pick(*able)]() if able else self.assignment(scope)

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        """The methods that write statements of the features."""
        return {
            "carried": lambda: self.carried_statement(scope, depth),
            "chains": lambda: self.chain_statement(scope, depth),
            "calls": lambda: self.calls_statement(scope, depth),
            "slices": lambda: self.slice_statement(scope),
            "ranges": lambda: self.huge_range(scope),
            "indices": lambda: self.overflowing_index(scope),
            "guards": lambda: self.guard_statement(scope, 1) if scope.kernel else self.assignment(scope),
            "asserts": lambda: self.assertion(scope),
            "constants": lambda: [f"{self.target(scope)} = {self.huge_literal()}"],
        }

    # Numbers.

    def constant(self) -> str:
        if "constants" in self.chosen and self.maybe(0.15):
            return self.huge_literal()
        return super().constant()

    def huge_literal(self) -> str:
        """A constant near or beyond the limits of int64."""
        near = self.random.randint(0, 9)
        above = self.pick(HALF + 1 + near, WHOLE - 1 - near, 0xFFFFFFFF00000000 + near, 2**63 + 2**62)
        text = self.pick(
            str(above), hex(above), hex(above), f"(~{hex(above)})", f"(-{hex(above)})", f"(+{above})",
            str(HALF - 1 - near), f"(-{HALF - 1 - near})", f"(-{hex(HALF)})", f"abs(-{HALF})", f"(-(-{HALF}))",
            f"(~{HALF - 1 - near})", f"np.uint64({above})", f"np.int64({-HALF + near})", f"abs(~{hex(above)})",
        )  # fmt: skip
        number = compiled(text) if self.spelling.random() < 0.3 else None
        return spelled(self.spelling, number[0]) if number else text

    def far(self, scope: Scope) -> str:
        """A number that is not zero, and mostly huge; it may be unsigned."""
        near = self.random.randint(0, 9)
        names = [name for name in ("hu", "hi") if name in scope.typer.env]
        known = self.pick(HALF + near, WHOLE - 1 - near, HALF - 1 - near, HALF - 1 - near)
        known = self.pick(str(known), str(known), f"np.uint64({known})", f"-{min(known, HALF)}")
        return self.pick(*names, *names, known)

    def far_bound(self, scope: Scope) -> str:
        """A bound: huge, small, or one that has wrapped around."""
        near, kind = self.random.randint(0, 9), self.random.random()
        if kind < 0.25:
            return str(self.random.randint(-5, 6))
        if kind < 0.4:
            integers = [text for text in scope.inputs if scope.is_int(text)]
            if integers:
                return f"np.uint64({self.pick(*integers)}) - np.uint64({near})"
        if kind < 0.6 and "hu" in scope.typer.env:
            sign = self.pick("+", "-")
            return self.pick(f"hu {sign} np.uint64({near})", f"hi {sign} {near}")
        return self.far(scope)

    def arguments_of_edges(self) -> dict[str, object]:
        """The arguments that kernels with some features have."""
        args: dict[str, object] = {}
        if {"slices", "ranges", "guards"} & set(self.chosen):
            near = self.random.randint(0, 9)
            args["hu"] = np.uint64(self.pick(HALF + near, WHOLE - 1 - near, HALF - 1 - near, near + 1))
            near = self.random.randint(1, self.threads)
            args["hi"] = self.pick(HALF - near, HALF - near, -HALF + near, -HALF + near, HALF - 1, -HALF, near, -near)
            self.reach = args["hi"]
        if "returned" in self.chosen:
            args |= self.arguments_of_tail()
        return args

    # Slices and ranges.

    def huge_slice(self, scope: Scope) -> str:
        """The inside of a slice's brackets."""
        kind = self.random.random()
        low, high = self.far_bound(scope), self.far_bound(scope)
        if kind < 0.3:
            return self.pick(f"{low}:", f":{high}", f"{low}:{high}")
        step = self.far(scope) if kind < 0.75 else self.pick("-1", "2", "-2")
        return self.pick(f"::{step}", f"{low}::{step}", f":{high}:{step}", f"{low}:{high}:{step}")

    def slice_statement(self, scope: Scope) -> list[str]:
        """A view with huge bounds or a huge step, which may be empty."""
        if not (scope.rows or scope.planes):
            return self.assignment(scope)
        view, target = f"{self.row(scope)}[{self.huge_slice(scope)}]", self.target(scope)
        if self.maybe(0.2):
            view += f"[{self.huge_slice(scope)}]"
        if scope.planes and self.maybe(0.25):
            plane = self.pick(*scope.planes)[0]
            one, two = self.huge_slice(scope), self.pick(":", self.huge_slice(scope))
            return [
                self.pick(f"{target} = {plane}[{one}, {two}].size", f"{plane}[{one}, {two}] = {self.expr(scope, 1)}")
            ]
        kind = self.random.random()
        if kind < 0.3:
            return [f"{target} = {self.pick(f'len({view})', f'{view}.size')}"]
        if kind < 0.6:
            return [f"{view} = {self.expr(scope, 1)}"]
        name = self.fresh("k")
        if kind < 0.8:
            count = self.fresh("n")
            return [f"{count} = 0", f"for {name} in {view}:", f"    {count} += 1", f"    {target} = {name}"]
        part = self.fresh("b")
        scope.fixed.add(part)
        return [f"{part} = {view}", f"if len({part}) > 0:", f"    {target} = {part}[{self.pick('0', '-1')}]"]

    def huge_range(self, scope: Scope) -> list[str]:
        """A range with huge bounds or steps; the loop is left after a few iterations."""
        a, b, k, count = self.far_bound(scope), self.far_bound(scope), self.fresh("k"), self.fresh("n")
        step = self.far(scope) if self.maybe(0.5) else self.pick("1", "-1", "3", "-2")
        if self.maybe(0.2):  # all unsigned
            a, b, step = (f"np.uint64({part})" for part in (a, b, self.far(scope)))
        text = self.pick(f"range({a}, {b})", f"range({a}, {b}, {step})", f"range({a}, {b}, {step})", f"range({a})")
        if self.maybe(0.4):  # int64 by its other arguments, in which a constant beyond it is negative
            above, small = self.pick(HALF, HALF + 3, 3 * HALF // 2), self.random.randint(0, 5)
            above = self.pick(str(above), hex(above))
            up, down = f"range({above}, {small}, {self.pick('1', '2', '5')})", f"range({small}, {above}, -1)"
            text = self.pick(up, down, down, f"range({above}, {small})")
        total = self.fresh("v")
        values = [f"{k} // {self.pick('2', '3', '-2')}", f"{k} % {self.pick('10', '3', '-3')}", k, f"({k} >> 1)"]
        values += [f"min({k}, {self.expr(scope, 0)})", f"abs({k})", f"(1 if {k} < {self.expr(scope, 0)} else 0)"]
        uses = [f"{total} = {total} * 3 + {value}" for value in self.random.sample(values, 2)]
        if scope.rows or scope.planes:
            index = self.pick(k, k, f"{k} + 0", f"{k} * 1")
            take = f"{total} = {total} * 3 + int({self.row(scope)}[{index}])"
            inside = self.pick(take, take, f"{self.row(scope)}[{index}] = {count}")
            uses.append(f"if -{WIDTH} <= {k} < {WIDTH}:\n    {inside}")
            uses.append(f"{total} = {total} + int({self.row(scope)}[{k} % {WIDTH}])")
        body = [line for use in self.random.sample(uses, 2) for line in use.split("\n")]
        leave = [f"if {count} >= {self.random.randint(2, 8)}:", "    break"]
        turn = [*leave, f"{count} += 1", *body] if self.maybe(0.5) else [*body, f"{count} += 1", *leave]
        scope.fixed.add(k)
        return [f"{count} = {total} = 0", f"for {k} in {text}:", *(f"    {line}" for line in turn)]

    # Indices and guards.

    def overflowing_index(self, scope: Scope) -> list[str]:
        """An element whose index is in bounds only since it wrapped around."""
        if not (scope.rows or scope.planes):
            return self.assignment(scope)
        row, j, number = self.row(scope), self.fresh("j"), self.expr(scope, 1, ints=True)
        places = [f"({number} & 3)", f"({number} % 4)", *(["(t % 4)", "(i & 3)"] if scope.kernel else [])]
        place, use = self.pick(*places), self.pick(f"{self.target(scope)} = {row}[{j}]", f"{row}[{j}] = {number}")
        scope.fixed.add(j)
        kind = self.random.random()
        if kind < 0.5:  # 0 to 3, and two numbers whose sum is -2 to -4
            one, two = HALF - 1 - self.random.randint(0, 1), HALF - 1 - self.random.randint(0, 1)
            return self.pick(
                [f"{j} = {place} + {one} + {two}", use],
                [f"{j} = {place} + {one}", f"{j} = {j} + {two}", use],
                [f"{j} = {place}", f"{j} += {one}", f"{j} += {two}", use],
            )
        turn = self.pick(2, 3, 5, 6, 7)
        want = [at for at in range(-WIDTH, WIDTH) if any((WHOLE * m + at) % turn == 0 for m in range(1, turn // 2 + 1))]
        at = self.pick(*want)
        factor = min((WHOLE * m + at) // turn for m in range(1, turn // 2 + 1) if (WHOLE * m + at) % turn == 0)
        if factor >= HALF:
            return self.assignment(scope)
        if kind < 0.75:
            k = self.fresh("k")
            return [f"for {k} in range({turn - 1}, {turn + 2}):", f"    if {k} == {turn}:",
                    f"        {j} = {k} * {factor}", f"        {use}"]  # fmt: skip
        n = self.fresh("n")
        scope.fixed.add(n)
        return [f"{n} = {number} & 7", f"if {n} == {turn}:", f"    {j} = {n} * {factor}", f"    {use}"]

    def guarded_place(self) -> tuple[str, str]:
        place, limit = super().guarded_place()
        if "guards" not in self.chosen or self.maybe(0.4):
            return place, limit
        # A sum that wraps around for some of the threads.
        one, far = self.pick("t", "i", "cuda.threadIdx.x", "i"), HALF - self.random.randint(1, self.threads)
        added = ["{0} + hi", "hi + {0}", "{0} + hi + 1"] if self.reach > 0 else ["{0} - hi", "hi - {0}", "hi - 1 - {0}"]
        known = self.pick("{0} + {1}", "{0} - (-{1})", "{1} + {0}", "-{1} - {0}")
        place = self.pick(*added, known).format(one, far)
        return place, self.pick("0", "0", limit, limit, limit, f"-{far}", str(far))

    def front_condition(self, scope: Scope) -> str:
        """A condition on the thread's position, which may come before all other code."""
        if "guards" in self.chosen and self.maybe(0.6):
            place, limit = self.guarded_place()
            return f"{place} {self.pick('<', '<=', '>', '>=')} {limit}"
        return self.place_condition(scope)

    # Threads that have ended.

    def assertion(self, scope: Scope) -> list[str]:
        """It may fail only where threads may return."""
        if not self.leaves:
            return self.assignment(scope)
        number = self.random.randint(-3, 9)
        rare = f"{self.pick(*scope.inputs)} != {number}" if scope.inputs else f"{self.expr(scope, 0)} != {number}"
        return [f"assert {self.pick(rare, rare, self.condition(scope, 1))}"]

    def arguments_of_tail(self) -> dict[str, object]:
        """Which threads return before the last part, and numbers that are harmless only where some do not."""
        blocks = self.size // self.threads
        gone = np.ones((blocks, self.threads), np.int64)
        kind = self.random.random()
        if kind < 0.15:
            gone = np.array([self.maybe(0.5) for _ in range(self.size)], np.int64)
        elif kind < 0.35:
            gone[self.random.randrange(blocks)] = 0
        everyone = bool(gone.all())
        return {"gone": gone.reshape(self.size), "pn": 0 if everyone else self.pick(27, 6, 1), "pf": 2**45 * everyone}

    def tail(self) -> list[str]:
        """Returns of whole blocks, and code that the remaining blocks run."""
        wait = ["cuda.syncthreads()"] * (self.barriers or self.maybe(0.5))
        u, turns = self.fresh("u"), self.fresh("n")
        collatz = [f"{turns} = 0", f"while {u} != 1:", f"    {u} = 3 * {u} + 1 if {u} % 2 else {u} // 2"]
        collatz += [f"    {turns} += 1"]
        if self.maybe(0.3):
            collatz[2:2] = [f"    if {turns} < -1:", "        break"]
        many = [f"{turns} = 0", f"for {u} in range(pf + 3):", f"    {turns} = {turns} * 3 + {u}"]
        load = [f"{turns} = gone[pf]"]
        what = self.pick([f"{u} = pn", *collatz], [f"{u} = pn", *collatz], many, load)
        at = self.random.randrange(3)
        ends = [
            [f"oi[i, {at}] = {turns}"],
            [f"if {turns} > 5:", *(f"    {line}" for line in wait), f"    oi[i, {at}] = {turns}",
             "else:", *(f"    {line}" for line in wait), f"    oi[i, {at}] = -{turns}"],
            [f"if {turns} % 2 == 0:", f"    {turns} = 5", *wait, f"oi[i, {at}] = {turns}"],
        ]  # fmt: skip
        test = self.pick("gone[i] != 0", "gone[i]", "gone[i] == 1 and i >= 0", "gone[i] > 0")
        return [f"if {test}:", "    return", *wait, *what, *self.pick(*ends)]
