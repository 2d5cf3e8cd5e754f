"""The word test: finds words that weft uses where the field has a term of its own.

`python tests/words.py` lists them in file names, public names, pages and messages, and fails if there is one.
`--report` counts them per area and per word, in comments as well, `--files` per file, and `--show PATH` prints each of
them in one file. `--sample 60 --seed 1` prints random sentences of pages, messages and comments, to read without the
code around them.

A row of `WORDS` is a pattern and the term to write instead; `ALLOWED` has the uses that are plain English or a term of
the field.
"""

import argparse
import ast
import collections
import json
import random
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# Patterns that are searched for in sentences, and what to write instead.
WORDS = {
    r"turns?": "iteration",
    r"turned": "became, changed, converted",
    r"rows? of (?:threads|lanes|warps|blocks)": "work-item loop, vector",
    r"ask(?:s|ed|ing)?": "test, query, require, request",
    r"places?": "address, location, slot",
    r"told|tells?|telling": "report, annotate, record, say",
    r"kept": "cached, live, stored, preserved",
    r"behind": "after; dominated by; guarded by",
    r"walk(?:s|ed|ing)?": "traversal, strided access, iteration",
    r"apart": "divergent, strided, disjoint, separate",
    r"nobody|somebody|whoever": "no other thread, the caller, any lane: name the actor",
    r"words? (?:to|for|about) (?:the|a)|word of|in (?:its|their|other|weft's|numba's) words": "token, key, operator",
    r"crosse?s? (?:a|the|its) barriers?|crossing": "live across a barrier",
    r"leaving (?:threads?|lanes?|loops?)": "divergent exit",
    r"settled?|settles|settling": "race-free, converted, decided",
    r"confin(?:e|es|ed|ing)": "bounds-check",
    r"facts?": "assumption",
    r"atomic steps?": "atomic operation",
    r"texts": "strings",
    r"ways? out": "fix, suggestion; exit edge",
    r"so (?:many|far|much)": "n, offset, distance",
    r"taken? for granted": "assumed",
    r"work(?:s|ed|ing)? out": "compute",
    r"stays?|stayed": "is preserved, remains",
    r"(?:gives?|gave|given|giving) back": "return",
    r"lies": "is stored, is",
    r"stands?|stood": "is, occurs",
    r"look(?:s|ed) at": "inspect, read, poll",
    r"twins?": "reference implementation",
    r"wild(?:ly)?": "invalid (memory access)",
    r"quiet(?:ly)?": "no-progress; silent",
    r"meetings?": "divergent barrier",
    r"what (?:is|was|are|were) (?:told|known|kept|asked|left)": "name the thing",
}

# Phrases in which the patterns above find plain English or a term of the field.
ALLOWED = [
    r"(?:in|takes?|taking) turns?\b",
    r"(?:last|decimal|in its|in their|place)[ -]places?\b",
    r"turn(?:s|ed|ing)? (?:on|off|into|it on|it off|them on|them off)\b",
    r"turn(?:s|ed)? (?:\S+ ){1,5}into\b",
    r"in[ -]place\b",
    r"(?:takes?|took|taking) place\b",
    r"apart from\b",
    r"in fact\b",
    r"stands? for\b",
    r"(?:wildcards?|wild card)\b",
    r"settings?\b",
    r"behind the scenes\b",
    r"stays? (?:in|on|within|valid|open|the same|·)",
    r"(?:one|two|several|many) places?\b",
    r"(?:far|farthest|further|bytes|elements) apart\b",
    r"frequently asked\b",
    r"--quiet\b",
    r"random walks?\b",
]

# Parts of names of files and of public items, in lower case.
PARTS = {
    "turn", "turns", "asks", "asked", "told", "tells", "telling", "kept", "behind", "walk", "walks", "walked", "apart",
    "nobody", "somebody", "who", "crossing", "crossings", "leaving", "settled", "settles", "confine", "confined",
    "facts", "fact", "texts", "granted", "stays", "lies", "stands", "standing", "twin", "twins", "wild", "quiet",
    "meeting", "meetings", "neighbors", "interior", "borders", "border", "place", "places", "words", "steps", "rounds",
}  # fmt: skip
# Names with such a part that are the field's, or another program's.
ALLOWED_NAMES = {
    "in_place", "read_in_place", "write_in_place", "writing_in_place", "test_read_in_place", "test_write_in_place",
    "test_write_in_place_variants", "words", "test_words",
}  # fmt: skip

SKIPPED = ("tests/snapshots/", "tests/numba_compatibility/results", "LICENSE")
AREAS = ("file names", "public names", "pages", "messages", "comments")
ENFORCED = AREAS[:-1]
THIS = "tests/words.py"

SEARCH = re.compile(r"\b(?:" + "|".join(f"(?P<w{i}>{word})" for i, word in enumerate(WORDS)) + r")\b", re.IGNORECASE)
ALLOW = re.compile(r"(?:\b|(?<=\s))(?:" + "|".join(ALLOWED) + ")", re.IGNORECASE)
CODE = re.compile(r"``.*?``|`[^`]*`|\]\([^)]*\)|<[^> ]*>", re.DOTALL)
HEADLESS = re.compile(r"(?:^|(?<=[.:;] ))(?:What|Who|Whose|Whom|Which of)\b[^.?]*(?:\.|$)")


class Piece(NamedTuple):
    """A paragraph, a comment or a string: its area, its file, the line on which it begins, and its text."""

    area: str
    path: str
    line: int
    text: str


class Found(NamedTuple):
    """A use of a word."""

    area: str
    path: str
    line: int
    word: str
    instead: str
    around: str


def tracked():
    """The repository's files."""
    listed = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT, capture_output=True)
    paths = listed.stdout.decode().split("\0")
    return sorted({path for path in paths if path and not path.startswith(SKIPPED) and (ROOT / path).is_file()})


# --- Reading files ----------------------------------------------------------------------------------------------------


RUST = re.compile(
    r"""
      (?P<line>//[^\n]*)
    | (?P<block>/\*.*?\*/)
    | (?P<raw>\b[bc]?r(?P<hashes>\#*)".*?"(?P=hashes))
    | (?P<string>[bc]?"(?:\\.|[^"\\])*")
    | (?P<char>'(?:\\[^']+|[^'\\])')
    """,
    re.VERBOSE | re.DOTALL,
)
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? [a-z`{(].*[a-z]{2,}", re.DOTALL)


def joined(lines):
    """Joins consecutive lines: (number of the first line, text) pairs."""
    start, block, last = 0, [], None
    for line, text in lines:
        if last is not None and line == last + 1 and text.strip() and block:
            block.append(text)
        else:
            if block:
                yield start, "\n".join(block)
            start, block = line, [text] if text.strip() else []
        last = line
    if block:
        yield start, "\n".join(block)


def of_rust(path, text):
    """Comments and messages of a file of Rust or C++."""
    tests = "/tests/" in path or path.startswith("tests/") or path.endswith(("tests.rs", "testing.rs"))
    cut = text.find("#[cfg(test)]\nmod tests {")
    comments, line, position = [], 1, 0
    for match in RUST.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match["line"]:
            comments.append((line, re.sub(r"^//[/!]?", "", match["line"]).strip()))
        elif match["block"]:
            comments += [(line + n, part.strip(" /*")) for n, part in enumerate(match["block"].split("\n"))]
        elif match["string"] or match["raw"]:
            inside = match[0].strip("bcr#")[1:-1]
            inside = re.sub(r"\\\n\s*", "", inside).replace('\\"', '"')
            if not SENTENCE.search(inside):
                continue
            internal = text[max(0, match.start() - 8) : match.start()].endswith(("expect(", "expect(\n"))
            ours = tests or internal or (cut != -1 and match.start() > cut) or path.endswith((".cpp", ".h", ".c"))
            yield Piece("comments" if ours else "messages", path, line, inside)
    for start, comment in joined(comments):
        yield Piece("comments", path, start, comment)


def of_python(path, text):
    """Comments, docstrings and messages of a file of Python."""
    shipped = path.startswith("pybindings/python/") or path == "weft-dev"
    comments = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"""(?:[^"'#]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*?(#.*)$""", line)
        if match and not match[1].startswith("#!"):
            comments.append((number, match[1].lstrip("#: ").strip()))
    for start, comment in joined(comments):
        yield Piece("comments", path, start, comment)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            string, line = "".join(str(part) for part in parts), node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            string, line = node.value, node.lineno
        else:
            continue
        if is_program(string):
            # Names in programs count in no area.
            for piece in of_python(path, textwrap.dedent(string)):
                yield piece._replace(line=line + piece.line - 1)
        elif SENTENCE.search(string):
            for n, paragraph in paragraphs(string):
                yield Piece("messages" if shipped else "comments", path, line + n, paragraph)


def is_program(string):
    """Whether a string has several lines and is a program: a test's, for example."""
    if "\n" not in string.strip():
        return False
    try:
        statements = ast.parse(textwrap.dedent(string)).body
    except (SyntaxError, ValueError):
        return False
    return len(statements) > 1 and not all(isinstance(each, ast.Expr) for each in statements)


def paragraphs(text):
    """The paragraphs of a string, each with the number of its first line."""
    lines = ((n, line.strip()) for n, line in enumerate(text.split("\n")))
    yield from joined([(n, line) for n, line in lines if line])


def of_markdown(path, text, area="pages"):
    """Paragraphs of a page, without its programs."""
    lines, fence = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fence = not fence
        elif not fence and not line.startswith(("    ", "<!--")):
            item = re.match(r"\s*(?:[-*|#]|\d+\.)", line)
            if item:
                lines.append((number - 0.5, ""))
            lines.append((number, line.strip()))
    flat = [(int(n), text) for n, text in lines if text or n == int(n)]
    breaks = {int(n + 0.5) for n, text in lines if not text and n != int(n)}
    group = []
    for number, line in flat:
        if number in breaks or not line:
            yield from (Piece(area, path, start, block) for start, block in joined(group))
            group = []
        if line:
            group.append((number, line))
    yield from (Piece(area, path, start, block) for start, block in joined(group))


def pieces(path):
    """All paragraphs, comments and strings of a file."""
    if path == THIS:
        return
    if path.endswith(".ipynb"):
        for cell in json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                for piece in of_markdown(path, "".join(cell["source"])):
                    yield piece._replace(line=0)
        return
    if not path.endswith((".rs", ".cpp", ".h", ".c", ".py", ".pyi", ".md")) and path != "weft-dev":
        return
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        yield from of_markdown(path, text, "messages" if "/explain/" in path else "pages")
    elif path.endswith((".py", ".pyi", "weft-dev")):
        yield from of_python(path, text)
    else:
        yield from of_rust(path, text)


PUBLIC = re.compile(
    r"^\s*pub (?:const |unsafe |async |extern \"C\" )*(?:fn|struct|enum|trait|type|const|static|mod|union) (\w+)"
    r"|^\s*pub (\w+):",
    re.MULTILINE,
)


def public_names(path):
    """The public names that a file defines, each with its line."""
    if path.endswith(".rs") and "/tests/" not in path and not path.startswith("tests/"):
        text = (ROOT / path).read_text(encoding="utf-8")
        for match in PUBLIC.finditer(text):
            yield text.count("\n", 0, match.start(match.lastindex)) + 1, match[match.lastindex]
    elif path.startswith("pybindings/python/weft/") and path.endswith((".py", ".pyi")):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        todo = [(tree, True)]
        while todo:
            scope, public = todo.pop()
            for node in scope.body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    shown = public and not node.name.startswith("_")
                    if shown:
                        yield node.lineno, node.name
                    if isinstance(node, ast.ClassDef):
                        todo.append((node, shown))
                    elif shown:
                        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                        yield from ((node.lineno, argument.arg) for argument in arguments)
                elif isinstance(node, ast.Assign | ast.AnnAssign):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                    yield from ((node.lineno, name) for name in names if not name.startswith("_"))


def name_parts(name):
    """The words of a name in snake or camel case."""
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)


def bad_parts(name):
    """The words of a name that the list has."""
    return [] if name.strip("_") in ALLOWED_NAMES else [part for part in name_parts(name) if part.lower() in PARTS]


# --- Searching -----------------------------------------------------------------------------------------------------


def in_text(piece):
    """Uses of words in a text."""
    # Code in a sentence is skipped: names are checked where they are defined.
    text = re.sub(
        r"``.*?``|`[^`]*`|\]\([^)]*\)|<[^> ]*>", lambda match: "·" * len(match[0]), piece.text, flags=re.DOTALL
    )
    flat = text.replace("\n", " ")
    allowed = [match.span() for match in ALLOW.finditer(flat)]
    for match in SEARCH.finditer(flat):
        if any(start <= match.start() < end for start, end in allowed):
            continue
        instead = WORDS[list(WORDS)[int(match.lastgroup[1:])]]
        line = piece.line + piece.text.count("\n", 0, match.start())
        around = piece.text[max(0, match.start() - 50) : match.end() + 40].replace("\n", " ")
        yield Found(piece.area, piece.path, line, match[0].lower(), instead, around)
    for match in HEADLESS.finditer(flat):
        line = piece.line + piece.text.count("\n", 0, match.start())
        heading = piece.text.startswith("#")
        if not heading:
            yield Found(piece.area, piece.path, line, "headless", "name the thing or the actor", match[0][:90])


def search(paths):
    """All uses of words in some files."""
    for path in paths:
        for part in path.split("/"):
            for bad in bad_parts(part.split(".")[0].replace("-", "_")):
                yield Found("file names", path, 0, bad, "the field's word", path)
        for line, name in public_names(path):
            for bad in bad_parts(name):
                yield Found("public names", path, line, bad, "the field's word", name)
        for piece in pieces(path):
            yield from in_text(piece)


def faults():
    """What the test rejects, as lines of a report."""
    found = (use for use in search(tracked()) if use.area in ENFORCED)
    return [f"{use.path}:{use.line}: {use.area}: `{use.word}` ({use.instead}): {use.around}" for use in found]


def sentences(paths):
    """All sentences, as (area, path, line, sentence)."""
    for path in paths:
        for piece in pieces(path):
            flat = re.sub(r"\s+", " ", piece.text)
            for sentence in re.split(r"(?<=[.?!]) (?=[A-Z`])", flat):
                if len(sentence.split()) > 4 and not sentence.startswith("|"):
                    yield piece.area, path, piece.line, sentence


def print_sample(n, seed):
    """Prints random sentences, a third each from pages, messages and comments."""
    by_area = collections.defaultdict(list)
    for sentence in sentences(tracked()):
        by_area[sentence[0]].append(sentence)
    draw = random.Random(seed)
    for index, area in enumerate(("pages", "messages", "comments")):
        count = n // 3 + (index < n % 3)
        for _, path, line, sentence in draw.sample(by_area[area], min(count, len(by_area[area]))):
            print(f"{area} {path}:{line}\n    {sentence}")


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="count words per area")
    parser.add_argument("--files", action="store_true", help="count words per file")
    parser.add_argument("--show", metavar="PATH", help="print the uses in files whose path begins so")
    parser.add_argument("--sample", type=int, metavar="N", help="print N random sentences")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    args = parser.parse_args()
    if args.sample:
        print_sample(args.sample, args.seed)
        return 0
    found = list(search(tracked())) if args.report or args.files or args.show else []
    if args.report:
        for area in AREAS:
            uses = collections.Counter(use.word for use in found if use.area == area)
            print(f"{area}: {sum(uses.values())}")
            print("    " + ", ".join(f"{word} {count}" for word, count in uses.most_common(40)))
    if args.files:
        for (area, path), count in collections.Counter((use.area, use.path) for use in found).most_common():
            print(f"{count:5} {area}: {path}")
    if args.show:
        for use in found:
            if use.path.startswith(args.show):
                print(f"{use.path}:{use.line}: {use.area}: `{use.word}` ({use.instead}): {use.around}")
    if found or args.report:
        return 0
    rejected = faults()
    print("\n".join(rejected))
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main())
