"""The results of the last whole runs, kept in docs/measured/ and shown by the pages.

`python docs/measured.py claims` puts claims-results.json, which `make claims` wrote, in the place
of the kept file; likewise claims-tables, bench and torture. A part of a run is refused. The pages
show nothing else.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "measured"
KINDS = ("claims", "claims-tables", "bench", "torture")
HEAD = ("| row | target | figure | holds |", "|---|---|---|---|")


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
    if not is_kept(kind):
        return f"*No results of a whole `make {kind}` are kept for this version.*"
    wanted = [row for row in read(kind)["rows"] if containing in row["row"]]
    rows = sorted(wanted, key=lambda row: row["holds"])
    missed = sum(not row["holds"] for row in rows)
    lines = [origin(kind, rows, f"{missed} of them miss their target"), "", *HEAD]
    for row in rows:
        rival = row.get("same_exploration")
        figure = row["figure"]
        if rival:
            figure += f"; explore-then-commit with the same T0: {rival}"
        cells = [_plain(cell) for cell in (row["row"], row["target"], figure)]
        verdict = "yes" if row["holds"] else "**missed**"
        lines.append(f"| {' | '.join((*cells, verdict))} |")
    return "\n".join(lines)


def is_kept(kind: str) -> bool:
    """Whether there are results of a whole run."""
    return (KEPT / f"{kind}.json").exists() and bool(read(kind)["whole"])


def origin(kind: str, rows: list[dict[str, Any]], said: str = "") -> str:
    """When and where rows were measured."""
    kept = read(kind)
    where = kept["where"]
    *others, last = sorted({row.get("commit", where["commit"]) for row in rows})
    commits = f"commits {', '.join(others)} and {last}" if others else f"commit {last}"
    return (
        f"`make {kind}`, {kept['ended'][:10]}, {commits}: {len(rows)} rows{said and ', ' + said}. "
        f"{where['processor']}, {where['cores']} cores, {where['memory_gb']} GB, "
        f"{where['system']}, Python {where['python']}. {kept['note']}"
    )


def folded(table: str) -> str:
    """The same with the rows that hold in a part that a reader opens."""
    lines = table.splitlines()
    held = [line for line in lines if line.endswith("| yes |")]
    missed = [line for line in lines if line not in held]
    opened = f"<details><summary>Rows that hold: {len(held)}</summary>"
    return "\n".join([*missed, "", opened, "", *HEAD, *held, "", "</details>"])


TABLES = {"adult": "Adult", "compas": "COMPAS", "taiwan": "Taiwan", "gmsc": "Give Me Some Credit"}
RATES = {"": "FPR", ", FNR": "FNR", ", selection rate": "selection rate", ", FPR and FNR": "both"}
HORIZONS = {"1e5": "100,000", "3e5": "300,000"}


def regret_on_tables() -> Any:
    """For a cell of a page: the regret on real tables, by table and rate."""
    from IPython.display import Markdown

    return Markdown(regret_as_markdown())


def regret_as_markdown() -> str:
    """Regret over that of the better constant, the worst run in brackets, by table and rate."""
    if not is_kept("claims-tables"):
        return as_markdown("claims-tables")  # which says so
    rows = []
    lines = [f"| table | people | {' | '.join(RATES.values())} |", "|---" * (2 + len(RATES)) + "|"]
    for name, title in TABLES.items():
        for horizon, people in HORIZONS.items():
            cells = []
            for rate in RATES:
                start = f"real tables, {name}{rate}: regret over the best constant's, T={horizon}"
                rows.append(row("claims-tables", start))
                found = re.match(r"(\S+) .*worst seed (\S+)\)", rows[-1]["figure"])
                assert found, rows[-1]["figure"]
                cells.append("{:.2f} ({:.2f})".format(*map(float, found.groups())))
            lines.append(f"| {title} | {people} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", origin("claims-tables", rows)])


def _plain(text: str) -> str:
    """What a cell holds is text: no formula, no emphasis, no end of the cell."""
    for sign in ("\\", "|", "*", "_", "$", "<", "`", "^"):
        text = text.replace(sign, f"\\{sign}")
    return text


def show(kind: str, containing: str = "", fold: bool = False) -> Any:
    """For a cell of a page; folded, the rows that hold are in a part that a reader opens."""
    from IPython.display import Markdown

    table = as_markdown(kind, containing)
    return Markdown(folded(table) if fold else table)


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
