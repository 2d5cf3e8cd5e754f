"""Profiles from their JSON."""

from __future__ import annotations

import json

from weft.profile import SCHEMA, Access, Array, Calls, Finding, Line, Occupancy, Profile, Request

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
    """Make a profile of what `Profile.to_dict` gives, or of all its fields."""
    occupancy = fields["occupancy"]
    made = fields | {
        "types": tuple(fields["types"]),
        "griddim": tuple(fields["griddim"]),
        "blockdim": tuple(fields["blockdim"]),
        "bounds": _pairs(fields["bounds"]),
        "rates": _pairs(fields["rates"]),
        "lines": tuple(_line(line) for line in fields["lines"]),
        "arrays": tuple(Array(**array) for array in fields["arrays"]),
        "occupancy": _occupancy(occupancy) if occupancy else None,
        "findings": tuple(Finding(**finding) for finding in fields["findings"]),
    }
    made.pop("schema", None)
    return Profile(**made)


def _pairs(rows: list[list[Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((first, second) for first, second in rows)


def _occupancy(fields: dict[str, Any]) -> Occupancy:
    return Occupancy(**fields | {"limits": tuple(fields["limits"]), "by_block": _pairs(fields["by_block"])})


def _line(fields: dict[str, Any]) -> Line:
    accesses = tuple(_access(access) for access in fields["accesses"])
    calls = tuple(Calls(**row | {"chain": _pairs(row["chain"])}) for row in fields.get("calls", ()))
    return Line(**fields | {"accesses": accesses, "calls": calls})


def _access(fields: dict[str, Any]) -> Access:
    requests = (Request(tuple(request["offsets"]), request["size"]) for request in fields.get("first_requests", ()))
    return Access(**fields | {"first_requests": tuple(requests)})
