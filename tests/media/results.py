"""Random results with hostile names, and how each medium is read again."""

import csv
import re
from html.parser import HTMLParser

import numpy as np

from evenhand.findings import Finding
from evenhand.result import (
    Amount,
    Bar,
    Between,
    Column,
    Curves,
    Intervals,
    Line,
    Point,
    Points,
    Result,
    Table,
    Verdict,
)

NAMES = (
    *("a", "b|c", "<script>alert(1)</script>", "line\nbreak", "36-45", "26 - 35", "$x_1$", "=1+1"),
    *("\\", "&amp;", "\u05d0\u05d1", "", "`x`", "**bold**", "nan", "12", "'", '"', "\u2212"),
)
UNITS = ("count", "percent", "share", "difference", "ratio", "cost", "weight")


def number(draw, unit):
    if unit == "count":
        return int(draw.integers(0, 10 ** int(draw.integers(1, 8))))
    choice = draw.random()
    if choice < 0.1:
        return float(draw.choice([0.0, -0.0, 1e-12, -1e-12, 1.0, np.nan, np.inf]))
    return float(draw.normal()) * 10.0 ** int(draw.integers(-3, 4))


def cell(draw, unit):
    if draw.random() < 0.1:
        return None
    if unit == "text":
        return str(draw.choice(NAMES))
    if unit == "status":
        return str(draw.choice(["within", "above", "not shown"]))
    if draw.random() < 0.3:
        low, high = sorted([number(draw, unit), number(draw, unit)])
        return Between(low, high)
    return number(draw, unit)


def random_table(draw, place):
    units = ["text", *draw.choice(UNITS, size=int(draw.integers(1, 5))), "status"]
    columns = tuple(
        Column(f"c{j}", str(draw.choice(["people", "a rate", "x|y"])), str(unit))
        for j, unit in enumerate(units)
    )
    rows = tuple(
        tuple(cell(draw, str(unit)) for unit in units) for _ in range(int(draw.integers(1, 30)))
    )
    return Table(
        f"t{place}", str(draw.choice(NAMES)) or "t", columns, rows, parts=int(draw.integers(0, 2))
    )


def random_verdict(draw):
    if draw.random() < 0.3:
        return None
    found = []
    for _ in range(int(draw.integers(0, 5))):
        low, high = sorted(draw.random(2))
        limit = float(draw.choice([0.05, 0.5, high, low]))
        found.append(Finding(str(draw.choice(NAMES)) or "gap", low, high, min(limit, 1.0)))
    return Verdict(tuple(found), 0.05, str(draw.choice(["", "The policy as it was handed in"])))


def random_figures(draw):
    bars = tuple(Bar(str(draw.choice(NAMES)), 0.1, -0.1, 0.2) for _ in range(3))
    points = tuple(Point(str(draw.choice(NAMES)), 1.0 + j, 2.0, (0.5, 3.0)) for j in range(2))
    lines = tuple(Line(f"{name}{j}", [0.0, 1.0]) for j, name in enumerate(NAMES[:4]))
    return (
        Intervals(str(draw.choice(NAMES)), "gap", bars, (0.1,)),
        Curves("x", "people", "share", [0, 5], lines),
        Points("gap and cost", "gap", "cost", points),
    )


def random_result(seed, figures=False):
    draw = np.random.default_rng(seed)

    def texts():
        return tuple(f"{draw.choice(NAMES)} is said." for _ in range(int(draw.integers(0, 3))))

    facts = {f"fact {j}": Amount(number(draw, unit), unit) for j, unit in enumerate(UNITS[1:])}
    tables = tuple(random_table(draw, place) for place in range(int(draw.integers(1, 4))))
    return Result(
        "random",
        str(draw.choice(NAMES)) or "title",
        {table.key: table.rows for table in tables} | {"facts": facts},
        texts(),
        random_verdict(draw),
        facts=facts,
        tables=tables,
        figures=random_figures(draw) if figures else (),
        policy=texts(),
        beware=texts(),
        assumptions=texts(),
        read=texts(),
        asked={str(draw.choice(NAMES)) or "x": str(draw.choice(NAMES)), "delta": 0.05},
        command="evenhand x '<y>'",
    )


def tidy(text):
    return " ".join(text.split())


class _Read(HTMLParser):
    """The tables of a page, its lists of names, and the paragraph of the verdict."""

    def __init__(self):
        super().__init__()
        self.grids, self.names, self.verdict, self.tags = [], [], None, []
        self._inside, self._text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "table":
            self.grids.append([])
        if tag == "tr":
            self.grids[-1].append([])
        if tag in ("td", "th", "dt", "dd") or dict(attrs).get("class") == "verdict":
            self._text = ""

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.grids[-1][-1].append(tidy(self._text))
        elif tag in ("dt", "dd"):
            self.names.append(tidy(self._text))
        elif tag == "p" and self.verdict is None:
            self.verdict = tidy(self._text)


def read_page(text):
    """(grids, names and values, the first paragraph of the answer, tags)."""
    read = _Read()
    read.feed(text[text.index('<section class="answer') :])
    return read


def read_card(text):
    """The rows of all tables of a card, cell by cell."""
    rows = []
    for line in text.splitlines():
        if line.startswith("| "):
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line.strip())[1:-1]
            rows.append([tidy(cell.replace("\\|", "|").replace("\\\\", "\\")) for cell in cells])
    return rows


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def leaves(value):
    """All numbers of a document."""
    if isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
