"""Names, pages and messages use standard terms: `tests/words.py` has the list of words."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))

import words  # noqa: E402


def test_names_pages_and_messages_use_the_terms_of_the_field():
    assert words.faults() == []


def test_words_are_found():
    def found(text):
        return [use.word for use in words.in_text(words.Piece("pages", "page.md", 1, text))]

    assert found("How many turns a loop has, in turn") == ["turns"]
    assert found("The compiler unrolls `turns`; nobody waits.") == ["nobody"]
    assert found("What grows is freed.") == ["headless"]
    assert found("It turns an array into a list, in place, and takes place once.") == []
    assert words.bad_parts("LoopTurns") == ["Turns"]
    assert words.bad_parts("write_in_place") == []
