"""README.md of this folder is correct: its tests exist, it names all tests of the folder, and no row is missing."""

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
ROWS = [
    *(f"A{course}.{row}" for course, rows in enumerate((7, 4, 6, 12, 5, 24, 14), 1) for row in range(1, rows + 1)),
    *(f"R{row}" for row in range(1, 21)),
    *(f"T{row}" for row in range(1, 16)),
]


def rows():
    """The rows of the tables: the text of their last column."""
    found = {}
    for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"[ART][0-9.b]+", cells[0]):
            assert len(cells) == 3, line
            assert cells[0] not in found, line
            found[cells[0]] = cells[2]
    return found


def named(text):
    """The tests that a row names, with their files."""
    file, found = None, []
    for word in re.findall(r"test_\w+(?:\.py)?", text):
        if word.endswith(".py"):
            file = word
        else:
            found.append((file, word))
    return found


def all_tests():
    """The tests of this folder, with their files."""
    for path in sorted(FOLDER.glob("test_*.py")):
        if path.name != Path(__file__).name:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    yield path.name, node.name


def test_every_row_has_a_test_or_a_reason():
    found = rows()
    assert set(ROWS) | {"A6.20b"} == set(found)
    for row, text in found.items():
        assert named(text) or len(text) > 40, f"{row} has neither a test nor a reason"


def test_every_test_exists_and_stands_in_a_row():
    there = set(all_tests())
    in_rows = {test for text in rows().values() for test in named(text)}
    assert in_rows - there == set(), "the page names tests that do not exist"
    assert there - in_rows == set(), "tests that no row names"
