"""What `make claims` and `make bench` printed last, kept in docs/measured/ and shown by the pages.

`python docs/measured.py claims claims-results.json` puts the file that a run wrote in the place of
the kept one, with the date and the version; `... bench bench-results.json` does the same for the
bench. The pages show nothing else, so that no figure of theirs is typed in by hand.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "measured"
COLUMNS = {
    "claims": ("claim", "target", "figure", "holds", "yes", "missed"),
    "bench": ("row", "target", "figure", "passed", "reached", "missed"),
}
"""By file: what is measured, its target, its figure, whether it holds, and the two words for it."""


def keep(kind: str, written: Path, note: str = "") -> None:
    """Store the results of a run with the day and the version they belong to."""
    import evenhand

    found = json.loads(written.read_text(encoding="utf-8"))
    if kind == "bench" and found["quick"]:
        raise SystemExit(f"{written} is of a quick run, which is not for figures")
    rows = found["records"] if kind == "bench" else found
    failed = [row["row"] for row in rows if row.get("error")]
    if failed:
        raise SystemExit(f"{written} has rows that failed: {', '.join(failed)}")
    told = ("claim", "row", "target", "figure", "holds", "passed", "same_exploration", "note")
    kept = {
        "date": datetime.now(UTC).date().isoformat(),
        "version": evenhand.__version__,
        "note": note,
        "rows": [{name: row[name] for name in told if row.get(name) is not None} for row in rows],
    }
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    (KEPT / f"{kind}.json").write_text(text, encoding="utf-8")


def read(kind: str) -> dict[str, Any]:
    """The kept results."""
    return json.loads((KEPT / f"{kind}.json").read_text(encoding="utf-8"))


def as_markdown(kind: str) -> str:
    """A sentence that says when this was measured, and the table."""
    name, target, figure, holds, yes, no = COLUMNS[kind]
    kept = read(kind)
    missed = [row for row in kept["rows"] if not row[holds]]
    lines = [
        f"`make {kind}`, {kept['date']}, version {kept['version']}: {len(kept['rows'])} rows, "
        f"{len(missed)} of them miss their target. {kept['note']}",
        "",
        f"| {name} | {target} | {figure} | {holds} |",
        "|---|---|---|---|",
    ]
    for row in kept["rows"]:
        rival = row.get("same_exploration") or ""
        shown = row[figure] + (f"; explore-then-commit with the same T0: {rival}" if rival else "")
        cells = (row[name], row[target], shown, yes if row[holds] else f"**{no}**")
        lines.append(f"| {' | '.join(_plain(cell) for cell in cells)} |")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """What a cell holds is text: no formula, no emphasis, no end of the cell."""
    if text.startswith("**"):
        return text
    for sign in ("\\", "|", "*", "_", "$", "<", "`", "^"):
        text = text.replace(sign, f"\\{sign}")
    return text


def show(kind: str) -> Any:
    """For a cell of a page."""
    from IPython.display import Markdown

    return Markdown(as_markdown(kind))


if __name__ == "__main__":
    keep(sys.argv[1], Path(sys.argv[2]), " ".join(sys.argv[3:]))
