"""Every command whose answer is a result: its numbers are the same in all media and in the record,
on four tables; its files are written whole.
"""

import csv
import hashlib
import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.cli.conftest import LENDING
from tests.media.agree import media_agree
from tests.media.results import leaves, read_card, read_page

from evenhand.cli import main, telling
from evenhand.media import ENDINGS, document
from evenhand.media.frames import columns_of

GROUPS = {
    "plain": ("f", "m"),
    "pipes": ("a|b", "<i>c</i>"),
    "dashes": ("36-45", "26-35"),
    "three": ("x", "y", "z and zz"),
}


def people_table(path, groups, seed=3, people=900):
    draw = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["score", "region", "approved", "repaid"])
        for _ in range(people):
            place = int(draw.integers(len(groups)))
            score = float(np.round(draw.normal(-0.3 * place, 1.0), 1))
            good = draw.random() < 1 / (1 + np.exp(-1.2 * score))
            writer.writerow([score, groups[place], int(score > -0.5), ("no", "yes")[int(good)]])
    return path


KNOWN = ("--label", "repaid", "--good", "yes", "--group", "region", "--features", "score")
DECIDED = ("--decision", "approved", "--group", "region", "--outcome", "repaid", "--good", "yes")
CALLS = {
    "measure": ("measure", "t.csv", *DECIDED, "--limit", "0.1", "--compare", "both"),
    "impact": ("impact", "t.csv", "--selected", "approved", "--group", "region", "--gate"),
    "alternatives": ("alternatives", "t.csv", *KNOWN, "--incumbent", "score>=0.2"),
    "plan": (
        *("plan", "--shares", "a=0.6,b=0.4", "--bad-rates", "a=0.2,b=0.3", "--auc", "0.76"),
        *("--people", "2000", "--runs", "1"),
    ),
    "evaluate": ("evaluate", "demo", "--policy", "accept-all", "--skip-first", "15000"),
    "explain": ("explain", "p.json", "new.csv", "--row", "1", "--row", "2"),
    "measure, watched": ("measure", "t.csv", *DECIDED[:4], "--watch"),
    "solve": ("solve", "t.csv", *KNOWN, "--limit", "0.1"),
    "solve, held out": ("solve", "t.csv", *KNOWN, "--limit", "0.1", "--holdout", "0.4"),
    "solve, certified": ("solve", "t.csv", *KNOWN, "--limit", "0.2", "--certify", "0.05"),
    "frontier": ("frontier", "t.csv", *KNOWN, "--limits", "0:0.2:5"),
    "test": ("test", "p.json", "new.csv", "--limit", "0.1"),
    "certify": ("certify", "p.json", "new.csv", "--limit", "0.1", "--ceiling", "selection=0.9"),
}
NEEDS_POLICY = ("test", "certify", "explain")


@pytest.fixture
def told(run, tmp_path, monkeypatch):
    """The result that a command prints, and what it printed."""
    found = []
    monkeypatch.setattr(telling, "print_result", lambda result, out=None: found.append(result))

    def told(name, groups, *more):
        people_table(tmp_path / "t.csv", GROUPS[groups])
        people_table(tmp_path / "new.csv", GROUPS[groups], seed=8)
        if name in NEEDS_POLICY:
            words = ("solve", "t.csv", *KNOWN, "--limit", "0.3", "--save", "p.json")
            assert run(*words).exit_code == 0
        if name == "frontier":  # which compares two groups
            more = (*more, "--groups", ",".join(GROUPS[groups][:2]))
        found.clear()
        done = run(*CALLS[name], *more)
        assert done.exit_code in (0, 1, 3), done.output
        return found[0]

    return told


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_are_the_same_in_all_media(told, name, groups):
    media_agree(told(name, groups))


@pytest.mark.parametrize("name", CALLS)
def test_each_file_says_what_is_printed(told, run, name, tmp_path):
    """The page, the card, the document and the table of the files, beside --json."""
    files = [tmp_path / f"x{ending}" for ending in (".html", ".md", ".json", ".csv")]
    result = told(name, "pipes", *(word for path in files for word in ("--out", path)))
    page, card, kept, rows = files
    printed = json.loads(run(*CALLS[name], "--json").stdout)
    saved = json.loads(kept.read_text())
    for one in (printed, saved):
        one.pop("command")  # they were called with other files
    assert saved == printed
    first = result.tables[0]
    assert saved["tables"][first.key] == document(result)["tables"][first.key]
    with rows.open(newline="") as file:
        assert next(csv.reader(file)) == list(columns_of(first))
    if result.verdict is not None:
        assert read_page(page.read_text()).verdict == result.verdict.headline
    assert len(read_card(card.read_text())) > len(first.rows)
    text = page.read_text()
    assert "<i>" not in text
    assert hashlib.sha256((tmp_path / "t.csv").read_bytes()).hexdigest() in text or name in (
        *NEEDS_POLICY,
        *("plan", "evaluate"),
    )


def test_the_tables_hold_the_numbers_of_the_record(told):
    """Of a measurement, and of a certificate."""
    result = told("measure", "three")
    pairs = result.table("pairs")
    record = [pair for rate in result.record.rates for pair in rate.pairs]
    assert [row[4] for row in pairs.rows] == [pair.difference for pair in record]
    assert [tuple(row[5]) for row in pairs.rows] == [pair.difference_interval for pair in record]
    groups = [one for rate in result.record.rates for one in rate.groups]
    assert [tuple(row[-1]) for row in result.table("rates").rows] == [
        (one.lower, one.upper) for one in groups
    ]
    certified = told("certify", "plain")
    gaps = certified.record.certificate.gaps
    assert [tuple(row[3]) for row in certified.table("gaps").rows] == [
        (gap.low, gap.high) for gap in gaps
    ]
    known = set(leaves(document(certified)["numbers"]))
    assert {rule.cost for rule in certified.record.rules} <= known


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_medium_is_written_for_a_certified_policy(run, lending, tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"x{ending}"
    words = (*LENDING, "--limit", "0.1", "--certify", "0.05", "--out", path)
    answer = run("solve", lending, *words)
    assert answer.exit_code == 0, answer.output
    assert f"Saved: {path}" in answer.output
    assert path.stat().st_size > 90


def test_json_stays_alone_on_standard_output(run, lending, tmp_path):
    answer = run("solve", lending, *LENDING, "--json", "--out", tmp_path / "card.md")
    assert json.loads(answer.stdout)["kind"] == "solution"
    assert (tmp_path / "card.md").exists()


def test_an_exit_code_is_that_of_the_verdict_in_the_document(tmp_path):
    table = tmp_path / "d.csv"
    table.write_text("sex,hired\n" + "f,1\nf,0\nm,1\nm,1\n" * 30)
    for limit in ("0.9", "0.1", "0.5"):
        words = ["measure", str(table), "--decision", "hired", "--group", "sex", "--limit", limit]
        told = CliRunner().invoke(main, [*words, "--gate", "--json"])
        assert json.loads(told.stdout)["verdict"]["exit_code"] == told.exit_code
