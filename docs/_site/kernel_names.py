"""Entries of the names that kernels use, in the pages of docs/reference/names/, so that the inventory has them.

The pages are tables: a name, and what it does. On the site the names of weft become entries with their parameters,
which come from the package's stubs. Other names, such as those of `math`, stay in their tables.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import weft

PACKAGE = Path(weft.__file__).parent
# Stub, and the module that its names are of.
STUBS = [
    ("cuda/_intrinsic_names.pyi", "weft.cuda"),
    ("cuda/cg.pyi", "weft.cuda.cg"),
    ("cuda/cluster.pyi", "weft.cuda.cluster"),
    ("cuda/coop/block.pyi", "weft.cuda.coop.block"),
    ("cuda/coop/warp.pyi", "weft.cuda.coop.warp"),
    ("cuda/_random_names.pyi", "weft.cuda.random"),
    ("cuda/fp16.pyi", "weft.cuda.fp16"),
    ("cuda/bf16.pyi", "weft.cuda.bf16"),
    ("cuda/fp8.pyi", "weft.cuda.fp8"),
    ("cuda/libdevice.pyi", "weft.cuda.libdevice"),
]
# Objects of `weft.cuda` that the stub has as a class.
OBJECTS = {"AtomicNames": "atomic"}
# Names without a generated stub: parameters of functions, and text of objects.
BY_HAND = {
    "weft.cuda.shared.array": "shape, dtype",
    "weft.cuda.local.array": "shape, dtype",
    "weft.cuda.const.array_like": "a",
    "weft.cuda.literal_unroll": "items",
    "weft.cuda.stop_gradient": "x",
}
BY_HAND_OBJECTS = {
    "weft.cuda.threadIdx": "The thread's index in its block: `x`, `y`, `z`.",
    "weft.cuda.blockIdx": "The block's index in the grid: `x`, `y`, `z`.",
    "weft.cuda.blockDim": "The number of threads in a block: `x`, `y`, `z`.",
    "weft.cuda.gridDim": "The number of blocks in the grid: `x`, `y`, `z`.",
    "weft.cuda.shared": "Shared memory: `shared.array(shape, dtype)`.",
    "weft.cuda.local": "Memory of one thread: `local.array(shape, dtype)`.",
    "weft.cuda.const": "Constants of the code: `const.array_like(a)`.",
}
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \|$")
HEAD = ["| name | what it does |", "|---|---|"]


@dataclass
class Name:
    """A name of a stub: its kind, how it is called, and what it does."""

    kind: str
    signatures: list[str] = field(default_factory=list)
    says: str = ""


def add_entries(folder: Path) -> None:
    """Turn the rows of weft's names into entries, in the pages of a folder. Each name of a stub must have a row."""
    known: dict[str, Name] = {}
    for stub, module in STUBS:
        known |= names_of(ast.parse((PACKAGE / stub).read_text()).body, module)
    known |= {name: Name("function", [arguments]) for name, arguments in BY_HAND.items()}
    known |= {name: Name("data", says=says) for name, says in BY_HAND_OBJECTS.items()}
    modules = [module for _, module in STUBS if module != "weft.cuda"]
    for page in sorted(folder.glob("*.md")):
        page.write_text(with_entries(page.read_text(), known, modules))
    if known:
        raise SystemExit(f"these names are on no page of docs/reference/names/: {', '.join(known)}")


def with_entries(text: str, known: dict[str, Name], modules: list[str]) -> str:
    """A page's text, with entries for rows. Removes the page's names and modules from `known` and `modules`."""
    out: list[str] = []
    waiting: list[str] = []  # rows that stay in a table

    def close_table() -> None:
        if waiting:
            out.extend(["", *HEAD, *waiting, ""])
            waiting.clear()

    for line in text.splitlines():
        row = ROW.match(line)
        if not row:
            if line not in HEAD:
                close_table()
                out.append(line)
            continue
        name = f"weft.{row[1]}"
        # The object or the class of a name comes before the first of its names, a module at the head of its part.
        owners = [name[:dot] for dot in range(len(name)) if name[dot] == "."]
        for owner in owners:
            if owner in modules:
                modules.remove(owner)
                out.append(f"```{{py:module}} {owner}\n```\n```{{py:currentmodule}} None\n```\n")
            if owner in known:
                close_table()
                out.append(entry(owner, known.pop(owner)))
        if name in known:
            close_table()
            out.append(entry(name, known.pop(name), row[2].replace("\\|", "|")))
        else:
            waiting.append(line)
    close_table()
    return "\n".join(out) + "\n"


def names_of(body: list[ast.stmt], prefix: str) -> dict[str, Name]:
    """The names of a stub."""
    names: dict[str, Name] = {}
    for index, node in enumerate(body):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            name = names.setdefault(f"{prefix}.{node.name}", Name("function"))
            if (called := arguments(node)) not in name.signatures:
                name.signatures.append(called)
        elif isinstance(node, ast.ClassDef):
            path = f"{prefix}.{OBJECTS.get(node.name, node.name)}"
            kind = "data" if node.name in OBJECTS else "class"
            names[path] = Name(kind, says=ast.get_docstring(node) or "")
            names |= names_of(node.body, path)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[f"{prefix}.{node.target.id}"] = Name("data", says=attribute_docstring(body, index))
    return names


def attribute_docstring(body: list[ast.stmt], index: int) -> str:
    """The string after an assignment."""
    following = body[index + 1] if index + 1 < len(body) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return str(following.value.value)
    return ""


def arguments(node: ast.FunctionDef) -> str:
    """A function's parameters: names, and defaults."""
    args = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args] if arg.arg != "self"]
    defaults = [ast.unparse(default) for default in node.args.defaults]
    first = len(args) - len(defaults)
    return ", ".join(f"{arg}={defaults[i - first]}" if i >= first else arg for i, arg in enumerate(args))


def entry(path: str, name: Name, cell: str = "") -> str:
    """A name for the page and the inventory; the cell of its row says what it does, its types and its PTX."""
    first, *more = [f"{path}({signature})" for signature in name.signatures] or [path]
    lines = "".join(f"          {line}\n" for line in more)
    text = "\n\n".join(cell.split("<br>")) if cell else name.says
    return f"````{{py:{name.kind}}} {first}\n{lines}\n{text}\n````\n"
