"""Keeps figures of benchmarks in docs/benchmarks/, and makes of them the tables of docs/benchmarks.md and the picture.

``python tests/benchmarks/page.py`` writes the tables and both pictures from the saved figures; with files that ``run.py
--json`` wrote, it saves their figures first. Nothing here needs weft. ``./weft-dev bench --write FILE`` and
``./weft-dev bless`` call it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import drawing
import tables
from machine import sentence

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "benchmarks"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.svg"
NARROW = ROOT / "docs" / "benchmarks-narrow.svg"

BEGIN = "<!-- {0}: made of benchmarks/{0}.json by `./weft-dev bless` -->"
SUMMARY = "<!-- summary: made of all files of benchmarks/ by `./weft-dev bless` -->"
END = "<!-- end of {0} -->"


def kept(folder: Path = FOLDER) -> dict[str, Any]:
    """The saved record of each program: its date, machine and figures."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def keep(records: dict[str, Any], folder: Path = FOLDER) -> list[str]:
    """Saves the records of programs that the page has tables of; returns their names.

    Raises ``ValueError`` for records that ``run.py --json`` cannot have written, and then saves none.
    """
    for program, record in records.items():
        if not isinstance(record, dict) or not {"date", "machine", "figures"} <= record.keys():
            raise ValueError(f"{program!r} has no date, machine and figures: run.py --json writes them")
    names = [program for program in records if program in tables.TABLES]
    for program in names:
        text = json.dumps(records[program], indent=1, ensure_ascii=False) + "\n"
        (folder / f"{program}.json").write_text(text, encoding="utf-8")
    return names


def block(program: str, record: dict[str, Any] | None) -> str:
    """The text between the markers of a program's table."""
    if record is None:
        command = tables.COMMANDS.get(program, f"{program}.py")
        return f"Not measured for this page yet: `python tests/benchmarks/{command}` does it.\n"
    return f"{sentence(record['machine'], record['date'])}:\n\n{tables.TABLES[program](record['figures'])}\n"


def with_tables(page: str, records: dict[str, Any]) -> str:
    """The page with new tables. Raises ``ValueError`` unless it has the markers of each program exactly once."""
    texts = {program: block(program, records.get(program)) for program in tables.TABLES}
    texts["summary"] = tables.summary(records) + "\n"
    for program, made in texts.items():
        begin = SUMMARY if program == "summary" else BEGIN.format(program)
        end = END.format(program)
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page needs one line {begin!r} and one {end!r}")
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text = f"{begin}\n\n{made}\n{end}"
        page = pattern.sub(lambda _, text=text: text, page)
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", nargs="*", type=Path, help="files of run.py --json")
    for path in parser.parse_args().figures:
        try:
            names = keep(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            sys.exit(f"{path}: {error}")
        print(f"{path}: kept {', '.join(names) or 'nothing, for the page has no table of it'}")
    records = kept()
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")
    PICTURE.write_text(drawing.draw(records), encoding="utf-8")
    NARROW.write_text(drawing.draw(records, drawing.NARROW), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} and its pictures are written: read the diff")
    return 0


if __name__ == "__main__":
    sys.exit(main())
