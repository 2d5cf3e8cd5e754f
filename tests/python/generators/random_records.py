"""Random records for `random_objects.py`: arrays of them, their fields, records in local and in shared memory."""

from __future__ import annotations

import numpy as np

from generators.random_expressions import Scope
from generators.random_sequences import SequenceWriter
from generators.typed_objects import type_of_value
from generators.typed_values import Array, Record, Type

FORMATS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "f4", "f8", "?", "c8", "c16")


class RecordWriter(SequenceWriter):
    """Writes the module's constructs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.records: list[str] = []  # expressions of records that a thread may write
        self.read_records: list[str] = []  # and of those that it may read only

    def define_records(self) -> None:
        inner = [(name, self.pick(*FORMATS)) for name in ("p", "q")]
        fields: list[tuple] = []
        for position in range(self.random.randint(2, 5)):
            kind = self.random.random()
            name = f"f{position}"
            if kind < 0.65:
                fields.append((name, self.pick(*FORMATS)))
            elif kind < 0.85:
                fields.append((name, self.pick(*FORMATS[:-2]), self.pick((2,), (3,), (2, 3), (1,))))
            else:
                fields.append((name, inner))
        if not any(field[1] in FORMATS[:-2] and len(field) == 2 for field in fields):
            fields.append(("f9", self.pick("i4", "f8", "u1")))
        text = f"np.dtype({fields!r}{self.pick('', ', align=True')})"
        if self.maybe(0.15) and all(len(field) == 2 and isinstance(field[1], str) for field in fields):
            at, offsets = self.random.randint(0, 3), []
            for _, name in fields:
                offsets.append(at)
                at += np.dtype(name).itemsize + self.random.randint(0, 3)
            shape = {"names": [each[0] for each in fields], "formats": [each[1] for each in fields],
                     "offsets": offsets, "itemsize": at + self.random.randint(0, 5)}  # fmt: skip
            text = f"np.dtype({shape!r})"
        pair = [("a", self.pick(*FORMATS[:12])), ("b", self.pick(*FORMATS[:12]))]
        self.define(f"REC = {text}", f"PAIR = np.dtype({pair!r}{self.pick('', ', align=True')})")

    def record_array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """An array with values in all fields."""
        made = np.zeros(shape, self.functions.names[name])
        self.fill(made)
        return made

    def fill(self, array: np.ndarray) -> None:
        for name in array.dtype.names:
            part = array[name]
            if part.dtype.names:
                self.fill(part)
            else:
                part[...] = self.array(part.dtype.name, part.shape)

    def record_paths(self, text: str, ty: Type, kinds: str) -> list[str]:
        """The numbers of some kinds in a record."""
        if isinstance(ty, np.dtype):
            return [text] if ty.kind in kinds else []
        if isinstance(ty, Array):
            if isinstance(ty.dtype, np.dtype) and ty.dtype.kind in kinds and ty.ndim <= 2:
                # An index of 0 or from the end is in any array that a field has.
                one, two = self.pick("0", "-1"), self.pick("0", "-1")
                inside = one if ty.ndim == 1 else f"{one}, {two}"
                return [f"{text}[{inside}]"]
            return []
        if isinstance(ty, Record):
            found = []
            for position, name in enumerate(ty.dtype.names):
                part = self.pick(f".{name}", f'["{name}"]', f".{name}", f"[{position}]")
                found += self.record_paths(text + part, ty.field(name), kinds)
            return found
        return []

    def a_record(self, scope: Scope, *, write: bool = True) -> tuple[str, Record]:
        able = list(self.records) if scope.kernel else []
        able += [name for name, ty in scope.typer.env.items() if isinstance(ty, Record) and name != "ro"]
        if not write and scope.kernel:
            able += self.read_records
        if not able:
            raise TypeError("there is no record")
        text = self.pick(*able)
        ty = scope.type_of(text)
        if not isinstance(ty, Record):
            raise TypeError("no record")
        return text, ty

    def record_number(self, scope: Scope, kinds: str = "iufb", *, write: bool = False) -> str:
        """A number in a record."""
        text, ty = self.a_record(scope, write=write)
        paths = self.record_paths(text, ty, kinds)
        if not paths:
            raise TypeError("no such number")
        return self.pick(*paths)

    def start_records(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines = ["rl = cuda.local.array(2, REC)", "rl[0] = ra[i]", f"rl[1] = {self.pick('ra[i]', 'rl[0]')}"]
        self.records = ["rl[0]", "rl[-1]", "ra[i]", self.pick("ra[i:][0]", "ra[-1 - i:][0]", "ra[i]")]
        if self.records[-1].startswith("ra[-1"):
            self.records[-1] = "ra[i]"
        if self.maybe(0.5):
            lines.append(f"rec = {self.pick('ra[i]', 'rl[1]', 'ra[::-1][-1 - i]')}")
        if "rb" in args:
            self.records += ["rb[i, 1]", self.pick("rb[i][0]", "rb.T[0, i]", "rb[i, ::-1][1]")]
        if "ro" in args:
            self.read_records = ["ro"]
        self.accept(scope, lines)
        scope.fixed |= {"rl", "rec"}
        for _ in range(2):
            text, ty = self.a_record(scope, write=False)
            if paths := self.record_paths(text, ty, "iufb"):
                scope.inputs.append(self.pick(*paths))
        return lines

    def column(self, scope: Scope, kinds: str) -> str:
        """A number by way of a view of a field of all records."""
        ty = type_of_value(np.zeros(0, self.functions.names["REC"]))
        name = self.pick(*ty.dtype.dtype.names)
        found = ty.dtype.field(name)
        base = self.pick("ra", "ra", "ra[i:]", "ra[::-1]")
        at = {"ra": "i", "ra[i:]": "0", "ra[::-1]": "-1 - i"}[base]
        text = base + self.pick(f".{name}", f'["{name}"]')
        if isinstance(found, Array):
            inner = ", ".join(self.pick("0", "-1") for _ in range(found.ndim))
            text = f"{text}[{at}, {inner}]"
        else:
            text = f"{text}[{at}]"
        got = scope.type_of(text)
        if not isinstance(got, np.dtype) or got.kind not in kinds:
            raise TypeError("another kind")
        return text

    def record_statement(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        if kind < 0.3:
            place = self.record_number(scope, write=True)
            if self.maybe(0.3):
                return [f"{place} {self.pick('+', '-', '+', '//', '%')}= {self.expr(scope, 1)}"]
            return [f"{place} = {self.expr(scope, 2)}"]
        if kind < 0.36:
            return [f"{self.record_number(scope, 'c', write=True)} = {self.complex_expr(scope, 1)}"]
        if kind < 0.42:
            return [f"{self.fresh('z')} = {self.record_number(scope, 'c')}"]
        if kind < 0.55:
            return [f"{self.target(scope)} = {self.record_number(scope)} + {self.expr(scope, 1)}"]
        if not scope.kernel:
            return self.assignment(scope)
        if kind < 0.65:
            if self.maybe(0.5):
                return [f"{self.column(scope, 'iufb')} = {self.expr(scope, 1)}"]
            return [f"{self.target(scope)} = {self.column(scope, 'iufb')}"]
        if kind < 0.75:
            (into, ty), (what, other) = self.a_record(scope), self.a_record(scope, write=False)
            if ty != other or "[" not in into or into == what:
                raise TypeError("records of other types, or a name")
            return [f"{into} = {what}"]
        if kind < 0.84:
            into, ty = self.a_record(scope)
            items = ty.items()
            if "[" not in into or not all(isinstance(item, np.dtype) for item in items):
                raise TypeError("fields that are no numbers")
            values = [self.complex_expr(scope, 1) if item.kind == "c" else self.expr(scope, 1) for item in items]
            for place, item in enumerate(items):  # all are read before the first is written
                if item.kind != "c" and self.maybe(0.5):
                    values[place] = self.pick(*self.record_paths(into, ty, "iufb"), values[place])
            return [f"{into} = ({', '.join(values)},)"]
        if kind < 0.9:
            what, ty = self.a_record(scope, write=False)
            names = [self.fresh("z" if each.kind == "c" else "v") if isinstance(each, np.dtype) else "_"
                     for each in ty.items()]  # fmt: skip
            if "_" in names or len(names) < 2:
                raise TypeError("fields that are no numbers")
            return [f"{', '.join(names)} = {what}"]
        name = self.fresh("rv")
        if kind < 0.95:
            one, two = self.pick("rl[0]", "rl[1]", "ra[i]"), self.pick("rl[0]", "rl[1]", "ra[i]")
            lines = [f"{name} = {one} if {self.condition(scope, 1)} else {two}"]
            self.accept(scope, lines)
            scope.fixed.add(name)
            if paths := self.record_paths(name, scope.typer.env[name], "iufb"):
                lines.append(f"{self.pick(*paths)} = {self.expr(scope, 1)}")
            return lines
        over = self.pick("rl", "rl[::-1]", "rl")
        target = self.target(scope)
        ty = scope.type_of("rl[0]")
        paths = self.record_paths(name, ty, "iufb")
        body = [f"{target} = {self.pick(*paths)}", f"{self.pick(*paths)} = {self.expr(scope, 1)}"]
        self.random.shuffle(body)
        return [f"for {name} in {over}:", *(f"    {line}" for line in body)]

    def record_function(self) -> list[str]:
        """A device function that reads and writes a record."""
        name = f"rf{len(self.functions.sources)}"
        ty = Record(self.functions.names["REC"])
        number = self.dtype()
        paths = self.record_paths("r", ty, "iufb")
        scope = Scope(self.functions, {"r": ty, "a": number})
        scope.inputs, scope.fixed = [*paths, "a"], {"r"}
        lines = [f"{self.pick(*paths)} = {self.expr(scope, 1)}"] if self.maybe(0.7) else []
        self.accept(scope, lines)
        lines += self.block(scope, 1, 2)
        if scope.typer.env is None:
            return []
        lines.append(f"return {self.expr(scope, 2)}")
        if text := self.defined(name, ["r", "a"], lines, [ty, number]):
            self.kinds[name] = ["record", "number"]
            return text
        return []

    def exchange(self, scope: Scope) -> list[str]:
        if "records" in self.chosen and scope.kernel and "sx" in scope.typer.env and self.maybe(0.3):
            read = self.pick(f"sx[{self.threads} - 1 - t]", "sx[t - 1]", "sx[::-1][t]")
            paths = self.record_paths(read, scope.type_of(read), "iufb")
            own = self.record_paths("sx[t]", scope.type_of("sx[t]"), "iufb")
            write = self.pick("sx[t] = ra[i]", "sx[t] = rl[0]", f"{self.pick(*own)} = {self.expr(scope, 1)}")
            return [write, "cuda.syncthreads()", f"{self.target(scope)} = {self.pick(*paths)}", "cuda.syncthreads()"]
        return super().exchange(scope)
