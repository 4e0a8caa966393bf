"""A page to hand over is whole and self-contained; a card has the headings of skops' cards."""

import re
from datetime import date

import pytest
from tests.report.records import KINDS, record
from tests.report.test_pages import parsed

from evenhand.errors import InvalidInput
from evenhand.evaluation import gate
from evenhand.report import write_report

MADE = date(2026, 3, 1)
MANY_FIGURES = ("evaluate",)
DRAWN = [
    pytest.param(kind, marks=pytest.mark.thorough) if kind in MANY_FIGURES else kind
    for kind in KINDS
]


def written(tmp_path, kind, name="page.html", **options):
    path = tmp_path / name
    write_report(record(kind), path, made=MADE, **options)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", DRAWN)
def test_a_page_is_whole_and_loads_nothing_from_elsewhere(tmp_path, kind):
    pytest.importorskip("matplotlib")
    text = written(tmp_path, kind, asked={"table": "loans <b>.csv"}, command="evenhand x '<y>'")
    ids = parsed(text).ids
    assert len(ids) == len(set(ids))
    assert not re.search(r"""(?:src|href|action|data)\s*=\s*["']?\s*(?:https?:)?//""", text)
    assert not re.search(r"<(?:script|link|iframe|img|object|embed|base)\b|@import", text)
    assert "loans &lt;b&gt;.csv" in text
    assert "<i>" not in text
    assert "1 March 2026" in text
    assert "evenhand 0.1.0" in text
    assert "&#39;&lt;y&gt;&#39;" in text
    assert "size: A4" in text


def test_the_answer_stands_before_everything_else(tmp_path):
    pytest.importorskip("matplotlib")
    verdict = gate(record("evaluate"), 0.9)
    text = written(tmp_path, "evaluate", asked={"limit": "0.9"}, verdict=verdict)
    places = [text.index(word) for word in ("Within what is allowed", "What was asked")]
    places += [text.index(word) for word in ("The figures", "The picture", "What it rests on")]
    assert places == sorted(places)
    assert 'class="answer within"' in text


def test_a_verdict_is_never_printed_dark(tmp_path):
    """The dark colours are for screens: a page that is printed from a dark screen is black on
    white.
    """
    pytest.importorskip("matplotlib")
    text = written(tmp_path, "evaluate")
    assert "@media screen and (prefers-color-scheme: dark)" in text
    assert "@media (prefers-color-scheme: dark)" not in text


def headings(text):
    """skops' names of sections: the path of headings, with slashes."""
    found, path = [], []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if fenced or not re.match(r"#+ ", line):
            continue
        marks, _, title = line.partition(" ")
        path = [*path[: len(marks) - 1], title]
        found.append("/".join(path))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_has_the_sections_of_skops_cards(tmp_path, kind):
    templates = pytest.importorskip("skops.card._templates")
    text = written(tmp_path, kind, "card.md", policy=["# not a heading"], asked={"a|b": "c\nd"})
    sections = headings(text)
    assert [name for name in sections if name in templates.SKOPS_TEMPLATE] == list(
        templates.SKOPS_TEMPLATE
    )
    assert text.startswith("---\nlibrary_name: evenhand\n")
    assert "| a\\|b | c d |" in text


def test_a_card_needs_neither_matplotlib_nor_jinja2(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "evenhand.report.handover.render", lambda *_, **__: pytest.fail("a page was rendered")
    )
    monkeypatch.setattr(
        "evenhand.report.handover.inline_svg", lambda *_: pytest.fail("a figure was drawn")
    )
    assert "## Evaluation Results" in written(tmp_path, "evaluate", "card.md")


def test_another_ending_raises_an_error_and_nothing_is_written(tmp_path):
    with pytest.raises(InvalidInput, match="neither a page nor a card"):
        write_report(record("evaluate"), tmp_path / "page.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "card.md"
    path.write_text("old")
    with pytest.raises(AttributeError):
        write_report(object(), path)
    assert path.read_text() == "old"
