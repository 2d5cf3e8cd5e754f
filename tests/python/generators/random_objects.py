"""Random vectors, named tuples, dataclasses, enums and `None`, for `random_programs.py`.

The classes and dtypes that a program has are lines of its module (`definitions`). Its arguments of these types are
`Made` and `Chosen`, from which each module creates objects of its own classes.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from generators.random_expressions import INTS, TYPES, WIDTH, Scope
from generators.random_records import RecordWriter
from generators.typed_values import INT64, Member, Named, Record

if TYPE_CHECKING:
    from collections.abc import Callable

LANES = "xyzw"
VECTORS = [f"{name}x{count}" for name in (*INTS, "float32", "float64") for count in (2, 3, 4)]


@dataclasses.dataclass
class Made:
    """An argument: an object of a class of the program's module."""

    of: str
    items: tuple[object, ...]


@dataclasses.dataclass
class Chosen:
    """An argument: a member of an enum of the program's module."""

    of: str
    name: str


def instantiate(arg: object, names: dict[str, object]) -> object:
    """The argument for a module that has these names."""
    if isinstance(arg, Made):
        return names[arg.of](*(instantiate(item, names) for item in arg.items))
    if isinstance(arg, Chosen):
        return names[arg.of][arg.name]
    return arg


def names_of(source: str) -> dict[str, object]:
    """The classes and objects that a module defines besides functions."""
    if "\nimport" not in source.replace("import numpy as np\n", "", 1):
        return {}
    tree = ast.parse(source)
    rest = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    names: dict[str, object] = {"__name__": __name__}
    exec(compile(ast.Module(rest, []), "<definitions>", "exec"), names)
    kept = {node.name for node in rest if isinstance(node, ast.ClassDef)}
    kept |= {target.id for node in rest if isinstance(node, ast.Assign) for target in node.targets}
    return {name: names[name] for name in kept}


class ObjectWriter(RecordWriter):
    """Writes the module's constructs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.definitions: list[str] = []
        self.classes: list[str] = []  # of named tuples of numbers
        self.enums: list[str] = []
        self.object_functions: list[str] = []

    def define(self, *lines: str) -> None:
        """Adds lines to the module."""
        self.definitions += lines
        head = "import dataclasses\nimport enum\nfrom collections import namedtuple\n\nimport numpy as np\n\n\n"
        self.functions.names = names_of(head + "\n".join(self.definitions) + "\n")

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {
            "records": lambda: self.record_statement(scope),
            "vectors": lambda: self.vector_statement(scope),
            "objects": lambda: self.object_statement(scope),
            "enums": lambda: self.enum_statement(scope, depth),
            "nones": lambda: self.none_statement(scope),
        }

    def definitions_of_features(self) -> list[str]:
        """Defines the module's classes; the text of device functions."""
        lines: list[str] = []
        if "records" in self.chosen:
            self.define_records()
        if "objects" in self.chosen:
            self.define_classes()
        if "enums" in self.chosen:
            self.define_enums()
        if "records" in self.chosen and self.maybe(0.6):
            lines += self.record_function()
        if "objects" in self.chosen and self.maybe(0.6):
            lines += self.object_function()
        if "nones" in self.chosen:
            lines += self.none_function()
        return lines

    def arguments_of_features(self) -> dict[str, object]:
        """The arguments that kernels with these features have."""
        args: dict[str, object] = {}
        if "records" in self.chosen:
            args["ra"] = self.laid_out(self.record_array("REC", (self.size,)))
            if self.maybe(0.5):
                args["rb"] = self.laid_out(self.record_array(self.pick("REC", "PAIR"), (self.size, 2)))
            if self.maybe(0.5):
                args["ro"] = self.record_array(self.pick("REC", "PAIR"), (3,))[self.random.randrange(3)]
        if "vectors" in self.chosen:
            name = self.pick(*VECTORS)
            args["vx"] = self.array(name[:-2], (self.size * int(name[-1]),))
            self.viewed = name
        if "objects" in self.chosen:
            args["ko"] = Made(self.classes[0], self.numbers_for(self.classes[0]))
            rows = self.array(self.pick(*TYPES), (self.size, WIDTH))
            point = Made(self.classes[0], self.numbers_for(self.classes[0]))
            args["do"] = Made("Box", (self.scalar_of("f8"), rows, point))
        if "enums" in self.chosen:
            args["en"] = Chosen("Level", self.pick("LOW", "MID", "HIGH"))
            args["em"] = Chosen("Color", self.pick("RED", "GREEN", "BLUE"))
        if "nones" in self.chosen:
            args["nn"] = None if self.maybe(0.6) else self.scalar()
        return args

    def start_features(self, scope: Scope, args: dict[str, object]) -> list[str]:
        """The start of a kernel with these features."""
        lines: list[str] = []
        if "records" in self.chosen:
            lines += self.start_records(scope, args)
        if "vectors" in self.chosen:
            lines += self.start_vectors(scope)
        if "objects" in self.chosen:
            lines += self.start_objects(scope)
        if "enums" in self.chosen:
            lines += self.start_enums(scope)
        if "nones" in self.chosen:
            scope.inputs.append("dk")
        return lines

    def scalar_of(self, text: str) -> object:
        return np.dtype(text).type(self.random.randint(-20, 20) / 8)

    def argument(self, scope: Scope, kind: str, depth: int) -> str | None:
        if kind == "record":
            ty = Record(self.functions.names["REC"])
            able = [text for text in ("rl[0]", "rl[1]", "ra[i]", "rec") if scope.kernel and text[:2] in scope.typer.env]
            able = [text for text in able if text != "rec" or "rec" in scope.typer.env]
            able += [name for name, each in scope.typer.env.items() if each == ty and name not in ("ro", "rec")]
            return self.pick(*able) if able else None
        if kind == "object":
            return self.object_expr(scope, depth)
        return super().argument(scope, kind, depth)

    # Vectors.

    def vectors(self, scope: Scope) -> list[str]:
        return [name for name, ty in scope.typer.env.items() if isinstance(ty, Named) and ty.kind == "vector"]

    def a_vector(self, scope: Scope, depth: int, name: str = "") -> str:
        """An expression of a vector, of a type if one is named."""
        for _ in range(20):
            text = self.any_vector(scope, depth, name)
            try:
                ty = scope.type_of(text)
            except TypeError:
                continue
            if not name or ty.of == f"cuda.{name}":
                return text
        return f"cuda.{name or 'int32x2'}(1)"

    def any_vector(self, scope: Scope, depth: int, name: str) -> str:
        names = [each for each in self.vectors(scope) if name in ("", scope.typer.env[each].of.removeprefix("cuda."))]
        if names and self.maybe(0.4):
            return self.pick(*names)
        if depth > 0 and names and self.maybe(0.7):
            one = self.a_vector(scope, depth - 1, name)
            ty = scope.type_of(one)
            ops = ["+", "-", "+", "-", "//", "%", *(["&", "|", "^"] if ty[0].kind in "iu" else [])]
            other = self.expr(scope, 1)
            same = [each for each in self.vectors(scope) if len(scope.typer.env[each]) == len(ty)]
            if same and self.maybe(0.6):
                # The type is the left one's, which must remain that of `name`.
                other = self.pick(*same)
                return f"({one} {self.pick(*ops)} {other})"
            if self.maybe(0.2):
                return f"({one} * {self.pick('2', '-1', '0.5')})"
            left, right = (one, other) if self.maybe(0.6) else (other, one)
            return f"({left} {self.pick(*ops)} {right})"
        name = name or self.pick(*VECTORS)
        count = int(name[-1])
        kind = self.random.random()
        if kind < 0.15:
            return f"cuda.{name}({self.expr(scope, 1)})"
        if kind < 0.3:
            return f"cuda.{name}(({', '.join(self.expr(scope, 1) for _ in range(count))}))"
        if kind < 0.45 and count > 2:
            part = f"cuda.{name[:-1]}2({self.expr(scope, 1)}, {self.expr(scope, 0)})"
            more = [self.expr(scope, 1) for _ in range(count - 2)]
            more.insert(self.random.randint(0, len(more)), part)
            return f"cuda.{name}({', '.join(more)})"
        return f"cuda.{name}({', '.join(self.expr(scope, 1) for _ in range(count))})"

    def start_vectors(self, scope: Scope) -> list[str]:
        name = self.pick(*VECTORS, self.viewed)
        lines = [f"vw = vx.view(cuda.{self.viewed})", f"va = cuda.local.array(2, cuda.{name})"]
        self.accept(scope, lines)
        scope.fixed |= {"vw", "va"}
        more = [f"va[0] = {self.a_vector(scope, 0, name)}", f"va[1] = {self.a_vector(scope, 0, name)}"]
        first = self.fresh("q")
        more.append(f"{first} = {self.pick('vw[i]', 'va[0]', self.a_vector(scope, 0))}")
        self.accept(scope, more)
        return lines + more

    def vector_statement(self, scope: Scope) -> list[str]:
        kind, names = self.random.random(), [each for each in self.vectors(scope) if each not in scope.fixed]
        if scope.kernel and kind < 0.35:
            array = self.pick("vw", "va")
            at = "i" if array == "vw" else self.pick("0", "1", "-1", "t % 2", "i & 1")
            ty = scope.type_of(f"{array}[{at}]")
            name = ty.of.removeprefix("cuda.")
            if self.maybe(0.5):
                return [f"{self.fresh('q')} = {array}[{at}]"]
            return [f"{array}[{at}] = {self.a_vector(scope, 1, name)}"]
        if names and kind < 0.5:
            name = self.pick(*names)
            ty = scope.typer.env[name]
            if self.maybe(0.4):
                return [f"{name} {self.pick('+=', '-=')} {self.expr(scope, 1)}"]
            return [f"{name} = {self.a_vector(scope, 1, ty.of.removeprefix('cuda.'))}"]
        if names and kind < 0.7:
            name = self.pick(*names)
            ty = scope.typer.env[name]
            lane = self.pick(*ty.fields)
            return [f"{self.target(scope)} = {name}.{lane} {self.pick('+', '-')} {self.expr(scope, 1)}"]
        if names and kind < 0.8:
            name = self.pick(*names)
            targets = ", ".join(self.fresh("v") for _ in scope.typer.env[name])
            return [f"{targets} = {name}"]
        if names and kind < 0.9:
            name = self.pick(*names)
            other = self.a_vector(scope, 1, scope.typer.env[name].of.removeprefix("cuda."))
            return [f"{name} = {other} if {self.condition(scope, 1)} else {name}"]
        return [f"{self.fresh('q')} = {self.a_vector(scope, 1)}"]

    # Named tuples and dataclasses.

    def define_classes(self) -> None:
        fields = ["a", "b", "c"][: self.random.randint(2, 3)]
        default = f", defaults=[{self.pick('5', '0.5')}]" if self.maybe(0.4) else ""
        lines = [f'Point = namedtuple("Point", {fields!r}{default})']
        self.classes.append("Point")
        frozen = self.pick("@dataclasses.dataclass", "@dataclasses.dataclass(frozen=True)")
        lines += ["", "", frozen, "class Box:", "    scale: float", "    cells: object", "    corner: Point"]
        lines += ["", "", "@dataclasses.dataclass(frozen=True)", "class Span:", "    start: float", "    stop: float"]
        if self.maybe(0.5):
            lines += [f"    step: float = {self.pick('2', '0.25')}"]
        self.classes.append("Span")
        lines += ["", "", f"ORIGIN = Point({', '.join(self.literal() for _ in fields)})"]
        self.define(*lines)

    def numbers_for(self, name: str) -> tuple[object, ...]:
        cls = self.functions.names[name]
        count = len(getattr(cls, "_fields", None) or dataclasses.fields(cls))
        return tuple(self.scalar() for _ in range(count))

    def objects(self, scope: Scope, of: str = "") -> list[str]:
        return [
            name
            for name, ty in scope.typer.env.items()
            if isinstance(ty, Named) and ty.of in self.classes and of in ("", ty.of)
        ]

    def object_expr(self, scope: Scope, depth: int, of: str = "") -> str:
        """An expression of an object of a class."""
        of = of or self.pick(*self.classes)
        names = self.objects(scope, of)
        if names and self.maybe(0.4):
            return self.pick(*names)
        if of == "Point" and self.maybe(0.15):
            return self.pick("ORIGIN", *(["do.corner"] if scope.kernel else []))
        if of == "Point" and depth > 0 and self.object_functions and self.maybe(0.3):
            return (
                f"{self.pick(*self.object_functions)}({self.object_expr(scope, depth - 1, of)}, {self.expr(scope, 1)})"
            )
        cls = self.functions.names[of]
        if hasattr(cls, "_fields"):
            fields, known = list(cls._fields), len(cls._field_defaults)
        else:
            fields = [field.name for field in dataclasses.fields(cls)]
            known = sum(field.default is not dataclasses.MISSING for field in dataclasses.fields(cls))
        given = self.random.randint(len(fields) - known, len(fields))
        values = [self.expr(scope, 1) for _ in range(given)]
        positional = self.random.randint(0, given)
        named = [f"{name}={value}" for name, value in zip(fields[positional:given], values[positional:], strict=True)]
        self.random.shuffle(named)
        return f"{of}({', '.join([*values[:positional], *named])})"

    def start_objects(self, scope: Scope) -> list[str]:
        point = scope.typer.env["ko"]
        scope.inputs += [f"ko.{self.pick(*point.fields)}", self.pick("do.scale", f"do.corner.{point.fields[0]}")]
        scope.inputs.append(f"ko[{self.random.randrange(len(point))}]")
        scope.rows.append(self.pick("do.cells[i]", "do.cells[i]", "do.cells[i, ::-1]"))
        return self.statement(scope, 0, write=lambda each: [f"{self.fresh('o')} = {self.object_expr(each, 1)}"])

    def object_statement(self, scope: Scope) -> list[str]:
        names = [name for name in self.objects(scope) if name not in scope.fixed]
        kind = self.random.random()
        if names and kind < 0.3:
            name = self.pick(*names)
            value = self.object_expr(scope, 1, scope.typer.env[name].of)
            if self.maybe(0.4):
                value = f"{value} if {self.condition(scope, 1)} else {name}"
            return [f"{name} = {value}"]
        tuples = [name for name in names if scope.typer.env[name].kind == "tuple"]
        if tuples and kind < 0.45:
            name = self.pick(*tuples)
            targets = ", ".join(self.fresh("v") for _ in scope.typer.env[name])
            return [f"{targets} = {name}"]
        if tuples and kind < 0.6:
            one, two = self.pick(*tuples), self.object_expr(scope, 1, "Point")
            return [f"{self.target(scope)} = {one} {self.pick('==', '!=', '<', '>=')} {two}"]
        if tuples and kind < 0.7:
            name, v = self.pick(*tuples), self.fresh("k")
            return [f"for {v} in {name}:", f"    {self.target(scope)} = {v} + {self.expr(scope, 0)}"]
        if names and kind < 0.85:
            name = self.pick(*names)
            return [f"{self.target(scope)} = {name}.{self.pick(*scope.typer.env[name].fields)} + {self.expr(scope, 1)}"]
        return [f"{self.fresh('o')} = {self.object_expr(scope, 1)}"]

    def object_function(self) -> list[str]:
        """A device function from one named tuple to another."""
        name = f"of{len(self.functions.sources)}"
        fields = self.functions.names["Point"]._fields
        point = Named(tuple(self.dtype() for _ in fields), "Point", tuple(fields), "tuple")
        scope = Scope(self.functions, {"p": point, "a": INT64})
        scope.inputs = [*(f"p.{field}" for field in fields), "a"]
        lines = self.block(scope, 1, 2)
        if scope.typer.env is None:
            return []
        values = [f"{field}={self.expr(scope, 1)}" if self.maybe(0.6) else f"{field}=p.{field}" for field in fields]
        lines.append(f"return Point({', '.join(values)})")
        if text := self.defined(name, ["p", "a"], lines, [point, INT64]):
            self.object_functions.append(name)
            return text
        return []

    # Enums.

    def define_enums(self) -> None:
        one, two, three = (str(self.random.randint(-4, 6)) for _ in range(3))
        while len({one, two, three}) < 3:
            three = str(self.random.randint(-9, 20))
            two = str(self.random.randint(-9, 20))
        self.define("", "", "class Level(enum.IntEnum):", f"    LOW = {one}", f"    MID = {two}", f"    HIGH = {three}")
        values = self.pick(("1", "2", "3"), ("0", "-1", "7"), ("0.5", "2.0", "-1.0"), ("1.0", "2.5", "0.0"))
        members = [f"    {name} = {value}" for name, value in zip(("RED", "GREEN", "BLUE"), values, strict=True)]
        self.define("", "", "class Color(enum.Enum):", *members)

    def start_enums(self, scope: Scope) -> list[str]:
        lines = []
        for of, name in (("Level", self.fresh("e")), ("Color", self.fresh("e"))):
            one = self.known_member(of)
            other = self.pick("en" if of == "Level" else "em", self.known_member(of, one))
            lines.append(f"{name} = {one} if {self.condition(scope, 0)} else {other}")
            self.accept(scope, lines[-1:])
            # Never assigned: whether a condition on it is constant must not change.
            scope.fixed.add(name)
            scope.inputs.append(self.pick(f"{name}.value", f"({name} is {self.known_member(of)})"))
        return lines

    def member(self, scope: Scope, of: str, but: str = "") -> str:
        """An expression of a member of an enum that is not a constant."""
        names = [name for name, ty in scope.typer.env.items() if isinstance(ty, Member) and ty.of == of]
        return self.pick(*names, *names[-2:]) if names else self.known_member(of, but)

    def known_member(self, of: str, but: str = "") -> str:
        """A member that is not a constant: a choice between two members."""
        names = ("LOW", "MID", "HIGH") if of == "Level" else ("RED", "GREEN", "BLUE")
        return self.pick(*(f"{of}.{name}" for name in names if f"{of}.{name}" != but))

    def enum_statement(self, scope: Scope, depth: int) -> list[str]:
        of = self.pick("Level", "Color")
        kind = self.random.random()
        mine = [name for name, ty in scope.typer.env.items() if isinstance(ty, Member) and name not in ("en", "em")]
        if kind < 0.3 or not mine:
            test = f"{self.condition(scope, 1)}"
            names = [name for name, ty in scope.typer.env.items() if isinstance(ty, Member) and ty.of == of]
            names = [name for name in names if name not in scope.fixed]
            target = self.pick(*names) if names and self.maybe(0.6) else self.fresh("e")
            one = self.known_member(of)
            other = self.member(scope, of, one) if self.maybe(0.6) else self.known_member(of, one)
            return [f"{target} = {one} if {test} else {other}"]
        same = self.pick("==", "!=", "is", "is not")
        test = f"{self.member(scope, of)} {same} {self.known_member(of)}"
        if kind < 0.5:
            return [f"{self.target(scope)} = {test}"]
        if kind < 0.65:
            return [f"{self.target(scope)} = {self.member(scope, of)}.value + {self.expr(scope, 0)}"]
        if kind < 0.8:
            op = self.pick("+", "-", "*", "<", ">=", "==", "//", "&")
            return [f"{self.target(scope)} = {self.member(scope, 'Level')} {op} {self.expr(scope, 0, ints=True)}"]
        if depth < 0:
            return self.assignment(scope)
        if not scope.kernel:
            return [f"{self.target(scope)} = {self.known_member(of)}.value"]
        lines = [f"match {self.member(scope, of)}:"]
        members = ["LOW", "MID", "HIGH"] if of == "Level" else ["RED", "GREEN", "BLUE"]
        self.random.shuffle(members)
        for name in members[: self.random.randint(1, 2)]:
            lines += [f"    case {of}.{name}:", *(f"    {line}" for line in self.nested(scope, 1))]
        if self.maybe(0.5):
            lines += ["    case _:", *(f"    {line}" for line in self.nested(scope, 1))]
        return lines

    # None.

    def none_function(self) -> list[str]:
        """A device function of a parameter that may be None, and is by default."""
        name = f"nf{len(self.functions.sources)}"
        scope = Scope(self.functions, {"a": INT64, "b": INT64})
        scope.inputs = ["a"]
        one = self.expr(scope, 1)
        two = f"a + {self.expr(scope, 1)}"
        form = self.pick(
            ["if b is None:", f"    return {one}", f"return {two} + b"],
            ["if b is not None:", f"    return b - {one}", f"return {two}"],
            [f"return {one} if b is None else b + {two}"],
            [f"v = {one}", "if b is not None and a > 2:", "    v = b", "return v"],
        )
        for given in ([INT64, INT64],):
            if text := self.defined(name, ["a", f"b={self.pick('None', 'None', '4')}"], form, given):
                self.kinds[name] = ["number", "perhaps"]
                return text
        return []

    def none_statement(self, scope: Scope) -> list[str]:
        names = [name for name in self.kinds if name.startswith("nf")]
        if names and self.maybe(0.6):
            name = self.pick(*names)
            more = self.pick("", ", None", ", b=None", f", {self.expr(scope, 0)}", ", nn" if scope.kernel else "")
            return [f"{self.target(scope)} = {name}({self.expr(scope, 1)}{more})"]
        if not scope.kernel:
            return self.assignment(scope)
        name = self.pick("nn", "dn", "nn")
        target = self.target(scope)
        test, value = f"{name} is {self.pick('', 'not ')}None", self.expr(scope, 1)
        use = f"{value} if {name} is None else {name} + {self.expr(scope, 0)}"
        if self.maybe(0.5):
            return [f"{target} = {use}"]
        return [f"if {test}:", f"    {target} = {value}", "else:", f"    {target} = {self.expr(scope, 1)}"]
