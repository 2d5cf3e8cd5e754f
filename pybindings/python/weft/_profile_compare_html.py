"""The comparison of two profiles as a page."""

from __future__ import annotations

from html import escape

from weft import _profile_svg
from weft._profile_compare import number, ratio
from weft._profile_html import document, scrolled
from weft._profile_text import title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft._profile_compare import Change, Comparison
    from weft.profile import Finding, Profile


def page(comparison: Comparison) -> str:
    """Give the page of a comparison."""
    before, after = escape(str(comparison.before)), escape(str(comparison.after))
    parts = [f"<p>From <code>{before}</code> to <code>{after}</code>.</p>"]
    for change in comparison.changes:
        parts.extend(_change(change))
    parts.extend(f"<p>{escape(name)}: only in <code>{before}</code></p>" for name in comparison.only_before)
    parts.extend(f"<p>{escape(name)}: only in <code>{after}</code></p>" for name in comparison.only_after)
    return document(f"Comparison of {', '.join(change.name for change in comparison.changes)}", parts)


def _change(change: Change) -> Iterator[str]:
    yield f"<section><h2>{escape(change.name)}</h2>"
    yield f"<p>Before: {escape(title(change.before))}. After: {escape(title(change.after))}.</p>"
    yield from _findings("Findings that are gone", change.gone)
    yield from _findings("Findings that are new", change.new)
    if change.rows:
        yield "<h3>Counts that differ</h3>"
        yield scrolled(f"Counts of {change.name}", _table(change))
        both = ("Before", change.before), ("After", change.after)
        pictures = [_picture(when, profile) for when, profile in both]
        if any(pictures):
            yield f'<h3>Roofline</h3><div class="pair">{"".join(pictures)}</div>'
    else:
        yield "<p>The counts are the same.</p>"
    yield "</section>"


def _table(change: Change) -> str:
    rows = []
    for name, before, after in change.rows:
        most = max(before, after)
        bars = "".join(
            f'<div><span class="bar" style="width: {90 * value / most:.1f}%"></span></div>' for value in (before, after)
        )
        rows.append(
            f"<tr><td>{escape(name)}</td><td>{number(before)}</td><td>{number(after)}</td>"
            f'<td>{ratio(before, after)}</td><td class="source" aria-hidden="true">{bars}</td></tr>'
        )
    head = "".join(f"<th>{name}</th>" for name in ("count", "before", "after", "ratio"))
    head += '<th class="source">before over after</th>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _findings(heading: str, findings: tuple[Finding, ...]) -> Iterator[str]:
    if not findings:
        return
    items = "".join(
        f"<li>{escape(each.kind)}, {100 * each.share:.0f} % of the bound, line {each.line}: "
        f"<code>{escape(each.text)}</code><br>{escape(each.cost)}</li>"
        for each in findings
    )
    yield f"<h3>{heading}</h3><ul>{items}</ul>"


def _picture(when: str, profile: Profile) -> str:
    drawn = _profile_svg.roofline(profile)
    return f"<figure>{drawn}<figcaption>{when}</figcaption></figure>" if drawn else ""
