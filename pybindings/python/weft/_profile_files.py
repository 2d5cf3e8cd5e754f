"""Profiles from their JSON."""

from __future__ import annotations

import json

from weft.profile import SCHEMA, Access, Array, Finding, Line, Occupancy, Profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def read(path: Path) -> list[Profile]:
    """Read a file that `weft profile --format json` or `Profile.to_json` wrote.

    Raises
    ------
    ValueError
        It is not such a file, or one of another version.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        msg = f"{path} is not JSON: {error}"
        raise ValueError(msg) from error
    found = found if isinstance(found, list) else [found]
    if not all(isinstance(fields, dict) and fields.get("schema") == SCHEMA for fields in found):
        msg = f"{path} is not a profile of this version: write it with `weft profile --format json`"
        raise ValueError(msg)
    return [from_dict(fields) for fields in found]


def from_dict(fields: dict[str, Any]) -> Profile:
    """Make a profile of what `Profile.to_dict` gives."""
    occupancy = fields["occupancy"]
    made = fields | {
        "types": tuple(fields["types"]),
        "griddim": tuple(fields["griddim"]),
        "blockdim": tuple(fields["blockdim"]),
        "bounds": tuple((name, seconds) for name, seconds in fields["bounds"]),
        "lines": tuple(_line(line) for line in fields["lines"]),
        "arrays": tuple(Array(**array) for array in fields["arrays"]),
        "occupancy": Occupancy(**occupancy | {"limits": tuple(occupancy["limits"])}) if occupancy else None,
        "findings": tuple(Finding(**finding) for finding in fields["findings"]),
    }
    del made["schema"]
    return Profile(**made)


def _line(fields: dict[str, Any]) -> Line:
    return Line(**fields | {"accesses": tuple(Access(**access) for access in fields["accesses"])})
