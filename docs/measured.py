"""The results of the last whole runs, kept in docs/measured/ and shown by the pages.

`python docs/measured.py claims` puts claims-results.json, which `make claims` wrote, in the place
of the kept file; likewise claims-tables, bench and torture. A part of a run is refused. The pages
show nothing else.
"""

import json
import sys
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "measured"
KINDS = ("claims", "claims-tables", "bench", "torture")


def keep(kind: str, written: Path | None = None, note: str = "") -> None:
    """Store the results of a whole run, with where they were measured."""
    written = written or Path(f"{kind}-results.json")
    found = json.loads(written.read_text(encoding="utf-8"))
    if not found["whole"]:
        raise SystemExit(f"{written} is not of a whole run, so it is not kept")
    failed = [row["row"] for row in found["rows"] if row.get("error")]
    if failed:
        raise SystemExit(f"{written} has rows that failed: {', '.join(failed)}")
    text = json.dumps({**found, "note": note}, indent=1, ensure_ascii=False) + "\n"
    (KEPT / f"{kind}.json").write_text(text, encoding="utf-8")


def read(kind: str) -> dict[str, Any]:
    """The kept results."""
    return json.loads((KEPT / f"{kind}.json").read_text(encoding="utf-8"))


def as_markdown(kind: str, containing: str = "") -> str:
    """When and where this was measured, and the rows whose name contains a text, by default all of
    them, those that miss their target first.
    """
    if not (KEPT / f"{kind}.json").exists() or not read(kind)["whole"]:
        return f"*No results of a whole `make {kind}` are kept for this version.*"
    kept = read(kind)
    where = kept["where"]
    wanted = [row for row in kept["rows"] if containing in row["row"]]
    rows = sorted(wanted, key=lambda row: row["holds"])
    missed = sum(not row["holds"] for row in rows)
    commits = sorted({row.get("commit", where["commit"]) for row in rows})
    lines = [
        f"`make {kind}`, {kept['ended'][:10]}, commit {' and '.join(commits)}: {len(rows)} rows, "
        f"{missed} of them miss their target. {where['processor']}, {where['cores']} cores, "
        f"{where['memory_gb']} GB, {where['system']}, Python {where['python']}. {kept['note']}",
        "",
        "| row | target | figure | holds |",
        "|---|---|---|---|",
    ]
    for row in rows:
        rival = row.get("same_exploration")
        figure = row["figure"]
        if rival:
            figure += f"; explore-then-commit with the same T0: {rival}"
        cells = [_plain(cell) for cell in (row["row"], row["target"], figure)]
        verdict = "yes" if row["holds"] else "**missed**"
        lines.append(f"| {' | '.join((*cells, verdict))} |")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """What a cell holds is text: no formula, no emphasis, no end of the cell."""
    for sign in ("\\", "|", "*", "_", "$", "<", "`", "^"):
        text = text.replace(sign, f"\\{sign}")
    return text


def show(kind: str, containing: str = "") -> Any:
    """For a cell of a page."""
    from IPython.display import Markdown

    return Markdown(as_markdown(kind, containing))


def why_stumps_changed() -> Any:
    """For a cell of the page on the bench."""
    from IPython.display import Markdown

    return Markdown(cause_of_the_stumps())


def cause_of_the_stumps() -> str:
    """Why the rows of stumps against fairlearn were slower for a while, in kept figures."""
    columns = row("bench", "one pass over the columns of Adult")
    releases = row("bench", "fairlearn ")
    milliseconds = columns["note"].split(";")[0]
    older, newest = releases["row"].split(" with our bound stump, beside ")
    times = releases["figure"].removesuffix(" the CPU time (median)")
    return (
        "The ratios of stumps against fairlearn fell for a while because evenhand became slower, "
        f"not fairlearn faster: our pass took one column after the other (now {milliseconds} on "
        f"Adult), and {older} take {times} the time of {newest}."
    )


def row(kind: str, name: str) -> dict[str, Any]:
    """The one kept row whose name begins so."""
    (found,) = (one for one in read(kind)["rows"] if one["row"].startswith(name))
    return found


if __name__ == "__main__":
    keep(sys.argv[1], note=" ".join(sys.argv[2:]))
