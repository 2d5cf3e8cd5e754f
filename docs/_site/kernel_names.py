"""Pages of the names that only kernels use, made of the package's stubs, so that the inventory has them, too."""

from __future__ import annotations

import ast
from pathlib import Path

import weft

PACKAGE = Path(weft.__file__).parent
# Stub, module that its names are of, and the page's heading.
STUBS = [
    ("cuda/_intrinsic_names.pyi", "weft.cuda", "Names of weft.cuda"),
    ("cuda/cg.pyi", "weft.cuda.cg", "Cooperative groups: weft.cuda.cg"),
    ("cuda/coop/block.pyi", "weft.cuda.coop.block", "Collectives of a block: weft.cuda.coop.block"),
    ("cuda/coop/warp.pyi", "weft.cuda.coop.warp", "Collectives of a warp: weft.cuda.coop.warp"),
    ("cuda/_random_names.pyi", "weft.cuda.random", "Random numbers: weft.cuda.random"),
    ("cuda/fp16.pyi", "weft.cuda.fp16", "Half precision: weft.cuda.fp16"),
    ("cuda/bf16.pyi", "weft.cuda.bf16", "Half precision: weft.cuda.bf16"),
    ("cuda/libdevice.pyi", "weft.cuda.libdevice", "weft.cuda.libdevice"),
]
# Objects of `weft.cuda` that the stub has as a class.
OBJECTS = {"AtomicNames": "atomic"}
# Those that have no stub that is made: what they are, and what is read of them or called.
BY_HAND = [
    ("threadIdx", "The thread's index in its block: `x`, `y`, `z`."),
    ("blockIdx", "The block's index in the grid: `x`, `y`, `z`."),
    ("blockDim", "The number of threads of a block: `x`, `y`, `z`."),
    ("gridDim", "The number of blocks of the grid: `x`, `y`, `z`."),
    ("shared", "`shared.array(shape, dtype)`: memory that the threads of a block share."),
    ("local", "`local.array(shape, dtype)`: memory of a thread."),
    (
        "literal_unroll",
        "`literal_unroll(items)`: a tuple whose items may have different types, for a `for` loop over it.",
    ),
    ("const", "`const.array_like(a)`: a captured array as a constant of the code."),
]


def make(folder: Path) -> None:
    """Write the pages."""
    folder.mkdir(parents=True)
    names = []
    for stub, module, heading in STUBS:
        name = module.removeprefix("weft.").replace(".", "-")
        parts = [
            f"# {heading}\n",
            f"```{{py:module}} {module}\n```\n```{{py:currentmodule}} None\n```\n" if module != "weft.cuda" else "",
        ]
        if module == "weft.cuda":
            parts += [entry("data", f"weft.cuda.{what}", [], says) for what, says in BY_HAND]
        parts += entries(ast.parse((PACKAGE / stub).read_text()).body, module)
        (folder / f"{name}.md").write_text("\n".join(parts))
        names.append(name)
    text = (
        "# Names that kernels use\n\nHow they are called; [the table](../reference/intrinsics.md) "
        "says for which types each is there in a kernel, and its PTX.\n\n```{toctree}\n\n"
    )
    (folder / "index.md").write_text(text + "\n".join(names) + "\n```\n")


def entries(body: list[ast.stmt], prefix: str) -> list[str]:
    """An entry for each name of a stub."""
    made: list[str] = []
    signatures: dict[str, list[str]] = {}
    docs: dict[str, str] = {}
    for index, node in enumerate(body):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            signatures.setdefault(node.name, []).append(arguments(node))
            docs[node.name] = docs.get(node.name) or ast.get_docstring(node) or ""
        elif isinstance(node, ast.ClassDef):
            name = OBJECTS.get(node.name, node.name)
            kind = "data" if node.name in OBJECTS else "class"
            made.append(entry(kind, f"{prefix}.{name}", [], ast.get_docstring(node) or ""))
            made += entries(node.body, f"{prefix}.{name}")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            following = body[index + 1] if index + 1 < len(body) else None
            says = ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                says = str(following.value.value)
            made.append(entry("data", f"{prefix}.{node.target.id}", [], says))
    for name, texts in signatures.items():
        made.append(entry("function", f"{prefix}.{name}", list(dict.fromkeys(texts)), docs[name]))
    return made


def arguments(node: ast.FunctionDef) -> str:
    """What a function is called with: names, and defaults."""
    args = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args] if arg.arg != "self"]
    defaults = [ast.unparse(default) for default in node.args.defaults]
    first = len(args) - len(defaults)
    return ", ".join(f"{arg}={defaults[i - first]}" if i >= first else arg for i, arg in enumerate(args))


def entry(kind: str, name: str, signatures: list[str], says: str) -> str:
    """A name for the page and the inventory."""
    first, *more = [f"{name}({signature})" for signature in signatures] or [name]
    lines = "".join(f"          {line}\n" for line in more)
    return f"````{{py:{kind}}} {first}\n{lines}\n{says}\n````\n"
